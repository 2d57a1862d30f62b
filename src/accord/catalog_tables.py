"""What accord.toml may say of one table and of its columns, and what of it is contradictory or not there.

All that can be told without the table is checked when the file is read: `read_table`. The rest is checked
against the table's own columns when it is opened: `refuse_column`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from accord import relation, statistics
from accord.budget import read_number
from accord.engines import CSV
from accord.errors import SpecError, did_you_mean
from accord.spec import Spec
from accord.statistics.declared import Declared
from accord.statistics.keys import read_keys
from accord.toml_files import (
    ENDS,
    KEYS,
    MOMENT,
    NUMBER,
    NUMBERS_BY_NAME,
    TEXT,
    TEXT_OR_NUMBER,
    TEXTS,
    TRUE_OR_NUMBERS,
    VALUE,
    Field,
    Section,
    json_schema,
    one_of,
    placed,
    table_of,
)

if TYPE_CHECKING:
    from accord.people.table import Table

NUMBERS_OF_PEOPLE = ("roster", "expected")
"""Keys of a table that say how many people of each tier or level there are."""
_KINDS = ("number", "text", "boolean", "date", "timestamp")
_CSV = table_of(
    f"how CSV files are read: {', '.join(field.name for field in fields(CSV))}",
    {
        "type": "object",
        "properties": {field.name: {} for field in fields(CSV)},
        "additionalProperties": False,
    },
)

COLUMN = (
    Field("about", TEXT, "A sentence that says what it is"),
    Field("kind", one_of(*_KINDS), "What it holds"),
    Field("bounds", ENDS, "Public bounds of a value, never taken from the data"),
    Field("total", ENDS, "Public bounds of the sum of a person's rows, where they may have several"),
    Field("step", TEXT_OR_NUMBER, "The values' own resolution, such as 1, or '1 day'"),
    Field("rounded", TRUE_OR_NUMBERS, "Whether people round such values, publicly known, or to which steps"),
    Field("std", NUMBER, "A publicly known upper bound of the standard deviation"),
    Field("gap", NUMBER, "How far the means of any two levels may lie apart, publicly known: of means"),
    Field("missing", VALUE, "'none' if it is publicly known that no value is missing; or what one counts as"),
    Field("keys", KEYS, "Its groups or categories, from public knowledge: a list, or a file of one"),
)
CONSENT = (
    Field("source", TEXTS, "The register of who chose which level", is_required=True),
    Field("user", TEXT, "Its column of people, if it is not called as the table's"),
    Field("valid_from", TEXT, "Its column of dates from which an entry is valid"),
    Field("as_of", MOMENT, "The moment at which entries count; now if it is left out"),
    Field("csv", _CSV, "How it is read, if it is a CSV file that is not plain"),
)
TABLE = (
    Field("source", TEXTS, "A path, a pattern, a folder, a list of these, or a URL", is_required=True),
    Field("about", TEXT, "A sentence that says what it is"),
    Field(
        "epsilon",
        TEXT_OR_NUMBER,
        "The column of levels or tiers; a number: everyone's level",
        is_required=True,
    ),
    Field("tiers", NUMBERS_BY_NAME, "The level of each tier; 0 for opted out, inf for public"),
    Field("default", TEXT_OR_NUMBER, "The tier or level of people who have none"),
    Field("user", TEXT, "The column that says who a row is of, if people may have several"),
    Field(
        "neighbors",
        one_of(*(r.name for r in relation.ALL if r.levels_are_public)),
        "What is private: a value, or who is in the table",
    ),
    Field("roster", NUMBERS_BY_NAME, "With add-remove: how many people of each tier or level there could be"),
    Field("levels", one_of("public", "private"), "Whether everyone may know who chose which level"),
    Field("expected", NUMBERS_BY_NAME, "With private levels: for how many people of each to plan"),
    Field("csv", _CSV, "How CSV files are read where they are not plain"),
    Field("consent", table_of("a consent register", json_schema("consent", CONSENT)), "A register of levels"),
    Field("ledger", TEXT, "Where budgets are kept, if not where those of the other tables are"),
    Field(
        "columns",
        table_of("columns", {"type": "object", "additionalProperties": json_schema("column", COLUMN)}),
        "What is publicly known of each column",
    ),
)


def read_table(section: Section) -> dict[str, Declared]:
    """What is declared of a table's columns; all that can be told without the table is checked."""
    described = section.read(TABLE)
    if "consent" in described:
        section.section("consent").read(CONSENT)
        if "user" not in described:
            section.refuse("consent", 'a consent register is joined by who a row is of. Add user = "…".')
        if "roster" in described:
            section.refuse("roster", "the consent register is the roster. Leave one of them out.")
    tiers = described.get("tiers")
    if tiers is not None and isinstance(default := described.get("default"), str) and default not in tiers:
        section.refuse("default", f"there is no tier {default!r}: {did_you_mean(default, tiers)}")
    for name in NUMBERS_OF_PEOPLE:
        if name in described:
            with section.at(name):
                people_of(described, name)
    columns = described.get("columns", {})
    for name in columns:
        if not isinstance(columns[name], dict):
            section.refuse("columns", f"columns.{name} is not a table. Write [{_dotted(section, name)}].")
    return {name: _read_column(section.section("columns", name), name) for name in columns}


def _dotted(section: Section, column: str) -> str:
    return ".".join((*map(str, section.path), "columns", column))


def _read_column(section: Section, name: str) -> Declared:
    """What is declared of a column, without contradictions."""
    given = section.read(COLUMN)
    kind, bounds, total = given.get("kind"), given.get("bounds"), given.get("total")
    if bounds is not None:
        asked = statistics.mean if kind in (None, "number") and not _has_moments(bounds) else statistics.min
        with section.at("bounds"):
            asked(name, bounds)
        for key in ("step", "std", "missing", "gap"):
            is_of_means = key in ("std", "gap") and asked is statistics.min
            if key in given and given[key] != "none" and not is_of_means:
                with section.at(key):
                    asked(name, bounds, **{key: given[key]})
        if "rounded" in given:
            with section.at("rounded"):
                statistics.min(name, bounds, given.get("step"), rounded=given["rounded"])
        if kind is not None and kind not in _kinds_of(bounds):
            section.refuse(
                "bounds", f"bounds of {_kinds_of(bounds)[0]}s are declared of a column of kind {kind!r}."
            )
    else:
        for key in ("step", "std", "rounded", "total", "gap"):
            if key in given:
                section.refuse(
                    key, f"{key} is about values between bounds. Declare bounds = [low, high] as well."
                )
        if given.get("missing", "none") != "none":
            section.refuse("missing", "without bounds, missing can only be 'none'. Declare bounds as well.")
    if total is not None:
        with section.at("total"):
            statistics.sum(name, total)
    keys = None
    if "keys" in given:
        with section.at("keys"):
            keys = read_keys(placed(given["keys"], section.file.folder), name, kind=kind)
        if kind is not None and not _are_of(kind, keys):
            section.refuse("keys", f"keys of another kind are declared of a column of kind {kind!r}.")
    return Declared(
        kind,
        None if bounds is None else (bounds[0], bounds[1]),
        None if total is None else (total[0], total[1]),
        given.get("step"),
        given.get("std"),
        given.get("missing"),
        keys,
        given.get("about", ""),
        given.get("rounded"),
        given.get("gap"),
    )


def _has_moments(bounds: list[Any]) -> bool:
    return not all(isinstance(end, (int, float)) for end in bounds)


def _kinds_of(bounds: list[Any]) -> tuple[str, ...]:
    """What a column may hold whose values lie between such bounds."""
    return ("date", "timestamp") if _has_moments(bounds) else ("number",)


def _are_of(kind: str, keys: tuple[Any, ...]) -> bool:
    types: dict[str, type | tuple[type, ...]] = {"number": (int, float), "boolean": bool}
    wanted = types.get(kind, str)
    return all(isinstance(key, wanted) and (kind == "boolean") == isinstance(key, bool) for key in keys)


def people_of(described: Mapping[str, Any], name: str) -> Spec:
    """How many could be in a table, or are expected, by tier or level."""
    counts, tiers = described[name], described.get("tiers")
    if tiers is not None:
        return Spec.from_groups(counts, tiers)
    try:
        return Spec.from_groups({read_number(level): count for level, count in counts.items()})
    except ValueError as fault:
        if isinstance(fault, SpecError):
            raise
    raise SpecError(f'without tiers, {name} is by level, such as {{ "0.1" = 500, "1" = 300 }}.')


def refuse_column(section: Section, opened: Table, column: str, declared: Declared) -> None:
    """Refuse a description of a column that is not there, or of another kind than it has."""
    place = section.section("columns", column)
    if column not in opened.columns:
        place.refuse(None, f"there is no column {column!r}: {did_you_mean(column, opened.columns)}")
    if column == opened.level_column and declared != Declared(about=declared.about):
        place.refuse(None, f"{column!r} holds the levels, about which nothing is asked. Leave it out.")
    kind = opened.columns[column]
    if declared.kind is not None and kind in _KINDS and declared.kind != kind:
        place.refuse("kind", f"the column holds {kind}s, not {declared.kind}s. Correct the kind.")
