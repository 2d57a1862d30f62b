"""Every mechanism, in the order in which plans list them."""

from accord.mechanisms import charges, mix, pe
from accord.mechanisms.additive import STRETCH, weighted_mean
from accord.mechanisms.rank import weighted_rank
from accord.mechanisms.record import Mechanism

_REPLACE = ("replace",)

ALL: tuple[Mechanism, ...] = (
    Mechanism(
        "minimum",
        "[J] Definition 7; [C] UNI",
        "everyone loses the smallest level",
        _REPLACE,
        (weighted_mean(charges.minimum), weighted_rank(charges.minimum)),
    ),
    Mechanism(
        "threshold",
        "[J] Definition 8; [Z] Definition 6",
        "those with ε ≥ t lose t, the others nothing",
        _REPLACE,
        (weighted_mean(charges.threshold), weighted_rank(charges.threshold)),
    ),
    Mechanism(
        "proportional",
        "[C] III-A, PropDPM",
        "everyone loses their whole level",
        _REPLACE,
        (weighted_mean(charges.proportional),),
    ),
    Mechanism(
        "affine",
        "[C] Algorithm 1, ADPM; [Z] Claim 1",
        "person i loses min(ε_i, τ)",
        _REPLACE,
        (weighted_mean(charges.affine),),
    ),
    Mechanism(
        "fallah",
        "[C] IV-A, FME (reconstructed)",
        "person i loses min(ε_i, 1/√n)",
        _REPLACE,
        (weighted_mean(charges.fallah),),
    ),
    Mechanism("stretch", "[J] V-A, Alag.", "everyone loses their whole level", _REPLACE, (STRETCH,)),
    Mechanism("mix", "[F] §2; [C] LDPE", "everyone loses their whole level", _REPLACE, (mix.MEANS, mix.RANKS)),
    Mechanism(
        "rank", "ours, after [F]'s question", "person i loses min(ε_i, τ)", _REPLACE, (weighted_rank(charges.affine),)
    ),
    Mechanism("pe", "[J] Definition 10", "everyone loses their whole level", _REPLACE, (pe.WAY,)),
)
