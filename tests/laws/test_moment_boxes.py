"""Moments of a regression that share noises: what one person moves, what it costs them, and the law of what is released.

Privacy is exact, through the real `answer`: N(a − b) over all neighbors among the corners and middles of the codes, and over random codes.
"""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from math import inf

import numpy as np
import pytest
from noises import Fixed
from strategies import changed

import accord
from accord.budget import MICRO
from accord.lab.audit.recorded_draws import Boxed
from accord.lab.audit.recording_noise import Leak
from accord.lab.audit.release_laws import law, loss
from accord.lab.simulation.noise import Seeded
from accord.mechanisms import regression
from accord.mechanisms.regression import BoxedRegressionCalibration, RegressionCalibration
from accord.people.summary import Summary
from accord.release.answer import answer
from accord.statistics import moment_boxes
from accord.statistics.encoding import Q
from accord.statistics.moment_boxes import KINDS, PARTS, MomentBoxes, moments_of
from accord.statistics.moments import noise_costs, solve

RELATIONS = ("replace", "add-remove", "members")
EVERY_RELATION = pytest.mark.parametrize("relation", RELATIONS)
LEVELS = [0.100001, 1.0]


def asked(kinds, relation="replace", **options):
    """By the kinds of the features: n is a number, a digit a category with so many values."""
    bounds = {"y": (-1, 1)} | {f"x{k}": (-1, 1) for k, kind in enumerate(kinds) if kind == "n"}
    values = {f"x{k}": [f"v{v}" for v in range(int(kind))] for k, kind in enumerate(kinds) if kind != "n"}
    missing = "exclude" if relation == "members" else "none"
    names = [f"x{k}" for k in range(len(kinds))]
    return accord.regression("y", names, bounds, values, missing, **options)


def points_of(kinds, numbers=(-Q, 0, Q), targets=(-Q, Q)):
    """People: codes of the features, y last."""
    choices = [
        [(x,) for x in numbers]
        if kind == "n"
        else [tuple(Q if v == j else -Q for j in range(1, int(kind))) for v in range(int(kind))]
        for kind in kinds
    ]
    return [(*(code for part in z for code in part), y) for *z, y in product(*choices, targets)]


def random_people(kinds, count, rng):
    people = []
    for _ in range(count):
        z = []
        for kind in kinds:
            value = 0 if kind == "n" else rng.integers(int(kind))
            codes = (
                [int(rng.integers(-Q, Q + 1))]
                if kind == "n"
                else [Q if value == j else -Q for j in range(1, int(kind))]
            )
            z += codes
        people.append((*z, int(rng.integers(-Q, Q + 1))))
    return people


def planned(kinds, relation, halves, share=None, levels=LEVELS):
    """A plan whose moments share noises, whether that pays or not."""
    spec, neighbors = accord.Spec.of(levels), "add-remove" if relation == "add-remove" else "replace"
    plan = accord.plan(spec, asked(kinds, relation), "affine", neighbors=neighbors)
    c = plan.calibration
    boxed = BoxedRegressionCalibration(c.charges, c.weights, c.noise_variance, "", False, PARTS, False)
    boxes = boxed.boxes(plan.target)
    if halves:
        boxes = boxes.in_halves(noise_costs(plan.target.query))
        boxed = replace(boxed, halves=True, share=boxes.share if share is None else share)
    return changed(plan, calibration=boxed)


def summary_of(plan, table):
    """Of people at their levels; None: not there."""
    products = plan.query.encoding.products
    sums = np.zeros((plan.spec.micro.size, len(products) + 1), dtype=np.int64)
    for level, z in zip(np.repeat(np.arange(plan.spec.micro.size), plan.spec.people), table, strict=True):
        if z is not None:
            # the target is column −1, and last here as well
            sums[level, :-1] += [
                np.prod([z[c] for c in e.columns]) * Q ** (2 - len(e.columns)) for e in products
            ]
            sums[level, -1] += 1
    level, output = np.indices(sums.shape)
    return Summary(plan.spec.people, sums.shape[1], level.ravel(), output.ravel(), sums.ravel())


def law_of(plan, table):
    summary = summary_of(plan, table)
    return law(lambda noise: plan.method.answer(summary, plan.calibration, plan.target, noise))


def neighbors_of(relation, people):
    pairs = [*combinations(people, 2)] if relation != "add-remove" else []
    return pairs + ([(who, None) for who in people] if relation != "replace" else [])


def worst_losses(plan, relation, people, others=None):
    """For each of two people of different levels."""
    worst = []
    for person in range(2):
        laws = {}
        for mine in [*people, None]:
            table = [others or people[0]] * 2
            table[person] = mine
            laws[mine] = law_of(plan, table) if mine is not None or relation != "replace" else None
        worst.append(max(loss(laws[a], laws[b]) for a, b in neighbors_of(relation, people)))
    return worst


def charges_of(plan):
    return [Fraction(c, MICRO) for c in plan.calibration.charges.tolist()]


DESIGNS = [("n", False), ("2", False), ("nn", False), ("nn", True), ("3", True), ("n3", True), ("22", True)]


@EVERY_RELATION
@pytest.mark.parametrize(("kinds", "halves"), DESIGNS)
def test_the_loss_is_exactly_the_charge(kinds, halves, relation):
    """Of somebody at the corners or in the middle, of either level."""
    plan = planned(kinds, relation, halves)
    people = points_of(kinds) if len(points_of(kinds)) < 20 else points_of(kinds, (-Q, Q))
    assert worst_losses(plan, relation, people) == charges_of(plan)


@EVERY_RELATION
@pytest.mark.parametrize("kinds", ["n", "nn", "n3", "nn2", "4n"])
def test_nobody_loses_more_whatever_the_codes_and_the_share(kinds, relation):
    rng = np.random.default_rng(len(kinds))
    for halves, share in ((False, None), (True, None), (True, 1), (True, PARTS - 1)):
        plan = planned(kinds, relation, halves, share)
        people = random_people(kinds, 6, rng)
        losses = worst_losses(plan, relation, people, random_people(kinds, 1, rng)[0])
        assert all(0 < lost <= charge for lost, charge in zip(losses, charges_of(plan), strict=True))


def test_halves_move_no_further_together_than_one_of_them_may():
    """Over random pairs of people, and the worst: in units of Q², 4 of two values and 2 of one person."""
    rng = np.random.default_rng(1)
    z = rng.integers(-Q, Q + 1, (2, 200_000, 4))
    z[:, :50_000] = rng.choice([-Q, 0, Q], (2, 50_000, 4))
    one = np.ones((*z.shape[:2], 1), dtype=np.int64) * Q
    plain, y = np.concatenate([one, z[..., :3]], axis=2), z[..., 3:]
    above, below = (Q + y) * plain, (Q - y) * plain
    size = np.abs(above[0]).max(axis=1) + np.abs(below[0]).max(axis=1)
    assert size.max() == size.min() == 2 * Q * Q  # the half people of somebody are one of them
    apart = np.abs(above[0] - above[1]).max(axis=1) + np.abs(below[0] - below[1]).max(axis=1)
    assert apart.max() == 4 * Q * Q


@EVERY_RELATION
@pytest.mark.parametrize(
    ("kinds", "halves"), [("n", False), ("nn", False), ("nn", True), ("n3", True), ("4", True)]
)
def test_without_noise_the_moments_are_those_of_the_people(kinds, halves, relation):
    plan, rng = planned(kinds, relation, halves), np.random.default_rng(5)
    table = random_people(kinds, 2, rng)
    released = plan.method.answer(summary_of(plan, table), plan.calibration, plan.target, Fixed())
    c, products = plan.calibration.charges.tolist(), plan.query.encoding.products
    there = sum(c)
    if plan.target.counts_people:  # two people are less than the noise
        boxes = plan.calibration.boxes(plan.target)
        there = max(Fraction(there), MICRO * boxes.count_noise / (Q * Q))
    expected = [
        Fraction(
            sum(
                c[i] * int(np.prod([z[k] for k in e.columns])) * Q ** (2 - len(e.columns))
                for i, z in enumerate(table)
            )
        )
        / (there * Q * Q)
        for e in products
    ]
    assert released[0] == Fraction(MICRO) / there
    if plan.target.counts_people and halves:
        return  # y is a difference
    assert moments_of(plan.query, released[6:]) == expected


@EVERY_RELATION
@pytest.mark.parametrize(("kinds", "halves"), [("nn", False), ("n3", True)])
def test_variances_are_those_of_simulated_noise(kinds, halves, relation):
    plan = planned(kinds, relation, halves)
    boxes, rng = plan.calibration.boxes(plan.target), np.random.default_rng(2)
    stand_in, drawn = Seeded(rng), []
    for _ in range(3_000):
        noise = [v for box in boxes.boxes for v in stand_in.box(box.spans, MICRO * box.scale)]
        if boxes.counts_people and not halves:
            noise.pop()
        drawn.append(moments_of(plan.query, [v / (MICRO * Q * Q) for v in noise]))
    found = np.square(drawn).mean(axis=0)
    kinds_of = np.array([e.kind for e in plan.query.encoding.products])
    for kind in KINDS:
        assert found[kinds_of == kind].mean() == pytest.approx(float(boxes.variances[kind]), rel=0.15)
    released = plan.method.answer(
        summary_of(plan, points_of(kinds)[:2]), plan.calibration, plan.target, Fixed()
    )
    assert released[1:6] == [boxes.variances[kind] * released[0] ** 2 for kind in KINDS]


def test_the_best_share_is_near_the_best():
    """Of all shares, by what it is chosen by; and one box where there is one column."""
    query = asked("nnnn")
    costs, one = noise_costs(query), MomentBoxes(query, True, False)

    def cost(boxes):
        return sum(costs[kind] * float(boxes.variances[kind]) for kind in KINDS)

    best = one.in_halves(costs)
    assert cost(best) <= min(cost(replace(best, share=share)) for share in range(1, PARTS)) * (1 + 1e-9)
    single = accord.Spec.from_groups({0.1: 5_000, 1.0: 5_000})
    assert not accord.plan(single, asked("n"), "affine").calibration.halves


# ---- plans -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize("kinds", ["n", "nn", "nnnn", "nnnnnnn", "n2n2", "99"])
@pytest.mark.parametrize("people", [40, 400, 20_000])
def test_no_plan_is_predicted_to_be_worse_than_with_a_noise_for_each(monkeypatch, kinds, people, neighbors):
    spec = accord.Spec.from_groups({0.1: people // 2, 1.0: people // 2})
    for name in ("minimum", "threshold", "affine"):
        plan = accord.plan(spec, asked(kinds), name, neighbors=neighbors)
        with monkeypatch.context() as without:
            without.setattr(regression, "offered", lambda target: [])
            each = accord.plan(spec, asked(kinds), name, neighbors=neighbors)
        assert type(each.calibration) is RegressionCalibration
        assert plan.rmse <= each.rmse and (plan.cost <= spec.micro).all()
        if isinstance(plan.calibration, BoxedRegressionCalibration):
            assert plan.rmse < each.rmse and plan.fingerprint != each.fingerprint
            assert plan.describe()["noise"] == "box" and "noise" not in each.describe()
            assert "noise" in plan.calibration.note


def test_of_four_to_eight_columns_it_is_predicted_to_be_at_least_1_3_times_closer(monkeypatch):
    spec = accord.Spec.from_groups({0.01: 3_000, 0.1: 5_000, 0.2: 3_000, 0.6: 5_000, 1.0: 4_000})
    for m in range(3, 8):
        boxes = accord.plan(spec, asked("n" * m), "affine")
        with monkeypatch.context() as without:
            without.setattr(regression, "offered", lambda target: [])
            each = accord.plan(spec, asked("n" * m), "affine")
        assert each.rmse_here > 1.3 * boxes.rmse_here


def people_of(kind, m, people, rng):
    """Columns in [−1, 1]: of each its own, or of which the last is nearly the sum of two others."""
    x = rng.uniform(-1, 1, (m, people))
    if kind == "collinear":
        x[-1] = np.clip((x[0] + x[1]) / 2 + rng.normal(0, 0.08, people), -1, 1)
    y = rng.uniform(-0.5, 0.5, m) @ x + rng.normal(0, 0.3, people)
    columns = {f"x{j}": each for j, each in enumerate(x)} | {"y": np.clip(y, -1, 1)}
    names = [f"x{j}" for j in range(m)]
    return columns, accord.regression("y", names, dict.fromkeys(columns, (-1, 1)), missing="none")


@pytest.mark.parametrize(
    ("kind", "m", "seed", "times"),
    [("uniform", 4, 4, 1.15), ("collinear", 4, 14, 1.0)]
    + [
        pytest.param(kind, m, seed, times, marks=pytest.mark.slow)
        for kind, m, seed, times in (
            ("uniform", 2, 2, 1.0),
            ("uniform", 3, 3, 1.15),
            ("uniform", 7, 7, 1.4),
            ("collinear", 2, 2, 1.0),
            ("collinear", 3, 3, 0.95),  # 1.16 in 300 other draws: tails are heavy
            ("collinear", 3, 11, 1.0),
            ("collinear", 3, 12, 1.0),
            ("collinear", 5, 5, 1.05),
            ("collinear", 7, 7, 1.4),
        )
    ],
)
def test_predictions_are_measured_to_be_closer_to_least_squares(kind, m, seed, times, monkeypatch):
    """Not only predicted: about these people, by seeded draws, also where columns are nearly collinear."""
    rng = np.random.default_rng(seed)
    columns, query = people_of(kind, m, 20_000, rng)
    design = np.column_stack([np.ones(20_000), *(columns[f"x{j}"] for j in range(m))])
    truth = np.clip(design @ np.linalg.lstsq(design, columns["y"], rcond=None)[0], -1, 1)
    levels = np.where(rng.random(20_000) < 0.5, 0.1, 1.0)
    table = accord.table({**columns, "e": levels}, epsilon="e")
    summary, off = table.reader.summary(query), {}
    for boxes in (True, False):
        with monkeypatch.context() as without:
            if not boxes:
                without.setattr(regression, "offered", lambda target: [])
            plan = accord.plan(table.spec(), query, "affine")
        assert isinstance(plan.calibration, BoxedRegressionCalibration) == boxes
        squares = []
        for _ in range(120):
            found = answer(plan, [summary], Seeded(rng))[0].scaled
            squares.append(np.mean((np.clip(design @ np.array(found), -1, 1) - truth) ** 2))
        off[boxes] = np.sqrt(np.mean(squares))
    assert off[False] > times * off[True]


def test_public_people_alone_have_no_noise():
    spec = accord.Spec.from_groups({0.001: 10, inf: 5_000})
    plan = accord.plan(spec, asked("nn"), "threshold", t=inf)
    assert type(plan.calibration) is RegressionCalibration and plan.charges == {0.001: 0.0, inf: inf}


def test_answers_of_before_are_solved_as_before():
    """Ledgers hold them: the size of the noise and the moments."""
    query = asked("nn")
    released = [Fraction(1, 10**6), *(Fraction(k, 20) for k in (2, 1, -1, 3, 4, 1, 6, 7))]
    intercept, slopes, note = solve(query, released)
    assert note == "" and np.isfinite([intercept, *slopes]).all()


# ---- the checks have teeth ---------------------------------------------------------------------------------


@EVERY_RELATION
def test_a_sum_left_out_of_the_box_is_found_out(monkeypatch, relation):
    """Released without noise."""
    plan = planned("nn", relation, False)
    table = [(Q, Q, Q), (0, 0, 0)]
    other = [(-Q, Q, Q) if relation != "add-remove" else None, (0, 0, 0)]
    good = MomentBoxes.boxes.fget

    def less(boxes):
        (box,) = good(boxes)
        return [moment_boxes.Box(box.spans[:1] + box.spans[2:], box.scale)]

    class Padded:
        def __init__(self, noise):
            self.noise = noise

        def box(self, spans, scale):
            drawn = [*self.noise.box(spans, scale)]
            return [drawn[0], 0, *drawn[1:]]

    monkeypatch.setattr(MomentBoxes, "boxes", property(less))
    laws = []
    for people in (table, other):
        summary = summary_of(plan, people)
        laws.append(
            law(lambda noise, s=summary: plan.method.answer(s, plan.calibration, plan.target, Padded(noise)))
        )
    with pytest.raises(Leak, match="moves beside the noise"):
        loss(*laws)


@EVERY_RELATION
@pytest.mark.parametrize("halves", [False, True])
def test_spans_of_half_the_size_are_found_out(monkeypatch, relation, halves):
    plan = planned("nn", relation, halves)
    monkeypatch.setattr(MomentBoxes, "boxes", property(with_boxes(lambda b: replace(b, scale=b.scale / 2))))
    losses = worst_losses(plan, relation, points_of("nn", (-Q, Q)))
    assert losses == [2 * charge for charge in charges_of(plan)]


def with_boxes(change):
    good = MomentBoxes.boxes.fget
    return lambda boxes: [change(box) for box in good(boxes)]


@pytest.mark.parametrize("halves", [False, True])
def test_the_spans_of_coming_and_going_are_found_out_where_values_change(monkeypatch, halves):
    plan = planned("nn", "replace", halves)
    monkeypatch.setattr(MomentBoxes, "largest_change", property(lambda boxes: 1))
    losses = worst_losses(plan, "replace", points_of("nn", (-Q, Q)))
    assert all(lost > charge for lost, charge in zip(losses, charges_of(plan), strict=True))


def test_halves_with_spans_above_one_would_cost_more():
    """N is rounded up in both: a charge of 3, half of which moves each, would lose 4. So their spans are 1."""
    span, c = 4 * Q * Q, 3
    move = c * 2 * Q * Q
    coarse = [Boxed((span,), Fraction(1), [0]).loss(Boxed((span,), Fraction(1), [move])) for _ in range(2)]
    fine = [Boxed((1,), Fraction(span), [0]).loss(Boxed((1,), Fraction(span), [move])) for _ in range(2)]
    assert sum(coarse) == 4 and sum(fine) == 3
