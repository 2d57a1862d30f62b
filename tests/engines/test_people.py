"""People with many rows: what the engine makes of them is what plain Python makes of them, with fractions, whatever stands in the rows and in whichever order.

And what one person can do with their rows is bounded by their charge, whatever they write into them; levels are the strictest of all rows of a person, also of rows that are in no group.
"""

from collections import Counter
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction
from hashlib import sha256
from math import floor, inf, isfinite, nan

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import numbers

import accord
from accord.budget import MICRO, PUBLIC
from accord.errors import AccordError, QueryError, SourceError, SpecError
from accord.spec import Spec

WIDEST, Q = 2**50, 2**9
TYPES = {
    "id": pa.string(),
    "x": pa.float64(),
    "c": pa.string(),
    "g": pa.string(),
    "m": pa.int64(),
    "e": pa.float64(),
}
GRID = {"bounds": (-1, 3), "step": 0.5}
PARTS = {
    "everyone": {},
    "where": {"where": "m > 0"},
    "by": {"by": "g", "keys": ["a", "b'"]},
    "where and by": {"where": "x IS NOT NULL AND m > 0", "by": "g", "keys": ["b'", "a", "nobody"]},
}
QUERIES = {
    "mean": lambda **of: accord.mean("x", **GRID, missing=0, **of),
    "sum": lambda **of: accord.sum("x", **GRID, missing=1, **of),
    "rows": lambda **of: accord.rows(max=3, **of),
    "median": lambda **of: accord.median("x", **GRID, missing=3, **of),
    "min": lambda **of: accord.min("x", **GRID, missing=3, **of),
    "max": lambda **of: accord.max("x", **GRID, missing=-1, **of),
    "count": lambda **of: accord.count(**of),
    "edges": lambda **of: accord.histogram("x", edges=[-1, 0, 1, 3], missing="none", **of),
    "categories": lambda **of: accord.histogram("c", categories=["v", "u"], **of),
    "categories and others": lambda **of: accord.histogram("c", categories=["v", "u"], missing="other", **of),
    "regression": lambda **of: accord.regression(
        "x",
        ["m", "c"],
        bounds={"x": (-1, 3), "m": (0, 2)},
        categories={"c": ["v", "u", "w"]},
        missing="none",
        **of,
    ),
}


# ---- in plain Python -------------------------------------------------------------------------------------------------


def is_number(x):
    return x is not None and isfinite(x)


def whole(x, low, per_unit):
    """Steps from `low`, rounded; no further than WIDEST."""
    return max(-WIDEST, min(WIDEST, floor((Fraction(x) - low) * per_unit + Fraction(1, 2))))


def clipped(value, span):
    return max(0, min(span, floor(Fraction(value) + Fraction(1, 2))))


def mean_of(values, low, per_unit, span, missing):
    steps = [whole(x, low, per_unit) for x in values if is_number(x)]
    return clipped(Fraction(sum(steps), len(steps)), span) if steps else missing


def most_frequent(values, declared, person):
    """The declared values that rows have, the most frequent first; of equal ones, by a hash."""
    times = Counter(value for value in values if value in declared)

    def tie(value):
        return sha256(f"{person.strip()}:{value.encode().hex()}".encode()).digest()

    return sorted(times, key=lambda value: (-times[value], tie(value)))


def first(values, declared, person):
    """The place of the most frequent one."""
    return next((declared.index(value) for value in most_frequent(values, declared, person)), None)


def integers(name, rows, person):
    """What a person's rows come to: {output: amount}."""
    xs = [row["x"] for row in rows]
    there = [x for x in xs if is_number(x)]
    match name:
        case "mean":
            q = mean_of(xs, -1, 2, 8, 2)
        case "sum":
            fine = [whole(x, -1, 2048) - 2048 for x in there]  # from 0
            q = clipped(Fraction(sum(fine) + 2048, 1024), 8) if fine else 4
        case "rows":
            q = min(3, len(rows))
        case "count":
            q = 1
        case "median":
            return {mean_of(xs, -1, 2, 8, 8): 1}
        case "min" | "max":
            end = min if name == "min" else max
            return {
                clipped(end(whole(x, -1, 2) for x in there), 8) if there else (8 if name == "min" else 0): 1
            }
        case "edges":
            if not there:
                return {2: 1}  # the cell in the middle
            steps = Fraction(sum(whole(x, -1, 2**30) for x in there), len(there)) / 2**30 - 1
            return {0 if steps < 0 else 1 if steps < 1 else 2: 1}
        case "categories" | "categories and others":
            k = first([row["c"] for row in rows], ["v", "u"], person)
            return {k: 1} if k is not None else {} if name == "categories" else {2: 1}
        case "regression":
            y = mean_of(xs, -1, 256, 2 * Q, Q) - Q
            m = mean_of([row["m"] for row in rows], 0, 512, 2 * Q, Q) - Q
            k = first([row["c"] for row in rows], ["v", "u", "w"], person) or 0
            u, w = (Q if k == j else -Q for j in (1, 2))
            moments = [Q * y, Q * m, Q * u, Q * w, y * m, y * u, y * w, m * u, m * w, m * m]
            return dict(enumerate([*moments, 1]))
    return {0: 1, 1: q}


def part_of(row, part):
    """Which group a row is of; None: none."""
    meets = {
        "where": row["m"] is not None and row["m"] > 0,
        "where and by": is_number(row["x"]) and row["m"] is not None and row["m"] > 0,
    }
    if not meets.get(part, True):
        return None
    keys = PARTS[part].get("keys")
    return 0 if keys is None else keys.index(row["g"]) if row["g"] in keys else None


def expected(name, part, rows, micro, levels):
    """For each group {(level, output): amount}."""
    keys = PARTS[part].get("keys")
    groups = [Counter() for _ in keys or [None]]
    for person, level in levels.items():
        mine = [(row, part_of(row, part)) for row in rows if row["id"] == person]
        inside = [k for _, k in mine if k is not None]
        if level == 0 or level not in micro or not inside:
            continue
        chosen = first([keys[k] for k in inside], keys, person) if keys else 0
        cells = integers(name, [row for row, k in mine if k == chosen], person)
        for output, amount in cells.items():
            groups[chosen][micro.index(level), output] += amount
    return [Counter({k: v for k, v in group.items() if v}) for group in groups]


def amounts_in(summary):
    amounts = Counter()
    for j, k, a in zip(summary.level.tolist(), summary.output.tolist(), summary.amount.tolist(), strict=True):
        amounts[j, k] += a
    return Counter({key: a for key, a in amounts.items() if a})


def opened(rows, **options):
    columns = {name: pa.array([row[name] for row in rows], type=kind) for name, kind in TYPES.items()}
    return accord.table(pa.table(columns), **{"epsilon": "e", "user": "id", **options})


def asked(table, name, part):
    """The Summaries of a question."""
    return table.reader.summaries(QUERIES[name](**PARTS[part]))


people = st.sampled_from(["ann", "bob", "cy ", "d'e"])


def rows_of(levels):
    return st.lists(
        st.fixed_dictionaries(
            {
                "id": people,
                "x": numbers,
                "c": st.sampled_from(["u", "v", "w", "V", None]),
                "g": st.sampled_from(["a", "b'", "A", None]),
                "m": st.sampled_from([0, 1, 2, None]),
                "e": levels,
            }
        ),
        min_size=1,
        max_size=12,
    )


def strictest(rows, of):
    """{person: level in millionths}; `of` is how a level is read."""
    levels = {}
    for row in rows:
        if row["id"] is not None:
            levels[row["id"]] = min(levels.get(row["id"], PUBLIC), of(row["e"]))
    return levels


def micro_of(level):
    return PUBLIC if level == inf else int(Fraction(str(level)) * MICRO)


def compare(table, rows, levels, micro):
    for name in QUERIES:
        for part in PARTS:
            if (name, part) == ("count", "where"):
                continue
            summaries, reference = asked(table, name, part), expected(name, part, rows, micro, levels)
            assert [amounts_in(s) for s in summaries] == reference, (name, part)
            assert all(s.people.sum() == table.spec().total for s in summaries)


# ---- tests -----------------------------------------------------------------------------------------------------------


SOME_PEOPLE = {
    "halves": [(0.25, "u", "a", 1, 2.0), (0.75, "v", "a", 2, 2.0)],
    "thirds": [(0.1, "w", "a", 0, 2.0), (0.5, "u", "b'", 1, 0.5), (2.4, None, "a", None, 2.0)],
    "beyond": [(9.0, "V", "a", 2, inf), (-7.5, "u", "a", 2, inf)],
    "far beyond": [(1e300, "u", "b'", 1, 2.0)],
    "far below": [(-1e300, "v", "b'", 1, 2.0), (3.0, "w", "b'", 1, 2.0)],
    "as far as steps go": [(1.6 * 2.0**49, "v", "a", 0, inf), (1 - 2.0**49, "v", "a", 1, inf)],
    "on edges": [(0.0, "w", "a", 1, 0.5), (0.0, "w", "A", 1, 0.5)],
    "on another": [(1.0, "w", "A", 2, 0.5), (1.0, "u", "b'", 2, 0.5)],
    "without a value": [(None, None, "b'", None, 2.0), (nan, "V", "b'", 0, 2.0), (inf, None, None, 1, 2.0)],
    "in no group": [(1.5, "u", None, 2, 2.0), (2.0, "w", "A", 1, 2.0)],
    "four rows": [(0.3, "u", "a", 1, 2.0)] * 4,
    "out by a row of no group": [(1.0, "u", "a", 1, inf), (2.0, "v", None, 0, 0.0)],
    "strict by a row of no group": [(1.0, "u", "a", 1, inf), (2.0, "v", None, 0, 0.5)],
}
"""Their rows: x, c, g, m and e."""


def rows_of_some_people():
    return [dict(zip(TYPES, (who, *row), strict=True)) for who, rows in SOME_PEOPLE.items() for row in rows]


def test_rows_of_some_people_come_to_what_they_come_to_in_plain_python():
    rows = rows_of_some_people()
    levels = strictest(rows, micro_of)
    compare(opened(rows), rows, levels, sorted(set(levels.values()) - {0}))


def test_under_add_remove_somebody_with_one_bad_level_is_not_read():
    rows = rows_of_some_people()
    for row, bad in zip(rows[::5], (None, nan, -1.0, 7e6, -inf), strict=False):
        row["e"] = bad
    levels = strictest(rows, lambda level: micro_of(level) if level in (0.0, 0.5, 2.0, inf) else 0)
    roster = Spec.of([0.5, 2.0, inf, inf])
    table = opened(rows, neighbors="add-remove", roster=roster)
    compare(table, rows, levels, roster.micro.tolist())


def test_what_is_not_a_level_counts_as_opted_out_where_who_is_there_is_private():
    """It is not refused, which would tell that somebody is there; and whoever has it is not read."""
    people = np.ones(8, dtype=np.int64)
    raw = np.ma.array([0.0, 0.5, inf, 1e6, nan, -1.0, -inf, 1e7], mask=[False] * 8)
    numbers = replace(opened(rows_of_some_people()).reader.levels, lenient=True)
    assert numbers.decode(raw, people).tolist() == [0, 500_000, PUBLIC, MICRO * MICRO, 0, 0, 0, 0]
    raw.mask = [False, True, *[False] * 6]
    assert numbers.decode(raw, people)[1] == 0
    assert replace(numbers, default=7).decode(raw, people)[1] == 7
    tiers = replace(numbers, tiers={"strict": 3, "out": 0})
    names = np.ma.array(["strict", "out", "Strict", ""], mask=[False, False, False, True], dtype=object)
    assert tiers.decode(names, people[:4]).tolist() == [3, 0, 0, 0]


@settings(max_examples=14)
@given(rows=rows_of(st.sampled_from([0.5, 0.5, 2.0, inf, 0.0])), random=st.randoms())
def test_rows_come_to_what_they_come_to_in_plain_python(rows, random):
    levels = strictest(rows, micro_of)
    micro = sorted(set(levels.values()) - {0})
    table = opened(rows)
    assert table.spec() == Spec(np.array(list(levels.values())), np.ones(len(levels), dtype=np.int64))
    compare(table, rows, levels, micro)
    random.shuffle(rows)
    shuffled = opened(rows)
    for name in QUERIES:
        before, after = asked(table, name, "everyone"), asked(shuffled, name, "everyone")
        assert [amounts_in(s) for s in before] == [amounts_in(s) for s in after]


@settings(max_examples=10)
@given(rows=rows_of(st.sampled_from([0.5, 2.0, inf, 0.0, None, nan, -1.0, 7e6, 0.25])), data=st.data())
def test_under_add_remove_bad_levels_and_rows_of_nobody_are_left_out(rows, data):
    """Nobody's row decides whether a release fails; who has one bad level is not read at all."""
    for row in rows:
        if data.draw(st.booleans()) and data.draw(st.booleans()):
            row["id"] = None
    default = data.draw(st.sampled_from([None, 2.0, 0]))
    roster = Spec.of([0.5, 2.0, inf, inf])

    def of(level):
        if level is None:
            return 0 if default is None else micro_of(default)
        return micro_of(level) if 0 <= level <= MICRO or level == inf else 0

    levels = strictest(rows, of)
    table = opened(rows, neighbors="add-remove", roster=roster, default=default)
    compare(table, rows, levels, roster.micro.tolist())


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (None, "2 of 3 people have a row without a level"),
        *((bad, "2 of 3 people have a row with a level that is not") for bad in (nan, -1.0, 1e7, -inf)),
    ],
)
def test_under_replace_one_bad_level_is_refused_with_the_number_of_people(bad, words):
    base = {"x": 1.0, "c": "u", "g": "a", "m": 1}
    rows = [
        {**base, "id": who, "e": e} for who, e in [("p", 1.0), ("p", bad), ("q", bad), ("q", bad), ("r", 1.0)]
    ]
    table = opened(rows)
    with pytest.raises(SpecError, match=words):
        table.spec()
    with pytest.raises(SpecError, match=words):
        table.release(accord.mean("x", **GRID))
    if bad is None:
        assert opened(rows, default=0.25).spec() == Spec.of([0.25, 0.25, 1.0])
        assert opened(rows, default=0).spec() == Spec.of([0, 0, 1.0])
        assert opened(rows, default=inf).spec() == Spec.of([1.0, inf, 1.0])


def test_tiers_are_the_strictest_too():
    tiers = {"strict": 0.1, "out": 0, "open": inf, "Strict": 2.0}
    said = {
        "p": ["open", "strict"],
        "q": ["open"],
        "r": ["out", "open"],
        "s": ["Strict", "open", None],
        "t": [None],
    }
    columns = {
        "id": [who for who, names in said.items() for _ in names],
        "x": [1.0 for names in said.values() for _ in names],
        "e": [name for names in said.values() for name in names],
    }
    table = accord.table(pa.table(columns), epsilon="e", user="id", tiers=tiers, default="open")
    assert table.spec() == Spec.of([0.1, inf, 0, 2.0, inf])
    assert amounts_in(table.reader.summaries(accord.median("x", bounds=(0, 1), step=1))[0]) == {
        (0, 1): 1,
        (1, 1): 1,
        (2, 1): 2,
    }
    with pytest.raises(SpecError, match="2 of 5 people have a row without a level"):
        accord.table(pa.table(columns), epsilon="e", user="id", tiers=tiers).spec()
    with pytest.raises(SpecError, match="tier 'Strict' of 1 people is not declared"):
        del tiers["Strict"]
        accord.table(pa.table(columns), epsilon="e", user="id", tiers=tiers, default="open").spec()


def test_only_tiers_that_allow_something_are_read_where_people_have_one_row():
    columns = {"x": [1.0, 1.0, 1.0, 0.0, 1.0], "e": ["strict", "out", "it's", "it's", None]}
    tiers = {"strict": 0.5, "out": 0, "it's": 2.0}
    for default, of_strict in ((0, 1), ("out", 1), ("strict", 2)):
        table = accord.table(pa.table(columns), epsilon="e", tiers=tiers, default=default)
        summary = table.reader.summaries(accord.mean("x", bounds=(0, 1), step=1))[0]
        assert amounts_in(summary) == {(0, 0): of_strict, (0, 1): of_strict, (1, 0): 2, (1, 1): 1}


def test_rows_of_nobody_are_refused_with_their_number():
    rows = [
        {"id": who, "x": 1.0, "c": "u", "g": "a", "m": 1, "e": 1.0} for who in ("p", None, "q", None, None)
    ]
    table = opened(rows)
    for use in (
        table.spec,
        lambda: table.release(accord.mean("x", **GRID)),
        lambda: table.plan(accord.rows(max=2)),
    ):
        with pytest.raises(SourceError, match="3 rows are of nobody"):
            use()


@settings(max_examples=5)
@given(rows=rows_of(st.sampled_from([0.5, 2.0])), other=rows_of(st.just(0.0)))
def test_who_opted_out_by_one_row_is_never_read(rows, other):
    """Whatever they write; and it does not matter in which of their rows they said so."""
    for row in rows + other:
        row["id"] = "ann" if row["id"] != "ann" else "bob"
    out = {"id": "zoe", "x": 2.0, "c": "v", "g": "a", "m": 1, "e": 0.0}
    with_one = [*rows, out, *({**row, "id": "zoe", "e": 2.0} for row in other)]
    table, alone = opened(with_one), opened([*rows, out])
    assert table.spec() == alone.spec() and table.spec().opted_out == 1
    for name in QUERIES:
        for part in PARTS:
            if (name, part) != ("count", "where"):
                assert [amounts_in(s) for s in asked(table, name, part)] == [
                    amounts_in(s) for s in asked(alone, name, part)
                ]


@settings(max_examples=25)
@given(
    rows=rows_of(st.just(2.0)),
    before=rows_of(st.just(0.5)),
    after=rows_of(st.just(0.5)),
    name=st.sampled_from([name for name in QUERIES if name not in ("regression", "median", "min", "max")]),
    part=st.sampled_from(sorted(PARTS)),
)
def test_nobody_moves_sums_by_more_than_their_charge(rows, before, after, name, part):
    """Other rows, more of them or fewer, with anything in them: Σ|change| ≤ charge·sensitivity, once for each group that they can leave and enter."""
    if name == "count" and part in ("where", "everyone"):
        return
    rows = [{**row, "id": f"other {row['id']}"} for row in rows]
    tables = [opened([*rows, *({**row, "id": "me"} for row in mine)]) for mine in (before, after)]
    spec = tables[0].spec()
    assert tables[1].spec() == spec
    plan = accord.plan(spec, QUERIES[name](**PARTS[part]), "affine")
    target, weights = plan.target, plan.calibration.charges
    everyone = sum(w * n for w, n in zip(weights.tolist(), spec.people.tolist(), strict=True))
    sums = [
        [target.sums(s.weighted(weights), everyone) for s in table.reader.summaries(plan.query)]
        for table in tables
    ]
    if target.complementary:
        sums = [[group[:1] for group in groups] for groups in sums]
    moved = sum(
        abs(a - b) for first, second in zip(*sums, strict=True) for a, b in zip(first, second, strict=True)
    )
    assert moved <= int(weights[0]) * target.sensitivity * plan.times
    assert plan.cost[0] == weights[0] * plan.times <= spec.micro[0]


@settings(max_examples=40)
@given(
    values=st.lists(
        st.one_of(st.none(), st.floats(), st.floats(-10, 10), st.integers(-9, 9).map(float)), min_size=1
    ),
    low=st.one_of(st.integers(-5, 5), st.floats(-1e6, 1e6, allow_subnormal=False)),
    width=st.sampled_from([1, 7, 1e-9, 0.3, 1e12]),
    step=st.sampled_from([None, 1, 3, 7]),
)
def test_one_row_a_person_is_as_without_people(values, low, width, step):
    try:
        bounds = (low, low + width)
        grid = {"bounds": bounds, **({} if step is None else {"step": width / step})}
        queries = [make("x", **grid) for make in (accord.mean, accord.median, accord.min, accord.max)]
    except QueryError:
        return
    queries += [accord.count(where="x > 1"), accord.count(where="x IS NULL OR x <= 0")]
    columns = {
        "x": pa.array(values, type=pa.float64()),
        "id": list(range(len(values))),
        "e": [1.0] * len(values),
    }
    plain = accord.table(pa.table(columns), epsilon="e")
    by_person = accord.table(pa.table(columns), epsilon="e", user="id")
    for query in queries:
        assert amounts_in(plain.reader.summary(query)) == amounts_in(by_person.reader.summary(query)), (
            query.label
        )


@settings(max_examples=20)
@given(
    values=st.lists(st.floats(0, 1), min_size=1, max_size=8),
    low=st.sampled_from([0.0, -3.0, 1.6e9, -1.6e9, 1e12, 86_400.0]),
    width=st.sampled_from([1.0, 1000.0, 1e6]),
)
def test_a_sum_of_one_row_a_person_is_nearly_as_without_people(values, low, width):
    """Also where the bounds are far from zero."""
    query = accord.sum("x", bounds=(low, low + width))
    columns = {
        "x": [low + v * width for v in values],
        "id": list(range(len(values))),
        "e": [inf] * len(values),
    }
    plain = accord.table(pa.table(columns), epsilon="e").reader.summary(query)
    by_person = accord.table(pa.table(columns), epsilon="e", user="id").reader.summary(query)
    assert abs(amounts_in(plain)[0, 1] - amounts_in(by_person)[0, 1]) <= len(values)


def test_dates_of_many_rows():
    days = [date(2026, 1, 1), date(2026, 1, 4), None, date(2030, 1, 1), date(1900, 1, 1)]
    columns = {"id": [1, 1, 1, 2, 3], "d": pa.array(days, type=pa.date32()), "e": [1.0] * 3 + [2.0, 3.0]}
    bounds = (date(2026, 1, 1), date(2026, 1, 11))
    table = accord.table(pa.table(columns), epsilon="e", user="id")
    assert amounts_in(table.reader.summary(accord.median("d", bounds=bounds))) == {
        (0, 2): 1,
        (1, 10): 1,
        (2, 0): 1,
    }
    assert amounts_in(table.reader.summary(accord.min("d", bounds=bounds))) == {
        (0, 0): 1,
        (1, 10): 1,
        (2, 0): 1,
    }
    assert amounts_in(table.reader.summary(accord.max("d", bounds=bounds))) == {
        (0, 3): 1,
        (1, 10): 1,
        (2, 0): 1,
    }
    moments = pa.array([None if d is None else datetime(d.year, d.month, d.day, 12) for d in days])
    table = accord.table(pa.table(columns | {"d": moments}), epsilon="e", user="id")
    hours = {"bounds": (datetime(2026, 1, 1), datetime(2026, 1, 11)), "step": 3600}
    assert amounts_in(table.reader.summary(accord.median("d", **hours))) == {
        (0, 48): 1,
        (1, 240): 1,
        (2, 0): 1,
    }


def test_every_form_has_the_same_people(in_form):
    columns = {
        "id": ["p", "q", "p", "r", "q", "p", "s", "s"],
        "x": [1.0, None, 3.0, -1e300, 2.5, None, 0.25, 0.5],
        "g": ["a", "b", "b", "z", "b", "a", "z", "a"],
        "e": [1.0, 0.5, 2.0, 2.0, 0.5, 1.0, 0.25, 2.0],
    }
    table = accord.table(in_form(columns), epsilon="e", user="id")
    assert table.spec() == Spec.of([1.0, 0.5, 2.0, 0.25])
    by = {"by": "g", "keys": ["a", "b"]}
    mean = accord.plan(table.spec(), accord.mean("x", bounds=(0, 4), step=1, **by)).query
    assert [amounts_in(s) for s in table.reader.summaries(mean)] == [{(2, 0): 1, (2, 1): 1, (0, 0): 1, (0, 1): 1}, {(1, 0): 1, (1, 1): 3}]  # fmt: skip
    rows = accord.plan(table.spec(), accord.rows(max=2, where="x >= 1")).query
    assert [amounts_in(s) for s in table.reader.summaries(rows)] == [
        {(2, 0): 1, (2, 1): 2, (1, 0): 1, (1, 1): 1}
    ]
    assert table.release(mean, "minimum").value[0].keys() == {"g", "value", "rmse", "few"}


# ---- strict levels, whatever is asked ------------------------------------------------------------------------------


@pytest.mark.parametrize("strict", [0.1, 0.0, 2.5])
def test_a_public_group_has_the_strictest_level_of_all_rows(strict):
    """Also of rows that are not in it: who said so once has said it."""
    columns = {
        "id": [1, 1, 2, 2, 3],
        "g": ["a", "z", "a", "a", "b"],
        "x": [1.0] * 5,
        "e": [3.0, strict, 3.0, 3.0, 3.0],
    }
    table = accord.table(pa.table(columns), epsilon="e", user="id")
    of = {"by": "g", "keys": ["a", "b"], "membership": "public"}
    plan = table.plan(accord.mean("x", bounds=(0, 1), step=1, **of), "minimum")
    assert plan.plans["a"].spec == Spec.of([strict, 3.0])
    assert max(plan.plans["a"].charges.values()) <= (strict or 3.0)
    release = table.release(plan)
    assert release.charges["a"] == plan.plans["a"].charges


def test_somebody_in_several_public_groups_is_refused_before_anything_is_answered():
    """They would pay in each of them."""
    base = {"x": 1.0, "c": "u", "m": 1, "e": 2.0}
    rows = [{**base, "id": who, "g": g} for who, g in [("p", "a"), ("q", "a"), ("q", "b'"), ("r", "b'")]]
    query = accord.mean("x", **GRID, by="g", keys=["a", "b'"], membership="public")
    with pytest.raises(QueryError, match="1 people have rows in several of the groups"):
        opened(rows).plan(query)
    opened([row for row in rows if row["id"] != "q"]).plan(query)


def test_a_private_group_has_the_strictest_level_of_all_rows():
    columns = {"id": [1, 1, 2], "g": ["a", "z", "a"], "x": [1.0, 0.0, 1.0], "e": [3.0, 0.0, 3.0]}
    table = accord.table(pa.table(columns), epsilon="e", user="id")
    plan = table.plan(accord.count(by="g", keys=["a"]), "minimum")
    assert plan.spec == Spec.of([0, 3.0])
    assert [amounts_in(s) for s in table.reader.summaries(plan.query)] == [{(0, 0): 1, (0, 1): 1}]


# ---- names and keys --------------------------------------------------------------------------------------------------

ODD = [
    'x"; DROP TABLE t',
    "a'b",
    "SELECT",
    "ünï çødé",
    " ",
    "level",
    "part",
    "cell",
    "people",
    "total",
    "__accord__",
]


@pytest.mark.parametrize("name", ODD)
def test_any_other_name_is_just_a_name(name):
    values = {"id": ["p", "p", "q"], "x": [1.0, 3.0, 0.0], "g": ["a", "a", "b"], "e": [1.0, 1.0, 2.0]}
    for column in values:
        columns = {name if c == column else c: v for c, v in values.items()}
        of = {c: name if c == column else c for c in values}
        table = accord.table(pa.table(columns), epsilon=of["e"], user=of["id"])
        query = accord.median(of["x"], bounds=(0, 4), step=1, by=of["g"], keys=["a", "b"])
        query_of_plan = accord.plan(table.spec(), query).query
        assert [amounts_in(s) for s in table.reader.summaries(query_of_plan)] == [{(0, 2): 1}, {(1, 0): 1}]
        slopes = accord.regression(of["x"], [of["g"]], {of["x"]: (0, 4)}, {of["g"]: ["a", "b"]})
        assert amounts_in(table.reader.summary(slopes))[0, 3] == 1
        quoted = '"' + name.replace('"', '""') + '"'
        where = accord.rows(max=5, where=f"{quoted if column == 'x' else 'x'} > 0")
        (summary,) = table.reader.summaries(where)
        assert amounts_in(summary) == {(0, 0): 1, (0, 1): 2}


KEYS = {
    "text": (["a", "it's", 'q"q', "ø\u0301", "", "NULL", "1"], pa.string()),
    "numbers": ([1, -2.5, 1e300, 0], pa.float64()),
    "whole numbers": ([1, 2**53, -7], pa.int64()),
    "truth": ([True, False], pa.bool_()),
    "dates": (["2026-01-31", "1999-12-31"], pa.date32()),
}


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("user", [None, "id"])
def test_keys_of_every_kind(kind, user):
    keys, column = KEYS[kind]
    values = [date.fromisoformat(k) for k in keys] if kind == "dates" else keys
    columns = {
        "id": [f"{k}" for k in range(len(keys) + 1)],
        "g": pa.array([*values, None], type=column),
        "e": [1.0 + k for k in range(len(keys) + 1)],
    }
    table = accord.table(pa.table(columns), epsilon="e", user=user)
    query = accord.plan(table.spec(), accord.count(by="g", keys=keys)).query
    assert [amounts_in(s) for s in table.reader.summaries(query)] == [
        {(k, 0): 1, (k, 1): 1} for k in range(len(keys))
    ]
    assert [row["g"] for row in table.release(accord.count(by="g", keys=keys), "minimum").value] == keys
    absent = {
        "text": ["zz", "A"],
        "numbers": [77],
        "whole numbers": [5, 0.5],
        "truth": [True],
        "dates": ["2001-01-01"],
    }
    query = accord.plan(table.spec(), accord.count(by="g", keys=absent[kind])).query
    assert [len(amounts_in(s)) for s in table.reader.summaries(query)] == [2 * int(kind == "truth")] * len(
        absent[kind]
    )
    wrong = {"text": [1], "numbers": ["1"], "whole numbers": [True], "truth": [1], "dates": [1]}
    empty = accord.table(pa.table({name: v[:0] if isinstance(v, pa.Array) else [] for name, v in columns.items()} | {"e": pa.array([], pa.float64())}), epsilon="e")  # fmt: skip
    for t in (table, empty):  # the kinds of columns decide, nobody's value
        with pytest.raises(QueryError, match="'g'"):
            t.check(accord.count(by="g", keys=wrong[kind]))


@pytest.mark.parametrize(
    "options",
    [
        {"keys": ["a"]},
        {"by": "g"},
        {"by": "g", "keys": "ab"},
        {"by": "g", "keys": []},
        {"by": "g", "keys": ["a", "a"]},
        {"by": "g", "keys": [1, 1.0]},
        {"by": "g", "keys": [True, 1]},
        {"by": "g", "keys": [nan]},
        {"by": "g", "keys": [None]},
        {"by": "g", "keys": [2**53 + 1]},
        {"by": "", "keys": ["a"]},
        {"by": "g", "keys": ["a"], "membership": "secret"},
        {"membership": "public"},
    ],
)
def test_parts_that_cannot_be_asked_about(options):
    with pytest.raises(QueryError):
        accord.mean("x", **GRID, **options).label  # noqa: B018


def test_levels_are_not_asked_about_and_columns_must_be_there():
    table = opened([{"id": "p", "x": 1.0, "c": "u", "g": "a", "m": 1, "e": 1.0}])
    for of in ({"where": "e > 1"}, {"by": "e", "keys": [1]}, {"by": "h", "keys": [1]}, {"where": "h > 1"}):
        with pytest.raises(QueryError):
            table.plan(accord.mean("x", **GRID, **of))
        with pytest.raises(AccordError):
            table.release(accord.mean("x", **GRID, membership="public", **of))
    with pytest.raises(QueryError, match="user="):
        accord.table({"x": [1.0], "rows": [2.0]}, epsilon=1.0).plan(accord.rows(max=2))


@pytest.mark.parametrize(
    "edges", [[-1e150, 0, 1e150], [0, 5e-200, 1e-190], [0, 1e-300, 1], [1e15, 1e15 + 1, 1e15 + 2]]
)
def test_histograms_with_any_edges_have_everyone_in_a_cell(edges):
    values = [0.0, edges[0], edges[-1], nan, inf]
    columns = {"id": list(range(5)), "x": values, "e": [1.0] * 5}
    table = accord.table(pa.table(columns), epsilon="e", user="id")
    for missing, people in (("none", 5), ("exclude", 3)):
        query = accord.histogram("x", edges=edges, missing=missing)
        assert sum(amounts_in(table.reader.summary(query)).values()) == people


@pytest.mark.parametrize("edges", [[-1.7e308, 0, 1.7e308], [0, 5e-324, 1e-323]])
def test_edges_beyond_all_reckoning_are_refused_before_anything_is_read(edges):
    table = accord.table({"id": [1, 2], "x": [0.0, 1.0], "e": [1.0, 1.0]}, epsilon="e", user="id")
    with pytest.raises(QueryError, match="edges"):
        table.plan(accord.histogram("x", edges=edges))
