"""The questions of a SELECT: which question of this folder each aggregate asks, of whom, in which groups.

What SQL says of rows must be what accord says of people: select.py says which is which. What cannot be asked
is refused with what to write instead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from accord.errors import QueryError
from accord.statistics.correlation import correlation
from accord.statistics.count import count
from accord.statistics.covariance import covariance
from accord.statistics.declared import Columns
from accord.statistics.extremes import max as largest
from accord.statistics.extremes import min as smallest
from accord.statistics.mean import mean
from accord.statistics.proportion import proportion
from accord.statistics.quantile import median, quantile
from accord.statistics.query import Query
from accord.statistics.select_tree import (
    Names,
    Node,
    both,
    is_a,
    is_aggregate,
    is_calculation,
    not_read,
    quoted,
    refuse_more,
    shown,
)
from accord.statistics.sum import rows
from accord.statistics.sum import sum as total
from accord.statistics.variance import std, variance

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
    suppress: bool | None = None
    """Whether groups that may be empty are left out; None: of more than 50."""
    weights: Mapping[str, float] | None = None
    """How much the squared error of an aggregate counts, by its name; 1, if it is not there."""
    declared: Columns = field(default_factory=dict)
    """What the table declares of its columns, which then need no bounds and keys."""
    gap: Mapping[str, Any] = field(default_factory=dict)

    @property
    def several_rows_of(self) -> str | None:
        """The column of ids, where people may have several rows."""
        return None if self.one_row_each else self.user


class QuestionReader:
    """Reads the groups, conditions and aggregates of one SELECT."""

    def __init__(self, given: Given, names: Names) -> None:
        self._given, self._names = given, names

    def groups(self, select: Node) -> tuple[str, ...]:
        """The columns of GROUP BY, which may be named by their place in the SELECT."""
        clause = select.args.get("group")
        if clause is None and self._given.suppress is not None:
            raise QueryError(
                "suppress= is about the groups of GROUP BY, and there are none. Leave it out (on the command "
                "line --suppress and --no-suppress)."
            )
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
        for column in named:
            if column not in self._given.keys and self._declared(column, "keys") is None:
                raise QueryError(
                    f"GROUP BY {column} needs its groups, declared: keys={{{column!r}: […]}}. Groups taken "
                    "from the data would tell who is there."
                )
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
        raise _calculated(node) if is_calculation(node) else not_read(node)

    def _declared(self, column: str, what: str) -> Any:
        """What the table declares of a column: "bounds" or "keys"."""
        of_column = self._given.declared.get(column)
        return None if of_column is None else getattr(of_column, what)

    def _bounds(self, node: Node, column: str) -> Any:
        """The bounds of a column of numbers or dates; None: the table declares them."""
        columns = self._given.columns
        kind = columns[column] if isinstance(columns, Mapping) else None
        if kind == "text":
            raise QueryError(
                f"column {column!r} holds text, and {shown(node)} needs numbers. Name another column; or "
                f"count: COUNT_IF({quoted(column)} = '…'), or COUNT(*) with GROUP BY {quoted(column)}."
            )
        if column in self._given.bounds or self._declared(column, "bounds") is not None:
            return self._given.bounds.get(column)
        raise QueryError(
            f"{shown(node)} needs bounds={{{column!r}: (low, high)}}, from public knowledge, never from the "
            "data; a table that is described in accord.toml may declare them."
        )

    def _by(self, by: tuple[str, ...]) -> dict[str, Any]:
        """Of which groups, as a question takes it."""
        given = self._given
        of_groups: dict[str, Any] = {"membership": given.membership} if self._is_public else {}
        if not by:
            return of_groups
        keys = {column: given.keys[column] for column in by if column in given.keys}
        if given.at_most is not None:
            of_groups["at_most"] = given.at_most
        if given.suppress is not None:
            of_groups["suppress"] = given.suppress
        if len(by) == 1:
            return {"by": by[0], "keys": keys.get(by[0]), **of_groups}
        return {"by": list(by), "keys": keys or None, **of_groups}

    def _count(self, node: Node, part: dict[str, Any]) -> Query:
        """Of rows; of people, where a row is one, or where their ids are counted."""
        refuse_more(node, "this", "big_int")
        counted = node.this
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
        elif is_a(counted, "Case"):
            raise _of_case(node)
        elif not is_a(counted, "Star"):
            part = {**part, "where": both(part["where"], self._has_value(node))}
        return self._counted(node, part)

    def _counted(self, node: Node, part: dict[str, Any]) -> Query:
        """How many rows there are: people, where a row is one."""
        user = self._given.several_rows_of
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
        if is_a(node.this, "Case"):
            return self._of_case(node, ask, part)
        column = self._names.column(node.this)
        self._refuse_of_rows(node, column)
        gap = {"gap": self._given.gap[column]} if ask is mean and column in self._given.gap else {}
        return ask(column, self._bounds(node, column), **gap, **part)

    def _of_two_columns(self, node: Node, ask: Callable[..., Query], part: dict[str, Any]) -> Query:
        refuse_more(node, "this", "expression")
        columns = [self._names.column(column) for column in (node.this, node.expression)]
        self._refuse_of_rows(node, columns[0])
        given = {column: self._bounds(node, column) for column in columns}
        bounds = {column: ends for column, ends in given.items() if ends is not None}
        return ask(*columns, bounds or None, **part)

    def _of_case(self, node: Node, ask: Callable[..., Query], part: dict[str, Any]) -> Query:
        """AVG(CASE WHEN … THEN 1 ELSE 0 END), and SUM of the same; NULL adds nothing to a sum.

        Where the condition is not met, or unknown, it is 0 in both.
        """
        refuse_more(node.this, "ifs", "default")
        arms, otherwise = node.this.args["ifs"], node.this.args.get("default")
        is_0 = _is_number(otherwise, 0) or (ask is total and (otherwise is None or is_a(otherwise, "Null")))
        if len(arms) != 1 or not (_is_number(arms[0].args.get("true"), 1) and is_0):
            raise _of_case(node)
        if ask is total:
            condition = both(part["where"], self.condition(arms[0].this))
            return self._counted(node, {**part, "where": condition})
        if ask is not mean:
            raise _of_case(node)
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
        return quantile(column, float(p.this), self._bounds(node, column), **part)

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


def _of_case(node: Node) -> QueryError:
    """What to write in the place of an aggregate of CASE."""
    case = node.this
    arms, value = case.args["ifs"], case.args["ifs"][0].args.get("true")
    condition = "…" if case.this is not None or len(arms) != 1 else shown(arms[0].this)
    count_if = f"COUNT_IF({condition})" if is_a(node, "Count", "Sum") else None
    of_column = None
    if is_a(value, "Column"):
        of_column = f"{node.key.upper()}({shown(value)}) FILTER (WHERE {condition})"
    share = f"AVG(CASE WHEN {condition} THEN 1 ELSE 0 END)" if is_a(node, "Avg") else None
    instead = of_column or count_if or share or "FILTER (WHERE …) after an aggregate of a column"
    whom = "is about those alone who meet the condition" if of_column else "says what is meant"
    return QueryError(f"{shown(node)} is not read here. Write {instead}, which {whom}.")


def _calculated(node: Node) -> QueryError:
    """What to do in the place of calculating with aggregates."""
    aggregates = dict.fromkeys(shown(part) for part in node.walk() if is_aggregate(part))
    if not aggregates:
        return not_read(node)
    named = dict(zip(aggregates, "abcdefghijklmnopqrstuvwxyz", strict=False))
    asked = ", ".join(f"{aggregate} AS {name}" for aggregate, name in named.items())
    first, *others = (f"answers[{name!r}]" for name in named.values())
    is_ratio = is_a(node, "Div") and len(named) == 2
    done = f"{first} / {others[0]}" if is_ratio else f"with {' and '.join([first, *others])}"
    return QueryError(
        f"{shown(node)} calculates with aggregates, which a SELECT here does not. Ask for {asked}, and "
        f"calculate in Python{':' if is_ratio else ''} {done}, which is free and keeps account of the errors."
    )


def _is_number(node: Node, number: int) -> bool:
    """Whether a node is this number, as 1 or 1.0."""
    return is_a(node, "Literal") and not node.is_string and node.this in (f"{number}", f"{number}.0")
