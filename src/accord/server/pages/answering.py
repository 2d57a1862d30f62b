"""What has become of a request: a page that waits with whoever asked, and then shows the answer."""

from __future__ import annotations

from typing import Any

from fastapi import Response

from accord.ledger import requests
from accord.ledger.tokens import ANALYST
from accord.release.receipt import to_json
from accord.server.pages.answers import answers_of
from accord.server.pages.form import as_python
from accord.server.pages.site import Site, Visit, go

_UNSETTLED = (requests.QUEUED, requests.CHARGED, "running")
STATES = {
    requests.WAITING: "waits for approval",
    requests.QUEUED: "waits for its turn",
    requests.CHARGED: "is being answered",
    "running": "is being answered",
    requests.DONE: "answered",
    requests.FAILED: "failed",
    requests.REFUSED: "refused",
    requests.CANCELLED: "cancelled",
}


def add_to(site: Site) -> None:
    """The pages of this file."""

    @site.get("/requests/{number}")
    def request_page(visit: Visit) -> Response:
        values = _shown(site, visit, visit.part("number"))
        if visit.is_partial:
            return site.show(visit, "request_part.html", **values)
        return site.show(visit, "request.html", **values)

    @site.get("/requests/{number}/receipt.json")
    def receipt(visit: Visit) -> Response:
        document = site.office.request(visit.token, visit.part("number"))
        headers = {"content-disposition": f'attachment; filename="request-{document["id"][:8]}.json"'}
        return Response(to_json(document), 200, headers, media_type="application/json")

    @site.post("/requests/{number}/cancel")
    def cancel(visit: Visit) -> Response:
        done = site.office.cancel(visit.token, visit.part("number"))
        return go(f"/requests/{done['id']}")


def _shown(site: Site, visit: Visit, number: str) -> dict[str, Any]:
    document = site.office.request(visit.token, number)
    answer = document.get("answer", {})
    url = str(visit.request.base_url).rstrip("/")
    return {
        "asked": document,
        "state": STATES[document["state"]],
        "is_open": document["state"] in _UNSETTLED,
        "may_cancel": visit.role == ANALYST and document["state"] in (requests.WAITING, requests.QUEUED),
        "answers": answers_of(answer["receipt"]) if answer else [],
        "selected": answer.get("rows"),
        "python": as_python(url, document["table"], document["asked"]) if answer else "",
    }
