"""Covariances and correlations: exact without noise, private by trying all tables, honest about their errors, and what is refused."""

import sys
from fractions import Fraction
from itertools import combinations, product
from math import inf, log, nan, sqrt

import numpy as np
import pyarrow as pa
import pytest
from noises import Fixed

import accord
from accord.errors import QueryError
from accord.people.summary import Summary
from accord.relation import ADD_REMOVE, REPLACE
from accord.release.answer import answer
from accord.release.release import carry_out, read_summaries
from accord.statistics.correlation import FullBox
from accord.statistics.covariance import ROUNDING, Box, ratio
from accord.statistics.encoding import Q

BOUNDS = {"bounds": {"x": (0, 4), "y": (-1, 1)}}
ASKED = {"covariance": accord.covariance, "correlation": accord.correlation}
MODULES = ["accord.statistics.covariance", "accord.statistics.correlation"]
TRUTHS = {
    "covariance": lambda x, y: float(np.cov(x, y, bias=True)[0, 1]),
    "correlation": lambda x, y: float(np.corrcoef(x, y)[0, 1]),
}
each = pytest.mark.parametrize("name", ASKED)
relations = pytest.mark.parametrize("neighbors", ["replace", "add-remove"])


def table(people, levels, neighbors="replace"):
    """People with x, y and a group; None: not there."""
    roster = accord.Spec.of(levels) if neighbors == "add-remove" else None
    rows = [(*person, level) for person, level in zip(people, levels, strict=True) if person is not None]
    columns = {name: np.array([row[k] for row in rows], dtype=float) for k, name in enumerate("xyge")}
    return accord.table(columns, epsilon="e", neighbors=neighbors, roster=roster)


def without_noise(people, query, mechanism):
    plan = people.plan(query, mechanism)
    return answer(plan, read_summaries(people.reader, plan, Fixed()), Fixed())[0]


@relations
@each
@pytest.mark.parametrize("missing", ["none", "exclude"])
@pytest.mark.parametrize("mechanism", ["minimum", "threshold", "proportional", "affine", "fallah", "mix"])
def test_without_noise_it_is_that_of_numpy(mechanism, missing, name, neighbors):
    if mechanism == "mix" and (neighbors, missing) != ("replace", "none"):
        pytest.skip("mix proves replace only")
    x, y = [0, 1, 1, 4, 2, 3, 0, 4], [-1, 0, 0.5, 1, 1, -0.5, 0, 0.25]  # codes are exact
    people = [(a, b, 1) for a, b in zip(x, y, strict=True)]
    query = ASKED[name]("x", "y", **BOUNDS, missing=missing)
    value = without_noise(table(people, [0.5] * 8, neighbors), query, mechanism)
    assert value == pytest.approx(TRUTHS[name](x, y), rel=1e-12)
    if missing == "exclude":
        some = table([*people, (nan, 1, 1), (2, nan, 1)], [0.5] * 10, neighbors)
        assert without_noise(some, query, mechanism) == pytest.approx(TRUTHS[name](x, y), rel=1e-12)


@relations
@each
def test_somebody_with_several_rows_counts_with_the_means_of_their_rows(name, neighbors):
    x = {1: [0.0, 4.0], 2: [3.0], 3: [nan, 1.0, 1.0], 4: [4.0, 3.0]}
    y = {1: [1.0, 0.0], 2: [-1.0], 3: [0.25, nan, 0.75], 4: [0.0, 1.0]}
    ids = [k for k, rows in x.items() for _ in rows]
    columns = {
        "id": ids,
        "x": np.concatenate([*x.values()]),
        "y": np.concatenate([*y.values()]),
        "e": [1.0] * len(ids),
    }
    roster = accord.Spec.of([1.0] * 4) if neighbors == "add-remove" else None
    people = accord.table(columns, epsilon="e", user="id", neighbors=neighbors, roster=roster)
    means = [[np.nanmean(rows) for rows in of.values()] for of in (x, y)]
    query = ASKED[name]("x", "y", **BOUNDS)
    assert without_noise(people, query, "minimum") == pytest.approx(TRUTHS[name](*means), rel=1e-12)
    assumed = people.plan(query).assumptions
    assert any("and counts with the mean of their rows, of each column" in line for line in assumed)


# ---- privacy -----------------------------------------------------------------------------------------------


def points(q):
    return [*product(range(-q, q + 1), repeat=2)]


def added(target, q, x, y):
    """What one person at these codes adds to the sums, for codes up to q."""
    by_kind = {(-1,): q * x, (0,): q * y, (-1, 0): x * y, (-1, -1): x * x, (0, 0): y * y}
    return target.sums([*(by_kind[p.columns] for p in target.query.products), 1], 1)


@each
@pytest.mark.parametrize("q", [1, 2, 4, 6])
def test_the_sensitivity_is_the_largest_distance_of_any_two_points(monkeypatch, q, name):
    """On scales that are so coarse that all of them can be tried."""
    for each_module in MODULES:
        monkeypatch.setattr(sys.modules[each_module], "Q", q)
    query = ASKED[name]("x", "y", **BOUNDS, missing="none")
    replace, present = query.under(REPLACE), query.under(ADD_REMOVE)
    sums = [added(replace, q, x, y) for x, y in points(q)]
    farthest = max(sum(abs(a - b) for a, b in zip(*pair, strict=True)) for pair in combinations(sums, 2))
    assert farthest == replace.sensitivity
    totals = {sum(abs(a) for a in added(present, q, x, y)) for x, y in points(q)}
    assert max(totals) == present.sensitivity
    assert all(min(added(present, q, x, y)) >= 0 for x, y in points(q))


PARTS = {
    "everyone": {"missing": "none"},
    "exclude": {},
    "where": {"where": "g = 1"},
    "by": {"by": "g", "keys": [1, 2]},
}


@relations
@each
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("mechanism", ["minimum", "affine", "proportional"])
def test_nobody_loses_more_than_their_charge_and_somebody_loses_it_all(mechanism, part, name, neighbors):
    """All tables of two people, all neighbors: the distance of their sums is what a release loses at most."""
    levels, is_replace, of = [0.3, 1.0], neighbors == "replace", PARTS[part]
    xs, ys = (
        (0.0, 2.0, 4.0) if part == "everyone" else (0.0, 4.0),
        (-1.0, 1.0, nan) if part == "exclude" else (-1.0, 1.0),
    )
    states = [*product(xs, ys, (1, 2) if part in ("where", "by") else (1,)), *([] if is_replace else [None])]
    plan = table([(0, 0, 1)] * 2, levels, neighbors).plan(ASKED[name]("x", "y", **BOUNDS, **of), mechanism)
    total = int((plan.calibration.charges * plan.spec.people).sum())

    def sums(people):
        noise = Fixed()
        _, released = answer(
            plan, read_summaries(table(people, levels, neighbors).reader, plan, noise), noise
        )
        flat = [x for group in released for x in group] if "by" in of else released
        return [x * total / scale for x, scale in zip(flat, noise.scales, strict=True)]

    here = {k: sums([states[k], states[0]]) for k in range(len(states))}  # sums do not mind who else is there
    there = {k: sums([states[0], states[k]]) for k in range(len(states))}
    worst = [Fraction(0), Fraction(0)]
    for who, released in enumerate((here, there)):
        for (j, one), (k, other) in product(released.items(), repeat=2):
            if is_replace or (states[j] is None) != (states[k] is None):
                worst[who] = max(worst[who], sum(abs(a - b) for a, b in zip(one, other, strict=True)))
    cost = [Fraction(int(c), 10**6) for c in plan.cost]
    assert all(lost <= c for lost, c in zip(worst, cost, strict=True))
    if name == "covariance" or not is_replace or part in ("everyone", "by"):
        assert worst == cost  # of one part, somebody's change is less than coming and going


# ---- honesty -----------------------------------------------------------------------------------------------

LEVELS = np.repeat([0.05, 0.5, 1.0, inf], [300, 300, 300, 30])


def at_corners(*chances):
    """People at the corners (+, +), (+, −), (−, +), (−, −) of the bounds."""

    def draw(rng, n):
        corner = rng.choice(4, size=n, p=chances)
        return np.where(corner < 2, 4.0, 0.0), np.where(corner % 2 == 0, 1.0, -1.0)

    return draw


def together(rng, n):
    x = rng.uniform(0, 4, n)
    return x, np.clip(x / 4 + rng.normal(0, 0.3, n) - 0.5, -1, 1)


POPULATIONS = {
    "together": together,
    "apart": lambda rng, n: (rng.uniform(0, 4, n), rng.uniform(-1, 1, n)),
    "skewed": lambda rng, n: (np.minimum(rng.exponential(0.3, n), 4), np.minimum(rng.exponential(0.1, n) - 1, 1)),
    "two corners": at_corners(0.15, 0, 0, 0.85),
    "four corners": at_corners(0.25, 0.25, 0.25, 0.25),
    "one corner": at_corners(1, 0, 0, 0),
    "a constant column": lambda rng, n: (rng.uniform(0, 4, n), np.full(n, 0.3)),
}  # fmt: skip
KINDS = {"everyone": {"missing": "none"}, "exclude": {}, "where": {"where": "g = 1"}}


@each
@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mechanism", ["affine", "mix"])
def test_intervals_hold_and_errors_are_below_the_predicted_ones(mechanism, kind, population, name):
    """95 % intervals of 60 releases: fewer than 43 hold with a probability below 1e-9 if 95 % do."""
    if mechanism == "mix" and kind != "everyone":
        pytest.skip("mix proves replace only")
    rng, held, errors = np.random.default_rng(7), 0, []
    for _ in range(60):
        x, y = POPULATIONS[population](rng, LEVELS.size)
        g, inside = rng.integers(1, 3, LEVELS.size), np.ones(LEVELS.size, dtype=bool)
        if kind == "exclude":
            inside = rng.random(x.size) > 0.3
            x = np.where(inside, x, nan)
        elif kind == "where":
            inside = g == 1
        people = accord.table({"x": x, "y": y, "g": g, "e": LEVELS}, epsilon="e")
        release = people.release(ASKED[name]("x", "y", **BOUNDS, **KINDS[kind]), mechanism)
        low, high = release.interval(0.95)
        if population in ("one corner", "a constant column") and name == "correlation":
            held += (low, high) == (-1, 1)
            continue
        truth = TRUTHS[name](x[inside], y[inside])
        held += low <= truth <= high
        errors.append(release.value - truth)
        assert -release.plan.target.query.largest <= low <= high <= release.plan.target.query.largest
    assert held >= 43
    if name == "covariance" and kind == "everyone":
        assert sqrt(np.mean(np.square(errors))) < 1.1 * release.plan.rmse_here


def summary_of(plan, x, y):
    """The Summary of people with these codes, in the order of their levels."""
    level = np.repeat(np.arange(plan.spec.micro.size), plan.spec.people)
    by_kind = {(-1,): Q * x, (0,): Q * y, (-1, 0): x * y, (-1, -1): x * x, (0, 0): y * y}
    columns = [*(by_kind[p.columns] for p in plan.target.query.products), np.ones_like(x)]
    sums = [np.bincount(level, c, minlength=plan.spec.micro.size).astype(np.int64) for c in columns]
    levels, outputs = np.arange(plan.spec.micro.size), len(sums)
    output = np.repeat(np.arange(outputs), levels.size)
    return Summary(plan.spec.people, outputs, np.tile(levels, outputs), output, np.concatenate(sums))


class Seeded:
    """Laplace noise by a seeded generator."""

    def __init__(self, rng):
        self.rng = rng

    def laplace(self, scale):
        return round(self.rng.laplace(0, float(scale)))


def measured(plan, draw, runs, truth, rng):
    """Root mean square errors: about the population, and about the people of each run."""
    noise, errors = Seeded(rng), []
    for _ in range(runs):
        x, y = draw(rng, plan.spec.total)
        here = TRUTHS[plan.query.statistic](2 * x, y)  # bounds (0, 4) and (−1, 1)
        codes = (np.floor(z * Q + 0.5).astype(np.int64) for z in (x, y))
        value, _ = answer(plan, [summary_of(plan, *codes)], noise)
        errors.append((value - truth, value - here))
    return np.sqrt(np.mean(np.square(errors), axis=0))


def corner(rng, n):
    """On the scale [−1, 1]: everyone at one corner, where the noise does the most."""
    return np.ones(n), np.ones(n)


def two_corners(rng, n):
    """E[x]² = ½, and y = x: where people differ the most."""
    x = np.where(rng.random(n) < (1 + sqrt(0.5)) / 2, 1.0, -1.0)
    return x, x


@relations
def test_errors_are_as_predicted_where_the_values_are_the_hardest(neighbors):
    """All noise where everyone is at one corner; all sampling where there is hardly any noise."""
    rng = np.random.default_rng(5)
    query = accord.covariance("x", "y", **BOUNDS, missing="none")
    noisy = accord.plan(accord.Spec.from_groups({0.2: 1000}), query, "minimum", neighbors=neighbors)
    _, here = measured(noisy, corner, 1500, 0.0, rng)
    assert here == pytest.approx(noisy.rmse_here, rel=0.1)
    exact = accord.plan(accord.Spec.from_groups({900.0: 1000}), query, "minimum", neighbors=neighbors)
    about, _ = measured(exact, two_corners, 1500, 2 * 0.5, rng)
    assert about == pytest.approx(exact.rmse, rel=0.1)


def nearly_one(rng, n):
    """Standard deviations of a half about the middle, and a correlation of 0.95."""
    x = rng.choice([-0.5, 0.5], n)
    return x, np.where(rng.random(n) < 0.975, x, -x)


def of_equal_size(rng, n):
    """The same, where a quarter of the people are at corners and the others in the middle: a correlation of 0."""
    size = (rng.random(n) < 0.25).astype(float)
    return size * rng.choice([-1.0, 1.0], n), size * rng.choice([-1.0, 1.0], n)


@relations
def test_errors_of_a_correlation_are_as_predicted_for_people_as_they_are_assumed(neighbors):
    rng = np.random.default_rng(9)
    query = accord.correlation("x", "y", **BOUNDS, missing="none")
    noisy = accord.plan(accord.Spec.from_groups({5.0: 1000}), query, "minimum", neighbors=neighbors)
    _, here = measured(noisy, nearly_one, 1500, 0.0, rng)
    assert here == pytest.approx(noisy.rmse_here, rel=0.1)
    exact = accord.plan(accord.Spec.from_groups({900.0: 1000}), query, "minimum", neighbors=neighbors)
    about, _ = measured(exact, of_equal_size, 1500, 0.0, rng)
    assert about == pytest.approx(exact.rmse, rel=0.1)


@each
@relations
@pytest.mark.parametrize("level", [0.5, 5.0])
def test_errors_are_below_the_predicted_ones_elsewhere(level, neighbors, name):
    rng = np.random.default_rng(6)
    query = ASKED[name]("x", "y", **BOUNDS, missing="none")
    plan = accord.plan(accord.Spec.from_groups({level: 2000}), query, "minimum", neighbors=neighbors)

    def draw(rng, n):  # standard deviations of a half, a quarter of the bounds' width
        z = np.where(rng.random((3, n)) < 0.5, -0.5, 0.5)
        return z[0], np.where(rng.random(n) < 0.6, z[0], z[1])

    _, here = measured(plan, draw, 400, 0.0, rng)
    assert here < 1.1 * plan.rmse_here


def test_one_person_varies_by_at_most_one():
    """Of (x − E[x])(y − E[y]) on the scale [−1, 1]: the docstring's proof, at many distributions."""
    rng = np.random.default_rng(2)
    for _ in range(3000):
        k = int(rng.integers(2, 6))
        at = np.where(rng.random((k, 2)) < 0.6, rng.choice([-1.0, 1.0], (k, 2)), rng.uniform(-1, 1, (k, 2)))
        p = rng.dirichlet(np.full(k, 0.5))
        z = (at - p @ at).prod(axis=1)
        assert p @ z**2 - (p @ z) ** 2 <= 1 + 1e-9


def test_the_ends_of_a_correlation_are_those_of_its_moments():
    """All correlations of moments in a box lie between them; where a column may be constant, they are −1 and 1."""
    rng = np.random.default_rng(4)
    for _ in range(300):
        at = rng.uniform(-1, 1, (5, 2))
        x, y = at.T
        moments = np.array([x.mean(), y.mean(), (x * y).mean(), (x * x).mean(), (y * y).mean()])
        half = rng.uniform(0, 0.2)
        low, high = FullBox(*((m - half, m + half) for m in moments)).correlation()
        assert -1 <= low <= np.corrcoef(x, y)[0, 1] <= high <= 1
        inside = moments[:, None] + rng.uniform(-half, half, (5, 300))
        covariances = inside[2] - inside[0] * inside[1]
        spreads = (inside[3] - inside[0] ** 2) * (inside[4] - inside[1] ** 2)
        real = (
            (spreads > 0)
            & (inside[3] > inside[0] ** 2)
            & (np.abs(covariances) <= np.sqrt(np.maximum(spreads, 0)))
        )
        correlations = covariances[real] / np.sqrt(spreads[real])
        assert (low - 1e-9 <= correlations).all() and (correlations <= high + 1e-9).all()
    for constant in (0.0, 0.3, 1.0):
        box = FullBox((-0.1, 0.1), (constant,) * 2, (-0.1, 0.1), (0.2, 0.3), (constant**2,) * 2)
        assert box.correlation() == (-1.0, 1.0)
    assert FullBox((0, 0), (0, 0), (0, 0), (0, 0), (0, 0)).correlation() == (-1.0, 1.0)
    assert FullBox((0, 0), (0, 0), (0.3, 0.4), (0.5, 0.5), (0.5, 0.5)).correlation() == pytest.approx(
        (0.6, 0.8)
    )
    assert FullBox((0, 0), (0, 0), (-0.4, -0.3), (0.5, 0.5), (0.5, 0.5)).correlation() == pytest.approx(
        (-0.8, -0.6)
    )
    for mean, nearest in (
        ((-0.2, 0.2), 0.0),
        ((-0.2, -0.1), 0.1),
        ((0.0, 0.2), 0.0),
    ):  # a variance is largest where its mean is nearest to 0
        box = FullBox(mean, (0, 0), (0.1, 0.2), (0.5, 0.5), (0.5, 0.5))
        widest, narrowest = sqrt(0.5 - nearest**2) * sqrt(0.5), sqrt(0.5 - 0.2**2) * sqrt(0.5)
        assert box.correlation() == pytest.approx((0.1 / widest, 0.2 / narrowest))


@pytest.mark.parametrize(("ask", "moments", "part"), [("covariance", 3, 1.0), ("correlation", 5, 0.5)])
def test_all_moments_are_in_the_box_but_for_alpha(ask, moments, part):
    """Of one level nothing but noise is off: each moment is beyond its half width with a probability of alpha/moments."""
    query = getattr(accord, ask)("x", "y", bounds={"x": (0, 1), "y": (0, 9)}, missing="none")
    plan = accord.plan(accord.Spec.from_groups({1.0: 1000}), query, "minimum")
    (scale,) = plan.method.linear(plan.calibration, plan.spec.people, plan.target).scales / (Q * Q)
    for alpha in (0.05, 1e-6):
        box = plan.target.box([Fraction(0)] * moments, plan.prediction.error_model.spread, alpha, 1.0)
        half = (
            part * scale * log(moments / alpha)
        )  # of a correlation, sums that are no squares are released twofold
        assert box.x == box.y == pytest.approx((-half - ROUNDING, half + ROUNDING))
        assert box.xy == pytest.approx((-half - 2 * ROUNDING, half + 2 * ROUNDING))
        if ask == "correlation":
            assert box.xx == box.yy == pytest.approx((0.0, 2 * half + 2 * ROUNDING))


def test_the_ends_of_an_interval_are_those_of_its_moments():
    """Of all that lies in a box, the least and the largest covariance; of a ratio likewise."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        ends = [tuple(sorted(rng.uniform(-1, 1, 2))) for _ in range(3)]
        low, high = Box(*ends).covariance()
        inside = [rng.uniform(*end, 200) for end in ends]
        covariances = inside[2] - inside[0] * inside[1]
        assert low - 1e-12 <= covariances.min() and covariances.max() <= high + 1e-12
        corners = [xy - x * y for x, y, xy in product(*ends)]
        assert (low, high) == pytest.approx((min(corners), max(corners)))
        total, noise, people = rng.uniform(-0.6, 0.6), rng.uniform(0, 0.2), (0.7, 1.3)
        low, high = ratio(total, noise, people, 0.0)
        ratios = [(total + sign * noise) / n for sign, n in product((-1, 1), people)]
        assert (low, high) == pytest.approx((max(-1, min(ratios)), min(1, max(ratios))))


@each
def test_rounding_is_inside_the_interval(name):
    """Public people alone are read without noise, and the codes are all that is off."""
    rng = np.random.default_rng(8)
    x, y = rng.uniform(0, 4, 40), rng.uniform(-1, 1, 40)
    for ids, options in ((np.arange(40), {}), (np.repeat(np.arange(10), 4), {"user": "id"})):
        people = accord.table({"x": x, "y": y, "id": ids, "e": np.full(40, inf)}, epsilon="e", **options)
        for missing in ("none", "exclude"):
            release = people.release(ASKED[name]("x", "y", **BOUNDS, missing=missing))
            means = [z.reshape(-1, 40 // len(set(ids))).mean(axis=1) for z in (x, y)]
            low, high = release.interval(0.95)
            assert low <= TRUTHS[name](*means) <= high and low < release.value < high


# ---- what is refused ---------------------------------------------------------------------------------------


@each
@pytest.mark.parametrize(
    ("arguments", "options", "text"),
    [
        (("x", "x"), {}, "a {0} is of two columns, and both are 'x'. Name two, or ask for accord.variance('x')."),
        (("x", 3), {}, "a column is named by a text, and 3 is not one. Give the column's name, such as 'income'."),
        (
            ("x", "y"),
            {"bounds": (0, 1)},
            "bounds= of a {0} is a dict of both columns' public bounds, such as {{'x': (0, 1), 'y': (0, 100)}}.",
        ),
        (
            ("x", "y"),
            {"bounds": {"x": (0, 1), "y": (0, 1), "z": (0, 1)}},
            "bounds are given for 'z', which is not in the {0}: Known: 'x', 'y'.",
        ),
        (("x", "y"), {"bounds": {"x": (1, 0), "y": (0, 1)}}, "the bounds of 'x' are 1 and 0. The lower one comes first, and they differ."),
        (("x", "y"), {"bounds": {"x": (1, 1), "y": (0, 1)}}, "the bounds of 'x' are 1 and 1. The lower one comes first, and they differ."),
        (("x", "y"), {"bounds": {"x": 3, "y": (0, 1)}}, "the bounds of 'x' are 3. Give two numbers (low, high)."),
        (
            ("x", "y"),
            {**BOUNDS, "missing": 3},
            "missing=3 is not offered. Of a {0} it is 'exclude' (whoever lacks a value is left out), 'none' (no value is "
            "missing), or 'middle' (of the bounds).",
        ),
    ],
)  # fmt: skip
def test_what_is_no_question_is_refused(name, arguments, options, text):
    with pytest.raises(QueryError) as refusal:
        ASKED[name](*arguments, **({"bounds": {"x": (0, 1), "y": (0, 1)}} | options))
    assert str(refusal.value) == text.format(name)


@each
def test_what_a_table_cannot_answer_is_refused_before_anything_is_read(name):
    columns = {"x": [1.0] * 3, "z": [1.0] * 3, "t": ["a", "b", "c"], "e": [1.0] * 3}
    people = accord.table(pa.table(columns), epsilon="e")
    with pytest.raises(QueryError, match=r"there is no column 'y': "):
        people.plan(ASKED[name]("x", "y", **BOUNDS))
    with pytest.raises(QueryError, match=rf"column 't' holds text; a {name} needs numbers\."):
        people.plan(ASKED[name]("x", "t", bounds={"x": (0, 1), "t": (0, 1)}))
    with pytest.raises(
        QueryError, match=rf"{name}\('x', 'z'\) needs bounds of 'z', from public knowledge, never"
    ):
        people.plan(ASKED[name]("x", "z", bounds={"x": (0, 1)}))
    population, spec = accord.lab.populations.uniform(), accord.Spec.of([1.0] * 9)
    with pytest.raises(
        QueryError, match=rf"a {name} is about several columns, and a population has one\. Ask about"
    ):
        accord.lab.simulate("minimum", ASKED[name]("x", "y", **BOUNDS), spec, population)
    with pytest.raises(QueryError, match=r"has none\. Leave it out\."):
        people.plan(ASKED[name]("x", "z", bounds={"x": (0, 1), "z": (0, 1)}), report_missing=0.1)


@each
def test_nothing_fails_because_of_a_value(name):
    """Constant columns, nobody at all, and noise of any size."""
    for people, missing in product(
        ([(2, 0.0, 1)] * 3, [(nan, 0.0, 1)] * 3, [(4, 1, 1), (0, -1, 1), (4, 1, 2)]), ("none", "exclude")
    ):
        tables = table(people, [0.01] * 3)
        plan = tables.plan(ASKED[name]("x", "y", **BOUNDS, missing=missing), "minimum")
        summaries = read_summaries(tables.reader, plan, Fixed())
        for size, signs in product((0, 10**3, 10**9, 10**15), product((-1, 1), repeat=4)):
            draws = [size * sign for sign in signs] * 2
            release = carry_out(tables.reader, plan, Fixed(*draws), read=summaries)
            (low, high), most = release.interval(0.95), plan.target.query.largest
            assert -most <= low <= high <= most and -most <= release.value <= most
