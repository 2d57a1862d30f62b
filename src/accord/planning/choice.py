"""What was chosen for one question, and every mechanism that could have been."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from accord import budget
from accord.budget import IntArray, to_float
from accord.mechanisms.prediction import Prediction
from accord.mechanisms.record import Calibration, Mechanism
from accord.spec import Spec
from accord.statistics import Target

NO_DATA = ("midpoint", "public")
"""What a plan may choose instead of a mechanism. Neither reads the data nor charges anyone."""


@dataclass(frozen=True)
class Candidate:
    """One mechanism with its predicted error, or with the reason why it is refused."""

    mechanism: str
    note: str
    spec: Spec
    calibration: Calibration | None
    prediction: Prediction | None
    times: int = 1
    """In how many answers a person may change something, and is charged for."""

    @property
    def rmse(self) -> float | None:
        return None if self.prediction is None else self.prediction.rmse

    @property
    def rmse_here(self) -> float | None:
        return None if self.prediction is None else self.prediction.rmse_here

    @property
    def charges(self) -> Mapping[float, float] | None:
        return None if self.calibration is None else by_level(self.spec, self.cost)

    @property
    def cost(self) -> IntArray:
        assert self.calibration is not None
        return budget.times(self.calibration.charges, self.times)

    def __repr__(self) -> str:
        if self.rmse is None:
            return f"<{self.mechanism}: refused, {self.note}>"
        return f"<{self.mechanism}: rmse {self.rmse:.6g}; {self.note}>"


@dataclass(frozen=True)
class Choice:
    """What was chosen for one question, and what else there was."""

    mechanism: str
    """The name of a mechanism; "midpoint" or "public" where the answer needs no data."""
    target: Target
    """What the mechanism answers: the question under the relation that its answer must prove."""
    calibration: Calibration
    prediction: Prediction
    candidates: tuple[Candidate, ...]
    reason: str
    times: int = 1
    """In how many answers a person may change something, and is charged for.

    2 where they may move between private groups.
    """
    own: Mechanism | None = None
    """The mechanism, if it is one of somebody's own, whose name nobody else knows."""


def by_level(spec: Spec, charges: IntArray) -> Mapping[float, float]:
    """{level: charge}, as floats."""
    return MappingProxyType(
        {level: to_float(c) for level, c in zip(spec.levels, charges.tolist(), strict=True)}
    )
