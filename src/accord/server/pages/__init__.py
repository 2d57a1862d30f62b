"""Pages: what people see of the service. Every page works without scripts; htmx only saves reloads.

    site.py       a page: who looks, what was filled in, and how it is shown
    markup.py     views of report/ and numbers as HTML without styles of its own
    entering.py   signing in and out, the first page
    asking.py     a question, its plan while one types, and its release; form.py, what was filled in
    answering.py  what has become of a request; answers.py, an answer as rows
    looking.py    budgets and history, with files to take along
    levels.py     what if people chose otherwise
    guarding.py   for the officer: approvals, persons, withdrawals, the description
    owning.py     tokens, the sheet for the board, the audit

All rules are the office's: pages call its methods, and are refused as programs are.
"""

from __future__ import annotations

from accord.server.access import Sessions
from accord.server.guard import Throttle
from accord.server.office import Office
from accord.server.pages import answering, asking, entering, guarding, levels, looking, owning
from accord.server.pages.site import Site

__all__ = ["Site", "pages"]
_GROUPS = (entering, asking, answering, looking, levels, guarding, owning)


def pages(office: Office, throttle: Throttle, is_encrypted: bool) -> Site:
    """All pages of an office."""
    site = Site(office, Sessions(), throttle, is_encrypted)
    for group in _GROUPS:
        group.add_to(site)
    return site
