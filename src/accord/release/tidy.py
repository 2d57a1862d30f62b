"""Tidy answers: a release as rows, one for each number that it says, for data frames and figures.

    question  what was asked
    …         the group's key, under the name of its column
    cell      of a histogram          p     of a quantile          term  of a regression
    value     the answer
    rmse      its predicted error about the population, in `unit`
    low, high between which the answer about these people lies, with the confidence that was asked for; of
              quantiles only if they were asked for with interval="values"
    low_percentile, high_percentile
              of quantiles, min and max: the percentiles of these people between which it lies
    unit      of the error
    few       of groups: whether they have too few people to tell

A number that is not known, such as the error of a single coefficient, is None.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from accord.errors import AccordError
from accord.planning import Plan
from accord.release.derived import Derived, FromAnswers
from accord.release.result import Release
from accord.statistics import Algorithm, Coefficients, Ends, Grouped

Row: TypeAlias = dict[str, Any]
PERCENTILES = "percentile points"
OWN_NAMES = (
    "question",
    "cell",
    "p",
    "term",
    "value",
    "rmse",
    "low",
    "high",
    "low_percentile",
    "high_percentile",
    "unit",
    "few",
)
"""In the order of a data frame's columns. The columns of groups follow the question."""
_OF_A_KIND = ("cell", "p", "term", "low_percentile", "high_percentile", "few")
"""Columns that a data frame has only where some row has them."""


def tidy(release: Release, confidence: float = 0.95) -> list[Row]:
    """All that a release says, a row for each number."""
    if release.plan.is_workload:
        return [row for part in release.parts for row in tidy(part, confidence)]
    return list(_rows(release, confidence))


def group_column(by: str) -> str:
    """What the column of the groups' keys is called: as in the table, unless that is a name of ours."""
    return f"{by} (group)" if by in OWN_NAMES else by


def _pandas() -> Any:
    try:
        import pandas as pd
    except ModuleNotFoundError:
        raise AccordError(
            "to_pandas needs pandas, which is not installed. Install pandas, "
            "or take receipt(), which is plain data."
        ) from None
    return pd


def to_frame(release: Release, confidence: float) -> Any:
    """The rows as a data frame."""
    pd, rows = _pandas(), tidy(release, confidence)
    present = {name for row in rows for name in row}
    groups = [name for row in rows for name in row if name not in OWN_NAMES]
    own = [name for name in OWN_NAMES if name in present or name not in _OF_A_KIND]
    frame = pd.DataFrame(rows, columns=list(dict.fromkeys(["question", *groups, *own])))
    unknown = [name for name in own if frame[name].isna().all()]
    frame = frame.astype(dict.fromkeys(unknown, float))  # numbers, of which none is known
    frame.attrs |= {"time": str(release.parts[0].time), "repeated": release.repeated is not None}
    if suppressed := sum(part.suppressed for part in release.parts):
        frame.attrs["suppressed"] = suppressed
    return frame


def derived_row(derived: FromAnswers, confidence: float) -> Row:
    """What is told of a number that is derived from answers."""
    low, high = derived.interval(confidence)
    return {
        "formula": derived.formula({number: number.label for number in derived.numbers}),
        "value": derived.value,
        "rmse_here": derived.rmse_here if isinstance(derived, Derived) else None,
        "low": low,
        "high": high,
    }


def derived_frame(derived: FromAnswers, confidence: float) -> Any:
    """The same as a data frame of one row."""
    frame = _pandas().DataFrame([derived_row(derived, confidence)])
    return frame.astype({"rmse_here": float})


def _rows(release: Release, confidence: float) -> Iterator[Row]:
    plan = release.plan
    head: Row = {"question": plan.query.label}
    groups = plan.query.part if isinstance(plan.query, Grouped) and plan.query.part.by else None
    if isinstance(plan.query, Algorithm):
        yield {**head, **_number(plan, release.value, None, None)}
    elif plan.is_grouped and groups is None:  # of a condition alone: one answer, or nobody is there
        (only,) = release.by_part.values()
        if only is None:
            yield {**head, **_number(plan, None, None, None)}
        else:
            yield from ({**row, **head} for row in _rows(only, confidence))
    elif groups is None:
        intervals = release.interval(confidence), release.interval_in_values(confidence)
        for row in _answer(plan, release.value, release.rmse, *intervals):
            yield {**head, **row}
    else:
        ends, in_values = release.interval(confidence), release.interval_in_values(confidence)
        answers = release.value
        assert isinstance(answers, list)
        for answer in answers:
            key = groups.group_of(answer)
            names = {group_column(by): answer[by] for by in groups.by}
            part = release.by_part.get(key)
            planned = plan if part is None else part.plan
            for row in _answer(planned, answer["value"], answer["rmse"], ends[key], in_values[key]):
                yield {**head, **names, **row, "few": answer["few"]}


def _answer(plan: Plan, value: Any, rmse: float | None, interval: Any, in_values: Any) -> Iterator[Row]:
    """A row for each number of one answer."""
    if isinstance(value, Coefficients):
        for term, coefficient in (("intercept", value.intercept), *value.coefficients.items()):
            yield {"term": term, **_number(plan, coefficient, None, None)}
    elif isinstance(value, dict):
        for cell, people in value.items():
            yield {"cell": cell, **_number(plan, people, rmse, interval[cell])}
    elif isinstance(value, list):
        between = in_values or [None] * len(value)
        for p, point, ends, values in zip(plan.query.describe()["p"], value, interval, between, strict=True):
            yield {"p": float(p), **_number(plan, point, rmse, ends, values)}
    else:
        described = {} if value is None else plan.query.describe()
        p = {"p": float(described["p"])} if "p" in described else {}
        yield {**p, **_number(plan, value, rmse, interval, in_values)}


def _number(
    plan: Plan, value: Any, rmse: float | None, ends: Ends | None, in_values: tuple[Any, Any] | None = None
) -> Row:
    """`in_values`: the interval of a quantile, whose `ends` are percentiles."""
    nothing = (None, None)
    low, high = ends or nothing
    row: Row = {"value": value, "rmse": rmse, "low": low, "high": high}
    if plan.unit == PERCENTILES:
        row |= dict(zip(("low", "high"), in_values or nothing, strict=True))
        row |= {"low_percentile": low, "high_percentile": high}
    return {**row, "unit": plan.unit}
