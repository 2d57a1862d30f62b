"""One person's record in plain words: as text, as HTML, and as a page to print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from accord import odds
from accord.budget import PUBLIC, level_text
from accord.report.html import article
from accord.report.tables import add_row, bullet, text_table, to_text

if TYPE_CHECKING:
    from accord.ledger.person import Charged, Person

TITLE = "What was released about one person"


def person_view(person: Person) -> RenderableType:
    """Where they are, what they chose, what it cost them and what is left, and every release."""
    tables = text_table("table", "tier", ">level", "")
    for member in person.memberships:
        note = "left: the level goes on counting" if member.is_left else ""
        add_row(tables, member.table, member.tier or "", level_text(member.level), note)
    parts: list[RenderableType] = [
        Text(f"{TITLE}, as of {_minute(person.time)} UTC"),
        Text(),
        Text("Tables", "bold"),
        tables,
        Text(),
        Text("Budget", "bold"),
        *map(bullet, _budget(person)),
        Text(),
        Text("Releases", "bold"),
        _releases_view(person),
        Text(),
        Text(f"Looked up in the ledger {person.ledger}; booked there as entry {person.entry:,}.", "dim"),
    ]
    return Group(*parts)


def _budget(person: Person) -> list[str]:
    """What they chose, spent and have left, in sentences."""
    if person.has_withdrawn:
        counts = "They have withdrawn: nothing more is released about them, in any table."
    elif person.level == PUBLIC:
        counts = "Public: they asked for no protection."
    elif person.level == 0:
        counts = "Opted out: they are not read."
    else:
        counts = f"The strictest level that they chose, which counts everywhere: {level_text(person.level)}."
    if person.renewal is not None and not person.has_withdrawn and 0 < person.level < PUBLIC:
        counts = f"{counts} But {person.renewal}."
    if person.spent in (0, PUBLIC):
        spent = "Nothing was spent." if person.spent == 0 else "Read without noise, because they were public."
        return [counts, spent]
    meaning = odds.charge_in_words(person.spent, person.spent, None, "spent {}").partition(": ")[2]
    renewed = ""
    if person.renewed:
        renewed = f" in all, of which {level_text(person.renewed)} counts no more,"
    return [
        counts,
        f"Spent {level_text(person.spent)}{renewed or ','} left {level_text(person.left)}.",
        f"What that means: from all releases together, {meaning}.",
    ]


def _releases_view(person: Person) -> RenderableType:
    if not person.releases:
        return Text("Nothing was released about them.")
    table = text_table("time (UTC)", "table", "question", "asked by", "why", ">cost", "")
    for each in person.releases:
        for k, question in enumerate(each.questions or ("",)):
            first = k == 0
            add_row(
                table,
                _minute(each.time) if first else "",
                each.table if first else "",
                question,
                (each.actor or "") if first else "",
                (each.purpose or "") if first else "",
                _cost(each) if first else "",
                "" if each.state == "released" or not first else each.state,
            )
    if all(each.least == each.most for each in person.releases):
        return table
    note = (
        "A range: the ledger keeps people with equal accounts together, and others of these paid otherwise."
    )
    return Group(table, Text(note, "dim"))


def _cost(each: Charged) -> str:
    return " … ".join(dict.fromkeys((level_text(each.least), level_text(each.most))))


def _minute(time: str) -> str:
    return time[:16].replace("T", " ")


def person_text(person: Person) -> str:
    """The record as plain text."""
    return to_text(person_view(person))


def person_html(person: Person) -> str:
    """The record as HTML, for notebooks and pages."""
    return article(person_view(person))
