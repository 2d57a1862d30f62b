"""The audit finds every planted bug, and nothing where there is none."""

import pytest
from planted import PLANTED

from accord.lab.audit.findings import gathered
from accord.lab.audit.runner import ALPHA, Job, look

CASES = {
    "noise scale halved": ("mean", "replace", "affine", {"exact", "replay", "empirical"}),
    "noise scale halved in the sampler": ("basics", "", "", {"exact"}),
    "charge not applied to one tier": ("sum", "add-remove", "proportional", {"exact", "replay"}),
    "epsilon rounded up": ("mean", "replace", "proportional", {"exact", "replay"}),
    "sampled count as the denominator": ("mean", "replace", "sample", {"exact"}),
    "rank of pe read naively under ties": ("median", "replace", "pe", {"exact", "replay"}),
    "sensitivity of the larger bound under replace": ("mean", "replace", "threshold", {"exact", "replay"}),
    "histogram noise for one cell": ("histogram", "replace", "minimum", {"exact", "replay"}),
    "a float sum": ("basics", "", "", {"replay"}),
    "a seeded generator": ("basics", "", "", {"exact", "replay"}),
    "midpoint decided from the data": ("mean", "replace", "affine", {"replay"}),
    "exact size of a group leaks": ("mean by", "replace", "affine", {"exact", "replay"}),
    "missing values are not counted": ("mean", "replace", "affine", {"exact", "replay"}),
    "rows of a person without a limit": ("rows where", "replace", "affine", {"exact", "replay"}),
    "people kept too often": ("mean", "add-remove", "sample", {"exact", "replay"}),
    "opted out people are read": ("mean", "replace", "minimum", {"replay"}),
    "half of a charge is booked": ("basics", "", "affine", {"replay"}),
}


def caught(name, runs=0):
    statistic, neighbors, mechanism, _ = CASES[name]
    job = Job(statistic, neighbors, (mechanism,), runs, ALPHA, 100, 1)
    return {look.way for finding in gathered(look(job)) for look in finding.violations}


@pytest.mark.parametrize("name", CASES)
def test_a_planted_bug_is_found(monkeypatch, name):
    runs = 1_000 if "empirical" in CASES[name][3] else 0
    PLANTED[name](monkeypatch)
    assert caught(name, runs) == CASES[name][3]


def test_every_planted_bug_is_tried():
    assert set(CASES) == set(PLANTED)
