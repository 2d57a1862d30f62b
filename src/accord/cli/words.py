"""From words on a command line to questions and tables."""

from __future__ import annotations

from contextlib import suppress
from datetime import date, datetime
from typing import Any

import click

import accord
from accord.budget import read_number
from accord.errors import SpecError
from accord.statistics import ALL

_SHOWN = {"column": "COLUMN", "max": "--max"}
_NEEDED = {
    "column": "{0} needs a COLUMN: SOURCE {0} COLUMN …",
    "max": "{} needs --max, the most that one person counts for.",
    "bounds": "{} needs --bounds LO HI, from public knowledge, never from the data.",
    "on": "{} needs --on with its features, such as --on 'age=18..100,sex=f|m'.",
    "p": "{} needs --p, such as --p 0.9 or --p 0.1,0.5,0.9.",
}
"""What a statistic that takes an option cannot do without, and what is said then."""
_OPTIONS = ("column", "edges", "categories", "bounds", "std", "step", "missing", "p", "on", "max")


def question(people: accord.Table, given: dict[str, Any]) -> accord.Query:
    """The question that the options ask, of a statistic that says which of them it takes."""
    statistic = next(s for s in ALL if s.name == given["statistic"])
    wanted = {**{name: given[name] for name in _OPTIONS if name != "max"}, "max": given["most"]}
    for name, value in wanted.items():
        if value is not None and name not in statistic.options:
            raise click.UsageError(f"{_SHOWN.get(name, f'--{name}')} has no meaning for {statistic.name}.")
    for name in sorted(set(statistic.options) & set(_NEEDED), key=list(_NEEDED).index):
        if wanted[name] is None:
            raise click.UsageError(_NEEDED[name].format(statistic.name))
    part = {
        "where": given["where"],
        "by": given["by"],
        "keys": _categories(people, given["by"] or "", given["keys"]),
        "membership": given["membership"],
    }
    if "on" in statistic.options:
        return _regression(people, wanted, part)
    read: dict[str, Any] = {
        "bounds": lambda ends: tuple(_moment(end) for end in ends),
        "edges": _numbers,
        "categories": lambda text: _categories(people, given["column"], text),
        "missing": _moment
        if "bounds" in statistic.options
        else lambda text: _category(people, given["column"], text),
        "p": lambda text: ps if len(ps := _numbers(text) or []) > 1 else ps[0],
    }
    asked = {
        name: read.get(name, lambda x: x)(wanted[name])
        for name in statistic.options
        if wanted[name] is not None
    }
    return statistic.ask(**asked, **part)


def table_of(given: dict[str, Any]) -> accord.Table:
    """The table that the options of levels and people describe."""
    tiers = read_tiers(given["tiers"])
    default = given["default"] if tiers and given["default"] in tiers else as_number(given["default"])
    return accord.table(
        given["source"], epsilon=given["epsilon"], tiers=tiers, default=default, user=given["user"]
    )


def _regression(people: accord.Table, wanted: dict[str, Any], part: dict[str, Any]) -> accord.Query:
    target = wanted["column"]
    ends: dict[str, Any] = {target: tuple(_moment(end) for end in wanted["bounds"])}
    declared: dict[str, list[Any]] = {}
    for piece in wanted["on"].split(","):
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
                f"--on has {piece!r}. Every feature needs its public bounds or categories: age=18..100, or "
                "sex=f|m."
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
            raise SpecError(
                f"--tiers has {part!r}, which is not NAME=ε. Write strict=0.1,standard=1,public=inf."
            )
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
