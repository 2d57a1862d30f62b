"""With neighbors add-remove, nobody's presence costs more than their charge, and nothing else tells of it.

As in test_exact_privacy.py and test_exact_selection.py, exact and without sampling: neighbors are tables with and without one person. Where noise is added,
the integers that it is added to move by charge × scale, as rational numbers; where a point is chosen, probabilities follow from the scores.
(`sample`: test_sample.py.) Then on DuckDB: whoever is there, and whatever stands in their row, decides neither whether a release fails nor what it says beside its value.
"""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from math import inf, nan

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from joint_law import charges_of, largest_losses
from noises import Fixed
from strategies import person_values, summary_of

import accord
from accord.budget import MICRO, PUBLIC
from accord.errors import LedgerError, PlanError, SourceError
from accord.lab.audit.case_plans import declared_for
from accord.ledger import Ledger
from accord.mechanisms import ALL
from accord.people.summary import Summary
from accord.relation import ADD_REMOVE, REPLACE
from accord.release.answer import answer as answer_of
from accord.spec import Spec
from accord.statistics.target_sums import Additive

BY_NAME = {m.name: m for m in ALL}
SPECS = {
    "two levels": Spec.of([0.1, 1.0]),
    "three levels, two of one": Spec.of([0.2, 0.2, 0.7]),
    "odd levels": Spec.of([0.000003, 0.123457, 2.5]),
    "public among them": Spec.of([0.1, 1.0, inf]),
}
NUMBERS = {
    "mean": accord.mean("x", bounds=(0, 2), step=1, missing="none"),
    "mean on a fine grid": accord.mean("x", bounds=(-3, 5), missing="none"),
    "sum": accord.sum("x", bounds=(-1, 2), step=1, missing="none"),
    "sum above zero": accord.sum("x", bounds=(2, 4), step=0.5, missing="none"),
    "sum below zero": accord.sum("x", bounds=(-4, -2), step=1, missing="none"),
    "proportion": accord.proportion("x > 0", missing="none"),
    "variance": accord.variance("x", bounds=(0, 3), step=1, missing="none"),
    "standard deviation": accord.std("x", bounds=(-1, 1), step=1, missing="none"),
    "count": accord.count(where="x > 0"),
    "count of everyone": accord.count(),
    "histogram of two cells": accord.histogram("x", edges=[0, 1, 2], missing="none"),
    "histogram of three cells": accord.histogram("x", edges=[0, 1, 2, 3], missing="none"),
    "histogram with nowhere": accord.histogram("x", categories=["a", "b"]),
}
GRID = {"bounds": (0, 3), "step": 1, "missing": "none"}
RANKS = {
    "median": accord.median("x", **GRID),
    "quantile 0.9": accord.quantile("x", 0.9, **GRID),
    "quantile 0.2": accord.quantile("x", 0.2, **GRID),
    "two quantiles": accord.quantile("x", [0.25, 0.75], **GRID),
    "min": accord.min("x", **GRID),
    "max": accord.max("x", **GRID),
}
QUERIES = NUMBERS | RANKS
ADDING = ("minimum", "threshold", "proportional", "affine", "fallah")
CHOOSING = ("minimum", "threshold", "rank")


def planned(spec, query, name, **options):
    """The plan by a mechanism, or None where it is refused."""
    options = {"neighbors": "add-remove", **options}
    query = declared_for(name, query)
    candidate = next(c for c in accord.plan(spec, query, **options).candidates if c.mechanism == name)
    return None if candidate.rmse is None else accord.plan(spec, query, name, **options)


def values_of(query):
    return [(1,)] if query.statistic == "count" and query.condition is None else person_values(query)


def worst_losses(plan, loss):
    """For each level the largest loss(table, table without one person); 0 for who is charged ∞."""
    worst = [0] * plan.spec.micro.size
    level_of = np.repeat(np.arange(plan.spec.micro.size), plan.spec.people).tolist()
    for table in product([None, *values_of(plan.query)], repeat=plan.spec.total):
        for person, level in enumerate(level_of):
            if table[person] is not None and plan.calibration.charges[level] != PUBLIC:
                worst[level] = max(worst[level], loss(table, (*table[:person], None, *table[person + 1 :])))
    return worst


# ---- noise -----------------------------------------------------------------------------------------------------------


def laplace_loss(plan, answer=None):
    """The exact log ratio, as a rational number."""
    target, calibration = plan.target, plan.calibration
    answer = answer or plan.method.answer

    @cache
    def output(table, *draws):
        noise = Fixed(*draws)
        released = answer(summary_of(plan.spec, plan.query, table), calibration, target, noise)
        return released, noise.scales

    def loss(one, other):
        (here, scales), (there, same) = output(one), output(other)
        assert scales == same, "the noise must not depend on who is there"
        assert len(scales) == (len(here) if any(c not in (0, PUBLIC) for c in calibration.charges) else 0)
        if not scales:
            assert here == there, "who is not public decides a release without noise"
        cost = Fraction(0)
        for k, scale in enumerate(scales):
            unit, _ = output(other, *([0] * k), 1)
            moved = [a - b for a, b in zip(unit, there, strict=True)]
            assert [j for j, x in enumerate(moved) if x] == [k]
            shift = (here[k] - there[k]) / moved[k]
            assert shift.denominator == 1, "no integer draw gives the same output"
            cost += abs(shift) / scale
        return cost

    return loss


@pytest.mark.parametrize("query", NUMBERS)
@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("name", ADDING)
def test_the_loss_is_exactly_the_charge(name, spec, query):
    plan = planned(SPECS[spec], NUMBERS[query], name)
    if plan is None:
        assert name == "proportional" and spec == "public among them"
        return
    charges = plan.calibration.charges.tolist()
    assert any(charges)
    for charge, lost in zip(charges, worst_losses(plan, laplace_loss(plan)), strict=True):
        assert lost == (0 if charge == PUBLIC else Fraction(charge, MICRO))


@pytest.mark.parametrize("t", [0.1, 0.4, 1.0, inf])
@pytest.mark.parametrize("query", ["mean", "sum", "count", "histogram of three cells"])
def test_the_loss_is_exactly_the_charge_at_any_threshold_and_share(query, t):
    plan = accord.plan(
        SPECS["public among them"], NUMBERS[query], "threshold", 0.4, t=t * 0.4, neighbors="add-remove"
    )
    for charge, lost in zip(
        plan.calibration.charges.tolist(), worst_losses(plan, laplace_loss(plan)), strict=True
    ):
        assert lost == (0 if charge == PUBLIC else Fraction(charge, MICRO))


@pytest.mark.parametrize("query", NUMBERS)
@pytest.mark.parametrize("name", ADDING)
def test_half_the_noise_is_found_out(name, query):
    class Half(Fixed):
        def laplace(self, scale):
            return super().laplace(scale / 2)

    plan = planned(SPECS["two levels"], NUMBERS[query], name)
    good = plan.method.answer

    def bad(summary, calibration, target, noise):
        half = Half(*noise.draws)
        released = good(summary, calibration, target, half)
        noise.scales = half.scales
        return released

    charges = plan.calibration.charges.tolist()
    assert worst_losses(plan, laplace_loss(plan, bad)) == [Fraction(2 * c, MICRO) for c in charges]


def test_one_noise_for_both_sums_is_found_out():
    """A mean whose second sum is everyone on the roster minus the first, as under replace: then who is there would be assumed."""
    plan = planned(SPECS["two levels"], NUMBERS["mean"], "affine")
    good = plan.method.answer

    def bad(summary, calibration, target, noise):
        above, below = good(summary, calibration, target, Fixed())
        noisy = noise.laplace(Fraction(MICRO * target.sensitivity))
        whole = int(calibration.charges @ summary.people)
        return [above + Fraction(noisy, whole), below]

    with pytest.raises(AssertionError):
        worst_losses(plan, laplace_loss(plan, bad))


# ---- choices ---------------------------------------------------------------------------------------------------------


class Recording:
    def __init__(self, sharper=1, narrower=1):
        self.sharper, self.narrower, self.laws, self.scales, self.rounded = sharper, narrower, [], [], []

    def choose(self, scores, scale):
        self.rounded.append(scale)
        logs = np.array([int(s) for s in scores], dtype=float) / (scale // self.sharper)
        logs -= logs.max()
        self.laws.append(logs - np.log(np.exp(logs).sum()))
        return 0

    def laplace(self, scale):
        self.scales.append(scale / self.narrower)
        return 0


def choice_loss(plan, sharper=1, narrower=1):
    """The largest log ratio. Given the table, choices and the noise on the size are independent: they add up."""
    query, target, answer = plan.query, plan.target, plan.method.answer

    @cache
    def laws(table):
        noise = Recording(sharper, narrower)
        released = answer(summary_of(plan.spec, query, table), plan.calibration, target, noise)
        assert len(noise.scales) == (1 if noise.laws else 0) and len(released) == target.outputs + 1
        return noise.laws, released, noise.scales

    def loss(one, other):
        (here, released, scales), (there, same, scales_there) = laws(one), laws(other)
        assert len(here) == len(there) and scales == scales_there
        if not here:
            assert released == same, "who is not public decides a release without noise"
            return 0.0
        moved = abs(released[-1] - same[-1]) * MICRO
        assert moved.denominator == 1, "no integer draw gives the same size"
        pairs = list(zip(here, there, strict=True))
        choices = max(sum(float((sign * (a - b)).max()) for a, b in pairs) for sign in (1, -1))
        return choices + float(moved / scales[0])

    return loss


CHOICES = {
    **SPECS,
    "three levels": Spec.of([0.3, 2.0, 8.0]),
    "all alike": Spec.of([2.0, 2.0, 2.0]),
}


@pytest.mark.parametrize("query", RANKS)
@pytest.mark.parametrize(("spec", "share"), [*((spec, 1.0) for spec in CHOICES), ("three levels", 0.37)])
@pytest.mark.parametrize("name", CHOOSING)
def test_nobody_loses_more_than_their_charge(name, spec, share, query):
    plan = planned(CHOICES[spec], RANKS[query], name, share=share)
    if plan.draws_together:  # another law, with public people among the others
        assert PUBLIC in plan.spec.micro
        for charge, most in zip(charges_of(plan), largest_losses(plan), strict=True):
            assert most <= charge + 1e-9
        return
    lost = worst_losses(plan, choice_loss(plan))
    for charge, most in zip(plan.calibration.charges.tolist(), lost, strict=True):
        assert charge == PUBLIC or most <= charge / MICRO + 1e-12


EVEN = Spec.of([4.0, 4.0, 4.0, 4.0])


@pytest.mark.parametrize("query", RANKS)
@pytest.mark.parametrize("name", ["threshold", "rank"])
def test_half_the_noise_of_a_choice_is_found_out(name, query):
    """Of two quantiles at once, a third of it: each has its own half of the charge, and their largest losses are not at the same table."""
    plan = planned(EVEN, RANKS[query], name)
    assert worst_losses(plan, choice_loss(plan))[0] <= 4.0 + 1e-12
    assert worst_losses(plan, choice_loss(plan, 3 if query == "two quantiles" else 2))[0] > 4.0 + 1e-12


@pytest.mark.parametrize("name", CHOOSING)
def test_the_size_takes_the_rest_of_the_charge(name):
    """A tenth of it, exactly: with half the noise a tenth more is lost, with a tenth of it more than the charge."""
    plan = planned(EVEN, RANKS["median"], name)
    lost = worst_losses(plan, choice_loss(plan))[0]
    assert worst_losses(plan, choice_loss(plan, narrower=2))[0] == pytest.approx(lost + 0.4)
    (scale,) = sizes_of(plan)
    assert scale == 10 * MICRO
    extreme = planned(EVEN, accord.max("x", bounds=(0, 40), step=1), name)
    assert worst_losses_between(extreme, narrower=10) > 4.0 + 1e-12


def sizes_of(plan):
    noise = Recording()
    summary = summary_of(plan.spec, plan.query, [(0,)] * plan.spec.total)
    released = plan.method.answer(summary, plan.calibration, plan.target, noise)
    assert released[-1] == Fraction(int(plan.calibration.charges @ plan.spec.people), MICRO)
    return noise.scales


def worst_losses_between(plan, **options):
    """Of somebody at the end of the grid, beside people who all are there or all are not."""
    loss = choice_loss(plan, **options)
    return max(
        loss(((mine,), *[other] * (plan.spec.total - 1)), (None, *[other] * (plan.spec.total - 1)))
        for mine in (0, plan.query.cells)
        for other in (None, (0,), (plan.query.cells,))
    )


@pytest.mark.parametrize("bounds", [(-4, -2), (-1, 2), (2, 3), (0, 5)])
def test_somebody_who_is_absent_adds_nothing_to_a_sum(bounds):
    """So that 0 is among what one person may add, and among what a sum of all may be."""
    low, high = map(Fraction, bounds)
    assert REPLACE.ends(low, high) == (low, high)
    assert ADD_REMOVE.ends(low, high) == (min(low, 0), max(high, 0))
    target = accord.sum("x", bounds=bounds, missing="none").under(ADD_REMOVE)
    assert target.possible(10) == (min(10 * low, 0), max(10 * high, 0))


@pytest.mark.parametrize("p", [0.5, 0.9, 0.2])
def test_scores_move_by_less_where_people_come_and_go(p):
    """By max(p, 1 − p) charges and not by 1: the scale is smaller by that, and wider by what the size takes."""
    asked = accord.quantile("x", p, **GRID)
    scales = {}
    for neighbors in ("add-remove", "replace"):
        plan = accord.plan(EVEN, asked, "rank", neighbors=neighbors)
        noise = Recording()
        summary = summary_of(EVEN, plan.query, [(0,), (1,), (2,), None])
        plan.method.answer(summary, plan.calibration, plan.target, noise)
        (scales[neighbors],) = noise.rounded
        assert len(noise.scales) == (neighbors == "add-remove")
    exact = scales["replace"] * max(asked.ps[0], 1 - asked.ps[0]) / Fraction(9, 10)
    assert scales["add-remove"] - 1 < exact <= scales["add-remove"]


# ---- what is refused, and what is predicted --------------------------------------------------------------------------


def test_mechanisms_that_prove_replace_only_are_refused_with_the_reason():
    for query in QUERIES.values():
        refused = {
            c.mechanism: c.note
            for c in accord.plan(SPECS["two levels"], query, neighbors="add-remove").candidates
            if c.rmse is None
        }
        for m in ALL:
            if ADD_REMOVE not in m.relations:
                assert refused[m.name] == "proves neighbors replace only"
    with pytest.raises(
        PlanError, match=r"^mix cannot answer the mean of x: proves neighbors replace only\. Use one of"
    ):
        accord.plan(SPECS["two levels"], NUMBERS["mean"], "mix", neighbors="add-remove")
    assert {m.name for m in ALL if ADD_REMOVE not in m.relations} >= {"mix", "pe", "stretch"}


@pytest.mark.parametrize(
    "query", ["mean", "sum", "count", "histogram of three cells", "histogram of two cells"]
)
def test_a_question_of_the_other_notion_is_not_taken_over(query):
    """What a plan for add-remove was asked is planned afresh where values are replaced: nobody loses more."""
    spec = SPECS["two levels"]
    asked = accord.plan(spec, NUMBERS[query], "affine", neighbors="add-remove").query
    plan = accord.plan(spec, asked, "affine")
    assert plan.target == NUMBERS[query].under(REPLACE)
    assert overcharged_where_replaced(plan) == set()


@pytest.mark.parametrize("query", ["mean", "sum", "histogram of three cells", "histogram of two cells"])
def test_a_target_of_the_other_notion_is_found_out(query):
    """Two sums, or cells without a second noise, are private for who comes or goes.

    Where values are replaced they would cost twice the charge.
    """
    plan = planned(SPECS["two levels"], NUMBERS[query], "affine")
    assert plan.target == NUMBERS[query].under(ADD_REMOVE) and 0 not in plan.calibration.charges
    assert overcharged_where_replaced(plan) == {0, 1}


def overcharged_where_replaced(plan):
    """Who of two people can lose more than their charge by another value."""
    values, loss, overcharged = values_of(plan.query), laplace_total(plan), set()
    for table in product(values, repeat=2):
        for person, value in product(range(2), values):
            other = (*table[:person], value, *table[person + 1 :])
            if loss(table, other) > Fraction(int(plan.calibration.charges[person]), MICRO):
                overcharged.add(person)
    return overcharged


def laplace_total(plan):
    """The loss where each draw moves its own output, or one output its complement."""
    answer = plan.method.answer

    def output(table):
        noise = Fixed()
        return answer(
            summary_of(plan.spec, plan.query, table), plan.calibration, plan.target, noise
        ), noise.scales

    def loss(one, other):
        (here, scales), (there, _) = output(one), output(other)
        whole = int(plan.calibration.charges @ plan.spec.people)
        return sum(abs(a - b) * whole / scale for a, b, scale in zip(here, there, scales, strict=False))

    return loss


def test_counting_everyone_is_a_question_now():
    spec = SPECS["two levels"]
    assert accord.plan(spec, accord.count()).mechanism == "public"
    assert accord.plan(spec, accord.count(), neighbors="add-remove").mechanism != "public"
    many = Spec.from_groups({0.5: 1_000, 2.0: 1_000})
    plan = accord.plan(many, accord.count(), neighbors="add-remove")
    assert plan.mechanism in BY_NAME and any(plan.charges.values())


@pytest.mark.parametrize("query", QUERIES)
def test_without_noise_it_is_the_plain_statistic_of_who_is_there(query):
    """All of one level: 6 of the 8 on the roster. (A count or a sum of them, not of the roster.)"""
    spec = Spec.of([1.0] * 8)
    plan = planned(spec, QUERIES[query], "affine" if query in NUMBERS else "rank")
    values = values_of(plan.query)
    rows = [values[k % len(values)] for k in (0, 1, 1, 2, 0, 1)]
    value, _ = answer_of(plan, [summary_of(spec, plan.query, [None, *rows, None])], Fixed())
    x = np.array(rows, dtype=float)
    match plan.query.statistic:
        case "histogram":
            assert list(value.values()) == x.sum(axis=0).tolist()
        case "count":
            assert value == x.sum()
        case "mean" | "sum":
            points = float(plan.query.low) + float(plan.query.step) * x
            assert value == pytest.approx(
                points.mean() if plan.query.statistic == "mean" else points.sum(), rel=1e-12
            )
        case "proportion":
            assert value == pytest.approx(x.mean(), rel=1e-12)
        case "variance" | "std":
            spread = float(plan.query.step) * np.std(x)
            assert value == pytest.approx(
                spread**2 if plan.query.statistic == "variance" else spread, rel=1e-12
            )
        case _:
            points = value if isinstance(value, list) else [value]
            for point, p in zip(points, plan.calibration.ps, strict=True):
                off = [max(0, (x < r).sum() - p * 6, (x > r).sum() - (1 - p) * 6) for r in range(4)]
                assert off[int(point)] == min(off)


def test_a_mean_of_nobody_is_the_middle_and_its_interval_everything():
    spec = Spec.of([1.0] * 8)
    plan = planned(spec, accord.mean("x", bounds=(2, 6), step=1), "affine")
    for draws, value in (((0, 0), 4.0), ((-5, 3), 4.0), ((10**9, -(10**8)), 6.0), ((-(10**8), 10**9), 2.0)):
        nobody = summary_of(spec, plan.query, [None] * 8)
        assert answer_of(plan, [nobody], Fixed(*draws))[0] == value
    empty = accord.table(
        {"x": np.zeros(0), "e": np.zeros(0)}, epsilon="e", neighbors="add-remove", roster=spec
    )
    release = replace(empty.release(plan), released=(Fraction(0), Fraction(0)))
    assert release.interval() == (2.0, 6.0)


@pytest.mark.parametrize("neighbors", [REPLACE, ADD_REMOVE], ids=str)
@pytest.mark.parametrize("query", QUERIES)
def test_a_plan_keeps_the_question_and_its_target_knows_the_relation(query, neighbors):
    """However often it is planned: what is asked stays as it is; the target says who may come or go."""
    asked = QUERIES[query]
    plan = accord.plan(SPECS["two levels"], asked, neighbors=neighbors.name)
    again = accord.plan(SPECS["two levels"], plan.query, neighbors=neighbors.name)
    assert plan.query is asked and plan.target.query is asked
    assert plan.target.relation is plan.relation is neighbors
    assert again.target == plan.target == asked.under(neighbors) and not plan.target.about_members
    assert asked.under(REPLACE) != asked.under(ADD_REMOVE)
    assert plan.describe()["query"] == asked.describe()


# ---- on DuckDB -------------------------------------------------------------------------------------------------------

ROSTER = Spec.from_groups({0.5: 4, 2.0: 3, inf: 2, 0: 1})
TIERS = {"strict": 0.5, "open": 2.0, "public": inf, "out": 0.0}
TIERED = Spec.from_groups({"strict": 4, "open": 3, "public": 2, "out": 1}, TIERS)
NAMES = {0.5: "strict", 2.0: "open", inf: "public", 0.0: "out"}
PEOPLE = [("a", 1.0, 0.5), ("b", 2.0, 2.0), ("c", 0.0, 2.0), ("d", 1.0, inf)]
ASKED = {name: query for name, query in QUERIES.items() if name != "histogram with nowhere"}
SCHEMA = pa.schema([("id", pa.string()), ("x", pa.float64()), ("e", pa.float64()), ("tier", pa.string())])
# Who could be there as well: somebody on the roster, and whoever should not be.
MORE = {
    "on the roster": [("e", 2.0, 0.5)],
    "a missing value": [("e", None, 0.5)],
    "opted out": [("e", 2.0, 0.0)],
    "not on the roster": [("e", 2.0, 1.25)],
    "NaN": [("e", 2.0, nan)],
    "negative": [("e", 2.0, -1.0)],
    "too large": [("e", 2.0, 1e9)],
    "no level": [("e", 2.0, None)],
    "twice": [("e", 2.0, 0.5), ("e", 1.0, 0.5)],
    "twice, at two levels": [("e", 2.0, 0.5), ("e", 1.0, 2.0)],
    "one more of a": [("a", 2.0, 2.0)],
    "nobody": [(None, 2.0, 0.5)],
    "more than the roster has": [(f"e{k}", 2.0, 2.0) for k in range(20)],
}
READ = {
    "on the roster": 1, "a missing value": 1, "twice": 1, "twice, at two levels": 1, "more than the roster has": 20,
}  # fmt: skip


def rows_of(people):
    return {
        "id": [p[0] for p in people],
        "x": [p[1] for p in people],
        "e": [p[2] for p in people],
        "tier": [NAMES.get(p[2], None if p[2] is None else "unheard of") for p in people],
    }


def parquet(people, folder):
    path = folder / f"{len(list(folder.iterdir()))}.parquet"
    pq.write_table(pa.table(rows_of(people), schema=SCHEMA), path)
    return path


def arrow(people, folder):
    return pa.table(rows_of(people), schema=SCHEMA)


def arrays(people, folder):
    rows = rows_of(people)
    numbers = {
        name: np.array([nan if v is None else v for v in rows[name]], dtype=np.float64) for name in ("x", "e")
    }
    return {
        "id": np.array(rows["id"], dtype=object),
        **numbers,
        "tier": np.array(rows["tier"], dtype=object),
    }


def csv_file(people, folder):
    path = folder / f"{len(list(folder.iterdir()))}.csv"
    lines = [
        ",".join("" if v is None else str(v) for v in row)
        for row in zip(*rows_of(people).values(), strict=True)
    ]
    path.write_text("\n".join(["id,x,e,tier", *lines]) + "\n", encoding="utf-8")
    return path


def opened(form, people, folder, tiers=False, user="id"):
    options = (
        {"epsilon": "tier", "tiers": TIERS, "roster": TIERED} if tiers else {"epsilon": "e", "roster": ROSTER}
    )
    return accord.table(form(people, folder), user=user, neighbors="add-remove", **options)


def all_but_the_answer(release):
    return {
        name: part
        for name, part in release.receipt().items()
        if name
        not in ("time", "value", "interval", "rmse", "rmse_here")  # which follow from what was released
    }


@pytest.mark.parametrize(
    ("form", "tiers"), [(parquet, False), (arrays, False), (csv_file, False), (arrow, True), (arrays, True)]
)
def test_whoever_is_there_decides_nothing_but_the_value(form, tiers, tmp_path):
    """Receipts of neighboring tables are equal but for value, errors and time; and plans are, as text and as data.

    And only who is on the roster is read, and once: how many people are counted, for each thing that can stand in a row.
    """
    base, query = opened(form, PEOPLE, tmp_path, tiers), accord.mean("x", bounds=(0, 2), step=1)
    plan, receipt = base.plan(query, "affine"), all_but_the_answer(base.release(query, "affine"))
    for name, more in MORE.items():
        table = opened(form, [*PEOPLE, *more], tmp_path, tiers)
        assert all_but_the_answer(table.release(query, "affine")) == receipt
        assert counted(table, False) == counted(table, True) == 4 + READ.get(name, 0), name
    for people in ([], PEOPLE[1:], PEOPLE[:-1]):
        table = opened(form, people, tmp_path, tiers)
        assert all_but_the_answer(table.release(plan)) == receipt
        assert all_but_the_answer(table.release(query, "affine")) == receipt
        there = table.plan(query, "affine")
        assert str(there) == str(plan) and there.describe() == plan.describe()
        assert table.spec() == base.spec() and repr(table) == repr(base)
        assert counted(table, False) == counted(table, True) == len(people)


def counted(table, by_cell):
    """How many people are read: of a count, in its second column and in its cell 1."""
    summary = table.reader.summaries(accord.count(), by_cell=by_cell)[0]
    assert (summary.people == ROSTER.people).all()
    return int(sum(summary.amount[summary.output == 1]))


@pytest.fixture(scope="module")
def neighboring():
    """Without public people on the roster, so that every answer is noisy."""
    roster, strange = (
        Spec.from_groups({0.5: 4, 2.0: 3, 0: 1}),
        [row for more in MORE.values() for row in more],
    )
    return [
        accord.table(arrow(people, None), epsilon="e", user="id", neighbors="add-remove", roster=roster)
        for people in ([], PEOPLE, PEOPLE[1:], [*PEOPLE, *strange])
    ]


@pytest.mark.parametrize("mechanism", ["minimum", "threshold", "affine", "rank", "sample", "auto"])
@pytest.mark.parametrize("query", ASKED)
def test_no_mechanism_and_no_question_tells_who_is_there(neighboring, query, mechanism):
    said = []
    for table in neighboring:
        try:
            said.append(all_but_the_answer(table.release(ASKED[query], mechanism)))
        except PlanError as refused:
            said.append(str(refused))
    assert said == [said[0]] * 4


@pytest.fixture(scope="module")
def with_and_without():
    """Who comes, with the tables before and after; `word` is for categories."""

    def table(people):
        rows = rows_of(people)
        words = pa.array([None if v is None else "abc"[max(int(v), 0)] for v in rows["x"]], pa.string())
        source = pa.table({"id": rows["id"], "x": rows["x"], "word": words, "e": rows["e"]})
        return accord.table(source, epsilon="e", user="id", neighbors="add-remove", roster=ROSTER)

    before = table(PEOPLE)
    return [
        (one, before, table([*PEOPLE, one])) for one in (("e", 2.0, 0.5), ("e", None, 2.0), ("e", -9.0, inf))
    ]


@pytest.mark.parametrize("query", QUERIES)
def test_one_person_adds_what_is_theirs_and_no_more(with_and_without, query):
    """On DuckDB: the integers with and without somebody differ by that person's alone, in their level."""
    asked = QUERIES[query] if query in ASKED else accord.histogram("word", categories=["a", "b"])
    target = asked.under(ADD_REMOVE)

    def integers(table):
        sums_by_output = {}
        for level, row in enumerate(table.reader.summary(asked).rows()):
            sums = target.sums(row, 0) if isinstance(target, Additive) else row
            sums_by_output |= {(level, output): int(amount) for output, amount in enumerate(sums) if amount}
        return sums_by_output

    for (_, x, epsilon), before, after in with_and_without:
        there, base = integers(after), integers(before)
        moved = {key: there.get(key, 0) - base.get(key, 0) for key in there.keys() | base.keys()}
        moved = {key: amount for key, amount in moved.items() if amount}
        assert all(
            level == ROSTER.levels.index(epsilon) and amount > 0 for (level, _), amount in moved.items()
        )
        nothing = (query == "count" and not (x or 0) > 0) or (query not in ASKED and x != -9.0)
        own = target.sensitivity if isinstance(target, Additive) else 1
        assert sum(moved.values()) == (0 if nothing else own)


@pytest.mark.parametrize("name", ["rank", "sample", "affine"])
def test_more_people_than_the_roster_has_do_not_overflow(name):
    """Sums beyond 64 bits stay exact: a roster tells how many there should be, not how many there are."""
    roster, crowd = Spec.from_groups({1e6: 1}), 10**8
    if name == "rank":
        plan = planned(roster, RANKS["median"], name)
        level, points, people = np.zeros(2, dtype=np.int64), np.array([1, 2]), np.array([crowd, 1])
        scores = []

        class Scores(Fixed):
            def choose(self, choice_scores, scale):
                scores.extend(int(s) for s in choice_scores)
                return 0

        summary = Summary(roster.people, 4, level, points, people)
        plan.method.answer(summary, plan.calibration, plan.target, Scores())
        off = [
            crowd + 1,
            0,
            crowd - 1,
            crowd + 1,
        ]  # twice how many are on the wrong side, less than half of everyone
        assert scores == [-(10**12) * x for x in off]
        return
    query = accord.mean("x", bounds=(0, 2**40), step=1)
    plan = planned(roster, query, name)
    level, value, people = np.zeros(1, dtype=np.int64), 2**40 - 7, crowd
    if name == "sample":
        summary = Summary(roster.people, query.cells + 1, level, np.array([value]), np.array([people]))
    else:
        sums = np.array([people, value * people], dtype=object)
        summary = Summary(roster.people, 2, np.zeros(2, dtype=np.int64), np.array([0, 1]), sums)
    released = plan.method.answer(summary, plan.calibration, plan.target, Fixed())
    assert released == [value * people, 7 * people]


def test_a_plan_reads_nothing(monkeypatch, tmp_path):
    """Nobody's presence can matter to what is not read."""
    table = opened(arrow, PEOPLE, tmp_path)

    def fetch(*_, **__):
        raise AssertionError("something was read")

    monkeypatch.setattr(table.reader.engine, "fetch", fetch)
    assert table.spec() is ROSTER and table.known
    for query in ASKED.values():
        table.plan(query)
    table.plan(accord.workload(list(ASKED.values())[:2]))
    with pytest.raises(AssertionError, match="something was read"):
        table.release(ASKED["mean"], "affine")


def test_workloads_tell_nothing_either(tmp_path):
    asked = accord.workload([ASKED["mean"], ASKED["count of everyone"], ASKED["median"]])
    receipts = []
    for people in (PEOPLE, PEOPLE[1:], [*PEOPLE, *MORE["NaN"]]):
        release = opened(arrow, people, tmp_path).release(asked)
        receipts.append(
            [all_but_the_answer(part) for part in release.releases]
            + [release.plan.describe(), str(release.plan), release.plan.spent.tolist()]
        )
    assert receipts[0] == receipts[1] == receipts[2]


def everyone_read(table):
    return sum(row[1] for row in table.reader.summary(accord.count()).rows())


def test_one_level_for_everyone(tmp_path):
    roster = Spec.from_groups({0.5: 4})
    table = accord.table(arrow(PEOPLE, tmp_path), epsilon=0.5, neighbors="add-remove", roster=roster)
    assert everyone_read(table) == 4


def test_a_default_level_counts_where_it_is_on_the_roster(tmp_path):
    people = [*PEOPLE, ("e", 1.0, None)]
    for default, read in ((0.5, 5), (1.5, 4), (0, 4)):
        table = accord.table(
            arrow(people, tmp_path), epsilon="e", default=default, neighbors="add-remove", roster=ROSTER
        )
        assert everyone_read(table) == read


# ---- refusals --------------------------------------------------------------------------------------------------------


def test_refusals_say_what_to_do():
    people = {"id": ["a", "b"], "x": [1.0, 2.0], "e": [0.5, 2.0]}
    with pytest.raises(
        SourceError,
        match=r"cannot be counted: give roster=Spec of everyone who could be in it, or consent=, a register of",
    ):
        accord.table(people, epsilon="e", neighbors="add-remove")
    with pytest.raises(SourceError, match="give roster=Spec"):
        accord.table(people, epsilon="e", neighbors="add-remove", roster={0.5: 1})
    with pytest.raises(SourceError, match=r"Add neighbors='add-remove', or leave it out\.$"):
        accord.table(people, epsilon="e", roster=ROSTER)
    with pytest.raises(
        SourceError,
        match=r"^neighbors='swap' is not offered\. There is 'replace' .*, 'add-remove' .* and 'private-levels'",
    ):
        accord.table(people, epsilon="e", neighbors="swap")
    with pytest.raises(PlanError, match=r"^neighbors='swap' is not offered"):
        accord.plan(ROSTER, NUMBERS["mean"], neighbors="swap")
    nobody = accord.table(people, epsilon="e", neighbors="add-remove", roster=Spec.from_groups({0: 3}))
    with pytest.raises(PlanError, match="all 3 people opted out"):
        nobody.release(NUMBERS["mean"])


def test_a_plan_for_the_other_notion_is_refused():
    people = {"id": ["a", "b"], "x": [1.0, 2.0], "e": [0.5, 2.0]}
    roster = Spec.of([0.5, 2.0])
    here, there = (
        accord.table(people, epsilon="e"),
        accord.table(people, epsilon="e", neighbors="add-remove", roster=roster),
    )
    for one, other in ((here, there), (there, here)):
        with pytest.raises(PlanError, match=r"^the plan is for neighbors="):
            one.release(other.plan(NUMBERS["mean"]))


class Shut:
    """An engine that must not be asked."""

    def __init__(self, engine):
        self.engine = engine

    def __getattr__(self, name):
        if name in ("fetch", "lend"):
            raise AssertionError("something was read")
        return getattr(self.engine, name)


def test_no_ledger_takes_a_table_whose_people_are_private(tmp_path):
    """Nor tells whether it knows the people in it: it refuses before it reads, and says the same whoever is there."""
    people = {"id": ["a", "b"], "x": [1.0, 2.0], "e": [0.5, 2.0]}
    ledger = Ledger(tmp_path / "ledger.db")
    with_ids = accord.table(people, epsilon="e", user="id")
    ledger.register(with_ids, "people")
    said = set()
    for roster in (Spec.of([0.5, 2.0]), Spec.of([0.5, 2.0, 2.0])):
        table = accord.table(people, epsilon="e", user="id", neighbors="add-remove", roster=roster)
        table.reader.engine = Shut(table.reader.engine)
        plan = table.plan(NUMBERS["mean"], "affine", 0.1)
        for use in (
            lambda table, plan: ledger.register(table, "others"),
            lambda table, plan: ledger.remaining(table),
            lambda table, plan: ledger.affordable(table, plan),
            lambda table, plan: table.release(NUMBERS["mean"], share=0.1, ledger=ledger),
            lambda table, plan: table.release(plan, ledger=ledger),
        ):
            with pytest.raises(LedgerError, match="add-remove") as refused:
                use(table, plan)
            said.add(str(refused.value))
    assert all("private" in text or "neighbors" in text for text in said)
