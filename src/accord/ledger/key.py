"""The key of the hash by which people are known.

Without it, nobody can tell from a ledger who is in it. It lies beside a ledger in a file; for one on a server
it is a variable of the environment.

A key can take the place of another (rotating.py). Then the ledger holds what is needed of the former ones
(`FormerKeys`), which only who has the new key can read.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from accord.errors import LedgerError
from accord.ledger.sqlite import SQLite
from accord.ledger.store import Store

VARIABLE = "ACCORD_LEDGER_KEY"
NEW_VARIABLE = "ACCORD_LEDGER_NEW_KEY"
"""Where the command line looks for the key that is to take the place of another."""
FORMER = "former"
"""What `accord_meta` calls the keys that a ledger had before, enclosed with the one that it has."""
_SHORTEST = 16
_NONCE = _TAG = 32
"""Bytes."""


@dataclass(frozen=True)
class FormerKeys:
    """What is still needed of keys that a ledger had before."""

    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Go before what is hashed, oldest first: see `Key.secret`."""
    sealing: bytes = field(default=b"", repr=False)
    """Of the last of them: see `seal`."""

    def seal(self, text: str) -> str:
        """What who had the last of them wrote under a text."""
        return _seal(self.sealing, text)


NO_FORMER_KEYS = FormerKeys()


class Key:
    """What is derived from a key; the key itself is not kept."""

    def __init__(self, key: str | bytes) -> None:
        try:
            raw = key.encode() if isinstance(key, str) else key
        except UnicodeEncodeError:
            raw = b""  # refused below, and not here: the fault holds the key
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
        self._stream = hashlib.sha256(b"accord former stream 1" + raw).digest()
        self._tag = hashlib.sha256(b"accord former tag 1" + raw).digest()

    def seal(self, text: str) -> str:
        """What only who has the key can write under a text."""
        return _seal(self._seal, text)

    def after(self, former: FormerKeys) -> FormerKeys:
        """What the next key needs of this one and of those before it."""
        return FormerKeys((*former.secrets, self.secret), self._seal)

    def enclosed(self, former: FormerKeys) -> str:
        """Former keys as text that tells nothing to who does not have this key.

        It is a nonce, the text XOR SHAKE-256 of a key and the nonce, and an HMAC of both, in hex digits.
        """
        text = json.dumps({"secrets": former.secrets, "sealing": former.sealing.hex()}).encode()
        nonce = secrets.token_bytes(_NONCE)
        sealed = nonce + self._masked(nonce, text)
        return (sealed + hmac.digest(self._tag, sealed, "sha256")).hex()

    def disclosed(self, text: str) -> FormerKeys | None:
        """What `enclosed` wrote; None: it is not what somebody with this key wrote."""
        try:
            raw = bytes.fromhex(text)
        except ValueError:
            return None
        sealed, tag = raw[:-_TAG], raw[-_TAG:]
        if not hmac.compare_digest(hmac.digest(self._tag, sealed, "sha256"), tag):
            return None
        content = json.loads(self._masked(sealed[:_NONCE], sealed[_NONCE:]))
        return FormerKeys(tuple(content["secrets"]), bytes.fromhex(content["sealing"]))

    def _masked(self, nonce: bytes, text: bytes) -> bytes:
        stream = hashlib.shake_256(self._stream + nonce).digest(len(text))
        return bytes(a ^ b for a, b in zip(text, stream, strict=True))

    def __repr__(self) -> str:
        return "<Key>"


def _seal(key: bytes, text: str) -> str:
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def kept_key(store: Store, check: str) -> Key | None:
    """The key where it is kept, beside a file or in the environment; None: there is none.

    Of a file and a draft of one, the one that the ledger has to `check` it by; if neither is, the file.
    """
    if not isinstance(store, SQLite):
        return from_environment()
    path = key_file(store.path)
    kept = from_file(path)
    drafted = None if kept is None or kept.check == check else _drafted(path)
    return drafted if drafted is not None and drafted.check == check else kept


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


def _drafted(path: Path) -> Key | None:
    """The key in the draft of a key file; None: there is none that can be read."""
    with suppress(OSError, LedgerError):
        return Key(_draft_of(path).read_text(encoding="utf-8", errors="replace").strip())
    return None


def drawn() -> str:
    """A new random key."""
    return secrets.token_hex(32)


def draft(path: Path) -> Key:
    """A new random key, in a draft of its file: see `write_draft`."""
    write_draft(path, drawn())
    key = from_file(path)
    assert key is not None
    return key


def write_draft(path: Path, key: str) -> None:
    """Put a key into a draft of its file, for its owner's eyes only.

    `settle_draft` gives it its name once the ledger has this key. Both are called while nobody else can write
    to the ledger, so that a draft is of the ledger's key, or of nothing that was committed.
    """
    target = _draft_of(path)
    try:
        target.unlink(missing_ok=True)  # of a ledger that was never made
        handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:  # all of it, or a fault
            file.write(f"{key}\n")
            file.flush()
            os.fsync(handle)
        _sync_folder(target.parent)
    except OSError as fault:
        raise LedgerError(
            f"cannot write the ledger's key to {str(path)!r} ({type(fault).__name__}). "
            "Choose a folder that can be written to, or give key=."
        ) from None


def _sync_folder(folder: Path) -> None:
    """Have the names in a folder outlast a loss of power."""
    with suppress(OSError):  # not every system can
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def settle_draft(path: Path, check: str) -> None:
    """Give the draft its name if the ledger has its key to check; remove it if not."""
    target = _draft_of(path)
    with suppress(FileNotFoundError):
        target.stat()
        drafted = _drafted(path)
        if drafted is not None and drafted.check == check:
            target.replace(path)
            _sync_folder(path.parent)
        elif os.access(target, os.R_OK):
            target.unlink()


def has_draft(path: Path) -> bool:
    """Whether there is a draft of a key file."""
    return _draft_of(path).exists()


def _draft_of(path: Path) -> Path:
    return path.with_name(path.name + ".new")
