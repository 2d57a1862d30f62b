"""`accord.sample`: any private algorithm made personal.

[J] Definition 9, Theorem 5; the proof is in mechanisms/sample.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from accord.errors import QueryError, SourceError, did_you_mean
from accord.people.table import Table
from accord.planning import plan, refuse_arguments
from accord.release import Release, release, signed
from accord.statistics.algorithm import Algorithm
from accord.statistics.query import A, column_name

if TYPE_CHECKING:
    from accord.ledger import Ledger

ROW_FORMATS = {"arrow": ("pyarrow",), "pandas": ("pyarrow", "pandas"), "numpy": ()}
"""What rows may be given as, and the packages that it takes."""


def sample(
    algorithm: Callable[[Any, float], A],
    table: Table,
    t: float | str = "max",
    *,
    share: float | None = None,
    ledger: Ledger | None = None,
    columns: Iterable[str] | None = None,
    rows: str = "arrow",
    actor: str | None = None,
    purpose: str | None = None,
) -> Release[A]:
    """Run a private algorithm on people who are kept at random, so that everyone's own level holds.

    Args:
        algorithm: `algorithm(rows, epsilon)`; it must be ε-differentially private under add-remove: one row
            more or less changes no probability by more than exp(epsilon). An OpenDP measurement, an estimator
            of your own, anything.
        table: the people.
        t: the level at which those who are kept are asked: "max", "mean" or "min" of the levels, or a number.
            Higher: less noise, fewer people.
        share: the fraction of everyone's level that may be spent; required with a ledger.
        ledger: where it is charged, before anything is read.
        columns: what the algorithm gets to see; all but the levels and `user` if left out.
        rows: what it is given: an "arrow" table, a "pandas" data frame, or a "numpy" array of numbers (NaN
            for what is none, dates as seconds since 1970). Columns without a type, as those of CSV files and
            lists, are text in the other two.
        actor: who asks. It is booked in the ledger.
        purpose: why. It is booked in the ledger.

    Returns:
        A Release; `value` is what the algorithm returned.

    Raises:
        QueryError: the algorithm raised something, or returned nothing; it is charged all the same. Its own
            text is not passed on, because it may quote the data.

    >>> import accord
    >>> people = accord.table({"age": [31, 45, 62], "level": [0.1, 1.0, 1.0]}, epsilon="level")
    >>> sample(lambda rows, epsilon: 42.0, people, columns=["age"]).charges
    mappingproxy({0.1: 0.1, 1.0: 1.0})
    """
    query = algorithm_query(algorithm, table, columns, rows)
    if t == "best":
        raise QueryError(
            't="best" needs a predicted error, which an algorithm of your own has none of. '
            'Give "max", "mean", "min" or a number.'
        )
    ledger = table.own_ledger() if ledger is None else ledger
    if share is None and ledger is not None:
        raise QueryError(
            "with a ledger, say how much of everyone's level this may spend: share=0.1 is a tenth."
        )
    share = 1.0 if share is None else share
    refuse_arguments(query, "sample", share, t, table.neighbors)
    signed(ledger, actor, purpose)
    notes = table.check(query)
    planned = plan(table.spec(), query, "sample", share, t=t, neighbors=table.neighbors, notes=notes)
    return release(table, planned, ledger=ledger, actor=actor, purpose=purpose)


def algorithm_query(
    algorithm: Callable[..., Any], table: Table, columns: Iterable[str] | None, rows: str
) -> Algorithm:
    """The question that an algorithm is; refuses what cannot be asked of the table."""
    if not callable(algorithm):
        raise QueryError(f"algorithm= is a {type(algorithm).__name__}. Give a function of (rows, epsilon).")
    if rows not in tuple(ROW_FORMATS):  # which may be anything, also what cannot be hashed
        raise QueryError(f"rows={rows!r} is not a form that rows can have: {did_you_mean(rows, ROW_FORMATS)}")
    for package in ROW_FORMATS[rows]:
        if not find_spec(package):
            raise SourceError(
                f"rows={rows!r} needs {package}. Install accord[dataframes], or ask for rows='numpy'."
            )
    if not isinstance(table, Table):
        raise QueryError(f"a sample is taken of a table of accord.table, not of {type(table).__name__}.")
    if isinstance(columns, str) or not isinstance(columns, Iterable | None):
        raise QueryError(f"columns={columns!r} is not a list. Give columns=['age', …].")
    if columns is None:
        columns = [column for column in table.columns if column not in (table.level_column, table.user)]
    names = tuple(column_name(column) for column in columns)
    if not names:
        raise QueryError("the algorithm would get no column to see. Name some with columns=['age', …].")
    query = Algorithm(getattr(algorithm, "__name__", type(algorithm).__name__), names, rows, algorithm)
    table.check(query)
    for name in names:
        if rows == "numpy" and table.columns[name] == "other":
            raise QueryError(
                f"rows='numpy' is an array of numbers, and column {name!r} holds none by its type. "
                "Leave it out with columns=[…], or ask for rows='arrow'."
            )
    return query
