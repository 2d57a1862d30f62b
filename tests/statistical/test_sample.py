"""`sample` keeps people with exactly their chance, and its predicted errors and intervals are true.

Sampled tests of who is kept have a false-alarm rate of 1e-9 and show their power: with a chance that is 1 % off, the deviation is at least ten standard errors.
Predictions are compared with thousands of releases by the secure noise, on the same people, whose levels are dealt out anew each time.
"""

from datetime import UTC, datetime

import numpy as np
import pytest
from scipy import stats

import accord
from accord import noise
from accord.mechanisms import sample
from accord.noise import SECURE
from accord.people.summary import Summary
from accord.release import Release
from accord.release.answer import answer

ALPHA = 1e-9
SURE = 2**63
DRAWS = 12_000_000


def chance(p):
    return int(p * SURE)


# ---- one person ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("c", [1, 2, 255, 2**32, 2**62, 2**63 - 2**11, 2**63 - 1])
def test_a_person_is_kept_where_a_uniform_number_is_below_their_chance(monkeypatch, c):
    """Exactly: c of the 2⁶³ numbers are."""
    words = [0, c - 1, c, 2**63 - 1, 2**62, 7]
    asked = []

    def token_bytes(size):
        asked.append(size)
        return b"".join((2 * word + 1).to_bytes(8, "little") for word in words)  # the last bit is not used

    monkeypatch.setattr(noise.secrets, "token_bytes", token_bytes)
    kept = SECURE.keep(np.full(len(words), c, dtype=np.uint64))
    assert kept.tolist() == [word < c for word in words]
    assert asked == [8 * len(words)]


@pytest.fixture(scope="module")
def kept():
    """{π: who of DRAWS people is kept}, people of different chances next to each other."""
    ps = (0.1, 0.37, 0.5, 0.9)
    limits = np.tile(np.array([chance(p) for p in ps], dtype=np.uint64), DRAWS // 12)
    mask = np.concatenate([SECURE.keep(limits) for _ in range(12)])
    return {p: mask[k :: len(ps)] for k, p in enumerate(ps)}


def test_people_are_kept_with_their_chance_and_no_other(kept):
    for p, mask in kept.items():
        people = int(mask.sum())
        assert stats.binomtest(people, DRAWS, p).pvalue >= ALPHA
        for wrong in (1.01 * p, p / 1.01):
            assert abs(wrong - p) > 10 * np.sqrt(p * (1 - p) / DRAWS)
            assert stats.binomtest(people, DRAWS, wrong).pvalue < ALPHA


def test_people_are_kept_independently_of_each_other(kept):
    """Of the next one of the same chance, and of the one beside them. Power: one in 50 follows the one before."""

    def independent(one, other):
        table = np.array([[(a & b).sum() for b in (other, ~other)] for a in (one, ~one)])
        return stats.chi2_contingency(table, correction=False).pvalue >= ALPHA

    for mask in kept.values():
        assert independent(mask[:-1:2], mask[1::2])
    assert independent(kept[0.1], kept[0.37]) and independent(kept[0.5], kept[0.9])
    follows = kept[0.5][1::2].copy()
    follows[::50] = kept[0.5][:-1:2][::50]
    assert not independent(kept[0.5][:-1:2], follows)


# ---- groups of people ------------------------------------------------------------------------------------------------

SIZES = np.array([40, 25, 60, 7, 33])
CHANCES = np.array([chance(0.5), SURE, chance(0.3), 0, chance(0.9)], dtype=np.uint64)
ROUNDS = 60_000


@pytest.fixture(scope="module")
def thinned():
    """How many are kept of five groups, in each of many rounds."""
    found = sample.thin(np.tile(SIZES, ROUNDS), np.tile(CHANCES, ROUNDS), SECURE)
    return found.reshape(ROUNDS, SIZES.size)


def test_the_number_kept_of_a_group_is_binomial_and_of_no_other_chance(thinned):
    """The whole law, not only its mean: a chi-square test over numbers of people."""

    def follows(counts, size, p):
        law = stats.binom(size, p)
        ends = np.unique(law.ppf([0.01, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95]))
        cells = np.bincount(np.searchsorted(ends, counts), minlength=ends.size + 1)
        expected = np.diff([0.0, *law.cdf(ends), 1.0]) * counts.size
        return stats.chisquare(cells, expected).pvalue >= ALPHA

    for k, p in ((0, 0.5), (2, 0.3), (4, 0.9)):
        counts, size = thinned[:, k], int(SIZES[k])
        assert follows(counts, size, p)
        assert not follows(counts, size, 1.01 * p) and not follows(counts, size, p / 1.01)
        extreme = size * (counts > p * size)  # now and then all are kept, or nobody
        together = np.where(np.arange(ROUNDS) % 20 == 0, extreme, counts)
        assert not follows(together, size, p)
    assert (thinned[:, 1] == 25).all() and (thinned[:, 3] == 0).all()


def test_groups_are_thinned_independently(thinned):
    def uncorrelated(one, other):
        return stats.pearsonr(one, other).pvalue >= ALPHA

    for i, j in ((0, 2), (0, 4), (2, 4)):
        assert uncorrelated(thinned[:, i], thinned[:, j])
    assert uncorrelated(thinned[:-1, 0], thinned[1:, 0])
    assert not uncorrelated(thinned[:, 0], thinned[:, 2] + thinned[:, 0] // 8)


class Watching:
    """The secure noise, with what it was asked and what it said."""

    def __init__(self):
        self.asked, self.said = [], []

    def keep(self, chances):
        self.asked.append(chances)
        self.said.append(SECURE.keep(chances))
        return self.said[-1]


def test_blocks_of_people_whatever_groups_they_are_of():
    """More people than are drawn at once, and groups that lie across the ends of blocks: everyone is drawn once, and counted where they belong."""
    block = sample.BLOCK
    sizes = np.array([3, block - 5, 1, 9, 2 * block - 100, 50, 0, 92, 1_000, 77, 1])
    keep = [0.4, 0.7, 0.5, 1, 0.2, 0, 0.5, 0.6, 0.9, 0.3, 0.5]
    limits = np.array([SURE if p == 1 else chance(p) for p in keep], dtype=np.uint64)
    watching = Watching()
    kept = sample.thin(sizes, limits, watching)
    drawn = np.flatnonzero((limits > 0) & (limits < SURE))
    assert len(watching.said) == 4 and max(map(len, watching.said)) == block
    assert (np.concatenate(watching.asked) == np.repeat(limits[drawn], sizes[drawn])).all()
    ends = np.cumsum(sizes[drawn])
    said = np.concatenate(watching.said)
    assert said.size == ends[-1]
    assert kept[drawn].tolist() == [int(part.sum()) for part in np.split(said, ends[:-1])]
    assert kept[3] == 9 and kept[5] == 0 and kept[6] == 0
    for people, size, p in zip(kept.tolist(), sizes.tolist(), keep, strict=True):
        if 0 < p < 1 and size:
            assert stats.binomtest(people, size, p).pvalue >= ALPHA
    for k in (1, 4):
        assert stats.binomtest(int(kept[k]), int(sizes[k]), 1.01 * keep[k]).pvalue < ALPHA


# ---- predictions -----------------------------------------------------------------------------------------------------

N = 2_000
LEVELS = {0.1: 1_200, 0.4: 500, 1.0: 300}
RUNS = 3_000
EDGES = [0, 1, 2, 3, 4]


def halves(_):
    return np.repeat([0.0, 4.0], N // 2)


def few(_):
    return np.repeat([0.0, 4.0], [N - N // 20, N // 20])


def even(_):
    return np.arange(N) % 4 + 0.5


def spread(random):
    return random.beta(2, 3, N) * 4


# query of the values, the values, and between which the measured error over the predicted one lies
EXACTLY, AT_MOST = (0.9, 1.1), (0.3, 1.05)
MEAN = {"bounds": (0, 4), "step": 1}
SETTINGS = {
    ("mean", "replace"): (accord.mean("x", **MEAN, missing="none"), halves, EXACTLY),
    ("mean of those who have a value", "replace"): (accord.mean("x", **MEAN), halves, AT_MOST),
    ("mean of values inside", "replace"): (accord.mean("x", bounds=(0, 4), step=0.01), spread, AT_MOST),
    ("mean", "add-remove"): (accord.mean("x", **MEAN, std=4 * np.sqrt(0.05 * 0.95)), few, EXACTLY),
    ("mean of values inside", "add-remove"): (
        accord.mean("x", bounds=(0, 4), step=0.01, std=0.9),
        spread,
        AT_MOST,
    ),
    ("sum", "replace"): (accord.sum("x", **MEAN), halves, EXACTLY),
    ("sum", "add-remove"): (accord.sum("x", **MEAN), halves, AT_MOST),
    ("count", "replace"): (accord.count(where="x > 2"), halves, EXACTLY),
    ("count", "add-remove"): (accord.count(where="x > 2"), halves, AT_MOST),
    ("histogram", "replace"): (accord.histogram("x", edges=EDGES), even, EXACTLY),
    ("histogram", "add-remove"): (accord.histogram("x", edges=EDGES), even, EXACTLY),
    ("median", "replace"): (accord.median("x", bounds=(0, 4), step=0.02), spread, (0.7, 1.1)),
    ("median", "add-remove"): (accord.median("x", bounds=(0, 4), step=0.02), spread, (0.7, 1.1)),
}


def cells_of(query, values):
    match query.statistic:
        case "count":
            return (values > 2).astype(np.int64), 2
        case "histogram":
            return values.astype(np.int64), len(query.cells)
        case _:
            cells = np.floor((values - float(query.low)) / float(query.step) + 0.5).astype(np.int64)
            return np.clip(cells, 0, query.cells), query.cells + 1


def truth_of(query, cells):
    match query.statistic:
        case "count":
            return float(cells.sum())
        case "histogram":
            return np.bincount(cells, minlength=len(query.cells)).astype(float)
        case "mean" | "sum":
            x = float(query.low) + float(query.step) * cells
            return float(x.mean() if query.statistic == "mean" else x.sum())
        case _:
            return None


def released(name, neighbors, t, there=1.0, runs=RUNS):
    """Errors in the plan's unit, how often intervals held (of each output), and the plan."""
    query, values_of, _ = SETTINGS[name, neighbors]
    spec = accord.Spec.from_groups(LEVELS)
    plan = accord.plan(spec, query, "sample", t=t, neighbors=neighbors)
    random = np.random.default_rng(7)
    cells, size = cells_of(plan.query, values_of(random))
    everyone = np.repeat(np.arange(spec.micro.size), spec.people)
    errors, held = [], []
    for _ in range(runs):
        level, these = random.permutation(everyone), cells
        if there < 1:
            present = random.random(N) < there
            level, these = level[present], cells[present]
        groups = np.bincount(level * size + these, minlength=size * spec.micro.size)
        at = np.flatnonzero(groups)
        summary = Summary(spec.people, size, at // size, at % size, groups[at])
        value, kept = answer(plan, [summary], SECURE)
        interval = Release(plan, value, datetime.now(UTC), kept).interval(0.95)
        truth = truth_of(plan.query, these)
        if truth is None:  # of ranks
            point = round((value - float(plan.query.low)) / float(plan.query.step))
            below, up_to = 100 * (these < point).mean(), 100 * (these <= point).mean()
            errors.append(max(0.0, below - 50, 50 - up_to))
            held.append([below <= interval[1] and up_to >= interval[0]])
        elif isinstance(value, dict):
            errors.append(np.array(list(value.values())) - truth)
            held.append([low <= x <= high for x, (low, high) in zip(truth, interval.values(), strict=True)])
        else:
            errors.append(value - truth)
            held.append([interval[0] <= truth <= interval[1]])
    return np.array(errors), np.array(held), plan


@pytest.mark.parametrize(
    ("name", "neighbors", "t"),
    [(*setting, "max") for setting in SETTINGS]
    + [("mean", "replace", "mean"), ("histogram", "add-remove", "mean")],
)
def test_error_and_interval_are_as_predicted(name, neighbors, t):
    """The error about these people, on average or at most; a coverage of at least 95 % is not rejected at α = 1e-9."""
    least, most = SETTINGS[name, neighbors][2]
    errors, held, plan = released(name, neighbors, t, runs=2_000 if name == "median" else RUNS)
    keep = plan.calibration.keep
    assert ((keep > 0) & (keep < SURE)).any(), "somebody is kept at random"
    assert least < np.sqrt(np.mean(np.square(errors))) / plan.rmse_here < most
    for column in held.T:
        assert stats.binomtest(int(column.sum()), column.size, 0.95, alternative="less").pvalue > ALPHA


@pytest.mark.parametrize("name", ["mean", "sum", "count", "histogram"])
def test_intervals_hold_where_most_of_the_roster_are_not_there(name):
    errors, held, plan = released(name, "add-remove", "max", there=0.3, runs=1_500)
    for column in held.T:
        assert stats.binomtest(int(column.sum()), column.size, 0.95, alternative="less").pvalue > ALPHA
    if name == "mean":
        assert np.sqrt(np.mean(np.square(errors))) > 1.3 * plan.rmse_here  # for which it was stretched


def test_the_comparison_has_power():
    """A fifth less of noise, or intervals of two thirds of the width, are noticed."""
    errors, _, plan = released("mean", "replace", "max")
    assert not EXACTLY[0] < 0.8 * np.sqrt(np.mean(np.square(errors))) / plan.rmse_here < EXACTLY[1]
    half = plan.prediction.error_model.interval(0.0, (), 0.95, 1.0)[1]
    held = int((np.abs(errors) <= half).sum())
    narrow = int((np.abs(errors) <= half / 1.5).sum())
    assert stats.binomtest(held, RUNS, 0.95, alternative="less").pvalue > ALPHA
    assert stats.binomtest(narrow, RUNS, 0.95, alternative="less").pvalue < ALPHA
