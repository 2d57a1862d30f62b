"""Points that count several times, for values that people round: the prior, its tail, its cost, its gain. Exactly, without sampling."""

import json
from fractions import Fraction
from math import ceil, exp, inf, log, sqrt
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

import accord
from accord.cli import main
from accord.lab.simulation.twin import summarise
from accord.mechanisms import named
from accord.planning.fingerprint import fingerprint
from accord.relation import ADD_REMOVE, REPLACE
from accord.statistics.rounding import read_steps, round_step, smooth_cost, times_each

BOUNDS = (0, 200_000)
SPEC = accord.Spec.from_groups({0.1: 20_000})


def income(**options):
    return accord.median("income", BOUNDS, missing="none", **options)


# ---- the prior -------------------------------------------------------------------------------------------------------


def times_by_definition(low, high, step, steps):
    points = int((high - low) / step) + 1
    times = [1] * points
    for each in steps:
        nearest = {
            int((m * each - low) / step + Fraction(1, 2))
            for m in range(-2000, 2000)
            if low <= m * each <= high
        }
        for r in nearest:
            times[r] += points // len(nearest)
    return times


@pytest.mark.parametrize(
    ("low", "high", "step", "steps"),
    [
        (0, 100, 1, [10, 50]),
        (-7, 93, 1, [10, 25]),
        (0, 1, Fraction(1, 64), [Fraction(1, 10), Fraction(1, 3)]),
        (Fraction(-1, 3), 9, Fraction(7, 30), [1, 2, 5]),
        (10**30, 10**30 + 64, 1, []),
        (5, 6, Fraction(1, 8), [6, 5]),
    ],
)
def test_a_point_counts_once_and_once_more_for_every_step_that_it_is_a_multiple_of(low, high, step, steps):
    of = Fraction(low), Fraction(high), Fraction(step), tuple(map(Fraction, steps))
    assert times_each(*of).tolist() == times_by_definition(*of)


def test_numbers_beyond_64_bits_are_exact():
    low, step = Fraction(10**25), Fraction(10**18)
    times = times_each(low, low + 40 * step, step, (7 * step,))
    first = -(-low // (7 * step)) * 7 * step
    assert [k for k, t in enumerate(times) if t > 1] == list(range(int((first - low) / step), 41, 7))


def test_a_grid_has_round_points_where_the_bounds_allow_it():
    assert (income(rounded=True).step, income().step) == (5, Fraction(200_000, 2**16))
    odd = accord.median("x", (0, 1 / 3), rounded=True)
    assert odd.step == Fraction(repr(1 / 3)) / 2**16
    assert accord.median("x", BOUNDS, step=50, rounded=True).step == 50
    assert round_step(Fraction(18), Fraction(100), 2**16) == Fraction(1, 500)
    assert read_steps(True, Fraction(0), Fraction(100), Fraction(1)) == (5, 10, 50, 100)
    middle = accord.median("x", (0, 9), missing="middle", rounded=True)
    assert middle.encoding.missing_cell * middle.step == Fraction(9, 2)


def test_what_is_declared_is_shown():
    query = income(rounded=[5000, 1000])
    assert query.describe()["rounded"] == ["1000", "5000"] and "rounded" not in income().describe()
    plan = accord.plan(SPEC, query)
    (told,) = (line for line in query.under(REPLACE).assumptions() if "rounded" in line)
    assert told == (
        "most values are rounded, to multiples of 1000 or 5000, as declared, and such points are likelier; if values "
        "are smooth, the noise is larger by up to 30 %, on average over where they lie: the predicted error has that "
        "in it, and is too large where they are rounded"
    )
    assert told in " ".join(str(plan).split()) or "multiples of 1000 or 5000" in str(plan)
    assert accord.plan(SPEC, income(rounded=False)).fingerprint == accord.plan(SPEC, income()).fingerprint
    assert plan.fingerprint != accord.plan(SPEC, income(rounded=[1000])).fingerprint


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rounded": "thousands"}, "rounded='thousands' is not offered. Give True for round decimal steps, or a list of steps, such as [1000, 5000]."),
        ({"rounded": 1000}, "rounded=1000 is not offered. Give True for round decimal steps, or a list of steps, such as [1000, 5000]."),
        ({"rounded": []}, "rounded= has 0 steps. Give 1 to 8 of them."),
        ({"rounded": range(1000, 10_000, 1000)}, "rounded= has 9 steps. Give 1 to 8 of them."),
        ({"rounded": [1]}, "rounded= has the step 1, and the grid's step is 5. Give steps that are at least as large, or a smaller step=."),
        ({"rounded": [True]}, "a step of rounded= is True. It must be a finite number."),
        ({"rounded": [-1000]}, "rounded= has the step -1000, and the grid's step is 5. Give steps that are at least as large, or a smaller step=."),
        ({"rounded": True, "step": 200_000}, "rounded=True finds no round step between the grid's step 200000 and the width 200000. Leave it out."),
        ({"rounded": [1000], "bounds": (1, 9)}, "rounded= has the step 1000, of which no multiple lies in [1, 9]. Leave it out."),
        ({"rounded": True, "bounds": ("2020-01-01", "2021-01-01")}, "rounded= is about numbers, and the bounds are dates, which have no decimal steps. Leave it out; step= may be a number of days."),
    ],
)  # fmt: skip
def test_what_cannot_be_rounded_is_refused(options, message):
    with pytest.raises(accord.errors.QueryError) as refused:
        accord.median("income", **{"bounds": BOUNDS, **options})
    assert str(refused.value) == message


# ---- the draw --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "times"),
    [([0, 0, -3], [5, 1, 9]), ([-1, 0, 0, 0, -4, -1, -1, -9], [7, 1, 3, 2, 30, 1, 4, 2]), ([-7], [4])],
)
def test_an_index_is_drawn_by_as_many_uniform_numbers_as_it_is_there(scores, times, monkeypatch):
    """Whichever whole part is drawn: so P(index) ∝ times·exp(score/scale), by the argument in noise.py. Sampled: test_choose.py."""
    scale, wholes = 2, sorted({(max(scores) - s) // 2 for s in scores})
    for k, whole in enumerate(wholes):
        members = [
            t if (max(scores) - s) // scale == whole else 0 for s, t in zip(scores, times, strict=True)
        ]
        drawn, given = [], []
        monkeypatch.setattr(
            accord.noise,
            "by_weight",
            lambda exponents, counts, k=k, given=given: given.append(counts[k]) or k,
        )
        for member in range(sum(members)):
            uniform = SimpleNamespace(randbelow=lambda below, member=member: member)
            monkeypatch.setattr(accord.noise, "secrets", uniform)
            monkeypatch.setattr(accord.noise, "exp_coin", lambda a, b: True)
            drawn.append(accord.noise.SECURE.choose(np.array(scores), scale, np.array(times)))
        assert np.bincount(drawn, minlength=len(scores)).tolist() == members
        assert set(given) == {sum(members)}


@pytest.mark.parametrize("times", [[1, 0], [1], [3, -1]])
def test_a_point_that_does_not_count_is_no_point(times):
    with pytest.raises(ValueError, match="each thing to choose from is there at least once"):
        accord.noise.SECURE.choose(np.array([0, 1]), 1, np.array(times))


# ---- exact laws of a median ------------------------------------------------------------------------------------------


class Law:
    """Keeps the law of the last choice: of each point its probability."""

    def laplace(self, scale):
        return 0

    def choose(self, scores, scale, times=None):
        logs = np.asarray(scores - scores.max(), dtype=float) / scale
        weights = np.exp(logs) * (1 if times is None else times)
        self.law = weights / weights.sum()
        return 0


def law_of_points(plan, values):
    cells = np.rint(
        np.clip((values - float(plan.query.low)) / float(plan.query.step), 0, plan.query.cells)
    ).astype(int)
    noise = Law()
    named(plan.mechanism).method(plan.target).answer(
        summarise(plan, cells), plan.calibration, plan.target, noise
    )
    return noise.law, cells


def off_by(points, cells, p=0.5):
    """Of each point, by how many percentile points it is off."""
    counts = np.bincount(cells, minlength=points)
    up_to = np.cumsum(counts)
    below, above = up_to - counts, cells.size - up_to
    return 100 * np.maximum(0, np.maximum(below / cells.size - p, above / cells.size - (1 - p)))


def error(plan, values):
    law, cells = law_of_points(plan, values)
    return sqrt(law @ off_by(plan.query.points, cells) ** 2)


def incomes(smallest=1.0, size=20_000):
    """Lognormal, rounded to multiples of `smallest`."""
    drawn = np.exp(np.random.default_rng(3).normal(10.6, 0.9, size))
    return np.rint(drawn / smallest) * smallest


@pytest.mark.parametrize("step", [1000, 5000])
def test_the_error_of_a_median_of_rounded_incomes_is_at_most_half(step):
    values = incomes(step)
    before = error(accord.plan(SPEC, income(), "rank"), values)
    after = error(accord.plan(SPEC, income(rounded=True), "rank"), values)
    assert after < before / 2
    assert after < accord.plan(SPEC, income(rounded=True), "rank").rmse_here


TABLES = {
    "smooth": incomes(),
    "rounded": incomes(1000),
    "beside a round point": 100_000 + np.random.default_rng(4).normal(0, 40, 20_000) + 60,
    "two heaps": np.repeat([49_990.0, 50_010.0], 10_000),
    "one value that is not round": np.full(20_000, 77_777.0),
}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("mechanism", ["rank", "minimum", "pe"])
def test_intervals_hold_for_any_values(table, mechanism):
    """The probability of an answer outside is at most 5 %, whatever the values are: reckoned from the law itself."""
    plan = accord.plan(accord.Spec.from_groups({0.02: 20_000}), income(rounded=True), mechanism)
    law, cells = law_of_points(plan, TABLES[table])
    low, high = plan.prediction.error_model.interval(0.0, (), 0.95, 1.0)
    off = off_by(plan.query.points, cells)
    assert high - low < 20
    assert law[off > min(50 - low, high - 50) + 1e-9].sum() <= 0.05


@pytest.mark.parametrize("seed", range(20))
def test_the_tail_is_at_most_that_of_all_points_as_often_as_they_count(seed):
    """P(score ≤ −a) ≤ T·exp(−a/b); and with K in the place of T it is wrong, where values are smooth and a round point is near."""
    rng = np.random.default_rng(seed)
    plan = accord.plan(
        accord.Spec.from_groups({1.0: 40}),
        accord.median("x", (0, 60), step=1, missing="none", rounded=[20]),
        "rank",
    )
    law, cells = law_of_points(plan, rng.integers(0, 61, 40))
    wrong = off_by(61, cells) / 100 * 40  # minus the score
    for a in np.unique(wrong):
        assert law[wrong >= a].sum() <= plan.target.total_times * exp(-a / 2) + 1e-12
    assert plan.target.total_times == 61 + 4 * 15


def test_with_the_number_of_points_alone_the_tail_would_be_too_thin():
    """Everyone but one half of them is at an odd point, and the round one beside it takes the answer."""
    times = times_each(Fraction(0), Fraction(60), Fraction(1), (Fraction(60),))
    wrong = np.full(61, 9.0)
    wrong[[0, 60]], wrong[30] = 4.0, 0.0
    law = times * np.exp(-wrong / 2)
    law /= law.sum()
    assert law[wrong >= 4].sum() > 61 * exp(-4 / 2) * law[30] * 0.9
    assert law[wrong >= 4].sum() <= times.sum() * exp(-4 / 2) * law[30]


# ---- the cost of it where values are smooth --------------------------------------------------------------------------


def cost(times, scale):
    """By how many times the error grows, on average over where a quantile lies, if each point has one value and noise falls off by e in `scale` points."""
    points = times.size
    away = np.arange(-points, points + 1)
    near = np.exp(-np.abs(away) / scale)
    size = 2 ** ceil(log(3 * points, 2))

    def around(kernel):
        return np.fft.irfft(np.fft.rfft(times, size) * np.fft.rfft(kernel, size), size)[points : 2 * points]

    inside = slice(points // 20, -points // 20)
    squares = (around(near * away**2) / around(near))[inside]
    return sqrt(squares.mean() / 2) / scale


@pytest.mark.parametrize(
    ("high", "step", "rounded"),
    [
        (20_000, Fraction(20_000, 2**12), True),
        (100, Fraction(1, 50), True),
        (2**16, 1, True),
        (100_000, 5, [1000]),
        (100_000, 5, [500, 1000]),
        (100_000, 5, [1000, 5000]),
        (100_000, 5, [997, 1009, 1013, 1019]),
        (100_000, 5, [1000, 2000, 4000, 8000]),
        (100_000, 5, [1000 * k for k in range(1, 9)]),
        (100_000, 5, [1000 + 7 * k for k in range(8)]),
    ],
)
def test_smooth_values_cost_at_most_what_the_plan_says(high, step, rounded):
    of = Fraction(0), Fraction(high), Fraction(step)
    steps = read_steps(rounded, *of)
    costs = [cost(times_each(*of, steps), scale) for scale in np.geomspace(0.6, 600, 9)]
    assert max(costs) <= smooth_cost(steps)
    assert max(costs) >= 0.75 * smooth_cost(steps) and cost(times_each(*of, ()), 20.0) == pytest.approx(
        1, abs=0.01
    )


@pytest.mark.parametrize("neighbors", [REPLACE, ADD_REMOVE])
def test_predicted_errors_have_the_cost_in_them(neighbors):
    """As if the noise were larger by it; what comes from who happens to be there stays."""
    spec = accord.Spec.from_groups({0.05: 20_000})
    for mechanism in ("rank", "minimum", "threshold", "sample"):
        plain, rounded = (
            accord.plan(
                spec, accord.median("x", (0, 1000), step=1, rounded=r), mechanism, neighbors=neighbors.name
            )
            for r in (None, [100])
        )
        assert plain.rmse < rounded.rmse <= 1.6 * plain.rmse
        assert smooth_cost((Fraction(100),)) == 1.3
        noise = rounded.calibration.noise_variance / plain.calibration.noise_variance
        assert noise == pytest.approx(1.3**2)


def test_min_and_max_aim_further_in():
    plain, rounded = (
        accord.plan(SPEC, accord.max("x", BOUNDS, step=5, rounded=r), "rank") for r in (None, True)
    )
    ps = [1 - plan.calibration.ps[0] for plan in (plain, rounded)]
    expected = log(rounded.target.total_times / 0.05) / log(plain.target.total_times / 0.05)
    assert float(ps[1] / ps[0]) == pytest.approx(expected, rel=1e-3)
    assert accord.plan(accord.Spec.of([inf] * 3), income(rounded=True)).mechanism and fingerprint(plain)


# ---- where it is declared --------------------------------------------------------------------------------------------

CATALOG = """schema = 1
[tables.people]
source = "people.csv"
epsilon = 0.5
[tables.people.columns.income]
bounds = [0, 200000]
rounded = {}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "people.csv").write_text("income\n" + "50000\n" * 40)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_table_declares_it(folder):
    file = folder / "accord.toml"
    file.write_text(CATALOG.format("[1000, 5000]"))
    people = accord.catalog(file)["people"]
    for ask in (accord.median, accord.min, accord.max):
        assert people.plan(ask("income")).query.rounded == (1000, 5000)
    assert people.plan(accord.median("income", rounded=False)).query.rounded == ()
    assert people.plan(accord.median("income", bounds=(0, 10_000))).query.rounded == ()
    file.write_text(CATALOG.format("true"))
    assert accord.catalog(file)["people"].plan(accord.median("income")).query.rounded[0] == 10
    for wrong, message in (
        ('"thousands"', "rounded = 'thousands' is not true, or a list of numbers."),
        ("[1]", "rounded= has the step 1, and the grid's step is 5."),
    ):
        file.write_text(CATALOG.format(wrong))
        with pytest.raises(accord.errors.SourceError) as refused:
            accord.catalog(file)
        assert message in str(refused.value), refused.value
    file.write_text(CATALOG.format("true").replace("bounds = [0, 200000]\n", ""))
    with pytest.raises(
        accord.errors.SourceError, match=r"rounded is about values between bounds\. Declare bounds"
    ):
        accord.catalog(file)


def test_rows_that_come_to_a_mean_are_not_rounded(folder):
    (folder / "people.csv").write_text("id,income\n" + "".join(f"{k % 20},50000\n" for k in range(40)))
    file = folder / "accord.toml"
    file.write_text(CATALOG.format("true").replace("epsilon = 0.5", 'epsilon = 0.5\nuser = "id"'))
    people = accord.catalog(file)["people"]
    assert people.plan(accord.median("income")).query.rounded == ()
    assert people.plan(accord.max("income")).query.rounded


@pytest.mark.parametrize(("text", "steps"), [("decimal", 9), ("1000,5000", 2)])
def test_the_command_line_takes_it(folder, text, steps):
    command = [
        "plan",
        "people.csv",
        "median",
        "income",
        "--bounds",
        "0",
        "200000",
        "--epsilon",
        "0.5",
        "--json",
    ]
    done = CliRunner().invoke(main, [*command, "--rounded", text])
    assert done.exit_code == 0, done.output
    assert len(json.loads(done.stdout)["query"]["rounded"]) == steps
    refused = CliRunner().invoke(main, [*command[:2], "mean", *command[3:], "--rounded", text])
    assert refused.exit_code == 2 and "--rounded has no meaning for mean." in refused.output


def test_a_release_is_one_of_the_round_points(folder):
    people = accord.table("people.csv", epsilon=50.0)
    release = people.release(accord.median("income", BOUNDS, rounded=True))
    assert release.value == 50_000
    assert release.receipt()["query"]["rounded"] == [f"{5 ** (k % 2) * 10 ** (1 + k // 2)}" for k in range(9)]
    assert any("most values are rounded" in line for line in release.receipt()["assumptions"])
