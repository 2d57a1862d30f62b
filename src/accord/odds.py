"""Odds: what a loss of ε means, in words.

Whatever a release says, it is at most e^c times as likely with one value of a person as with another, c being
their charge. So whoever held two values for equally likely beforehand believes in the right one afterwards
with a probability of at most e^c / (1 + e^c), by Bayes' rule, whatever else they know. Numbers are rounded so
that they never promise more than holds.
"""

from __future__ import annotations

from math import ceil, exp, floor, log

from accord.budget import MICRO, PUBLIC, level_text

_AS_GOOD_AS_SURE = 0.999
"""From here on odds tell more than a probability."""


def charge_in_words(level: int, charge: int, tier: str | None, noun: str = "ε = {}") -> str:
    """What a charge means for people of a level, both in millionths: one line.

    >>> charge_in_words(100_000, 100_000, "strict")
    'strict (ε = 0.1, charged 0.1): nobody can be more sure than 52.5 % where 50 % was the guess before'
    >>> charge_in_words(PUBLIC, 61_852, None), charge_in_words(50_000, 0, None)
    ('ε = inf: no protection: public', 'ε = 0.05: not used')
    """
    known_as = noun.format(level_text(level))
    if level != PUBLIC and charge:
        known_as += f", charged {level_text(charge)}"
    name = known_as if tier is None else f"{tier} ({known_as})"
    if level == PUBLIC:
        return f"{name}: no protection: public"
    if not charge:
        return f"{name}: not used"
    loss = charge / MICRO
    surest = 1 / (1 + exp(-loss))
    if surest <= _AS_GOOD_AS_SURE:
        percent = ceil(1000 * surest) / 10
        return f"{name}: nobody can be more sure than {percent:g} % where 50 % was the guess before"
    return f"{name}: hardly protected: {times_as_likely(loss)}"


def times_as_likely(loss: float) -> str:
    """What a loss of more than 5 means: e^loss, to two digits.

    >>> times_as_likely(18)
    'an answer can be more than 65,000,000 times as likely with one value as with another'
    """
    exponent = loss / log(10)
    times = f"10^{floor(exponent)}"
    if exponent < 15:
        unit = 10 ** (floor(exponent) - 1)
        times = f"{floor(exp(loss) / unit) * unit:,}"
    return f"an answer can be more than {times} times as likely with one value as with another"
