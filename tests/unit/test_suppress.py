"""suppress=: groups that may be empty are left out, by a rule that holds, and what is shown holds as well."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from math import inf
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import accord
from accord.batches import read_batch
from accord.cli import main
from accord.errors import PlanError, QueryError
from accord.mechanisms import ALL
from accord.release import Release
from accord.release.answer import finished
from accord.release.suppressing import largest_of_nobody, noise_bound, shown
from accord.statistics.target_sums import Additive

KEYS = [f"k{j}" for j in range(60)]
HELD = 6
"""So many of the keys have people, 500 each; the others nobody."""
SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"
NUMBERS = {"column": "x", "bounds": (0, 1)}
QUESTIONS = {
    "count": lambda **part: accord.count(**part),
    "sum": lambda **part: accord.sum(**NUMBERS, **part),
    "rows": lambda **part: accord.rows(max=3, **part),
    "mean": lambda **part: accord.mean(**NUMBERS, **part),
    "variance": lambda **part: accord.variance(**NUMBERS, **part),
    "std": lambda **part: accord.std(**NUMBERS, **part),
    "histogram": lambda **part: accord.histogram("x", edges=[0, 0.5, 1], **part),
    "median": lambda **part: accord.median(**NUMBERS, step=0.125, **part),
    "max": lambda **part: accord.max(**NUMBERS, step=0.125, **part),
    "values": lambda **part: accord.median(**NUMBERS, step=0.125, interval="values", **part),
}
ASKED = {"by": "w", "keys": KEYS}


def people(level=10.0, neighbors="replace"):
    n = 500 * HELD
    roster = accord.Spec.from_groups({level: n}) if neighbors == "add-remove" else None
    data = {"w": [KEYS[j % HELD] for j in range(n)], "x": np.arange(n) % 9 / 8, "e": np.full(n, level)}
    return accord.table(
        {**data, "id": np.arange(n)}, epsilon="e", user="id", neighbors=neighbors, roster=roster
    )


# ---- the rule ----------------------------------------------------------------------------------------------


def discrete_tail(scale, noises, above):
    """P(Σ Z > above) of discrete Laplace noises, exactly but for floats."""
    reach = int(60 * scale) + 10
    z = np.arange(-reach, reach + 1)
    law = np.exp(-np.abs(z) / scale)
    one = together = law / law.sum()
    for _ in range(noises - 1):
        together = np.convolve(together, one)
    sums = np.arange(together.size) - noises * reach
    return together[sums > above].sum()


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0, 25.0])
@pytest.mark.parametrize("noises", [1, 2, 3, 5])
@pytest.mark.parametrize("alpha", [0.05 / 51, 0.05 / 1_000, 0.05 / 10**5])
def test_noise_alone_exceeds_the_bound_as_rarely_as_is_said(scale, noises, alpha):
    bound = noise_bound(scale, 1.0, noises, alpha)
    assert discrete_tail(scale, noises, bound) <= alpha
    if scale >= 1:
        assert discrete_tail(scale, noises, 0.5 * bound) > alpha  # it is no idle bound


@pytest.mark.parametrize("mechanism", ["minimum", "sample"])
def test_the_bound_is_that_of_the_noise_that_is_drawn(mechanism):
    """Of 3,000 people of the level 2, at half the charge: Lap(1) on the number of people of a group."""
    plan = people(2.0).plan(accord.count(**ASKED), mechanism)
    h = 3_000 * largest_of_nobody(plan, 0.05 / 60)
    step = 1 if mechanism == "sample" else 1e-6
    assert h == pytest.approx(np.log(60 / 0.1) + step, rel=1e-6)
    released = [(Fraction(0),)] * 58 + [(Fraction(h * 1.0001 / 3_000),), (Fraction(h * 0.9999 / 3_000),)]
    assert shown(plan, released) == [KEYS[58]]


@pytest.mark.parametrize("statistic", QUESTIONS)
@pytest.mark.parametrize("mechanism", ["threshold", "sample"])
def test_without_noise_whoever_is_there_is_shown(statistic, mechanism):
    """Whatever is asked: the size of a group is what was released about it."""
    if (statistic, mechanism) in (("max", "sample"), ("values", "sample")):
        mechanism = "threshold"
    release = people(inf).release(QUESTIONS[statistic](**ASKED), mechanism, t=inf)
    assert [row["w"] for row in release.value] == KEYS[:HELD]
    assert release.suppressed == 60 - HELD
    assert set(release.interval()) == set(KEYS[:HELD])


@pytest.mark.parametrize("statistic", [name for name in QUESTIONS if name not in ("median", "max", "values")])
def test_what_is_released_about_a_group_tells_its_size(statistic):
    """Every member adds as much to all sums together as any other."""
    release = people(inf).release(QUESTIONS[statistic](**ASKED))
    assert isinstance(release.plan.target, Additive)
    sizes = [sum(means) / release.plan.target.sensitivity * 500 * HELD for means in release.released]
    assert sizes == [500] * HELD + [0] * (60 - HELD)


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize("statistic", QUESTIONS)
def test_with_little_noise_the_same_are_shown(statistic, neighbors):
    """An empty group may be among them: once in twenty answers."""
    release = people(neighbors=neighbors).release(QUESTIONS[statistic](**ASKED), "minimum")
    assert [row["w"] for row in release.value][:HELD] == KEYS[:HELD]
    assert release.suppressed == 60 - len(release.value) > 40
    assert len(release.receipt()["value"]) + release.receipt()["suppressed"] == 60


def test_on_above_fifty_groups_unless_it_is_said():
    def is_on(groups, **suppress):
        return accord.count(by="w", keys=range(groups), **suppress).part.suppress

    assert [is_on(50), is_on(51)] == [False, True]
    assert [is_on(2, suppress=True), is_on(51, suppress=False)] == [True, False]
    assert not accord.count(by="w", keys=range(51), membership="public").part.suppress
    assert accord.crosstab("a", "b", keys={"a": range(6), "b": range(9)}).part.suppress


def test_an_answer_that_needs_no_data_leaves_nothing_out():
    release = people(0.0001).release(accord.median(**NUMBERS, **ASKED))
    assert release.mechanism == "midpoint" and release.suppressed == 0 and len(release.value) == 60


REFUSED = {
    "no groups": (lambda: accord.count(suppress=True), "suppress= is about groups. Add by= with their column"),
    "no truth value": (
        lambda: accord.count(**ASKED, suppress=5),
        "suppress=5 is not True or False. True leaves out groups that may be empty; without it that is so above 50",
    ),
    "public": (
        lambda: accord.mean(**NUMBERS, **ASKED, membership="public", suppress=True),
        "suppress=True is for private groups: of public ones everyone may know who is there",
    ),
    "a regression": (
        lambda: accord.regression("y", ["x"], bounds={"x": (0, 1), "y": (0, 1)}, **ASKED, suppress=True),
        "suppress=True goes by how many people a group seems to have, which a regression does not tell",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_the_reason(name):
    ask, message = REFUSED[name]
    with pytest.raises(QueryError, match=message):
        ask()


# ---- what is shown -----------------------------------------------------------------------------------------


def both(statistic):
    """One release with groups left out, and the same with all of them."""
    table = people()
    release = table.release(QUESTIONS[statistic](**ASKED), "minimum")
    query = release.plan.query
    whole = release.plan.with_choice()
    whole = replace(whole, query=replace(query, part=replace(query.part, suppress=False)))
    answer, released = finished(whole, release.released)
    return release, Release(whole, answer, datetime.now(UTC), released)


@pytest.mark.parametrize("statistic", QUESTIONS)
def test_intervals_are_those_of_all_groups_together(statistic):
    release, whole = both(statistic)
    assert len(whole.value) == 60 and whole.suppressed == 0
    keys = [row["w"] for row in release.value]
    assert release.value == [row for row in whole.value if row["w"] in keys]
    for confidence in (0.5, 0.95):
        each, together = whole.interval(1 - (1 - confidence) / 60), release.interval(confidence)
        assert together == {key: each[key] for key in keys}
    assert release.receipt()["interval"]["groups_together"] == 60
    assert "suppressed" not in whole.receipt() and "groups_together" not in whole.receipt()["interval"]


def test_an_interval_of_a_mean_misses_by_its_noise_alone():
    """However large the noisy size happened to be: |A − xB| decides. So being shown for it does no harm."""
    plan = people().plan(accord.mean(**NUMBERS, step=0.125, **ASKED), "minimum")
    reach = plan.prediction.error_model.spread.half_width(0.05 / 60) / 60  # of the mean of everyone
    draw = np.random.default_rng(4)
    compared = 0
    for above, below in draw.uniform(-0.004, 0.03, (400, 2)):
        if above + below <= 0.01 / 60:
            continue  # then everything is possible
        of_group = (Fraction(above) * 8, Fraction(below) * 8)
        row = finished(plan, [of_group] * 60, everything=True)[0][0]
        low, high = Release(plan, [row], None, (of_group,)).interval()["k0"]
        for x in draw.uniform(0, 1, 5):
            misses = abs(above - x * (above + below)) > reach
            assert (low <= x <= high) or misses
            if 0 < row["value"] < 1:
                assert (low <= x <= high) != misses
                compared += 1
    assert compared > 500


@pytest.mark.slow
@pytest.mark.parametrize("statistic", ["count", "sum", "mean", "variance", "median"])
def test_what_is_shown_holds_together_and_is_rarely_empty(statistic):
    """Groups of 0 to 99 people of two levels, most of which are shown only where the noise is for it.

    Of 150 releases one in twenty may fail, 7; more than 30 do with a probability of less than 1e-9.
    """
    sizes = np.array([0] * 40 + list(range(1, 100)))
    names = [f"g{j}" for j in range(sizes.size)]
    draw = np.random.default_rng(8)
    n = int(sizes.sum())
    group, x = np.repeat(np.arange(sizes.size), sizes), draw.integers(0, 9, n) / 8
    data = {"w": np.array(names)[group], "x": x, "e": draw.choice([0.5, 2.0], n), "id": np.arange(n)}
    table = accord.table(data, epsilon="e", user="id")
    question = QUESTIONS[statistic](by="w", keys=names)
    plan = table.plan(question, "affine" if statistic != "median" else "rank")
    truth = {name: x[group == j] for j, name in enumerate(names)}
    of = {"count": len, "sum": np.sum, "mean": np.mean, "variance": np.var}.get(statistic)
    empty = missed = 0
    for _ in range(150):
        release = table.release(plan)
        held = {key: ends for key, ends in release.interval().items() if truth[key].size}
        empty += len(held) < len(release.value)
        if of is None:
            answers = {row["w"]: row["value"] for row in release.value}
            missed += any(not _holds(truth[key], answers[key], ends) for key, ends in held.items())
        else:
            missed += any(not low <= of(truth[key]) <= high for key, (low, high) in held.items())
    assert empty <= 30 and missed <= 30, (empty, missed)


def _holds(values, answer, percentiles):
    """Whether an answer lies between these percentiles of the values."""
    below, up_to = 100 * np.mean(values < answer), 100 * np.mean(values <= answer)
    return up_to >= percentiles[0] - 1e-9 and below <= percentiles[1] + 1e-9


def test_many_groups_of_many_people_have_enough_to_tell():
    """Each has less than a hundredth of all."""
    n = 300_000
    data = {"w": np.arange(n) % 150, "x": np.arange(n) % 2, "e": np.full(n, 4.0)}
    release = accord.table(data, epsilon="e").release(accord.mean("x", (0, 1), by="w", keys=range(150)))
    assert release.suppressed == 0 and not any(row["few"] for row in release.value)
    assert all(high - low < 0.1 for low, high in release.interval().values())


def test_margins_are_of_all_cells():
    table = {"a": ["x", "y"] * 400, "b": [1, 1, 2, 2] * 200, "e": [inf] * 800}
    keys = {"a": ["x", "y", *range_of_texts(5)], "b": range(10)}
    release = accord.table(table, epsilon="e").release(accord.crosstab("a", "b", keys=keys))
    assert len(release.value) == 4 and release.suppressed == 66
    assert len(release.margin("a")) == 7
    assert [row["value"] for row in release.margin("a")] == [400, 400, 0, 0, 0, 0, 0]


def range_of_texts(count):
    return [f"t{j}" for j in range(count)]


def test_a_ledger_gives_the_same_answer_whatever_is_shown_of_it(tmp_path):
    """What is shown is no part of what is asked: all of it was released, and is paid for."""
    table, ledger = people(), accord.Ledger(tmp_path / "accord.db")
    ledger.register(table, "people")
    first = table.release(accord.count(**ASKED), share=0.1, ledger=ledger)
    whole = table.release(accord.count(**ASKED, suppress=False), share=0.1, ledger=ledger)
    again = table.release(accord.count(**ASKED), share=0.1, ledger=ledger)
    assert first.repeated is None and whole.repeated is not None and again.repeated is not None
    assert again.value == first.value and len(whole.value) == 60
    assert [row for row in whole.value if row in first.value] == first.value


# ---- where it is told --------------------------------------------------------------------------------------


def test_texts_and_documents_say_how_many_are_left_out():
    release = people(inf).release(accord.count(**ASKED))
    text = " ".join(str(release).split())
    assert (
        "54 of 60 groups are left out: shown are those whose noisy size is larger than noise makes that of an "
        "empty one, but for 5 % over all of them. 95 %: the intervals of all 60 groups hold together. "
        "suppress=False (--no-suppress) shows all, each with its own." in text
    )
    assert "54 of 60 groups are left out" in release._repr_html_()
    rule = "shown are the groups whose noisy size is larger than noise makes that of an empty one, but for 5 % over"
    assert any(sentence.startswith(rule) for sentence in release.plan.assumptions)
    frame = release.to_pandas()
    assert frame.attrs["suppressed"] == 54 and len(frame) == HELD
    receipt = json.loads(json.dumps(release.receipt()))
    assert receipt["suppressed"] == 54 and receipt["query"]["suppress"] is True
    whole = people(inf).release(accord.count(**ASKED, suppress=False))
    assert "suppressed" not in whole.to_pandas().attrs and "left out:" not in str(whole)
    assert "suppress" not in whole.receipt()["query"]


def test_documents_of_long_lists_fit_their_schemas():
    keys = [f"k{j}" for j in range(1_200)]
    release = people(inf).release(accord.count(by="w", keys=keys))
    for name, document in (("receipt", release.receipt()), ("plan", release.plan.describe())):
        schema = json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
        assert not list(jsonschema.Draft202012Validator(schema).iter_errors(document))
    assert release.receipt()["query"]["keys"]["number"] == 1_200 and release.suppressed == 1_194


def test_on_the_command_line_and_in_batches(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"w": ["a", "b"] * 50, "e": inf}).to_csv("people.csv", index=False)
    words = ["release", "people.csv", "count", "--by", "w", "--keys", "a,b,c", "--epsilon", "e", "--json"]

    def asked(*more):
        done = CliRunner().invoke(main, [*words, *more])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    assert "suppressed" not in asked() and len(asked("--no-suppress")["value"]) == 3
    assert asked("--suppress")["suppressed"] == 1
    (tmp_path / "q.toml").write_text(
        'schema = 1\ntable = "people"\n[[questions]]\nstatistic = "count"\nby = "w"\nkeys = ["a", "b"]\n'
        "suppress = true\n"
    )
    assert read_batch("q.toml").questions[0].part.suppress


# ---- with what else is made of answers -----------------------------------------------------------------------


@pytest.mark.parametrize("statistic", ["count", "mean", "histogram"])
def test_numbers_of_those_that_are_shown_have_no_sharper_interval(statistic):
    """They were picked for what came out: their intervals are those of all groups together."""
    release = people().release(QUESTIONS[statistic](**ASKED), "minimum")
    first, second = (row["w"] for row in release.value[:2])
    cell = "[0, 0.5)"
    one, other = ((release[w][cell] if statistic == "histogram" else release[w]) for w in (first, second))
    ends = release.interval(0.9), release.interval(0.95)
    alone, half = (
        {w: of[w][cell] if statistic == "histogram" else of[w] for w in (first, second)} for of in ends
    )
    assert one.interval(0.9) == pytest.approx(alone[first])
    expected = half[first][0] - half[second][1], half[first][1] - half[second][0]
    assert (one - other).interval(0.9) == pytest.approx(expected)


def test_who_is_left_out_cannot_be_picked():
    release = people().release(accord.count(**ASKED), "minimum")
    hidden = next(w for w in KEYS if all(row["w"] != w for row in release.value))
    with pytest.raises(
        QueryError, match=rf"w = '{hidden}' is left out of the answer, because it may be empty"
    ):
        release[hidden]
    everything = people().release(accord.count(**ASKED, suppress=False), "minimum")
    assert everything[hidden].value == pytest.approx(everything.value[KEYS.index(hidden)]["value"])


def test_a_select_joins_what_is_shown_of_each_column():
    table = people()
    answers = table.sql(
        "SELECT w, MAX(x) AS most, COUNT(DISTINCT id) AS n FROM people GROUP BY w",
        {"x": (0, 1)},
        {"w": KEYS},
        at_most=1,
    )
    shown_of = {name: {row["w"] for row in answers[name].value} for name in ("most", "n")}
    assert {row["w"] for row in answers.rows} == shown_of["most"] | shown_of["n"]
    for row, ends in zip(answers.rows, answers.intervals(), strict=True):
        for name, of_name in shown_of.items():
            assert (row[name] is None) == (row["w"] not in of_name)
            assert ends[name] is None or row[name] is not None
    left_out = {answers[name].suppressed for name in ("most", "n")}
    assert all(f"{number} of 60 groups are left out" in str(answers) for number in left_out)


@pytest.mark.parametrize("mechanism", [record.name for record in ALL])
def test_one_key_is_answered_as_several_are(mechanism):
    """The form in which an empty group has nothing but noise, whoever is kept; at the charge of one group."""
    table = people(3.0)
    for query in (accord.count(by="w", keys=["k0"], suppress=True), accord.top("w", k=1, keys=["k0"])):
        try:
            plan = table.plan(query, mechanism)
        except PlanError as refusal:
            assert "cannot answer" in str(refusal)
            continue
        assert plan.target.relation.name == "add-remove" and plan.times == 1
        assert table.release(plan).suppressed == 0
