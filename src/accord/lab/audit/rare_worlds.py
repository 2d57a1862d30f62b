"""Worlds with something that hardly any table or program has, of which random ones would show too little."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf

from accord.lab.audit.program_runs import Step, World
from accord.lab.audit.random_tables import Dice
from accord.lab.audit.table_forms import Row

UNDER_ADD_REMOVE, WITH_A_LEDGER = "programs under add-remove", "programs with a ledger"
WITH_PRIVATE_LEVELS = "programs with private levels"
COMING_AND_GOING = (UNDER_ADD_REMOVE, WITH_PRIVATE_LEVELS)
"""Names of worlds, and those in which somebody is there or not."""
_NOT_DATES = ("unknown", "2020-02-30", "24:00", "infinity", "2020-13-01 25:00", "31.1.2020")
"""What may stand in the place of a date in a table without types."""
Rows = tuple[Row, ...]


def _with_rows(world: World, name: str, change: Callable[[int, Rows], Rows]) -> World:
    """With everyone's rows of one table changed, here and in the neighboring world."""
    source = world.sources[name]
    people = {person: change(person, rows) for person, rows in source.people.items()}
    changed = {k: change(world.person, rows) if k == name else rows for k, rows in world.changed.items()}
    return replace(world, sources={**world.sources, name: replace(source, people=people)}, changed=changed)


def _with_mixed_tiers(dice: Dice, world: World) -> World | None:
    """Rows of one person name different tiers, or one has a tier and another none: the strictest counts."""
    source = world.sources["people"]
    if "tiers" not in source.options or "user" not in source.options:
        return None
    others = {person: dice.one("strict", "standard", None) for person in source.people}

    def change(person: int, rows: Rows) -> Rows:
        return (*rows, {**rows[0], "e": others[person]}) if rows else rows

    return _with_rows(world, "people", change)


def _with_rows_in_no_group(dice: Dice, world: World) -> World | None:
    """People have rows in no public group, some with a stricter level: it counts in their group, too."""
    source = world.sources["people"]
    if "user" not in source.options:
        return None
    strict = "strict" if "tiers" in source.options else 0.1234569
    whose = {person for person in source.people if dice.chance(0.7)} | {world.person}

    def change(person: int, rows: Rows) -> Rows:
        return (*rows, {**rows[0], "p": 9, "e": strict}) if rows and person in whose else rows

    return _with_rows(world, "people", change)


def _with_text_for_dates(dice: Dice, world: World) -> World | None:
    """In a table without types, the person has text in the place of a date."""
    if world.sources["people"].form not in ("lists", "csv") or "people" not in world.changed:
        return None
    rows = tuple({**row, "d": dice.one(*_NOT_DATES)} for row in world.changed["people"])
    return replace(world, changed={**world.changed, "people": rows})


def _with_accents_in_ids(dice: Dice, world: World) -> World | None:
    """Ids with an accent, which can be written in two ways."""
    source = world.sources["people"]
    if "user" not in source.options or len(world.sources) > 1:
        return None
    source = replace(source, types={**source.types, "id": "VARCHAR"})

    def change(person: int, rows: Rows) -> Rows:
        return tuple({**row, "id": ("\u00e9", "e\u0301")[k % 2] + str(person)} for k, row in enumerate(rows))

    return _with_rows(replace(world, sources={"people": source}), "people", change)


def _with_a_level_that_is_none(dice: Dice, world: World) -> World | None:
    """Where people come and go, the person has what is not a level, and is not read."""
    options = world.sources["people"].options
    if world.name not in COMING_AND_GOING or not isinstance(options["epsilon"], str):
        return None
    bad = "gold" if "tiers" in options else -1.0

    def change(person: int, rows: Rows) -> Rows:
        return tuple({**row, "e": bad} for row in rows) if person == world.person else rows

    return _with_rows(world, "people", change)


def _with_an_algorithm_that_fails(dice: Dice, world: World) -> World | None:
    """An algorithm that fails again and again, after it has seen the people: every time costs them."""
    if world.name != WITH_A_LEDGER:
        return None
    text = "show(accord.sample(failing, people, share=0.5, ledger=ledger, columns=['x'], rows='numpy'))"
    return replace(world, word=0, program=(*world.program[:5], *[Step(text, "people", "0.5", True)] * 7))


def _with_commands_as_text(dice: Dice, world: World) -> World | None:
    """Commands as people read them."""
    commands = [step for step in world.program if ", '--json'" in step.text]
    steps = [replace(step, text=step.text.replace(", '--json'", "")) for step in commands]
    return replace(world, program=(*world.program, *steps)) if steps else None


def _public_in_another_table(dice: Dice, world: World) -> World | None:
    """In another table, the person is public, and the same in both worlds: their stricter level counts."""
    others = world.sources.get("others")
    if others is None or world.person not in others.people or not isinstance(others.options["epsilon"], str):
        return None
    public = "public" if "tiers" in others.options else inf
    rows = tuple({**row, "e": public} for row in others.people[world.person])
    others = replace(others, people={**others.people, world.person: rows})
    changed = {name: rows for name, rows in world.changed.items() if name != "others"}
    return replace(world, sources={**world.sources, "others": others}, changed=changed)


RARITIES = (
    _with_mixed_tiers,
    _with_rows_in_no_group,
    _with_text_for_dates,
    _with_accents_in_ids,
    _with_a_level_that_is_none,
    _with_an_algorithm_that_fails,
    _with_commands_as_text,
    _public_in_another_table,
)
