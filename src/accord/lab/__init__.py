"""The lab: simulation, comparison, audit, and every figure of the papers, redrawn.

Seeded, for research; nothing outside uses it but the command line.

    from accord import lab
    lab.simulate("affine", query, spec, lab.populations.normal(), runs=10_000, seed=1)
    lab.compare(["affine", "threshold", "sample"], query, spec, population).plot("errors.png")
    list(lab.reproduce(lab.wanted(["C-table2"])))  # `accord reproduce C-table2`
    lab.audit.run(["affine"], ["mean"])            # `accord audit affine --statistic mean`
    lab.audit.check(algorithm, people)             # one's own, for accord.sample

`populations`: normal, uniform, bernoulli, beta, lognormal, a real column. `specs`: [J]'s three groups, two
groups, log-uniform, published segmentations.
"""

from importlib import import_module
from typing import Any

from accord.lab.simulation import populations, specs
from accord.lab.simulation.comparison import Comparison, compare
from accord.lab.simulation.populations import Population
from accord.lab.simulation.simulate import Simulation, simulate
from accord.lab.simulation.specs import Drawn


def __getattr__(name: str) -> Any:
    if name in ("reproduce", "wanted", "EXPERIMENTS"):  # importing these builds every experiment
        from accord.lab.papers import reproduction

        return getattr(reproduction, name)
    if name == "audit":
        return import_module("accord.lab.audit")
    raise AttributeError(f"module 'accord.lab' has no attribute {name!r}")


__all__ = [
    "Comparison",
    "Drawn",
    "Population",
    "Simulation",
    "compare",
    "populations",
    "simulate",
    "specs",
]
