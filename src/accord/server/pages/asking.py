"""The page that asks: the plan appears while one types, and one button releases what was planned."""

from __future__ import annotations

import json
import secrets
from typing import Any
from urllib.parse import parse_qsl, urlencode

from fastapi import Response
from rich.text import Text

from accord import odds
from accord.budget import MICRO, level_text
from accord.errors import AccordError, QueryError
from accord.ledger.tokens import ANALYST
from accord.mechanisms import ALL
from accord.planning import Plan
from accord.report.gaps import gap_view
from accord.report.plans import assumptions_of, bias_text, boxes_text, group_size_note, plan_view
from accord.report.tables import error
from accord.server.asking import public_text
from accord.server.office import whole
from accord.server.pages import markup, pictures
from accord.server.pages.form import STATISTICS, Form, as_command, as_python
from accord.server.pages.site import Site, Visit, go
from accord.server.refusals import NotThereError, spoken

_CARRIED = (
    *("table", "statistic", "column", "other", "condition", "where", "by", "and_by", "p", "k", "cells"),
    *("text", "one_row_each", "share", "mechanism", "purpose", "fresh", "low", "high", "std", "gap"),
)
"""Fields of the form, which an address may carry."""
_MOST_ODDS = 8


def add_to(site: Site) -> None:
    """The pages of this file."""

    @site.get("/ask")
    def ask_page(visit: Visit) -> Response:
        tables = site.tables(visit)
        if not tables:
            return site.show(visit, "nothing_to_ask.html")
        form = _form(tables, visit)
        planned = _planned(site, visit, form)
        return site.show(visit, "ask.html", tables=tables, **_chosen(form), **planned)

    @site.get("/ask/plan")
    def plan_part(visit: Visit) -> Response:
        tables = site.tables(visit)
        if not tables:
            raise NotThereError
        form = _form(tables, visit)
        part = site.show(visit, "ask_part.html", **_chosen(form), **_planned(site, visit, form))
        part.headers["hx-replace-url"] = f"/ask?{_query(visit.fields)}"
        return part

    @site.post("/ask/release")
    def release(visit: Visit) -> Response:
        table, key = visit.field("table"), visit.field("key")
        back = _query(dict(parse_qsl(visit.field("back"), keep_blank_values=True, max_num_fields=100)))
        try:
            taken = site.office.submit(visit.token, table, _asked(visit), key)
        except NotThereError:
            raise
        except AccordError as fault:
            status = 409 if public_text(fault) else 503
            return site.show(visit, "not_released.html", status, message=_said(site, fault), back=back)
        return go(f"/requests/{taken['id']}")


def _asked(visit: Visit) -> Any:
    """What was planned, as the form carries it."""
    try:
        return json.loads(visit.field("asked"))
    except (ValueError, RecursionError):
        pass
    raise QueryError("this form cannot be read. Open the page anew, and ask from there.")


def _said(site: Site, fault: AccordError) -> str:
    return public_text(fault) or spoken(fault, site.office.ledger.label)


def _query(fields: dict[str, str]) -> str:
    return urlencode({name: fields[name] for name in _CARRIED if fields.get(name, "").strip()})


def _form(tables: list[dict[str, Any]], visit: Visit) -> Form:
    name = visit.field("table") or tables[0]["name"]
    table = next((table for table in tables if table["name"] == name), None)
    if table is None:
        raise NotThereError
    return Form(table, visit.fields)


def _chosen(form: Form) -> dict[str, Any]:
    return {
        "form": form,
        "statistics": STATISTICS,
        "mechanisms": [mechanism.name for mechanism in ALL],
    }


def _planned(site: Site, visit: Visit, form: Form) -> dict[str, Any]:
    """The plan of what is filled in, or what is still to be said, or why there is none."""
    nothing: dict[str, Any] = {
        "plan": None,
        "wrong": "",
        "missing": form.missing,
        "quota": form.table.get("quota"),
    }
    if form.missing:
        return nothing
    name = form.table["name"]
    try:
        asked = form.request()
        plan, _ = site.office.plan(visit.token, name, asked)
    except NotThereError:
        raise
    except AccordError as fault:
        return {**nothing, "wrong": _said(site, fault)}
    url, key = str(visit.request.base_url).rstrip("/"), secrets.token_urlsafe(16)
    return {
        **nothing,
        "plan": shown_plan(plan),
        "asked": json.dumps(asked, ensure_ascii=False),
        "key": key,
        "back": _query({**visit.fields, "table": name}),
        "may_release": visit.role == ANALYST,
        "needs_approval": whole(asked["share"]) > site.office.settings.approve_above,
        "share": level_text(whole(asked["share"])),
        "share_part": whole(asked["share"]) / MICRO,
        "python": as_python(url, name, asked),
        "command": as_command(url, name, asked, key),
    }


def _caveats(plan: Plan) -> list[str]:
    """What an error that is shown large is right for: else it would flatter."""
    views = (*gap_view(plan), *group_size_note(plan))
    supposed = (sentence for sentence in plan.assumptions if "errors are predicted as if" in sentence)
    return [*(view.plain for view in views if isinstance(view, Text)), *supposed]


def shown_plan(plan: Plan) -> dict[str, Any]:
    """What a page shows of a plan."""
    spec = plan.spec
    levels = zip(spec.micro.tolist(), spec.counts, plan.cost.tolist(), strict=True)
    charges = [
        {
            "tier": spec.tier(level) or "",
            "level": level_text(level),
            "people": people,
            "charge": level_text(charge),
            "part": charge / level,
            "odds": odds.charge_in_words(level, charge, spec.tier(level), "ε = {}") if k < _MOST_ODDS else "",
        }
        for k, (level, people, charge) in enumerate(levels)
    ]
    parts = [
        {
            "label": part.query.label,
            "mechanism": part.mechanism,
            "reason": part.reason,
            "rmse": error(part.rmse),
            "rmse_here": error(part.rmse_here),
            "unit": "" if part.unit == "value" else part.unit,
            "picture": pictures.candidates(part),
            "bias": bias_text(part).plain,
            "caveats": _caveats(part),
        }
        for part in plan.parts
    ]
    first = parts[0]
    summary = (
        f"{first['label']}: by {first['mechanism']}, expected error {first['rmse_here']} {first['unit']}"
    )
    return {
        "parts": parts,
        "charges": charges,
        "opted_out": spec.opted_out,
        "assumptions": list(dict.fromkeys(s for part in plan.parts for s in assumptions_of(part))),
        "about_rows": plan.parts[0].about_rows,
        "boxes": boxes_text(plan) if plan.is_workload else [],
        "everything": markup.of_view(plan_view(plan)),
        "summary": summary if len(parts) == 1 else f"{len(parts)} questions are planned together",
    }
