"""One person's record in plain words: as text, as HTML, and as a page to print."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from accord import odds
from accord.budget import PUBLIC, level_text
from accord.errors import AccordError
from accord.report.html import article
from accord.report.tables import add_row, bullet, text_table, to_text

if TYPE_CHECKING:
    from accord.ledger.person import Charged, Person

_TITLE = "What was released about one person"
_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; margin: .6em 0 1.2em; }}
th {{ text-align: left; }}
@media print {{ body {{ margin: 0; max-width: none; }} }}
</style>
</head>
<body>
<h1>{title}</h1>
{content}
</body>
</html>
"""


def person_view(person: Person) -> RenderableType:
    """Where they are, what they chose, what it cost them and what is left, and every release."""
    tables = text_table("table", "tier", ">level", "")
    for member in person.memberships:
        note = "left: the level goes on counting" if member.is_left else ""
        add_row(tables, member.table, member.tier or "", level_text(member.level), note)
    parts: list[RenderableType] = [
        Text(f"{_TITLE}, as of {_minute(person.time)} UTC"),
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
    if person.spent in (0, PUBLIC):
        spent = "Nothing was spent." if person.spent == 0 else "Read without noise, because they were public."
        return [counts, spent]
    meaning = odds.charge_in_words(person.spent, person.spent, None, "spent {}").partition(": ")[2]
    return [
        counts,
        f"Spent {level_text(person.spent)}, left {level_text(person.left)}.",
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


def write_page(person: Person, path: Path) -> Path:
    """The record as a page to print, which fetches nothing from anywhere.

    Raises:
        AccordError: it cannot be written.
    """
    page = _PAGE.format(title=escape(_TITLE), content=person_html(person))
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as fault:
        raise AccordError(f"{path} cannot be written ({fault.strerror}). Give another place.") from None
    return path
