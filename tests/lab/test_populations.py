"""Populations are what they say of themselves, and specifications give everyone the level that they promise.

Draws are seeded; a distribution is tested by Kolmogorov and Smirnov at ALPHA, and a nearby one is rejected.
"""

from math import exp, inf, nan, sqrt

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

import accord
from accord.errors import AccordError, QueryError, SourceError, SpecError
from accord.lab import Drawn, specs
from accord.lab.simulation.populations import bernoulli, beta, column, lognormal, normal, uniform

ALPHA = 1e-4
SMOOTH = {
    "normal": (normal(), stats.norm(), (-2.0, 1.5)),
    "shifted normal": (normal(50, 12), stats.norm(50, 12), (0.0, 100.0)),
    "lognormal": (lognormal(1, 0.5), stats.lognorm(0.5, scale=exp(1)), (0.0, 6.0)),
    "wide lognormal": (lognormal(10, 1), stats.lognorm(1, scale=exp(10)), (0.0, 200_000.0)),
    "uniform": (uniform(), stats.uniform(), (0.0, 1.0)),
    "shifted uniform": (uniform(-3, 5), stats.uniform(-3, 8), (-1.0, 2.0)),
    "beta": (beta(2, 5), stats.beta(2, 5), (0.0, 1.0)),
    "shifted beta": (beta(0.5, 0.5, -1, 3), stats.beta(0.5, 0.5, -1, 4), (-2.0, 2.5)),
    "narrow beta": (beta(300, 200), stats.beta(300, 200), (0.0, 1.0)),
    "flat beta": (beta(1, 1), stats.uniform(), (0.2, 3.0)),
}
each = pytest.mark.parametrize("name", SMOOTH)


def rng(seed=0):
    return np.random.default_rng(seed)


# ---- populations -----------------------------------------------------------------------------------------------------


@each
def test_draws_follow_the_stated_distribution(name):
    """The population's own function, and scipy's. Power: values that are moved by a tenth of a standard deviation are rejected."""
    population, law, _ = SMOOTH[name]
    drawn = population.draw(rng(1), (40, 500))
    assert drawn.shape == (40, 500)
    drawn = drawn.reshape(-1)
    assert stats.kstest(drawn, population.below).pvalue >= ALPHA
    assert stats.kstest(drawn, law.cdf).pvalue >= ALPHA
    assert stats.kstest(drawn + 0.1 * drawn.std(), population.below).pvalue < ALPHA
    assert (population.draw(rng(1), 5) == population.draw(rng(1), 5)).all()
    assert population.name in repr(population)


@each
def test_the_distribution_function_is_scipys(name):
    population, law, (low, high) = SMOOTH[name]
    x = np.concatenate((np.linspace(low - 1, high + 1, 400), law.ppf([0.001, 0.5, 0.999]), [-1e300, 1e300]))
    np.testing.assert_allclose(population.below(x), law.cdf(x), atol=1e-7)
    assert (np.diff(population.below(np.sort(x))) >= 0).all()
    assert population.below(x.reshape(5, -1)).shape == (5, x.size // 5)


@each
def test_moments_of_moved_values(name):
    """Mean and standard deviation after moving to the bounds, by numerical integration, and of a large sample."""
    population, law, (low, high) = SMOOTH[name]

    def moment(k):
        inside = integrate.quad(
            lambda x: (x - low) ** k * law.pdf(x),
            max(low, law.support()[0]),
            min(high, law.support()[1]),
            limit=200,
        )[0]
        return inside + (high - low) ** k * law.sf(high)

    mean, std = low + moment(1), sqrt(moment(2) - moment(1) ** 2)
    assert population.mean(low, high) == pytest.approx(mean, abs=1e-6 * (high - low))
    assert population.std(low, high) == pytest.approx(std, abs=1e-5 * (high - low))
    drawn = np.clip(population.draw(rng(2), 100_000), low, high)
    assert population.mean(low, high) == pytest.approx(drawn.mean(), abs=5 * std / sqrt(100_000))
    assert population.std(low, high) == pytest.approx(drawn.std(), rel=0.03)


@each
@pytest.mark.parametrize("p", [1e-6, 0.1, 0.5, 0.9, 1 - 1e-6])
def test_quantiles_of_moved_values(name, p):
    population, law, (low, high) = SMOOTH[name]
    assert population.quantile(p, low, high) == pytest.approx(
        np.clip(law.ppf(p), low, high), abs=2e-5 * (high - low)
    )


@pytest.mark.parametrize(
    ("p", "low", "high"), [(0.3, 0, 1), (0.5, -2, 3), (1, 0, 1), (0, 0, 1), (0.01, 10, 20)]
)
def test_bernoulli(p, low, high):
    population = bernoulli(p, low, high)
    drawn = population.draw(rng(3), 20_000)
    assert set(np.unique(drawn)) <= {low, high}
    assert stats.binomtest(int((drawn == high).sum()), 20_000, p).pvalue >= ALPHA
    assert population.below(np.array([low - 1e-9, low, (low + high) / 2, high - 1e-9, high])).tolist() == [
        0,
        1 - p,
        1 - p,
        1 - p,
        1,
    ]
    assert population.mean(low, high) == pytest.approx(low + p * (high - low), abs=1e-9)
    assert population.std(low, high) == pytest.approx(sqrt(p * (1 - p)) * (high - low), abs=1e-6)
    wide = (low - 3 * (high - low), high + 5 * (high - low))
    assert population.mean(*wide) == pytest.approx(low + p * (high - low), abs=9 * (high - low) / 2**16)
    for level in (0.001, 0.4, 0.6, 0.999):
        assert population.quantile(level, *wide) == pytest.approx(low if level <= 1 - p else high, abs=1e-9)


@settings(max_examples=60)
@given(
    st.lists(st.floats(-100, 100), min_size=1, max_size=30),
    st.floats(0.01, 1),
    st.floats(-120, 0),
    st.floats(1, 120),
)
def test_a_column_is_its_values(values, p, low, high):
    population, x = column(values), np.sort(values)
    assert set(population.draw(rng(4), (3, 50)).reshape(-1)) <= set(values)
    probes = np.concatenate((x, x + 1e-3, x - 1e-3, [-1e9, 1e9]))
    np.testing.assert_allclose(population.below(probes), [(x <= v).mean() for v in probes])
    moved = np.clip(x, low, high)
    assert population.mean(low, high) == pytest.approx(moved.mean(), abs=(high - low) / 2**16)
    assert population.std(low, high) == pytest.approx(
        moved.std(), abs=4 * (high - low) / 2**16 + 0.01 * moved.std()
    )
    smallest = next(v for v in x if (x <= v).mean() >= p)
    assert population.quantile(p, low, high) == pytest.approx(np.clip(smallest, low, high), abs=1e-9)


def test_a_column_is_drawn_evenly():
    counts = np.bincount(column([0, 1, 1, 2, 5]).draw(rng(5), 20_000).astype(int), minlength=6)
    assert stats.chisquare(counts[[0, 1, 2, 5]], [4_000, 8_000, 4_000, 4_000]).pvalue >= ALPHA


def test_a_column_keeps_its_values_when_the_array_changes():
    values = np.array([3.0, 1.0, 2.0])
    population = column(values, "ages")
    values[:] = 99
    assert population.below(np.array([3.0])) == 1
    assert values.tolist() == [99, 99, 99]
    assert population.name == "ages (3 values)"


def test_missing_values_of_a_column_are_nobody():
    population = column([nan, 1.0, inf, None, -inf, 3.0])
    assert set(population.draw(rng(6), 100)) == {1.0, 3.0}
    assert "2 values" in population.name
    two_dimensional = column(np.array([[1, 2], [3, 4]]))
    assert "4 values" in two_dimensional.name


FILE = {
    "income": [10.5, None, 30.0, nan, 20.0],
    "whole": [1, 2, None, 4, 5],
    "name": ["a", "b", "c", "d", "e"],
    'od"d': [1.0, 1.0, 2.0, 2.0, inf],
}


@pytest.fixture(params=["parquet", "csv"])
def people(request, tmp_path):
    path = tmp_path / f"people.{request.param}"
    if request.param == "parquet":
        pq.write_table(pa.table(FILE), path)
    else:
        lines = [
            'income,whole,name,"od""d"',
            "10.5,1,a,1",
            ",2,b,1.0",
            "30,,c,2",
            "nan,4,d,2e0",
            "20.0,5,e,inf",
        ]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "numbers"), [("income", [10.5, 20, 30]), ("whole", [1, 2, 4, 5]), ('od"d', [1, 1, 2, 2])]
)
def test_a_column_of_a_file(people, name, numbers):
    for path in (people, str(people)):
        population = column(path, name)
        probes = np.array([0.0, 1, 2, 4, 5, 10.5, 20, 29, 30])
        np.testing.assert_allclose(
            population.below(probes), [(np.array(numbers) <= v).mean() for v in probes]
        )
        assert set(population.draw(rng(7), 200)) == set(numbers)
        assert population.name == f"{name} ({len(numbers)} values)"


def test_bad_columns_of_a_file(people):
    with pytest.raises(QueryError, match="did you mean 'income'"):
        column(people, "incme")
    with pytest.raises(QueryError, match="needs the name of a column"):
        column(people)
    with pytest.raises(SourceError, match="no file"):
        column(people.with_name("nobody.parquet"), "income")
    with pytest.raises(QueryError):  # text is no number, typed or not
        column(people, "name")


BAD = [
    (normal, (0, 0), "positive"),
    (normal, (0, -1), "positive"),
    (normal, (0, nan), "std"),
    (normal, (nan,), "mean"),
    (normal, (inf,), "mean"),
    (normal, ("a",), "mean"),
    (normal, (0, "a"), "std"),
    (normal, (None,), "mean"),
    (lognormal, (0, 0), "positive"),
    (lognormal, (nan, 1), "mean"),
    (uniform, (1, 1), "positive"),
    (uniform, (2, 1), "positive"),
    (uniform, (0, inf), "finite"),
    (uniform, (nan, 1), "finite"),
    (uniform, (-1.7e308, 1.7e308), "finite"),
    (bernoulli, (1.5,), "between 0 and 1"),
    (bernoulli, (-0.1,), "between 0 and 1"),
    (bernoulli, (nan,), "p"),
    (bernoulli, ("a",), "p"),
    (bernoulli, (0.5, 1, 0), "positive"),
    (bernoulli, (0.5, -inf, 0), "finite"),
    (beta, (0, 1), ""),
    (beta, (1, -1), ""),
    (beta, (nan, 1), ""),
    (beta, (2, 2, 1, 1), "positive"),
    (column, ([],), "at least one number"),
    (column, ([nan, inf],), "at least one number"),
    (column, (["a"],), "number"),
    (column, ([[1, 2], [3]],), "number"),
    (column, ({},), "number"),
    (column, (object(),), "number"),
]


@pytest.mark.parametrize(
    ("make", "arguments", "words"), BAD, ids=[f"{m.__name__}{k}" for k, (m, _, _) in enumerate(BAD)]
)
def test_bad_populations_are_refused(make, arguments, words):
    with pytest.raises(AccordError) as refused:
        make(*arguments)
    assert words in str(refused.value)
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize("a", [0.05, 0.1, 0.3, 0.5, 0.7])
@pytest.mark.parametrize("b", [0.1, 0.5, 2.0])
def test_a_steep_beta_is_right_or_refused(a, b):
    try:
        population = beta(a, b)
    except QueryError as refused:
        assert min(a, b) < 0.5
        assert "at least" in str(refused)
    else:
        x = np.linspace(0, 1, 201)
        np.testing.assert_allclose(population.below(x), stats.beta(a, b).cdf(x), atol=1e-4)


# ---- specifications --------------------------------------------------------------------------------------------------


def in_hundredths(levels):
    return np.allclose(levels * 100, np.round(levels * 100), atol=1e-9)


@pytest.mark.parametrize("people", [1, 2, 3, 7, 100, 1_000])
@pytest.mark.parametrize(
    ("conservative", "moderate"),
    [(0.54, 0.37), (0.5, 0.5), (0, 1), (1, 0), (0, 0), (1 / 3, 1 / 3), (0.26, 0.64)],
)
def test_the_three_groups(people, conservative, moderate):
    groups = specs.jorgensen(people, conservative, moderate, 0.05, 0.3, 2.0)
    levels = groups.draw(rng(8))
    assert levels.shape == (people,)
    assert in_hundredths(levels)
    first, second = round(conservative * people), round((conservative + moderate) * people)
    assert ((levels[:first] >= 0.05) & (levels[:first] <= 0.3)).all()
    assert ((levels[first:second] >= 0.3) & (levels[first:second] <= 2)).all()
    assert (levels[second:] == 2).all()
    if conservative + moderate == 1:
        assert second == people
    assert groups.people == people
    assert str(people) in repr(groups).replace(",", "")


def test_levels_are_uniform_within_their_group():
    """Rounded to hundredths: a value at either end is half as likely as one inside."""
    levels = specs.jorgensen(60_000, 0.5, 0.5, 0.01, 0.06, 0.1).draw(rng(9))
    for part, (low, high) in ((levels[:30_000], (1, 6)), (levels[30_000:], (6, 10))):
        counts = np.bincount(np.round(100 * part).astype(int), minlength=11)[low : high + 1]
        shares = np.full(high - low + 1, 1.0)
        shares[[0, -1]] = 0.5
        assert stats.chisquare(counts, 30_000 * shares / shares.sum()).pvalue >= ALPHA
        assert counts.sum() == 30_000


@pytest.mark.parametrize(("low", "high"), [(-4, 2), (0, 0), (-12.9, 12.9)])
def test_log_uniform(low, high):
    levels = specs.log_uniform(20_000, low, high).draw(rng(10))
    assert levels.shape == (20_000,)
    assert specs.log_uniform(20_000, low, high).spec(1).total == 20_000  # nobody is opted out
    if low < high:
        assert stats.kstest(np.log(levels), stats.uniform(low, high - low).cdf).pvalue >= ALPHA
    else:
        assert (levels == 1).all()


@pytest.mark.parametrize(
    "drawn", [specs.jorgensen(50), specs.log_uniform(50), specs.segmentation("gdma_2018_us", 50)], ids=repr
)
def test_a_seed_is_one_specification(drawn):
    assert isinstance(drawn, Drawn)
    assert drawn.spec(1) == drawn.spec(1)
    assert drawn.spec(1) != drawn.spec(2)
    assert drawn.spec() == drawn.spec(0)
    generator = rng(1)
    assert not np.array_equal(np.sort(drawn.draw(generator)), np.sort(drawn.draw(generator)))
    assert accord.Spec.of(drawn.draw(rng(1))) == drawn.spec(1)


@pytest.mark.parametrize("share", [0, 0.001, 0.3, 0.5, 0.9999, 1])
@pytest.mark.parametrize("people", [1, 10, 1_001])
def test_two_groups(people, share):
    spec = specs.two_groups(people, share, 0.1, inf)
    assert spec.total == people
    assert dict(zip(spec.levels, spec.counts, strict=True)).get(0.1, 0) == round(share * people)
    assert spec.opted_out == 0
    assert specs.two_groups(people, share, 1, 0.5).total == people
    assert specs.two_groups(people, share, 0.5, 0.5) == accord.Spec.from_groups({0.5: people})


def test_a_group_may_opt_out():
    assert specs.two_groups(10, 0.3, 0, 1).opted_out == 3


@pytest.mark.parametrize("name", sorted(specs.segmentations()))
def test_segmentations_are_whole_and_have_a_source(name):
    entry = specs.segmentations()[name]
    shares = [entry[part] for part in ("conservative", "moderate", "liberal")]
    assert all(0 < share < 1 for share in shares)
    assert sum(shares) == pytest.approx(1, abs=0.03)
    if abs(sum(shares) - 1) > 1e-9:
        assert "%" in entry["note"] or "rounding" in entry["note"]  # what is left is said
    assert len(entry["source"]) > 10
    assert 1990 < entry["year"] < 2030
    assert entry["population"]
    survey = specs.segmentation(name, 2_000)
    levels = survey.draw(rng(11))
    assert name in survey.name
    part = np.array([(levels < 0.2).sum(), (levels == 1).sum()]) / 2_000
    assert part[0] == pytest.approx(shares[0] / sum(shares), abs=0.03)  # some are rounded to the border
    assert part[1] == pytest.approx(shares[2] / sum(shares), abs=0.02)
    assert levels.min() >= 0.01
    assert in_hundredths(levels)
    other_levels = specs.segmentation(name, 30, 0.1, 0.2, 0.3).spec()
    assert other_levels.total == 30
    assert 0.1 <= other_levels.levels[0] <= other_levels.levels[-1] <= 0.3


def test_the_default_segmentation_is_that_of_the_paper():
    assert specs.segmentation("jorgensen_2015", 100).spec(4) == specs.jorgensen(100).spec(4)


REFUSED = [
    (specs.jorgensen, (0,)),
    (specs.jorgensen, (-5,)),
    (specs.jorgensen, (10.5,)),
    (specs.jorgensen, ("a",)),
    (specs.jorgensen, (10, 0.6, 0.5)),
    (specs.jorgensen, (10, -0.1, 0.5)),
    (specs.jorgensen, (10, 0.5, -0.1)),
    (specs.jorgensen, (10, nan, 0.5)),
    (specs.jorgensen, (10, 0.5, nan)),
    (specs.jorgensen, (10, 0.5, 0.3, 0.0)),
    (specs.jorgensen, (10, 0.5, 0.3, 0.5, 0.2)),
    (specs.jorgensen, (10, 0.5, 0.3, 0.1, 0.2, 0.15)),
    (specs.jorgensen, (10, 0.5, 0.3, 0.1, 0.2, inf)),
    (specs.jorgensen, (10, 0.5, 0.3, nan, 0.2, 1.0)),
    (specs.jorgensen, (10, "a")),
    (specs.jorgensen, (10, 0.5, None)),
    (specs.jorgensen, (10, 0.5, 0.3, "a")),
    (specs.log_uniform, (10, "a", 1)),
    (specs.two_groups, (10, "a", 0.1, 1)),
    (specs.log_uniform, (0,)),
    (specs.log_uniform, (2.5,)),
    (specs.log_uniform, (10, 3, 1)),
    (specs.log_uniform, (10, nan, 1)),
    (specs.log_uniform, (10, -inf, 1)),
    (specs.log_uniform, (10, -20, 1)),
    (specs.log_uniform, (10, 0, 20)),
    (specs.two_groups, (10, 1.5, 0.1, 1)),
    (specs.two_groups, (10, -0.5, 0.1, 1)),
    (specs.two_groups, (10, nan, 0.1, 1)),
    (specs.two_groups, (0, 0.5, 0.1, 1)),
    (specs.two_groups, (-10, 0.5, 0.1, 1)),
    (specs.two_groups, (10.5, 0.5, 0.1, 1)),
    (specs.two_groups, ("a", 0.5, 0.1, 1)),
    (specs.two_groups, (10, 0.5, -1, 1)),
    (specs.two_groups, (10, 0.5, nan, 1)),
    (specs.two_groups, (10, 0.5, 0.1, 1e9)),
    (specs.two_groups, (10, 0.5, "a", 1)),
    (specs.segmentation, ("nobody",)),
    (specs.segmentation, (None,)),
    (specs.segmentation, ("gdma_2018_us", 0)),
    (specs.segmentation, ("gdma_2018_us", 10, 0.5, 0.2)),
]


@pytest.mark.parametrize(
    ("make", "arguments"), REFUSED, ids=[f"{m.__name__}{k}" for k, (m, _) in enumerate(REFUSED)]
)
def test_bad_specifications_are_refused(make, arguments):
    with pytest.raises(SpecError) as refused:
        make(*arguments)
    assert str(refused.value).endswith(".")


def test_a_level_too_large_is_refused_when_it_is_drawn():
    with pytest.raises(SpecError, match="protects nobody"):
        specs.jorgensen(1_000, epsilon_l=1e8).spec()


def test_an_unknown_segmentation_is_helped():
    with pytest.raises(SpecError, match="did you mean 'gdma_2018_us'"):
        specs.segmentation("gdma_2018_usa")
