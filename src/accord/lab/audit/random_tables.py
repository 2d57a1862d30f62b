"""Random tables for worlds: of every form and type, with levels of every kind, and many rows a person.

Public are who is in a table (not under add-remove), everyone's id and level, and the column `p`. All else is
private: in a neighboring world one person has other values, other rows, or none.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from importlib.util import find_spec
from math import inf, nan
from typing import Any

import numpy as np

from accord.lab.audit.table_forms import Row, Source

_NEEDS = {"pandas": ("pandas",), "arrow": ("pyarrow",), "polars": ("pyarrow", "polars")}
ALL_FORMS = ("lists", "arrays", "csv", "parquet", "relation", "pandas", "arrow", "polars")
"""In which a table is given."""
FORMS = tuple(form for form in ALL_FORMS if all(find_spec(name) for name in _NEEDS.get(form, ())))
"""Those whose libraries are here."""
TIERS = {"public": inf, "standard": 1.5, "strict": 0.3000017, "none": 0}
_LEVELS = (0.1234569, 0.3000017, 0.7, 2.5, 900.0, inf, 0.0)
_ODD_NUMBERS: Mapping[str, tuple[Any, ...]] = {
    "DOUBLE": (0.0, 100.0, -1e300, 1e308, 49.5, 49.99999999999999, nan, None, inf, -inf, -0.0, 5e-324),
    "FLOAT": (0.0, 100.0, 1e30, nan, None, inf, -inf, 33.5),
    "BIGINT": (0, 100, -(2**63), 2**63 - 1, None, 2**53 + 1, 7),
    "DECIMAL(18,4)": (
        Decimal(0),
        Decimal("99.9999"),
        Decimal("-99999999999999.9999"),
        None,
        Decimal("0.0001"),
    ),
}
_KEYS = ("a", "b", "c")
"""What programs ask about."""
_ODD_TEXTS = (*_KEYS, "", "A", " a", "ä", "x" * 300, "'; --", "[bold]", "NaN", None)
_LIKE_STRUCTURE = ('"', 'a"b', "a,b;c|d\te", "a\n1,900.0,50,50", 'a"\r\n7,1,2,3\r\n"', "\n")
"""Texts that a reader of files could take for more than text."""
_TEXTS = (*_ODD_TEXTS, *_KEYS, *_LIKE_STRUCTURE)
_ODD_DATES = (
    date(2020, 1, 1),
    date(2020, 12, 31),
    date(1, 1, 1),
    date(9999, 12, 31),
    None,
    date(1969, 12, 31),
)
_NOT_NUMBERS = ("abc", "1,5", "1e400", "nan", "-inf", "0x10", "", "$5", "١", "true")
"""What may stand in the place of a number in a file without types."""
_PRIVATE = ("x", "z", "m", "g", "c", "b", "d")


class Dice:
    """Choices at random."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def one(self, *of: Any) -> Any:
        return of[int(self.rng.integers(len(of)))]

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def below(self, most: int) -> int:
        return int(self.rng.integers(most))


def _types(dice: Dice, form: str) -> dict[str, str]:
    return {
        "id": "BIGINT",
        "e": "DOUBLE",
        "x": dice.one("DOUBLE", "BIGINT") if form == "arrays" else dice.one(*_ODD_NUMBERS),
        "z": "DOUBLE",
        "m": "DOUBLE",
        "g": "BIGINT",
        "p": "BIGINT",
        "c": "VARCHAR",
        "b": "BOOLEAN",
        "d": "DATE",
    }


def _odd_value(dice: Dice, column: str, types: Mapping[str, str], form: str) -> Any:
    """What somebody may have in a column of this type, the odd included."""
    kind = types[column]
    if kind not in _ODD_NUMBERS:
        return dice.one(*{"VARCHAR": _TEXTS, "BOOLEAN": (True, False, None), "DATE": _ODD_DATES}[kind])
    if form == "csv" and dice.chance(0.3):
        return dice.one(*_NOT_NUMBERS)
    if column == "g":
        return dice.one(1, 2, 9, None)
    if form == "arrays" and kind == "BIGINT":
        return dice.one(0, 100, 2**63 - 1)
    return dice.one(*_ODD_NUMBERS[kind])


def _ordinary(dice: Dice, types: Mapping[str, str]) -> dict[str, Any]:
    """A row as most people have it."""
    x: Any = dice.below(201) / 2
    if types["x"] == "BIGINT":
        x = int(x)
    elif types["x"].startswith("DECIMAL"):
        x = Decimal(str(x))
    row = {"x": x, "z": float(dice.below(101)), "m": float(dice.below(5)), "g": dice.one(1, 2, 3)}
    return row | {"c": dice.one("a", "b", "c"), "b": dice.chance(0.5), "d": date(2020, 1 + dice.below(12), 5)}


def random_table(dice: Dice, form: str, size: int, user: bool, tiers: bool, first: int = 0) -> Source:
    """People with their rows, whose levels are numbers, or names of tiers."""
    types = _types(dice, form)
    options: dict[str, Any] = {"epsilon": "e"}
    if user:
        options["user"] = "id"
    if tiers:
        types["e"] = "VARCHAR"
        options["tiers"] = TIERS
        options["default"] = "strict"
    elif dice.chance(0.1):
        options["epsilon"] = 0.7  # of everyone
    if user and dice.chance(0.3):
        types["id"] = "VARCHAR"
    people = {}
    for person in range(first, first + size):
        level: Any
        if tiers:
            level = dice.one(*TIERS, None)
        elif size > 64:
            level = (person + 1) / 100
        else:
            level = dice.one(*_LEVELS)
        number = 1 + (dice.below(3) if user else 0)
        people[person] = tuple(_row(dice, types, form, person, level, k) for k in range(number))
    return Source(form, types, people, options)


def _row(dice: Dice, types: Mapping[str, str], form: str, person: int, level: Any, k: int) -> Row:
    """The k-th row of a person."""
    name: Any = person
    if types["id"] == "VARCHAR":  # one person all the same
        name = dice.one(f"{person}", f" {person}", f"{person}.0")
    row = {"id": name, "e": level, "p": 1 + person % 2, **_ordinary(dice, types)}
    is_number = types["e"] == "DOUBLE"
    if k and is_number and dice.chance(0.3) and isinstance(level, float) and level < inf:
        row["e"] = 2 * level  # the strictest of a person's levels counts
    if dice.chance(0.1):
        column = dice.one(*_PRIVATE)
        row[column] = _odd_value(dice, column, types, form)
    return {column: row[column] for column in types}


def other_rows(dice: Dice, source: Source, person: int) -> tuple[Row, ...]:
    """Other rows of the same person: as many, or fewer, or more where people may have many."""
    rows = source.people.get(person, ())
    if not rows:
        return ()
    number = len(rows) if "user" not in source.options else 1 + dice.below(5)
    strictest = min(rows, key=lambda row: level_of(row["e"], source.options))
    lacking = dice.one("x", *_PRIVATE) if dice.chance(0.4) else None
    changed = []
    for k in range(number):
        if k < len(rows) and dice.chance(0.5):
            row = dict(rows[k])
        else:
            row = {**rows[0], **_ordinary(dice, source.types)}
        for column in _PRIVATE:
            if dice.chance(0.8):
                row[column] = _odd_value(dice, column, source.types, source.form)
        row["e"] = strictest["e"]
        if lacking:
            row[lacking] = None
        changed.append(row)
    return tuple(changed)


def level_of(level: Any, options: Mapping[str, Any]) -> float:
    """What stands in a row, as a level."""
    tiers, everyones = options.get("tiers"), options["epsilon"]
    if tiers is None:
        return float(level if isinstance(everyones, str) else everyones)
    return float(tiers[options["default"] if level is None else level])


def somebody(dice: Dice, *sources: Source) -> int:
    """A person of the first table who is public in none; −1 if there is nobody."""
    first = sources[0]
    public = {
        person
        for source in sources
        for person, rows in source.people.items()
        if min(level_of(row["e"], source.options) for row in rows) == inf
    }
    return int(dice.one(*([person for person in first.people if person not in public] or [-1])))
