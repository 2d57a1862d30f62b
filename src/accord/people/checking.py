"""What a table can be asked, by names and kinds of its columns; and what must be taken for granted then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord import relation
from accord.errors import QueryError
from accord.statistics import Algorithm, Grid, Grouped, Indicator, OneOf, Query, Workload, where

if TYPE_CHECKING:
    from accord.people.table import Table


def checked(table: Table, query: Any) -> tuple[str, ...]:
    """Refuse what a table cannot answer. No value is read.

    Returns:
        What else must be taken for granted.
    """
    if isinstance(query, Workload):
        for part in query.queries:
            table.check(part)
        return ()  # each question has its own (`Plan.noted`)
    if not isinstance(query, Query):
        return ()  # `plan` and `release` say so
    table.reader.check(query)
    is_public = isinstance(query, Grouped) and query.part.public
    if table.user is not None and not is_public and not isinstance(query, Algorithm):
        table.reader.people(query)  # refuses what a person's rows cannot come to
    if table.user is None and query.needs_rows:
        raise QueryError(
            f"each row is one person here, so that {query.needs_rows} has no meaning. Leave it out, or "
            "open the table with user='…' (on the command line --user) if people have several rows."
        )
    _refuse_levels(table, query)
    if isinstance(query, Grouped):
        inner, *others = table.check(query.query)
        whose = inner if table.user is None else _about_rows(table, query)
        return whose, *_about_untyped(table, query.part.condition), *others
    return _notes(table, query)


def _notes(table: Table, query: Query) -> tuple[str, ...]:
    """What must be taken for granted of a question about everyone."""
    encoding = query.encoding
    counts_rows = isinstance(encoding, Grid) and encoding.per_person == "rows"
    if counts_rows and table.user is None:
        raise QueryError(
            "a number of rows needs to know whose they are. "
            "Open the table with user='…' (on the command line --user)."
        )
    whose = "each row is one person" if table.user is None else _about_rows(table, query)
    condition = encoding.condition if isinstance(encoding, Indicator) else None
    declared = () if table.knowing(query) is query else (_about_complete(table, query.columns),)
    notes = (*_about_untyped(table, condition), *declared, *table.about_levels)
    is_column = isinstance(encoding, Grid) and not counts_rows
    if is_column or (isinstance(encoding, OneOf) and encoding.edges):
        assert isinstance(encoding, Grid | OneOf)
        return whose, *_about_column(table, encoding), *notes
    return whose, *notes


def _about_column(table: Table, read: Grid | OneOf) -> tuple[str, ...]:
    """What is read in a column without a type, in a sentence."""
    if table.columns[read.column] != "untyped":
        return ()
    readable = table.reader.engine.dialect.readable(read.column, read.kind)
    return (f"{read.column} has no type of its own: what is not a {readable} is missing",)


def _about_untyped(table: Table, condition: where.Condition | None) -> Iterator[str]:
    """What a condition reads in columns without types, in sentences: what it cannot is missing."""
    for column, kind in dict.fromkeys(where.reads_as(condition) if condition else ()):
        if table.columns[column] == "untyped":
            readable = table.reader.engine.dialect.readable(column, kind)
            yield f"{column} has no type of its own: in the condition what is not a {readable} is missing"


def _about_complete(table: Table, columns: tuple[str, ...]) -> str:
    """Who declares that no value of these columns is missing, in a sentence."""
    are = f"{', '.join(columns)} {'is' if len(columns) == 1 else 'are'}"
    if table.description is None or table.reader.engine.complete.issuperset(columns):
        return f"the table declares that no value is missing: {are} NOT NULL there"
    return f"{Path(table.description.file).name} declares that no value is missing: {', '.join(columns)}"


def _about_rows(table: Table, query: Query) -> str:
    return f"a person is whoever has the same value in the column {table.user}, {query.rows_come_to}"


def _refuse_levels(table: Table, query: Query) -> None:
    if not relation.named(table.neighbors).levels_are_public:
        return  # a part of the record like any other
    if table.level_column in query.columns:
        raise QueryError(
            f"column {table.level_column!r} holds the levels, which are public "
            "and decide everyone's weight. Look at spec() for how many have which."
        )
