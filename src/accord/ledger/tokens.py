"""Tokens: who may ask a service what, and which description of its tables was agreed to.

A token is known by a name and holds a secret of 256 bits, which is shown once. Its entry in the chain has
the SHA-256 of the secret: nobody guesses what it is of. The newest entry about a token counts, so that
what was granted to whom at any time, and by whom, is in the chain with everything else.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from threading import Lock

import accord
from accord.budget import LARGEST
from accord.errors import LedgerError
from accord.ledger.books import Books
from accord.ledger.chain import Entry
from accord.ledger.renewal import PERIODS, Renewal
from accord.ledger.requests import Quota
from accord.ledger.signing import Signature
from accord.ledger.validation import digests, entries_since, newest_entry

ANALYST, OFFICER, OWNER = "analyst", "officer", "owner"
ROLES = {
    ANALYST: "plans and asks, of the tables that are granted",
    OFFICER: "approves, looks people up and withdraws them, and sees everything that was done",
    OWNER: "sees who may ask what, and everything that was done, and revokes tokens",
}
LONGEST_DAYS = 3_660
_PREFIX = "accord"
_NOBODYS = "0" * 64


@dataclass(frozen=True)
class Grant:
    """How much of everyone's level an analyst may spend of a table in a period."""

    share: int
    """In millionths."""
    per: str
    """A calendar "year", "quarter" or "month", in UTC."""

    @property
    def quota(self) -> Quota:
        """The same, of the period that is now."""
        period = Renewal(self.per, 1, 1)
        now = replace(period, period=period.period_of(datetime.now(UTC)))
        return Quota(self.share, now.beginning.isoformat(), self.per)


@dataclass(frozen=True)
class Token:
    """What a token allows, as its newest entry says."""

    id: str
    name: str
    """Of who asks with it, as everything that they do is booked."""
    role: str
    grants: Mapping[str, Grant]
    """Of an analyst, by table."""
    expires: str
    digest: str = field(repr=False)
    """SHA-256 of the secret."""
    revoked: bool = False

    @property
    def is_valid(self) -> bool:
        """Whether anybody may sign in with it now."""
        return not self.revoked and datetime.now(UTC) < datetime.fromisoformat(self.expires)


def add(
    books: Books, name: str, role: str, grants: Mapping[str, Grant], days: int, signature: Signature
) -> tuple[Token, str]:
    """A new token, and its text, which is kept nowhere.

    Raises:
        LedgerError: there is no such role, or a name, a time or a grant cannot be. Nothing is booked.
    """
    signature.refuse_incomplete("a token")
    if role not in ROLES:
        raise LedgerError(f"there is no role {role!r}. Roles are {', '.join(map(repr, ROLES))}.")
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or len(name) > 100:
        raise LedgerError("the name of a token is a line of at most 100 letters, which is booked.")
    if not isinstance(days, int) or not 1 <= days <= LONGEST_DAYS:
        raise LedgerError(f"a token is valid for 1 to {LONGEST_DAYS:,} days.")
    if (role == ANALYST) != bool(grants):
        raise LedgerError(
            "an analyst's token says of which tables they may ask."
            if role == ANALYST
            else f"grants are for analysts; as {role}, somebody asks nothing of a table's values."
        )
    if any(not 0 < grant.share <= LARGEST or grant.per not in PERIODS for grant in grants.values()):
        raise LedgerError(
            "a quota is a share of everyone's level above 0 in a year, a quarter or a month: 0.1/month."
        )
    secret = secrets.token_urlsafe(32)
    expires = (datetime.now(UTC) + timedelta(days=days)).isoformat()
    token = Token(secrets.token_hex(4), name, role, dict(grants), expires, _digest(secret))
    _book(books, token, signature)
    return token, f"{_PREFIX}_{token.id}_{secret}"


def revoke(books: Books, number: str, signature: Signature) -> Token:
    """Let nobody sign in with a token any more.

    Raises:
        LedgerError: there is none of this id, or it is revoked already.
    """
    signature.refuse_incomplete("a revocation")
    token = Tokens(books).by_id.get(number)
    if token is None or token.revoked:
        raise LedgerError(f"there is no token {number!r} that could be revoked: see 'accord token list'.")
    token = replace(token, revoked=True)
    _book(books, token, signature)
    return token


def agree(books: Books, description: str, signature: Signature) -> Entry:
    """Book that a description of the tables, by its digest, is the one that counts."""
    signature.refuse_incomplete("a description")
    with books.writing() as db:
        content = {"accord": accord.__version__, "description": description, **signature.booked}
        return books.append(db, "description", content | digests(newest_entry(db)))


class Tokens:
    """The tokens of a ledger, and the description that was agreed to, as the chain has them now."""

    def __init__(self, books: Books) -> None:
        self._books, self._lock = books, Lock()
        self._seen = 0
        self._by_id: dict[str, Token] = {}
        self._description: str | None = None

    @property
    def by_id(self) -> Mapping[str, Token]:
        """All tokens, those that are revoked, too."""
        self._catch_up()
        return self._by_id

    @property
    def description(self) -> str | None:
        """The digest of the description that was agreed to last; None: none was."""
        self._catch_up()
        return self._description

    def of(self, text: str) -> Token | None:
        """The valid token with this text; None: there is none."""
        return self.tried(text)[1]

    def tried(self, text: str) -> tuple[str, Token | None]:
        """The id of the token that a text says it is, if there is one; and the token, if it is right."""
        number, secret = _split(text)
        token = self.by_id.get(number)
        # compared in any case: how long it takes does not tell whether there is such a token
        matches = hmac.compare_digest(_NOBODYS if token is None else token.digest, _digest(secret))
        if token is None:
            return "", None
        return number, token if matches and token.is_valid else None

    def _catch_up(self) -> None:
        """Read what was booked since the last look."""
        with self._lock, self._books.reading() as db:
            newest = newest_entry(db)
            if newest is None or newest.seq <= self._seen:
                return
            for entry in self._sealed(entries_since(db, "token", self._seen)):
                token = _token(entry)
                self._by_id = {**self._by_id, token.id: token}
            for entry in self._sealed(entries_since(db, "description", self._seen)):
                self._description = str(entry.content["description"])
            self._seen = newest.seq

    def _sealed(self, entries: Iterator[Entry]) -> Iterator[Entry]:
        for entry in entries:
            if not entry.is_whole or entry.seal != self._books.required_key().seal(entry.hash):
                raise LedgerError(
                    f"entry {entry.seq} of the ledger was not written with its key. "
                    "Run 'accord ledger verify' to see what is wrong."
                )
            yield entry


def _split(text: str) -> tuple[str, str]:
    """The id and the secret of a text that may be a token's."""
    prefix, _, rest = text.partition("_")
    number, _, secret = rest.partition("_")
    return (number, secret) if prefix == _PREFIX else ("", "")


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def _book(books: Books, token: Token, signature: Signature) -> None:
    with books.writing() as db:
        content = {
            "accord": accord.__version__,
            "token": token.id,
            "name": token.name,
            "role": token.role,
            "grants": {table: [grant.share, grant.per] for table, grant in token.grants.items()},
            "expires": token.expires,
            "secret": token.digest,
            "revoked": token.revoked,
            **signature.booked,
        }
        books.append(db, "token", content | digests(newest_entry(db)))


def _token(entry: Entry) -> Token:
    said = entry.content
    grants = {str(table): Grant(int(share), str(per)) for table, (share, per) in said["grants"].items()}
    return Token(
        said["token"], said["name"], said["role"], grants, said["expires"], said["secret"], said["revoked"]
    )
