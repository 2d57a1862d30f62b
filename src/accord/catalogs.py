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
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from accord import relation
from accord.catalog_tables import NUMBERS_OF_PEOPLE, TABLE, people_of, read_table, refuse_column
from accord.errors import AccordError, SourceError, did_you_mean
from accord.people.description import Description
from accord.people.opening import table
from accord.people.own_files import OWN, files_of
from accord.people.table import Table
from accord.server.settings import SERVICE, read_settings
from accord.toml_files import (
    TEXT,
    VERSION,
    Field,
    Section,
    TomlFile,
    json_schema,
    table_of,
)

FILE = "accord.toml"
_HOW = "A first one is written by 'accord init SOURCE'."
IS_NAME = re.compile(r"[A-Za-z0-9_-]+")
"""What a table may be called: names are told from files by it."""
CATALOG = (
    Field("schema", VERSION, "The version of this format", is_required=True),
    Field("ledger", TEXT, "Where budgets are kept: a file, or postgresql://…; every release is booked there"),
    Field(
        "tables",
        table_of("tables", {"type": "object", "additionalProperties": json_schema("table", TABLE)}),
        "The tables by their names",
        is_required=True,
    ),
    Field("service", table_of("the service", json_schema("service", SERVICE)), "How 'accord serve' is run"),
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
        self.label, self.folder = file.label, file.folder
        """The file's name in messages, and where it lies."""
        top = file.top.read(CATALOG)
        self.ledger = self._place(top.get("ledger"))
        """Where budgets are kept, unless a table says otherwise; None: nowhere."""
        for name in top["tables"]:
            if not IS_NAME.fullmatch(name) or not isinstance(top["tables"][name], dict):
                file.refuse(
                    ("tables", name),
                    f"tables.{name} is no table with a name of letters, digits, - or _: [tables.people].",
                )
        self.settings = read_settings(Section(file, ("service",), top.get("service", {})))
        """Of the service."""
        self._sections = {name: file.top.section("tables", name) for name in top["tables"]}
        for section in self._sections.values():
            self._refuse_keys_of_tables(section)
        self._columns = {name: read_table(section) for name, section in self._sections.items()}
        keys = [
            (name, column, of.keys) for name, each in self._columns.items() for column, of in each.items()
        ]
        self.digest = sha256(f"{file.text}\n{keys!r}".encode()).hexdigest()
        """Of the file's text, and of the lists of keys that it names."""
        for name, section in self._sections.items():
            is_private = section.values.get("levels") == "private"
            if self.ledger_of(name) is not None and "user" not in section.values and not is_private:
                section.refuse(None, 'a ledger knows people by their ids. Add user = "…", the column of ids.')
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
            refuse_column(section, opened, column, declared)
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

    @property
    def folders(self) -> set[str]:
        """Where the files lie that tables and their registers are read from."""
        named = [section.values["source"] for section in self._sections.values()]
        named += [section.values.get("consent", {}).get("source", []) for section in self._sections.values()]
        places = [self._place(source) for source in named]
        paths = [path for place in places for path in (place if isinstance(place, list) else [place])]
        found = (glob_root(Path(path).absolute()) for path in paths if "://" not in path)
        return {str(root) for root in found}

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

    def _refuse_keys_of_tables(self, section: Section) -> None:
        """Refuse a list of keys that is a table's own file: it would tell everybody who is there."""
        columns = section.values.get("columns")
        for column, said in columns.items() if isinstance(columns, dict) else ():
            keys = said.get("keys") if isinstance(said, dict) else None
            if isinstance(keys, str) and Path(self._place(keys)).resolve() in self._files:
                section.section("columns", column).refuse("keys", OWN.format(keys))

    @cached_property
    def _files(self) -> set[Path]:
        """The files that tables and their registers are read from."""
        described = [section.values for section in self._sections.values()]
        named = [x for each in described for x in (each.get("source"), each.get("consent"))]
        sources = [x.get("source") if isinstance(x, dict) else x for x in named]
        places = [x for source in sources for x in (source if isinstance(source, list) else [source])]
        return files_of([self._place(place) for place in places if isinstance(place, str)])

    def _options(self, described: Mapping[str, Any]) -> dict[str, Any]:
        """How a table is opened."""
        names = ("epsilon", "tiers", "default", "user", "neighbors", "levels", "csv")
        options = {name: described[name] for name in names if name in described}
        options |= {name: people_of(described, name) for name in NUMBERS_OF_PEOPLE if name in described}
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
        return source if source is None or "://" in source else str(self.folder / source)


def glob_root(path: Path) -> Path:
    """The folder below which all files are that a path or a pattern names."""
    while any(letter in str(path) for letter in "*?["):
        path = path.parent
    return (path if path.is_dir() else path.parent).resolve()


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
