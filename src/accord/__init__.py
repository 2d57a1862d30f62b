"""accord: statistics about people who each chose their own privacy level.

    table ──spec()──> Spec ──+ Query──> plan ──> release ──> receipt
                      (public)          (sees no value)

    import accord
    people = accord.table("people.parquet", epsilon="epsilon")  # who, and the level that each of them chose
    query = accord.mean("income", bounds=(0, 200_000))          # what is asked, with public bounds
    print(people.plan(query))                                   # every mechanism's error; no value is read
    answer = people.release(query)                              # the noisy answer, at everyone's own level
    answer.value, answer.interval(0.95), answer.charges, answer.receipt()
    answer - another, answer / another                          # free of charge, with intervals of their own

Levels: `Spec`. Questions: `count`, `crosstab`, `top`, `sum`, `mean`, `variance`, `std`, `histogram`,
`median`, `quantile`, `min`, `max`, `rows`, `regression`, and several together: `workload`. Budgets over many
releases: `Ledger`. Tables that are described once: `catalog`; that a service holds: `connect`.
Closed forms of the papers: `theory`. Simulations, and the papers' figures: `lab`. What is refused: `errors`.
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from accord import errors, theory
from accord.engines import CSV
from accord.people.opening import table
from accord.people.table import Table
from accord.planning import Candidate, GroupedPlan, Plan, WorkloadPlan, plan
from accord.release import Derived, GroupedRelease, Ratio, Release, WorkloadRelease
from accord.sampling import sample
from accord.spec import Spec
from accord.statistics import (
    Coefficients,
    Query,
    Workload,
    correlation,
    count,
    covariance,
    crosstab,
    histogram,
    max,
    mean,
    median,
    min,
    proportion,
    quantile,
    regression,
    rows,
    std,
    sum,
    top,
    variance,
    workload,
)

if TYPE_CHECKING:
    from accord.catalogs import Catalog, catalog
    from accord.ledger import Ledger
    from accord.server.client import connect

__version__ = "0.3.0"
logging.getLogger("accord").addHandler(logging.NullHandler())
_WHEN_NEEDED = {
    "Catalog": "accord.catalogs",
    "Ledger": "accord.ledger",
    "catalog": "accord.catalogs",
    "connect": "accord.server.client",
}


def __getattr__(name: str) -> Any:
    if name in _WHEN_NEEDED:  # a ledger comes with its database
        return getattr(import_module(_WHEN_NEEDED[name]), name)
    if name in ("lab", "sklearn"):
        return import_module(f"accord.{name}")
    if name.startswith("_"):  # what Python itself looks for
        raise AttributeError(f"module 'accord' has no attribute {name!r}")
    known = sorted((*__all__, "lab", "sklearn"), key=lambda known: (not known.islower(), known))
    raise AttributeError(f"module 'accord' has no attribute {name!r}: {errors.did_you_mean(name, known)}")


__all__ = [
    "CSV",
    "Candidate",
    "Catalog",
    "Coefficients",
    "Derived",
    "GroupedPlan",
    "GroupedRelease",
    "Ledger",
    "Plan",
    "Query",
    "Ratio",
    "Release",
    "Spec",
    "Table",
    "Workload",
    "WorkloadPlan",
    "WorkloadRelease",
    "catalog",
    "connect",
    "correlation",
    "count",
    "covariance",
    "crosstab",
    "errors",
    "histogram",
    "max",
    "mean",
    "median",
    "min",
    "plan",
    "proportion",
    "quantile",
    "regression",
    "rows",
    "sample",
    "std",
    "sum",
    "table",
    "theory",
    "top",
    "variance",
    "workload",
]
