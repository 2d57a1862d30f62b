"""Consent: a register beside the table that says who chose which level, and since when.

A register has an entry for each choice: who, which tier or level, and from when on it is valid. Of each
person the latest entry at one moment counts (`as_of`), the strictest of several with one date. It is joined
to their rows by `user=`, inside the engine.

Privacy    The register is public as levels are, and the same in neighboring tables: what a person may change
           (their rows, or under add-remove whether they have any) does not change their level. Under replace
           who is in the table is public, so that people without an entry may be counted, and refused. Under
           add-remove the register is the roster of who could be there: how many of its people are there stays
           private, and nobody else is read.
Refused    Entries of nobody, and entries whose date cannot be read: such an entry may be the latest and the
           strictest, a withdrawal. To leave it out would lose it; to take it for always valid would overrule
           it by any older entry with a date. The register is public under both relations, so that a refusal
           tells nothing, and whoever keeps it can correct it.
Told       Errors carry numbers of people and names of tiers, never an id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from accord.budget import level_text
from accord.engines import CSV, Engine, register_sql, shapes, source_label
from accord.engines.engine import Columns
from accord.engines.sql_names import ENTRY_FAULT, ENTRY_LEVEL
from accord.errors import SourceError, SpecError, did_you_mean
from accord.people.levels import NOT_A_LEVEL, RegisteredLevels, Strictest, levels_of
from accord.spec import Spec

VALID_FROM = "valid_from"
"""The column of dates, if a register has one of this name and nobody named another."""


@dataclass(frozen=True)
class Consent:
    """A consent register, joined to the rows of a table."""

    source: str
    """The rows with everyone's level, as SQL."""
    levels: RegisteredLevels
    roster: Spec | None
    """Of all people in the register, where who is in the table is private."""
    as_of: datetime | None
    """The moment at which entries count; None: they have no dates."""
    note: str
    """What must be taken for granted, in a sentence."""
    origin: Mapping[str, str | None]
    """Which register it is, and its columns of people and of dates, without a password."""


@dataclass(frozen=True)
class Register:
    """What was said about a consent register: see `accord.table`."""

    source: Any
    valid_from: str | None
    as_of: Any
    user: str | None
    """Its column of people, if it has another name there."""
    csv: CSV | None = None
    """How it is read, if it is a CSV file."""

    def joined(
        self,
        engine: Engine,
        user: str,
        epsilon: str,
        tiers: Mapping[Any, float] | None,
        default: str | float | None,
        people_are_public: bool,
    ) -> Consent:
        """The register, joined to the rows of an opened table.

        Raises:
            SourceError: the register cannot be opened, or lacks a column.
            SpecError: entries that cannot be used.
        """
        register = engine.open_register(self.source, self.csv)
        who = user if self.user is None else self.user
        for column in (who, epsilon):
            if column not in register.columns:
                raise SourceError(
                    f"the consent register has no column {column!r}: {did_you_mean(column, register.columns)}"
                )
        dates = self._dates(register)
        moment, as_of = self._moment(register, dates)
        levels = levels_of(register.dialect, register.columns, epsilon, tiers, default)
        _refuse_faults(register, who, moment)
        by_name = _are_named(engine, user, register, who)
        entries = engine.beside(
            register,
            register_sql.current_entries(
                register.source,
                register_sql.key(register.dialect, who, register.columns, by_name),
                levels.strictness,
                _fault(levels.strictness, None if levels.tiers is None else levels.tier),
                moment,
                "" if as_of is None else register.dialect.double(_seconds(as_of)),
            ),
        )
        key = register_sql.key(engine.dialect, user, engine.columns, by_name)
        source = register_sql.with_levels(engine.source, key, entries)
        when = "" if as_of is None else f" as of {as_of}"
        read = RegisteredLevels(engine.dialect, levels.tiers, levels.default, when, not people_are_public)
        roster = None if people_are_public else _everyone(engine, entries, read)
        origin = {"source": source_label(self.source, register), "user": who, "valid_from": dates}
        return Consent(source, read, roster, as_of, _note(read, epsilon, engine.columns), origin)

    def _dates(self, register: Engine) -> str | None:
        """The column of dates, named or by its usual name; None: there is none."""
        if self.valid_from is None and VALID_FROM in register.columns:
            return VALID_FROM
        return self.valid_from

    def _moment(self, register: Engine, column: str | None) -> tuple[str | None, datetime | None]:
        """Since when an entry is valid, as SQL, and the moment that counts; nothing without dates."""
        if column is None:
            if self.as_of is not None:
                raise SourceError(
                    f"as_of= is given, and the consent register has no column {VALID_FROM!r}. "
                    "Name its column of dates: valid_from='…'. Known: "
                    f"{', '.join(map(repr, register.columns))}."
                )
            return None, None
        if column not in register.columns:
            raise SourceError(
                f"the consent register has no column {column!r}: {did_you_mean(column, register.columns)}"
            )
        kind, dialect = register.columns[column], register.dialect
        if kind not in ("date", "timestamp", "untyped") and not (
            kind == "text" and dialect.reads_dates_in_text
        ):
            raise SourceError(
                f"column {column!r} of the consent register holds no dates. "
                "Use a column of dates, or of timestamps without a time zone."
            )
        return dialect.seconds(column, "timestamp"), read_moment(self.as_of)


def read_moment(as_of: Any) -> datetime:
    """A moment from a date (its first moment), a timestamp or ISO text; None: now.

    What has a time zone, and now, is in UTC: registers have moments without one.

    >>> read_moment("2026-01-31"), read_moment("2026-01-31 12:00+01:00")
    (datetime.datetime(2026, 1, 31, 0, 0), datetime.datetime(2026, 1, 31, 11, 0))
    """
    if as_of is None:
        return datetime.now(UTC).replace(microsecond=0, tzinfo=None)
    try:
        moment = datetime.fromisoformat(as_of) if isinstance(as_of, str) else as_of
        if not isinstance(moment, datetime):
            moment = datetime.fromisoformat(moment.isoformat())
        if moment != moment:  # pandas' NaT
            raise ValueError
        return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    except (AttributeError, TypeError, ValueError, OverflowError):
        raise SpecError(
            f"as_of={as_of!r} is not a moment. Give a date or a timestamp, such as '2026-01-31' or "
            "'2026-01-31 12:00'."
        ) from None


def _seconds(moment: datetime) -> float:
    """Since 1970, as `Dialect.seconds` has them."""
    return (moment - datetime(1970, 1, 1)) / timedelta(seconds=1)


def _are_named(engine: Engine, user: str, register: Engine, who: str) -> bool:
    """Whether people are matched by their names as text, because the columns are of different types."""
    is_alike = type(engine.dialect) is type(register.dialect)
    by_name = not is_alike or engine.dialect.types[user] != register.dialect.types[who]
    for side, name in ((engine, user), (register, who)):
        is_unclear = by_name and not side.dialect.is_named_alike(name)
        if side.columns[name] not in ("number", "text", "untyped") or is_unclear:
            raise SourceError(
                f"column {name!r} cannot tell people apart. Use a column of text or whole numbers."
            )
    return by_name


def _fault(strictness: str, tier: str | None) -> str:
    """The name of a tier that is not declared, as SQL; NULL: there is none."""
    if tier is None:
        return "NULLIF('', '')"
    return f"CASE WHEN {strictness} = {NOT_A_LEVEL} THEN {tier} END"


def _refuse_faults(register: Engine, who: str, moment: str | None) -> None:
    counted = register_sql.faults(register.dialect, register.source, who, register.columns, moment)
    columns = register.fetch(counted)
    nobody, undated, inexact = (int(columns[name][0]) for name in ("nobody", "undated", "inexact"))
    if nobody:
        raise SpecError(
            f"{nobody:,} entries of the consent register are of nobody ({who!r} is NULL). "
            "Say whose they are, or leave them out of it."
        )
    if undated:
        raise SpecError(
            f"{undated:,} entries of the consent register have no date, or one that cannot be read: any of "
            "them could be somebody's latest. Write dates as 2026-01-31, and say since when each is valid."
        )
    if inexact:
        raise SpecError(
            f"{inexact:,} ids of the consent register are floating-point numbers too large to be exact, "
            "so that people cannot be told apart. Store ids as whole numbers or text."
        )


def _everyone(engine: Engine, entries: str, levels: RegisteredLevels) -> Spec:
    """The roster: all people of the register, whether they are in the table or not."""

    def undeclared() -> dict[Any, int]:
        named = engine.fetch(
            f"SELECT {ENTRY_FAULT} AS level, COUNT(*) AS people FROM {entries} AS entries "
            f"WHERE {ENTRY_LEVEL} = {NOT_A_LEVEL} GROUP BY {ENTRY_FAULT}"
        )
        return dict(zip(named["level"].tolist(), named["people"].tolist(), strict=True))

    columns = engine.fetch(shapes.levels(entries, ENTRY_LEVEL))
    strict = RegisteredLevels(levels.dialect, levels.tiers, levels.default, levels.moment)
    micro = Strictest(strict, undeclared).decode(columns["level"], columns["people"])
    return Spec(micro, columns["people"], levels.tiers)


def _note(levels: RegisteredLevels, epsilon: str, columns: Columns) -> str:
    counting = "latest entry, the strictest of several with one date" if levels.moment else "strictest entry"
    note = f"levels are those of the consent register{levels.moment}: each person's {counting}"
    if levels.default is not None and not levels.lenient:
        note += f"; {level_text(levels.default)} for people without one"
    if epsilon in columns:
        note += f"; column {epsilon!r} of the table itself is not read as levels"
    return note
