"""An algorithm of one's own, doubted: sound ones pass, broken ones do not, and no row is printed."""

from fractions import Fraction
from math import exp

import numpy as np
import pytest
from noises import SEEDED

import accord
from accord.errors import AccordError, QueryError
from accord.lab.audit import check

PEOPLE = {"x": [0.0, 1.0, 0.25, 0.5, 1.0, 0.75], "e": [0.5, 1.0, 2.0, 0.5, 1.0, 2.0]}
RNG = np.random.default_rng(1)


@pytest.fixture(autouse=True)
def seeded():
    """What the algorithms here draw: a sound one fails once in 1/ALPHA times."""
    RNG.bit_generator.state = np.random.default_rng(SEEDED.randbits(64)).bit_generator.state


def people():
    return accord.table({name: np.array(column) for name, column in PEOPLE.items()}, epsilon="e")


def sound_sum(rows, epsilon):
    return float(np.clip(rows, 0, 1).sum() + RNG.laplace(0, 1 / epsilon))


def randomised_count(rows, epsilon):
    """Whether there are more than two, said truly with probability e^ε/(1 + e^ε)."""
    return bool((len(rows) > 2) ^ (RNG.random() > exp(epsilon) / (1 + exp(epsilon))))


def replayed(rows, epsilon, noise=None):
    scale = Fraction(1000) / Fraction(epsilon)
    total = round(float(np.clip(rows, 0, 1).sum()) * 1000)
    return total + (noise.laplace(scale) if noise is not None else round(RNG.laplace(0, float(scale))))


def too_little_noise(rows, epsilon):
    return float(np.clip(rows, 0, 1).sum() + RNG.laplace(0, 0.3 / epsilon))


def exact_largest(rows, epsilon):
    return float(rows.max(initial=0.0))


def fails_on_nobody(rows, epsilon):
    return float(rows.max()) * 0 + RNG.laplace(0, 10)


def mean_of_those_there(rows, epsilon):
    """Divides by the exact number."""
    return float((np.clip(rows, 0, 1).sum() + RNG.laplace(0, 0.01)) / max(1, len(rows)))


def as_many_numbers_as_rows(rows, epsilon):
    return RNG.laplace(size=len(rows)).tolist()


def replayed_with_half_the_noise(rows, epsilon, noise=None):
    return replayed(rows, 2 * epsilon, noise)


def replayed_with_a_secret(rows, epsilon, noise=None):
    return replayed(rows, epsilon, noise), len(rows)


@pytest.mark.parametrize("algorithm", [sound_sum, randomised_count, replayed])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_a_sound_algorithm_passes(algorithm, epsilon):
    audit = check(algorithm, people(), epsilon, columns=["x"], rows="numpy", runs=600)
    assert audit.passed, str(audit)
    assert audit.findings[0].level == f"{epsilon:g}"
    assert "who is kept" in {f.statistic for f in audit.findings}


@pytest.mark.parametrize(
    ("algorithm", "evidence"),
    [
        (too_little_noise, "runs of each"),
        (exact_largest, "the same rows always gave the same answer"),
        (fails_on_nobody, "raises a ValueError with one of the two tables only"),
        (mean_of_those_there, "runs of each"),
        (as_many_numbers_as_rows, "the form of the answer tells the tables apart"),
        (replayed_with_half_the_noise, "every draw, with its scale"),
        (replayed_with_a_secret, "the answer moves beside the noise"),
    ],
)
def test_a_broken_algorithm_is_found(algorithm, evidence):
    audit = check(algorithm, people(), 1.0, columns=["x"], rows="numpy", runs=1_000)
    assert not audit.passed
    assert any(evidence in look.evidence for f in audit.violations for look in f.violations), str(audit)


def test_a_replay_is_exact():
    audit = check(replayed, people(), 2.0, columns=["x"], rows="numpy", runs=100)
    worst = max(finding.looks["replay"].loss for finding in audit.findings)
    assert worst == 2


@pytest.mark.parametrize("rows", ["arrow", "pandas", "numpy"])
def test_rows_come_in_every_form(rows):
    def count(rows, epsilon):
        return len(rows) + RNG.laplace(0, 1 / epsilon)

    assert check(count, people(), rows=rows, columns=["x"], runs=200).passed


def test_people_with_one_row_are_those_who_are_tried():
    table = accord.table({**PEOPLE, "id": [1, 2, 3, 4, 5, 5]}, epsilon="e", user="id")
    seen = []
    check(lambda rows, epsilon: seen.append(len(rows)) or 0.0, table, columns=["x"], rows="numpy", runs=100)
    assert 4 in seen and not {5, 6} & set(seen)


def test_what_is_printed_tells_no_value():
    table = accord.table({"x": [424242.4242, 1.0], "e": [1.0, 1.0]}, epsilon="e")

    def quoting(rows, epsilon):
        raise ValueError(f"bad rows: {rows}")

    audit = check(quoting, table, columns=["x"], rows="numpy", runs=100)
    assert "424242" not in str(audit) and "424242" not in repr(audit.describe())


@pytest.mark.parametrize(
    "bad",
    [
        {"epsilon": 0},
        {"epsilon": float("inf")},
        {"epsilon": "1"},
        {"runs": 10},
        {"alpha": 0},
        {"columns": ["y"]},
    ],
)
def test_what_cannot_be_checked_is_refused(bad):
    with pytest.raises(AccordError):
        check(sound_sum, people(), **({"columns": ["x"], "rows": "numpy"} | bad))


def test_an_empty_table_is_refused():
    with pytest.raises(QueryError, match="has no rows"):
        check(sound_sum, accord.table({"x": np.zeros(0)}, epsilon=1.0), rows="numpy")
