"""Everything that the papers say about their figures, on smaller runs.

Each claim knows how many standard errors it is away from turning. Seeds are fixed, so that these tests do not flicker; that a claim is at least three standard errors sure means
that another seed would turn it with a probability of less than 0.14 %. The slow tests are sure of every claim; the others of most, and none of theirs may be as sure of the contrary.
"""

import numpy as np
import pytest

from accord.lab.papers.experiment import Claim, Context, Point, Points, all_below, is_below, is_near
from accord.lab.papers.reproduction import EXPERIMENTS, measure

SURE = 3.0
IDS = (
    *(f"J-fig{k}{panel}" for k in (1, 2, 3) for panel in "abcd"),
    "F-fig1", "F-fig2", "C-table2", "C-fig1a", "C-fig1b", "Z-fig1", "Z-fig2",
)  # fmt: skip


def test_every_figure_is_there():
    assert set(EXPERIMENTS) == set(IDS)


def claims_of(key, runs):
    """All claims; settings that none of them looks at are run three times only, to see that they can be."""
    experiment = EXPERIMENTS[key]
    settings = range(len(experiment.settings))
    measured = {k: measure((key, k), 3 if key in FEW else runs, 0, Context())[0] for k in settings}
    if key in FEW:
        tried = LookedAt(p for k in settings for p in measured[k])
        experiment.claims(tried)
        needed = [k for k in settings if tried.keys & {key_of(p) for p in measured[k]}]
        measured |= {k: measure((key, k), runs, 0, Context())[0] for k in needed}
    points = LookedAt(p for k in settings for p in measured[k])
    claims = experiment.claims(experiment.gather(points) if experiment.gather else points)
    assert claims
    assert key not in FEW or points.keys <= {key_of(p) for k in needed for p in measured[k]}
    return claims


class LookedAt(Points):
    """Points that remember at which of them somebody looked."""

    def __init__(self, points):
        super().__init__(points)
        self.keys = set()

    def at(self, method, x, panel=""):
        self.keys.add((panel, method, x))
        return super().at(method, x, panel)

    def curve(self, method, panel=""):
        self.keys |= {key_of(p) for p in self.all if (p.method, p.panel) == (method, panel)}
        return super().curve(method, panel)


def key_of(point):
    return point.panel, point.method, point.x


FEW = {"J-fig3a": 25, "J-fig3b": 25, "J-fig3c": 25, "J-fig3d": 20, "F-fig2": 40} | {
    f"J-fig{k}{panel}": 100 for k in (1, 2) for panel in "abcd"
}
"""Where being sure of everything takes long: with so few runs, most claims are sure, and none is against what more runs say."""


LONG = ("J-fig3c", "J-fig3d")
"""Being sure of these takes many minutes each: `accord reproduce` is, and its page is in the docs."""


@pytest.mark.slow
@pytest.mark.parametrize("key", LONG)
def test_claims_with_few_runs(key):
    claims = claims_of(key, FEW[key])
    for claim in claims:
        assert claim.margin > -SURE or claim.why, f"{key} turned: {claim}"
    assert sum(claim.agrees and claim.margin >= SURE for claim in claims) >= len(claims) / 2


SURELY = [key for key in IDS if key not in LONG]


@pytest.mark.parametrize("key", [pytest.param(k, marks=pytest.mark.slow) if k in FEW else k for k in SURELY])
def test_claims(key):
    claims = claims_of(key, EXPERIMENTS[key].quick)
    for claim in claims:
        # (what does not agree and says why has been looked at: it need not be quite as sure)
        assert abs(claim.margin) >= (2 if claim.why else SURE), f"{key} is not sure: {claim}"
        assert claim.agrees == (claim.margin > 0)
        assert claim.agrees or claim.why, f"{key} does not agree, and does not say why: {claim}"
    assert sum(claim.agrees for claim in claims) > len(claims) / 2


@pytest.mark.parametrize("key", IDS)
def test_points_are_whole(key):
    """Every panel has its curves, every point a finite value; the first setting is enough to see."""
    experiment = EXPERIMENTS[key]
    points = measure((key, 0), 3, 1, Context())[0]
    assert all(np.isfinite(p.value) and p.error >= 0 for p in points)
    assert experiment.ours <= {p.method for p in points}
    assert experiment.title and experiment.setting and experiment.panels
    assert len(set(experiment.settings)) == len(experiment.settings)


def test_a_claim_turns():
    low, high = Point("a", 1, 1.0, 0.1), Point("b", 1, 2.0, 0.1)
    right, wrong = (
        is_below(low, high, "", "a is lower"),
        is_below(high, low, "", "b is lower", why="it is not"),
    )
    assert (
        right.agrees
        and right.margin == pytest.approx(1 / np.hypot(0.1, 0.1))
        and right.here == 0.5
        and not right.why
    )
    assert not wrong.agrees and wrong.margin == -right.margin and wrong.why
    assert is_near(low, "", 1.1, 0.15).agrees and not is_near(low, "", 1.2, 0.15).agrees
    both = Points([low, high, Point("a", 2, 3.0, 0.1), Point("b", 2, 2.0, 0.1)])
    claim = all_below(both, "a", "b", "every x", "a is lower", why="not at 2")
    assert isinstance(claim, Claim) and not claim.agrees and claim.here == 1.5 and claim.margin < 0
    assert all_below(both, "a", "b", "every x", "a is lower", factor=2.0).agrees
