"""From the options of a command to the table and the question that they describe."""

from __future__ import annotations

import os
from inspect import signature
from pathlib import Path
from typing import Any

import click

import accord
from accord.budget import read_number
from accord.catalogs import FILE, IS_NAME
from accord.cli.group import DESCRIBED
from accord.cli.options import DECIMAL, OF_TABLES, OWN_OPTIONS
from accord.engines.engine import Columns
from accord.errors import SpecError
from accord.key_files import as_kind, read_key_file
from accord.spec import Spec
from accord.statistics import ALL, Statistic

_SPELLED = {"column": "COLUMN", "other": "OTHER", "per_person": "--per-person"}
"""What is not written as --name."""
_NEEDED = {
    "column": "{0} needs a COLUMN: … {0} COLUMN …",
    "other": "{0} needs two columns: … {0} COLUMN OTHER …",
    "condition": "{0} needs a CONDITION: … {0} 'age >= 65' …",
    "bounds": "{} needs --bounds LO HI, from public knowledge, never from the data.",
    "on": "{} needs --on with its features, such as --on 'age=18..100,sex=f|m'.",
    "p": "{} needs --p, such as --p 0.9 or --p 0.1,0.5,0.9.",
    **{option.name: option.needed for option in OWN_OPTIONS if option.needed},
}
"""What a statistic that takes an option cannot do without, and what is said then."""
_SHARED = (
    *("column", "other", "edges", "categories", "bounds", "std", "step", "missing", "p", "interval", "on"),
    *("per_person", "rounded"),
)
"""What several statistics take, or what takes more to read than its own text."""
_PLACES = ("condition", "column", "other")
"""What has no name, and follows the statistic."""
_OPTIONS = (*_SHARED, *(option.name for option in OWN_OPTIONS))


def question_about(people: accord.Table, options: dict[str, Any]) -> accord.Query:
    """The question that the options ask of a table, which may declare what they leave out."""
    refuse_own_keys(people, options["keys"])
    if people.description is None:
        return question(people.columns, options)
    kinds: dict[str, Any] = dict(people.columns)
    for name, declared in people.description.columns.items():
        if declared.kind is not None and kinds[name] == "untyped":
            kinds[name] = declared.kind
    asked: accord.Query = people.described(question(kinds, options, is_described=True))
    return asked


def question(columns: Columns, options: dict[str, Any], is_described: bool = False) -> accord.Query:
    """The question that the options ask, of a statistic that says which of them it takes.

    `columns`: the kinds of the table's columns, as far as they are known; `is_described`: whether the table
    may declare what is left out.
    """
    statistic = next(s for s in ALL if s.name == options["statistic"])
    named, by = options["column"], options["by"]
    texts = {name: options[name] for name in _OPTIONS if name not in _PLACES}
    texts |= _named(statistic, named)
    texts["bounds"] = _bounds(statistic, options["bounds"])
    for name, text in texts.items():
        if text is not None and name not in statistic.options:
            raise click.UsageError(f"{_SPELLED.get(name, f'--{name}')} has no meaning for {statistic.name}.")
    for name, needed in _NEEDED.items():
        is_needed = name in statistic.options and not (is_described and name == "bounds")
        if is_needed and texts.get(name) is None:
            raise click.UsageError(needed.format(statistic.name))
    if statistic.is_by_columns:
        if by:
            raise click.UsageError(f"{statistic.name} is by the COLUMNs that it names. Leave --by out.")
        own = {option.name: texts[option.name] for option in statistic.own_options}
        return statistic.ask(*named, **own, **_taken(statistic, _part(columns, named, options)))
    part = {"by": (by[0] if len(by) == 1 else by) or None, **_part(columns, by, options)}
    if "on" in statistic.options:
        return _regression(columns, texts, part, is_described)
    if texts["bounds"] is not None and "other" in statistic.options:
        texts["bounds"] = dict(zip(named, texts["bounds"], strict=True))
    is_numeric = "bounds" in statistic.options
    arguments = {
        name: _argument(columns, texts.get("column") or "", name, texts[name], is_numeric)
        for name in statistic.options
        if texts[name] is not None
    }
    return statistic.ask(**arguments, **part)


def _named(statistic: Statistic, named: tuple[str, ...]) -> dict[str, str | None]:
    """What stands after the statistic: a condition, or one column, or two."""
    if "columns" in statistic.options:
        return {}
    places = [name for name in _PLACES if name in statistic.options] or ["column"]
    if len(named) > len(places):
        words = " and ".join(_SPELLED.get(name, name.upper()) for name in places)
        raise click.UsageError(f"{statistic.name} takes one {words}, and {len(named)} are named.")
    return dict(zip(places, (*named, *[None] * len(places)), strict=False))


def _part(columns: Columns, by: tuple[str, ...], options: dict[str, Any]) -> dict[str, Any]:
    """Of whom it is asked, but for the columns of groups themselves."""
    names = ("where", "membership", "at_most", "suppress", "gap", "about")
    part = {name: options[name] for name in names}
    return {**part, "keys": _keys(columns, by, options["keys"]), "rest": _rest(by, options["rest"])}


def _taken(statistic: Statistic, part: dict[str, Any]) -> dict[str, Any]:
    """What a statistic takes of it; refuses what is said all the same."""
    taken = signature(statistic.ask).parameters
    for name in part.keys() - taken.keys():
        if part[name] not in (None, "private"):
            raise click.UsageError(f"--{name} has no meaning for {statistic.name}.")
    return {name: value for name, value in part.items() if name in taken}


def _keys(columns: Columns, by: tuple[str, ...], texts: tuple[str, ...]) -> Any:
    """The keys of one column; of several, those of each that has some."""
    if not texts:
        return None
    if len(by) < 2:
        if len(texts) > 1:
            raise click.UsageError(
                "--keys is given several times, and --by once. Write all keys in one: --keys A,B."
            )
        return declared_keys(columns, "".join(by), texts[0])
    keys: dict[str, Any] = {}
    for text in texts:
        column, _, listed = text.partition("=")
        if column not in by:
            raise click.UsageError(
                f"--keys has {text!r}, which does not say of which of the columns {', '.join(by)} they are. "
                f"Write --keys {by[0]}=A,B, once for each."
            )
        if column in keys:
            raise click.UsageError(f"--keys has {column!r} twice. Write all its keys in one.")
        keys[column] = declared_keys(columns, column, listed)
    return keys


def _rest(by: tuple[str, ...], texts: tuple[str, ...]) -> Any:
    """What the rest is called of every column; or of several columns, of each that is named."""
    if len(texts) == 1 and (len(by) < 2 or texts[0].partition("=")[0] not in by):
        return texts[0]
    rest: dict[str, str] = {}
    for text in texts:
        column, _, label = text.partition("=")
        if len(by) < 2 or column not in by or column in rest:
            raise click.UsageError(
                f"--rest has {text!r} besides another. Give one name for the rest of every column, or of "
                "several columns --rest COLUMN=NAME, once for each."
            )
        rest[column] = label
    return rest or None


def _bounds(statistic: Statistic, given: tuple[Any, ...]) -> Any:
    """The ends of --bounds, which a statistic of two columns has twice; None: there are none."""
    if not given or "bounds" not in statistic.options:
        return given or None
    is_of_two = "other" in statistic.options
    if len(given) != 1 + is_of_two:
        times = "twice, for COLUMN and for OTHER" if is_of_two else "once"
        raise click.UsageError(
            f"{statistic.name} takes --bounds LO HI {times}; here it stands {len(given)} times."
        )
    return given if is_of_two else given[0]


def _argument(columns: Columns, column: str, name: str, text: Any, is_numeric: bool) -> Any:
    """What an option says, as the statistic takes it."""
    match name:
        case "bounds" if isinstance(text, dict):
            return {name: tuple(as_number(end) for end in ends) for name, ends in text.items()}
        case "bounds":
            return tuple(as_number(end) for end in text)
        case "step":
            return as_number(text)
        case "edges":
            return _numbers(text)
        case "categories":
            return _categories(columns, column, text)
        case "missing":
            return as_number(text) if is_numeric else read_categories(columns, column, [text])[0]
        case "p":
            ps = _numbers(text)
            return ps if len(ps) > 1 else ps[0]
        case "rounded":
            return text.strip() == DECIMAL or _numbers(text)
        case _:
            return text


def table_of(options: dict[str, Any]) -> accord.Table:
    """The table that accord.toml describes under this name, or the options of levels and people do."""
    if (described := _described(options)) is not None:
        return described
    if options["epsilon"] is None:
        raise click.MissingParameter(param_hint="'--epsilon'", param_type="option")
    tiers, default = read_tiers(options["tiers"]), options["default"]
    if not tiers or default not in tiers:
        default = as_number(default)
    names = ("epsilon", "user", "consent", "consent_user", "valid_from", "as_of")
    given = {name: options[name] for name in names}
    if options["expected"] is not None:
        given |= {"levels": "private", "expected": read_expected(options["expected"], tiers)}
    given |= {name: _csv(name.replace("_", "-"), options[name]) for name in ("csv", "consent_csv")}
    return accord.table(options["source"], tiers=tiers, default=default, **given)


def _described(options: dict[str, Any]) -> accord.Table | None:
    """The table that accord.toml describes; None: there is none of this name."""
    found = catalog_here()
    is_name = IS_NAME.fullmatch(options["source"]) and options["epsilon"] is None
    if found is None or (options["source"] not in found and not is_name):
        if found is not None and (name := found.described_as(options["source"])) is not None:
            click.echo(
                f"note: {found.label} describes this file as {name}. Ask for {name} to go by what it says.",
                err=True,
            )
        return None
    for name in OF_TABLES:
        if options[name]:
            raise click.UsageError(
                f"{options['source']} is described in {found.label}. Change it there, or leave "
                f"--{name.replace('_', '-')} out."
            )
    click.get_current_context().meta[DESCRIBED] = True
    return found[options["source"]]


def catalog_here() -> accord.Catalog | None:
    """The accord.toml of this folder, or the one that ACCORD_CATALOG names; None: there is none."""
    path = catalog_path()
    return accord.catalog(path) if path.exists() or os.environ.get("ACCORD_CATALOG") else None


def catalog_path() -> Path:
    """Where accord.toml is, or would be."""
    return Path(os.environ.get("ACCORD_CATALOG") or FILE)


def _csv(option: str, texts: tuple[str, ...]) -> dict[str, Any] | None:
    """What --csv KEY=VALUE says; dates and words may be given several times."""
    given: dict[str, Any] = {}
    for text in texts:
        key, is_pair, value = text.partition("=")
        if not is_pair:
            raise click.UsageError(
                f"--{option} has {text!r}, which is not KEY=VALUE. Write --{option} decimal=,"
            )
        if key in ("dates", "true", "false"):
            given.setdefault(key, []).append(value)
        elif key in given:
            raise click.UsageError(f"--{option} has {key} twice. Give it once.")
        else:
            given[key] = value
    return given or None


def _regression(
    columns: Columns, texts: dict[str, Any], part: dict[str, Any], is_described: bool
) -> accord.Query:
    target = texts["column"]
    bounds: dict[str, Any] = {}
    if texts["bounds"] is not None:
        bounds[target] = tuple(as_number(end) for end in texts["bounds"])
    categories: dict[str, list[Any]] = {}
    declared_elsewhere: list[str] = []
    for feature in texts["on"].split(","):
        name, _, declared = (text.strip() for text in feature.partition("="))
        if name == target or name in bounds or name in categories or name in declared_elsewhere:
            raise click.UsageError(f"--on names {name!r} twice, or it is the target. Name each feature once.")
        low, dots, high = declared.partition("..")
        if dots:
            bounds[name] = (as_number(low), as_number(high))
        elif "|" in declared:
            categories[name] = read_categories(columns, name, declared.split("|"))
        elif is_described and not declared:
            declared_elsewhere.append(name)
        else:
            raise click.UsageError(
                f"--on has {feature!r}. Every feature needs its public bounds or categories: "
                "age=18..100, or sex=f|m."
            )
    features = [*(name for name in bounds if name != target), *categories, *declared_elsewhere]
    missing = {} if texts["missing"] is None else {"missing": texts["missing"]}
    return accord.regression(target, features, bounds=bounds, categories=categories, **missing, **part)


def read_tiers(text: str | None) -> dict[str, float] | None:
    """{name: level}, from NAME=ε,…"""
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


def read_expected(text: str, tiers: dict[str, float] | None) -> Spec:
    """How many people of each tier, or of each level, are expected, from NAME=N,…"""
    people: dict[Any, int] = {}
    for part in text.split(","):
        name, _, count = (word.strip() for word in part.rpartition("="))
        key = name if tiers is not None else as_number(name)
        if not name or not count.isdecimal() or (tiers is None and not isinstance(key, float)):
            raise SpecError(
                f"--expected has {part!r}, which is not NAME=N. Write strict=4000,standard=9000 with "
                "--tiers, and 0.1=4000,1=9000 without."
            )
        if key in people:
            raise SpecError(f"--expected has {name!r} twice. Give each one number of people.")
        people[key] = int(count)
    return Spec.from_groups(people, tiers)


def as_number(text: str | None) -> Any:
    """A number if it reads as one, else the text."""
    try:
        return None if text is None else read_number(text)
    except ValueError:
        return text


def _numbers(text: str) -> list[Any]:
    return [as_number(part) for part in text.split(",")]


def _categories(columns: Columns, column: str, text: str | None) -> list[Any] | None:
    return None if text is None else read_categories(columns, column, text.split(","))


def refuse_own_keys(people: accord.Table, texts: tuple[str, ...]) -> None:
    """Refuse the table's own files as keys: @file, or COLUMN=@file."""
    listed = (text if text.startswith("@") else text.partition("=")[2] for text in texts)
    people.refuse_own_keys(text[1:] for text in listed if text.startswith("@"))


def declared_keys(columns: Columns, column: str, text: str) -> list[Any]:
    """The keys of a column: listed, or those in the file after an @."""
    if not text.startswith("@"):
        return read_categories(columns, column, text.split(","))
    return as_kind(read_key_file(text[1:], column), columns.get(column))


def read_categories(columns: Columns, column: str, parts: list[str]) -> list[Any]:
    """Categories as the column's kind has them; else as texts.

    In a column without a kind, as in CSV files, they are what literals of a condition are: numbers if all of
    them read as numbers, true and false, and otherwise texts, as 'in quotes' always. What begins with a zero
    is a code and no number.
    """
    return as_kind([part.strip() for part in parts], columns.get(column))
