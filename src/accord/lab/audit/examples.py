"""Everything that can be asked, with every modifier: a small table and a question as they would be typed.

    mean = example("mean", "affine", "replace", "where")    # a table, a question, and what else it takes
    released(mean, opened(mean))                            # or released(mean, opened(mean), ledger)

offered.py says which combinations are offered.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import signature
from math import inf, nan
from typing import Any

import numpy as np

import accord
from accord import relation
from accord.errors import LedgerError, QueryError
from accord.lab.audit.case_plans import declared_for
from accord.lab.audit.case_tables import opening, said_of
from accord.lab.audit.cases import PARTS, STATISTICS, Scale
from accord.lab.audit.cases import QUESTIONS as AUDITED
from accord.mechanisms import ALL
from accord.spec import Spec
from accord.statistics import Algorithm, Query, Workload

MECHANISMS = (*(mechanism.name for mechanism in ALL), "auto")
SCALE = Scale((0, 100), 1, (0, 25, 50, 100))
_LEVELS = (1.0, 2.5, 6.0)
_GENEROUS = (900.0, 7_000.0, 90_000.0)
"""So that the slopes of a regression are worth it."""
_PEOPLE, _MANY = 24, 72
_TIERS = ("strict", "standard", "open")


# ---- statistics --------------------------------------------------------------------------------------------


def noisy_count(rows: Any, epsilon: float) -> float:
    """An algorithm of one's own: the number of rows."""
    return len(rows) + float(np.random.default_rng(secrets.randbits(128)).laplace(0, 1 / epsilon))


def _workload(scale: Scale, **of: Any) -> Workload:
    return accord.workload([AUDITED["mean"](scale, **of), AUDITED["median"](scale, **of)])


def _regression_on_several(scale: Scale, **of: Any) -> Query:
    bounds = {"x": scale.bounds, "z": scale.bounds, "m": (0, 1)}
    return accord.regression("x", ["z", "m"], bounds=bounds, **of)


def _algorithm(scale: Scale, **of: Any) -> Query:
    return Algorithm("noisy_count", ("x",), "numpy", noisy_count)


QUESTIONS: dict[str, Callable[..., Query | Workload]] = {
    **AUDITED,
    "std": lambda scale, **of: accord.std("x", scale.bounds, step=scale.step, **of),
    "regression on several": _regression_on_several,
    "workload": _workload,
    "algorithm": _algorithm,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {"workload": accord.mean, "algorithm": accord.sample}


def function_of(statistic: str) -> Callable[..., Any]:
    """The public function that asks for it. A workload is of other questions, which take the arguments."""
    function: Callable[..., Any] = _FUNCTIONS.get(statistic) or getattr(accord, statistic.split(" ")[0])
    return function


# ---- modifiers ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Modifier:
    """What else may be asked for, or be so."""

    words: str
    """As the page says it."""
    of: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the question."""
    share: float = 1.0
    ledger: str = "none"
    user: bool = False
    """Whether people have many rows."""
    levels: str = ""
    """"public", "out", "tiers" or "many": who is there."""


_WHERE, _BY, _PUBLIC = PARTS["where"], PARTS["by"], {"membership": "public"}

MODIFIERS: dict[str, Modifier] = {
    "none": Modifier("nothing else"),
    "where": Modifier("`where=`", _WHERE),
    "by": Modifier("`by=`", _BY),
    "where and by": Modifier("`where=` and `by=`", {**_WHERE, **_BY}),
    "public where": Modifier('`where=`, `membership="public"`', {**_WHERE, **_PUBLIC}),
    "public by": Modifier('`by=`, `membership="public"`', {**_BY, **_PUBLIC}),
    "all values": Modifier('`missing="none"`', {"missing": "none"}),
    "middle": Modifier('`missing="middle"`', {"missing": "middle"}),
    "many rows": Modifier("`user=` with many rows each", user=True),
    "share": Modifier("`share=` below 1", share=0.5),
    "ledger": Modifier("`ledger=`", share=0.5, ledger="whole"),
    "remaining": Modifier("what a ledger says is left, by level", share=0.5, ledger="remaining"),
    "remaining by person": Modifier(
        "what a ledger says is left, person by person", share=0.5, ledger="remaining by person"
    ),
    "public people": Modifier("public people (`inf`)", levels="public"),
    "opted out": Modifier("somebody opted out", levels="out"),
    "tiers": Modifier("`tiers=` with `default=`", levels="tiers"),
    "many levels": Modifier("more than 64 levels", levels="many"),
}


# ---- examples ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Example:
    """A combination as it would be typed."""

    columns: dict[str, Any]
    """A row for each entry."""
    table: dict[str, Any]
    """For `accord.table`."""
    query: Query | Workload
    mechanism: str
    share: float
    t: float | str | None
    ledger: str
    """"none"; "whole": with a ledger; "remaining", "remaining by person": of what is left in one, when
    everyone or only some have been asked before.
    """
    private: tuple[str, ...]
    """Columns whose values are nobody's business. Under add-remove it is private, too, who has rows."""


def example(statistic: str, mechanism: str, neighbors: str, modifier: str) -> Example:
    """A small table and a question for a combination.

    Raises:
        QueryError: there is no such question.
    """
    asked, is_algorithm = MODIFIERS[modifier], statistic == "algorithm"
    arguments = {**asked.of, **({"mechanism": mechanism} if is_algorithm and mechanism != "sample" else {})}
    function = function_of(statistic)
    unknown = [name for name in arguments if name not in signature(function).parameters]
    if unknown:
        raise QueryError(f"accord.{function.__name__} has no {unknown[0]}=")
    needs_user = statistic in STATISTICS and STATISTICS[statistic].needs_user
    columns, table = _people(asked, _levels(statistic), neighbors)
    if asked.user or asked.ledger != "none" or needs_user:
        table["user"] = "id"
    public = {"g": "by", "m": "where"} if "membership" in asked.of else {}
    private = (c for c in ("x", "z", "g", "m") if public.get(c) not in asked.of)
    return Example(
        columns,
        table,
        _declared_for(mechanism, QUESTIONS[statistic](SCALE, **asked.of)),
        mechanism,
        asked.share,
        "max" if is_algorithm else None,
        asked.ledger,
        tuple(private),
    )


def _declared_for(mechanism: str, query: Query | Workload) -> Query | Workload:
    """The question, or those of a workload, with what the mechanism needs to know."""
    if isinstance(query, Workload):
        return replace(query, queries=tuple(declared_for(mechanism, each) for each in query.queries))
    return declared_for(mechanism, query)


def _levels(statistic: str) -> tuple[float, ...]:
    return _GENEROUS if statistic.startswith("regression") else _LEVELS


def _people(
    modifier: Modifier, levels: tuple[float, ...], neighbors: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Columns, and the options of `accord.table`."""
    extra = {"public": (inf,), "out": (0.0,)}.get(modifier.levels, ())
    many = modifier.levels == "many"
    levels = tuple(levels[0] + k / 8 for k in range(_MANY)) if many else (*levels, *extra)
    people = np.arange(_MANY if many else _PEOPLE)
    by_person = [levels[k % len(levels)] for k in people.tolist()]
    rows = np.repeat(people, 1 + people % 3 if modifier.user else 1)
    place = np.arange(rows.size)
    x = (place * 37 % 101).astype(np.float64)
    x[[5, -3]] = nan
    # of several rows the strictest level counts: here that of the first
    factor = np.where(np.diff(rows, prepend=-1) > 0, 1, 2)
    columns: dict[str, Any] = {
        "id": rows,
        "x": x,
        "z": (place * 53 % 97).astype(np.float64),
        "g": 1 + rows // 4 % 3,
        "m": (rows % 5 > 0).astype(np.float64),
        "e": np.array([by_person[k] for k in rows.tolist()]) * factor,
    }
    table: dict[str, Any] = {"epsilon": "e"}
    if modifier.levels == "tiers":
        names = dict(zip(levels, _TIERS, strict=True))
        lacks_tier = [k % 7 == 3 for k in range(len(by_person))]
        columns["e"] = [
            None if lacks else names[level] for level, lacks in zip(by_person, lacks_tier, strict=True)
        ]
        by_person = [
            levels[0] if lacks else level for level, lacks in zip(by_person, lacks_tier, strict=True)
        ]
        table |= {"tiers": dict(zip(_TIERS, levels, strict=True)), "default": _TIERS[0]}
    # one of each level could be there, and is not
    return columns, table | opening(said_of(Spec.of([*by_person, *levels]), neighbors))


def opened(example: Example, source: Any = None) -> accord.Table:
    """The table of an example: from a source with the same rows, or from memory."""
    return accord.table(example.columns if source is None else source, **example.table)


def prepared(example: Example, table: accord.Table, ledger: accord.Ledger) -> Spec:
    """What may be spent, once a ledger knows the table: everyone's level, or what remains of it."""
    if example.ledger == "remaining by person" and not relation.named(table.neighbors).levels_are_public:
        table.identity.people(())  # which says why nobody is told apart
    ledger.register(table, "people")
    if example.ledger == "whole":
        return table.spec()
    asked_before = table
    if example.ledger == "remaining by person":  # some are in another table as well, which was asked before
        some = {
            name: np.array(values)[np.array(example.columns["id"]) % 2 == 0]
            for name, values in example.columns.items()
        }
        asked_before = opened(example, some)
        ledger.register(asked_before, "some")
    asked_before.release(accord.mean("x", SCALE.bounds), "minimum", 0.25, ledger=ledger)
    return ledger.remaining(table)


def released(example: Example, table: accord.Table, ledger: accord.Ledger | None = None) -> Any:
    """What an example gives, as a user would ask; a ledger must be a new one."""
    if example.ledger == "none":
        return answered(example, table)
    if ledger is None:
        raise LedgerError(f"the example is about a ledger ({example.ledger}). Give ledger=, a new one.")
    return answered(example, table, ledger, prepared(example, table, ledger))


def answered(
    example: Example, table: accord.Table, ledger: accord.Ledger | None = None, budget: Spec | None = None
) -> Any:
    """The release alone, once a ledger is prepared."""
    if example.ledger.startswith("remaining"):
        plan: Any = partial(accord.plan, t=example.t, neighbors=table.neighbors)
        return table.release(plan(budget, example.query, example.mechanism, example.share), ledger=ledger)
    if isinstance(example.query, Algorithm):
        algorithm, t = example.query, example.t or "max"
        options: Any = {"share": example.share, "ledger": ledger, "rows": algorithm.row_format}
        return accord.sample(algorithm.function, table, t, columns=algorithm.columns, **options)
    return table.release(example.query, example.mechanism, example.share, t=example.t, ledger=ledger)
