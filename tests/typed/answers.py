"""What every kind of answer is, as type checkers see it: `make lint` reads this in strict mode, and nothing runs it.

tests/unit/test_typing.py has it read as in a project of a user's own.
"""

from datetime import date, datetime
from typing import Any, assert_type

import accord


def every_kind_of_answer() -> None:
    """The types are those of the questions."""
    people = accord.table("people.parquet", epsilon="epsilon")
    mean = accord.mean("income", bounds=(0, 200_000))
    assert_type(people.release(mean).value, float)
    assert_type(people.plan(mean), accord.Plan[float])
    assert_type(accord.plan(people.spec(), mean), accord.Plan[float])
    assert_type(people.release(people.plan(mean)), accord.Release[float])
    assert_type(people.release(accord.count(where="age >= 65")).value, float)
    assert_type(people.release(accord.histogram("age", edges=[0, 50, 100])).value, dict[Any, float])
    assert_type(people.release(accord.median("age", bounds=(0, 120))).value, float)
    assert_type(people.release(accord.max("born", bounds=(date(1900, 1, 1), date(2026, 1, 1)))).value, date)
    assert_type(
        people.release(accord.min("seen", bounds=(datetime(2025, 1, 1), datetime(2026, 1, 1)))).value,
        datetime,
    )
    assert_type(
        people.release(accord.regression("a", ["b"], bounds={"a": (0, 1)})).value, accord.Coefficients
    )
    assert_type(people.release(accord.workload([mean])).value, list[Any])
    assert_type(people.release(accord.count(by="sex", keys=["f", "m"])).value, list[dict[str, Any]])
    keys = {"ward": ["A"], "sex": ["f", "m"]}
    assert_type(people.release(accord.count(by=["ward", "sex"], keys=keys)).value, list[dict[str, Any]])
    assert_type(people.release(accord.crosstab("ward", "sex", keys=keys)).value, list[dict[str, Any]])
    assert_type(accord.sample(lambda rows, epsilon: "text", people).value, str)
    accord.mean("income", bound=(0, 1))  # type: ignore[call-overload]
    anything: accord.Release = people.release(mean)
    assert_type(anything, accord.Release[Any])


def asked(by: str | None) -> None:
    """Whether there are groups is known when it runs."""
    assert_type(accord.count(by=by), accord.Query[Any])
