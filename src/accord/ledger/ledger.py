"""Ledger: who has how much left, and what was done with it.

Guarantee  Over all releases that name this ledger, nobody is charged more than their level: losses of one
           person add up ([J] Theorem 4), a person who is in two tables pays for releases about either, and
           what a release charges is taken before anything of it is read. Plans may depend on earlier
           answers: for pure ε the sum of adaptively chosen charges bounds the loss as well.
People     are known by a keyed hash of their id. Who is in a registered table, and with which level, is
           public; values are never looked at.
Private    Where levels are private the ledger knows nobody: it has an account for each level of the menu, and
           stores nothing that depends on a table. menus.py says what is promised then, and why.
"""

from __future__ import annotations

from datetime import date
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord.errors import LedgerError
from accord.ledger import (
    backups,
    charging,
    history,
    registering,
    renewing,
    requiring,
    rotating,
    verifying,
    withdrawing,
)
from accord.ledger import person as people_records
from accord.ledger.chain import Entry
from accord.ledger.heads import read_heads
from accord.ledger.history import Account
from accord.ledger.menus import are_private
from accord.ledger.opening import open_books
from accord.ledger.person import Person
from accord.ledger.registering import Agreement, Registration
from accord.ledger.registering_menus import register_menu
from accord.ledger.renewal import Renewal
from accord.ledger.rotating import Rotation
from accord.ledger.signing import Signature
from accord.ledger.verifying import Verdict
from accord.ledger.withdrawing import Withdrawal
from accord.planning import Plan
from accord.spec import Spec

if TYPE_CHECKING:
    from accord.people.table import Table


class Ledger:
    """Everyone's budget, in a SQLite file or a PostgreSQL database.

    >>> import tempfile, accord
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(folder.name + "/accord.db")
    >>> people = accord.table(
    ...     {"id": [1, 2, 3], "age": [31, 45, 62], "level": [0.5, 1.0, 1.0]}, epsilon="level", user="id"
    ... )
    >>> print(ledger.register(people, "people"))
    registered 'people': 3 people
    >>> answer = people.release(accord.mean("age", bounds=(0, 100)), "minimum", share=0.4, ledger=ledger)
    >>> ledger.remaining(people).levels
    (0.3, 0.8)
    >>> folder.cleanup()
    """

    def __init__(self, url: str | Path, key: str | bytes | None = None, *, create: bool = True) -> None:
        """Open a ledger, or make a new one.

        Args:
            url: a file, or postgresql://user@host/database.
            key: keys the hash of people's ids. Left out: for a file, the one beside it (accord.db.key), made
                with the ledger; for PostgreSQL, the variable ACCORD_LEDGER_KEY. Keep it: without it, no table
                can be recognised.
            create: whether to make a ledger that is not there.

        Raises:
            LedgerError: it cannot be opened, is from a newer version, or the key is another one.
        """
        self.books = open_books(url, key, create)
        """What the modules of `accord.ledger` work on; not for users."""
        self.label = self.books.label

    def register(
        self,
        people: Table,
        name: str,
        *,
        raise_levels: bool = False,
        agree: bool = False,
        actor: str | None = None,
        purpose: str | None = None,
    ) -> Registration:
        """Make a table known, or a new version of it.

        Who is in it, and with which level, is thereby declared public. People keep what they have spent, also
        if they leave and come back; those who join have their full budget, unless another table knows them.
        In several tables, the lowest level of a person counts for all, also that of a table that they left.
        With private levels nothing is declared public but the menu of levels, and no row is read.

        Args:
            people: the table.
            name: what it is called in the ledger.
            raise_levels: let people have a higher level in it than they last had. Needs `actor`, `purpose`.
            agree: let levels come from elsewhere than before: another column, register or other tiers
                (`Table.policy`). Needs `actor` and `purpose`.
            actor: who registers it. It is booked.
            purpose: why. It is booked.

        Raises:
            LedgerError: the table has no `user=`, or another notion of neighbors than the ledger; it would
                raise somebody's level, or has another policy, and that was not agreed to. Nothing is written.
        """
        agreement = Agreement(raise_levels, agree, Signature(actor, purpose))
        if are_private(getattr(people, "neighbors", None)):
            return register_menu(self.books, people, name, agreement)
        return registering.register(self.books, people, name, agreement)

    def withdraw(self, *person_ids: Any, actor: str | None = None, purpose: str | None = None) -> Withdrawal:
        """Leave nothing to people in any table of this ledger, at once and whatever later versions say.

        What was released before stays released. A release that is reading their table when they withdraw
        is charged, and gives no answer.

        Args:
            person_ids: ids as they stand in the tables' column of people; all of them or none.
            actor: who withdraws them. It is booked; their ids are not.
            purpose: why. It is booked.

        Raises:
            LedgerError: no table knows one of them. Nothing is booked.
        """
        return withdrawing.withdraw(self.books, person_ids, Signature(actor, purpose))

    def readmit(self, *person_ids: Any, actor: str, purpose: str) -> Withdrawal:
        """Take withdrawals back: people have the level that their tables say, less what they had spent.

        Raises:
            LedgerError: one of them is not known or has not withdrawn. Nothing is booked.
        """
        return withdrawing.readmit(self.books, person_ids, Signature(actor, purpose))

    def require(self, *names: str, actor: str | None = None, purpose: str | None = None) -> Entry:
        """Refuse from now on what is asked without "actor", "purpose" or both, before anything is read.

        It is booked, and counts for registrations, releases, withdrawals and this; what is required is what
        was said last, and no name requires nothing.

        Raises:
            LedgerError: it is required already, and not given.
        """
        return requiring.require(self.books, names, Signature(actor, purpose))

    def renew(self, every: str, amount: float | None = None, *, actor: str, purpose: str) -> Entry:
        """Let a part of everyone's level come back at the beginning of every period, from the next one on.

        A level is then no longer for life: over k periods a person may lose 1 + (k − 1) · amount times their
        level. Nobody ever has more left than their level. What was said last counts; it is booked, and so is
        every renewal, by whoever next changes anything.

        Args:
            every: a calendar "year", "quarter" or "month", in UTC; "never": levels are for life.
            amount: the part of everyone's level that comes back: 0.5 is half of it, 1 all.
            actor: who decided it.
            purpose: why, such as what people have consented to.

        Raises:
            LedgerError: there is no such period, or it is not said who decided it and why.
        """
        return renewing.renew(self.books, every, amount, Signature(actor, purpose))

    @property
    def renewal(self) -> Renewal | None:
        """How budgets are renewed, and when next; None: levels are for life."""
        return renewing.renewal_of(self.books)

    def remaining(self, people: Table) -> Spec:
        """What everyone in a table has left, as a Spec that a plan can start from.

        Those who have nothing left count as opted out.

        Raises:
            LedgerError: the table is not registered, or has changed since.
        """
        return charging.remaining(self.books, people)

    def affordable(self, people: Table, plan: Plan) -> int | None:
        """How many times more a plan for this table could be released, until budgets are renewed.

        None: without end, because nobody is charged but public people.
        """
        return charging.affordable(self.books, people, plan)

    def person(self, person_id: Any, *, actor: str | None = None, purpose: str | None = None) -> Person:
        """Everything that the ledger knows about one person: what was released, and what it cost them.

        The look-up is booked.

        Raises:
            LedgerError: no table knows this id.
        """
        return people_records.person(self.books, person_id, Signature(actor, purpose))

    def accounts(self) -> list[Account]:
        """Every level of every table: how many people, what they have spent and what they have left."""
        return history.accounts(self.books)

    def entries(self) -> list[Entry]:
        """The chain of everything that was done, oldest first."""
        return history.entries(self.books)

    def history(
        self,
        *,
        table: str | None = None,
        kind: str | None = None,
        actor: str | None = None,
        since: str | date | None = None,
        until: str | date | None = None,
    ) -> list[dict[str, Any]]:
        """What was done, oldest first; without arguments every release that was charged.

        Of a release: entry, time, table, charges, state and receipts, and who asked why.

        Args:
            table: of this table only, by its name.
            kind: "release", "repeat", "register", "withdraw", "readmit", "policy", "renewal", "renew",
                "person", "refused", "token", "description", "approval", "restored", "rotate", or "all",
                which is what the other arguments choose from.
            actor: what this one asked for only.
            since: not before this moment: a date (its first moment), a timestamp or ISO text; in UTC, if it
                has no time zone.
            until: before this moment.

        Raises:
            LedgerError: there is no such kind, or it is not a moment.
        """
        return history.events(self.books, history.Choice(table, kind, actor, since, until))

    def verify(self, heads: str | PathLike[str] | None = None) -> Verdict:
        """Check the files and the chain, that the accounts follow from it, and that no entry is lost.

        Damage is told, not raised.

        Args:
            heads: a file of heads that is kept elsewhere, such as a service writes: by it a ledger that was
                replaced by an older copy with all its files is found out.

        Raises:
            LedgerError: these heads cannot be read.
        """
        return verifying.verify(self.books, () if heads is None else read_heads(Path(heads)))

    def accept_backup(self, why: str) -> Entry:
        """Go on from an older copy of this ledger, or without the file that says how many entries it has.

        It is booked with the reason. Everything that was spent after the copy was made is forgotten by this:
        people may lose more than their level.

        Raises:
            LedgerError: nothing is missing, or more is wrong than that.
        """
        return backups.accept_backup(self.books, why)

    def rotate_key(self, new_key: str | bytes | None = None, *, actor: str, purpose: str) -> Rotation:
        """Put another key in the place of the ledger's, which somebody may have seen.

        Everyone keeps what they have spent, and tables are recognised as before. The former key tells nothing
        about the ledger any more; but with it, copies from before can be read as ever. Others who have the
        ledger open are refused until they open it again; what they had reserved stays charged.

        Args:
            new_key: left out: drawn, and put into the file that holds the present one. It must be given where
                there is no such file, as on a server.
            actor: who changes it. It is booked.
            purpose: why. It is booked.

        Raises:
            LedgerError: something is wrong with the ledger, which a new seal would vouch for; or the new key
                is too short, is or was the ledger's, or cannot be kept. Nothing is changed.
        """
        self.books, rotation = rotating.rotate(self.books, new_key, Signature(actor, purpose))
        return rotation

    def export(self) -> dict[str, Any]:
        """Everything but the people, as plain data that another program can check.

        docs/ledger.md says how.
        """
        return history.export(self.books)

    def __reduce__(self) -> tuple[Any, ...]:
        raise LedgerError(
            "a ledger is not pickled or copied, because its key would be. "
            "Open it where it is needed: accord.Ledger(…)."
        )

    def _repr_html_(self) -> str:
        from accord.report.html import ledger_html

        return ledger_html(self)

    def __repr__(self) -> str:
        return f"<Ledger {self.label}>"
