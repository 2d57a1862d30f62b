"""Questions about a part of the people, or about several parts at once: `where=` and `by=` with `keys=`.

Who is in which part is private, unless it is said to be public. Then somebody's change may move them from one
part to another or out of all; so everyone is charged, member or not. A change is the same as leaving one part
and coming into another, each of which an add-remove answer at charge c bears with a loss of c: answers that
prove add-remove, at half the charge, bear both (`Plan.times` is 2). Under add-remove itself, somebody who
comes or goes does so in one part, and the whole charge is theirs.

    sum, count, rows with `where=` alone need no halves: who is outside adds 0, and everyone stays (replace):
    sum.py. A mean with `where=` alone releases Σc(x − mid) and Σc over the members, together of sensitivity
    c: mean.py. A quantile with `where=` alone chooses by scores that move by at most c (replace):
    quantile.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from accord.errors import QueryError
from accord.relation import Relation, named
from accord.statistics import where as grammar
from accord.statistics.query import Query, column_name, exact

if TYPE_CHECKING:
    from accord.statistics.encoding import Encoding
    from accord.statistics.target import Target

MEMBERSHIP = ("private", "public")
_OWN = ("value", "rmse", "few")
"""What stands in a row of the answer beside the group's key."""


@dataclass(frozen=True)
class Part:
    """Which rows a question is about."""

    where: str | None
    condition: grammar.Condition | None
    by: str | None
    keys: tuple[Any, ...]
    public: bool

    @property
    def columns(self) -> tuple[str, ...]:
        return (*(grammar.columns(self.condition) if self.condition else ()), *([self.by] if self.by else []))

    @property
    def label(self) -> str:
        return (f" where {self.where}" if self.where else "") + (f" by {self.by}" if self.by else "")

    def name(self, key: Any) -> str:
        """One of the groups, in words."""
        return " ".join(
            ([f"{self.by} = {key!r}"] if self.by else []) + ([f"where {self.where}"] if self.where else [])
        )

    def describe(self) -> dict[str, Any]:
        return {
            **({"where": self.where} if self.where else {}),
            **({"by": self.by, "keys": list(self.keys)} if self.by else {}),
            "membership": MEMBERSHIP[self.public],
        }


@dataclass(frozen=True)
class Grouped(Query):
    """A question about parts of the people; `query` is the one about each."""

    query: Query
    part: Part

    @property
    def statistic(self) -> str:  # type: ignore[override]
        return self.query.statistic

    @property
    def unit(self) -> str:  # type: ignore[override]
        return self.query.unit

    @property
    def label(self) -> str:
        return self.query.label + self.part.label

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.query.columns, *self.part.columns)))

    @property
    def encoding(self) -> Encoding | None:
        return self.query.encoding

    @property
    def groups(self) -> int:
        return max(1, len(self.part.keys))

    def describe(self) -> dict[str, Any]:
        if isinstance(self.query, Grouped):  # public groups, and in each of them who has a value
            return {**self.query.query.describe(), "missing": "exclude", **self.part.describe()}
        return {**self.query.describe(), **self.part.describe()}

    def assumptions(self) -> list[str]:
        return [*self.query.assumptions(), *self.part_assumptions()]

    def part_assumptions(self) -> list[str]:
        """What is taken for granted about who is in which part."""
        if self.part.public:
            said = (
                "who is in which group is public, as declared; everyone is charged for their own group only"
            )
        else:
            said = "who is in which group is private: everyone is charged, member or not"
            said += (
                f"; errors are predicted for {self.groups} groups of the same size"
                if self.part.by
                else "; errors are predicted as if everyone were a member"
            )
        return [
            said,
            *([f"the {self.groups} keys were declared, not taken from the data"] if self.part.by else []),
        ]

    @property
    def rows_come_to(self) -> str:
        return self.query.rows_come_to

    def about_bias(self, kappa: float) -> str:
        return self.query.about_bias(kappa)

    def under(self, relation: Relation, about_members: bool = False) -> Target | None:
        return answered(self, relation)[0]


def answered(query: Query, relation: Relation) -> tuple[Target, int]:
    """What a mechanism answers, and in how many answers a person may change something: they are charged for
    each.

    See the module's docstring for why.
    """
    if not isinstance(query, Grouped):
        target, moves = query.under(relation), 1
    elif (
        relation.people_are_public and query.part.by is None and (direct := query.query.under(relation, True))
    ):
        target, moves = direct, 1
    else:
        target, moves = query.query.under(named(relation.group_answer)), relation.group_moves
    assert target is not None
    return target, moves


def part_of(
    query: Query,
    where: str | None,
    by: str | None,
    keys: Iterable[Any] | None,
    membership: str,
    has_value: grammar.HasValue | None = None,
) -> Query:
    """The question about a part of the people, if there is one. `has_value`: only those who have a value.

    Who has one is never public, whatever is said about the groups: then it is a private part of each of them.
    """
    if membership not in MEMBERSHIP:
        raise QueryError(
            f"membership={membership!r} is not offered. It is 'private' (who is in which group is a secret) "
            "or 'public' (everyone may know)."
        )
    if where is None and by is None:
        if keys is not None or membership != "private":
            raise QueryError(
                "keys= and membership= are about groups. Add by= with the column of the groups, or where=."
            )
        return query if has_value is None else _with_value(query, has_value)
    if (by is None) != (keys is None):
        raise QueryError(
            f"by={by!r} needs keys=, the groups to answer about: declared, because groups taken from the "
            "data would tell who is there."
            if keys is None
            else "keys= are the groups of a column. Add by= with its name."
        )
    conditions = [] if where is None else [grammar.parse(where)]
    told = [] if where is None else [where]
    is_public = membership == "public"
    if has_value is not None and is_public:
        query = _with_value(query, has_value)
    elif has_value is not None:
        conditions.append(has_value)
        told.append(_not_missing(has_value))
    condition = (
        None
        if not conditions
        else conditions[0]
        if len(conditions) == 1
        else grammar.Both("AND", tuple(conditions))
    )
    given = () if keys is None else keys_of(keys)
    named = None if by is None else column_name(by)
    if named in _OWN:
        raise QueryError(
            f"by={named!r} is what the rows of the answer call something of their own ({', '.join(_OWN)}). "
            "Rename the column."
        )
    return Grouped(query, Part(" and ".join(told) or None, condition, named, given, is_public))


def _with_value(query: Query, has_value: grammar.HasValue) -> Grouped:
    """The question about those who have a value; who does is private."""
    return Grouped(query, Part(_not_missing(has_value), has_value, None, (), False))


def _not_missing(has_value: grammar.HasValue) -> str:
    return f"{has_value.column} is not missing"


def keys_of(given: Any) -> tuple[Any, ...]:
    """The declared groups of by=."""
    keys = tuple(label_of(c) for c in listed(given, "keys"))
    if len({bool if isinstance(c, bool) else str if isinstance(c, str) else float for c in keys}) > 1:
        raise QueryError("keys= are of several kinds. Give only texts, only numbers, or only True and False.")
    if not keys or len(set(keys)) < len(keys):
        raise QueryError(
            f"keys= has {len(keys)} groups, {len(set(keys))} of them different. Give at least one, each once."
        )
    return keys


def label_of(given: Any) -> Any:
    """A category: a text, a number or a truth value, as Python has them."""
    label = given.item() if hasattr(given, "item") else given
    if not isinstance(label, (str, bool)):
        number = exact(label, "a category")
        if float(number) != number and isinstance(label, int):
            raise QueryError(
                f"the category {label} has more digits than numbers are compared by (2⁵³ is the end). "
                "Compare it as text."
            )
    return label


def listed(given: Any, what: str) -> tuple[Any, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise QueryError(f"{what}={given!r} is not a list. Give {what}=[…].")
    return tuple(given)
