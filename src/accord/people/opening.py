"""Opening a table: what a user says about a source, checked, before anything of it is read."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date
from decimal import Decimal
from numbers import Real
from typing import Any

from accord import relation
from accord.budget import level_text, read_number
from accord.engines import CSV, Engine, absolute, csv_options, open_source
from accord.errors import SourceError, SpecError, did_you_mean
from accord.people.consent import Register
from accord.people.description import Description
from accord.people.levels import Levels, levels_of
from accord.people.table import Opened, Table
from accord.spec import Spec


def table(
    source: Any,
    *,
    epsilon: str | float,
    tiers: Mapping[Any, float] | None = None,
    default: str | float | None = None,
    user: str | None = None,
    neighbors: str = "replace",
    roster: Spec | None = None,
    levels: str = "public",
    expected: Spec | None = None,
    csv: CSV | Mapping[str, Any] | None = None,
    consent: Any = None,
    consent_user: str | None = None,
    consent_csv: CSV | Mapping[str, Any] | None = None,
    valid_from: str | None = None,
    as_of: str | date | None = None,
) -> Table:
    """Open a table of people who each have a level.

    Args:
        source: a path, glob, folder or list of these (Parquet, CSV: docs/sources.md), a pandas, polars or
            Arrow table, a DuckDB relation, a dict of arrays, a Spark DataFrame or "spark://catalog.table", or
            "postgresql://user@host/database?table=schema.name".
        epsilon: the column of levels: numbers, or names of `tiers`. A number: the level of everyone.
        tiers: {name: level}; 0 for opted out, inf for public.
        default: the tier or level of people who have none (NULL). Without it they are refused.
        user: the column that says who a row is of. A person's rows come to one number (their mean for a mean,
            their sum for a sum, …: docs/how-it-works.md), and the strictest of their levels counts.
        neighbors: "replace": one person's value changes; who is in the table, and their levels, are public.
            "add-remove": one person comes or goes; then who is in the table is private, and `roster` says how
            many could be, of each level.
        roster: with add-remove, the public Spec of everyone who could be in the table. People of other levels
            are not read.
        levels: "public": everyone may know who chose which level. "private": that somebody chose a level may
            itself be telling. Then one person comes or goes with their level, it is private, too, how many
            have which, and `expected` says for how many to plan. See docs/private-levels.md.
        expected: with private levels, the Spec that is assumed in the place of the table's own, from public
            knowledge. Its levels are the menu: people with another, or with none, count as opted out.
        csv: how CSV files are read where they are not plain: `accord.CSV(delimiter=…, decimal=…, thousands=…,
            encoding=…, dates=…, true=…, false=…)`, or a mapping with these keys.
        consent: a register of who chose which level, as a table of its own: any `source`, of the same
            database or session for PostgreSQL and Spark. Then `epsilon` is its column, `user` says who is
            who, people without an entry have the `default`, and with add-remove it is the roster.
            See docs/consent.md.
        consent_user: the register's column of people, if it is not called as `user`.
        consent_csv: how the register is read, if it is a CSV file that is not plain, like `csv`.
        valid_from: its column of dates from which an entry is valid; the one called "valid_from", if any. Of
            each person the latest counts, the strictest of several with one date.
        as_of: the moment at which entries count: a date (its first moment), a timestamp, or ISO text; now, in
            UTC, if it is left out.

    Raises:
        SourceError: the source cannot be opened.
        SpecError: levels or tiers that cannot be used.

    >>> people = table({"age": [31, 45, 62], "level": [0.1, 1.0, float("inf")]}, epsilon="level")
    >>> people.spec().levels
    (0.1, 1.0, inf)
    """
    options = dict(locals())  # as they were given
    opened = _open(**options)
    opened.can_be_opened_again_with(Opened(absolute(options.pop("source")), options))
    return opened


def _open(
    source: Any,
    epsilon: str | float,
    tiers: Mapping[Any, float] | None,
    default: str | float | None,
    user: str | None,
    neighbors: str,
    roster: Spec | None,
    levels: str,
    expected: Spec | None,
    csv: CSV | Mapping[str, Any] | None,
    consent: Any,
    consent_user: str | None,
    consent_csv: CSV | Mapping[str, Any] | None,
    valid_from: str | None,
    as_of: str | date | None,
) -> Table:
    """A table, from the arguments of `table`."""
    if neighbors not in [offered.name for offered in relation.ALL]:
        there_is = relation.offered(lambda one: f"{one.meaning}; {one.about_people}")
        raise SourceError(f"neighbors={neighbors!r} is not offered. There is {there_is}.")
    if _are_private(levels, neighbors):
        neighbors = relation.PRIVATE_LEVELS.name
        refuse_with_private_levels(roster, consent, expected)
    elif expected is not None:
        raise SourceError(
            "expected= says for how many people of each level to plan where levels are private. "
            "Add levels='private', or leave it out."
        )
    roster = expected if roster is None else roster
    people_are_public, has_roster = relation.named(neighbors).people_are_public, isinstance(roster, Spec)
    if consent is not None and has_roster:
        raise SourceError(
            "the consent register is the roster of who could be in the table. Leave roster= or consent= out."
        )
    if not people_are_public and not has_roster and consent is None:
        raise SourceError(
            f"with neighbors={neighbors!r} who is in the table is private, so that its levels cannot be "
            "counted: give roster=Spec of everyone who could be in it, or consent=, a register of them."
        )
    if people_are_public and has_roster:
        raise SourceError(
            "roster= says who could be in a table whose members are private. "
            f"Add neighbors={relation.private_names()}, or leave it out."
        )
    engine = open_source(source, csv_options(csv))
    if not isinstance(epsilon, (str, Real, Decimal)):
        raise SpecError(
            f"epsilon= is a {type(epsilon).__name__}. Name the column of levels, "
            "or give one number for everyone; an array of levels is a column of the table."
        )
    if consent is not None:
        register = Register(consent, valid_from, as_of, consent_user, csv_options(consent_csv))
        return _with_consent(engine, register, epsilon, tiers, default, user, neighbors)
    about_register = {
        "consent_user": consent_user,
        "consent_csv": consent_csv,
        "valid_from": valid_from,
        "as_of": as_of,
    }
    for option, given in about_register.items():
        if given is not None:
            raise SourceError(f"{option}= is about a consent register. Give consent=, or leave it out.")
    if isinstance(epsilon, str) and epsilon not in engine.columns:
        with suppress(ValueError):  # a number as text, where no column has that name
            epsilon = read_number(epsilon)
    for name in (epsilon if isinstance(epsilon, str) else None, user):
        if name is not None and name not in engine.columns:
            raise SourceError(f"there is no column {name!r}: {did_you_mean(name, engine.columns)}")
    read = levels_of(engine.dialect, engine.columns, epsilon, tiers, default).computed_once()
    if roster is not None:
        read = replace(read, lenient=True)
    if expected is not None:
        roster = _menu(expected, read)
    return Table(engine, read, user, neighbors, epsilon if isinstance(epsilon, str) else None, roster)


def _are_private(levels: str, neighbors: str) -> bool:
    """Whether levels are private; neighbors follow from that."""
    if levels not in ("public", "private"):
        raise SourceError(
            f"levels={levels!r} is not offered. It is 'public' (everyone may know who chose which) or "
            "'private' (nobody may)."
        )
    private = relation.PRIVATE_LEVELS
    if levels == "public" and neighbors == private.name:
        raise SourceError(
            f"neighbors={neighbors!r} are those of levels='private'. Say that, and leave neighbors= out."
        )
    return levels == "private"


def refuse_with_private_levels(roster: Any, consent: Any, expected: Any) -> None:
    """Refuse what cannot be said, or not be left out, where levels are private."""
    if roster is not None:
        raise SourceError(
            "roster= says in public who could be in the table, and with which level; with levels='private' "
            "nobody may know. Give expected=, which is an assumption, or leave levels= out."
        )
    if consent is not None:
        raise SourceError(
            "a consent register is public: what is wrong in it is told, with numbers of people and names of "
            "tiers. With levels='private' write everyone's level beside their rows, as a column of the table."
        )
    if not isinstance(expected, Spec):
        raise SourceError(
            "with levels='private' it is private how many people have which level, so that they are not "
            "counted: give expected=Spec of how many to plan for, such as "
            "accord.Spec.from_groups({0.1: 500, 1: 300})."
        )


def _menu(expected: Spec, read: Levels) -> Spec:
    """The Spec that is assumed; refuses levels that are declared and nobody is expected to have."""
    if expected.is_rest:
        raise SpecError("expected= is what a ledger has left. Give how many people have chosen which level.")
    named = {f"tier {name!r}": level for name, level in (read.tiers or {}).items()}
    if read.tiers is None and read.default is not None:
        named["default="] = read.default
    for name, level in named.items():
        if level and level not in expected.micro:
            raise SpecError(
                f"{name} is the level {level_text(level)}, and expected= has nobody of it: whoever has it "
                "would not be read. Expect one person at least, or leave it out."
            )
    return expected.as_expected(read.tiers)


def open_again(source: Any, options: dict[str, Any], description: Description | None = None) -> Table:
    """A table that was pickled."""
    opened = table(source, **options)
    opened.description = description
    return opened


def _with_consent(
    engine: Engine,
    register: Register,
    epsilon: Any,
    tiers: Mapping[Any, float] | None,
    default: str | float | None,
    user: str | None,
    neighbors: str,
) -> Table:
    """A table whose levels are in a consent register."""
    if not isinstance(epsilon, str):
        raise SpecError(
            f"with consent= the levels are in the register, and epsilon={epsilon!r} is no column of it. "
            "Name its column of tiers or levels."
        )
    if user is None:
        raise SourceError(
            "a consent register is joined by who a row is of. Give user='…' (on the command line --user)."
        )
    if user not in engine.columns:
        raise SourceError(f"there is no column {user!r}: {did_you_mean(user, engine.columns)}")
    public = relation.named(neighbors).people_are_public
    consent = register.joined(engine, user, epsilon, tiers, default, public)
    return Table(engine, consent.levels, user, neighbors, epsilon, consent.roster, consent=consent)
