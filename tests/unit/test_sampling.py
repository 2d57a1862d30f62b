"""`accord.sample`: somebody's own algorithm, run on the real engine. Who is passed to it, with what ε, what it costs, and what is told if it fails."""

import json
from collections import Counter
from fractions import Fraction
from math import inf, isnan, nan
from types import SimpleNamespace
from unittest.mock import MagicMock

import duckdb
import numpy as np
import opendp.prelude as dp
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import binom
from sklearn.linear_model import LinearRegression

import accord
from accord.errors import AccordError, BudgetError, PlanError, QueryError, SourceError, SpecError
from accord.people.identity import Remaining
from accord.release.receipt import to_json
from accord.statistics import Algorithm

ALPHA = 1e-9
BOTH = pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
SECRET = "SECRET 61234.5"


def people(e=(0.5, 1.0, 1.0), neighbors="replace", **options):
    n = len(e)
    columns = {
        "id": range(n),
        "v": [float(i) for i in range(n)],
        "w": [f"p{i}" for i in range(n)],
        "e": list(e),
    }
    roster = accord.Spec.of([x for x in e if x is not None]) if neighbors == "add-remove" else None
    return accord.table(pa.table(columns), epsilon="e", neighbors=neighbors, roster=roster, **options)


def ids(rows, epsilon):
    return rows["id"].to_pylist()


def chance(epsilon, t, neighbors):
    """π of mechanisms/sample.py, in floats."""
    if epsilon >= t:
        return 1.0
    if neighbors == "add-remove":
        return np.expm1(epsilon) / np.expm1(t)
    return np.expm1(epsilon) / (np.expm1(t / 2) - np.exp(epsilon) * np.expm1(-t / 2))


# --- algorithms ---------------------------------------------------------------------------------------------------------------


def test_arrow_pandas_and_numpy_are_what_was_asked_for():
    table = people([1.0] * 4)
    assert accord.sample(
        lambda rows, epsilon: (type(rows), rows.column_names, rows.num_rows), table
    ).value == (
        pa.Table,
        ["id", "v", "w"],
        4,
    )
    frame = accord.sample(lambda rows, epsilon: rows, table, rows="pandas").value
    pd.testing.assert_frame_equal(frame.sort_values("id"), pd.DataFrame(
        {"id": range(4), "v": [0.0, 1, 2, 3], "w": ["p0", "p1", "p2", "p3"]}), check_dtype=False)  # fmt: skip
    array = accord.sample(lambda rows, epsilon: rows, table, columns=["v", "id"], rows="numpy").value
    assert array.dtype == np.float64 and sorted(array.tolist()) == [[i, i] for i in range(4)]


def test_what_is_missing_is_nan_in_numpy():
    table = accord.table(
        pa.table({"v": [1.0, None, nan], "k": pa.array([None, 2, 3], pa.int32())}), epsilon=1.0
    )
    array = accord.sample(lambda rows, epsilon: rows, table, rows="numpy").value
    assert np.isnan(array).sum(axis=0).tolist() == [2, 1] and array.shape == (3, 2)


def test_wanted_columns_only_in_their_order_and_the_level_never():
    table = people([1.0, 1.0])
    for columns in (["w"], ["w", "v"], ("id",), iter(["v", "id"])):
        wanted = list(columns)
        assert accord.sample(lambda rows, epsilon: rows.column_names, table, columns=wanted).value == wanted
    assert accord.sample(lambda rows, epsilon: rows.column_names, table).value == ["id", "v", "w"]
    with pytest.raises(QueryError, match="column 'e' holds the levels"):
        accord.sample(ids, table, columns=["v", "e"])
    with_ids = people([1.0, 1.0], user="id")  # who they are is not passed on unless it is asked for
    assert accord.sample(lambda rows, epsilon: rows.column_names, with_ids).value == ["v", "w"]
    assert accord.sample(lambda rows, epsilon: rows.column_names, with_ids, columns=["id"]).value == ["id"]
    one = accord.table({"e": [1.0, 2.0]}, epsilon=0.5)  # nobody's level: an ordinary column
    assert accord.sample(lambda rows, epsilon: rows.column_names, one).value == ["e"]


def test_everyone_of_the_level_t_is_passed_with_all_of_their_row():
    rows = accord.sample(lambda rows, epsilon: rows, people([0.000001, 1.0, 1.0, 2.0, inf]), t=1.0).value
    assert [row for row in sorted(rows.to_pylist(), key=lambda r: r["id"]) if row["id"]] == [
        {"id": i, "v": float(i), "w": f"p{i}"} for i in (1, 2, 3, 4)
    ]


def test_nobody_kept_is_an_empty_table():
    """Each is kept with a chance of a millionth by e⁷."""
    for rows in ("arrow", "pandas", "numpy"):
        released = accord.sample(
            lambda rows, epsilon: rows.shape, people([1e-6] * 3), t=14.0, columns=["id", "v"], rows=rows
        )
        assert released.value == (0, 2)


@pytest.mark.parametrize("form", ["parquet", "csv", "polars", "pandas", "dict"])
def test_every_form_of_table_can_be_sampled(tmp_path, form):
    frame = pd.DataFrame({"x": [1.5, 2.5, 4.0], "k": ["a", "b", "c"], "e": [1.0, 1.0, 1.0]})
    frame.to_csv(tmp_path / "p.csv", index=False)
    frame.to_parquet(tmp_path / "p.parquet")
    source = {
        "parquet": tmp_path / "p.parquet",
        "csv": tmp_path / "p.csv",
        "polars": pl.from_pandas(frame),
        "pandas": frame,
        "dict": frame.to_dict("list"),
    }[form]
    rows = accord.sample(lambda rows, epsilon: rows.to_pylist(), accord.table(source, epsilon="e")).value
    number = str if form in ("csv", "dict") else float  # lists have no types, nor has such a file
    assert sorted(rows, key=lambda r: r["k"]) == [
        {"x": number(x), "k": k} for x, k in ((1.5, "a"), (2.5, "b"), (4.0, "c"))
    ]


def test_a_relation_of_somebody_elses_connection_can_be_sampled():
    table = accord.table(duckdb.connect().sql("SELECT 1.0 AS v, 0.5 AS e"), epsilon="e")
    assert accord.sample(lambda rows, epsilon: rows.column_names, table).value == ["v"]
    query = accord.regression("v", ["x"], {"v": (0, 1), "x": (0, 1)})
    table = accord.table(duckdb.connect().sql("SELECT 1.0 AS v, 1.0 AS x, 0.5 AS e"), epsilon="e")
    assert table.release(query, "sample").mechanism == "sample"


# --- OpenDP -------------------------------------------------------------------------------------------------------------------


def opendp_sum(rows, epsilon):
    """A Laplace sum of clamped integers under the symmetric distance, as OpenDP builds it for this ε."""
    dp.enable_features("contrib")
    start = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    clamped = start >> dp.t.then_clamp((0, 100)) >> dp.t.then_sum()
    noisy = dp.binary_search_chain(lambda scale: clamped >> dp.m.then_laplace(scale), d_in=1, d_out=epsilon)
    assert noisy.map(1) <= epsilon
    return noisy([int(v) for v in rows["v"].to_pylist()])


def opendp_count(rows, epsilon):
    dp.enable_features("contrib")
    start = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    noisy = dp.binary_search_chain(
        lambda scale: start >> dp.t.then_count() >> dp.m.then_laplace(scale), d_in=1, d_out=epsilon
    )
    assert noisy.map(1) <= epsilon
    return noisy(list(range(rows.num_rows)))


@BOTH
def test_an_opendp_measurement_becomes_personal(neighbors):
    """With everyone kept; e⁻³⁰ is the chance that the noise is as large as allowed for here."""
    n = 2_000
    columns = {"v": np.full(n, 60), "e": np.full(n, 1.0)}
    roster = accord.Spec.of(columns["e"]) if neighbors == "add-remove" else None
    table = accord.table(columns, epsilon="e", neighbors=neighbors, roster=roster)
    scale = 2 if neighbors == "replace" else 1
    total, count = accord.sample(opendp_sum, table), accord.sample(opendp_count, table)
    draws = {total.value, *(accord.sample(opendp_sum, table).value for _ in range(5))}
    assert len(draws) > 1  # six alike: a chance of 10⁻¹²
    assert abs(total.value - 60 * n) < 30 * 100 * scale
    assert abs(count.value - n) < 30 * scale
    assert dict(total.charges) == {1.0: 1.0} and total.receipt()["value"] == total.value


# --- ε ------------------------------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    "t", ["max", "mean", "min", 0.3, 0.7, 1 / 3, 0.000001, 0.1 + 0.2, 123_456.789, 999_999.999999, 1e6]
)
def test_epsilon_is_t_or_half_of_it_and_never_rounded_up(t, neighbors):
    table = people([0.1, 0.3, 0.999999] if isinstance(t, str) else [0.1, 1e6], neighbors)
    released = accord.sample(lambda rows, epsilon: epsilon, table, t=t)
    micro = {"max": 999_999, "mean": 466_666, "min": 100_000, 1 / 3: 333_333}.get(t) or round(t * 10**6)
    assert released.plan.calibration.t == micro
    exact = Fraction(micro, 10**6 * (2 if neighbors == "replace" else 1))
    assert exact * (1 - Fraction(1, 10**15)) < Fraction(released.value) <= exact


@BOTH
def test_charges_are_the_level_or_t(neighbors):
    levels = [0.1, 0.4, 1.0, inf]
    for t, top in (("max", 1.0), ("min", 0.1), (0.4, 0.4), (3.0, 3.0)):
        released = accord.sample(lambda rows, epsilon: 0, people(levels, neighbors), t=t)
        assert dict(released.charges) == {level: min(level, top) for level in levels}
    released = accord.sample(lambda rows, epsilon: epsilon, people(levels, neighbors), share=0.25)
    assert dict(released.charges) == {0.1: 0.025, 0.4: 0.1, 1.0: 0.25, inf: 0.25}
    assert released.value == pytest.approx(0.25 if neighbors == "add-remove" else 0.125)


@BOTH
def test_public_people_only_and_without_limit(neighbors):
    released = accord.sample(
        lambda rows, epsilon: (ids(rows, 0), epsilon), people([0.1, 1.0, inf, inf], neighbors), t=inf
    )
    assert (sorted(released.value[0]), released.value[1]) == ([2, 3], inf)
    assert dict(released.charges) == {0.1: 0.0, 1.0: 0.0, inf: inf}
    assert accord.sample(lambda rows, epsilon: epsilon, people([inf, inf], neighbors)).value == inf


# --- who is kept ----------------------------------------------------------------------------------------------------------------


def kept_by_level(table, column, t="max", runs=1):
    """How many are kept of each level; 0 where nobody is, which may be."""
    counts = Counter()
    for _ in range(runs):
        counts.update(
            accord.sample(lambda rows, epsilon: rows[column].to_pylist(), table, t=t, columns=[column]).value
        )
    return counts


def plausible(kept, n, p):
    """Whether so many of n are kept with probability p, at α = 1e-9 for all tests of one function together."""
    return min(binom.cdf(kept, n, p), binom.sf(kept - 1, n, p)) > ALPHA / 1000


@BOTH
@pytest.mark.parametrize("levels", [5, 60, 200])
def test_people_are_kept_with_their_own_chance(tmp_path, levels, neighbors):
    """On the real engine: of a file in several pieces, for few levels and for many."""
    each = 60_000 // levels
    level = np.repeat(np.linspace(0.02, 2.0, levels).round(6), each)
    order = np.random.default_rng(1).permutation(level.size)
    columns = {"e": level[order], "own": level[order]}
    pq.write_table(pa.table(columns), tmp_path / "p.parquet", row_group_size=7_000)
    roster = accord.Spec.of(level) if neighbors == "add-remove" else None
    table = accord.table(tmp_path / "p.parquet", epsilon="e", neighbors=neighbors, roster=roster)
    for t in ("max", 0.5):
        kept = kept_by_level(table, "own", t)
        chances = {e: chance(e, 2.0 if t == "max" else t, neighbors) for e in np.unique(level).tolist()}
        for e, p in chances.items():
            assert kept[e] == each if p == 1 else plausible(kept[e], each, p)
        p = np.array(list(chances.values()))  # and all together, to within 6.2 standard deviations
        assert abs(sum(kept.values()) - each * p.sum()) < 6.2 * np.sqrt(each * (p * (1 - p)).sum())


def test_a_wrong_chance_would_be_found():
    assert not plausible(0, 1000, 0.1) and not plausible(300, 1000, 0.1) and plausible(100, 1000, 0.1)
    assert (
        not plausible(12_000, 12_000, 0.99)
        and not plausible(6_000, 12_000, 0.45)
        and plausible(6_100, 12_000, 0.5)
    )


@BOTH
def test_every_row_is_kept_by_a_draw_of_its_own(neighbors):
    """As often as the others, and not together with its neighbor."""
    runs, n = 100, 60
    table = people([0.7] * n + [1.0], neighbors)
    p = chance(0.7, 1.0, neighbors)
    kept = np.zeros((runs, n), dtype=bool)
    for run in kept:
        run[[i for i in accord.sample(ids, table).value if i < n]] = True
    assert all(plausible(int(column.sum()), runs, p) for column in kept.T)
    both = (kept[:, 1:] & kept[:, :-1]).sum(axis=0)
    assert all(plausible(int(k), runs, p * p) for k in both)
    assert plausible(int(kept.sum()), runs * n, p)


class SameWord:
    """Every row has the same random word."""

    def __init__(self, word):
        self.word = word

    def words(self, count):
        return np.full(count, self.word, dtype=np.uint64)


@pytest.mark.parametrize("distinct_levels", [3, 100], ids=["few levels", "many levels"])
def test_a_row_is_kept_if_and_only_if_its_word_is_below_its_chance(distinct_levels):
    """With probability c/2⁶³ for a chance of c: not one in 2⁶³ more, and those who opted out never."""
    levels = [0.0, *(k / 100 for k in range(1, distinct_levels + 1))]
    chances = np.array([5 * k for k in range(distinct_levels)], dtype=np.uint64)  # the lowest level: never
    table, query = people(levels), Algorithm("ids", ("id",), "arrow", ids)
    for word in (0, 1, 4, 5, 6, 9, 10, 11):
        rows = table.reader.rows(query, None, chances, SameWord(word))
        assert sorted(ids(rows, 1)) == [i for i in range(1, distinct_levels + 1) if word < 5 * (i - 1)]


def test_rows_are_kept_by_what_people_have_left_and_never_of_those_who_have_nothing():
    """Where their level decides what is left: a chance for each amount, the smallest first."""
    table, query = people([0.25, 0.5, 1.0, 0.0]), Algorithm("ids", ("id",), "arrow", ids)
    left = accord.Spec.from_groups({0.1: 1, 0.3: 1})
    remaining = Remaining(left, np.array([0, 300_000, 100_000]), None)
    for word, kept in ((0, [1, 2]), (2, [1, 2]), (3, [1]), (7, [1]), (8, [])):
        rows = table.reader.rows(query, remaining, np.array([3, 8], dtype=np.uint64), SameWord(word))
        assert sorted(ids(rows, 1)) == kept


@BOTH
def test_opted_out_people_are_never_passed(neighbors):
    levels = [0.0, 0.5, 1e-9, 1.0, 0.0, 1.0] * 50
    table = people(levels, neighbors)
    seen = set()
    for t in ("max", "min", 0.000001, 20.0):
        seen |= {levels[i] for i in accord.sample(ids, table, t=t).value}
    assert seen == {0.5, 1.0}


@pytest.mark.parametrize(("default", "own"), [(1.0, 1.0), (0.25, 0.25), (0, 0.0), (inf, inf)])
def test_people_without_a_level_have_the_default(default, own):
    n = 2_000
    table = accord.table(
        pa.table({"k": ["none"] * n + ["some"] * n, "e": [None] * n + [1.0] * n}),
        epsilon="e",
        default=default,
    )
    kept = kept_by_level(table, "k", t=1.0)
    assert kept["some"] == n
    p = chance(own, 1.0, "replace")
    assert kept["none"] == n * p if p in (0, 1) else plausible(kept["none"], n, p)


def test_people_without_a_level_among_many_levels_have_the_default():
    levels = [*np.linspace(0.01, 1.0, 100).tolist(), *[None] * 4_000]
    table = accord.table(
        pa.table({"none": [e is None for e in levels], "e": levels}), epsilon="e", default=0.6
    )
    assert plausible(kept_by_level(table, "none")[True], 4_000, chance(0.6, 1.0, "replace"))


@BOTH
def test_people_without_a_level_and_no_default(neighbors):
    table = people([None, 1.0, 1.0], neighbors)
    if neighbors == "add-remove":  # who is not on the roster is not read
        assert sorted(accord.sample(ids, table).value) == [1, 2]
        return
    with pytest.raises(SpecError, match="1 of 3 people have no level"):
        accord.sample(ids, table)


@pytest.mark.parametrize("default", [None, "strict", "out"])
def test_tiers_have_their_chance(default):
    n = 3_000
    tiers = {"strict": 0.1, "it's": 0.6, "open": 1.0, "out": 0}
    names = ["strict", "it's", "open", "out", *([None] if default else [])]
    columns = {"k": np.repeat(np.array(names, dtype=object), n), "own": np.repeat(np.arange(len(names)), n)}
    table = accord.table(pa.table(columns), epsilon="k", tiers=tiers, default=default)
    kept = kept_by_level(table, "own")
    for k, name in enumerate(names):
        p = chance(tiers[name or default], 1.0, "replace")
        assert kept[k] == n * p if p in (0, 1) else plausible(kept[k], n, p)


def test_many_tiers_have_their_chance():
    tiers = {f"t{k}": (k + 1) / 100 for k in range(100)}
    columns = {"k": np.repeat(list(tiers), 400), "own": np.repeat(np.arange(100), 400)}
    kept = kept_by_level(accord.table(columns, epsilon="k", tiers=tiers), "own")
    assert (
        all(plausible(kept[k], 400, chance((k + 1) / 100, 1.0, "replace")) for k in range(99))
        and kept[99] == 400
    )


def test_people_beside_the_roster_are_not_passed():
    levels = np.array([0.5] * 100 + [0.7] * 100 + [1.0] * 100 + [-1.0] * 50 + [nan] * 50 + [1e9] * 50)
    table = accord.table(
        {"e": levels, "own": levels},
        epsilon="e",
        neighbors="add-remove",
        roster=accord.Spec.from_groups({0.5: 7, 1.0: 9}),
    )
    assert set(kept_by_level(table, "own", runs=3)) == {0.5, 1.0}


def test_a_person_with_two_rows_is_not_passed_under_add_remove():
    columns = {"id": [1, 1, 2, None, 3], "e": [1.0] * 5}
    roster = accord.Spec.from_groups({1.0: 5})
    table = accord.table(pa.table(columns), epsilon="e", user="id", neighbors="add-remove", roster=roster)
    assert sorted(accord.sample(ids, table, columns=["id"]).value) == [2, 3]


def test_rows_of_nobody_are_not_passed_under_add_remove():
    """Not even if there is one: the next, however strict, would take it away."""
    roster = accord.Spec.from_groups({0.1: 5, inf: 5})
    for rows in ({"id": [1.0, nan], "e": [inf] * 2}, {"id": [1.0, nan, nan], "e": [inf, inf, 0.1]}):
        table = accord.table(pa.table(rows), epsilon="e", user="id", neighbors="add-remove", roster=roster)
        assert accord.sample(ids, table, t=inf, columns=["id"]).value == [1.0]


@pytest.mark.parametrize(
    "name", ["level", "word", "chance", "sure", "source", "words", "chances", "kept", 'a "b"', "x.y"]
)
def test_other_names_are_just_names(name):
    for levels in ([1.0, 0.000001], [*np.linspace(1e-6, 99e-6, 99).tolist(), 1.0]):
        n = len(levels)
        table = accord.table({name: np.array([5.0] * (n - 1) + [7.0]), "e": sorted(levels)}, epsilon="e")
        assert {name: 7.0} in accord.sample(lambda rows, epsilon: rows.to_pylist(), table).value


# --- ledger -------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def ledger(tmp_path):
    return accord.Ledger(tmp_path / "ledger.db")


@pytest.fixture
def table(ledger):
    table = people([0.5, 1.0, 1.0, 0.0], user="id")
    ledger.register(table, "people")
    return table


def remaining(ledger, table):
    spec = ledger.remaining(table)
    return dict(zip(spec.levels, spec.counts, strict=True))


def test_with_a_ledger_a_share_is_required(ledger, table):
    with pytest.raises(QueryError, match=r"share=0\.1 is a tenth"):
        accord.sample(lambda rows, epsilon: 1, table, ledger=ledger)
    assert remaining(ledger, table) == {0.5: 1, 1.0: 2} and ledger.history() == []


def test_it_is_charged_before_it_is_run(ledger, table):
    def algorithm(rows, epsilon):
        seen.append((remaining(ledger, table), [h["state"] for h in ledger.history()]))
        return epsilon

    seen = []
    released = accord.sample(algorithm, table, share=0.1, ledger=ledger)
    assert released.value == pytest.approx(0.05) and dict(released.charges) == {0.5: 0.05, 1.0: 0.1}
    assert seen == [({0.45: 1, 0.9: 2}, ["no answer"])]
    (entry,) = ledger.history()
    assert (entry["state"], entry["queries"]) == ("released", ["algorithm algorithm"])
    assert entry["receipts"] == [{k: v for k, v in released.receipt().items() if k != "ledger"}]
    assert released.booked.entry == 3 and not ledger.verify().problems


@pytest.mark.parametrize("fault", ["raises", "returns nothing", "is interrupted"])
def test_a_failure_is_charged_and_settled(ledger, table, fault):
    def algorithm(rows, epsilon):
        if fault == "is interrupted":
            raise KeyboardInterrupt
        if fault == "raises":
            raise ValueError(SECRET)

    with pytest.raises(KeyboardInterrupt if fault == "is interrupted" else QueryError) as caught:
        accord.sample(algorithm, table, share=0.1, ledger=ledger)
    assert remaining(ledger, table) == {0.45: 1, 0.9: 2}
    (entry,) = ledger.history()
    assert (entry["state"], entry["receipts"]) == ("failed", [])
    assert ledger.verify().open == 0 and SECRET not in json.dumps(ledger.export())
    fault = caught.value
    while fault is not None:  # of whatever led to it, too
        assert SECRET not in f"{fault!r} {fault}"
        assert fault.__cause__ is None
        fault = fault.__context__


def test_nothing_is_run_that_cannot_be_paid(ledger, table):
    ran = []
    accord.sample(lambda rows, epsilon: 1, table, share=0.75, ledger=ledger)
    with pytest.raises(BudgetError):
        accord.sample(lambda rows, epsilon: ran.append(1) or 1, table, share=0.5, ledger=ledger)
    assert not ran and remaining(ledger, table) == {0.125: 1, 0.25: 2}


def test_what_is_left_by_person_decides_who_is_kept(ledger, tmp_path):
    """One of two people of a level has spent in another table. Then levels do not tell what is left, and t is kept for both."""
    both = accord.table(pa.table({"id": [1, 2], "e": [1.0, 1.0]}), epsilon="e", user="id")
    one = accord.table(pa.table({"id": [2], "e": [1.0]}), epsilon="e", user="id")
    ledger.register(both, "both")
    ledger.register(one, "one")
    accord.sample(lambda rows, epsilon: 1, one, share=0.999999, ledger=ledger, columns=["id"])
    assert remaining(ledger, both) == {0.000001: 1, 1.0: 1}
    query = accord.sample(lambda rows, epsilon: 1, both, share=0.000001, columns=["id"]).plan.query
    plan = accord.plan(ledger.remaining(both), query, "sample")
    released = both.release(plan, ledger=ledger)
    assert released.value == 1 and dict(released.charges) == {0.000001: 0.000001, 1.0: 1.0}
    assert remaining(ledger, both) == {}


# --- faults, and what is told of them --------------------------------------------------------------------------------------------


class HiddenError(Exception):
    pass


def raising(error):
    def algorithm(rows, epsilon):
        try:
            raise KeyError(SECRET)
        except KeyError as first:
            raise error from first

    return algorithm


@pytest.mark.parametrize(
    "error",
    [
        ValueError(SECRET),
        HiddenError(SECRET),
        QueryError(SECRET),
        SourceError(SECRET),
        ExceptionGroup(SECRET, [OSError(SECRET)]),
        SystemExit(SECRET),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_an_algorithm_raises_is_not_told(error):
    with pytest.raises(QueryError) as caught:
        accord.sample(raising(error), people())
    message = str(caught.value)
    assert (
        message.startswith(f"the algorithm algorithm raised a {type(error).__name__}. ")
        and "SECRET" not in message
    )
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert "lost their charge all the same" in message


def test_returning_nothing_is_a_fault():
    with pytest.raises(QueryError, match=r"^the algorithm nothing returned nothing") as caught:
        accord.sample(lambda_named("nothing", None), people())
    assert caught.value.__cause__ is None and caught.value.__context__ is None


def lambda_named(name, value):
    def algorithm(rows, epsilon):
        return value

    algorithm.__name__ = name
    return algorithm


def test_a_wrong_signature_is_a_fault_of_the_algorithm():
    with pytest.raises(QueryError, match="raised a TypeError"):
        accord.sample(lambda rows: 1, people())


class Callable:
    def __call__(self, rows, epsilon):
        return 7


def test_anything_that_can_be_called_is_an_algorithm():
    released = accord.sample(Callable(), people())
    assert released.value == 7 and released.plan.query.label == "algorithm Callable"
    assert "algorithm Callable by sample" in str(released)


FITTED = LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0])
ODD = {
    "an estimator": (FITTED, "a LinearRegression"),
    "an object": (SimpleNamespace(a=1), "a SimpleNamespace"),
    "a mock": (MagicMock(), None),
    "a number": (1.5, 1.5),
    "a whole number": (10**30, 10**30),
    "not a number": (nan, "nan"),
    "infinite": (-inf, "-inf"),
    "true": (True, True),
    "text": (SECRET, SECRET),
    "bytes": (b"abc", "a bytes"),
    "complex": (1j, "a complex"),
    "numpy's number": (np.float32(0.5), 0.5),
    "numpy's nan": (np.float64(nan), "nan"),
    "numpy's truth": (np.bool_(True), True),
    "an array": (np.arange(4).reshape(2, 2), [[0, 1], [2, 3]]),
    "an array with nan": (np.array([1.0, nan]), [1.0, "nan"]),
    "an array of objects": (np.array([FITTED, None], dtype=object), ["a LinearRegression", None]),
    "a long number": (np.longdouble(0.5), None),
    "long numbers": (np.array([0.5, nan], dtype=np.longdouble), None),
    "a span of time": (np.timedelta64(3, "ns"), None),
    "a record": (np.array([(1, 2.0)], dtype="i4,f8")[0], None),
    "a date": (np.datetime64("2026-01-31"), "2026-01-31"),
    "a list": ([1, nan, [np.int64(2)]], [1, "nan", [2]]),
    "a tuple": ((1, (2.0, None)), [1, [2.0, None]]),
    "a series": (pd.Series([1.0, nan]), "a Series"),
    "a frame": (pd.DataFrame({"a": [1]}), "a DataFrame"),
    "a set": ({1}, "a set"),
    "a dict": ({"a": 1, 2: "b"}, {"a": 1, "2": "b"}),
    "a dict with nan": ({"a": nan}, {"a": "nan"}),
    "a dict of arrays": ({"coef": np.array([1.0, 2.0]), "n": np.int64(3)}, {"coef": [1.0, 2.0], "n": 3}),
    "a dict of dicts": ({"a": {"b": (np.float64(1), FITTED)}}, {"a": {"b": [1.0, "a LinearRegression"]}}),
}


@pytest.mark.parametrize("case", ODD)
def test_whatever_is_returned_is_the_value_and_its_receipt_is_json(case):
    value, written = ODD[case]
    released = accord.sample(lambda rows, epsilon: value, people())
    assert released.value is value
    receipt = json.loads(to_json(released.receipt()))
    assert written is None or receipt["value"] == written
    assert receipt["interval"] is None and receipt["rmse"] is None and receipt["rmse_here"] is None
    assert receipt["query"] == {"statistic": "algorithm", "name": "<lambda>", "columns": ["id", "v", "w"]}
    assert isnan(released.rmse) and "by sample" in str(released) and "by sample" in repr(released)


@pytest.mark.parametrize("case", ["a dict with nan", "a dict of arrays", "an estimator"])
def test_whatever_is_returned_can_be_booked(ledger, table, case):
    value, written = ODD[case]
    accord.sample(lambda rows, epsilon: value, table, share=0.1, ledger=ledger)
    (entry,) = ledger.history()
    assert json.loads(to_json({"receipts": entry["receipts"]}))["receipts"][0]["value"] == written


def test_an_algorithm_has_no_interval():
    released = accord.sample(lambda rows, epsilon: 1.0, people())
    with pytest.raises(QueryError, match="only it can tell its error"):
        released.interval()


def test_what_an_algorithm_takes_for_granted_is_said():
    assumptions = accord.sample(Callable(), people()).receipt()["assumptions"]
    assert any("Callable is ε-differentially private under add-remove" in a for a in assumptions)


# --- bad arguments --------------------------------------------------------------------------------------------------------------

BAD = {
    "algorithm= is a int. Give a function of (rows, epsilon).": (
        QueryError,
        lambda: accord.sample(3, people()),
    ),
    "a sample is taken of a table of accord.table, not of dict.": (
        QueryError,
        lambda: accord.sample(ids, {"a": [1]}),
    ),
    "rows='list' is not a form": (QueryError, lambda: accord.sample(ids, people(), rows="list")),
    "rows='panda' is not a form that rows can have: did you mean 'pandas'?": (
        QueryError,
        lambda: accord.sample(ids, people(), rows="panda"),
    ),
    "columns='v' is not a list. Give columns=['age', …].": (
        QueryError,
        lambda: accord.sample(ids, people(), columns="v"),
    ),
    "there is no column 'vv': did you mean 'v'?": (
        QueryError,
        lambda: accord.sample(ids, people(), columns=["vv"]),
    ),
    "a column is named by a text, and 3 is not one": (
        QueryError,
        lambda: accord.sample(ids, people(), columns=[3]),
    ),
    't="best" needs a predicted error': (QueryError, lambda: accord.sample(ids, people(), t="best")),
    "t='median' is not a level.": (PlanError, lambda: accord.sample(ids, people(), t="median")),
    "t=0 is not a level.": (PlanError, lambda: accord.sample(ids, people(), t=0)),
    "t=-1 is not a level.": (PlanError, lambda: accord.sample(ids, people(), t=-1)),
    "t=nan is not a level.": (PlanError, lambda: accord.sample(ids, people(), t=nan)),
    "t=10000000.0 is not a level.": (PlanError, lambda: accord.sample(ids, people(), t=1e7)),
    "t=[1] is not a level.": (PlanError, lambda: accord.sample(ids, people(), t=[1])),
    "keeps nobody at t = inf": (PlanError, lambda: accord.sample(ids, people(), t=inf)),
    "share=0 is not a fraction": (PlanError, lambda: accord.sample(ids, people(), share=0)),
    "share=2 is not a fraction": (PlanError, lambda: accord.sample(ids, people(), share=2)),
    "nobody is left to ask": (PlanError, lambda: accord.sample(ids, people([0.0, 0.0]))),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_arguments_are_refused(message):
    error, attempt = BAD[message]
    with pytest.raises(error) as refused:
        attempt()
    assert message in str(refused.value) and type(refused.value) is error


@pytest.mark.parametrize("columns", [[], 5, [["v"]], [None]], ids=str)
def test_odd_columns_are_refused_by_accord_itself(columns):
    with pytest.raises(AccordError):
        accord.sample(lambda rows, epsilon: rows.column_names, people(), columns=columns)


def test_what_is_not_a_number_is_missing_among_numbers():
    table = accord.table({"v": ["1", SECRET], "e": [inf, inf]}, epsilon="e")
    rows = accord.sample(lambda rows, epsilon: rows, table, rows="numpy").value
    assert rows[0] == [1.0] and np.isnan(rows[1]).all()
