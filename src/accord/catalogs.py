"""Catalog: tables that are described once, in accord.toml, with what is publicly known of them.

    schema = 1
    ledger = "accord.db"

    [tables.people]
    source = "people.parquet"
    epsilon = "tier"
    tiers = { strict = 0.1, standard = 1, public = inf }

    [tables.people.columns.stay]
    bounds = [0, 60]

Files are looked for beside accord.toml. All of the file is checked when it is read, and the rest against the
table's columns when a table is opened: before any value is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from accord import relation, statistics
from accord.budget import read_number
from accord.engines import CSV
from accord.errors import AccordError, SourceError, SpecError, did_you_mean
from accord.people.description import Description
from accord.people.opening import table
from accord.people.reader import PRIVATE_LEVELS_IN_LEDGER
from accord.people.table import Table
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
    VERSION,
    Field,
    Section,
    TomlFile,
    json_schema,
    one_of,
    placed,
    table_of,
)

FILE = "accord.toml"
_HOW = "A first one is written by 'accord init SOURCE'."
IS_NAME = re.compile(r"[A-Za-z0-9_-]+")
"""What a table may be called: names are told from files by it."""
_NUMBERS_OF_PEOPLE = ("roster", "expected")
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
CATALOG = (
    Field("schema", VERSION, "The version of this format", is_required=True),
    Field("ledger", TEXT, "Where budgets are kept: a file, or postgresql://…; every release is booked there"),
    Field(
        "tables",
        table_of("tables", {"type": "object", "additionalProperties": json_schema("table", TABLE)}),
        "The tables by their names",
        is_required=True,
    ),
)


def catalog(path: str | Path = FILE) -> Catalog:
    """Read a file in which tables are described once.

    Args:
        path: the file, called accord.toml by custom.

    Raises:
        SourceError: something in it cannot be used. The message says on which line.

    >>> import tempfile, accord
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = Path(folder.name, "accord.toml")
    >>> _ = Path(folder.name, "people.csv").write_text("stay,level\\n3,0.5\\n8,1\\n")
    >>> _ = file.write_text('''schema = 1
    ... [tables.people]
    ... source = "people.csv"
    ... epsilon = "level"
    ... [tables.people.columns.stay]
    ... bounds = [0, 60]
    ... ''')
    >>> people = catalog(file)["people"]
    >>> people.plan(accord.mean("stay")).query.label
    'mean of stay'
    >>> folder.cleanup()
    """
    return Catalog(path)


class Catalog:
    """Tables by their names, as a file describes them. Made by `accord.catalog`."""

    def __init__(self, path: str | Path) -> None:
        file = TomlFile(path, SourceError, _HOW)
        self.label, self._folder = file.label, file.path.resolve().parent
        """The file's name in messages."""
        top = file.top.read(CATALOG)
        self.ledger = self._place(top.get("ledger"))
        """Where budgets are kept, unless a table says otherwise; None: nowhere."""
        for name in top["tables"]:
            if not IS_NAME.fullmatch(name) or not isinstance(top["tables"][name], dict):
                file.refuse(
                    ("tables", name),
                    f"tables.{name} is no table with a name of letters, digits, - or _: [tables.people].",
                )
        self._sections = {name: file.top.section("tables", name) for name in top["tables"]}
        self._columns = {name: _read_table(section) for name, section in self._sections.items()}
        for name, section in self._sections.items():
            if self.ledger_of(name) is not None and "user" not in section.values:
                section.refuse(None, 'a ledger knows people by their ids. Add user = "…", the column of ids.')
            if self.ledger_of(name) is not None and section.values.get("levels") == "private":
                section.refuse("levels", PRIVATE_LEVELS_IN_LEDGER)
            under = relation.named(section.values.get("neighbors", relation.REPLACE.name))
            if self.ledger_of(name) is not None and not under.people_are_public:
                section.refuse(
                    "neighbors",
                    f"a ledger must know who is in a table, and with {under.name} that is private.",
                )

    def __getitem__(self, name: str) -> Table:
        """Open a table.

        Raises:
            SourceError: there is none of this name, or what is described is not there.
        """
        section = self._section(name)
        described = section.values
        try:
            opened = table(self._place(described["source"]), **self._options(described))
        except AccordError as fault:
            message = str(fault)
        else:
            message = ""
        if message:
            section.refuse(_key_of(message, described), message)
        for column, declared in self._columns[name].items():
            _refuse_column(section, opened, column, declared)
        columns, ledger = self._columns[name], self.ledger_of(name)
        opened.description = Description(name, self.label, self.about(name), columns, ledger)
        return opened

    def described_as(self, source: str) -> str | None:
        """The name of the table that is described with this file as its source; None: there is none."""
        if "://" in source:
            return None
        path = str(Path(source).resolve())
        places = {name: self._place(section.values["source"]) for name, section in self._sections.items()}
        return next((name for name, place in places.items() if path in (place, *_resolved(place))), None)

    def about(self, name: str) -> str:
        """What a table is, in a sentence; empty: it does not say."""
        sentence: str = self._section(name).values.get("about", "")
        return sentence

    def ledger_of(self, name: str) -> str | None:
        """Where the budgets of a table are kept; None: nowhere."""
        own: str | None = self._place(self._section(name).values.get("ledger"))
        return own or self.ledger

    def __iter__(self) -> Iterator[str]:
        return iter(self._sections)

    def __len__(self) -> int:
        return len(self._sections)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._sections

    def __repr__(self) -> str:
        return f"<Catalog {self.label}: {', '.join(self._sections) or 'no tables'}>"

    def _section(self, name: str) -> Section:
        if not isinstance(name, str) or name not in self._sections:
            raise SourceError(
                f"{self.label} describes no table {name!r}: {did_you_mean(name, self._sections)}"
            )
        return self._sections[name]

    def _options(self, described: Mapping[str, Any]) -> dict[str, Any]:
        """How a table is opened."""
        names = ("epsilon", "tiers", "default", "user", "neighbors", "levels", "csv")
        options = {name: described[name] for name in names if name in described}
        options |= {name: _people_of(described, name) for name in _NUMBERS_OF_PEOPLE if name in described}
        if consent := described.get("consent"):
            options["consent"] = self._place(consent["source"])
            renamed = {
                "user": "consent_user",
                "csv": "consent_csv",
                "valid_from": "valid_from",
                "as_of": "as_of",
            }
            options |= {renamed[name]: consent[name] for name in renamed if name in consent}
        return options

    def _place(self, source: Any) -> Any:
        """A file as it is found from any folder; a URL as it is."""
        if isinstance(source, list):
            return [self._place(each) for each in source]
        return source if source is None or "://" in source else str(self._folder / source)


def _resolved(place: Any) -> list[str]:
    places = place if isinstance(place, list) else [place]
    return [str(Path(each).resolve()) for each in places if "://" not in each]


def _key_of(message: str, described: Mapping[str, Any]) -> str:
    """The key that a refusal to open a table is about, as far as can be told."""
    if message.startswith("csv has"):
        return "csv"
    for key in ("user", "epsilon"):
        if key in described and message.startswith(f"there is no column {described[key]!r}"):
            return key
    if "consent" in described and ("consent" in message or described["consent"]["source"] in message):
        return "consent"
    return (
        "tiers"
        if message.startswith(("tier ", "the level of tier", "tiers")) and "tiers" in described
        else "source"
    )


def _read_table(section: Section) -> dict[str, Declared]:
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
    for name in _NUMBERS_OF_PEOPLE:
        if name in described:
            with section.at(name):
                _people_of(described, name)
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
            keys = read_keys(placed(given["keys"], section.file), name, kind=kind)
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


def _people_of(described: Mapping[str, Any], name: str) -> Spec:
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


def _refuse_column(section: Section, opened: Table, column: str, declared: Declared) -> None:
    """Refuse a description of a column that is not there, or of another kind than it has."""
    place = section.section("columns", column)
    if column not in opened.columns:
        place.refuse(None, f"there is no column {column!r}: {did_you_mean(column, opened.columns)}")
    if column == opened.level_column and declared != Declared(about=declared.about):
        place.refuse(None, f"{column!r} holds the levels, about which nothing is asked. Leave it out.")
    kind = opened.columns[column]
    if declared.kind is not None and kind in _KINDS and declared.kind != kind:
        place.refuse("kind", f"the column holds {kind}s, not {declared.kind}s. Correct the kind.")
