"""accord: statistics about people who each chose their own privacy level.

    table ──spec()──> Spec ──+ Query──> plan ──> release ──> receipt
                      (public)          (sees no value)

    import accord
    people = accord.table("people.parquet", epsilon="epsilon")      # who, and the level that each of them chose
    query = accord.mean("income", bounds=(0, 200_000))              # what is asked, with public bounds
    print(people.plan(query))                                       # how accurate every mechanism would be, before a value is read
    answer = people.release(query)                                  # the noisy answer, at everyone's own level
    answer.value, answer.interval(0.95), answer.charges, answer.receipt()

Levels: `Spec`. Questions: `count`, `sum`, `mean`, `histogram`, `median`, `quantile`, `min`, `max`. Closed forms of the papers: `theory`. What is refused: `errors`.
"""

from accord import errors, theory
from accord.planning import Candidate, Plan, plan
from accord.query import Query, count, histogram, max, mean, median, min, quantile, sum
from accord.release import Release
from accord.spec import Spec
from accord.tables import Table, table

__version__ = "0.1.0"

__all__ = [
    "Candidate",
    "Plan",
    "Query",
    "Release",
    "Spec",
    "Table",
    "count",
    "errors",
    "histogram",
    "max",
    "mean",
    "median",
    "min",
    "plan",
    "quantile",
    "sum",
    "table",
    "theory",
]
