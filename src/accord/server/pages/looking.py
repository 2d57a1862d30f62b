"""What was done, and what is left: the history with files to take along, and budgets over time."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from datetime import UTC, datetime
from io import StringIO
from itertools import groupby
from math import inf
from typing import Any
from urllib.parse import urlencode

from fastapi import Response

from accord.budget import amount_text
from accord.ledger.history import KINDS, Account
from accord.ledger.tokens import ANALYST
from accord.release.receipt import SCHEMA, to_json
from accord.report.svg import Mark
from accord.server.pages import pictures
from accord.server.pages.answers import answers_of
from accord.server.pages.pictures import Line
from accord.server.pages.site import Site, Visit

_FILTERS = ("table", "kind", "actor", "since", "until")
_ON_A_PAGE = 50
_COLUMNS = (
    "time",
    "entry",
    "kind",
    "table",
    "what",
    "actor",
    "purpose",
    "state",
    "of",
    "value",
    "low",
    "high",
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet would take for a formula, at the beginning of a text."""


def add_to(site: Site) -> None:
    """The pages of this file."""

    @site.get("/history")
    def history(visit: Visit) -> Response:
        events = _events(site, visit)[::-1]
        first = max(0, int(visit.field("from"))) if visit.field("from").isdecimal() else 0
        chosen = _chosen(visit)
        return site.show(
            visit,
            "history.html",
            events=[_line(event) for event in events[first : first + _ON_A_PAGE]],
            found=len(events),
            first=first,
            newer=urlencode({**chosen, "from": max(0, first - _ON_A_PAGE)}) if first else None,
            older=urlencode({**chosen, "from": first + _ON_A_PAGE})
            if first + _ON_A_PAGE < len(events)
            else None,
            tables=site.names(visit),
            kinds=("release", "repeat") if visit.role == ANALYST else KINDS,
            chosen=chosen,
            query=urlencode(chosen),
        )

    @site.get("/history.json")
    def history_json(visit: Visit) -> Response:
        text = to_json({"schema": SCHEMA, "history": _events(site, visit)})
        return _file(text, "history.json", "application/json")

    @site.get("/history.csv")
    def history_csv(visit: Visit) -> Response:
        out = StringIO()
        writer = csv.writer(out, lineterminator="\r\n")
        writer.writerow(_COLUMNS)
        for event in _events(site, visit):
            writer.writerows(_csv_rows(event))
        return _file(out.getvalue(), "history.csv", "text/csv; charset=utf-8")

    @site.get("/budgets")
    def budgets(visit: Visit) -> Response:
        events = site.office.history(visit.token, kind="release")
        accounts = site.office.accounts(visit.token)
        quotas = {table["name"]: table.get("quota") for table in site.tables(visit)}
        tables = [
            _budget(name, list(of_table), quotas.get(name), [e for e in events if e["table"] == name])
            for name, of_table in groupby(accounts, key=lambda account: account.table)
        ]
        return site.show(visit, "budgets.html", tables=tables, is_own=visit.role == ANALYST)


# ---- history -----------------------------------------------------------------------------------------------


def _chosen(visit: Visit) -> dict[str, str]:
    return {name: visit.field(name) for name in _FILTERS if visit.field(name)}


def _events(site: Site, visit: Visit) -> list[dict[str, Any]]:
    return site.office.history(visit.token, **_chosen(visit))


def _line(event: dict[str, Any]) -> dict[str, Any]:
    """What the page shows of something that was done."""
    tables = event.get("tables") or [event.get("table") or ""]
    return {
        "time": event["time"],
        "entry": event["entry"],
        "kind": event["kind"],
        "table": ", ".join(str(table) for table in tables),
        "what": _what(event),
        "actor": event.get("actor") or "",
        "purpose": event.get("purpose") or "",
        "state": event.get("state") or "",
        "answers": [_short(receipt) for receipt in event.get("receipts", [])],
    }


def _what(event: dict[str, Any]) -> str:
    """What was done, in a few words."""
    kind = event["kind"]
    if event.get("queries"):
        return "; ".join(map(str, event["queries"]))
    if kind == "approval":
        said = "approved" if event.get("approved") else "declined"
        return f"{said} a share of {event.get('share')} for {event.get('asked_by')}"
    if kind == "token":
        return f"{'revoked' if event.get('revoked') else 'granted'}: {event.get('name')}, {event.get('role')}"
    if kind == "refused":
        return f"{event.get('reason')}, {event.get('times')} times"
    if kind == "person":
        return "looked somebody up"
    if kind == "description":
        return "agreed to the description of the tables"
    if event.get("people") is not None:
        return f"{event['people']:,} people"
    return ""


def _short(receipt: dict[str, Any]) -> str:
    """An answer in a few words."""
    rows = [row for answer in answers_of(receipt) for row in answer.rows]
    if len(rows) != 1:
        return f"{len(rows):,} numbers"
    interval = f" ({rows[0].interval})" if rows[0].interval and rows[0].low is not None else ""
    return f"{rows[0].text}{interval}"


def _csv_rows(event: dict[str, Any]) -> Iterator[list[Any]]:
    """A row for each number that was released, and one for anything else that was done."""
    line = _line(event)
    about = [_cell(line[name]) for name in _COLUMNS[:8]]
    rows = [row for receipt in event.get("receipts", []) for a in answers_of(receipt) for row in a.rows]
    for row in rows:
        yield [*about, _cell(", ".join(row.names)), row.value, row.low, row.high]
    if not rows:
        yield [*about, "", "", "", ""]


def _cell(value: Any) -> Any:
    """A cell that no spreadsheet takes for a formula.

    >>> _cell("=1+1"), _cell("people"), _cell(5)
    ("'=1+1", 'people', 5)
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _file(text: str, name: str, kind: str) -> Response:
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(text, 200, headers, media_type=kind)


# ---- budgets -----------------------------------------------------------------------------------------------


def _budget(
    name: str, accounts: list[Account], quota: dict[str, Any] | None, events: list[dict[str, Any]]
) -> dict[str, Any]:
    """What a page shows of a table's accounts."""
    protected = [account for account in accounts if 0 < account.level < inf]
    marks = [
        Mark(_tier(a), _part(a.spent[1], a.level), f"{_part(a.spent[1], a.level):.0%} spent")
        for a in protected
    ]
    return {
        "name": name,
        "quota": quota,
        "accounts": [
            {
                "tier": _tier(account),
                "level": amount_text(account.level),
                "people": account.people,
                "spent": _range(account.spent),
                "left": _range(account.left),
                "is_public": account.level == inf,
            }
            for account in accounts
        ],
        "picture": pictures.bars("How much of what they allow is spent, by those who spent most", marks, 1.0),
        "over_time": _over_time(protected, events),
        "releases": len(events),
    }


def _tier(account: Account) -> str:
    return account.tier or f"level {amount_text(account.level)}"


def _part(amount: float, level: float) -> float:
    return min(1.0, amount / level)


def _range(ends: tuple[float, float]) -> str:
    return " … ".join(dict.fromkeys(amount_text(x) for x in ends))


def _over_time(accounts: list[Account], events: list[dict[str, Any]]) -> Any:
    """The part of each level that these releases have charged, as time goes on; empty: none has."""
    charged = [event for event in events if event.get("booked")]
    if not charged or not accounts:
        return ""
    times = [datetime.fromisoformat(event["time"]).timestamp() for event in charged]
    begin, end = times[0], datetime.now(UTC).timestamp()
    lines = []
    for account in accounts:
        level, total, steps = amount_text(account.level), 0.0, []
        for time, event in zip(times, charged, strict=True):
            of_level = [float(line["charge"]) for line in event["booked"] if line["level"] == level]
            total += max(of_level, default=0.0) / account.level
            steps.append(((time - begin) / max(end - begin, 1.0), min(1.0, total)))
        lines.append(Line(_tier(account), tuple(steps), f"{min(1.0, total):.0%}"))
    first = datetime.fromtimestamp(begin, UTC).strftime("%Y-%m-%d")
    return pictures.staircase("Charged by these releases, as time went on", lines, first, "now")
