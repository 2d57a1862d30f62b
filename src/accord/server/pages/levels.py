"""Levels: who chose what, and what typical questions would gain or lose if people chose otherwise.

All of it is planned from levels and counts, which are public, or supposed: no value is read, and it works
before anybody has chosen, from published shares of how people think about privacy.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from itertools import islice
from math import inf
from typing import Any

from fastapi import Response

import accord
from accord.budget import MICRO, level_text
from accord.errors import AccordError, QueryError, SpecError
from accord.planning import Plan
from accord.report.svg import Mark
from accord.report.tables import error
from accord.server.asking import public_text
from accord.server.pages import pictures
from accord.server.pages.site import Site, Visit
from accord.server.refusals import NotThereError
from accord.spec import Spec
from accord.statistics import Query

_ATTITUDES = ("conservative", "moderate", "liberal")
_SUPPOSED = (0.1, 1.0, 10.0)
"""ε of the three attitudes where a table has no three tiers of its own."""
_PEOPLE = 1_000
"""So many are supposed where nobody is there yet."""
_MOST_TIERS, _MOST_MEANS, _MOST_KEYS, _MOST_PEOPLE = 12, 4, 20, 10**9


@dataclass(frozen=True)
class Tier:
    """A tier as the page has it: so many of all people, at a level."""

    name: str
    level: float
    part: float
    """Of all people, in percent."""


@dataclass(frozen=True)
class Effect:
    """What would become of a question."""

    label: str
    unit: str
    before: str
    after: str
    change: str
    mechanism: str


def add_to(site: Site) -> None:
    """The pages of this file."""

    @site.get("/levels")
    def levels(visit: Visit) -> Response:
        tables = site.tables(visit)
        if not tables:
            return site.show(visit, "nothing_to_ask.html")
        name = visit.field("table") or tables[0]["name"]
        table = next((table for table in tables if table["name"] == name), None)
        if table is None:
            raise NotThereError
        spec = site.office.spec(visit.token, name)
        chosen, people = _chosen(spec)
        start = visit.field("start") if visit.field("start") in segmentations() else ""
        if not any(tier.part for tier in chosen if tier.level > 0):  # nobody has chosen, or all are out
            start, people = start or next(iter(segmentations())), people or _PEOPLE
        beginning = _published(start, chosen) if start else chosen
        values: dict[str, Any] = {
            "tables": [table["name"] for table in tables],
            "table": table,
            "people": people,
            "start": start,
            "starts": segmentations(),
            "is_expected": spec["people"] is None,
            "chosen": chosen,
            "picture": _picture(chosen, people) if chosen else "",
        }
        try:
            supposed = _supposed(visit, beginning)
            share = _number(visit.field("share") or "0.05", "share", 1e-6, 1.0)
            values |= {"share": visit.field("share") or "0.05", "supposed": supposed, "wrong": ""}
            planned = partial(site.office.suppose, visit.token, name)
            values |= _effects(planned, table, beginning, supposed, people, share)
        except AccordError as fault:
            wrong = public_text(fault) or "this cannot be planned."
            values |= {"share": "0.05", "supposed": beginning, "wrong": wrong, "effects": [], "compared": ""}
        return site.show(visit, "levels_part.html" if visit.is_partial else "levels.html", **values)


# ---- who chose what ----------------------------------------------------------------------------------------


@cache
def segmentations() -> dict[str, dict[str, Any]]:
    """Published shares of how people think about privacy, by their id."""
    text = (files("accord.data") / "segmentations.json").read_text(encoding="utf-8")
    return {each["id"]: each for each in json.loads(text)["segmentations"]}


def _chosen(spec: dict[str, Any]) -> tuple[list[Tier], int]:
    """The tiers that people chose, the strictest first, and how many people there are."""
    counts = {line["level"]: line["people"] or 0 for line in spec["levels"]}
    opted_out = spec["opted_out"] or 0
    people = sum(counts.values()) + opted_out
    names = {level: tier for tier, level in spec["tiers"].items()}
    names |= {line["level"]: line["tier"] for line in spec["levels"] if line["tier"]}
    levels = sorted({*names, *counts, *(["0"] if opted_out else [])}, key=float)
    if len(levels) > _MOST_TIERS:
        return _folded([(float(level), counts.get(level, 0)) for level in levels], people), people
    return [
        Tier(
            names.get(level) or ("opted out" if level == "0" else f"level {level}"),
            float(level),
            100 * (counts.get(level, 0) if level != "0" else opted_out) / max(people, 1),
        )
        for level in levels
    ], people


def _folded(levels: list[tuple[float, int]], people: int) -> list[Tier]:
    """Many levels as a few, each at the strictest of those that it stands for."""
    size = -(-len(levels) // _MOST_TIERS)
    parts = [levels[k : k + size] for k in range(0, len(levels), size)]
    return [
        Tier(f"level {part[0][0]:g} and up", part[0][0], 100 * sum(n for _, n in part) / max(people, 1))
        for part in parts
    ]


def _published(id: str, chosen: list[Tier]) -> list[Tier]:
    """The table's tiers in published shares: the strictest for the conservative, and so on."""
    survey = segmentations()[id]
    shares = [survey[name] for name in _ATTITUDES]
    total = sum(shares)
    own = [tier for tier in chosen if tier.level > 0]
    if len(own) != len(_ATTITUDES):
        own = [Tier(name, level, 0) for name, level in zip(_ATTITUDES, _SUPPOSED, strict=True)]
    outside = [Tier(tier.name, 0.0, 0.0) for tier in chosen if tier.level == 0]
    return outside + [
        Tier(tier.name, tier.level, 100 * share / total) for tier, share in zip(own, shares, strict=True)
    ]


def _supposed(visit: Visit, beginning: list[Tier]) -> list[Tier]:
    """The tiers as the sliders have them."""
    moved = []
    for k, tier in enumerate(beginning):
        part, level = visit.field(f"part{k}"), visit.field(f"level{k}")
        moved.append(
            Tier(
                tier.name,
                tier.level
                if not level or tier.level in (0, inf)
                else _number(level, f"ε of {tier.name}", 1e-6, 1e6),
                tier.part if not part else _number(part, f"share of {tier.name}", 0, 100),
            )
        )
    return moved


def _number(text: str, name: str, low: float, high: float) -> float:
    try:
        x = float(text)
    except ValueError:
        x = low - 1
    if not low <= x <= high:
        raise QueryError(f"{name}: {text!r} is no number from {low:g} to {high:g}. Write one with digits.")
    return x


def _spec(tiers: list[Tier], people: int) -> Spec:
    """As many people as there are, in these parts."""
    total = sum(tier.part for tier in tiers)
    if total <= 0 or people > _MOST_PEOPLE:
        raise SpecError("nobody is left in any tier. Move a slider to the right.")
    counts: dict[float, int] = {}
    for tier in tiers:
        counts[tier.level] = counts.get(tier.level, 0) + round(people * tier.part / total)
    return Spec.from_groups({level: count for level, count in counts.items() if count or level == 0})


# ---- what it would do --------------------------------------------------------------------------------------


def _questions(table: dict[str, Any]) -> Iterator[tuple[str, Query]]:
    """What is typically asked of such a table, from what is declared of its columns."""
    numbers = {
        column["name"]: (column["bounds"][0], column["bounds"][1])
        for column in table["columns"]
        if "bounds" in column and all(isinstance(end, int | float) for end in column["bounds"])
    }
    for name, bounds in islice(numbers.items(), _MOST_MEANS):
        yield f"mean of {name}", accord.mean(name, bounds=bounds)
    for name, bounds in islice(numbers.items(), 1):
        yield f"median of {name}", accord.median(name, bounds=bounds)
    keyed = [column for column in table["columns"] if 0 < len(column.get("keys", ())) <= _MOST_KEYS]
    for column in keyed[:1]:
        yield f"people by {column['name']}", accord.histogram(column["name"], categories=column["keys"])
    yield "share who meet a condition", accord.proportion("met = 1")


def _effects(
    planned: Callable[[Spec, Sequence[Query], float], list[Plan]],
    table: dict[str, Any],
    before: list[Tier],
    after: list[Tier],
    people: int,
    share: float,
) -> dict[str, Any]:
    """The lowest expected error of each question, before and after."""
    labels, queries = zip(*_questions(table), strict=True)
    first, then = (planned(_spec(tiers, people), queries, share) for tiers in (before, after))
    effects, marks = [], []
    for label, old, new in zip(labels, first, then, strict=True):
        ratio = new.rmse / old.rmse if old.rmse else 1.0
        change = (
            "as before"
            if abs(ratio - 1) < 0.005
            else f"{abs(ratio - 1):.0%} {'larger' if ratio > 1 else 'smaller'}"
        )
        unit = "" if new.unit == "value" else new.unit
        effects.append(Effect(label, unit, error(old.rmse), error(new.rmse), change, new.mechanism))
        marks.append(Mark(label, ratio, change, stroke=1.0))
    return {
        "effects": effects,
        "compared": pictures.bars("Expected error, as a multiple of what it is now (line: now)", marks),
        "counts": [
            {"name": tier.name, "level": level_text(round(tier.level * MICRO)) if tier.level < inf else "inf"}
            | {"people": round(people * tier.part / sum(t.part for t in after))}
            for tier in after
        ],
    }


def _picture(tiers: list[Tier], people: int) -> Any:
    marks = [
        Mark(tier.name, tier.part, f"{round(people * tier.part / 100):,}", chosen=tier.level > 0)
        for tier in tiers
    ]
    return pictures.bars("How many people chose what", marks)
