"""One sheet about a table, for whoever answers for it.

Who chose what, what was asked, what it cost, what the answers were worth and what is left, without jargon.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from math import inf
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from accord import odds
from accord.budget import MICRO, PUBLIC, amount_text, to_micro
from accord.errors import LedgerError, did_you_mean
from accord.release.looking import MECHANISM
from accord.report import svg
from accord.report.html import article
from accord.report.svg import Mark
from accord.report.tables import add_row, bullet, near, number, text_table

if TYPE_CHECKING:
    from accord.ledger import Ledger
    from accord.ledger.history import Account
    from accord.ledger.renewal import Renewal

_MOST_RELEASES = 40


def board(ledger: Ledger, table: str, about: str = "") -> dict[str, Any]:
    """What the sheet says about a registered table, as plain data.

    Raises:
        LedgerError: no table of this name is registered.
    """
    accounts = [account for account in ledger.accounts() if account.table == table]
    if not accounts:
        known = dict.fromkeys(account.table for account in ledger.accounts())
        raise LedgerError(f"no table {table!r} is registered in {ledger.label}: {did_you_mean(table, known)}")
    events = ledger.history(table=table, kind="all")
    registered = [event for event in events if event["kind"] == "register"]
    people = {kind: sum(e["people"] for e in events if e["kind"] == kind) for kind in ("withdraw", "readmit")}
    renewal = ledger.renewal
    return {
        "schema": 1,
        "table": table,
        "about": about,
        "ledger": ledger.label,
        "time": datetime.now(UTC).isoformat(),
        "levels": [_level(account, renewal) for account in accounts],
        "releases": [_release(event) for event in events if event["kind"] == "release"],
        "versions": len(registered),
        "lowered": sum(event["lowered"] or 0 for event in registered),
        "raised": sum(event["raised"] or 0 for event in registered),
        "withdrawn": people["withdraw"] - people["readmit"],
        **({} if renewal is None else {"every": renewal.every, "renewal": str(renewal)}),
    }


def _level(account: Account, renewal: Renewal | None) -> dict[str, Any]:
    micro = int(to_micro(account.level))
    return {
        "tier": account.tier,
        "level": amount_text(account.level),
        "people": account.people,
        "meaning": "opted out: not read" if micro == 0 else _meaning(micro),
        **({"within_ten_years": _meaning(_within_ten_years(micro, renewal))} if renewal and micro else {}),
        "spent": [amount_text(x) for x in account.spent],
        "left": [amount_text(x) for x in account.left],
        **({"ever": [amount_text(x) for x in account.ever]} if account.is_renewed else {}),
        "part_spent": min(1.0, account.spent[1] / account.level) if 0 < account.level < inf else None,
    }


def _within_ten_years(micro: int, renewal: Renewal) -> int:
    """What somebody of a level may lose within ten years."""
    return micro if micro == PUBLIC else micro * renewal.decade // MICRO


def _meaning(micro: int) -> str:
    """What a level promises if all of it is spent, without a Greek letter."""
    return odds.charge_in_words(micro, micro, None, "{}").partition(": ")[2]


def _release(event: dict[str, Any]) -> dict[str, Any]:
    charged = [line for line in event["booked"] if line["charge"] != "0"]
    protected = [line for line in charged if line["level"] != "inf"]
    return {
        "entry": event["entry"],
        "time": event["time"],
        "questions": event["queries"],
        "actor": event["actor"],
        "purpose": event["purpose"],
        "state": event["state"],
        "answers": [
            {**{name: r[name] for name in ("value", "interval", "rmse")}, **_suggested(r)}
            for r in event["receipts"]
        ],
        "people": _sum_of(line["people"] for line in charged),
        "most": max((line["charge"] for line in protected), key=float, default="0"),
    }


def _sum_of(people: Iterable[int | None]) -> int | None:
    """How many in all; None: levels are private, and nobody knows."""
    numbers = list(people)
    return None if None in numbers else sum(number for number in numbers if number is not None)


def _suggested(receipt: dict[str, Any]) -> dict[str, str]:
    """Of a look at public people, what it suggests, in words."""
    if receipt["mechanism"] != MECHANISM:
        return {}
    names = [name for name, value in receipt["value"].items() if value is not None]
    return {"value": f"suggests {', '.join(names) or 'nothing'}"}


def board_view(document: dict[str, Any]) -> RenderableType:
    """The sheet, as tables of text."""
    people = _sum_of(level["people"] for level in document["levels"])
    about = f"{document['about']}: " if document["about"] else ""
    return Group(
        Text(f"{about}{_number_text(people)}, as of {_minute(document['time'])} UTC"),
        Text(),
        _chosen(document),
        Text(),
        _asked(document),
        Text(),
        _left(document),
        Text(),
        bullet("Where the truth lies is right if what people chose does not go with their values."),
        *map(bullet, _changes(document)),
        Text(
            f"From the ledger {document['ledger']}, in which every release is booked before it is made.",
            "dim",
        ),
    )


def _number_text(people: int | None) -> str:
    return "it is private who is there, and who chose what" if people is None else f"{people:,} people"


def _chosen(document: dict[str, Any]) -> RenderableType:
    is_renewed = "renewal" in document
    span = ""
    if is_renewed or any("ever" in level for level in document["levels"]):
        span = f" of a {document['every']}" if is_renewed else " since budgets were last renewed"
    title = f"Who chose what, and what it promises for all releases{span} together"
    decade = ["what that comes to within ten years"] if is_renewed else []
    table = text_table("choice", ">people", "what was promised", *decade, title=title)
    for level in document["levels"]:
        later = [level.get("within_ten_years", "")] if is_renewed else []
        people = "private" if level["people"] is None else f"{level['people']:,}"
        add_row(table, _name(level), people, level["meaning"], *later)
    return table


def _asked(document: dict[str, Any]) -> RenderableType:
    if not document["releases"]:
        return Text("Nothing has been released yet.")
    table = text_table(
        "when (UTC)", "question", "answer, and where the truth lies with 95 %", "by", "why", ">cost at most",
        title=f"What was asked: {len(document['releases']):,} releases",
    )  # fmt: skip
    for each in document["releases"][-_MOST_RELEASES:]:
        answers = each["answers"] or [None] * len(each["questions"])
        for k, (question, answer) in enumerate(zip(each["questions"], answers, strict=True)):
            said = each["state"] if answer is None else _answer(answer)
            own = (each["actor"] or "", each["purpose"] or "", _cost(each)) if k == 0 else ("", "", "")
            add_row(table, _minute(each["time"]) if k == 0 else "", question, said, *own)
    older = len(document["releases"]) - _MOST_RELEASES
    return Group(table, Text(f"and {older:,} older ones", "dim")) if older > 0 else table


def _cost(each: dict[str, Any]) -> str:
    if each["people"] == 0:
        return "nothing"
    return "public people only" if each["most"] == "0" else each["most"]


def _answer(answer: dict[str, Any]) -> str:
    """An answer and its interval in a few words; of many numbers, how many they are.

    >>> _answer({"value": 44.89013671875, "interval": {"unit": "percentile points"}, "rmse": 0.43})
    '44.8901'
    """
    value, interval = answer["value"], answer["interval"]
    if isinstance(value, dict | list):
        return f"{len(value):,} numbers"
    if isinstance(value, float) and (interval is None or interval["unit"] != "value"):
        return number(value, 6)
    if not isinstance(value, float) or interval is None:
        return str(value)
    low, high = interval["bounds"]
    return f"{near(value, answer['rmse'] or 0)}   ({number(float(low), 4)} … {number(float(high), 4)})"


def _left(document: dict[str, Any]) -> RenderableType:
    is_renewed = any("ever" in level for level in document["levels"])
    title = "What is left" + (", since budgets were renewed" if is_renewed else "")
    table = text_table("choice", ">spent", ">left", *([">spent ever"] if is_renewed else []), title=title)
    for level in document["levels"]:
        if level["part_spent"] is not None:
            ever = [level.get("ever", level["spent"])] if is_renewed else []
            amounts = (level["spent"], level["left"], *ever)
            add_row(table, _name(level), *(" … ".join(dict.fromkeys(ends)) for ends in amounts))
    return table


def _changes(document: dict[str, Any]) -> list[str]:
    counts = {
        "withdrew, and are in nothing any more": document["withdrawn"],
        "chose a stricter level since they are registered": document["lowered"],
        "were given a laxer level, which somebody signed": document["raised"],
    }
    changes = [f"{people:,} people {what}." for what, people in counts.items() if people]
    return [*changes, *([f"{document['renewal']}."] if "renewal" in document else [])]


def _name(level: dict[str, Any]) -> str:
    return level["tier"] or f"level {level['level']}"


def _minute(time: str) -> str:
    return time[:16].replace("T", " ")


def board_html(document: dict[str, Any]) -> str:
    """The sheet as HTML, with two pictures."""
    levels = document["levels"]
    people = [
        Mark(_name(level), level["people"], f"{level['people']:,}")
        for level in levels
        if level["people"] is not None
    ]
    spent = [
        Mark(_name(level), level["part_spent"], f"{level['part_spent']:.0%}")
        for level in levels
        if level["part_spent"] is not None
    ]
    pictures = svg.bars("How many people chose what", people) if people else ""
    pictures += svg.bars("How much of what they allowed is spent, by those who spent most", spent, full=1.0)
    return article(board_view(document), pictures)
