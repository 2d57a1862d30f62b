"""Opening a ledger, or making a new one with its key."""

from __future__ import annotations

from pathlib import Path

from accord.errors import LedgerError
from accord.ledger import key as keys
from accord.ledger.books import Books
from accord.ledger.key import Key
from accord.ledger.postgres import Postgres
from accord.ledger.sqlite import SQLite
from accord.ledger.store import MIGRATIONS, Store


def open_books(url: str | Path, key: str | bytes | None, create: bool) -> Books:
    """The books of a ledger, at this version of accord.

    Raises:
        LedgerError: it is not there and not to be made, is none, is of a newer version, or has another key.
    """
    books = Books(open_store(url), None if key is None else Key(key))
    if not books.store.exists():
        if not create:
            raise LedgerError(
                f"there is no ledger {books.label}. Check the name, or make one with 'accord ledger init'."
            )
        _create(books)
    _upgrade(books)
    if books.key is not None:
        books.check_key(books.key)
    return books


def open_store(url: str | Path) -> Store:
    """Where a URL says that a ledger lies; nothing is looked at yet."""
    text = str(url)
    scheme = text.split("://")[0] if "://" in text else ""
    if scheme in ("postgresql", "postgres"):
        return Postgres(text)
    if scheme not in ("", "sqlite") or text.removeprefix("sqlite://") in ("", ":memory:"):
        raise LedgerError(
            f"cannot keep a ledger in {(scheme + '://…') if scheme else text!r}. "
            "Give a file such as 'accord.db', or 'postgresql://…'."
        )
    return SQLite(Path(text.removeprefix("sqlite://")))


def _upgrade(books: Books) -> None:
    """Bring a ledger of an older version to this one."""
    with books.store.read() as db:
        version = db.version()
    if version == 0:
        raise LedgerError(
            f"{books.label} is not a ledger of accord. Name another, or make one with 'accord ledger init'."
        )
    if version > len(MIGRATIONS):
        raise LedgerError(
            f"the ledger {books.label} is of version {version}, and this accord knows {len(MIGRATIONS)}. "
            "Install a newer accord."
        )
    if version < len(MIGRATIONS):
        with books.store.write() as db:
            db.migrate()


def _create(books: Books) -> None:
    """A new ledger with its key.

    Two processes at once make one, and one that is killed leaves nothing in the way.
    """
    with books.store.write(create=True) as db:
        if db.version() == 0:
            key = books.key or _new_key(books)
            _refuse_remains(books)
            db.migrate()
            db.run("INSERT INTO accord_meta (name, value) VALUES ('key', ?)", key.check)
            if books.head is not None:
                books.head.begin(db, key.seal)
    books.required_key()


def _new_key(books: Books) -> Key:
    """A key for a ledger that is being made: from the environment, or drawn and put beside its file."""
    if not isinstance(books.store, SQLite):
        key = keys.from_environment()
        if key is None:
            raise LedgerError(keys.missing_text(books.store))
        return key
    path = keys.key_file(books.store.path)
    if path.exists():
        raise LedgerError(
            f"there is a key {str(path)!r}, but its ledger {books.label} is gone, "
            "and a new one would give everyone their whole budget again. "
            "Restore the ledger; or remove the key, if nothing was ever charged there."
        )
    _refuse_remains(books)
    return keys.draft(path)


def _refuse_remains(books: Books) -> None:
    """No new ledger where one was lost."""
    noted = books.noted_head()
    if books.head is not None and noted is not None and noted.entries:
        raise LedgerError(
            f"there is the head {books.head.label}, but its ledger {books.label} is gone, "
            "and a new one would give everyone their whole budget again. "
            "Restore the ledger; or remove the head, if nothing was ever charged there."
        )
