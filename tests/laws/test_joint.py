"""Quantiles that are drawn together: the draw and its law, what people lose, how far off it is. Exactly, but for a few seeded draws.

The law is written here a second time, tuple by tuple, in floats and in fractions; docs/proofs/joint.md has the argument.
"""

from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, product
from math import ceil, exp, inf, log, prod, sqrt

import numpy as np
import pytest
from joint_law import Drawn, charges_of, largest_losses
from noises import SEEDED
from scipy import stats

import accord
from accord import noise, ordered
from accord.budget import MICRO, PUBLIC
from accord.lab.simulation.noise import Seeded
from accord.lab.simulation.twin import summarise
from accord.mechanisms import named, rank, rank_choice
from accord.ordered import OrderedLaw, Proposal, draw, entries, exp_bounds, propose, proposed
from accord.planning.tasks import task_of
from accord.relation import ADD_REMOVE, PRIVATE_LEVELS, REPLACE
from accord.statistics.ranks import spending

ALPHA = 1e-9
HALVES, THIRDS, THREE = (
    (Fraction(1, 2),),
    (Fraction(1, 4), Fraction(2, 3)),
    (Fraction(1, 10), Fraction(1, 2), Fraction(3, 5)),
)


def law_of(weights, ps, scale=4, parts=3, times=None):
    return OrderedLaw(
        np.array(weights), ps, Fraction(scale), parts, None if times is None else np.array(times)
    )


LAWS = {
    "one": law_of([3, 0, 5, 1], HALVES),
    "two": law_of([3, 0, 5, 1], THIRDS),
    "three": law_of([7, 2, 9], THREE, parts=4),
    "one heavy point": law_of([0, 60, 0], THIRDS, parts=60),
    "far out": law_of([0, 0, 4000, 1], THIRDS, parts=8),
    "nobody": law_of([0, 0, 0], THREE, parts=2),
    "a single point": law_of([5], THREE, parts=7),
    "counting several times": law_of([3, 0, 5, 1], THIRDS, times=[1, 6, 2, 1]),
    "three that count several times": law_of([3, 1, 2], THREE, Fraction(7, 2), parts=3, times=[4, 1, 2]),
    "beyond 64 bits": OrderedLaw(
        np.array([3 * 2**64, 5 * 2**64 + 1], dtype=object), THIRDS, Fraction(2**64), 6
    ),
}


# ---- the law, a second time ------------------------------------------------------------------------------------------


def before(law, place):
    """F of a part, exactly."""
    k, s = divmod(place, law.parts)
    w = [int(x) for x in law.weights]
    return sum(w[:k]) + Fraction(w[k] * (2 * s + 1), 2 * law.parts)


def energy(law, places, f=before):
    total = sum(int(x) for x in law.weights)
    ends = [Fraction(0), *(f(law, place) for place in places), Fraction(total)]
    ps = (Fraction(0), *law.ps, Fraction(1))
    return (
        sum(
            abs((b - a) - (q - p) * total)
            for (a, b), (p, q) in zip(pairwise(ends), pairwise(ps), strict=True)
        )
        / law.scale
    )


def all_tuples(law):
    return combinations_with_replacement(range(len(law.weights) * law.parts), len(law.ps))


def times_of(law, places):
    return 1 if law.times is None else prod(int(law.times[place // law.parts]) for place in places)


def law_of_points(law, tuples=all_tuples, f=before):
    """{points: probability} of every tuple of points."""
    each = {}
    for places in tuples(law):
        points = tuple(place // law.parts for place in places)
        each[points] = each.get(points, 0.0) + times_of(law, places) * exp(-float(energy(law, places, f)))
    total = sum(each.values())
    return {points: p / total for points, p in each.items()}


# ---- the draw --------------------------------------------------------------------------------------------------------


def probability_of_proposal(proposal, places):
    """q: over the cells of these parts, each drawn by its chances, and the parts in any order."""
    law = proposal.law
    numbers = [
        int(proposal.counts[g // law.parts])
        + (1 if law.times is None else int(law.times[g // law.parts])) * (g % law.parts)
        for g in places
    ]
    cells = [int(np.searchsorted(proposal.start, number, side="right")) - 1 for number in numbers]
    q, after = Fraction(times_of(law, places)), None
    for j in reversed(range(len(places))):
        chances = proposal.chances(j, after).tolist()
        q *= Fraction(chances[cells[j]], sum(chances) * int(proposal.size[cells[j]]))
        after = cells[j]
    ways = 1
    for cell in set(cells):
        inside = [g for g, c in zip(places, cells, strict=True) if c == cell]
        ways *= len(set(permutations(inside)))
    return q * ways


def permutations(items):
    if not items:
        return [()]
    return [(x, *rest) for k, x in enumerate(items) for rest in permutations([*items[:k], *items[k + 1 :]])]


@pytest.mark.parametrize("name", [name for name in LAWS if name != "one heavy point"])
def test_what_is_accepted_has_the_law_exactly(name):
    """q·ρ ∝ Πt·exp(−E) for every tuple, q adds up to 1, and ρ is at most 1 for all of them."""
    law = LAWS[name]
    proposal, total = propose(law), Fraction(0)
    for places in all_tuples(law):
        q = probability_of_proposal(proposal, list(places))
        total += q
        assert law.energy(list(places), proposal.before) == energy(law, places)
        low, high = proposal.acceptance(list(places), Fraction(times_of(law, places)) / q, 40)
        assert 0 < low <= high <= 1 or (low == 0 and high < Fraction(1, 10**30))
        expected = times_of(law, places) * exp_bounds(energy(law, places) + proposal.constant, 60)[0] / q
        assert low <= expected <= high
    assert total == 1


@pytest.mark.parametrize("name", LAWS)
def test_what_is_proposed_has_the_probability_that_is_said(name):
    law = LAWS[name]
    proposal = propose(law)
    SEEDED.seed(name)
    for _ in range(40):
        places, odds = proposed(proposal, SEEDED)
        assert places == sorted(places)
        assert times_of(law, places) / odds == probability_of_proposal(proposal, places)


def test_cells_are_split_where_many_parts_are_close_together():
    """Some cells hold parts of several points, some a part of one point's."""
    law = law_of([5, 0, 0, 0, 900, 3, 3, 3, 3], THIRDS, parts=200)
    proposal = propose(law)
    points = [
        (proposal.place(int(a)) // 200, proposal.place(int(a + n) - 1) // 200)
        for a, n in zip(proposal.start, proposal.size, strict=True)
    ]
    assert any(a < b for a, b in points) and sum(a == b == 4 for a, b in points) > 20
    assert proposal.start[0] == 0 and (proposal.start[1:] == (proposal.start + proposal.size)[:-1]).all()


@pytest.mark.parametrize(
    "exponent", [Fraction(0), Fraction(1, 3), Fraction(-5, 7), Fraction(10**9 + 7, 3), Fraction(10**12)]
)
def test_bounds_of_an_exponential_hold_and_close_in(exponent):
    wide, narrow = exp_bounds(exponent, 40), exp_bounds(exponent, 80)
    assert wide[0] <= narrow[0] <= narrow[1] <= wide[1]
    if exponent < 100:
        assert float(wide[0]) == pytest.approx(exp(-float(exponent)), rel=1e-14)
        assert wide[1] - wide[0] < Fraction(1, 10**35)


class Bits:
    """A uniform number whose first bits are these; all others are 1."""

    def __init__(self, number, bits):
        self.number, self.bits, self.asked = number, bits, 0

    def randbits(self, k):
        self.asked += 1
        if self.asked == 1:
            return (self.number << (k - self.bits)) + (1 << (k - self.bits)) - 1
        return (1 << k) - 1


def test_a_tuple_is_kept_where_the_uniform_number_is_below_rho(monkeypatch):
    proposal = propose(LAWS["two"])
    rho = Fraction(1, 3)
    gives = []
    monkeypatch.setattr(
        Proposal,
        "acceptance",
        lambda self, places, odds, digits: (
            gives.append(digits) or (rho - Fraction(1, 10**digits), rho + Fraction(1, 10**digits))
        ),
    )
    assert ordered.coin(proposal, [], Fraction(1), Bits(0, 2)) and not ordered.coin(
        proposal, [], Fraction(1), Bits(2, 2)
    )
    near = int(rho * 2**150)
    source = Bits(near, 150)
    assert not ordered.coin(proposal, [], Fraction(1), source) and source.asked > 1


def test_a_probability_above_one_is_no_coin(monkeypatch):
    """A constant that is too small is noticed, and nothing is given out."""
    proposal = propose(LAWS["two"])
    monkeypatch.setattr(
        ordered, "propose", lambda law: Proposal(**{**vars(proposal), "constant": proposal.constant - 2})
    )
    with pytest.raises(ArithmeticError, match="accepted with a probability above 1"):
        for _ in range(1000):
            draw(LAWS["two"], SEEDED)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ps": ()}, "ordered points need ascending fractions"),
        ({"ps": (Fraction(1, 2), Fraction(1, 3))}, "ordered points need ascending fractions"),
        ({"scale": Fraction(0)}, "a positive scale"),
        ({"parts": 0}, "and parts"),
        ({"times": np.array([1, 0])}, "each point to choose from is there at least once"),
        ({"parts": 2**61}, "too many parts"),
    ],
)
def test_what_is_no_law_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        OrderedLaw(**{"weights": np.array([1, 2]), "ps": HALVES, "scale": Fraction(4), "parts": 3, **change})


def clamped(law, place):
    """F moved to p·W where that is inside the weight of its point: another law."""
    total, k = sum(law.weights.tolist()), place // law.parts
    low = sum(law.weights.tolist()[:k])
    inside = [p * total for p in law.ps if low <= p * total <= low + int(law.weights[k])]
    return inside[0] if inside else before(law, place)


def unordered(law):
    return product(range(len(law.weights) * law.parts), repeat=len(law.ps))


SAMPLED = law_of([6, 0, 14, 3, 5], THIRDS, parts=8)
DRAWS = 1200


@pytest.mark.parametrize("source", ["releases", "lab"])
def test_draws_follow_the_law_and_no_other(source):
    """Power: the law with F clamped in a point, and that of half the noise, are rejected."""
    SEEDED.seed(f"ordered points of {source}")
    draws = noise.SECURE.ordered if source == "releases" else Seeded(np.random.default_rng(5)).ordered
    drawn = [tuple(draws(SAMPLED.weights, SAMPLED.ps, SAMPLED.scale, SAMPLED.parts)) for _ in range(DRAWS)]
    counts = {points: drawn.count(points) for points in set(drawn)}

    def follows(law):
        cells = [(counts.get(points, 0), p * DRAWS) for points, p in law.items() if p * DRAWS >= 5]
        rest = DRAWS - sum(n for n, _ in cells), DRAWS - sum(e for _, e in cells)
        seen, expected = zip(*cells, *([rest] if rest[1] > 0 else []), strict=True)
        return stats.chisquare(seen, expected, sum_check=False).pvalue >= ALPHA

    halved = law_of(SAMPLED.weights, SAMPLED.ps, 2, SAMPLED.parts)
    assert follows(law_of_points(SAMPLED))
    assert not follows(law_of_points(SAMPLED, f=clamped))
    assert not follows(law_of_points(halved))


# ---- what people lose ------------------------------------------------------------------------------------------------


def worst(tables, rates, law, charges, **kind):
    """The largest log ratio between tables, each with whom they differ in, against their charge."""
    most = 0.0
    laws = {table: law_of_points(law(table), **kind) for table in tables}
    for here, there, person, lost_besides in rates:
        p, q = laws[here], laws[there]
        lost = max((abs(log(p[u] / q[u])) if p[u] and q[u] else inf) for u in p) + lost_besides
        most = max(most, lost / charges[person])
    return most


def weights_of(table, charges, points):
    weights = [0] * points
    for x, charge in zip(table, charges, strict=True):
        if x is not None:
            weights[x] += charge
    return weights


def pairs(tables, people, values):
    """(table, other, person) for one person's change."""
    for table in tables:
        for person, value in product(range(people), values):
            if value != table[person]:
                yield table, (*table[:person], value, *table[person + 1 :]), person


CHARGES = {
    "unequal": (1, 4),
    "alike": (3, 3, 3),
    "far apart": (1, 20, 4),
    "one of weight": (1, 30),
    "two of weight": (6, 30),
}
ASKED = {
    "one": (HALVES, 3),
    "two": (THIRDS, 3),
    "three": (THREE, 2),
    "the ends": ((Fraction(1, 10), Fraction(9, 10)), 3),
}
SOME = [
    ("unequal", "one"),
    ("unequal", "two"),
    ("far apart", "two"),
    ("unequal", "three"),
    ("alike", "one"),
    ("one of weight", "one"),
    ("two of weight", "the ends"),
]


def lost(charges, asked, relation, tells_size, noise=1, **kind):
    """On all tables of three points, of people who may be missing where that is private; in units of the charge."""
    charges, (ps, parts) = CHARGES[charges], ASKED[asked]
    spent = spending(ps, relation, tells_size, together=True)
    values = [0, 1, 2] + ([None] if tells_size else [])
    tables = list(product(values, repeat=len(charges)))
    size = 0 if spent.size is None else 1 / spent.size

    def law(table):
        return law_of(weights_of(table, charges, 3), ps, noise * 4 / spent.rate, parts)

    def rates():
        for here, there, person in pairs(tables, len(charges), values):
            comes_or_goes = (here[person] is None) != (there[person] is None)
            if relation == REPLACE or comes_or_goes:
                yield here, there, person, float(size * charges[person] if comes_or_goes else 0)

    return worst(tables, rates(), law, charges, **kind)


@pytest.mark.parametrize(("charges", "asked"), SOME)
@pytest.mark.parametrize("who", ["replace", "where", "add-remove"])
def test_nobody_loses_more_than_their_charge(charges, asked, who):
    relation = ADD_REMOVE if who == "add-remove" else REPLACE
    assert lost(charges, asked, relation, who != "replace") <= 1 + 1e-9


def test_some_lose_nearly_all_of_it():
    assert lost("one of weight", "one", REPLACE, False) > 0.7
    assert lost("one of weight", "one", REPLACE, True) > 0.98
    assert lost("one of weight", "one", ADD_REMOVE, True) > 0.98


def test_half_the_noise_would_lose_more():
    assert lost("one of weight", "one", REPLACE, False, noise=Fraction(1, 2)) > 1.4
    assert lost("one of weight", "one", ADD_REMOVE, True, noise=Fraction(9, 10)) > 1.05


def test_tuples_that_are_not_ordered_would_lose_more():
    """A person of charge 1 moves from point 1 to 4, over points at which there are people of charge 30."""
    ps = (Fraction(3, 10), Fraction(4, 5), Fraction(17, 20))
    laws = [law_of(weights, ps, parts=1) for weights in ([0, 31, 30, 0, 0], [0, 30, 30, 0, 1])]

    def loss(tuples):
        here, there = (law_of_points(law, tuples) for law in laws)
        return max(abs(log(here[u] / there[u])) for u in here)

    assert loss(all_tuples) <= 1 and loss(unordered) > 1.4


def test_weights_that_are_clamped_inside_a_point_would_lose_more():
    assert lost("two of weight", "the ends", REPLACE, False) <= 1
    assert lost("two of weight", "the ends", REPLACE, False, f=clamped) > 2


def test_rates_of_spending():
    """One quantile is what it is by itself; several are charged once, and who comes or goes pays less."""
    for relation, tells_size in ((REPLACE, False), (REPLACE, True), (ADD_REMOVE, True)):
        alone, together = (spending(HALVES, relation, tells_size, together=t) for t in (False, True))
        assert (alone.choices, alone.size) == (together.choices, together.size)
        assert alone.variance == together.variance
    assert spending(THREE, REPLACE, False, together=True).rate == 1
    assert spending(THREE, REPLACE, True, together=True).rate == 1
    assert spending(THREE, ADD_REMOVE, True, together=True).rate == 1
    assert spending(THIRDS, ADD_REMOVE, True, together=True).rate == Fraction(9, 10) / Fraction(3, 4)


def quantiles(ps, **options):
    return accord.quantile("x", ps, **{"bounds": (0, 1000), "step": 1, "missing": "none", **options})


def beside_public_people():
    """{name: plan of a tuple}, of people of whom one or two are public, and so count as much as is best."""
    specs = {
        "one": accord.Spec.of([0.1, 1.0, inf]),
        "two": accord.Spec.of([1.5, inf, inf]),
        "heavier": accord.Spec.of([4.0, 12.0, inf]),
    }
    kinds = {
        "all": {},
        "where": {"where": "m > 0"},
        "by": {"by": "g", "keys": [1, 2]},
        "rounded": {"rounded": [2]},
    }
    offered = {}
    for neighbors, kind, who, ps, name in product(
        ("replace", "add-remove"), kinds, specs, ([0.25, 0.75], [0.1, 0.5, 0.55]), ("rank", "threshold")
    ):
        plan = accord.plan(specs[who], quantiles(ps, bounds=(0, 3), **kinds[kind]), name, neighbors=neighbors)
        if plan.draws_together and (len(ps) == 2 or who != "one"):  # which has too many parts
            offered[f"{neighbors}, {kind}, {who}, {name} {len(ps)}"] = plan.parts[0] if kind == "by" else plan
    return offered


BESIDE = beside_public_people()


@pytest.mark.parametrize("asked", BESIDE)
def test_nobody_loses_more_than_their_charge_beside_public_people(asked):
    """Public people are charged what they count. Whoever moves between private groups is in two draws."""
    plan = BESIDE[asked]
    draws = 2 if asked.startswith("replace, by") else 1
    levels = [
        level if level == PUBLIC else level / MICRO for level in np.repeat(plan.spec.micro, plan.spec.people)
    ]
    for lost, charge, level in zip(largest_losses(plan), charges_of(plan), levels, strict=True):
        assert lost <= charge + 1e-9 and draws * charge <= level


def test_every_kind_is_drawn_together_beside_public_people():
    assert {name.rpartition(", ")[0].rpartition(", ")[0] for name in BESIDE} == {
        f"{neighbors}, {kind}" for neighbors in ("replace", "add-remove") for kind in ("all", "where", "by", "rounded")
    }  # fmt: skip


def test_a_quarter_of_the_noise_beside_public_people_would_lose_more():
    plans = [plan for name, plan in BESIDE.items() if "replace, where" in name or "add-remove, all" in name]
    for plan in plans[:3]:
        lost, charges = largest_losses(plan, noise=Fraction(1, 4)), charges_of(plan)
        assert max(x / c for x, c in zip(lost, charges, strict=True)) > 1.05


# ---- more weight than a roster has ---------------------------------------------------------------------------------


class AtSize(Drawn):
    """Whose noise makes the size what it is told, whatever the weight is."""

    def __init__(self, size, weight):
        super().__init__()
        self.size, self.weight = size, weight

    def laplace(self, scale):
        return super().laplace(scale) + int(self.size * MICRO) - self.weight


@pytest.mark.parametrize("size", [0, 400, 1_500])
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE], ids=["add-remove", "where"])
def test_nobody_loses_more_whatever_size_was_drawn(size, relation, monkeypatch):
    """The tuple follows on a size that is released: at each size, its law and that of the size lose the charge.

    Sizes: as planned; with more parts; and at a lower rate as well, as of so much that tables are too large.
    """
    monkeypatch.setattr(rank_choice, "MOST_ENTRIES", entries(2, 400.0))
    charges, drawn = (MICRO, 30 * MICRO), {}
    spent = spending(THIRDS, relation, True, together=True)
    parts, rate = rank_choice.fitted(12, spent, 2, 3, Fraction(size))
    assert (parts > 12) == (size > 0) and (rate < spent.rate) == (size > 400)
    for table in product([None, 0, 1, 2], repeat=2):
        weights = np.array(weights_of(table, charges, 3))
        noise = AtSize(size, int(weights.sum()))
        released = rank_choice.chosen(weights, THIRDS, noise, spent, False, parts=12)
        assert released[-1] == size
        drawn[table] = noise.laws[0]
    for here, there, person in pairs(drawn, 2, [None, 0, 1, 2]):
        comes_or_goes = (here[person] is None) != (there[person] is None)
        if relation == REPLACE or comes_or_goes:
            charge = charges[person] / MICRO
            of_size = charge / float(spent.size) if comes_or_goes else 0
            lost = max(abs(drawn[here][u] - drawn[there][u]) for u in drawn[here])
            assert lost + of_size <= charge + 1e-9


@pytest.mark.parametrize(
    ("people", "kind", "times"),
    [
        *product((3, 2000), ("one value", "two far apart", "smooth"), (1, 5, 1000)),
        (3, "one value", 10**6),
        pytest.param(2000, "two far apart", 10**12, marks=pytest.mark.slow),
    ],
)
def test_a_draw_ends_however_wrong_a_roster_is(people, kind, times, monkeypatch):
    """So many times the weight: few tuples are tried, and tables are no larger than planned ones may be."""
    columns = {
        "one value": np.full(people, 300),
        "two far apart": np.arange(people) % 2 * 1000,
        "smooth": smooth(people),
    }
    plan = accord.plan(
        accord.Spec.from_groups({1.0: people}), quantiles(DECILES), "rank", neighbors="add-remove"
    )
    calibration, target = plan.calibration, plan.target
    if calibration.parts is None:
        calibration = rank.drawn_together(calibration, target, people)
    weights = np.bincount(columns[kind], minlength=1001).astype(object) * MICRO * times
    tried, coin = [], ordered.coin
    monkeypatch.setattr(ordered, "coin", lambda *given: tried.append(given[0].f.size) or coin(*given))
    spent = spending(target.ps, ADD_REMOVE, True, together=True)
    released = rank_choice.chosen(weights, target.ps, noise.SECURE, spent, False, parts=calibration.parts)
    assert len(tried) < 100 and max(tried) * len(DECILES) <= rank_choice.MOST_ENTRIES
    if people * times > 10_000:
        cells = [int(x) for x in released[:-1]]
        assert all(weights[cell] for cell in cells) or kind != "one value"


def test_parts_are_as_planned_where_no_more_is_there_than_can_be():
    """Who is planned for are all of a roster: the noise of a size does not change a law, but once in 10¹⁰ times."""
    spent = spending(THIRDS, ADD_REMOVE, True, together=True)
    planned = Fraction(2 * 1000) / (spent.rate * 2)
    for size in (Fraction(-50), Fraction(0), planned, planned + 23 * 10):
        assert rank_choice.fitted(1000, spent, 2, 1001, size) == (1000, spent.rate)
    assert rank_choice.fitted(1000, spent, 2, 1001, None) == (1000, spent.rate)
    assert rank_choice.fitted(1000, spent, 2, 1001, planned + 231)[0] == ceil(
        spent.rate * (planned + 231 + 410)
    )


# ---- how far off it is -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [[0, 12, 0], [3, 0, 5, 1, 4], [1, 1, 1, 1, 8, 0]])
@pytest.mark.parametrize("times", [False, True])
def test_the_tail_is_below_its_bound(weights, times):
    """P(some |F − p·W| ≥ a) ≤ N·exp(1/2 − a/2), with M ≥ J·W/2."""
    parts = sum(weights)
    each = [1 + 3 * (k % 2) for k in range(len(weights))] if times else [1] * len(weights)
    law = law_of(weights, THIRDS, parts=parts, times=each)
    total, of_energy = 0.0, []
    for places in all_tuples(law):
        p = times_of(law, places) * exp(-float(energy(law, places)))
        off = max(abs(before(law, g) - q * sum(weights)) for g, q in zip(places, law.ps, strict=True))
        of_energy.append((float(off), p))
        total += p
    everything, most = parts * sum(each), max(each)
    tuples = everything * (everything + most) / 2
    assert min(energy(law, places) for places in all_tuples(law)) <= Fraction(1, 2)
    for a in np.linspace(0, sum(weights), 20):
        assert sum(p for off, p in of_energy if off >= a) / total <= tuples * exp(0.5 - a / 2) + 1e-12


def test_too_few_parts_miss_a_heavy_point_for_certain():
    """Why M grows with W: of a constant column, few parts are near what is aimed at."""
    ps = (Fraction(1, 20), Fraction(19, 20))
    few, enough = (law_of_points(law_of([0, 1000, 0], ps, parts=m)) for m in (2, 40))
    assert few[1, 1] < 1e-9 and enough[1, 1] > 0.999


@pytest.mark.parametrize("outputs", [1, 2, 3, 9, 19])
def test_the_variance_is_that_of_laplace_variables_that_add_up_to_nothing(outputs):
    """8·J·(2J + 1)/3, by convolving their densities on a fine grid."""
    step, ends = 0.05, 120
    x = np.arange(-ends, ends + step / 2, step)
    density = np.exp(-np.abs(x) / 4)
    sums = [density / density.sum()]
    for _ in range(outputs):
        sums.append(stats_convolved(sums[-1], sums[0]))
    total = 0.0
    for j in range(1, outputs + 1):
        of_both = sums[j - 1] * sums[outputs - j][::-1]
        total += float(of_both @ x**2 / of_both.sum())
    assert total == pytest.approx(spending_variance(outputs), rel=2e-3)


def stats_convolved(a, b):
    size = 2 * a.size - 1
    whole = np.fft.irfft(np.fft.rfft(a, size) * np.fft.rfft(b, size), size)
    first = (a.size - 1) // 2
    return np.maximum(whole[first : first + a.size], 0)


def spending_variance(outputs):
    ps = tuple(Fraction(k, outputs + 1) for k in range(1, outputs + 1))
    return spending(ps, REPLACE, False, together=True).variance


DECILES = [k / 10 for k in range(1, 10)]
J_LEVELS = accord.Spec.from_groups({0.05: 5_400, 0.1: 5_400, 0.4: 3_700, 0.8: 3_700, 1.0: 1_800})


def measured_error(plan, values, runs):
    """In percentile points, about these people: of seeded draws of the lab, who share the law."""
    level = np.repeat(plan.calibration.charges, plan.spec.people)
    weights = np.zeros(1001, dtype=np.int64)
    np.add.at(weights, values, level)
    at = np.bincount(values, minlength=1001)
    below, above = np.cumsum(at) - at, at.sum() - np.cumsum(at)
    spent, source = (
        spending(plan.calibration.ps, REPLACE, False, together=plan.draws_together),
        Seeded(np.random.default_rng(3)),
    )
    target, total = plan.target, 0.0
    for _ in range(runs):
        cells = rank_choice.chosen(
            weights,
            plan.calibration.ps,
            source,
            spent,
            False,
            times=target.times,
            parts=plan.calibration.parts,
        )
        for cell, p in zip(sorted(map(int, cells)), target.ps, strict=True):
            off = max(0.0, below[cell] / at.sum() - float(p), above[cell] / at.sum() - float(1 - p))
            total += (100 * off) ** 2
    return sqrt(total / runs / len(target.ps))


def smooth(size=20_000, seed=4):
    return np.clip(np.random.default_rng(seed).normal(500, 180, size), 0, 1000).astype(int)


def split_of(plan, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(rank, "MOST_ENTRIES", 0)
        return accord.plan(plan.spec, plan.query, plan.mechanism)


def test_nine_quantiles_together_are_off_by_less_than_a_split(monkeypatch):
    """At least 1.6 times, and no more than is predicted."""
    asked = quantiles(DECILES, bounds=(0, 1000))
    plan = accord.plan(J_LEVELS, asked, "rank")
    assert plan.draws_together
    split = split_of(plan, monkeypatch)
    assert not split.draws_together and split.rmse_here > 1.6 * plan.rmse_here
    off, off_split = measured_error(plan, smooth(), 60), measured_error(split, smooth(), 60)
    assert off_split > 1.6 * off
    assert off < 1.1 * plan.rmse_here


def test_rounded_values_and_quantiles_together_go_together(monkeypatch):
    values = np.rint(smooth() / 50).astype(int) * 50
    plain, rounded = (accord.plan(J_LEVELS, quantiles(DECILES, rounded=r), "rank") for r in (None, [50]))
    assert plain.draws_together and rounded.draws_together
    assert measured_error(rounded, values, 25) < 0.6 * measured_error(plain, values, 25)
    assert measured_error(rounded, smooth(), 40) < 1.1 * rounded.rmse_here


# ---- plans -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("people", [30, 300, 1_500, 6_000, 60_000])
@pytest.mark.parametrize("ps", [[0.5, 0.9], [0.1, 0.5, 0.9], DECILES], ids=["two", "three", "nine"])
@pytest.mark.parametrize("kind", ["all", "where", "add-remove", "by", "rounded"])
def test_a_plan_is_never_worse_than_the_split(people, ps, kind, monkeypatch):
    options = {
        "where": {"where": "m > 0"},
        "by": {"by": "g", "keys": [1, 2]},
        "rounded": {"rounded": [50]},
    }.get(kind, {})
    neighbors = "add-remove" if kind == "add-remove" else "replace"
    spec = accord.Spec.from_groups({0.1: people // 2, 1.0: people - people // 2})
    for mechanism in ("minimum", "threshold", "rank"):
        plan = accord.plan(spec, quantiles(ps, **options), mechanism, neighbors=neighbors)
        with monkeypatch.context() as patched:
            patched.setattr(rank, "MOST_ENTRIES", 0)
            split = accord.plan(spec, quantiles(ps, **options), mechanism, neighbors=neighbors)
        assert not split.draws_together and plan.rmse <= split.rmse
        assert plan.draws_together == (plan.rmse < split.rmse)
        if plan.draws_together:
            spent = spending(plan.target.ps, plan.target.relation, plan.target.tells_size, together=True)
            everyone = Fraction(int(plan.calibration.charges @ plan.spec.people), MICRO)
            assert plan.calibration.parts >= spent.rate * len(ps) * everyone / 2


def test_what_is_drawn_by_itself():
    spec = accord.Spec.from_groups({1.0: 20_000})
    assert accord.plan(spec, quantiles([0.2, 0.8]), "rank").draws_together
    for asked in (quantiles(0.5), quantiles([0.5]), quantiles([0.2, 0.8], interval="values")):
        assert not accord.plan(spec, asked, "rank").draws_together
    assert not accord.plan(spec, quantiles([0.2, 0.8]), "sample").draws_together
    rank_alone, private = named("rank").method(quantiles([0.2, 0.8]).under(ADD_REMOVE)), PRIVATE_LEVELS
    for under, is_together in ((ADD_REMOVE, True), (private, False)):
        task, _, _ = task_of(spec, quantiles([0.2, 0.8]), spec.micro, None, under)
        assert (rank_alone.calibrate(task).parts is not None) == is_together
    everyone_public = accord.Spec.from_groups({inf: 2_000})
    assert not accord.plan(everyone_public, quantiles([0.2, 0.8]), "rank").draws_together
    alone = accord.plan(spec, quantiles([0.5]), "rank")
    assert alone.calibration.parts is None


def test_so_many_people_that_tables_were_too_large_have_a_split():
    spec = accord.Spec.from_groups({90.0: 10**9})
    assert not accord.plan(spec, quantiles(DECILES), "rank").draws_together


def table(**options):
    rng = np.random.default_rng(2)
    columns = {
        "x": smooth(4_000).astype(float),
        "m": rng.integers(0, 2, 4_000),
        "g": rng.integers(1, 3, 4_000),
        "id": np.arange(4_000),
    }
    return accord.table({**columns, "e": np.full(4_000, 2.0)}, epsilon="e", user="id", **options)


@pytest.mark.parametrize(
    "options",
    [{}, {"where": "m > 0"}, {"by": "g", "keys": [1, 2]}, {"by": "g", "keys": [1, 2], "membership": "public"}, {"missing": "exclude"}, {"rounded": [50]}],
    ids=["all", "where", "groups", "public groups", "missing", "rounded"],
)  # fmt: skip
def test_releases_are_near_the_truth_and_their_intervals_hold(options):
    asked = quantiles([0.2, 0.5, 0.8], **options)
    answer = table().release(asked, mechanism="rank")
    rows = [answer] if "by" not in options else None
    values = np.sort(smooth(4_000))
    for release in rows or []:
        assert release.plan.draws_together and release.value == sorted(release.value)
        low_high = release.interval(0.95)
        for value, p, (low, high) in zip(release.value, (20, 50, 80), low_high, strict=True):
            assert 0 <= low < p < high <= 100
            assert abs(100 * np.searchsorted(values, value) / values.size - p) < 5
    if rows is None:
        parts = answer.plan.parts
        assert all(part.draws_together for part in parts)


def test_plans_and_receipts_say_so():
    release = table().release(quantiles([0.2, 0.5, 0.8]), mechanism="rank")
    said = "the 3 quantiles are drawn together, in one draw at everyone's whole charge"
    assert said in release.plan.assumptions and "all 3 quantiles in one draw" in str(release.plan)
    assert release.plan.describe()["noise"] == release.receipt()["noise"] == "joint"
    split = table().release(quantiles([0.2, 0.5, 0.8], interval="values"), mechanism="rank")
    assert "noise" not in split.receipt()
    assert "each of the 3 quantiles has its part of everyone's charge" in split.plan.assumptions


def test_a_ledger_books_them_once(tmp_path):
    people = table()
    ledger = accord.Ledger(tmp_path / "accord.db")
    ledger.register(people, "people")
    release = people.release(quantiles([0.2, 0.5, 0.8]), mechanism="rank", share=0.5, ledger=ledger)
    assert release.plan.draws_together and release.charges == {2.0: 1.0}
    assert [*ledger.remaining(people).levels] == [1.0]
    again = people.release(quantiles([0.2, 0.5, 0.8]), mechanism="rank", share=0.5, ledger=ledger)
    assert again.value == release.value and again.repeated is not None


def test_the_same_release_without_noise_is_the_quantiles():
    """A mechanism gives the seam the weights at the points, and releases what comes back."""

    class Told:
        def ordered(self, weights, ps, scale, parts):
            self.asked = weights, ps, scale, parts
            return [3, 5]

    spec = accord.Spec.from_groups({1.0: 4_000})
    plan = accord.plan(spec, quantiles([0.2, 0.8]), "rank")
    told, values = Told(), smooth(4_000)
    method = named("rank").method(plan.target)
    assert method.answer(summarise(plan, values), plan.calibration, plan.target, told) == [3, 5]
    weights, ps, scale, parts = told.asked
    assert (weights == MICRO * np.bincount(values, minlength=1001)).all()
    assert (ps, scale, parts) == (plan.target.ps, 4 * MICRO, 4_000)
