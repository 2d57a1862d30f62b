"""Closed forms of the papers: against a convex solver, against each other, and against the papers' own numbers."""

from math import inf, log2, nan

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord import Spec, theory
from accord.budget import MICRO
from accord.errors import PlanError

levels = st.integers(1, 20 * MICRO).map(lambda micro: micro / MICRO) | st.just(inf)
specs = st.dictionaries(levels, st.integers(1, 10**5), min_size=1, max_size=8).map(Spec.from_groups)


def refusal(call, *args, **options):
    with pytest.raises(PlanError) as error:
        call(*args, **options)
    return str(error.value)


def affine_error(spec, tau, width=1.0, std=None):
    """(σ²·q_τ + 2Δ²)/s_τ²: [Z] Claim 1 before the minimum is taken."""
    c, n = np.minimum(spec.levels, tau), np.array(spec.counts)
    variance = (width / 2 if std is None else std) ** 2
    return (variance * (n @ c**2) + 2 * width**2) / (n @ c) ** 2


# ---- the best affine estimator ---------------------------------------------------------------------------------------


def random_spec(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 9))
    drawn = np.round(np.exp(rng.uniform(-5, 2, size)), 6)
    groups = dict(zip(drawn.tolist(), np.exp(rng.uniform(0, 8, size)).astype(int).tolist(), strict=True))
    return Spec.from_groups({**groups, inf: int(rng.integers(1, 100))} if seed % 2 else groups)


def solved(spec, width, std):
    """The smallest σ²·Σw² + 2Δ²·η² with w ≥ 0, Σw = 1 and w_i ≤ η·ε_i; a variable for each level's share of the weight.

    Everything is scaled to be about 1, which the solver's last digits need.
    """
    n, eps = np.array(spec.counts, dtype=float), np.array(spec.levels)
    finite = np.isfinite(eps)
    share, eta = cp.Variable(n.size), cp.Variable()
    unit = (n[finite] @ eps[finite]) ** -1 if finite.any() else 1.0
    start = affine_error(spec, max(eps[finite]), width, std)
    error = std**2 * cp.sum_squares(cp.multiply(share, n**-0.5)) + 2 * width**2 * cp.square(unit * eta)
    rules = [share >= 0, cp.sum(share) == 1, share[finite] <= cp.multiply(eta, unit * (n * eps)[finite])]
    problem = cp.Problem(cp.Minimize(error / start), rules)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-13, tol_gap_rel=1e-13, tol_feas=1e-13)
    return problem.value * start, share.value / n


@pytest.mark.parametrize("seed", range(14))
@pytest.mark.parametrize(("width", "std"), [(1.0, None), (10.0, 0.7)])
def test_affine_is_what_a_convex_solver_finds(seed, width, std):
    spec = random_spec(seed)
    best = theory.affine(spec, width, std)
    mse, weights = solved(spec, width, width / 2 if std is None else std)
    assert best.mse == pytest.approx(mse, rel=1e-9)
    assert best.weights == pytest.approx(weights, rel=1e-3, abs=1e-6 * weights.max())


@given(specs)
def test_affine_is_a_weighted_mean_that_keeps_everyones_level(spec):
    best = theory.affine(spec)
    assert best.weights @ spec.counts == pytest.approx(1)
    assert (np.diff(best.weights) >= 0).all()
    if best.tau < inf:
        assert (best.weights <= best.scale * np.array(spec.levels) * (1 + 1e-12)).all()


@given(specs, st.floats(0.001, 1000))
def test_no_other_tau_is_better(spec, factor):
    best = theory.affine(spec)
    if best.tau < inf:
        assert best.mse == pytest.approx(affine_error(spec, best.tau))
        assert best.mse <= affine_error(spec, best.tau * factor) * (1 + 1e-12)


@given(specs)
def test_tau_is_the_root_where_somebody_is_clipped(spec):
    tau = theory.affine(spec).tau
    eps, n = np.array(spec.levels), np.array(spec.counts)
    if tau == inf:
        assert spec.levels == (inf,)
    elif eps[-1] > tau:
        below = eps < tau
        assert n[below] @ (eps[below] * (tau - eps[below])) == pytest.approx(8, rel=1e-6)
    else:
        assert tau == eps[-1]
        assert n @ (eps * (tau - eps)) <= 8 * (1 + 1e-9)


@given(specs, st.floats(1e-3, 1e6))
def test_the_width_is_only_a_unit(spec, width):
    one, other = theory.affine(spec), theory.affine(spec, width)
    assert other.mse == pytest.approx(width**2 * one.mse)
    assert other.scale == pytest.approx(width * one.scale)
    assert other.tau == pytest.approx(one.tau)
    assert theory.threshold(spec, width).mse == pytest.approx(width**2 * theory.threshold(spec).mse)


def test_all_public_is_the_plain_mean():
    best = theory.affine(Spec.from_groups({inf: 40}))
    assert (best.tau, best.scale, best.mse, best.weights.tolist()) == (inf, 0.0, 0.25 / 40, [1 / 40])


def test_equal_levels_are_the_plain_laplace_mechanism():
    estimator = theory.affine(Spec.from_groups({0.5: 100}))
    assert estimator.mse == pytest.approx(0.25 / 100 + 2 / (100 * 0.5) ** 2)
    assert estimator.scale == pytest.approx(1 / 50)


# ---- the best threshold ----------------------------------------------------------------------------------------------


@given(specs)
def test_threshold_is_the_best_of_all_levels(spec):
    errors = {}
    for t in spec.levels:
        n = sum(count for level, count in zip(spec.levels, spec.counts, strict=True) if level >= t)
        errors[t] = 0.25 / n + (0 if t == inf else 2 / (t * n) ** 2)
    best = theory.threshold(spec)
    assert best.mse == pytest.approx(min(errors.values()))
    assert errors[best.t] == pytest.approx(best.mse)


# ---- [C] -------------------------------------------------------------------------------------------------------------

GROUPS = [
    (700, 0.1, 300, 0.15),
    (700, 0.1, 300, 0.9),
    (10_000, 0.001, 12, 2.0),
    (50, 1.0, 950, 1.0),
    (300, 0.2, 5, inf),
]


@pytest.mark.parametrize("groups", GROUPS)
def test_theorem_1_and_table_1_are_the_affine_estimator(groups):
    n1, e1, n2, e2 = groups
    theorem = theory.two_groups(n1, e1, n2, e2)
    spec = Spec.of(np.repeat([e1, e2], [n1, n2]))
    best = theory.affine(spec)
    assert theorem.bound == pytest.approx(min(best.mse, 0.25), rel=1e-12)
    assert theorem.weights == pytest.approx((best.weights[0], best.weights[-1]), rel=1e-12)
    assert theorem.regime == ("B" if best.tau < e2 else "A")


@pytest.mark.parametrize("groups", GROUPS)
def test_theorem_1_in_its_other_form(groups):
    """The second lines of eq. (3) and eq. (4)."""
    n1, e1, n2, e2 = groups
    n, f, r = n1 + n2, n1 / (n1 + n2), e2 / e1
    R = 1 + 8 / (e1**2 * n * f)
    if r <= R:
        regime, bound = "A", (f * R + (1 - f) * r**2) / (4 * n * (f + (1 - f) * r) ** 2)
    else:
        regime, bound = "B", (n * f * e1**2 + 8) / (4 * n * (n * f * e1**2 + 8 * (1 - f)))
    theorem = theory.two_groups(n1, e1, n2, e2)
    assert theorem.regime == regime
    assert (theorem.R, theorem.bound) == pytest.approx((R, min(bound, 0.25)))


def test_both_regimes_are_among_the_groups():
    assert {theory.two_groups(*groups).regime for groups in GROUPS} == {"A", "B"}


def test_the_bound_is_capped_at_a_quarter():
    assert theory.two_groups(2, 0.01, 1, 0.02).bound == 0.25
    assert theory.affine(Spec.from_groups({0.01: 2, 0.02: 1})).mse > 0.25


def test_the_regimes_meet():
    """At ε₂ = R·ε₁ both lines of Table I and of Theorem 1 say the same."""
    R = theory.two_groups(700, 0.1, 300, 0.1).R
    just, over = (
        theory.two_groups(700, 0.1, 300, R * 0.1 * (1 - 1e-9)),
        theory.two_groups(700, 0.1, 300, R * 0.1 * (1 + 1e-9)),
    )
    assert (just.regime, over.regime) == ("A", "B")
    assert just.bound == pytest.approx(over.bound, rel=1e-8)
    assert just.weights == pytest.approx(over.weights, rel=1e-8)


def test_saturation_is_R_times_the_smaller_level():
    for generous in (0.3, 1.0, inf):
        spec = Spec.from_groups({0.1: 700, generous: 300})
        saturated = theory.saturation(spec)
        assert saturated.tau == pytest.approx(0.1 * theory.two_groups(700, 0.1, 300, generous).R)
        assert dict(saturated.clipped) == {generous: 300}
        assert saturated.free[generous] == generous - saturated.tau
        assert saturated.share == 0.3
        assert theory.affine(spec).mse == pytest.approx(
            theory.affine(Spec.from_groups({0.1: 700, inf: 300})).mse
        )


def test_nobody_is_saturated_where_levels_are_close():
    saturated = theory.saturation(Spec.from_groups({0.1: 700, 0.15: 300}))
    assert (saturated.tau, saturated.share) == (0.15, 0)
    assert not saturated.clipped and not saturated.free


# ---- [Z] -------------------------------------------------------------------------------------------------------------


def test_example_1():
    spec = Spec.of([0.5, 1])
    assert theory.threshold(spec).mse == pytest.approx(17 / 8, rel=1e-15)
    assert theory.affine(spec).mse == pytest.approx(37 / 36, rel=1e-15)
    assert theory.gain(spec) == pytest.approx(153 / 74, rel=1e-15)


def test_theorem_1_is_nearly_reached():
    """ "The ratio is close to 1.95": it is 1.9565."""
    n1, e1 = 10_000, 0.001
    spec = Spec.from_groups({e1: n1, inf: 12})
    private, public = 1 / (4 * n1) + 2 / (n1 * e1) ** 2, 1 / (4 * 12)
    assert theory.affine(spec).mse == pytest.approx(private * public / (private + public))  # [Z] Appendix B
    assert theory.gain(spec) == pytest.approx(1.95, abs=0.01)
    assert theory.gain(spec) < theory.gain_bound(spec) == 2


@pytest.mark.parametrize("m", range(1, 13))
def test_theorem_3_the_gain_grows_with_the_levels(m):
    """ε_i = 2^{1−i}, n_i = 2^{i−1}. From m = 8 on the smallest levels are rounded down to millionths, which leaves the bound true."""
    spec = Spec.from_groups({2.0 ** (1 - i): 2 ** (i - 1) for i in range(1, m + 1)})
    assert len(spec.levels) == m
    assert spec.total == 2**m - 1
    assert m**2 / 5 <= theory.gain(spec) <= theory.gain_bound(spec) * (1 + 1e-12)


@given(specs)
def test_the_gain_is_at_least_1_and_within_its_bound(spec):
    assert 1 - 1e-12 <= theory.gain(spec) <= theory.gain_bound(spec) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("groups", "bound"),
    [
        ({0.1: 5}, 1),
        ({inf: 5}, 1),
        ({0.1: 5, inf: 5}, 2),
        ({0.1: 5, 1: 5}, 4),
        ({0.1: 50, 1: 50, inf: 50}, 9),
        ({0.1: 1, 1: 1, 2: 1, 3: 1}, (1 + log2(4)) ** 2),
    ],
)
def test_the_bound_is_that_of_the_theorem_which_applies(groups, bound):
    assert theory.gain_bound(Spec.from_groups({**groups, 0: 9})) == pytest.approx(bound)


# ---- refusals and size -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form", [theory.affine, theory.threshold, theory.gain, theory.gain_bound, theory.saturation]
)
def test_somebody_must_be_left(form):
    assert refusal(form, Spec.of([0, 0])) == (
        "nobody is left: 2 people opted out. A closed form needs at least one person with a level above 0."
    )


@pytest.mark.parametrize("form", [theory.affine, theory.threshold, theory.saturation])
@pytest.mark.parametrize(
    ("width", "std"),
    [(0, None), (-1, None), (inf, None), (nan, None), (1, 0.51), (1, 0), (1, -0.1), (1, nan), (1, inf)],
)
def test_width_and_std_must_go_together(form, width, std):
    assert refusal(form, Spec.of([1]), width, std) == (
        f"width={width} and std={std} do not go together. The width is positive and finite, the std positive and at most half of it."
    )


@pytest.mark.parametrize(
    "groups",
    [
        (5, 1.0, 5, 0.5),
        (5, 0, 5, 1.0),
        (5, -1, 5, 1),
        (0, 1, 5, 1),
        (5, 1, -1, 1),
        (5, inf, 5, inf),
        (5, 1, 5, nan),
    ],
)
def test_two_groups_that_are_none(groups):
    n1, e1, n2, e2 = groups
    assert refusal(theory.two_groups, *groups) == (
        f"two_groups got levels {e1} and {e2} with {n1} and {n2} people. It needs ε₁ ≤ ε₂, ε₁ finite and at least a millionth, and n1 > 0."
    )


def test_two_groups_with_a_level_that_is_almost_nothing():
    """Refused, or right: only the second group counts. Never a fault of arithmetic."""
    try:
        theorem = theory.two_groups(10, 1e-200, 100, inf)
    except PlanError:
        return
    assert theorem.bound == pytest.approx(1 / 400)
    assert theorem.weights == pytest.approx((0, 1 / 100))


def test_a_million_distinct_levels():
    spec = Spec.of(np.arange(1, 1_000_001) / MICRO)
    best, single = theory.affine(spec), theory.threshold(spec)
    assert 0.25e-6 < best.mse < single.mse
    eps = np.array(spec.levels)
    assert np.maximum(best.tau - eps, 0) @ eps == pytest.approx(8, rel=1e-9)  # a tau between two of them
    assert best.weights.sum() == pytest.approx(1)
