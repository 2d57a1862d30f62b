"""Questions about a part of the people, or about several parts at once: `where=` and `by=` with `keys=`.

Who is in which part is private, unless it is said to be public. Where it is private, somebody's change may
move them from one part to another or out of all; so everyone is charged, member or not. A change is the same
as leaving one part and coming into another, each of which an add-remove answer at charge c bears with a loss
of c: answers that prove add-remove, at half the charge, bear both (`Plan.times` is 2). Under add-remove
itself, somebody who comes or goes does so in one part, and the whole charge is theirs.

Whoever has a value where missing ones are left out is such a part, too, and never a public one.

Somebody whose rows are of several keys is in the most frequent of them (engines/categories.py). With
`at_most=k` it is in up to k of them: a change is leaving k parts and coming into k others, so that
`Plan.times` is 2k, and k under add-remove. Where they are is a function of their own rows, and of nobody
else's; whoever has no value in one of them is not in that one.

With `rest=` whoever has a value in the column that is none of the keys is in one more group (NULL is no
value: outside of all). It is the last key, and a group like the others: no two of them have a row in common.
So a person may change from a key to the rest, and that is leaving one part and coming into another, as from a
key to a key; rows of several undeclared values are rows of one group, as frequent as all of them together.

With several columns, by=["ward", "sex"], a group is a combination of one key of each, and a row that has no
declared key in one of the columns is in none. The combinations part the rows as the keys of one column do, so
that nothing else changes: a person is in their most frequent combination, `at_most` counts combinations, and
what is charged does not depend on how many columns, or groups, there are.

With `where=` alone, where only missing values are left out, or with one key, there is one part, and everyone
stays under replace: a change is one of value, or coming in, or going out. Some questions need no halves then:

    count               `where=` is its condition, and no part; of one group it is that of add-remove, where
                        somebody is 1 or 0 (count.py)
    sum, rows           who is outside adds 0 (sum.py)
    mean                Σc(x − mid) and Σc over the members, together, have the sensitivity c (mean.py)
    quantile, min, max  scores move by at most c (ranks.py)
    regression          coming in moves the sums hardly more than a change of value does (moments.py)

(Where a group may be left out of the answer, what tells its size is the form that proves add-remove.)

Of a count nothing can change in a group but that somebody comes in or goes out. So with m groups, and a
person in up to k of them, it moves in min(2k, m) of them, and that is `Plan.times`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeAlias, cast, overload

from accord.errors import QueryError
from accord.relation import Relation, named
from accord.statistics import where as grammar
from accord.statistics.declared import left_to_the_table
from accord.statistics.encoding import Codes, OneOf
from accord.statistics.gap import GapScale, with_gap
from accord.statistics.keys import (
    By,
    Keys,
    RestLabels,
    read_at_most,
    read_columns,
    read_keys_of,
    refuse_too_many,
    with_rest,
)
from accord.statistics.part import MEMBERSHIP, Part
from accord.statistics.query import A, Query
from accord.statistics.target_sums import Counted

if TYPE_CHECKING:
    from accord.statistics.encoding import Encoding
    from accord.statistics.target import Target

MOST_SHOWN = 50
"""Of more groups, those that may be empty are left out of an answer, unless it is said otherwise."""
MOST_FREQUENT = "each in their most frequent one"
TIES = "of equally frequent ones a public hash decides"
Rows: TypeAlias = list[dict[str, Any]]
P = ParamSpec("P")


class AskedByGroup(Protocol[P, A]):
    """A question's constructor, for type checkers: with `by` there is a row for each group."""

    @overload
    def __call__(self, *args: Any, by: str | Iterable[str], **options: Any) -> Query[Rows]: ...

    @overload
    def __call__(self, *args: Any, by: str | Iterable[str] | None, **options: Any) -> Query[Any]: ...

    @overload
    def __call__(self, *args: P.args, **options: P.kwargs) -> Query[A]: ...


def asked_by_group(constructor: Callable[P, Query[A]]) -> AskedByGroup[P, A]:
    """The constructor, of which a table may say what is left out (declared.py)."""
    return cast(AskedByGroup[P, A], left_to_the_table(constructor))


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
        return max(1, len(self.part.groups))

    def describe(self) -> dict[str, Any]:
        return {**self.query.describe(), **self.part.describe()}

    @property
    def excludes_missing(self) -> bool:
        return self.query.excludes_missing

    @property
    def gap(self) -> Fraction | None:
        return self.query.gap

    @property
    def about_everyone(self) -> bool:
        return self.query.about_everyone

    @property
    def gap_scale(self) -> GapScale | None:
        return self.query.gap_scale

    def with_all_values(self, columns: Collection[str] | None = None) -> Grouped | None:
        query = self.query.with_all_values(columns)
        return None if query is None else replace(self, query=query)

    def assumptions(self) -> list[str]:
        return [*self.query.assumptions(), *self.part_assumptions()]

    def part_assumptions(self, chosen_first: bool = False) -> list[str]:
        """What is taken for granted about who is in which part.

        `chosen_first`: the largest groups are chosen before they are counted.
        """
        keys = [f"the {self.part.listed} were declared, not taken from the data"] if self.part.by else []
        keys += [self.part.about_rest] if self.part.about_rest else []
        if self.part.public:
            charged = "public, as declared; everyone is charged for their own group only"
        elif self.part.by:
            charged = (
                "private: whoever is read is charged, member or not; "
                f"errors are predicted for {self.groups} groups of the same size"
            )
        else:
            charged = (
                "private: whoever is read is charged, member or not; "
                "errors are predicted as if everyone were a member"
            )
        most = self.part.at_most
        which = "those that are shown" if chosen_first else "all of them"
        several = f"a person may be in up to {most} of the groups, and is charged for {which}"
        shown = [self.suppression(chosen_first)] if self.part.suppress else []
        if self.part.largest:
            shown += [self.chosen_first if chosen_first else self.choice_of_largest]
        return [f"who is in which group is {charged}", *keys, *([several] if most > 1 else []), *shown]

    def suppression(self, chosen_first: bool) -> str:
        """Which groups are shown, where some are left out."""
        over_all = f"over all {self.groups:,} groups; intervals hold for all of them together"
        return (
            "shown are the groups whose noisy size is larger than noise makes that of an empty one, but for "
            f"5 % {'over those that are chosen' if chosen_first else over_all}"
        )

    @property
    def choice_of_largest(self) -> str:
        """That some groups are shown for their size, and what that does."""
        return (
            f"shown are the {self.part.largest:,} of {self.groups:,} groups with the largest noisy sizes, "
            "which lean upward for it; intervals hold for all groups together"
        )

    @property
    def chosen_first(self) -> str:
        """The same, of groups that are chosen first and counted then."""
        return (
            f"shown are {self.part.largest:,} of {self.groups:,} groups, chosen by their size with a part of "
            "everyone's charge and counted with the rest of it; intervals hold for them together"
        )

    @property
    def rows_come_to(self) -> str:
        if not self._is_chosen:
            return self.query.rows_come_to
        if self.part.at_most == 1:
            return f"is in their most frequent group, {self.query.rows_come_to}; {TIES}"
        return (
            f"is in their {self.part.at_most} most frequent groups, {self.query.rows_come_to} in each; {TIES}"
        )

    @property
    def chosen(self) -> str:
        if not self._is_chosen or self.part.at_most > 1:  # the label says how many
            return "" if self._is_chosen else self.query.chosen
        return MOST_FREQUENT

    @property
    def needs_rows(self) -> str:
        return f"at_most={self.part.at_most}" if self.part.at_most > 1 else self.query.needs_rows

    @property
    def _is_chosen(self) -> bool:
        """Whether somebody with rows in several groups is in some of them."""
        return bool(self.part.by) and not self.part.public

    def about_bias(self, kappa: float) -> str:
        return self.query.about_bias(kappa)

    def under(self, relation: Relation, about_members: bool = False) -> Target | None:
        return target_and_moves(self, relation)[0]


def target_and_moves(query: Query, relation: Relation) -> tuple[Target, int]:
    """What a mechanism answers, and in how many of its answers a person may change something.

    They are charged for each. See the module's docstring for why.
    """
    part, about_each = (query.part, query.query) if isinstance(query, Grouped) else (None, query)
    if part is None and not query.excludes_missing:
        target, moves = query.under(relation), 1
    elif members := _of_members(about_each, part, relation):
        target, moves = members, 1
    else:
        target = about_each.under(named(relation.group_answer))
        moves = relation.group_moves * (part.at_most if part else 1)
        if isinstance(target, Counted):
            moves = min(moves, number_of_parts(part))
    assert target is not None
    return target, moves


def number_of_parts(part: Part | None) -> int:
    """How many parts there are."""
    return max(1, len(part.groups)) if part else 1


def _of_members(query: Query, part: Part | None, relation: Relation) -> Target | None:
    """The form that bears any change in the one part that there is at one charge; None: there is none."""
    if not relation.people_are_public or number_of_parts(part) > 1:
        return None
    if part and part.suppress:  # sizes are told by the answers that prove add-remove
        return None
    return query.under(relation, True)


def most_parts(query: Query) -> int:
    """Of how many parts or cells of a question one person may be."""
    if isinstance(query, Grouped) and query.part.by:
        return query.part.at_most
    return query.encoding.at_most if isinstance(query.encoding, OneOf) else 1


def part_of(
    query: Query,
    where: str | None,
    by: By,
    keys: Keys,
    membership: str,
    at_most: int = 1,
    suppress: bool | None = None,
    rest: RestLabels = None,
    gap: Any = None,
    about: Any = None,
) -> Query:
    """The question about a part of the people, if there is one; with the gap that is declared."""
    query = with_gap(query, gap, about)
    if not (suppress is None or isinstance(suppress, bool)):
        raise QueryError(
            f"suppress={suppress!r} is not True or False. True leaves out groups that may be empty; without "
            f"it that is so above {MOST_SHOWN} groups."
        )
    for name, given in (("suppress", suppress), ("rest", rest)):
        if by is None and given is not None:
            raise QueryError(f"{name}= is about groups. Add by= with their column, or leave it out.")
    if membership not in MEMBERSHIP:
        raise QueryError(
            f"membership={membership!r} is not offered. It is 'private' (who is in which group is a secret) "
            "or 'public' (everyone may know)."
        )
    if by is None and at_most != 1:
        raise QueryError(
            f"at_most={at_most!r} says in how many groups or categories one person may be. "
            "Add by= with the column of the groups, or leave it out."
        )
    if where is None and by is None:
        if keys is not None or membership != "private":
            raise QueryError(
                "keys= and membership= are about groups. Add by= with the column of the groups, or where=."
            )
        return query
    if by is not None and keys is None:
        raise QueryError(
            f"by={by!r} needs keys=, the groups to answer about: declared, "
            "because groups taken from the data would tell who is there."
        )
    if by is None and keys is not None:
        raise QueryError("keys= are the groups of a column. Add by= with its name.")
    condition = None if where is None else grammar.parse(where)
    columns = () if by is None else read_columns(by)
    of_columns = () if keys is None else with_rest(columns, read_keys_of(columns, keys), rest)
    refuse_too_many(of_columns)
    groups = prod(map(len, of_columns))
    is_public = membership == "public"
    most = 1 if by is None else read_at_most(at_most, groups, "groups")
    if most > 1 and is_public:
        raise QueryError(
            f"at_most={most} is for groups of which it is private who is in which: nobody is in several "
            "public groups. Leave at_most=, or membership='public', out."
        )
    if most > 1 and isinstance(query.encoding, OneOf) and query.encoding.categories:
        raise QueryError(
            f"at_most={most} could be of the categories or of the groups. "
            "Leave by= out, and ask about each group with where=; or leave at_most= out."
        )
    left_out = _suppresses(query, suppress, groups, is_public)
    return Grouped(query, Part(where, condition, columns, of_columns, is_public, most, left_out))


def _suppresses(query: Query, suppress: bool | None, groups: int, is_public: bool) -> bool:
    """Whether groups that may be empty are left out."""
    tells_sizes = not isinstance(query.encoding, Codes)
    if suppress and is_public:
        raise QueryError(
            "suppress=True is for private groups: of public ones everyone may know who is there. "
            "Leave it out, or declare fewer keys."
        )
    if suppress and not tells_sizes:
        raise QueryError(
            f"suppress=True goes by how many people a group seems to have, which a {query.statistic} does "
            "not tell. Leave it out, or ask for a count first."
        )
    return groups > MOST_SHOWN and tells_sizes and not is_public if suppress is None else suppress
