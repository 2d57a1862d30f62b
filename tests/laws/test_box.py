"""One noise for many sums, the box: its law, what it costs, what plans, releases and derived numbers make of it.

Privacy is exact: N(a − b) over all neighbors of all tiny tables, as whole numbers, and once output by output.
"""

from fractions import Fraction
from itertools import product
from math import comb, exp, inf, sqrt

import numpy as np
import pytest
from noises import Fixed
from scipy import stats

import accord
from accord import budget, noise
from accord.budget import MICRO, PUBLIC
from accord.errors import PlanError
from accord.lab.audit.recorded_draws import Boxed
from accord.lab.audit.recording_noise import Leak
from accord.lab.audit.release_laws import law, loss
from accord.lab.simulation.noise import Seeded
from accord.lab.simulation.twin import box_noise, twin
from accord.mechanisms.additive import BoxCalibration
from accord.planning import plan_within
from accord.planning.workload import Questions
from accord.relation import REPLACE
from accord.release.answer import answers_together
from accord.release.joint import Joint
from accord.release.release import carry_out, read_summaries
from accord.statistics import box, target_and_moves
from accord.statistics.box import Share

ASKED = {
    "mean": accord.mean("x", (0, 2), step=1, missing="none"),
    "count": accord.count(where="x >= 1"),
    "sum of members": accord.sum("y", (-1, 1), step=1, where="x > 0"),
    "mean of members": accord.mean("y", (-1, 1), step=1),
    "proportion": accord.proportion("y > 0"),
    "variance": accord.variance("x", (0, 2), step=1, missing="none"),
}
PEOPLE = [(0, -1), (2, -1), (2, 1), (1, None), (0, 1)]
"""x and y of everyone who may be somebody."""


def table(people, levels, **options):
    x, y = zip(*people, strict=True) if people else ((), ())
    y = [None if value is None else float(value) for value in y]
    columns = {
        "x": np.array(x, dtype=float),
        "y": np.array(y, dtype=float),
        "e": np.array(levels, dtype=float),
    }
    return accord.table(columns, epsilon="e", **options)


def answers(people, plan):
    """A release, for `law`: all that is published of it."""
    return lambda stand_in: [(p.answer, p.released) for p in carry_out(people.reader, plan, stand_in).parts]


def law_of(derived, k):
    """What is normal, the Laplace noises and the parts of boxes in a derived number, with these coefficients."""
    return Joint(derived.numbers).law(k)


def in_one_box(spec, queries, mechanism):
    """A plan of questions that share one noise, whether that pays or not."""

    def plan_one(k, affordable, coordinates=0):
        more = {"coordinates": coordinates}
        return plan_within(spec, queries[k], affordable, mechanism, None, MICRO, REPLACE, **more)

    asked, targets = accord.workload(queries), [target_and_moves(query, REPLACE)[0] for query in queries]
    questions = Questions(spec, asked, MICRO, plan_one, targets)
    parts = questions.plan_split([tuple(range(len(queries)))], [MICRO])
    return accord.Plan(spec, asked, MICRO, REPLACE, plans=dict(enumerate(parts)))


def answers_of_box(people, plan):
    """The same for a plan of one box; the table is read once, for all draws."""
    summaries = [read_summaries(people.reader, part, Fixed()) for part in plan.parts]
    return lambda stand_in: answers_together(plan.parts, summaries, stand_in)


# ---- privacy -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("levels", "mechanism"),
    [((0.1, 1.0), "affine"), ((0.123457, 0.000003), "minimum"), ((0.2, inf), "affine")],
    ids=str,
)
@pytest.mark.parametrize(
    "names", [("mean", "count", "sum of members"), ("mean of members", "proportion", "variance")]
)
def test_nobody_loses_more_than_their_charge_and_somebody_all_of_it(levels, mechanism, names):
    """Every table of two people, and everything that one of them may become."""
    plan = in_one_box(table(PEOPLE[:2], levels).spec(), [ASKED[name] for name in names], mechanism)
    assert plan.boxes == ((0, 1, 2),)
    charges = [Fraction(c, MICRO) for c in plan.cost.tolist()]
    worst = [Fraction(0)] * 2
    laws = {two: law(answers_of_box(table(two, levels), plan)) for two in product(PEOPLE, repeat=2)}
    order = np.argsort(levels)
    for two, here in laws.items():
        for person, other in product(range(2), PEOPLE):
            there = laws[tuple(other if k == person else who for k, who in enumerate(two))]
            worst[person] = max(worst[person], loss(here, there))
    assert [worst[k] for k in order] == charges
    largest = np.maximum.reduce([part.cost for part in plan.parts])
    assert (plan.cost == largest).all()
    assert ((plan.cost <= plan.spec.micro) | (plan.spec.micro == PUBLIC)).all()


def test_under_add_remove_counts_share_a_noise_and_means_do_not():
    levels = (0.3, 0.7)
    roster = accord.Spec.of(levels)
    counts = [accord.count(where="x >= 1"), accord.count(where="y > 0")]
    plan = accord.plan(
        roster, accord.workload([*counts, accord.mean("x", (0, 2))]), "affine", neighbors="add-remove"
    )
    assert plan.boxes == ((0, 1),)
    charge = Fraction(int(np.maximum.reduce([p.cost for p in plan.parts[:2]])[1]), MICRO)
    box_of = {}
    for who in [*PEOPLE, None]:
        people = table([who] if who else [], levels[1:] if who else [], neighbors="add-remove", roster=roster)
        draws = law(answers(people, plan)).branches[0]
        (box_of[who],) = [draw for draw in draws if isinstance(draw, Boxed)]
    assert max(box_of[who].loss(box_of[None]) for who in PEOPLE) == charge


def brute_force(spans, scale, here, there, beyond=4):
    """The largest log ratio over all outputs near two vectors of integers."""
    sides = [
        range(min(a, b) - beyond * span, max(a, b) + beyond * span + 1)
        for a, b, span in zip(here, there, spans, strict=True)
    ]

    def n(z, at):
        return max(-(-abs(x - a) // span) for x, a, span in zip(z, at, spans, strict=True))

    return max(Fraction(abs(n(z, there) - n(z, here))) / scale for z in product(*sides))


@pytest.mark.parametrize("spans", [(1, 1), (2, 3), (1, 4)], ids=str)
def test_the_loss_of_a_box_is_what_its_outputs_show(spans):
    scale = Fraction(7, 2)
    for move in product(range(-5, 6), repeat=2):
        here = Boxed(spans, scale, [0, 0])
        assert here.loss(Boxed(spans, scale, list(move))) == brute_force(spans, scale, (0, 0), move)


@pytest.mark.parametrize("name", ASKED)
def test_one_person_moves_no_sum_by_more_than_its_span(name):
    """And some by all of it: the spans are as small as they can be."""
    people = [table([who], [1.0]) for who in PEOPLE]
    plan, moves = in_one_box(people[0].spec(), [ASKED[name], ASKED["count"]], "minimum"), []
    target, c = plan.parts[0].target, int(plan.parts[0].cost[0])
    draws = [law(answers(each, plan)).branches[0][0] for each in people]
    for here, there in product(draws, repeat=2):
        moves.append(
            [abs(a - b) for a, b in zip(here.values, there.values, strict=True)][: len(target.box_spans)]
        )
    assert np.max(moves, axis=0).tolist() == [c * span for span in target.box_spans]


def test_the_audit_sees_a_noise_that_is_added_twice_or_left_out():
    def twice(stand_in):
        z, _ = stand_in.box((1, 1))
        return 1 + z, 2 + z

    with pytest.raises(Leak, match="one draw is added to two numbers"):
        law(twice)

    def left_out(x):
        return lambda stand_in: (x + stand_in.box((1, 1))[0], x)

    with pytest.raises(Leak, match="moves beside the noise"):
        loss(law(left_out(1)), law(left_out(2)))
    with pytest.raises(Leak, match="spans of a box"):
        law(lambda stand_in: 1 + stand_in.box((0.5,))[0])


# ---- the sampler -------------------------------------------------------------------------------------------


def radius_law(spans, scale, most):
    """P(r): exp(−r/scale) times the number of z in the box."""
    weights = np.array(
        [exp(-r / scale) * np.prod([2.0 * r * span + 1 for span in spans]) for r in range(most)]
    )
    return weights / weights.sum()


def norm(z, spans):
    return max(-(-abs(x) // span) for x, span in zip(z, spans, strict=True))


def n_probabilities(spans, scale, most):
    """P(N(z) = n), from the definition."""
    count = [float(np.prod([2.0 * n * span + 1 for span in spans])) for n in range(most)]
    weights = np.diff(count, prepend=0.0) * np.exp(-np.arange(most) / scale)
    return weights / weights.sum()


@pytest.mark.parametrize("spans", [(1,), (3,), (1, 2), (5, 1, 2)], ids=str)
def test_draws_have_the_law(spans):
    """A χ² test of N(z) and, within one N, of z itself, each at 10⁻⁹; another scale, or no ceiling, is rejected."""
    scale, runs = Fraction(3, 2), 4_000
    drawn = [noise.SECURE.box(spans, scale) for _ in range(runs)]
    sizes = np.bincount([min(norm(z, spans), 12) for z in drawn], minlength=13)

    def p_value(of_scale):
        chances = n_probabilities(spans, of_scale, 80)
        chances = np.append(chances[:12], chances[12:].sum())
        keep = runs * chances > 5
        observed = np.append(sizes[keep], sizes[~keep].sum())
        expected = runs * np.append(chances[keep], chances[~keep].sum())
        if expected[-1] < 5:
            observed, expected = observed[:-1], expected[:-1] * observed[:-1].sum() / expected[:-1].sum()
        return stats.chisquare(observed, expected).pvalue

    assert p_value(1.5) > 1e-9
    assert p_value(1.9) < 1e-9 and p_value(1.2) < 1e-9
    signs = sum(z[0] > 0 for z in drawn), sum(z[0] < 0 for z in drawn)
    assert stats.binomtest(signs[0], sum(signs)).pvalue > 1e-9


def test_a_box_of_one_span_of_one_is_a_laplace_noise():
    chances = n_probabilities((1,), 2.5, 200)
    q = exp(-1 / 2.5)
    assert chances[:9] == pytest.approx([(1 - q) / (1 + q) * (2 if n else 1) * q**n for n in range(9)])


def test_a_radius_is_never_kept_with_more_than_certainty():
    """(2·r·span + 1)/(2·span·(r + j)) ≤ 1, and the sum of geometric variables times it is the law of the radius."""
    for spans in product((1, 2, 7), repeat=3):
        proposed = np.array([comb(r + 3, 3) * exp(-r / 4) for r in range(60)])
        kept = np.array(
            [
                float(
                    np.prod(
                        [Fraction(2 * r * span + 1, 2 * span * (r + j)) for j, span in enumerate(spans, 1)]
                    )
                )
                for r in range(60)
            ]
        )
        assert (kept <= 1).all()
        assert proposed * kept / (proposed * kept).sum() == pytest.approx(radius_law(spans, 4, 60))


@pytest.mark.parametrize("spans, scale", [((), Fraction(1)), ((0,), Fraction(1)), ((1,), Fraction(0))])
def test_what_is_no_box_is_refused(spans, scale):
    with pytest.raises(ValueError, match="spans of at least 1"):
        noise.SECURE.box(spans, scale)


def test_the_seeded_noise_of_the_lab_has_the_law_too():
    stand_in, spans = Seeded(np.random.default_rng(1)), (3, 1)
    sizes = [norm(stand_in.box(spans, Fraction(2)), spans) for _ in range(8_000)]
    expected = 8_000 * n_probabilities(spans, 2.0, 100)
    assert np.bincount(sizes, minlength=9)[:9] == pytest.approx(expected[:9], rel=0.2)
    large = (
        np.array([stand_in.box((2**60, 1, 1)) for _ in range(2_000)], dtype=float)
        / np.array([2.0**60, 1, 1])
        / 1e6
    )
    assert large.var(axis=0) == pytest.approx(box.variance(3), rel=0.2)


# ---- the law of coordinates and of their sums --------------------------------------------------------------


@pytest.mark.parametrize("coordinates", [1, 2, 3, 5])
def test_tails_and_bands_are_those_of_the_definition(coordinates):
    """Summed over all radii and integers, at a scale at which steps hardly show."""
    scale, span = 400, 5
    most = scale * (coordinates + 40)
    radii = np.arange(most)
    chances = radius_law((span,) * coordinates, scale, most)
    for h in (0.3, 1.0, 2.5, 6.0):
        end = round(h * scale * span)
        points = 2.0 * radii * span + 1
        beyond = np.maximum(0, points - (2 * end + 1)) / points
        assert chances @ beyond == pytest.approx(box.tail(h, coordinates), abs=0.004)
        outside = 1 - np.minimum(1, (2 * end + 1) / points) ** coordinates
        assert chances @ outside == pytest.approx(box.upper_gamma(coordinates, h), abs=0.006)
    variance = chances @ (((2.0 * radii * span + 1) ** 2 - 1) / 12) / (scale * span) ** 2
    assert variance == pytest.approx(box.variance(coordinates), rel=0.01)


def tail_of_two(h, a, b, k):
    """P(|a·z₁ + b·z₂| > h), from P(aU + bV > y) = ((a + b − y)₊² − (a − b − y)₊²)/8ab, over the radius."""

    def part(c):
        if c <= 0:
            return 0.0
        q = [box.upper_gamma(k + 1 - i, h / c) for i in range(3)]
        return c * c * q[0] - 2 * c * h * q[1] / k + h * h * q[2] / (k * (k - 1))

    return (part(a + b) - part(a - b)) / (4 * a * b)


@pytest.mark.parametrize("coordinates", [2, 3, 20, 100])
@pytest.mark.parametrize("effects", [(1.0,), (1.0, 1.0), (3.0, 0.4), (1.0, 1e-3)], ids=str)
def test_half_widths_are_exact(coordinates, effects):
    for alpha in (0.5, 0.05, 1e-4):
        h = box.half_width(0.0, (), (Share(coordinates, effects),), alpha)
        exact = box.tail(h, coordinates) if len(effects) == 1 else tail_of_two(h, *effects, coordinates)
        assert exact == pytest.approx(alpha, rel=1e-3)
        assert box.several_tail(h, 0.0, (), (Share(coordinates, effects),)) == pytest.approx(alpha, rel=1e-3)


def test_half_widths_of_many_coordinates_with_other_noises_hold():
    rng = np.random.default_rng(3)
    for k, effects, s, scales in ((5, (1.0,) * 3, 2.0, (1.0,)), (30, (1.0, 2.0) * 8, 40.0, (9.0, 1.0))):
        radii = rng.gamma(k + 1, size=200_000)
        x = s * rng.normal(size=radii.size) + sum(b * rng.laplace(size=radii.size) for b in scales)
        x += radii * sum(a * rng.uniform(-1, 1, radii.size) for a in effects)
        h = box.half_width(s, scales, (Share(k, effects),), 0.05)
        assert np.mean(np.abs(x) > h) == pytest.approx(0.05, abs=0.003)
        assert box.half_width(s, scales, (Share(k, effects),), 1e-14) > 2 * h
    assert box.half_width(1.0, (), (), 0.05) == pytest.approx(1.96, abs=1e-3)
    assert box.half_width(1.0, (), (Share(9, (0.0,)),), 0.05) == pytest.approx(1.96, abs=1e-3)


# ---- plans -------------------------------------------------------------------------------------------------

J = accord.Spec.from_groups({0.01: 5_000, 0.1: 3_000, 0.2: 4_000, 0.6: 5_000, 1.0: 3_000})


def means(count, **options):
    return [accord.mean(f"x{k}", (0, 1 + k % 3), **options) for k in range(count)]


def split(monkeypatch, spec, asked):
    """The plan without boxes."""
    with monkeypatch.context() as without:
        without.setattr(accord.planning.workload, "partitions", lambda *_: iter(()))
        return accord.plan(spec, asked)


def test_a_box_is_taken_where_it_is_better_and_charged_once(monkeypatch):
    asked = accord.workload(means(6, missing="none"))
    plan, apart = accord.plan(J, asked), split(monkeypatch, J, asked)
    assert plan.boxes == (tuple(range(6)),) and apart.boxes == ()
    assert plan.total < 0.85 * apart.total and plan.equal == apart.equal
    assert (plan.cost == np.maximum.reduce([part.cost for part in plan.parts])).all()
    assert (plan.cost <= J.micro).all() and plan.fingerprint != apart.fingerprint
    assert all(part.calibration.coordinates == 6 for part in plan.parts)


def test_questions_of_other_kinds_keep_their_own_noise():
    others = [
        accord.median("m", (0, 1)),
        accord.histogram("h", edges=[0, 1, 2, 3]),
        accord.mean("x0", (0, 1), by="g", keys=[1, 2]),
        accord.variance("v", (0, 1)),
        accord.count(),
    ]
    plan = accord.plan(J, accord.workload([*others, *means(3)]))
    assert plan.boxes == ((5, 6, 7),)
    assert plan.parts[5].calibration.coordinates == 6  # two sums each: whose values are missing is private
    together = np.maximum.reduce([p.cost for p in plan.parts[5:]])
    assert (plan.cost == budget.add(together, *(p.cost for p in plan.parts[:5]))).all()
    assert (plan.cost <= J.micro).all()


def test_weights_make_boxes_of_their_own(monkeypatch):
    weights = [100.0] * 4 + [1.0] * 8
    asked = accord.workload(means(12, missing="none"), weights)
    plan = accord.plan(J, asked)
    assert plan.boxes == ((0, 1, 2, 3), (4, 5, 6, 7, 8, 9, 10, 11))
    assert plan.total < split(monkeypatch, J, asked).total
    assert (plan.cost <= J.micro).all()
    assert plan.parts[0].rmse < plan.parts[6].rmse


def test_a_mechanism_that_cannot_share_keeps_the_split():
    for mechanism in ("mix", "sample"):
        assert accord.plan(J, accord.workload(means(3, missing="none")), mechanism).boxes == ()
    named = accord.plan(J, accord.workload(means(3, missing="none")), "threshold")
    assert named.boxes == ((0, 1, 2),) and {p.mechanism for p in named.parts} == {"threshold"}
    refused = {c.mechanism: c.note for c in named.parts[0].candidates if c.rmse is None}
    assert refused["mix"] == "cannot share one noise with other questions"


def test_what_needs_no_noise_is_not_in_a_box():
    """Public people alone answer some, and the middle is as good for others: neither is charged for a noise."""
    spec = accord.Spec.from_groups({0.001: 10, inf: 5_000})
    plan = accord.plan(spec, accord.workload(means(4, missing="none")))
    assert plan.boxes == () and plan.charges == {0.001: 0.0, inf: inf}
    few = accord.plan(accord.Spec.of([0.1, 0.1]), accord.workload(means(4, missing="none")))
    assert few.boxes == () and few.charges == {0.1: 0.0}


@pytest.mark.parametrize("count, least", [(20, 1.4), (100, 2.2)])
def test_twenty_and_a_hundred_means_gain_as_much_as_they_should(count, least):
    """Of identical questions the plan is found for one of them: an equal split of Laplace noises against one box."""
    mean, each = accord.mean("x", (0, 1), missing="none"), budget.share(J.micro, MICRO // count)
    alone = plan_within(J, mean, each, "auto", None, MICRO, REPLACE)
    shared = plan_within(J, mean, J.micro, "auto", None, MICRO, REPLACE, coordinates=count)
    assert alone.rmse_here / shared.rmse_here > least
    assert isinstance(shared.calibration, BoxCalibration)


# ---- errors, intervals -------------------------------------------------------------------------------------


def test_errors_and_intervals_are_those_of_simulated_releases():
    """Levels do not go with values, and σ is as declared: the error is the predicted one, and 95 % of intervals hold."""
    rng, runs, spec = np.random.default_rng(5), 1_500, accord.Spec.from_groups({0.05: 300, 0.5: 300})
    asked = [accord.mean(f"x{k}", (0, 1), std=0.5, step=1, missing="none") for k in range(6)]
    plan = accord.plan(spec, accord.workload(asked))
    assert plan.boxes == (tuple(range(6)),)
    part = plan.parts[0]
    cells = rng.integers(0, 2, (runs, spec.total))
    errors = twin(part).answers(spec.people, cells, rng) - cells.mean(axis=1)
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(part.rmse_here, rel=0.1)
    half = part.prediction.error_model.spread.half_width(0.05)
    assert np.mean(np.abs(errors) <= half) == pytest.approx(0.95, abs=0.02)
    both = box_noise(6, 2, 100_000, rng)
    assert np.corrcoef(both)[0, 1] == pytest.approx(0, abs=0.02)
    assert np.corrcoef(np.abs(both))[0, 1] > 0.05  # but not independent


def test_a_release_draws_once_and_answers_what_was_drawn():
    people = accord.table(
        {"x": np.tile([0.0, 1.0], 50), "y": np.tile([1.0, 1.0], 50), "e": np.ones(100)}, epsilon="e"
    )
    asked = [
        accord.mean("x", (0, 1), step=1, missing="none"),
        accord.mean("y", (0, 1), step=1, missing="none"),
    ]
    plan = people.plan(accord.workload(asked))
    stand_in = Fixed((3 * 10**6, -5 * 10**6))
    answer = carry_out(people.reader, plan, stand_in)
    assert stand_in.scales == [(1, 1)]
    assert answer.value == [0.53, 0.95]
    alone = Fixed((2 * 10**6, 0))
    assert carry_out(people.reader, plan.parts[0], alone).value == 0.52 and alone.scales == [(1, 1)]
    assert len({part.time for part in answer.parts}) == 1


def released(levels=(0.5, 2.0), people=400):
    rng = np.random.default_rng(9)
    columns = {f"x{k}": rng.uniform(0, 1, people) for k in range(4)}
    table = accord.table(
        {**columns, "id": np.arange(people), "e": np.tile(levels, people // 2)}, epsilon="e", user="id"
    )
    asked = [accord.mean(f"x{k}", (0, 1), missing="none") for k in range(3)] + [
        accord.count(where="x3 > 0.5")
    ]
    return table, accord.workload(asked)


def test_derived_numbers_use_the_law_of_the_box():
    people, asked = released()
    answer = people.release(asked)
    assert answer.plan.boxes == ((0, 1, 2, 3),)
    (share,) = law_of(answer[0] - answer[1], [1.0, -1.0])[2]
    assert share.coordinates == 4 and len(share.effects) == 2
    low, high = (answer[0] - answer[1]).interval()
    width = (high - low) / 2
    one = (answer[0] + 0).interval()
    single = (one[1] - one[0]) / 2
    assert single < width < 2 * single
    assert (answer[0] - answer[0]).interval() == (0.0, 0.0)
    assert (answer[0] - answer[1]).rmse_here == pytest.approx(sqrt(2) * answer.parts[0].rmse_here, rel=0.3)
    assert (answer[0] / answer[1]).interval()[0] < answer[0].value / answer[1].value
    said = (answer[0] - answer[1]).receipt()["assumptions"]
    assert "numbers that share one noise are taken together, by the law of that noise" in said
    assert "noises of different draws are independent" not in said
    other = people.release(asked)
    assert len(law_of(answer[0] - other[0], [1.0, -1.0])[2]) == 2


def test_intervals_of_differences_hold():
    """95 % of simulated boxes, where the radius is the same for both numbers."""
    people, asked = released()
    answer = people.release(asked)
    first, second = (part for part in answer.parts[:2])
    derived = first - second
    sampling, _, (share,) = law_of(derived, [1.0, -1.0])
    rng = np.random.default_rng(2)
    noises = np.array(share.effects) @ box_noise(share.coordinates, 2, 50_000, rng)
    noises += sampling * rng.normal(size=50_000)
    low, high = derived.interval()
    assert np.mean(np.abs(noises) <= (high - low) / 2) == pytest.approx(0.95, abs=0.005)


def test_intervals_that_hold_together_are_bands_of_the_box():
    """95 % of simulated boxes have all coordinates inside; each by itself at 5 %/k would be wider."""
    rng = np.random.default_rng(8)
    columns = {f"x{k}": rng.integers(0, 2, 3_000).astype(float) for k in range(12)}
    people = accord.table({**columns, "e": np.full(3_000, 0.1)}, epsilon="e")
    asked = [accord.mean(f"x{k}", (0, 1), step=1, missing="none") for k in range(12)]
    answer = people.release(accord.workload(asked))
    ends = np.array(answer.intervals_together(0.95))
    halves = (ends[:, 1] - ends[:, 0]) / 2
    one_by_one = np.array([part.interval(1 - 0.05 / 12) for part in answer.parts])
    assert (halves < (one_by_one[:, 1] - one_by_one[:, 0]) / 2).all()
    spread = answer.plan.parts[0].prediction.error_model.spread
    noises = spread.box.effects[0] * box_noise(12, 12, 20_000, rng)
    noises += spread.sampling * rng.normal(size=noises.shape)
    assert 0.945 <= np.mean((np.abs(noises) <= halves[:, None]).all(axis=0)) <= 0.965
    mixed = people.release(accord.workload([asked[0], asked[1], accord.median("x2", (0, 1), step=1)]))
    apart, together = mixed.interval(0.95), mixed.intervals_together(0.95)
    assert all(b[0] <= a[0] and a[1] <= b[1] for a, b in zip(apart, together, strict=True))
    assert mixed.parts[0].intervals_together(0.9) == mixed.parts[0].interval(0.9)


# ---- what is told, and booked ------------------------------------------------------------------------------


def test_a_ledger_books_a_box_once_and_gives_it_out_again(tmp_path):
    people, asked = released()
    ledger = accord.Ledger(tmp_path / "accord.db")
    ledger.register(people, "people")
    answer = people.release(asked, share=0.5, ledger=ledger)
    assert answer.plan.boxes and answer.charges[2.0] <= 1.0
    assert {*ledger.remaining(people).levels} == {
        round(level - answer.charges[level], 6) for level in (0.5, 2.0)
    }
    again = people.release(asked, share=0.5, ledger=ledger)
    assert again.value == answer.value and again.repeated is not None
    assert (answer[0] - again[1]).interval() == (again[0] - answer[1]).interval()
    assert len(law_of(answer[0] - again[1], [1.0, -1.0])[2]) == 1


def test_plans_and_receipts_say_which_questions_share_a_noise():
    people, asked = released()
    plan = people.plan(asked)
    document = plan.describe()
    (told,) = document["boxes"]
    assert told["noise"] == "box" and told["questions"] == [0, 1, 2, 3] and told["sums"] == 4
    assert told["charges"] == document["charges"]
    assert all(part["noise"] == "box" and part["mechanism"] != "box" for part in document["plans"])
    assert "box 1" in str(plan) and "4 questions share one noise, and everyone pays for them once" in str(
        plan
    )
    answer = people.release(plan)
    assert answer.receipt()["boxes"] == document["boxes"]
    assert "All together:" in str(answer)
    assert any("share one noise (a box of 4 sums)" in note for note in plan.parts[0].assumptions)


def test_a_share_that_is_too_little_for_a_box_is_told_as_before():
    with pytest.raises(PlanError, match="too little for 3 questions"):
        accord.plan(J, accord.workload(means(3, missing="none")), share=2e-6)
