"""Worlds whose levels are in a consent register: the same people, levels and programs, from beside the data.

A register is public and the same in both worlds. Besides the entry that counts, people have entries that were
replaced, that are yet to come, or that are laxer on the same day; other people have some, too. The column
that had the levels is one like any other then, which anybody may have anything in.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, timedelta
from math import inf
from typing import Any

from accord.lab.audit.program_runs import Step, World
from accord.lab.audit.random_tables import FORMS, TIERS, Dice, level_of
from accord.lab.audit.rare_worlds import UNDER_ADD_REMOVE, WITH_PRIVATE_LEVELS
from accord.lab.audit.table_forms import Register, Row, Source

_AS_OF = date(2026, 6, 1)
_ELSEWHERE = 1_000_000
"""An id that nobody has in a table."""


def with_registers(dice: Dice, world: World) -> World:
    """The same world, with the levels of its tables in registers where people are known by an id.

    A register is public, so that there is none where levels are private.
    """
    if world.name == WITH_PRIVATE_LEVELS:
        return world
    for name, source in world.sources.items():
        if "user" in source.options and isinstance(source.options["epsilon"], str):
            world = _with_register(dice, world, name, source)
    return world


def _with_register(dice: Dice, world: World, name: str, source: Source) -> World:
    is_asked_by_command = any("command(" in step.text and "--epsilon" in step.text for step in world.program)
    form = dice.one("csv", "parquet") if is_asked_by_command else dice.one(*FORMS)
    is_private = world.name == UNDER_ADD_REMOVE
    entries: list[Row] = []
    for rows in source.people.values():
        # somebody whom the register does not know is not read where it says who could be there
        if not is_private or dice.chance(0.7):
            entries += _entries(dice, source, rows[0]["id"], _strictest(source, rows))
    entries += _entries(dice, source, _ELSEWHERE, dice.one(*_levels(source)))
    is_text = source.types["id"] == "VARCHAR" or dice.chance(0.3)
    types = {"id": "VARCHAR" if is_text else "BIGINT", "e": source.types["e"], "valid_from": "DATE"}
    if is_text:
        entries = [{**entry, "id": dice.one("{}", " {}").format(entry["id"])} for entry in entries]
    order = dice.rng.permutation(len(entries)).tolist()
    register = Register(form, types, tuple(entries[k] for k in order), _AS_OF, is_private)
    people = {who: _with_other_levels(dice, source, rows) for who, rows in source.people.items()}
    changed = dict(world.changed)
    if name in changed:
        changed[name] = _with_other_levels(dice, source, changed[name])
    return replace(
        world,
        sources={**world.sources, name: replace(source, register=register, people=people)},
        changed=changed,
        program=tuple(_beside(step, name, form) for step in world.program),
    )


def _levels(source: Source) -> tuple[Any, ...]:
    return (*TIERS, None) if "tiers" in source.options else (0.1234569, 0.7, 2.5, inf, 0.0)


def _strictest(source: Source, rows: tuple[Row, ...]) -> Any:
    """What stands in the strictest of somebody's rows; what is no level is none in a register, either."""
    known = [row["e"] for row in rows if row["e"] in _levels(source) or isinstance(row["e"], float)]
    levels = [level for level in known if not (isinstance(level, float) and level < 0)]
    return min(levels or [_levels(source)[-1]], key=lambda level: level_of(level, source.options))


def _entries(dice: Dice, source: Source, who: Any, level: Any) -> list[Row]:
    """The entry of a person that counts, and some that do not."""
    day = _AS_OF - timedelta(days=dice.one(0, 1, 400))
    entries: list[Row] = [{"id": who, "e": level, "valid_from": day}]
    if dice.chance(0.4):
        before = day - timedelta(days=dice.one(1, 1000))
        entries.append({"id": who, "e": dice.one(*_levels(source)), "valid_from": before})
    if dice.chance(0.4):
        later = _AS_OF + timedelta(days=dice.one(1, 300))
        entries.append({"id": who, "e": dice.one(*_levels(source)), "valid_from": later})
    if dice.chance(0.4):
        laxer = "public" if "tiers" in source.options else inf
        entries.append({"id": who, "e": laxer, "valid_from": day})
    return entries


def _with_other_levels(dice: Dice, source: Source, rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """The same rows, with anything in the column that had the levels."""
    return tuple({**row, "e": dice.one(*_levels(source))} for row in rows)


def _beside(step: Step, name: str, form: str) -> Step:
    """The same line, which opens its table with the register."""
    opening = f"{name} = accord.table(given({name!r}), "
    if step.text.startswith(opening):
        text = re.sub(r", roster=accord\.Spec\.from_groups\(\{.*?\}\)", "", step.text[len(opening) :])
        return replace(step, text=f"{opening}consent=register({name!r}), as_of='{_AS_OF}', {text}")
    if step.text.startswith("show(command(") and "--epsilon" in step.text:
        words = f", '--consent', '{name}_register.{form}', '--as-of', '{_AS_OF}'))"
        return replace(step, text=step.text.removesuffix("))") + words)
    return step
