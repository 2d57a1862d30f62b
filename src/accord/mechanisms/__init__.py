"""Every mechanism, in the order in which plans list them."""

from accord.mechanisms import additive, mix
from accord.mechanisms.record import Mechanism

ALL: tuple[Mechanism, ...] = (*additive.MECHANISMS, *mix.MECHANISMS)
