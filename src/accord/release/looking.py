"""Looking at public people: refuse, reserve in the ledger or remember, read, commit, in this order.

No noise is drawn: people/public.py says whom it reads, what they are charged, and why nobody else loses
anything.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

import accord
from accord import planning, relation, statistics
from accord.budget import PUBLIC
from accord.errors import PlanError, QueryError
from accord.people import public, suggesting
from accord.people.public import PublicLook
from accord.people.spending import Charged
from accord.people.suggesting import Known, Suggested
from accord.release.deciding import signed
from accord.release.receipt import SCHEMA, charges_document, plain_data
from accord.release.release import book, charged, remember
from accord.release.result import Booked
from accord.statistics import PER_PERSON, Grid
from accord.statistics.query import column_name, exact

if TYPE_CHECKING:
    from accord.ledger import Ledger
    from accord.people.identity import Remaining
    from accord.people.table import Table
    from accord.statistics.declared import Declared

_LOG = logging.getLogger("accord")
MECHANISM = "public people"
"""What receipts call it in the place of a mechanism's name."""
ASSUMPTIONS = (
    "only people who are public (level inf) were read: it costs them inf, and everyone else nothing",
    "public people may differ from the others: nothing of this is a guarantee about them",
    "values outside the bounds count as the nearer bound",
)
"""What must be known about every look, in sentences."""


_LARGEST_GAP = 10**100


def look(
    table: Table,
    column: str,
    bounds: tuple[Any, Any] | None = None,
    gap: float | None = None,
    share: float = 1.0,
    per_person: str | None = None,
    *,
    ledger: Ledger | None = None,
    actor: str | None = None,
    purpose: str | None = None,
) -> PublicLook:
    """What public people tell about a column: see `Table.public`."""
    ledger = table.own_ledger() if ledger is None else ledger
    signature = signed(ledger, actor, purpose)
    kind = _checked_kind(table, column)
    rows_come_to = _checked_rows(table, per_person)
    bounds = _declared_bounds(table, column, rows_come_to) if bounds is None else bounds
    _refuse_bounds(column, kind, bounds)
    _refuse_gap(column, kind, gap)
    planning.whole_share(share)  # which refuses what is none
    spec = table.spec()
    if PUBLIC not in spec.micro:
        raise PlanError(
            "nobody in this table is public (level inf), so that there is nobody whose values may be looked "
            "at. Declare bounds, keys and step from public knowledge. Nothing was spent."
        )
    known = Known(spec, column, bounds, gap, share)
    if ledger is None:
        micro = spec.micro
        remember(table, [(table.reader.group, Charged(micro, np.where(micro == PUBLIC, PUBLIC, 0)))])
        _LOG.debug("reading %s of public people", column)
        done = _read(table, known, kind, rows_come_to, int(spec.people[-1]), None)
    else:
        from accord.ledger import charging

        reservation, people = charging.reserve_public(ledger.books, table, _label(column), signature)
        with charged(ledger, [reservation]):
            _LOG.debug("charged as entry %d; reading %s of public people", reservation.entry, column)
            done = _read(table, known, kind, rows_come_to, people, reservation.remaining)
            charging.refuse_changed_table(ledger.books, table, reservation)
            answered = charging.Answered([look_document(done)], [])
        (entry,) = book(ledger, [(reservation, answered)])
        done = replace(done, booked=Booked(entry.seq, entry.hash))
    where = "booked nowhere" if done.booked is None else f"booked as entry {done.booked.entry}"
    _LOG.info("looked at %s of %d public people, charges inf: inf, %s", column, done.people, where)
    return done


def _read(
    table: Table, known: Known, kind: str, per_person: str, people: int, remaining: Remaining | None
) -> PublicLook:
    public_data = public.public_values(table.reader, known.column, kind, per_person, people, remaining)
    if public_data.values is None:
        suggested: Suggested = suggesting.from_texts(public_data.of_rows)
    elif kind in ("date", "timestamp"):
        suggested = suggesting.from_moments(public_data.values, kind, known)
    else:
        suggested = suggesting.from_numbers(public_data.values, public_data.of_rows, known)
    return PublicLook(known.column, people, public_data.missing, suggested, known.spec, datetime.now(UTC))


# ---- what is refused before anybody is charged -----------------------------------------------------------


def _checked_kind(table: Table, column: str) -> str:
    """As what a column is read, if public people may be looked at here."""
    if table.neighbors != relation.REPLACE.name:
        raise QueryError(
            f"with neighbors={table.neighbors!r} it is private who is in the table, also of public people, "
            "and a look at them would tell. Open it with neighbors='replace'."
        )
    if table.reader.is_group:
        raise QueryError(
            "this table is one public group of another. Look at public people of the whole table."
        )
    table.reader.refuse_unknown([column_name(column)])
    if column in (table.level_column, table.user):
        holds = "the levels" if column == table.level_column else "who a row is of"
        raise QueryError(f"column {column!r} holds {holds}, about which nothing is asked. Choose another.")
    kind: str = table.columns[column]
    if (
        kind == "untyped"
        and (declared := _described(table, column)) is not None
        and declared.kind is not None
    ):
        kind = declared.kind
    if kind == "boolean":
        raise QueryError(
            f"column {column!r} holds true and false, so that there is nothing to suggest: "
            "bounds=(0, 1), keys=[False, True]."
        )
    if kind == "other":
        raise QueryError(f"column {column!r} holds neither numbers, dates nor text. Choose another.")
    return kind


def _described(table: Table, column: str) -> Declared | None:
    return None if table.description is None else table.description.columns.get(column)


def _checked_rows(table: Table, per_person: str | None) -> str:
    """What a person's rows come to."""
    if per_person is None:
        return "mean"
    if table.user is None:
        raise QueryError(
            f"each row is one person here, so that per_person={per_person!r} has no meaning. Leave it out, "
            "or open the table with user='…' (on the command line --user) if people have several rows."
        )
    if per_person not in PER_PERSON:
        raise QueryError(f"per_person={per_person!r} is none of {', '.join(PER_PERSON)}. Choose one of them.")
    return per_person


def _declared_bounds(table: Table, column: str, rows_come_to: str) -> tuple[Any, Any] | None:
    """Those of the table's description, if it has any."""
    declared = _described(table, column)
    if declared is None:
        return None
    return declared.total if table.user is not None and rows_come_to == "sum" else declared.bounds


def _refuse_bounds(column: str, kind: str, bounds: Any) -> None:
    """Refuse bounds that a question would refuse, or that are of another kind than the column."""
    if bounds is None:
        return
    if kind == "text":
        raise QueryError(f"column {column!r} holds text, which has no bounds. Leave bounds= out.")
    if kind in ("number", "untyped"):
        statistics.mean(column, bounds)
        return
    asked = statistics.median(column, bounds)
    if isinstance(asked.encoding, Grid) and asked.encoding.kind == "number":
        raise QueryError(f"column {column!r} holds dates, and bounds={bounds!r} are numbers. Give two dates.")


def _refuse_gap(column: str, kind: str, gap: Any) -> None:
    if gap is None:
        return
    if kind not in ("number", "untyped"):
        raise QueryError(f"gap= is about means of numbers, and column {column!r} holds none. Leave it out.")
    if not 0 <= exact(gap, "gap") <= _LARGEST_GAP:
        raise QueryError(
            f"gap={gap!r} is negative, or too large to mean anything. It is how far the means of two levels "
            "may lie apart, in the units of the column: a number ≥ 0, from public knowledge."
        )


# ---- as plain data ---------------------------------------------------------------------------------------


def _label(column: str) -> str:
    return f"public people's {column}"


def look_document(done: PublicLook) -> dict[str, Any]:
    """A look as plain data, with the fields of a receipt."""
    charges = charges_document(done.spec, done.cost)
    others = charges[-1]["people"] - done.people
    if others:  # public here, and stricter in another table of the ledger
        charges[-1]["people"] = done.people
        charges.append({**charges[-1], "people": others, "charge": "0"})
    names = ("bounds", "step", "std", "keys")
    return {
        "schema": SCHEMA,
        "accord": accord.__version__,
        "time": done.time.isoformat(),
        "query": {"statistic": "public", "column": done.column},
        "mechanism": MECHANISM,
        "neighbors": relation.REPLACE.name,
        "people": done.people,
        "missing": done.missing,
        "charges": charges,
        "rmse": None,
        "value": {name: plain_data(getattr(done, name)) for name in names},
        "why": dict(done.why),
        "assumptions": list(ASSUMPTIONS),
        "interval": None,
        **({} if done.booked is None else {"ledger": vars(done.booked)}),
    }
