"""Settings of the service: [service] of accord.toml.

[service]
title = "Statistics of the clinic"
hosts = ["statistics.clinic.example"]
approve_above = 0.1
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from accord.budget import MICRO
from accord.toml_files import NUMBER, TEXT, TEXTS, Field, Form, Section


def _is_count(x: Any) -> bool:
    return isinstance(x, int) and not isinstance(x, bool) and 0 < x <= 10_000


COUNT = Form("a whole number above 0", _is_count, {"type": "integer", "minimum": 1, "maximum": 10_000})
SERVICE = (
    Field("title", TEXT, "What the service is called on its pages"),
    Field("hosts", TEXTS, "Names under which it is reached; this machine alone if it is left out"),
    Field("approve_above", NUMBER, "Requests for a larger share wait for the officer; 0.1 if it is left out"),
    Field("queue", COUNT, "So many requests may wait for their turn; 100 if it is left out"),
    Field("queue_each", COUNT, "So many of one analyst; 20 if it is left out"),
    Field("longest", COUNT, "Seconds that one scan may take; 600 if it is left out"),
    Field("heads", TEXT, "A file, elsewhere, to which the head of the ledger is written again and again"),
    Field("heads_every", COUNT, "After so many minutes; 60 if it is left out"),
)


@dataclass(frozen=True)
class Settings:
    """How the service is run."""

    title: str = "accord"
    hosts: tuple[str, ...] = ()
    approve_above: int = MICRO // 10
    """In millionths."""
    queue: int = 100
    queue_each: int = 20
    longest: int = 600
    """In seconds."""
    heads: str | None = None
    heads_every: int = 60
    """In minutes."""


def read_settings(section: Section) -> Settings:
    """What [service] says."""
    given: Mapping[str, Any] = section.read(SERVICE)
    hosts = given.get("hosts", ())
    above = given.get("approve_above", 0.1)
    if not 0 <= above <= 1:
        section.refuse("approve_above", "it is a share of everyone's level, from 0 (all of them wait) to 1.")
    return Settings(
        given.get("title", "accord"),
        (hosts,) if isinstance(hosts, str) else tuple(hosts),
        round(above * MICRO),
        given.get("queue", 100),
        given.get("queue_each", 20),
        given.get("longest", 600),
        given.get("heads"),
        given.get("heads_every", 60),
    )
