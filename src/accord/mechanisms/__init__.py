"""Every mechanism, in the order in which plans list them."""

from accord.mechanisms import charges, levels, mix, pe, regression, sample
from accord.mechanisms.additive import STRETCH, weighted_mean
from accord.mechanisms.rank import weighted_rank
from accord.mechanisms.record import ChargeRule, Mechanism, Method
from accord.relation import ADD_REMOVE, PRIVATE_LEVELS, REPLACE

_REPLACE = (REPLACE,)
EVERY = (REPLACE, ADD_REMOVE, PRIVATE_LEVELS)
_WHOLE_LEVEL = "everyone loses their whole level"


def by_charges(charge_rule: ChargeRule) -> tuple[Method, ...]:
    """A function of charges.py, for everything that can be answered with it: sums, quantiles, regressions."""
    return weighted_mean(charge_rule), weighted_rank(charge_rule), regression.by_charges(charge_rule)


ALL: tuple[Mechanism, ...] = (
    Mechanism(
        "minimum",
        "[J] Definition 7; [C] UNI",
        "everyone loses the smallest level",
        EVERY,
        by_charges(charges.minimum),
        weighs_alike=True,
    ),
    Mechanism(
        "threshold",
        "[J] Definition 8; [Z] Definition 6",
        "those with ε ≥ t lose t, the others nothing",
        EVERY,
        by_charges(charges.threshold),
    ),
    Mechanism(
        "proportional", "[C] III-A, PropDPM", _WHOLE_LEVEL, EVERY, (weighted_mean(charges.proportional),)
    ),
    Mechanism(
        "affine",
        "[C] Algorithm 1, ADPM; [Z] Claim 1",
        "person i loses min(ε_i, τ)",
        EVERY,
        (weighted_mean(charges.affine), regression.by_charges(charges.affine)),
    ),
    Mechanism(
        "fallah",
        "[C] IV-A, FME (reconstructed)",
        "person i loses min(ε_i, 1/√n)",
        EVERY,
        (weighted_mean(charges.fallah),),
    ),
    Mechanism("stretch", "[J] V-A, Alag.", _WHOLE_LEVEL, _REPLACE, (STRETCH,)),
    Mechanism("mix", "[F] §2; [C] LDPE", _WHOLE_LEVEL, _REPLACE, (mix.MEANS, mix.RANKS, levels.METHOD)),
    Mechanism(
        "rank",
        "ours, after [F]'s question",
        "person i loses min(ε_i, τ)",
        EVERY,
        (weighted_rank(charges.affine),),
    ),
    Mechanism(
        "sample",
        "[J] Definition 9",
        "person i loses at most min(ε_i, t)",
        EVERY,
        (sample.MEANS, sample.RANKS, regression.SAMPLED, sample.ALGORITHMS),
    ),
    Mechanism("pe", "[J] Definition 10", _WHOLE_LEVEL, _REPLACE, (pe.METHOD,)),
    Mechanism(
        "robust",
        "ours, where levels go with values",
        "person i loses min(ε_i, τ)",
        EVERY,
        (weighted_mean(charges.robust), weighted_rank(charges.robust)),
        needs_gap=True,
    ),
)


def named(mechanism: str | Mechanism) -> Mechanism:
    """The mechanism of this name; one of somebody's own is itself."""
    return mechanism if isinstance(mechanism, Mechanism) else next(m for m in ALL if m.name == mechanism)
