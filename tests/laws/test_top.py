"""The largest groups: nobody loses more than their charge by which are shown, and with which sizes; and what a plan predicts holds."""

from dataclasses import replace
from itertools import combinations, product
from math import exp, inf, log

import numpy as np
import pytest
from scipy import stats

import accord
from accord.lab.audit.reference_comparison import integers
from accord.lab.simulation.noise import Seeded
from accord.mechanisms.additive import ChoosingCalibration
from accord.mechanisms.choosing import choose_and_count
from accord.mechanisms.prediction import AroundValue
from accord.mechanisms.record import Calibration
from accord.planning.largest import ALPHA, error_of_selected, part_for_choices, predict_largest
from accord.release.answer import answer
from accord.release.result import Release
from accord.statistics.spread import Spread
from accord.statistics.target_sums import Additive

KEYS = ["A", "B"]
LEVELS = (0.4, 1.0, 2.0)
POINTS = np.linspace(-60, 60, 24_001)
"""Of noisy weights, in units of the noise's scale."""
CUTS = POINTS[::1_000]


def table(groups, neighbors):
    """People of these levels, each in one group, in none, or not there."""
    there = [(group, level) for group, level in zip(groups, LEVELS, strict=True) if group != "absent"]
    roster = accord.Spec.of(LEVELS) if neighbors == "add-remove" else None
    data = {"w": [g for g, _ in there], "e": [e for _, e in there]}
    return accord.table(data, epsilon="e", neighbors=neighbors, roster=roster)


def weights(groups, charges):
    """What is released of each key, but for the noise, in units of its scale."""
    return [sum(c for g, c in zip(groups, charges, strict=True) if g == key) for key in KEYS]


def law(of_groups):
    """P(which group is shown, and between which cuts its noisy size lies), by integration."""
    outcomes = []
    step = POINTS[1] - POINTS[0]
    for key, weight in enumerate(of_groups):
        density = stats.laplace.pdf(POINTS - weight)
        for other, theirs in enumerate(of_groups):
            if other != key:
                density = density * stats.laplace.cdf(POINTS - theirs)
        below = np.concatenate(([0.0], np.cumsum((density[1:] + density[:-1]) / 2 * step)))
        outcomes += np.diff(below[::1_000]).tolist()
    return np.array(outcomes)


def worst(neighbors, charges, paid):
    """The largest log ratio of any outcome, over what each person is charged; over all tiny tables."""
    can = [*KEYS, "nobody's", *(["absent"] if neighbors == "add-remove" else [])]
    laws = {groups: law(weights(groups, charges)) for groups in product(can, repeat=len(LEVELS))}
    largest = [0.0] * len(LEVELS)
    for here, there in product(laws, repeat=2):
        changed = [i for i in range(len(LEVELS)) if here[i] != there[i]]
        if len(changed) != 1 or (
            neighbors == "add-remove" and "absent" not in (here[changed[0]], there[changed[0]])
        ):
            continue
        a, b = laws[here], laws[there]
        likely = (a > 1e-7) & (b > 1e-7)
        ratio = float(np.abs(np.log(a[likely] / b[likely])).max())
        largest[changed[0]] = max(largest[changed[0]], ratio / paid[changed[0]])
    return max(largest)


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_what_is_shown_costs_what_a_count_by_key_does(neighbors):
    """The exact law of which group is the largest, and how large it is said to be, on all tables of three people."""
    people = table(("A", "B", "A"), neighbors)
    plan = people.plan(accord.top("w", k=1, keys=KEYS), "proportional")
    charges = [
        c / 1e6 for c in plan.calibration.charges.tolist()
    ]  # of each of the times that somebody counts
    paid = list(plan.charges.values())
    assert plan.charges == people.plan(accord.count(by="w", keys=KEYS), "proportional").charges
    assert charges == pytest.approx([c / (2 if neighbors == "replace" else 1) for c in LEVELS]) and paid == [
        *LEVELS
    ]
    loss = worst(neighbors, charges, paid)
    assert 0.5 < loss <= 1 + 1e-3
    if neighbors == "replace":  # without the halves it would be found out
        assert worst(neighbors, paid, paid) > 1.2


def test_the_integers_behind_it_are_those_of_a_count_by_key():
    for groups in [("A", "B", "A"), ("B", "B", None), (None, "A", "A")]:
        people = table(groups, "replace")
        plans = [
            people.plan(query, "proportional")
            for query in (accord.top("w", k=1, keys=KEYS), accord.count(by="w", keys=KEYS))
        ]
        assert integers(people, plans[0]) == integers(people, plans[1])
        assert plans[0].calibration.charges.tolist() == plans[1].calibration.charges.tolist()
        assert (
            plans[0].fingerprint == plans[1].fingerprint
        )  # so that a ledger gives the one out for the other


# ---- what is predicted -------------------------------------------------------------------------------------


def model(laplace, sampling=0.0):
    return AroundValue(None, Spread(sampling=sampling, laplace=laplace))


def calibration_of_none():
    nobody = np.zeros(1, dtype=np.int64)
    return Calibration(nobody, nobody.astype(float), 0.0, "")


def predicted_at_once(error_model, k, groups):
    return predict_largest(error_model, calibration_of_none(), np.array([10**9]), k, groups, 10**9)


@pytest.mark.parametrize(("k", "groups"), [(1, 2), (1, 10), (10, 500), (10, 10**5), (7, 7)])
def test_the_error_of_those_that_are_chosen_in_closed_form(k, groups):
    """b²(2 + 2L + L²) for Laplace noise; of all groups, the error of one."""
    predicted, ratio = predicted_at_once(model(3.0), k, groups), log(groups / k)
    assert predicted.rmse_here_at_most == pytest.approx(3 * (2 + 2 * ratio + ratio**2) ** 0.5, rel=1e-9)
    assert predicted.missed_at_most == pytest.approx(2 * 3 * log(groups / ALPHA))
    normal = predicted_at_once(model(0.0, 3.0), groups, groups)
    assert normal.rmse_here_at_most == pytest.approx(3, rel=1e-3)


def shown(rng, sizes, k, runs):
    """Errors of the k largest noisy sizes, and how much larger a group is that was left out than one shown."""
    noisy = sizes + rng.laplace(size=(runs, sizes.size))
    order = np.argsort(-noisy, axis=1)
    errors = np.take_along_axis(noisy - sizes, order[:, :k], 1)
    true = np.take_along_axis(np.broadcast_to(sizes, noisy.shape), order, 1)
    return (errors**2).mean(axis=1), true[:, k:].max(axis=1) - true[:, :k].min(axis=1)


@pytest.mark.parametrize("apart", [0.0, 0.3, 100.0])
@pytest.mark.parametrize(("k", "groups"), [(1, 20), (5, 60)])
def test_what_is_predicted_holds_of_groups_that_are_alike_and_of_others(apart, k, groups):
    """Of 4,000 seeded answers; where all are alike, the bound is no idle one."""
    sizes = apart * np.arange(groups, dtype=float)
    squares, missed = shown(np.random.default_rng(3), sizes, k, 4_000)
    predicted = predicted_at_once(model(1.0), k, groups)
    error = squares.mean() ** 0.5
    assert error <= predicted.rmse_here_at_most
    if apart == 0:
        assert error > 0.7 * predicted.rmse_here_at_most
    assert np.mean(missed > predicted.missed_at_most) <= ALPHA / 2


@pytest.mark.parametrize(("groups", "members"), [(20, 0), (60, 3), (300, 10), (300, 60)])
def test_the_error_of_a_group_that_was_taken_for_being_shown_holds_exactly(groups, members):
    """Of one size with Laplace noise of scale 1, given that it is above what is taken for noise alone."""
    bound = error_of_selected(model(1.0), calibration_of_none(), groups, leaves_out_empty=True)
    h = log(groups / (2 * ALPHA))  # P(noise > h) = α/groups
    noise = np.linspace(h - members, h - members + 60, 2_000_001)
    density = np.exp(-np.abs(noise))
    assert (noise**2 * density).sum() / density.sum() <= bound**2 * (1 + 1e-4)
    if members == 0:  # and is reached
        assert (noise**2 * density).sum() / density.sum() == pytest.approx(bound**2, rel=1e-3)


def test_the_error_of_the_largest_is_no_more_than_that_of_one_that_is_taken_for_its_noise():
    """E max e² of K is (Σ 1/k)² + Σ 1/k² for Laplace noise of scale 1."""
    for groups in (2, 60, 1_000):
        k = np.arange(1, groups + 1)
        bound = error_of_selected(model(1.0), calibration_of_none(), groups, leaves_out_empty=False)
        worst = np.sqrt((1 / k).sum() ** 2 + (1 / k**2).sum())
        assert worst <= bound <= 1.3 * worst


# ---- chosen first (docs/proofs/top.md) ----------------------------------------------------------------------


@pytest.mark.parametrize("moves", [1, 2], ids=["add-remove", "replace"])
@pytest.mark.parametrize("groups", [2, 50, 1_000, 10**5])
@pytest.mark.parametrize("k", [1, 2, 3, 10, 40])
def test_groups_of_which_people_are_in_one_are_never_chosen_first(moves, groups, k):
    assert part_for_choices(groups, min(k, groups), 1, moves) is None


@pytest.mark.parametrize("moves", [1, 2], ids=["add-remove", "replace"])
@pytest.mark.parametrize(("groups", "k", "most"), [(50, 3, 20), (10**5, 3, 20), (1_000, 3, 8), (1_000, 1, 3)])
def test_what_is_chosen_first_is_better_in_both(moves, groups, k, most):
    """Which groups may be missed, and the noise of sizes: by the same factor."""
    part = part_for_choices(groups, k, most, moves)
    at_once = min(moves * most, groups)
    chosen = ChoosingCalibration(np.array([10**6]), np.array([1.0]), 0.0, "", k, part, moves, most)
    sizes = at_once / (float(chosen.size_scale) / 1e6)
    missed = 2 * at_once * log(groups / ALPHA) / (chosen.choice_scale / 1e6 * log(groups * k / (ALPHA / 2)))
    assert sizes == pytest.approx(missed, rel=1e-3) and sizes > 1.1


PEOPLE = (0.4, 1.0)
THREE = ("A", "B", "C")


class Scripted:
    """A noise whose choices are given, and that writes down the laws of all draws."""

    def __init__(self, choices):
        self.choices, self.log_chance, self.added = list(choices), 0.0, []

    def choose(self, scores, scale, times=None):
        logs = np.asarray(scores, dtype=np.float64) / scale
        place = self.choices.pop(0) % len(logs)
        self.log_chance += logs[place] - np.logaddexp.reduce(logs)
        return place

    def laplace(self, scale):
        self.added.append(scale)
        return 0


def chosen_laws(memberships, plan, neighbors):
    """Of each sequence of choices its log probability, and the sums and scales behind the sizes."""
    rows = [
        (i, group) for i, groups in enumerate(memberships) if groups != "absent" for group in groups or ("-",)
    ]
    people = accord.table(
        {"id": [i for i, _ in rows], "w": [g for _, g in rows], "e": [PEOPLE[i] for i, _ in rows]},
        epsilon="e",
        user="id",
        neighbors=neighbors,
        roster=accord.Spec.of(PEOPLE) if neighbors == "add-remove" else None,
    )
    summaries = people.reader.summaries(plan.query)
    laws = {}
    k = plan.calibration.shown
    for choices in product(*(range(len(THREE) - round) for round in range(k))):
        noise = Scripted(choices)
        released = choose_and_count(summaries, plan.calibration, plan.target, noise)
        total = int(plan.calibration.charges @ plan.spec.people)
        sums = tuple(None if not r else r[0] * total for r in released)
        laws[choices] = noise.log_chance, sums, noise.added
    return laws


def worst_of_chosen(plan, neighbors, calibration=None):
    """The largest loss over what is paid: all tables of two people in up to `most` groups, all sequences."""
    if calibration is not None:
        plan = plan.with_choice(calibration=calibration)
    most = plan.query.part.at_most
    can = [g for size in range(most + 1) for g in combinations(THREE, size)]
    can += ["absent"] if neighbors == "add-remove" else []
    tables = [t for t in product(can, repeat=len(PEOPLE)) if any(g != "absent" for g in t)]
    laws = {table: chosen_laws(table, plan, neighbors) for table in tables}
    largest = 0.0
    for here, there in product(tables, repeat=2):
        changed = [i for i in range(len(PEOPLE)) if here[i] != there[i]]
        if len(changed) != 1:
            continue
        if neighbors == "add-remove" and "absent" not in (here[changed[0]], there[changed[0]]):
            continue
        paid = plan.charges[PEOPLE[changed[0]]]
        for choices, (log_chance, sums, scales) in laws[here].items():
            other_chance, other_sums, _ = laws[there][choices]
            assert [x is None for x in sums] == [x is None for x in other_sums]
            moved = sum(abs(a - b) for a, b in zip(sums, other_sums, strict=True) if a is not None)
            largest = max(largest, (log_chance - other_chance + float(moved / scales[0])) / paid)
    return largest


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize(("k", "most"), [(1, 2), (1, 3), (2, 3)])
def test_nobody_loses_more_than_their_charge_by_what_is_chosen_first(neighbors, k, most):
    """Exactly, over all tables of two people, all neighbors and all sequences of choices."""
    plan = planned_first(neighbors, k, most)
    loss = worst_of_chosen(plan, neighbors)
    assert 0.5 < loss <= 1 + 1e-9
    assert plan.charges == dict(zip(PEOPLE, PEOPLE, strict=True))


def planned_first(neighbors, k, most):
    """A plan that chooses k of three groups first, also where at once would be as good."""
    rows = {"id": [0, 1], "w": ["A", "B"], "e": PEOPLE}
    roster = accord.Spec.of(PEOPLE) if neighbors == "add-remove" else None
    people = accord.table(rows, epsilon="e", user="id", neighbors=neighbors, roster=roster)
    plan = people.plan(accord.top("w", k=k, keys=THREE, at_most=most), "proportional")
    if plan.chooses_first:
        return plan
    charges, weights = np.array([400_000, 1_000_000]), np.array([0.4, 1.0]) / 1.4
    moves = 2 if neighbors == "replace" else 1
    first = ChoosingCalibration(charges, weights, 1.0, "", k, 500_000, moves, most)
    return plan.with_choice(calibration=first, times=1)


class SizesOfThoseLeft(ChoosingCalibration):
    """A planted fault: noise on sizes for the groups that somebody leaves, without those they come into."""

    @property
    def sizes_changed(self):
        return min(self.most, self.shown)


def test_planted_faults_of_what_is_chosen_first_are_found():
    plan = planned_first("replace", 2, 1)
    sound = plan.calibration
    assert worst_of_chosen(plan, "replace") <= 1 + 1e-9
    assert worst_of_chosen(plan, "replace", SizesOfThoseLeft(**vars(sound))) > 1.05
    plan = planned_first("replace", 1, 2)
    mostly_choices = replace(plan.calibration, part=900_000)
    assert worst_of_chosen(plan, "replace", mostly_choices) <= 1 + 1e-9
    one_way = replace(mostly_choices, moves=1)  # as if scores moved one way only
    assert worst_of_chosen(plan, "replace", one_way) > 1.05


def shop(people=300, seed=5):
    """People who bought some of 40 things, of which a few are bought by many."""
    rng = np.random.default_rng(seed)
    bought = [np.flatnonzero(rng.random(40) < np.r_[0.9, 0.8, 0.7, 0.2 * np.ones(37)]) for _ in range(people)]
    rows = [(i, f"t{thing}") for i, things in enumerate(bought) for thing in things]
    return {
        "id": [i for i, _ in rows],
        "thing": [t for _, t in rows],
        "e": [[1.0, 3.0][i % 2] for i, _ in rows],
    }


THINGS = [f"t{k}" for k in range(40)]


def test_what_is_released_of_groups_that_are_chosen_first(tmp_path):
    people = accord.table(shop(), epsilon="e", user="id")
    query = accord.top("thing", k=3, keys=THINGS, at_most=25)
    plan = people.plan(query)
    assert plan.chooses_first and plan.times == 1 and "chooses the groups" in plan.calibration.note
    assert plan.charges == {1.0: 1.0, 3.0: 3.0}
    assert plan.describe()["top"]["part"] == plan.calibration.part / 1e6
    ledger = accord.Ledger(tmp_path / "accord.db")
    ledger.register(people, "shop")
    release = people.release(query, share=0.5, ledger=ledger)
    again = people.release(query, share=0.5, ledger=ledger)
    assert (
        again.repeated is not None and again.value == release.value and again.interval() == release.interval()
    )
    assert again.others_at_most() == release.others_at_most()
    assert len([r for r in release.released if r]) == 3 == len(release.value)
    assert [row["value"] for row in release.value] == sorted(
        (row["value"] for row in release.value), reverse=True
    )
    counted = people.release(accord.count(by="thing", keys=THINGS, at_most=25), share=0.25, ledger=ledger)
    assert counted.repeated is None  # it is another draw than that of all groups
    left_out = next(t for t in THINGS if t not in {row["thing"] for row in release.value})
    with pytest.raises(accord.errors.QueryError, match="not among the largest"):
        release[left_out]
    with pytest.raises(accord.errors.QueryError, match="only the largest were counted"):
        release.margin()
    first, second = (row["thing"] for row in release.value[:2])
    low, high = (release[first] - release[second]).interval()
    assert low < release.value[0]["value"] - release.value[1]["value"] < high
    assert "chosen by their size and counted then" in str(release)
    assert release.receipt()["suppressed"] == 37


def test_one_group_is_chosen_first_with_its_own_interval():
    people = accord.table(shop(), epsilon="e", user="id")
    release = people.release(accord.top("thing", k=1, keys=THINGS, at_most=25, suppress=False), "minimum")
    assert release.plan.chooses_first and release.groups_together == 1 and release.suppressed == 39
    assert release.receipt()["suppressed"] == 39 and "chosen by their size" in str(release)


def test_public_people_alone_are_counted_at_once():
    data = {**shop(), "e": [inf] * len(shop()["id"])}
    people = accord.table(data, epsilon="e", user="id")
    release = people.release(accord.top("thing", k=2, keys=THINGS, at_most=25), "threshold", t=inf)
    assert not release.plan.chooses_first
    assert [row["value"] for row in release.value] == sorted(
        (float(data["thing"].count(t)) for t in THINGS), reverse=True
    )[:2]


@pytest.mark.parametrize("mechanism", ["minimum", "proportional"])
def test_intervals_hold_for_what_is_chosen_first(mechanism):
    """400 seeded releases: all shown sizes, and what is said about the others, at 80 % together."""
    data = shop()
    people = accord.table(data, epsilon="e", user="id")
    plan = people.plan(accord.top("thing", k=3, keys=THINGS, at_most=25, suppress=False), mechanism)
    assert plan.chooses_first
    summaries = people.reader.summaries(plan.query)
    sizes, noise = {t: data["thing"].count(t) for t in THINGS}, Seeded(np.random.default_rng(7))
    held, squares, missed, runs = 0, 0.0, 0, 400
    for _ in range(runs):
        value, released = answer(plan, summaries, noise)
        release = Release(plan, value, None, released)
        ends, shown = release.interval(0.8), {row["thing"] for row in value}
        others = max(size for thing, size in sizes.items() if thing not in shown)
        inside = all(ends[t][0] <= sizes[t] <= ends[t][1] for t in shown)
        held += inside and others <= release.others_at_most(0.8)
        squares += sum((row["value"] - sizes[row["thing"]]) ** 2 for row in value) / 3 / runs
        missed += others - min(sizes[t] for t in shown) > plan.largest.missed_at_most
    assert stats.binom.cdf(held, runs, 0.8) > 1e-9
    assert stats.binom.sf(missed - 1, runs, 0.05) > 1e-9
    assert squares**0.5 <= 1.25 * plan.largest.rmse_here_at_most


def test_two_groups_are_confused_less_often_by_noise_that_is_half_as_large():
    """P(Lap(b) − Lap(b) > t) = ½(1 + t/2b)e^(−t/b) ≤ ½e^(−t/2b) = P(Exp(2b) − Exp(2b) > t)."""
    t = np.linspace(0, 50, 5_001)
    assert (0.5 * (1 + t / 2) * np.exp(-t) <= 0.5 * np.exp(-t / 2)).all()
    density = stats.laplace.pdf(POINTS)
    for gap in (0.5, 2.0, 7.0):
        more = np.trapezoid(density * stats.laplace.sf(POINTS + gap), POINTS)
        assert more == pytest.approx(0.5 * (1 + gap / 2) * exp(-gap), rel=1e-4)


def test_a_size_is_what_was_released():
    """Which are the largest is told by the released numbers alone, of every mechanism."""
    data = {"w": ["A"] * 50 + ["B"] * 80, "e": [inf] * 130}
    people = accord.table(data, epsilon="e")
    plan = people.plan(accord.top("w", k=2, keys=KEYS), "threshold", t=inf)
    assert isinstance(plan.target, Additive)
    release = people.release(plan)
    assert [(row["w"], row["value"]) for row in release.value] == [("B", 80.0), ("A", 50.0)]
