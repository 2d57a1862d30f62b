"""For whoever answers for the tables: who may ask what, the sheet for the board, and the audit."""

from __future__ import annotations

from fastapi import Response

from accord.budget import level_text
from accord.ledger.tokens import OFFICER, OWNER, ROLES, Token
from accord.mechanisms import ALL
from accord.report.board import board, board_html
from accord.server.pages import markup
from accord.server.pages.audits import STATISTICS, Audits
from accord.server.pages.site import Site, Visit, go


def add_to(site: Site) -> None:
    """The pages of this file."""
    office, audits = site.office, Audits()

    @site.get("/access")
    def access(visit: Visit) -> Response:
        tokens = [_shown(token) for token in office.all_tokens(visit.token)]
        return site.show(visit, "access.html", tokens=tokens, roles=ROLES, own=visit.token.id)

    @site.post("/access")
    def revoke(visit: Visit) -> Response:
        office.revoke(visit.token, visit.field("revoked"), visit.field("purpose"))
        return go("/access")

    @site.get("/board")
    def board_page(visit: Visit) -> Response:
        office.refuse_others(visit.token, OFFICER, OWNER)
        names = list(office.desks)
        name = visit.field("table") or (names[0] if names else "")
        table = office.table(visit.token, name)
        document = board(office.ledger, name, table["about"]) | {"ledger": office.settings.title}
        sheet = markup.without_styles(board_html(document))
        return site.show(visit, "board.html", sheet=sheet, name=name, tables=names)

    # ---- the audit -----------------------------------------------------------------------------------------

    @site.get("/audit")
    def audit(visit: Visit) -> Response:
        office.refuse_others(visit.token, OFFICER, OWNER)
        template = "audit_part.html" if visit.is_partial else "audit.html"
        names = [mechanism.name for mechanism in ALL]
        return site.show(visit, template, run=audits.newest, mechanisms=names, statistics=STATISTICS)

    @site.post("/audit")
    def run_audit(visit: Visit) -> Response:
        office.refuse_others(visit.token, OFFICER, OWNER)
        audits.start(visit.field("mechanism"), visit.field("statistic"))
        return go("/audit")

    @site.get("/audit/page.html")
    def audit_page(visit: Visit) -> Response:
        office.refuse_others(visit.token, OFFICER, OWNER)
        headers = {"content-disposition": 'attachment; filename="audit.html"'}
        return Response(audits.page(), 200, headers, media_type="text/html")


def _shown(token: Token) -> dict[str, object]:
    return {
        "id": token.id,
        "name": token.name,
        "role": token.role,
        "grants": [
            f"{table}: {level_text(grant.share)} a {grant.per}" for table, grant in token.grants.items()
        ],
        "expires": token.expires,
        "state": "revoked" if token.revoked else "valid" if token.is_valid else "expired",
    }
