"""From words on a command line to questions and tables."""

from __future__ import annotations

from contextlib import suppress
from datetime import date, datetime
from typing import Any

import click

import accord
from accord.budget import read_number
from accord.errors import SpecError


def question(people: accord.Table, given: dict[str, Any]) -> accord.Query:
    statistic, column = given["statistic"], given["column"]
    uses = {
        "count": set(),
        "rows": {"most"},
        "histogram": {"column", "edges", "categories", "missing"},
        "mean": {"column", "bounds", "std", "step", "missing"},
        "sum": {"column", "bounds", "std", "step", "missing"},
        "quantile": {"column", "bounds", "step", "missing", "p"},
        "regression": {"column", "bounds", "on"},
    }.get(statistic, {"column", "bounds", "step", "missing"})
    for name in ("column", "edges", "categories", "bounds", "std", "step", "missing", "p", "on", "most"):
        if given[name] is not None and name not in uses:
            shown = {"column": "COLUMN", "most": "--max"}.get(name, f"--{name}")
            raise click.UsageError(f"{shown} has no meaning for {statistic}.")
    if "column" in uses and column is None:
        raise click.UsageError(f"{statistic} needs a COLUMN: SOURCE {statistic} COLUMN …")
    part = {
        "where": given["where"],
        "by": given["by"],
        "keys": _categories(people, given["by"] or "", given["keys"]),
        "membership": given["membership"],
    }
    if statistic == "count":
        return accord.count(**part)
    if statistic == "rows":
        if given["most"] is None:
            raise click.UsageError("rows needs --max, the most that one person counts for.")
        return accord.rows(given["most"], **part)
    if statistic == "histogram":
        return accord.histogram(
            column,
            edges=_numbers(given["edges"]),
            categories=_categories(people, column, given["categories"]),
            missing=None if given["missing"] is None else _category(people, column, given["missing"]),
            **part,
        )
    if given["bounds"] is None:
        raise click.UsageError(f"{statistic} needs --bounds LO HI, from public knowledge, never from the data.")
    bounds = tuple(_moment(end) for end in given["bounds"])
    if statistic == "regression":
        return _regression(people, column, bounds, given["on"], part)
    missing = "middle" if given["missing"] is None else _moment(given["missing"])
    how = {"step": given["step"], "missing": missing, **part}
    match statistic:
        case "mean" | "sum":
            return (accord.mean if statistic == "mean" else accord.sum)(column, bounds, std=given["std"], **how)
        case "quantile":
            if given["p"] is None:
                raise click.UsageError("quantile needs --p, such as --p 0.9 or --p 0.1,0.5,0.9.")
            ps = _numbers(given["p"]) or []
            return accord.quantile(column, ps if len(ps) > 1 else ps[0], bounds, **how)
        case _:
            ask = {"median": accord.median, "min": accord.min, "max": accord.max}[statistic]
            return ask(column, bounds, **how)


def table_of(given: dict[str, Any]) -> accord.Table:
    """The table that the options of levels and people describe."""
    tiers = read_tiers(given["tiers"])
    default = given["default"] if tiers and given["default"] in tiers else as_number(given["default"])
    return accord.table(given["source"], epsilon=given["epsilon"], tiers=tiers, default=default, user=given["user"])


def _regression(people: accord.Table, target: str, bounds: Any, on: str | None, part: dict[str, Any]) -> accord.Query:
    if on is None:
        raise click.UsageError("regression needs --on with its features, such as --on 'age=18..100,sex=f|m'.")
    ends: dict[str, Any] = {target: bounds}
    declared: dict[str, list[Any]] = {}
    for piece in on.split(","):
        name, _, what = (text.strip() for text in piece.partition("="))
        if name in ends or name in declared:
            raise click.UsageError(f"--on names {name!r} twice, or it is the target. Name each feature once.")
        low, dots, high = what.partition("..")
        if dots:
            ends[name] = (as_number(low), as_number(high))
        elif "|" in what:
            declared[name] = [_category(people, name, value.strip()) for value in what.split("|")]
        else:
            raise click.UsageError(
                f"--on has {piece!r}. Every feature needs its public bounds or categories: age=18..100, or sex=f|m."
            )
    features = [*(n for n in ends if n != target), *declared]
    return accord.regression(target, features, bounds=ends, categories=declared, **part)


def _moment(text: str) -> Any:
    """A number, a date or a timestamp, if it reads as one; else the text."""
    number = as_number(text)
    if not isinstance(number, str):
        return number
    with suppress(ValueError):
        return date.fromisoformat(text)
    with suppress(ValueError):
        return datetime.fromisoformat(text)
    return text


def read_tiers(text: str | None) -> dict[str, float] | None:
    if text is None:
        return None
    tiers: dict[str, float] = {}
    for part in text.split(","):
        name, _, level = part.rpartition("=")
        number = as_number(level)
        if not name or not isinstance(number, float):
            raise SpecError(f"--tiers has {part!r}, which is not NAME=ε. Write strict=0.1,standard=1,public=inf.")
        if name.strip() in tiers:
            raise SpecError(f"tier {name.strip()!r} is declared twice. Give each tier one level.")
        tiers[name.strip()] = number
    return tiers


def as_number(text: str | None) -> Any:
    """A number if it reads as one, else the text."""
    try:
        return None if text is None else read_number(text)
    except ValueError:
        return text


def _numbers(text: str | None) -> list[Any] | None:
    return None if text is None else [as_number(part) for part in text.split(",")]


def _categories(people: accord.Table, column: str, text: str | None) -> list[Any] | None:
    return None if text is None else [_category(people, column, part.strip()) for part in text.split(",")]


def _category(people: accord.Table, column: str, text: str) -> Any:
    """A category as the column's kind has it; else the text."""
    number = as_number(text)
    match people.columns.get(column):
        case "number" if isinstance(number, float):
            return int(number) if number.is_integer() else number
        case "boolean" if text.lower() in ("true", "false"):
            return text.lower() == "true"
        case _:
            return text
