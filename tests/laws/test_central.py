"""Intervals of variances, covariances and correlations: each step of statistics/central.py, without chance."""

from fractions import Fraction
from itertools import permutations
from math import inf, sqrt

import numpy as np
import pytest

import accord
from accord.statistics.central import Moments, Polynomial, Size, Uneven, in_x, in_y, largest_variance, several
from accord.statistics.spread import Spread

EVEN = Uneven(0.0, 0.0, 1e-3)


def monomials(x, y):
    return np.array([np.ones_like(x), x, y, x * y, x * x, y * y])


def tangled(rng, n):
    """Numbers in [−1, 1]: spread, all at the ends, hardly any that differs, or nearly the same."""
    x, z = rng.uniform(-1, 1, n), rng.uniform(-1, 1, n)
    kind = rng.integers(4)
    if kind == 1:
        x, z = np.sign(x), np.sign(z)
    elif kind == 2:
        x = np.where(np.arange(n) == 0, 1.0, -0.9)
    elif kind == 3:
        x = 0.5 + x / 20
    return x, np.clip(x * rng.uniform(-1, 1) + z * rng.uniform(0, 1), -1, 1)


def test_the_truth_is_inside_wherever_its_own_noise_is_no_larger_than_its_bound():
    """Any moments at all are moved by anything: what is asked for leaves an interval only if a polynomial's noise exceeds its bound."""
    rng, alpha, held = (
        np.random.default_rng(1),
        0.05,
        {"mean": 0, "variance": 0, "covariance": 0, "correlation": 0},
    )
    for _ in range(1_000):
        x, y = tangled(rng, 6)
        true = monomials(x, y).mean(axis=1)
        size = 10.0 ** rng.uniform(-4, 0)
        weights = size * rng.uniform(0.2, 1, 6)
        moved = Polynomial(1.0, *(true + rng.laplace(0, 0.5, 6) * weights)[1:])

        def scale(f, weights=weights):
            return several(float(np.linalg.norm(np.abs(f) * weights)))

        moments = Moments(moved, scale, EVEN)

        def within(f, moments=moments, moved=moved, scale=scale):
            return abs(float(np.dot(f, moved))) <= moments.off(Polynomial(*f), Size(0.0, 0.0, 0.0), alpha)

        m, n = true[1], true[2]
        v, w, c = true[4] - m * m, true[5] - n * n, true[3] - m * n
        if not (within((-m, 1, 0, 0, 0, 0)) and within((-n, 0, 1, 0, 0, 0))):
            continue
        means = moments.means(alpha)
        assert means[0][0] <= m + 1e-12 and m - 1e-12 <= means[0][1]
        assert means[1][0] <= n + 1e-12 and n - 1e-12 <= means[1][1]
        held["mean"] += 1
        of_x, of_y = (m * m - v, -2 * m, 0, 0, 1, 0), (n * n - w, 0, -2 * n, 0, 0, 1)
        if within((m * n - c, -n, -m, 1, 0, 0)):
            low, high = moments.covariance(means, tuple(map(largest_variance, means)), alpha)
            assert low - 1e-12 <= c <= high + 1e-12
            held["covariance"] += 1
        if not (within(of_x) and within(of_y)):
            continue
        variances = (
            moments.variance_of(moved.x, moved.xx, means[0], in_x, alpha),
            moments.variance_of(moved.y, moved.yy, means[1], in_y, alpha),
        )
        for (low, high), truth in zip(variances, (v, w), strict=True):
            assert low - 1e-9 <= truth <= high + 1e-9
        held["variance"] += 1
        if min(v, w) <= 1e-12:
            continue
        r, ratio = c / sqrt(v * w), sqrt(w / v)
        f = np.array([m * n, -n, -m, 1, 0, 0]) - r / 2 * (
            ratio * np.array([m * m, -2 * m, 0, 0, 1, 0]) + np.array([n * n, 0, -2 * n, 0, 0, 1]) / ratio
        )
        if within(f):
            low, high = moments.correlation(means, variances, alpha)
            assert low - 1e-9 <= r <= high + 1e-9
            held["correlation"] += 1
    assert min(held.values()) > 250  # it was not all left out


def test_every_variance_that_could_have_been_is_inside():
    """By trying all of them, with a noise in which the constant and the square add up, as where people come and go."""
    rng, quantile = np.random.default_rng(5), several(1.0).half_width(0.05)
    for _ in range(100):
        size, first = 10.0 ** rng.uniform(-3, -0.5), rng.uniform(-0.9, 0.9)
        second = first**2 + rng.uniform(0, 1 - first**2)
        mean = max(-1.0, first - size), min(1.0, first + size)

        def scale(f, size=size):
            return size * float(np.hypot(f.one + f.xx, f.x))

        moments = Moments(Polynomial(1.0, first, xx=second), lambda f: several(scale(f)), EVEN)
        low, high = moments.variance_of(first, second, mean, in_x, 0.05)
        for mu in np.linspace(*mean, 5):
            for v in np.linspace(0, 1 - mu**2, 101):
                off = second - 2 * mu * first + mu**2 - v
                if abs(off) <= quantile * scale(in_x(mu**2 - v, -2 * mu, 1.0)):
                    assert low - 1e-9 <= v <= high + 1e-9


def test_a_larger_noise_makes_a_wider_interval_and_none_leaves_the_truth():
    rng = np.random.default_rng(2)
    x, y = rng.uniform(-1, 1, 50), rng.uniform(-1, 1, 50)
    true = Polynomial(*monomials(x, y).mean(axis=1))
    widths = []
    for size in (0.0, 1e-4, 1e-3, 1e-2):
        moments = Moments(true, lambda f, size=size: several(size * float(np.linalg.norm(f[1:]))), EVEN)
        means = moments.means(0.05)
        v = moments.variance_of(true.x, true.xx, means[0], in_x, 0.05)
        w = moments.variance_of(true.y, true.yy, means[1], in_y, 0.05)
        low, high = moments.correlation(means, (v, w), 0.05)
        assert low - 1e-9 <= np.corrcoef(x, y)[0, 1] <= high + 1e-9
        widths.append(high - low)
    assert widths[0] < 1e-9 and widths == sorted(widths) and widths[-1] < 0.5


@pytest.mark.parametrize("alpha", [0.3, 0.05, 0.005])
def test_unequal_weights_move_a_mean_by_no_more_than_the_bound(alpha):
    """All orders of seven people: among them values of which one differs, and weights of which one is large."""
    rng, orders = np.random.default_rng(3), np.array(list(permutations(range(7))))
    closest = 0.0
    for trial in range(60):
        w = rng.dirichlet(np.full(7, 10.0 ** rng.uniform(-1, 1)))
        if trial % 3 == 0:
            w = np.where(np.arange(7) < rng.integers(1, 7), rng.uniform(1, 20), 1.0)
            w /= w.sum()
        f = rng.uniform(-1, 1, 7) if trial % 2 else np.where(np.arange(7) < rng.integers(1, 7), 1.0, 0.0)
        f -= f.mean()
        d = min(w - w.min(), w.max() - w, key=lambda d: float(d @ d))
        uneven = Uneven(float(((w - 1 / 7) ** 2).sum()), float(d @ d), float(w.max()))
        bound = uneven.bound(Size(float(f.var()), float(np.ptp(f)), 1.0), alpha)
        moved = np.abs((w - 1 / 7) @ f[orders].T)
        assert (moved > bound + 1e-12).mean() <= alpha
        closest = max(closest, (moved > bound / 4).mean() / alpha)
    assert closest > 1  # a bound of a quarter would be passed


def test_weights_are_counted_from_their_smallest_or_largest():
    for spec in (
        accord.Spec.from_groups({0.1: 500, 1.0: 300}),
        accord.Spec.from_groups({0.01: 50, 0.2: 3000, inf: 20}),
        accord.Spec.from_groups({1.0: 77}),
    ):
        query = accord.variance("x", (0, 1), missing="none")
        for mechanism in ("affine", "threshold", "minimum"):
            plan = accord.plan(spec, query, mechanism)
            w = np.repeat(plan.calibration.weights, plan.spec.people)
            spread = plan.prediction.error_model.spread
            unit = plan.target.max_variance
            from_ends = [float(((w - end) ** 2).sum()) for end in (w.min(), w.max())]
            assert spread.from_end**2 / unit == pytest.approx(min(from_ends), rel=1e-9, abs=1e-18)
            assert spread.sampling**2 / unit == pytest.approx(((w - 1 / w.size) ** 2).sum(), abs=1e-18)
            assert spread.ceiling**2 / unit == pytest.approx(w.max())


QUESTIONS = {
    "variance": lambda **k: accord.variance("x", (0, 1), **k),
    "covariance": lambda **k: accord.covariance("x", "y", {"x": (0, 1), "y": (0, 1)}, **k),
    "correlation": lambda **k: accord.correlation("x", "y", {"x": (0, 1), "y": (0, 1)}, **k),
}


KINDS = {"everyone": {"missing": "none"}, "exclude": {}, "groups": {"by": "g", "keys": [1, 2, 3]}}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", QUESTIONS)
def test_the_scale_of_a_polynomial_is_that_of_its_noise(name, kind):
    """Each released sum is moved by the standard deviation of its own noise; what that does to the polynomial's sum adds up in squares."""
    n = 1_200
    plan = accord.plan(accord.Spec.from_groups({0.4: n}), QUESTIONS[name](**KINDS[kind]), "minimum")
    target = plan.target
    spread = plan.prediction.error_model.spread
    (charge,) = plan.calibration.charges.tolist()
    noise = Fraction(10**6 * target.sensitivity, charge * n)  # of a mean of the sums
    present = target.tells_size
    released = [Fraction(target.sensitivity, 5 + k) for k in range(target.released)]

    def sums(released):
        """Of each monomial, over everyone."""
        moments = target.released_moments(released, spread, plan.error_factor(released))
        one = moments.mean.one
        return np.array([one, *(one * part for part in moments.mean[1:])]), lambda f: moments.noise(f).laplace

    at, scale = sums(released)
    rng = np.random.default_rng(4)
    columns = {"variance": [0, 1, 4], "covariance": [0, 1, 2, 3], "correlation": range(6)}[name]
    for _ in range(20):
        f = np.zeros(6)
        f[list(columns)] = rng.normal(size=len(columns))
        moved = []
        for k in range(target.released):
            one = [x + (noise if j == k else 0) for j, x in enumerate(released)]
            moved.append(float(f @ (sums(one)[0] - at)))
        expected = np.linalg.norm(moved)
        assert scale(Polynomial(*f)) == pytest.approx(expected, rel=1e-9)
        assert present == (scale(Polynomial(one=1.0)) > 0)


def test_an_interval_is_of_use_where_levels_differ():
    """Bounds five times too wide, half of the people ten times stricter: narrower than a third of what the moments' own intervals made of it (0.0257)."""
    rng, widths = np.random.default_rng(8), []
    for _ in range(20):
        z = rng.normal(size=(2, 20_000))
        x, y = np.clip(0.3 + 0.06 * z[0], 0, 1), np.clip(0.4 + 0.06 * (0.6 * z[0] + 0.8 * z[1]), 0, 1)
        table = {"x": x, "y": y, "g": rng.integers(1, 3, x.size), "e": rng.choice([0.1, 1.0], x.size)}
        release = accord.table(table, epsilon="e").release(QUESTIONS["covariance"](where="g = 1"))
        low, high = release.interval(0.999)
        assert low <= np.cov(x[table["g"] == 1], y[table["g"] == 1], bias=True)[0, 1] <= high
        widths.append(np.diff(release.interval(0.95))[0])
    assert np.mean(widths) < 0.0257 / 2


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0, 10.0, 100.0])
def test_fewer_people_widen_an_interval_by_no_more_than_the_largest_weight_allows(factor):
    """Of so many times fewer people the sampling error is that of (c/W)·factor at most; without unequal weights there is none."""
    spread = Spread(sampling=1.0, laplace=0.0, ceiling=2.0)
    widened = spread.half_width(0.05, factor) / spread.half_width(0.05)
    assert widened == pytest.approx(min(max(factor, sqrt(factor)), 2 * sqrt(factor)))
    assert Spread(sampling=0.0, laplace=1.0).half_width(0.05, factor) == pytest.approx(
        factor * Spread(sampling=0.0, laplace=1.0).half_width(0.05)
    )
