"""Ledgers as tables of text: budgets, history and verdicts, for the command line."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from accord.budget import amount_text, level_text
from accord.report.tables import MOST_ROWS, add_row, bullet, error, shortened, text_table
from accord.spec import Spec

if TYPE_CHECKING:
    from accord.ledger.history import Account
    from accord.ledger.renewal import Renewal
    from accord.ledger.verifying import Verdict

_MOST_LINES = 4 * MOST_ROWS
_REASONS = {
    "budget": "somebody had too little left",
    "unsigned": "it was not said who asked, or why",
    "raise": "levels would have been raised",
    "policy": "levels would have come from elsewhere",
}
"""Why something was refused."""


def init_view(label: str, entries: int, named: str) -> RenderableType:
    """Whether a ledger was made, or is there already."""
    if entries:
        return Text(f"the ledger {label} is there already, with {entries:,} entries.")
    return Text(f"made the ledger {label}. Register a table next: 'accord ledger register {named} …'.")


def remaining_view(remaining: Spec, affordable: int | None, renewal: Renewal | None = None) -> RenderableType:
    """What is left to everyone, and how many times a plan could still be released; until when."""
    table = text_table(">left", ">expected" if remaining.is_expected else ">people")
    levels = zip(remaining.micro.tolist(), remaining.counts, strict=True)
    rows = [(level_text(level), people) for level, people in levels]
    if remaining.opted_out:
        rows.insert(0, ("0", remaining.opted_out))
    for row in shortened(rows, MOST_ROWS):
        if row is None:
            add_row(table, "…", f"{len(rows) - MOST_ROWS:,} more")
        else:
            add_row(table, row[0], f"{row[1]:,}")
    if affordable is None:
        times = "Only public people are charged: it can be released without end."
    elif affordable == 0:
        times = "Somebody has less left than this costs them: it cannot be released as it is."
    elif affordable == 1:
        times = "As it is, it can be released once."
    else:
        times = f"As it is, it can be released {affordable:,} times."
    return Group(Text("Left in the ledger", "bold"), table, Text(times, "bold"), *_about_renewal(renewal))


def _about_renewal(renewal: Renewal | None) -> list[Text]:
    """How budgets are renewed, and what that means, if they are."""
    return [] if renewal is None else [Text(f"{renewal}.")]


def accounts_view(accounts: list[Account], renewal: Renewal | None = None) -> RenderableType:
    """Budgets by table and level, with bars; and whether they are renewed."""
    if not accounts:
        return Text("No table is registered yet: 'accord ledger register'.")
    table = text_table(
        "table", "tier", ">level", ">people", ">spent", ">left", "spent of the level", title="Budgets"
    )
    for a in accounts[:_MOST_LINES]:
        level, people = amount_text(a.level), "private" if a.people is None else f"{a.people:,}"
        add_row(table, a.table, a.tier or "", level, people, _range(a.spent), _range(a.left), _bar(a))
    if len(accounts) > _MOST_LINES:
        add_row(table, f"… {len(accounts) - _MOST_LINES:,} more levels", "", "", "", "", "", "")
    note = "of people of one level the least and the most; the bar is for the most"
    if any(a.is_renewed for a in accounts):
        note += "; what was spent before budgets were renewed is not in it"
    return Group(table, Text(note, "dim"), *_about_renewal(renewal))


def _bar(account: Account) -> str:
    """How much of their level those have spent who spent most."""
    if account.level == 0:
        return "opted out"
    if account.level == inf:
        return "public"
    spent = min(1.0, account.spent[1] / account.level)
    return f"{'█' * round(20 * spent):░<20} {spent:.0%}"


def _range(ends: tuple[float, float]) -> str:
    return " … ".join(dict.fromkeys(map(amount_text, ends)))


def history_view(history: list[dict[str, Any]]) -> RenderableType:
    """Every release that was charged, with what came of it."""
    if not history:
        return Text("Nothing has been released yet.")
    table = text_table(
        ">entry", "time (UTC)", "table", "question", "mechanism", ">charges", ">rmse", "state", ">accord"
    )
    for reservation in history:
        receipts = reservation["receipts"] or [None] * len(reservation["queries"])
        for k, (query, receipt) in enumerate(zip(reservation["queries"], receipts, strict=True)):
            mechanism = "" if receipt is None else receipt["mechanism"]
            rmse = "" if receipt is None else error(receipt["rmse"])
            entry, time, name, charges, state, version = (
                _reservation_cells(reservation) if k == 0 else [""] * 6
            )
            add_row(table, entry, time, name, query, mechanism, charges, rmse, state, version)
    return table


def events_view(events: list[dict[str, Any]], releases: list[dict[str, Any]]) -> RenderableType:
    """What else was done than releases, and these."""
    table = text_table(">entry", "time (UTC)", "kind", "table", "what", "actor", "purpose")
    for event in events:
        time, tables = event["time"][:19].replace("T", " "), event.get("tables", [event.get("table")])
        names = ", ".join(filter(None, tables))
        said = (event.get("actor") or "", event.get("purpose") or event.get("why") or "")
        add_row(table, str(event["entry"] or "–"), time, event["kind"], names, _event_text(event), *said)
    return Group(table, Text(), history_view(releases)) if releases else table


def _event_text(event: dict[str, Any]) -> str:
    """What an event changed, in numbers."""
    match event["kind"]:
        case "register" if event.get("menu"):
            return f"version {event['version']}: {len(event['menu'])} private levels"
        case "register":
            counts = (
                f"{event[name]:,} {name}" for name in ("joined", "left", "lowered", "raised") if event[name]
            )
            return f"version {event['version']}: {', '.join(counts) or 'the same people and levels'}"
        case "withdraw" | "readmit":
            return f"{event['people']:,} people"
        case "policy":
            return f"requires {' and '.join(event['require']) or 'nothing'}"
        case "renewal":
            return f"from now on: {_rule(event) or 'levels are for life'}"
        case "renew":
            return f"budgets were renewed: {_rule(event)}"
        case "repeat":
            return f"given out again: {', '.join(event['queries'])}"
        case "refused":
            often = "once" if event["times"] == 1 else f"{event['times']:,} times"
            return f"{often}: {_REASONS.get(event['reason'], '')}"
        case "person":
            return "somebody was looked up" if event["known"] else "somebody was looked up who is not known"
        case "token":
            return f"{event['name']!r} {_token_text(event)}"
        case "description":
            return f"the description of the tables is agreed to: {event['description'][:12]}…"
        case "approval":
            done = "approved" if event["approved"] else "declined"
            return f"{done}: a share of {event['share']}, asked by {event['asked_by']!r}"
        case "rotate":
            return f"the key was changed: {event['people']:,} people have other hashes"
        case _:
            return "an older copy was accepted"


def _token_text(event: dict[str, Any]) -> str:
    """Who may ask what from now on."""
    if event["revoked"]:
        return f"may not sign in any more with the token {event['token']}"
    of = f" of {', '.join(event['grants'])}" if event["grants"] else ""
    return f"is {event['role']}{of} with the token {event['token']}, until {event['expires'][:10]}"


def _rule(event: dict[str, Any]) -> str:
    """How budgets are renewed, as an entry has it; empty: not at all."""
    from accord.ledger.renewal import Renewal

    return Renewal.read(event["renewal"]).rule if event["renewal"] else ""


def _reservation_cells(reservation: dict[str, Any]) -> list[str]:
    """What stands in the first line of a reservation, for all its questions."""
    paid = sorted({line["charge"] for line in reservation["booked"] if line["charge"] != "0"}, key=float)
    return [
        str(reservation["entry"]),
        reservation["time"][:19].replace("T", " "),
        f"{reservation['table']} v{reservation['version']}",
        " … ".join(dict.fromkeys((paid[0], paid[-1]))) if paid else "–",
        reservation["state"],
        reservation["accord"],
    ]


def verdict_view(verdict: Verdict) -> RenderableType:
    """Whether a ledger is whole."""
    besides = f"; {verdict.open:,} reservations without an answer, which are charged" if verdict.open else ""
    if verdict.restored:
        accepted = f"an older copy was accepted {verdict.restored:,} times"
        besides += f"; {accepted}, and what was spent after it was made is forgotten"
    if not verdict.sealed:
        besides += "; who wrote the entries was not checked, because the ledger's key is not at hand"
    if not verdict.problems:
        whole = f"whole: {verdict.entries:,} entries follow from each other, and the accounts from them"
        return Text(f"{whole}{besides}", "green")
    many = "1 problem" if len(verdict.problems) == 1 else f"{len(verdict.problems):,} problems"
    return Group(
        Text(f"{many} in {verdict.entries:,} entries{besides}", "bold red"),
        *map(bullet, verdict.problems[:_MOST_LINES]),
    )
