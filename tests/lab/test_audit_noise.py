"""The audit of the noise: its laws are followed exactly, and its alarms are rarer than they say.

It sees what is kept between draws.
"""

from fractions import Fraction
from math import exp
from random import Random

import numpy as np
import pytest
from noises import SEEDED
from scipy import stats

from accord.lab.audit import noise_laws, noise_source
from accord.lab.audit.noise_decisions import Diverged, RecordedSource, law_of

pytestmark = pytest.mark.operating_system
"""The chance of a false alarm is 0: of what the system draws, only the bytes are counted. All sequences that are looked at are seeded."""


def test_a_sound_noise_passes():
    """With numbers that ACCORD_TEST_SEED draws anew; one of 10⁹ seeds at most would be a false alarm (noise_laws.py)."""
    rng = np.random.default_rng(SEEDED.randbits(64))
    looks = [*noise_laws.examine(rng), *noise_source.examine(rng)]
    assert [look for look in looks if look.violated] == []
    assert len(looks) > 50 and {look.method for look in looks} == {"exact", "replay"}


def test_two_audits_draw_other_scales():
    def scales(seed):
        looks = noise_laws.examine(np.random.default_rng(seed))
        return [look.statistic for look in looks if "of scale" in look.statistic][:7]

    names = scales(1), scales(2)
    assert names[0][:3] == names[1][:3] and not set(names[0][3:]) & set(names[1][3:])


# ---- laws --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scale", [Fraction(1, 17), Fraction(5, 7), Fraction(7, 3), Fraction(12), Fraction(41, 2)], ids=str
)
def test_the_law_of_a_draw_is_followed_to_the_end(scale):
    """Through everything that is rejected and drawn again."""
    law, rest = law_of(lambda source: noise_source.noise_on(source).laplace(scale))
    q = exp(-1 / scale)
    assert rest < 1e-6
    assert all(abs(p - (1 - q) / (1 + q) * exp(-abs(x) / scale)) <= rest + 1e-12 for x, p in law.items())


def rejecting(source, tries):
    """A die of three sides, from one of four; gives up after so many tries."""
    for _ in range(tries):
        side = int(source.randbelow(4))
        if side < 3:
            return side
    return 0


def endless(source):
    side = 3
    while side == 3:
        side = int(source.randbelow(4))
    return side


def test_what_begins_anew_is_not_taken_for_granted():
    """A draw that counts its tries never begins anew; one that does not has its law at once."""
    law, rest = law_of(endless, runs=20)
    assert rest == 0 and law == {k: pytest.approx(1 / 3, abs=1e-12) for k in range(3)}
    law, rest = law_of(lambda source: rejecting(source, 2))
    assert rest == 0 and law == {0: pytest.approx(6 / 16), 1: pytest.approx(5 / 16), 2: pytest.approx(5 / 16)}


def test_a_step_that_changes_nothing_yet_is_no_beginning():
    """⌊v/17⌋ of a number of heads: one more hardly ever shows."""

    def heads(source):
        v = 0
        while source.toss(0.5):
            v += 1
        return v // 17

    law, _ = law_of(heads)
    assert law[0] == pytest.approx(1 - 2**-17, abs=1e-9) and law[1] == pytest.approx(2**-17, rel=1e-3)


@pytest.mark.parametrize("p", [1e-6, 0.002, 0.05, 0.3, 0.5, 0.9, 1 - 1e-4])
def test_alarms_are_rarer_than_they_say(p):
    """Exactly: the probability of all numbers of hits that are a surprise."""
    draws = 3_000
    alarm = sum(stats.binom.pmf(k, draws, p) for k in range(draws + 1) if noise_laws.surprising(k, draws, p))
    assert 0 < alarm < 1e-9 / noise_laws.EVENTS


def test_what_cannot_happen_is_a_surprise_at_once():
    assert noise_laws.surprising(1, 3_000, 0.0) and not noise_laws.surprising(0, 3_000, 0.0)
    assert noise_laws.surprising(2_999, 3_000, 1.0) and not noise_laws.surprising(3_000, 3_000, 1.0)


def test_there_are_fewer_events_than_alarms_are_shared_among(monkeypatch):
    asked = []
    good = noise_laws.surprising
    monkeypatch.setattr(noise_laws, "surprising", lambda *args: asked.append(args) or good(*args))
    assert list(noise_laws.examine(np.random.default_rng(0)))
    assert 200 < len(asked) < noise_laws.EVENTS


# ---- the source --------------------------------------------------------------------------------------------


def test_a_record_gives_the_same_again_and_nothing_else():
    first = RecordedSource(Random(1))
    answers = first.randbelow(10**30), first.randbits(7), first.token_bytes(3)
    again = RecordedSource(Random(2), first.record)
    assert (again.randbelow(10**30), again.randbits(7), again.token_bytes(3)) == answers
    with pytest.raises(Diverged):
        again.randbits(7)
    with pytest.raises(Diverged):
        RecordedSource(Random(2), first.record).randbelow(10**29)


def test_the_real_source_is_counted_byte_by_byte():
    system = noise_source.CountedSystem()
    assert len(system.token_bytes(24)) == 24 and system.bytes == 24
    assert 0 <= system.randbelow(1000) < 1000 and system.bytes >= 26
    assert system.randbits(9) < 512 and system.bytes >= 28
    assert noise_source.problem_with_secrets() == ""


def test_a_noise_that_fails_is_a_finding():
    def look():
        raise IndexError

    failed = noise_source.or_failure("Laplace", look)
    assert failed.violated and failed.evidence == "it fails (IndexError)"


def test_a_noise_that_lets_threads_draw_one_after_the_other_is_sound():
    """Who waits for a lock asks later, but asks."""
    from threading import Lock

    lock = Lock()

    def draw(noise):
        with lock:
            return noise.laplace(Fraction(10))

    assert noise_source.problem_with_threads(draw) == ""
