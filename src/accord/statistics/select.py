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

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from accord.errors import QueryError, did_you_mean
from accord.statistics.correlation import correlation
from accord.statistics.count import count
from accord.statistics.covariance import covariance
from accord.statistics.extremes import max as largest
from accord.statistics.extremes import min as smallest
from accord.statistics.mean import mean
from accord.statistics.part import MEMBERSHIP
from accord.statistics.proportion import proportion
from accord.statistics.quantile import median, quantile
from accord.statistics.query import Query
from accord.statistics.select_tree import (
    EXAMPLE,
    Names,
    Node,
    both,
    is_a,
    not_read,
    parsed,
    quoted,
    refuse_more,
    shown,
    table_of,
)
from accord.statistics.sum import rows
from accord.statistics.sum import sum as total
from accord.statistics.variance import std, variance
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
_OF_SAMPLES = {
    "Variance": "VAR_POP",
    "Stddev": "STDDEV_POP",
    "StddevSamp": "STDDEV_POP",
    "CovarSamp": "COVAR_POP",
}
"""Functions that divide by n − 1, and those that divide by n, as accord does."""
_OF_PEOPLE = {
    "Avg": "mean",
    "Median": "median",
    "PercentileCont": "quantile",
    "VariancePop": "variance",
    "StddevPop": "std",
    "Corr": "correlation",
    "CovarPop": "covariance",
}
"""Functions of rows, and what accord has of people."""


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

    @property
    def asked(self) -> Query | Workload:
        """As what it is planned: all of them together."""
        return self.queries[0] if len(self.queries) == 1 else workload(self.queries)


@dataclass(frozen=True)
class Given:
    """What a SELECT cannot say."""

    columns: Collection[str]
    """The table's."""
    bounds: Mapping[str, Any]
    keys: Mapping[str, Any]
    user: str | None = None
    max_rows: int | None = None
    membership: str = "private"
    at_most: int | None = None
    one_row_each: bool = False
    gap: Mapping[str, Any] = field(default_factory=dict)

    @property
    def several_rows_of(self) -> str | None:
        """The column of ids, where people may have several rows."""
        return None if self.one_row_each else self.user


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
    reader = _Reader(given, known)
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
    reader.refuse_several_groups(by)
    return Selected(table.name, tuple(names), by, tuple(queries))


class _Reader:
    """Reads the nodes of one SELECT."""

    def __init__(self, given: Given, names: Names) -> None:
        self._given, self._names = given, names

    def groups(self, select: Node) -> tuple[str, ...]:
        """The columns of GROUP BY, which may be named by their place in the SELECT."""
        clause = select.args.get("group")
        if clause is None and self._is_public:
            raise QueryError(
                "membership='public' is about the groups of GROUP BY, and there are none. Leave it out."
            )
        if clause is None:
            return ()
        refuse_more(clause, "expressions")
        places = {str(k): node.unalias() for k, node in enumerate(select.expressions, 1)}
        named = []
        for node in clause.expressions:
            is_place = is_a(node, "Literal") and not node.is_string and node.this in places
            named.append(self._names.column(places[node.this] if is_place else node))
        if len(set(named)) < len(named):
            raise QueryError("GROUP BY names a column twice. Name each once.")
        return tuple(named)

    def refuse_several_groups(self, by: tuple[str, ...]) -> None:
        """Refuse groups that rows of one person may be in several of, unless it is said how many count."""
        given = self._given
        if by and given.several_rows_of is not None and given.at_most is None and not self._is_public:
            raise QueryError(
                f"rows of one {given.user} may be of several groups, and SQL counts them in each. Give "
                "at_most=, in how many groups one person may be (the more, the noisier); or declare that "
                "everyone has one row: one_row_each=True."
            )

    def condition(self, node: Node) -> str:
        """A condition, in the grammar of `where=`."""
        self._refuse_public(node)
        return self._names.condition(node)

    def _refuse_public(self, node: Node) -> None:
        """Refuse to ask who meets a condition, or has a value, as if that were public."""
        if self._is_public:
            raise QueryError(
                f"membership='public' says that everyone may know who is in which group of GROUP BY, and not "
                f"whom {shown(node)} is true of. Leave membership= out, and both are private; or ask in "
                "Python, where membership= is of by= and where= together."
            )

    @property
    def _is_public(self) -> bool:
        return self._given.membership == "public"

    def refuse_bare(self, node: Node, by: tuple[str, ...]) -> None:
        """Refuse a column that is neither of a group nor within an aggregate."""
        column = self._names.column(node)
        if column not in by:
            raise QueryError(
                f"{column} by itself would show people's values. Ask for an aggregate of it, such as "
                f"AVG({column}), or name it in GROUP BY with keys= for its groups."
            )

    def question(self, node: Node, condition: str | None, by: tuple[str, ...]) -> Query:
        """The question that an aggregate asks."""
        if is_a(node, "Filter"):
            refuse_more(node, "this", "expression")
            return self.question(node.this, both(condition, self.condition(node.expression.this)), by)
        part = {"where": condition, **self._by(by)}
        if is_a(node, "Count", "CountIf"):
            return self._count(node, part)
        kind = type(node).__name__
        if kind in _OF_SAMPLES:
            raise QueryError(
                f"{shown(node)} divides by the number of people less one, and accord by their number. "
                f"Write {_OF_SAMPLES[kind]}."
            )
        if kind in _ASKED:
            return self._of_column(node, _ASKED[kind], part)
        if kind in _ASKED_OF_TWO:
            return self._of_two_columns(node, _ASKED_OF_TWO[kind], part)
        if is_a(node, "PercentileCont", "WithinGroup"):
            return self._quantile(node, part)
        raise not_read(node)

    def _by(self, by: tuple[str, ...]) -> dict[str, Any]:
        """Of which groups, as a question takes it."""
        given = self._given
        of_groups: dict[str, Any] = {"membership": given.membership} if self._is_public else {}
        if not by:
            return of_groups
        keys = {column: given.keys[column] for column in by if column in given.keys}
        if given.at_most is not None:
            of_groups["at_most"] = given.at_most
        if len(by) == 1:
            return {"by": by[0], "keys": keys.get(by[0]), **of_groups}
        return {"by": list(by), "keys": keys or None, **of_groups}

    def _count(self, node: Node, part: dict[str, Any]) -> Query:
        """Of rows; of people, where a row is one, or where their ids are counted."""
        refuse_more(node, "this", "big_int")
        counted, user = node.this, self._given.several_rows_of
        if counted is None:
            raise not_read(node)
        if is_a(node, "CountIf"):
            part = {**part, "where": both(part["where"], self.condition(counted))}
        elif is_a(counted, "Distinct"):
            columns = [self._names.column(column) for column in counted.expressions]
            if self._given.user is None or columns != [self._given.user]:
                raise QueryError(
                    f"{shown(node)} counts values, which differ by single people. Count people: COUNT(*), or "
                    "COUNT(DISTINCT id) where id is the column of user=."
                )
            return count(**part)
        elif not is_a(counted, "Star"):
            part = {**part, "where": both(part["where"], self._has_value(node))}
        if user is None:
            return count(**part)
        if self._given.max_rows is None:
            raise QueryError(
                f"{shown(node)} counts rows, of which one {user} may have any number. Give max_rows=, the "
                f"most that one person counts for; or count people: COUNT(DISTINCT {user})."
            )
        return rows(self._given.max_rows, **part)

    def _has_value(self, node: Node) -> str:
        """COUNT(x): the condition that somebody has a value of x."""
        column = self._names.column(node.this)
        self._refuse_public(node)
        if isinstance(self._given.columns, Mapping) and self._given.columns[column] == "untyped":
            raise QueryError(
                f"{shown(node)} counts whatever is written there, and {column} has no type of its own: what "
                "is no number would count, too. Ask for what you mean: COUNT(*), or COUNT_IF(…)."
            )
        return f"{quoted(column)} IS NOT NULL"

    def _of_column(self, node: Node, ask: Callable[..., Query], part: dict[str, Any]) -> Query:
        refuse_more(node, "this")
        if ask is mean and is_a(node.this, "Case"):
            return self._share(node, part)
        column = self._names.column(node.this)
        self._refuse_of_rows(node, column)
        gap = {"gap": self._given.gap[column]} if ask is mean and column in self._given.gap else {}
        return ask(column, self._given.bounds.get(column), **gap, **part)

    def _of_two_columns(self, node: Node, ask: Callable[..., Query], part: dict[str, Any]) -> Query:
        refuse_more(node, "this", "expression")
        columns = [self._names.column(column) for column in (node.this, node.expression)]
        self._refuse_of_rows(node, columns[0])
        bounds = {column: self._given.bounds[column] for column in columns if column in self._given.bounds}
        return ask(*columns, bounds or None, **part)

    def _share(self, node: Node, part: dict[str, Any]) -> Query:
        """AVG(CASE WHEN … THEN 1 ELSE 0 END): of those for whom the condition is not met, or unknown, 0."""
        refuse_more(node.this, "ifs", "default")
        arms, otherwise = node.this.args["ifs"], node.this.args.get("default")
        if len(arms) != 1 or not (_is_number(arms[0].args.get("true"), 1) and _is_number(otherwise, 0)):
            raise not_read(node)
        if self._given.several_rows_of is not None:
            raise QueryError(
                f"{shown(node)} is about rows, of which one {self._given.user} may have any number. Ask "
                "about people: accord.proportion(…), where each counts once."
            )
        return proportion(self._names.condition(arms[0].this), "none", **part)

    def _quantile(self, node: Node, part: dict[str, Any]) -> Query:
        """QUANTILE_CONT(x, p), or PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY x)."""
        refuse_more(node, "this", "expression")
        value, p = node.this, node.args.get("expression")
        if is_a(node, "WithinGroup"):
            ordered: Sequence[Node] = p.expressions if is_a(p, "Order") else []
            if not is_a(value, "PercentileCont") or len(ordered) != 1 or ordered[0].args.get("desc"):
                raise not_read(node)
            refuse_more(value, "this")
            value, p, node = ordered[0].this, value.this, value
        if not is_a(p, "Literal") or p.is_string:
            raise not_read(node)
        column = self._names.column(value)
        self._refuse_of_rows(node, column)
        return quantile(column, float(p.this), self._given.bounds.get(column), **part)

    def _refuse_of_rows(self, node: Node, column: str) -> None:
        """Refuse what is about rows in SQL, and about people in accord."""
        of_people = _OF_PEOPLE.get(type(node).__name__)
        if self._given.several_rows_of is not None and of_people is not None:
            other = f", or SUM({column}) and COUNT(*), and divide" if of_people == "mean" else ""
            raise QueryError(
                f"{shown(node)} is about rows, of which one {self._given.user} may have any number. Ask "
                f"about people: accord.{of_people}({column!r}, …), where each counts once{other}; or declare "
                "that everyone has one row: one_row_each=True."
            )


_ASKED: dict[str, Callable[..., Query]] = {
    "Avg": mean,
    "Sum": total,
    "Min": smallest,
    "Max": largest,
    "Median": median,
    "VariancePop": variance,
    "StddevPop": std,
}
_ASKED_OF_TWO: dict[str, Callable[..., Query]] = {"Corr": correlation, "CovarPop": covariance}


def _is_number(node: Node, number: int) -> bool:
    """Whether a node is this number, as 1 or 1.0."""
    return is_a(node, "Literal") and not node.is_string and node.this in (f"{number}", f"{number}.0")
