"""Receiving: what a service says of a table and of an answer, as the objects of a table here."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from accord.budget import MICRO, PUBLIC
from accord.people.description import Description
from accord.people.elsewhere import Known
from accord.planning import Plan
from accord.release import Release
from accord.release.answer import finished
from accord.release.result import Booked
from accord.spec import Spec
from accord.statistics.declared import Declared


def known(document: dict[str, Any]) -> Known:
    """What a service says of a table."""
    user, levels = document["user"], document["levels"]
    columns = {column["name"]: column["kind"] for column in document["columns"]}
    columns |= {each["name"]: each["kind"] for each in (user, levels) if each is not None}
    declared = {column["name"]: _declared(column) for column in document["columns"]}
    return Known(
        columns,
        None if user is None else user["name"],
        None if levels is None else levels["name"],
        document["neighbors"],
        frozenset(document["complete"]),
        tuple(document["notes"]),
        Description(document["name"], document["file"], document["about"], declared),
    )


def _declared(column: dict[str, Any]) -> Declared:
    said: dict[str, Any] = {name: value for name, value in column.items() if name not in ("name", "kind")}
    tuples: dict[str, Any] = {name: tuple(said[name]) for name in ("bounds", "total", "keys") if name in said}
    return Declared(**{**said, **tuples})


def levels_of(listed: list[dict[str, Any]]) -> dict[int, int]:
    """How many people have which level, in millionths."""
    return {
        PUBLIC if each["level"] == "inf" else int(Decimal(each["level"]) * MICRO): each["people"]
        for each in listed
    }


def rest(listed: list[dict[str, Any]], opted_out: int) -> Spec:
    people = {0: opted_out, **levels_of(listed)}
    micro = np.fromiter(people, dtype=np.int64, count=len(people))
    return Spec(micro, np.fromiter(people.values(), dtype=np.int64, count=len(people)), is_rest=True)


def entry(receipt: dict[str, Any], name: str) -> Booked | None:
    return Booked(**receipt[name]) if name in receipt else None


def part_released(plan: Plan[Any], released: dict[str, Any], again: Booked | None) -> Release[Any]:
    """The answer to one question, from what its mechanism released."""
    fractions = [tuple(Fraction(x) for x in group) for group in released["groups"]]
    value, finally_released = finished(plan, fractions)
    return Release(plan, value, datetime.fromisoformat(released["time"]), finally_released, repeated=again)
