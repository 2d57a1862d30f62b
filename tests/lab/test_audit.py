"""The audit finds every planted bug, and nothing where there is none."""

import json
import re
from fractions import Fraction
from functools import partial
from math import inf
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from noises import SEEDED
from planted import PLANTED, releasing

import accord
import accord.noise
from accord import cli
from accord.errors import AccordError
from accord.lab import audit
from accord.lab.audit import exact, invariants, noise_laws, noise_source, replay, runner
from accord.lab.audit.cases import NEIGHBORS, STATISTICS
from accord.lab.audit.findings import Audit, Look, findings_of
from accord.lab.audit.runner import ALPHA, Job, examine, examine_at_random
from accord.mechanisms import ALL

NAMES = tuple(m.name for m in ALL)
DOCS = Path(__file__).parents[2] / "docs"
RUNS = {"noise scale halved": 6_000}
"""What the empirical method is tried on, too; the others would take longer."""


def invariant(examine, *args):
    """One part of what all questions have in common."""
    return [runner.look_at("replay", job("basics", ""), worst) for worst in examine(*args)]


def drawn(examine):
    """Such a part that draws numbers, which are the same whatever other tests have run before."""
    return lambda: invariant(examine, np.random.default_rng(1))


def noise(examine):
    """The audit of the noise, with numbers that are the same in every run of this test."""
    return lambda: list(examine(np.random.default_rng(1)))


LAWS, SOURCES = noise(noise_laws.examine), noise(noise_source.examine)
PLACES = {
    "noise scale halved": ("mean", "replace", "affine"),
    "noise scale halved in the sampler": LAWS,
    "charge not applied to one tier": ("sum", "add-remove", "proportional"),
    "epsilon rounded up": ("mean", "replace", "proportional"),
    "sampled count as the denominator": ("mean with all values", "replace", "sample"),
    "rank of pe read naively under ties": ("median with all values", "replace", "pe"),
    "sensitivity of the larger bound under replace": ("mean with all values", "replace", "threshold"),
    "histogram noise for one cell": ("histogram", "replace", "minimum"),
    "a float sum": drawn(invariants.row_order),
    "a seeded generator": SOURCES,
    "midpoint decided from the data": ("mean", "replace", "affine"),
    "exact size of a group leaks": ("mean by", "replace", "affine"),
    "missing values are not counted": ("mean", "replace", "affine"),
    "rows of a person without a limit": ("rows where", "replace", "affine"),
    "people kept too often": ("mean", "add-remove", "sample"),
    "opted out people are read": ("mean", "replace", "minimum"),
    "half of a charge is booked": partial(invariant, invariants.booked_charges, ["affine"]),
    "laxest level of a persons rows": ("mean", "replace", "affine"),
    "chances of another level": ("regression", "replace", "sample"),
    "random words of half the size": LAWS,
    "an algorithm is told twice its budget": drawn(invariants.kept_people),
    "exact size in the interval": ("mean where", "replace", "affine"),
    "noise for one cell of several": ("histogram in up to two cells", "add-remove", "minimum"),
    "several private groups charged as one": ("mean by", "replace", "affine"),
    "a charge for one group of several": ("mean by up to two groups", "replace", "affine"),
    "the rest is no group to move to": ("count by and the rest", "replace", "affine"),
    "the largest by exact sizes": ("count by the largest", "replace", "minimum"),
    "share rounded up": ("sum where", "replace", "affine"),
    "one draw for all cells": ("histogram", "add-remove", "affine"),
    "a box without its ceiling": LAWS,
    "a sum left out of a box": drawn(invariants.workload),
    "a moment left out of its box": ("regression", "replace", "affine"),
    "a radius kept too often": LAWS,
    "a box at the charge of one question": drawn(invariants.workload),
    "the span of another sum": drawn(invariants.workload),
    "drawn again below zero": ("sum", "replace", "affine"),
    "large scales cut to 32 bits": LAWS,
    "the tail of the noise cut off": LAWS,
    "a choice without its coin": LAWS,
    "values below the upper bound go beyond it": ("mean", "replace", "affine"),
    "people outside the roster are read": ("count where", "add-remove", "affine"),
    "a person in two public groups": drawn(invariants.public_groups),
    "only one question of a workload is booked": partial(invariant, invariants.booked_charges, []),
    "a draw is kept for its scale": SOURCES,
    "every second draw is the last one again": SOURCES,
    "random words drawn ahead": SOURCES,
    "a choice by a generator seeded once": SOURCES,
    "two threads at once get one draw": SOURCES,
    "a seeded generator by the name of secrets": SOURCES,
    "the generator of secrets is seeded": SOURCES,
    "fractions of a scale cut off": LAWS,
    "differences of scores beyond 64 bits": LAWS,
    "a prior of tuples taken from the data": ("quantiles together of rounded values", "replace", "rank"),
    "quantiles together at a rate for one": ("quantiles together", "add-remove", "rank"),
    "tuples out of order": LAWS,
    "weights clamped inside a point": LAWS,
    "a tuple accepted with more than certainty": LAWS,
    "a prior taken from the data": ("median of rounded values", "replace", "rank"),
    "a size at the whole charge beside a choice": ("median by", "replace", "rank"),
    "private levels counted from the table": ("mean", "private-levels", "affine"),
    "a clip that follows from who is there": ("mean", "private-levels", "proportional"),
    "a total over the number who are there": ("count where", "private-levels", "minimum"),
}
PRIVATE = (
    *("mean where", "sum by", "count", "count where", "count by", "proportion", "histogram where"),
    *("median", "min where", "max", "count by the largest"),
)
"""What is looked at here of private levels; laws/test_private_levels.py has more people of any level."""
JOBS = [(statistic, neighbors) for statistic in STATISTICS for neighbors in NEIGHBORS[:2]]
JOBS += [(statistic, "private-levels") for statistic in PRIVATE]
LONG = [(statistic, "private-levels") for statistic in ("mean by", "variance", "quantile by", "regression")]
ELSEWHERE = [
    statistic
    for statistic in STATISTICS
    if statistic.endswith((" where", " by", " by two columns", " by and the rest"))
    and (statistic.startswith("mean ") or "with all values" not in statistic)
    and "in values" not in statistic
    and not statistic.startswith("count ")
]
"""Questions about parts whose exact laws are in laws/test_parts.py, under both relations."""
ONCE = {statistic: NEIGHBORS[(k + k // 2) % 2] for k, statistic in enumerate(ELSEWHERE)}
"""Under which relation these are looked at here: both kinds of parts meet both in turn. All other questions are looked at under both."""

pytestmark = pytest.mark.operating_system
"""An audit looks at where the noise comes from.

The chance of a false alarm is 0: whether something is found depends on how many bytes the system is asked for, on charges and on plans, and never on a
number that it draws. The empirical method alone looks at noisy answers; its tests have `seeded_noise`."""


@pytest.fixture
def seeded_noise(request, monkeypatch):
    """For the empirical method, which draws from releases and may be wrong once in 1/ALPHA times."""
    SEEDED.seed(request.node.nodeid)
    monkeypatch.setattr(accord.noise, "secrets", SEEDED)


def job(statistic, neighbors, mechanisms=NAMES, runs=0, seed=1, lower_bounds=1_000):
    return Job(statistic, neighbors, tuple(mechanisms), runs, ALPHA, lower_bounds, seed)


def violations(looks):
    return [look for look in looks if look.violated]


def documented():
    """{bug: methods}, as the page says."""
    rows = re.findall(
        r"^\| ([a-z0-9 ]+?) \| ([a-z, ]+) \| [^|]+ \|$", (DOCS / "audit.md").read_text("utf-8"), re.MULTILINE
    )
    return {name: set(methods.split(", ")) for name, methods in rows if name in PLANTED}


# ---- teeth -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLACES)
def test_a_planted_bug_is_found(request, monkeypatch, name):
    """By the methods that the documentation names, and no others."""
    if name in RUNS:
        request.getfixturevalue("seeded_noise")
    PLANTED[name](monkeypatch)
    place = PLACES[name]
    if callable(place):
        looks = place()
    else:
        statistic, neighbors, mechanism = place
        looks = examine(job(statistic, neighbors, [mechanism], runs=RUNS.get(name, 0)))
    violated = violations(looks)
    assert {look.method for look in violated} == documented()[name]
    assert all(look.evidence for look in violated)


def test_every_planted_bug_is_tried_and_documented():
    assert set(PLACES) == set(PLANTED) == set(documented())


def test_a_violation_ends_the_command_with_1(monkeypatch, tmp_path):
    PLANTED["noise scale halved"](monkeypatch)
    page = tmp_path / "audit.html"
    words = ["audit", "affine", "--statistic", "count where", "--jobs", "1", "--html", str(page)]
    done = CliRunner().invoke(cli.main, words)
    assert done.exit_code == 1 and done.stdout.startswith("VIOLATED")
    assert "affine, count where, replace, level 2.5: exact: person 3 changes from" in done.stdout.replace(
        "\n", " "
    )
    text = page.read_text("utf-8")
    assert "VIOLATED" in text and "<svg" in text and "5 of 2.5" in text


# ---- no false alarms ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statistic", "neighbors"),
    [
        *(job for job in JOBS if ONCE.get(job[0], job[1]) == job[1] or job[1] not in NEIGHBORS[:2]),
        ("basics", ""),
    ],
)
def test_nothing_is_found_where_nothing_is(statistic, neighbors):
    """By the exact method and the replay, of every question."""
    looks = examine(job(statistic, neighbors))
    assert violations(looks) == []
    if statistic not in ("basics", "count", "rows") and neighbors == "replace":
        assert {m.name for m in ALL if m.name != "pe"} & {
            look.mechanism for look in looks if look.ratio > 0.5
        }


@pytest.mark.slow
@pytest.mark.parametrize(("statistic", "neighbors"), LONG)
def test_nothing_is_found_where_levels_are_private(statistic, neighbors):
    assert violations(examine(job(statistic, neighbors))) == []


@pytest.mark.parametrize(
    ("statistic", "neighbors"), [("count by", "add-remove"), ("median where", "replace")]
)
def test_no_alarm_in_a_row(statistic, neighbors, seeded_noise):
    alarms(statistic, neighbors, 2)


@pytest.mark.slow
@pytest.mark.parametrize(("statistic", "neighbors"), JOBS[::44])
def test_no_alarm_many_times_in_a_row(statistic, neighbors, seeded_noise):
    alarms(statistic, neighbors, 3)


def alarms(statistic, neighbors, times):
    """The exact method comes out the same each time; the others do not."""
    audited = job(
        statistic, neighbors, runs=200, lower_bounds=runner.most_lower_bounds(list(STATISTICS), NAMES)
    )
    losses = list(exact.examine(STATISTICS[statistic], neighbors, NAMES))
    for _ in range(times):
        assert (
            violations(examine_at_random(audited, losses, np.random.default_rng(SEEDED.randbits(64)))) == []
        )


# ---- what it says ------------------------------------------------------------------------------------------


def test_additive_mechanisms_lose_exactly_what_they_promise():
    """An exact loss below the promise would be accuracy thrown away."""
    looks = examine(job("mean", "replace", ["affine", "proportional", "mix"]))
    exact_looks = [look for look in looks if look.method == "exact"]
    assert len(exact_looks) > 10 and all(look.loss == look.promised for look in exact_looks)


def test_the_order_is_worst_first():
    looks = [
        Look("exact", "a", "mean", "replace", "1", Fraction(1), Fraction(1, 2)),
        Look("replay", "a", "mean", "replace", "1", Fraction(2), Fraction(2)),
        Look("exact", "b", "mean", "replace", "1", Fraction(1), Fraction(1000001, 1000000)),
        Look("exact", "c", "mean", "replace", "1", 0.0, 0.0),
        Look("exact", "d", "mean", "replace", "0", Fraction(0), inf, "a leak"),
    ]
    findings = findings_of(looks)
    assert [f.mechanism for f in findings] == ["d", "b", "a", "c"]
    assert [bool(f.violations) for f in findings] == [True, True, False, False]
    assert findings[2].ratio == 1 and findings[2].looks["exact"].ratio == 0.5


def test_a_finding_keeps_the_look_that_came_closest():
    looks = [
        Look("exact", "a", "mean", "replace", "1", p, f) for p, f in ((1.0, 0.9), (0.1, 0.1), (5.0, 4.0))
    ]
    assert findings_of(looks)[0].looks["exact"] is looks[1]


def test_floats_are_no_violation_but_a_millionth_is():
    assert not Look("exact", "a", "m", "r", "1", Fraction(7, 10), 0.7 * (1 + 1e-12)).violated
    assert Look("exact", "a", "m", "r", "1", Fraction(7, 10), 0.7000008).violated
    assert Look("exact", "a", "m", "r", "0", Fraction(0), 1e-9).violated


def test_the_same_seed_gives_the_same_audit_in_any_number_of_processes():
    first, second = (audit.run(["rank"], ["median where"], jobs=jobs, seed=7) for jobs in (1, 2))
    assert [f.describe() for f in first.findings] == [f.describe() for f in second.findings]
    assert isinstance(first, Audit) and first.seed == 7 and "passed" in repr(first)
    assert str(first).startswith("Passed: nobody was seen to lose more than they were promised.")


def test_the_command_on_a_narrow_question(tmp_path, seeded_noise):
    page = tmp_path / "audit.html"
    words = ["audit", "minimum", "--statistic", "max where", "--runs", "200", "--jobs", "1", "--seed", "3"]
    done = CliRunner().invoke(cli.main, [*words, "--json", "--html", str(page)])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    public = {name: document[name] for name in ("schema", "passed", "runs", "alpha", "seed")}
    assert public == {"schema": 1, "passed": True, "runs": 200, "alpha": ALPHA, "seed": 3}
    ways = [
        set(f["ways"])
        for f in document["findings"]
        if f["statistic"] == "max where" and f["mechanism"] == "minimum"
    ]
    assert {"exact", "replay", "empirical"} in ways
    assert "Passed" in page.read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["affin"], "did you mean 'affine'"),
        (["--statistic", "maen"], "did you mean 'mean'"),
        (["--runs", "5"], "at least 100"),
        (["--html", "no/such/folder/page.html"], "cannot write the page"),
        (["pe", "--statistic", "count by", "--jobs", "1"], "pe answer none of count by"),
    ],
)
def test_refusals_are_kind(words, text):
    done = CliRunner().invoke(cli.main, ["audit", *words])
    assert done.exit_code == 1 and text in done.stderr.lower()


def test_bad_numbers_are_refused():
    for bad in ({"alpha": 0}, {"alpha": 1.5}, {"jobs": 0}, {"runs": 99}):
        with pytest.raises(AccordError):
            audit.run(["affine"], ["mean"], **bad)


def test_an_audit_does_not_touch_the_noise_of_releases():
    before = vars(releasing)["SECURE"], dict(vars(accord.noise)), dict(vars(type(vars(releasing)["SECURE"])))
    assert LAWS() and SOURCES()
    assert (
        vars(releasing)["SECURE"],
        dict(vars(accord.noise)),
        dict(vars(type(vars(releasing)["SECURE"]))),
    ) == before


def test_the_replay_counts_on_amplification():
    """What keeping people at random makes of a loss, at its two ends."""
    spec = accord.Spec.from_groups({0.5: 10, 2.0: 10})
    for neighbors, inner in (("replace", 2.0), ("add-remove", 2.0)):
        plan = accord.plan(spec, accord.mean("x", (0, 1)), "sample", t=2.0, neighbors=neighbors)
        assert replay.amplified(plan, "0.5", inner) == pytest.approx(0.5, rel=1e-6)
        assert replay.amplified(plan, "2.0", inner) == pytest.approx(2.0)
        assert replay.amplified(plan, "0.5", 1.1 * inner) > 0.5 and replay.amplified(plan, "0.5", 0.0) == 0


def test_a_look_at_everything_leaves_out_another_half_of_the_parts_each_time(monkeypatch):
    """It says which; what is named, or tried deeply, is looked at whole."""
    every = [(statistic, neighbors) for statistic in STATISTICS for neighbors in NEIGHBORS]
    asked = []
    monkeypatch.setattr(runner, "shared", lambda jobs, work, workers: (asked.extend(jobs), iter(()))[1])
    halves = []
    for seed in (1, 2):
        asked.clear()
        result = runner.run(seed=seed, jobs=2)
        examined = {(job.statistic, job.neighbors) for job in asked if job.statistic in STATISTICS}
        skipped = set(every) - examined
        assert all(statistic.endswith((" where", " by", " by two columns")) for statistic, _ in skipped)
        assert (
            len(skipped)
            == len([s for s, _ in every if s.endswith((" where", " by", " by two columns"))]) // 2
        )
        assert all(
            f"{statistic}, {neighbors}" in result.not_looked_at[-1] for statistic, neighbors in skipped
        )
        halves.append(skipped)
    assert halves[0] != halves[1]
    asked.clear()
    runner.run(statistics=["mean"], seed=1, jobs=2)
    named = ("mean", "mean with all values")
    assert {job.statistic for job in asked} == {
        "mean by up to two groups",
        "mean by two columns",
        "mean by and the rest",
        *(name + part for name in named for part in ("", " where", " by")),
    }
