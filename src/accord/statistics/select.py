"""SELECT: questions that are asked in SQL.

    SELECT ward, AVG(stay), COUNT(*) AS patients FROM people WHERE age >= 65 GROUP BY ward

A SELECT is parsed into a tree (by sqlglot), and every node of the tree is either known here, and becomes a
part of a question of this folder, or is refused. No SQL of a user reaches an engine: `where=` is written
again in its own grammar (where.py), columns are names, and literals are values.

What SQL says of rows must be what accord says of people. Where each row is one person, it is. Where people
have several rows (`user=`):

    COUNT(*), COUNT(x)   rows, at most `max_rows` a person                          accord.rows
    COUNT(DISTINCT id)   people, if id is the column of ids                         accord.count
    SUM(x)               the sum of people's sums, each within bounds               accord.sum
    MIN(x), MAX(x)       of people's smallest and largest                           accord.min, accord.max
    AVG(x) and others    of rows, which accord does not have: refused, with what it has of people
    GROUP BY             somebody's rows may be of several groups: `at_most` must say how many count

Where everyone is declared to have one row (`one_row_each`), rows are people again. Should somebody have
several after all, they count once, as in questions about people: that is about the meaning, and nobody loses
more.

Groups of GROUP BY may be declared public. Conditions are not: who meets one, or has a value, stays private,
so that a SELECT with public groups has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accord.errors import QueryError, did_you_mean
from accord.statistics.part import MEMBERSHIP
from accord.statistics.query import Query
from accord.statistics.select_questions import Given, QuestionReader
from accord.statistics.select_tree import EXAMPLE, Names, Node, is_a, parsed, table_of
from accord.statistics.workload import Workload, workload

_CLAUSES = {
    "joins": "a join. Join the tables first, in the source; people must be told apart there",
    "with_": "WITH. Ask about the table itself",
    "having": "HAVING. Look at the answers, which are noisy, and leave out what you do not want",
    "order": "ORDER BY. Groups come in the order of keys=; sort the answers, which is free",
    "limit": "LIMIT. Every declared group is answered; leave out of the answers what you do not want",
    "offset": "OFFSET. Every declared group is answered",
    "distinct": "SELECT DISTINCT. Groups are declared: name their column in GROUP BY, and give keys=",
    "qualify": "QUALIFY. There are no windows",
}
"""Clauses that are not read, and what to do instead."""
ADDED = ("low", "high", "low percentile", "high percentile", "note")
"""What answers say about an aggregate, besides its value: "stay low" is the lower end of its interval."""


@dataclass(frozen=True)
class Selected:
    """What a SELECT asks: a question for each of its columns but those of the groups."""

    source: str
    """What it is asked of: the name, or the file, after FROM."""
    names: tuple[str, ...]
    """What the answers are called."""
    by: tuple[str, ...]
    """The columns of the groups."""
    queries: tuple[Query, ...]
    weights: tuple[float, ...] | None = None
    """How much the squared error of each counts; None: all the same."""

    @property
    def asked(self) -> Query | Workload:
        """As what it is planned: all of them together."""
        return self.queries[0] if len(self.queries) == 1 else workload(self.queries, self.weights)


def _refuse_unknown(given: Given) -> None:
    """Refuse bounds and keys of columns that there are none of, and words that mean nothing."""
    if given.membership not in MEMBERSHIP:
        raise QueryError(f"membership={given.membership!r} is not offered. It is 'private' or 'public'.")
    examples = {"bounds": '{"stay": (0, 60)}', "keys": '{"ward": ["A", "B"]}', "gap": '{"stay": 1.5}'}
    for argument, example in examples.items():
        of_columns = getattr(given, argument)
        if not isinstance(of_columns, Mapping):
            raise QueryError(f"{argument}= of a SELECT are given by column: {argument}={example}.")
        for column in of_columns:
            if column not in given.columns:
                known = did_you_mean(str(column), given.columns)
                raise QueryError(f"{argument}= has {column!r}, which is no column of the table: {known}")


def source_of(text: str) -> str:
    """What a SELECT is asked of: the name, or the file, after FROM.

    >>> source_of("SELECT COUNT(*) FROM 'people.parquet'")
    'people.parquet'
    """
    return str(table_of(parsed(text)).name)


def read_select(text: str, given: Given) -> Selected:
    """The questions of a SELECT.

    What is nested so deeply that reading it takes too many calls is refused.

    Raises:
        QueryError: it is not one SELECT of aggregates over one table, or says more than accord can answer.

    >>> given = Given(["stay", "age"], {"stay": (0, 60)}, {})
    >>> [query.label for query in read_select("SELECT AVG(stay) FROM people WHERE age >= 65", given).queries]
    ['mean of stay where age >= 65']
    """
    try:
        return _read(parsed(text), given)
    except RecursionError:
        raise QueryError("the SELECT is nested too deeply. Write it with fewer casts and signs.") from None


def _read(select: Node, given: Given) -> Selected:
    table = table_of(select)
    known = Names(given.columns, (table.name, table.alias_or_name))
    reader = QuestionReader(given, known)
    for name, value in select.args.items():
        if value and name not in ("expressions", "from_", "where", "group", "kind"):
            rule = _CLAUSES.get(name, f"{name.strip('_').upper()}. Leave it out")
            raise QueryError(f"a SELECT is asked here without {rule}.")
    _refuse_unknown(given)
    by = reader.groups(select)
    where = select.args.get("where")
    condition = None if where is None else reader.condition(where.this)
    names, queries = [], []
    for expression in select.expressions:
        inner = expression.unalias()
        if is_a(inner, "Column"):
            reader.refuse_bare(inner, by)
            continue
        queries.append(reader.question(inner, condition, by))
        names.append(expression.alias or expression.sql(dialect="duckdb"))
    if not queries:
        raise QueryError(f"this SELECT asks for no aggregate. Ask for one, {EXAMPLE}.")
    taken = (*by, *names)
    twice = [name for k, name in enumerate(taken) if name in taken[:k]]
    if twice:
        raise QueryError(
            f"two columns of the SELECT have one name, {twice[0]!r}. Give each its own: AVG(stay) AS stay."
        )
    for name in names:
        for of_name in (f"{name} {addition}" for addition in ADDED):
            if of_name in taken:
                raise QueryError(
                    f"{of_name!r} is what the answers call something about {name!r}. Give the one or the "
                    "other another name."
                )
    reader.refuse_several_groups(by)
    return Selected(table.name, tuple(names), by, tuple(queries), _weights(given.weights, names))


def _weights(given: Any, names: Sequence[str]) -> tuple[float, ...] | None:
    """How much each aggregate's error counts, in their order."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise QueryError("weights= of a SELECT are given by the name of an aggregate: weights={'n': 10}.")
    for name in given:
        if name not in names:
            known = did_you_mean(str(name), names)
            raise QueryError(f"weights= has {name!r}, which is no aggregate of the SELECT: {known}")
    if len(names) == 1:
        raise QueryError(
            "weights= divide what is spent among several aggregates, and the SELECT has one. Leave it out."
        )
    return tuple(given.get(name, 1.0) for name in names)
