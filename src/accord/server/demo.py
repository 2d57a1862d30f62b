"""An office to try: the bundled people, a ledger and a token for each role, in a folder of its own."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from accord import catalogs
from accord.budget import MICRO
from accord.ledger import Ledger, tokens
from accord.ledger.signing import Signature
from accord.ledger.tokens import ANALYST, OFFICER, OWNER, Grant

_DESCRIPTION = """\
schema = 1
ledger = "accord.db"

[service]
title = "accord: a demonstration"

[tables.people]
about = "20,000 US tax units (CPS 2013-2015, CC0), with tiers drawn from published shares"
source = "people.parquet"
user = "person"
epsilon = "tier"
tiers = { strict = 0.1, standard = 1, public = inf, "opted out" = 0 }

[tables.people.columns.income]
about = "dollars a year"
bounds = [0, 200_000]
missing = "none"

[tables.people.columns.wage]
about = "dollars a year"
bounds = [0, 200_000]

[tables.people.columns.age]
about = "years"
bounds = [18, 100]
step = 1

[tables.people.columns.household]
bounds = [1, 16]

[tables.people.columns.children]
bounds = [0, 10]

[tables.people.columns.filing_status]
keys = ["single", "joint", "separate", "head_of_household"]

[tables.people.columns.foodstamps]
keys = [true, false]
"""
_DAYS = 30


class Demo(NamedTuple):
    """Where the demonstration lies, and who may sign in."""

    catalog: Path
    tokens: dict[str, str]
    """Their texts, by role."""


def make_demo(folder: Path) -> Demo:
    """Write everything that a service needs into an empty folder."""
    catalog = folder / catalogs.FILE
    catalog.write_text(_DESCRIPTION, encoding="utf-8")
    (folder / "people.parquet").write_bytes((files("accord.data") / "people.parquet").read_bytes())
    ledger = Ledger(folder / "accord.db")
    signature = Signature("demo", "a demonstration")
    ledger.register(
        catalogs.catalog(catalog)["people"], "people", actor=signature.actor, purpose=signature.purpose
    )
    grants = {ANALYST: {"people": Grant(MICRO, "month")}}
    texts = {}
    for role, name in ((ANALYST, "ada"), (OFFICER, "olive"), (OWNER, "omar")):
        texts[role] = tokens.add(ledger.books, name, role, grants.get(role, {}), _DAYS, signature)[1]
    return Demo(catalog, texts)
