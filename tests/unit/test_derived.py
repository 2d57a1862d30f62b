"""Answers from answers: sums, differences and ratios of released numbers, which cost nobody anything."""

import json
import pickle
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from math import inf, isnan, sqrt
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from jsonschema import Draft202012Validator
from noises import Fixed

import accord
from accord.errors import QueryError
from accord.people.reader import TableReader
from accord.release.numbers import Number
from accord.release.release import carry_out
from accord.statistics.convolution import half_width

RECEIPT = Draft202012Validator(
    json.loads((Path(__file__).parents[2] / "docs/schemas/derived.json").read_text(encoding="utf-8"))
)
N = 600
ROWS = {
    "id": np.arange(N),
    "age": np.arange(N) % 80 + 10.0,
    "income": np.arange(N) % 97 * 100.0,
    "sex": ["f", "m", "m"] * (N // 3),
    "ward": ["A", "B", "<C>"] * (N // 3),
    "level": np.array([0.5, 1.0, 2.0, 4.0] * (N // 4)),
}
OLD, ADULT = accord.count(where="age >= 65"), accord.count(where="age >= 20")
INCOME = {"column": "income", "bounds": (0, 10_000)}
WARDS = {"by": "ward", "keys": ["A", "B", "<C>"]}
CELLS = {"column": "age", "edges": [0, 30, 60, 100]}
SEXES = accord.histogram("sex", categories=["f", "m"], missing="m")


def opened(**options):
    return accord.table(ROWS, epsilon="level", **options)


def present(neighbors="add-remove"):
    people = opened()
    return opened(neighbors=neighbors, roster=people.spec()) if neighbors == "add-remove" else people


@pytest.fixture(scope="module")
def answers():
    """A release of each kind, of one table."""
    people = opened()
    asked = {
        "old": OLD,
        "adult": ADULT,
        "mean": accord.mean(**INCOME),
        "mean of all": accord.mean(**INCOME, missing="none"),
        "sum": accord.sum(**INCOME),
        "rows": accord.mean(**INCOME, where="sex = 'f'", membership="public"),
        "variance": accord.variance(**INCOME),
        "ages": accord.histogram(**CELLS),
        "sexes": SEXES,
        "wards": accord.count(**WARDS),
        "means of wards": accord.mean(**INCOME, **WARDS),
        "public wards": accord.mean(**INCOME, by="ward", keys=["A", "B", "D"], membership="public"),
        "ages of wards": accord.histogram(**CELLS, **WARDS),
        "ages of public wards": accord.histogram(**CELLS, **WARDS, membership="public"),
        "workload": accord.workload([OLD, accord.histogram(**CELLS), accord.median("age", (0, 100))]),
        "median": accord.median("age", (0, 100)),
        "medians": accord.quantile("age", [0.25, 0.5], (0, 100)),
        "median of wards": accord.median("age", (0, 100), **WARDS),
        "max": accord.max("age", (0, 100)),
        "line": accord.regression("income", ["age"], bounds={"income": (0, 10_000), "age": (0, 100)}),
        "everyone": accord.count(),
    }
    releases = {name: people.release(query) for name, query in asked.items()}
    return releases | {"own": accord.sample(lambda rows, epsilon: 3.0, people)}


# ---- the law of one number ---------------------------------------------------------------------------------

LAWS = {
    "count": (OLD, "replace", ["minimum", "affine", "threshold", "stretch"]),
    "mean": (accord.mean(**INCOME, missing="none"), "replace", ["proportional", "affine", "mix"]),
    "sum": (accord.sum("income", (-50, 10_000), missing="none"), "replace", ["affine", "stretch", "mix"]),
    "sum where": (accord.sum(**INCOME, where="age >= 65"), "replace", ["affine"]),
    "sum of those present": (accord.sum("income", (-50, 10_000), missing="none"), "add-remove", ["affine"]),
    "count of those present": (ADULT, "add-remove", ["threshold"]),
}


@pytest.mark.parametrize(
    ("name", "mechanism"), [(name, each) for name, (*_, mechanisms) in LAWS.items() for each in mechanisms]
)
def test_the_noises_of_a_number_are_those_that_are_drawn(name, mechanism):
    """A draw as large as its scale moves the answer by the scale of the law; no other noise is drawn."""
    query, neighbors, _ = LAWS[name]
    people = present(neighbors)
    plan = people.plan(query, mechanism)
    still = Fixed()
    before = carry_out(people.reader, plan, still)
    moved = []
    for place, scale in enumerate(still.scales):
        draws = [0] * place + [10**9 * int(scale)]
        after = carry_out(people.reader, plan, Fixed(*draws))
        moved.append(abs(after.value - before.value) / 10**9)
    errors = Number(before).errors
    assert sorted(x for x in moved if x) == pytest.approx(sorted(errors.scales), rel=1e-4)
    assert errors.sampling == plan.prediction.error_model.spread.sampling


@pytest.mark.parametrize("name", ["count", "sum where"])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_a_single_number_has_the_interval_of_its_release(name, confidence):
    query, neighbors, mechanisms = LAWS[name]
    for mechanism in mechanisms:
        release = present(neighbors).release(query, mechanism)
        assert (release * 1).interval(confidence) == pytest.approx(release.interval(confidence), rel=1e-5)
        assert (release * 1).value == release.value
        low, high = release.interval(confidence)
        assert (5 - 2 * release).interval(confidence) == pytest.approx((5 - 2 * high, 5 - 2 * low), rel=1e-5)


@pytest.mark.parametrize("mechanism", ["mix", "sample"])
def test_noises_without_a_simple_law_bring_their_own_interval(mechanism):
    """`mix` draws whole numbers on scales below 1,000 here, `sample` leaves people out."""
    people = opened()
    a, b = people.release(OLD, mechanism), people.release(ADULT, "minimum")
    assert (a * 1).interval(0.9) == pytest.approx(a.interval(0.9))
    low, high = a.interval(0.95)
    half = b.interval(0.95)[1] - b.value
    assert (a - b).interval(0.9) == pytest.approx((low - b.value - half, high - b.value + half), rel=1e-6)
    assert "1 of the 2 numbers have no simple law" in str(a - b)


# ---- sums and differences ----------------------------------------------------------------------------------


def test_the_difference_of_two_equal_noises():
    """Two draws of one count, everyone at the smallest level: e^−h(1 + h/2) in units of the scale."""
    people = opened()
    a, b = people.release(OLD, "minimum"), people.release(OLD, "minimum")
    (scale,) = Number(a).errors.scales
    low, high = (a - b).interval(0.95)
    h = (high - low) / 2 / scale
    assert (1 + h / 2) * np.exp(-h) == pytest.approx(0.05, rel=1e-4)
    assert (low + high) / 2 == pytest.approx(a.value - b.value)
    assert (a - b).rmse_here == pytest.approx(sqrt(2) * a.rmse_here)
    assert (a + b).interval(0.95)[1] - (a + b).value == pytest.approx((high - low) / 2)


def test_what_weights_do_is_added_up_and_said():
    people = opened()
    a, b = people.release(OLD, "affine"), people.release(ADULT, "affine")
    errors = [Number(release).errors for release in (a, b)]
    assert errors[0].sampling > 0
    half = half_width(errors[0].sampling + errors[1].sampling, errors[0].scales + errors[1].scales, 0.05)
    half += errors[0].rounding + errors[1].rounding
    assert (a - b).interval()[1] == pytest.approx(a.value - b.value + half, rel=1e-5)
    assert "its standard deviations are added up" in str(a - b)
    noise = 2 * (errors[0].scales[0] ** 2 + errors[1].scales[0] ** 2)
    assert (a - b).rmse_here == pytest.approx(sqrt((errors[0].sampling + errors[1].sampling) ** 2 + noise))


@pytest.mark.parametrize(
    "query", [accord.histogram(**CELLS), accord.count(**WARDS), accord.histogram(**CELLS, **WARDS)]
)
def test_counts_that_nobody_is_in_two_of_share_what_weights_do(query):
    """To Σ k·count a person adds one of the k or nothing: s is for (max − min)/2 instead of 1/2."""
    release = opened().release(query, "affine")
    if "histogram" in query.label and "by" in query.label:
        first, second, third = release["A"]["[0, 30)"], release["A"]["[30, 60)"], release["B"]["[0, 30)"]
    else:
        first, second, third = (
            release[key] for key in (["A", "B", "<C>"] if "by" in query.label else release.value)
        )
    (errors,) = {number.errors for number in (first + second + third).numbers}
    assert errors.sampling > 0
    for derived, times, scales in (
        (first + second + third, 1, (1, 1, 1)),
        (2 * first - second, 3, (2, 1)),
        (first + 0.5 * second, 1, (1, 0.5)),
    ):
        noises = tuple(sorted(k * errors.scales[0] for k in scales))
        half = half_width(times * errors.sampling, noises, 0.05) + sum(scales) * errors.ends[1]
        half += times * errors.rounding
        assert derived.interval()[1] - derived.value == pytest.approx(half, rel=1e-7)
        assert derived.rmse_here == pytest.approx(
            sqrt((times * errors.sampling) ** 2 + 2 * sum(b * b for b in noises))
        )
    assert "added up" not in str(first - second)
    other = opened().release(OLD, "affine")
    assert "added up" in str(first - second - other)


def test_counts_that_somebody_may_be_in_two_of_are_added_up():
    people = accord.table({**ROWS, "id": ROWS["id"] % 300}, epsilon="level", user="id")
    query = accord.histogram("ward", categories=["A", "B", "<C>"], at_most=2)
    release = people.release(query, "affine")
    errors = Number(release, None, 0).errors
    both = release["A"] + release["B"]
    expected = half_width(2 * errors.sampling, errors.scales * 2, 0.05) + 2 * errors.ends[1]
    expected += 2 * errors.rounding
    assert errors.sampling > 0 and both.interval()[1] - both.value == pytest.approx(expected)


def test_reckoning_is_exact(answers):
    a, b = answers["old"], answers["adult"]
    assert (a + b - b).terms == (a * 1).terms
    assert a - a == b - b
    assert (a - a).value == 0 and (a - a).interval() == (0, 0) and (a - a).rmse_here == 0
    assert (a * 0.1 * 10 == a * 1) and (a / 3 * 3 == +a) and (a * Decimal("0.5") == a / 2)
    assert sum([a, b]) == a + b
    assert (-a).value == -a.value
    assert (100 - a).value == 100 - a.value
    assert np.float64(2) * a == 2 * a == a * np.int64(2) == a * Fraction(2)
    assert (0 * a).interval() == (0, 0)
    assert (a - b).charges == {0.5: 0, 1.0: 0, 2.0: 0, 4.0: 0}


def test_two_cells_with_one_noise():
    """Everyone is in one of them, so that their sum is public and their difference twice as noisy as one."""
    h = opened().release(SEXES, "minimum")
    assert sum(h.value.values()) == pytest.approx(N)
    both, apart = h["f"] + h["m"], h["f"] - h["m"]
    assert both.value == N and both.interval() == (N, N) and both.terms == ()
    low, high = h.interval()["f"]
    assert apart.interval() == pytest.approx((2 * low - N, 2 * high - N), rel=1e-5)
    share = h["f"] / both
    assert share.interval() == pytest.approx((low / N, high / N), rel=1e-5)
    assert h["m"].value == pytest.approx(h.value["m"])
    assert h["m"].interval() == pytest.approx(h.interval()["m"], rel=1e-5)


def test_cells_that_do_not_fill_everything_have_a_noise_each():
    h = opened().release(accord.histogram("sex", categories=["f", "m"]), "minimum")
    both = h["f"] + h["m"]
    assert len(both.terms) == 2
    assert both.rmse_here == pytest.approx(sqrt(2) * h.rmse_here)


def test_two_cells_of_mix_have_their_noises_in_common():
    h = opened().release(SEXES, "mix")
    assert (h["f"] + h["m"]).interval() == (N, N)


def test_numbers_of_groups_cells_and_questions(answers):
    assert answers["wards"]["A"].value == answers["wards"].value[0]["value"]
    assert answers["means of wards"]["B"].interval(0.9) == answers["means of wards"].interval(0.9)["B"]
    assert answers["ages"]["[30, 60)"].value == answers["ages"].value["[30, 60)"]
    of_ward = answers["ages of wards"]["<C>"]
    assert of_ward.value == answers["ages of wards"].value[2]["value"]
    assert of_ward.interval() == answers["ages of wards"].interval()["<C>"]
    assert of_ward["[0, 30)"].value == of_ward.value["[0, 30)"]
    assert repr(of_ward) == "<Group: histogram of age, ward = '<C>', 3 cells>"
    assert answers["public wards"]["A"].value == answers["public wards"].releases["A"].value
    assert answers["ages of public wards"]["A"]["[0, 30)"].value > 0
    assert answers["workload"][0].value == answers["workload"].value[0]
    assert answers["workload"][1]["[0, 30)"].value == answers["workload"].value[1]["[0, 30)"]
    assert answers["workload"][-3] == answers["workload"][0]


def test_every_number_with_a_known_law_has_the_interval_that_its_release_gives(answers):
    wards, cell = answers["wards"], "[30, 60)"
    for number, ends in (
        (wards["B"], wards.interval(0.9)["B"]),
        (answers["ages of wards"]["B"][cell], answers["ages of wards"].interval(0.9)["B"][cell]),
        (
            answers["ages of public wards"]["B"][cell],
            answers["ages of public wards"].interval(0.9)["B"][cell],
        ),
        (answers["workload"][0] * 1, answers["workload"].interval(0.9)[0]),
        (answers["workload"][1][cell], answers["workload"].interval(0.9)[1][cell]),
        (answers["sum"] * 1, answers["sum"].interval(0.9)),
        (answers["mean of all"] * 1, answers["mean of all"].interval(0.9)),
        (answers["everyone"] * 1, (N, N)),
    ):
        assert all(each.errors is not None for each in number.numbers)
        assert number.interval(0.9) == pytest.approx(ends, rel=1e-5)


def test_people_without_privacy_have_no_noise():
    people = accord.table({**ROWS, "level": np.full(N, inf)}, epsilon="level")
    a, b = people.release(OLD), people.release(ADULT)
    assert (a - b).interval() == ((ROWS["age"] >= 65).sum() - (ROWS["age"] >= 20).sum(),) * 2
    assert (a / b).interval() == pytest.approx((a.value / b.value,) * 2)


def test_groups_of_one_release_are_compared(answers):
    for name in ("wards", "means of wards", "public wards"):
        release = answers[name]
        difference = release["A"] - release["B"]
        values = {row["ward"]: row["value"] for row in release.value}
        assert difference.value == pytest.approx(values["A"] - values["B"])
        ends = release.interval(0.95)
        (low_a, high_a), (low_b, high_b) = ends["A"], ends["B"]
        low, high = difference.interval(0.9)
        assert low >= low_a - high_b - 1e-6 and high <= high_a - low_b + 1e-6  # both hold with 0.9 at least


def test_a_number_beside_everyone(answers):
    """A public group is a part of the table, and the number of everyone is no noise."""
    assert (answers["public wards"]["A"] - answers["mean of all"]).interval()[0] < 5_000
    share = answers["old"] / answers["everyone"]
    low, high = answers["old"].interval()
    assert share.interval() == pytest.approx((low / N, high / N), rel=1e-5)


def test_an_answer_without_data_lies_in_all_that_is_possible():
    people = accord.table({**ROWS, "level": np.full(N, 1e-5)}, epsilon="level")
    a = people.release(accord.mean(**INCOME, missing="none"))
    b = people.release(accord.mean("age", (0, 100), missing="none"))
    assert a.mechanism == b.mechanism == "midpoint"
    assert (a - b).interval() == (0 - 100, 10_000 - 0)
    assert (a - b).rmse_here == pytest.approx(a.rmse_here + b.rmse_here)


# ---- ratios ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("over", "under"),
    [("old", "adult"), ("means of wards", "means of wards"), ("sum", "wards"), ("mean", "old")],
)
def test_a_ratio_is_where_the_difference_may_be_zero(answers, over, under):
    """All r on a fine grid: those inside the interval are not excluded by numerator − r·denominator."""
    a = answers[over]["A"] if "ward" in over else answers[over] * 1
    b = answers[under]["B"] if "ward" in under else answers[under] * 1
    for confidence in (0.5, 0.95):
        ratio = a / b
        low, high = ratio.interval(confidence)
        assert low < ratio.value < high
        for r in np.linspace(low - (high - low), high + (high - low), 41):
            below, above = (a - float(r) * b).interval(confidence)
            if abs(r - low) > 1e-9 * abs(low) and abs(r - high) > 1e-9 * abs(high):
                assert (below <= 0 <= above) == (low < r < high)


def test_signs_and_public_numbers_of_ratios(answers):
    a, b = answers["old"], answers["adult"]
    low, high = (a / b).interval()
    assert (-(a / b)).interval() == pytest.approx((-high, -low))
    assert (a / -b).interval() == pytest.approx((-high, -low))
    assert (100 * (a / b)).interval() == pytest.approx((100 * low, 100 * high))
    assert (a / b / 2).interval() == pytest.approx((low / 2, high / 2))
    assert (a / b - 1).interval() == pytest.approx((low - 1, high - 1), rel=1e-6)
    assert (1 - a / b).interval() == pytest.approx((1 - high, 1 - low), rel=1e-6)
    assert (1 / (a / b)).interval() == pytest.approx((1 / high, 1 / low))
    assert (1 / b).interval() == pytest.approx(tuple(1 / end for end in (b * 1).interval()[::-1]))
    assert a.ratio(4).interval() == pytest.approx((a / 4).interval())
    third = answers["sum"]
    assert (a / b + third / b).value == pytest.approx((a + third).ratio(b).value)
    assert (a / a).interval() == pytest.approx((1, 1))
    assert ((a + b) / (b + a)).value == 1


def test_a_denominator_that_may_be_zero(answers):
    a = answers["adult"]
    nothing = answers["old"] - round(answers["old"].value)
    ratio = a / nothing
    assert ratio.interval(0.95) == (-inf, inf)
    assert "any number is possible, because the denominator may be 0" in str(ratio)
    receipt = ratio.receipt()
    assert receipt["interval"]["bounds"] == ["-inf", "inf"]
    assert receipt["assumptions"][-1] == "the denominator may be 0, so that any number is possible"
    certain = Number(answers["old"]).errors
    assert (a / (answers["old"] - answers["old"].value - 10 * certain.scales[0])).interval()[0] > -inf


def test_a_denominator_that_comes_to_nothing(answers):
    people = opened()
    plan = people.plan(accord.count(where="age > 1000"), "minimum")
    nobody = carry_out(people.reader, plan, Fixed())
    ratio = nobody / nobody
    assert isnan(ratio.value) and ratio.interval() == (-inf, inf)
    assert ratio.receipt()["value"] is None
    assert "unknown" in str(ratio)


# ---- the same draw -----------------------------------------------------------------------------------------


def test_an_answer_that_is_given_out_again_is_the_same_draw(tmp_path):
    people = opened(user="id")
    ledger = accord.Ledger(tmp_path / "accord.db")
    ledger.register(people, "people")
    asked = {
        "one": OLD,
        "groups": accord.count(**WARDS),
        "public": accord.mean(**INCOME, by="ward", keys=["A", "B"], membership="public"),
        "several": accord.workload([OLD, accord.histogram(**CELLS)]),
    }
    first = {name: people.release(query, share=0.05, ledger=ledger) for name, query in asked.items()}
    again = {name: people.release(query, share=0.05, ledger=ledger) for name, query in asked.items()}
    drawn = people.release(OLD, share=0.05, ledger=ledger, fresh=True)
    entries, left = ledger.entries(), ledger.remaining(people)
    pairs = [
        (first["one"], again["one"]),
        (first["groups"]["B"], again["groups"]["B"]),
        (first["public"]["A"], again["public"]["A"]),
        (first["several"][0], again["several"][0]),
        (first["several"][1]["[0, 30)"], again["several"][1]["[0, 30)"]),
    ]
    for original, repeated in pairs:
        assert (original - repeated).terms == ()
        assert (original - repeated).interval() == (0, 0)
        assert (original + repeated).interval() == pytest.approx((2 * original).interval())
        stored = pickle.loads(pickle.dumps(repeated))
        assert (original - stored).terms == ()
    assert len((first["one"] - drawn).terms) == 2
    receipt = (again["one"] - drawn).receipt()
    assert not list(RECEIPT.iter_errors(receipt))
    one, other = receipt["numbers"]
    assert one["ledger"] == vars(first["one"].booked) and one["repeated"] == vars(again["one"].repeated)
    assert other["ledger"] == vars(drawn.booked) and "repeated" not in other
    (workload,) = (again["several"][0] * 2).receipt()["numbers"]
    assert workload["ledger"] == vars(first["several"].booked)
    assert f"entry {drawn.booked.entry}" in str(first["one"] - drawn)
    str(first["one"] / drawn)
    assert ledger.entries() == entries and ledger.remaining(people) == left  # nothing is booked or charged


def test_what_is_derived_can_be_pickled(answers):
    for derived in (answers["old"] - answers["adult"], answers["means of wards"]["A"] / answers["sum"]):
        again = pickle.loads(pickle.dumps(derived))
        assert again == derived
        assert again.interval(0.9) == derived.interval(0.9)


def test_the_same_answer_at_another_time_is_another_draw(answers):
    later = replace(answers["old"], time=datetime(2030, 1, 1, tzinfo=UTC))
    assert len((answers["old"] - later).terms) == 2


def test_nothing_is_read(answers, monkeypatch):
    """What is derived needs no table; the one of these releases is gone, and no table can be read."""
    for name in ("summaries", "rows"):
        monkeypatch.setattr(TableReader, name, None)
    before = answers["old"].unbooked
    ratio = answers["ages"]["[0, 30)"] / (answers["ages"]["[0, 30)"] + answers["ages"]["[30, 60)"])
    assert 0 < ratio.interval()[0] < ratio.interval()[1] < 1
    assert answers["old"].unbooked is before


# ---- what is refused ---------------------------------------------------------------------------------------

RANK = "was chosen by its rank. One draw tells the percentiles that it lies between, not the values around it"
REFUSED = {
    "a quantile": (lambda r: r["median"] - r["old"], f"median of age {RANK}"),
    "quantiles": (lambda r: r["medians"] - 1, RANK),
    "a quantile of a list": (lambda r: r["medians"][0.25], RANK),
    "a quantile of a group": (lambda r: r["median of wards"]["A"], RANK),
    "a maximum": (lambda r: r["old"] / r["max"], RANK),
    "a regression": (lambda r: r["line"] * 2, "coefficients that share their noises"),
    "an algorithm": (lambda r: r["own"] + 1, "only it can tell its error. Reckon with its .value."),
    "a histogram": (
        lambda r: r["ages"] - 1,
        r"histogram of age \(3 cells\) is not a single number. Take one of them, such as release\['\[0, 30\)'\]",
    ),
    "groups": (lambda r: 1 - r["wards"], r"\(3 groups\) is not a single number. .* release\['A'\]"),
    "public groups": (lambda r: r["public wards"] / 2, r"\(3 groups\) is not a single number"),
    "a workload": (lambda r: -r["workload"], r"3 questions is not a single number. .* release\[0\]"),
    "the cells of a group": (
        lambda r: r["ages of wards"]["A"] * 2,
        r"histogram of age, ward = 'A' \(3 cells\) is not a single number. .* group\['\[0, 30\)'\]",
    ),
    "nobody": (lambda r: r["public wards"]["D"], "nobody is in the public group ward = 'D'"),
    "an unknown group": (lambda r: r["wards"]["a"], "'a' is not one of the groups: did you mean 'A'?"),
    "an unknown cell": (lambda r: r["ages"]["[0, 31)"], r"not one of the cells: did you mean '\[0, 30\)'"),
    "an unknown cell of a group": (lambda r: r["ages of wards"]["A"][0], "0 is not one of the cells: Known"),
    "an unknown question": (
        lambda r: r["workload"][3],
        "3 is not the place of a question in this workload, which has 3. Give a whole number from 0 to 2.",
    ),
    "a place that is none": (lambda r: r["workload"][True], "True is not the place of a question"),
    "a part of a number": (lambda r: r["old"]["A"], "count of people where age >= 65 is a single number"),
    "a product": (lambda r: r["old"] * r["adult"], "a product of two noisy numbers has no known law here"),
    "a text": (lambda r: r["old"] + "1", "what is reckoned with is '1'. It must be a finite number."),
    "infinity": (lambda r: r["old"] * inf, "It must be a finite number."),
    "a list": (lambda r: np.array([1, 2]) * r["old"], "It must be a finite number."),
    "a huge number": (lambda r: r["old"] * 10**101, "is too large to reckon with: 1e100 is the end."),
    "a huge factor": (lambda r: r["old"] * 1e60 * 1e60, "beyond 1e100 is too large to reckon with"),
    "zero": (lambda r: r["old"] / 0, "this is a division by 0"),
    "zero that is left": (lambda r: 1 / (r["old"] - r["old"]), "the denominator is exactly 0"),
    "a ratio and a number": (lambda r: r["old"] / r["adult"] - r["old"], "take the ratio last"),
    "a number and a ratio": (lambda r: r["old"] - r["old"] / r["adult"], "take the ratio last"),
    "ratios": (lambda r: r["old"] / r["adult"] - r["adult"] / r["old"], "of the same denominator"),
    "a ratio of ratios": (lambda r: (r["old"] / r["adult"]) / (r["adult"] / r["old"]), "take the ratio last"),
    "a ratio times a number": (lambda r: r["old"] * (r["old"] / r["adult"]), "take the ratio last"),
    "a confidence": (lambda r: (r["old"] - 1).interval(1), "confidence=1 is not between 0 and 1"),
    "a confidence of a ratio": (lambda r: (r["old"] / r["adult"]).interval(95), "confidence=95 is not"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name, answers):
    asked, said = REFUSED[name]
    with pytest.raises(QueryError, match=said):
        asked(answers)


def test_answers_about_other_people_are_refused(answers):
    others = accord.table({**ROWS, "level": np.full(N, 1.0)}, epsilon="level").release(ADULT)
    said = "are about other people: their Specs are .* Take answers about one table and its levels"
    with pytest.raises(QueryError, match=said):
        answers["old"] - others
    with pytest.raises(QueryError, match=said):
        answers["old"] / others
    with pytest.raises(QueryError, match=said):  # without the release that they are groups of
        parts = answers["public wards"].releases
        parts["A"] - answers["old"]
    with pytest.raises(QueryError, match=r"under 'replace', .* under 'add-remove': what is private differs"):
        answers["old"] - present().release(ADULT)


def test_a_release_is_no_list(answers):
    with pytest.raises(TypeError, match="not iterable"):
        list(answers["ages"])
    with pytest.raises(TypeError):
        "A" in answers["wards"]  # noqa: B015


# ---- how it is told ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def told(answers):
    return {
        "difference": answers["old"] - answers["adult"] / 2 + 0.25,
        "share": answers["old"] / (answers["old"] + answers["adult"]),
        "unbounded": answers["adult"] / (answers["old"] - answers["old"].value),
        "groups": answers["means of wards"]["<C>"] - answers["public wards"]["A"],
        "nothing": answers["old"] - answers["old"],
        "many": sum(release for name, release in answers.items() if name in ("old", "adult", "sum"))
        + sum(answers["ages of wards"][ward][cell] for ward in "AB" for cell in ("[0, 30)", "[30, 60)")),
    }


FORMULAS = {
    "difference": "a − 0.5·b + 0.25",
    "share": "a / (a + b)",
    "nothing": "0",
    "groups": "a − b",
    "many": "a + b + c + d + e + f + g",
}


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas(name, told):
    assert told[name].receipt()["formula"] == FORMULAS[name]
    assert str(told[name]).startswith(f"{FORMULAS[name]}, derived from released numbers, free of charge")


def test_receipts_are_plain_data_that_fit_their_schema(told):
    Draft202012Validator.check_schema(RECEIPT.schema)
    for name, derived in told.items():
        receipt = json.loads(json.dumps(derived.receipt(), allow_nan=False))
        assert [e.message for e in RECEIPT.iter_errors(receipt)] == [], name
        assert receipt["interval"]["confidence"] == 0.95
    difference = told["difference"].receipt()
    assert difference["terms"] == [
        {"coefficient": "1", "number": "a"},
        {"coefficient": "-1/2", "number": "b"},
    ]
    assert difference["constant"] == "1/4"
    assert [number["label"] for number in told["groups"].receipt()["numbers"]] == [
        "mean of income, ward = '<C>'",
        "mean of income, ward = 'A'",
    ]
    assert {charge["charge"] for charge in difference["charges"]} == {"0"}
    wrong = {**difference, "charges": [{**difference["charges"][0], "charge": "1"}]}
    assert list(RECEIPT.iter_errors(wrong))


def test_texts_and_pages(told):
    text = str(told["difference"])
    assert "a  count of people where age >= 65" in text and "95 % interval" in text
    assert "rmse at most" in text and "rmse" not in str(told["share"])
    page = told["groups"]._repr_html_()
    assert "&lt;C&gt;" in page and "<C>" not in page
    assert repr(told["share"]).startswith("<Ratio: 0.") and "from 2 released numbers" in repr(told["share"])
    assert repr(told["groups"]).endswith("from 2 released numbers, free of charge>")


def test_data_frames(told):
    for name, derived in told.items():
        frame = derived.to_pandas(0.9)
        assert list(frame.columns) == ["formula", "value", "rmse_here", "low", "high"], name
        row = frame.iloc[0]
        assert (row["low"], row["high"]) == derived.interval(0.9)
        assert row["value"] == derived.value
        assert pd.isna(row["rmse_here"]) == (name in ("share", "unbounded"))
    assert told["share"].to_pandas()["formula"][0] == (
        "count of people where age >= 65 / (count of people where age >= 65 + count of people where age >= 20)"
    )


def test_pictures(told, tmp_path):
    for name in ("difference", "unbounded", "nothing"):
        assert told[name].plot(tmp_path / f"{name}.svg").exists()
    assert told["share"].plot() is not None
