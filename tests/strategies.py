"""What the tests are tried on: random levels, tables, names, questions and histories."""

from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from math import inf, nan

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

import accord
from accord.people.summary import Summary

# --- levels -----------------------------------------------------------------------------------------------------------------

levels = st.one_of(
    st.integers(1_000, 5_000_000).map(lambda k: k / 1e6),
    st.sampled_from([0.01, 0.1, 1.0]),
    st.floats(1e-3, 20),
)
finite_specs = st.dictionaries(levels, st.integers(1, 3_000), min_size=1, max_size=6).map(
    accord.Spec.from_groups
)
specs = (
    st.dictionaries(
        st.one_of(levels, st.just(inf), st.just(0.0)), st.integers(1, 3_000), min_size=1, max_size=6
    )
    .map(accord.Spec.from_groups)
    .filter(lambda spec: spec.total > 0)
)
shares = st.sampled_from([1.0, 0.5, 0.1, 0.0371])

QUERIES = {
    "mean": accord.mean("x", bounds=(-3, 5), missing="none"),
    "mean with std": accord.mean("x", bounds=(-3, 5), std=0.7, missing="none"),
    "mean on a small grid": accord.mean("x", bounds=(0, 2), step=1, missing="none"),
    "sum": accord.sum("x", bounds=(-3, 5), missing="none"),
    "sum from above zero": accord.sum("x", bounds=(2, 4), step=0.5, missing="none"),
    "count": accord.count(where="x > 0"),
    "histogram of two cells": accord.histogram("x", edges=[0, 1, 2], missing="none"),
    "histogram of three cells": accord.histogram("x", edges=[0, 1, 2, 3], missing="none"),
    "histogram of categories": accord.histogram("x", categories=["a", "b"]),
}
RANKED = {
    "median": accord.median("x", bounds=(0, 3), step=1, missing="none"),
    "a quantile far out": accord.quantile("x", 0.9, bounds=(-1, 2), step=1, missing="none"),
    "two quantiles": accord.quantile("x", [0.25, 0.75], bounds=(0, 3), step=1, missing="none"),
    "min": accord.min("x", bounds=(0, 3), step=1, missing="none"),
    "max": accord.max("x", bounds=(0, 3), step=1, missing="none"),
}
additive_queries = st.sampled_from(sorted(QUERIES)).map(QUERIES.get)
queries = st.sampled_from(sorted(QUERIES | RANKED)).map((QUERIES | RANKED).get)


def summary_of(spec, query, integers, by_cell=False):
    """The Summary of people given as rows of integers, in the order of the Spec's levels; None: not there.

    A row has one integer for each cell of a histogram, else the person's own cell or point. Of numbers, the
    columns are how many people there are, the sum of their cells, and of a variance that of the squares.
    `by_cell`: how many people are at each cell, as `sample` needs it.
    """
    level_of = np.repeat(np.arange(spec.micro.size), spec.people)
    there = [i for i, row in enumerate(integers) if row is not None]
    level = level_of[there]
    histogram = query.statistic == "histogram"
    rows = np.asarray([integers[i] for i in there], dtype=object).reshape(
        len(there), len(query.cells) if histogram else 1
    )
    if query.unit == "percentile points":
        points = rows[:, 0].astype(np.int64)
        return Summary(spec.people, query.points, level, points, np.ones(len(there), dtype=np.int64))
    if by_cell:
        groups = {}
        for j, row in zip(level.tolist(), rows.tolist(), strict=True):
            cell = row.index(1) if histogram and 1 in row else None if histogram else row[0]
            if cell is not None:
                groups[j, cell] = groups.get((j, cell), 0) + 1
        keys = np.array(sorted(groups), dtype=np.int64).reshape(-1, 2)
        people = np.array([groups[key] for key in sorted(groups)], dtype=np.int64)
        return Summary(
            spec.people,
            len(query.cells) if histogram else last_cell(query) + 1,
            keys[:, 0],
            keys[:, 1],
            people,
        )
    if not histogram:
        rows = np.concatenate(
            [rows**power for power in range(1 + getattr(query.encoding, "powers", 1))], axis=1
        )
    columns = rows.shape[1]
    entries = [(j, k, int(sum(rows[level == j, k]))) for j in range(spec.micro.size) for k in range(columns)]
    level, output, amount = zip(*entries, strict=True)
    return Summary(spec.people, columns, np.array(level), np.array(output), np.array(amount, dtype=object))


def changed(plan, **parts):
    """A plan of one question with something else in the place of these parts of its choice."""
    return replace(plan, choice=replace(plan.choice, **parts))


def last_cell(query):
    """The largest integer that one person can have: of a count, 1."""
    return 1 if query.statistic == "count" else query.cells


def person_values(query):
    """Every vector of integers that one person can have (the ends, for a long grid)."""
    if query.unit == "percentile points":
        return [(k,) for k in range(query.points)]
    if query.statistic == "histogram":
        count = len(query.cells)
        cells = [tuple(int(k == j) for k in range(count)) for j in range(count)]
        return cells if query.missing is not None else [*cells, (0,) * count]
    last = last_cell(query)
    return [(q,) for q in sorted({0, 1, last // 2, last})]


# --- names ------------------------------------------------------------------------------------------------------------------

HOSTILE = (
    'x"; DROP TABLE people; --', "'", '"', '""', "`", "\\", ";", "--", "/*", "*", "a.b", "$1", "?", "%s", "{}", "{0}", "${x}", "#",
    "[b]", "[/b]", "[red]", "$\\frac$", "a\nb", "\n", "\t", " ", " x ", "\x1b[31m", "\u202e", "\u00e9", "e\u0301", "ß", "İ", "🦆", "x" * 3_000, ",", "=", "|", "..",
    "select", "FROM", "null", "TRUE", "and", "not", "rowid", "all", "exclude", "timestamp", "inf", "nan", "0", "1e3", "-1",
    "level", "LEVEL", "levels", "people", "person", "Person", "cell", "cells", "total", "part", "PART", "code", "codes", "coded", "chance", "extra", "blurred",
    "source", "lent", "kept", "several", "word", "high", "low", "y", "x0", "m0", "c0", "line", "column0", "columns", "schema", "key", "rows", "middle",
    "__accord__", "accord_level", "__accord_source", "__duckdb_internal", "E_1", "e_1", "x_1", "C0",
    "__accord_level__", "__ACCORD_PERSON__", "__accord_sum_0__", "g_user", "G_LEVEL", "g_part", "g_sum0", "g_count0", "r_person", "R_remaining",
    "k_level", "k_chance", "lent_word", "lent_level", "lent_chance", "lent_person", "lent_remaining", "accord_source", "accord_given", "accord_lent_0",
    "c1", "c2", "C3", "given", "v0", "words", "chances",
)  # fmt: skip
"""Names of columns that are just names: of SQL, of markup, of the words that accord's own SQL uses."""
PRINTABLE = tuple(
    {n.lower(): n for n in HOSTILE if n.isprintable() and n.strip() == n and not n.startswith("-")}.values()
)
"""Those of them that can be typed."""
UNUSABLE = (
    "",
    "\0",
    "a\0b",
    "\ud800",
)
"""Names that no table can have."""
letters = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
names = st.one_of(*[st.sampled_from(HOSTILE)] * 3, st.text(letters, min_size=1, max_size=5))


def different(count):
    """So many names, no two of which a database would take for one."""
    return st.lists(names, min_size=count, max_size=count, unique_by=lambda name: name.lower())


# --- tables -----------------------------------------------------------------------------------------------------------------

PLAIN = {role: role for role in ("x", "z", "n", "text", "flag", "day", "moment", "level", "tier", "who")}
"""Every column of a table, under the name of its role."""
TIERS = {"strict": 0.05, "open": 2.0, "public": inf, "never": 0, "[/b]": 0.3, "it's": 1.0}
TEXTS = ("a", "b", "A", "a ", "", "it's", '"', "[/b]", "é", "north", "nan", "2020-01-01", "1")
DAYS = (date(2020, 1, 1), date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31))
MOMENTS = tuple(
    datetime.combine(day, datetime.min.time()) + timedelta(hours=7, microseconds=1) for day in DAYS
)
odd_numbers = st.sampled_from(
    [None, nan, inf, -inf, 1e308, -1e308, 1e300, -1e300, 5e-324, -0.0, 2.0**60, -(2.0**41), 1e17]
)
numbers = st.one_of(st.integers(-12, 20).map(lambda k: k / 4), odd_numbers)
wishes = st.one_of(st.sampled_from([0.1, 0.5, 1.0, 2.0, 20.0, inf, 0.0, 1e-9]), levels)
no_wishes = st.sampled_from([None, nan, -1.0, 1e7, -inf])
"""What stands in a column of levels and is none."""


def _perhaps(values):
    return st.one_of(st.none(), st.sampled_from(values))


def rows_of_people(wish=wishes):
    """A row of a table: its columns by their roles."""
    return st.fixed_dictionaries(
        {
            "x": numbers,
            "z": st.one_of(numbers, st.floats()),
            "n": st.one_of(st.none(), st.integers(-3, 9), st.sampled_from([2**53 + 1, -(2**63), 2**63 - 1])),
            "text": _perhaps(TEXTS),
            "flag": _perhaps([True, False]),
            "day": _perhaps(DAYS),
            "moment": _perhaps(MOMENTS),
            "level": wish,
            "tier": st.sampled_from(sorted(TIERS)),
            "who": st.sampled_from(["ann", "bob", "cy ", "d'e", "f", "7", "7.0", "ḍ̇"]),
        }
    )


TYPES = {
    "x": pa.float64(), "z": pa.float64(), "n": pa.int64(), "text": pa.string(), "flag": pa.bool_(), "day": pa.date32(), "moment": pa.timestamp("us"),
    "level": pa.float64(), "tier": pa.string(), "who": pa.string(),
}  # fmt: skip


def tables(wish=wishes, times=(1, 1, 40), max_size=8):
    """Rows of a table, some of them many times over: so that there is something to answer."""
    return st.builds(
        lambda rows, k: rows * k,
        st.lists(rows_of_people(wish), min_size=1, max_size=max_size),
        st.sampled_from(times),
    )


def arrow(rows, named=PLAIN):
    """The table of these rows, with other names of columns."""
    return pa.table({named[role]: pa.array([row[role] for row in rows], TYPES[role]) for role in TYPES})


ways_in = st.sampled_from(
    [
        {"epsilon": "level"},
        {"epsilon": "level", "default": 0.5},
        {"epsilon": "tier", "tiers": TIERS},
        {"epsilon": 1.0},
    ]
)
"""How a table is opened: `epsilon` is a role."""


def opened(source, way, user, named=PLAIN, **more):
    level = way["epsilon"]
    epsilon = named[level] if isinstance(level, str) else level
    return accord.table(source, **{**way, "epsilon": epsilon}, user=named["who"] if user else None, **more)


# --- questions --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """A question about columns by their roles; `of` makes it one about a table's own names."""

    statistic: str
    columns: tuple[str, ...] = ()
    options: dict = field(default_factory=dict)
    where: tuple[str, ...] | None = None
    """A condition: text and roles in turn."""
    by: str | None = None

    def of(self, named=PLAIN):
        how = {}
        if self.where is not None:
            how["where"] = "".join(
                part if k % 2 == 0 else quoted(named[part]) for k, part in enumerate(self.where)
            )
        if self.by is not None:
            how["by"] = named[self.by]
        columns = [named[role] for role in self.columns]
        if self.statistic == "regression":
            target, *features = columns
            ends, kinds = (
                {named[role]: v for role, v in self.options[k].items()} for k in ("bounds", "categories")
            )
            rest = {k: v for k, v in self.options.items() if k not in ("bounds", "categories")}
            return accord.regression(target, features, bounds=ends, categories=kinds, **rest, **how)
        return getattr(accord, self.statistic)(*columns, **self.options, **how)


def quoted(name):
    """A column in a condition."""
    return '"' + name.replace('"', '""') + '"'


_numeric = st.sampled_from(["x", "z", "n", "flag"])
_spans = st.sampled_from([(0, 2), (-3, 5), (0.5, 4.25), (-1e6, 1e6), (0, 1e-6), (1, 2)])
_exclude = st.sampled_from([{}, {}, {"missing": "exclude"}])
_NOTHING = st.just({})
_moments = (datetime(2000, 1, 1), datetime(2030, 1, 1))
_simple = st.sampled_from(
    [
        ("", "x", " > 1"), ("NOT ", "x", " <= 0"), ("", "z", " IS NULL"), ("", "n", " IN (1, 2)"), ("", "text", " = 'a'"), ("", "text", " NOT IN ('b', 'it''s')"),
        ("", "flag", " = TRUE"), ("", "flag", " IS NOT NULL"), ("", "day", " >= '2020-01-01'"), ("", "moment", " < '2024-02-29 12:00:00'"), ("", "who", " <> 'ann'"),
    ]
)  # fmt: skip
conditions = st.one_of(
    _simple,
    st.builds(
        lambda a, word, b: ("(" + a[0], a[1], f"{a[2]} {word} {b[0]}", b[1], b[2] + ")"),
        _simple,
        st.sampled_from(["AND", "OR"]),
        _simple,
    ),
)
_groups = st.sampled_from(
    [("text", ["a", "b", "[/b]"]), ("text", ["a"]), ("flag", [True, False]), ("n", [0, 1, 2]), ("x", [0.25, 1]), ("day", ["2020-01-01", "1969-12-31"]), ("who", ["ann", "bob"])]
)  # fmt: skip


def _on_grid(statistic, extra=_NOTHING):
    """Of numbers, or, where ranks are asked for, of dates."""
    of_numbers = st.builds(
        lambda role, bounds, missing, more: Asked(statistic, (role,), {"bounds": bounds, **missing, **more}),
        _numeric, _spans, _exclude, extra,
    )  # fmt: skip
    if statistic in ("mean", "sum"):
        return of_numbers
    of_dates = st.builds(
        lambda role, step, more: Asked(statistic, ("day" if step == 1 else "moment",), {"bounds": (date(2000, 1, 1), date(2030, 1, 1)) if role else _moments, **more}),
        st.booleans(), st.sampled_from([1, 2]), extra,
    )  # fmt: skip
    return st.one_of(of_numbers, of_numbers, of_dates)


_statistics = st.one_of(
    st.just(Asked("count")),
    _on_grid("mean", st.sampled_from([{}, {"std": 1e-7}, {"step": 0.25}])),
    _on_grid("sum", st.sampled_from([{}, {"missing": 1}])),
    _on_grid("median", st.sampled_from([{}, {"step": 1}])),
    _on_grid("quantile", st.sampled_from([{"p": 0.9}, {"p": [0.1, 0.5]}, {"p": [0.3]}])),
    _on_grid("min"),
    _on_grid("max"),
    st.builds(lambda most: Asked("rows", (), {"max": most}), st.sampled_from([1, 3, 1000])),
    st.builds(lambda role, edges: Asked("histogram", (role,), {"edges": edges}), _numeric, st.sampled_from([[0, 1, 2], [-1e9, 0, 0.1, 1e9]])),
    st.builds(
        lambda group, missing: Asked("histogram", (group[0],), {"categories": group[1], **missing}),
        _groups, st.sampled_from([{}, {}, {"missing": "others"}]),
    ),
    st.just(Asked("regression", ("x", "z"), {"bounds": {"x": (-3, 5), "z": (0, 2)}, "categories": {}})),
    st.just(Asked("regression", ("x", "text", "flag"), {"bounds": {"x": (-3, 5)}, "categories": {"text": ["a", "b"], "flag": [False, True]}})),
)  # fmt: skip


def _of_whom(asked, where, group, membership):
    options = asked.options
    if group is not None:
        options = {**options, "keys": group[1]}
    if membership == "public" and (where or group):
        options = {**options, "membership": "public"}
    return Asked(asked.statistic, asked.columns, options, where, None if group is None else group[0])


questions = st.builds(
    _of_whom,
    _statistics,
    st.one_of(st.none(), conditions),
    st.one_of(st.none(), st.none(), _groups),
    st.sampled_from(["private", "private", "public"]),
)
"""Every statistic, about everyone, some, or groups. Some are refused: of a column of another kind, or `rows` without `user=`."""
MECHANISMS = (
    "minimum",
    "threshold",
    "proportional",
    "affine",
    "fallah",
    "stretch",
    "mix",
    "rank",
    "sample",
    "pe",
)
mechanisms = st.one_of(*[st.sampled_from(["auto", "minimum", "threshold"])] * 2, st.sampled_from(MECHANISMS))
