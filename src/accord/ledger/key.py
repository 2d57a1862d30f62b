"""The key of the hash by which people are known.

Without it, nobody can tell from a ledger who is in it. It lies beside a ledger in a file; for one on a server
it is a variable of the environment.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path

from accord.errors import LedgerError
from accord.ledger.sqlite import SQLite
from accord.ledger.store import Store

VARIABLE = "ACCORD_LEDGER_KEY"
_SHORTEST = 16


class Key:
    """What is derived from a key; the key itself is not kept."""

    def __init__(self, key: str | bytes) -> None:
        raw = key.encode() if isinstance(key, str) else key
        if not isinstance(raw, bytes) or len(raw) < _SHORTEST:
            raise LedgerError(
                f"the ledger's key is too short. Give a text of at least {_SHORTEST} characters "
                "that nobody can guess, such as 64 random hex digits."
            )
        self.secret = hashlib.sha256(b"accord people 1" + raw).hexdigest()[:32]
        """Goes before every id that is hashed."""
        self.check = hashlib.sha256(b"accord check 1" + raw).hexdigest()[:32]
        """Stored in the ledger, to notice a wrong key."""
        self._seal = hashlib.sha256(b"accord seal 1" + raw).digest()

    def seal(self, text: str) -> str:
        """What only who has the key can write under a text."""
        return hmac.new(self._seal, text.encode(), hashlib.sha256).hexdigest()

    def __repr__(self) -> str:
        return "<Key>"


def kept_key(store: Store) -> Key | None:
    """The key where it is kept: beside a file, or in the environment; None: there is none."""
    return from_file(key_file(store.path)) if isinstance(store, SQLite) else from_environment()


def missing_text(store: Store) -> str:
    """What to say where there is none."""
    if isinstance(store, SQLite):
        return (
            f"the ledger's key {str(key_file(store.path))!r} is missing, "
            "and without it nobody can be recognised. Restore it, or give key=."
        )
    return (
        f"the ledger {store.label} needs its key: set the variable {VARIABLE}, or give key=. "
        "Use the same text everywhere and keep it."
    )


def from_environment() -> Key | None:
    """The key of ledgers on servers."""
    value = os.environ.get(VARIABLE)
    return None if value is None else Key(value)


def key_file(database: Path) -> Path:
    """Where the key of a ledger in a file lies."""
    return database.with_name(database.name + ".key")


def from_file(path: Path) -> Key | None:
    """The key in a file; or the draft of one, if a process was killed before it could confirm it."""
    for place in (path, _draft_of(path), path):  # it may be confirmed while we look
        try:
            return Key(place.read_text(encoding="utf-8").strip())
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError) as error:
            fault = type(error).__name__
        # outside of the handler: the error of decoding holds the bytes of the key
        raise LedgerError(
            f"cannot read the ledger's key in {str(place)!r} ({fault}). Restore it, or give key=."
        )
    return None


def draft(path: Path) -> Key:
    """A new random key, for its owner's eyes only.

    It lies in a file that `confirm` gives its name once the ledger is made.
    """
    target = _draft_of(path)
    try:
        target.unlink(missing_ok=True)  # of a ledger that was never made
        handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(handle, (secrets.token_hex(32) + "\n").encode())
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as fault:
        raise LedgerError(
            f"cannot write the ledger's key to {str(path)!r} ({type(fault).__name__}). "
            "Choose a folder that can be written to, or give key=."
        ) from None
    key = from_file(path)
    assert key is not None
    return key


def confirm(path: Path) -> None:
    """Give the draft its name, if there is one."""
    with suppress(FileNotFoundError):  # there was none, or another process was faster
        _draft_of(path).rename(path)


def _draft_of(path: Path) -> Path:
    return path.with_name(path.name + ".new")
