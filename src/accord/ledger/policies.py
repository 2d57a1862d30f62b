"""Policies: what a table says about where levels come from, and whether a new version says otherwise.

A policy is a document of public things: `Table.policy`. It is booked with the registration of a table, and a
new version must have the same, unless somebody agrees to another in their name. The moment at which a consent
register counts is booked as well, and may be another each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from accord.errors import LedgerError
from accord.ledger.store import Session
from accord.ledger.validation import registrations

_NAMES = {
    "user": "the column of people",
    "levels": "the column of levels",
    "default": "the level of people who have none",
    "neighbors": "neighbors",
}
_REGISTER = {
    "source": "the consent register",
    "user": "its column of people",
    "valid_from": "its column of dates",
}


def last_registration(db: Session, table: int) -> dict[str, Any]:
    """What the last registration of a table says; nothing if there is none."""
    contents = (entry.outline for entry in registrations(db))
    return next((content for content in contents if content.get("id") == table), {})


def policy_of(registration: dict[str, Any]) -> dict[str, Any] | None:
    """The policy in it; None: it was written by an older version, or is of a public group."""
    policy = registration.get("policy")
    return policy if isinstance(policy, dict) else None


def refuse_group_and_table(name: str, registration: dict[str, Any], parent: int | None) -> None:
    """Refuse a public group under the name of a table of its own, and the other way round.

    The levels of a group are agreed with its table, and are not looked at again. Registrations of older
    versions do not say what they are of.
    """
    if "leaving" not in registration or registration.get("group_of") == parent:
        return
    if parent is None:
        raise LedgerError(
            f"{name!r} is registered as a public group of another table. Give the table a name of its own."
        )
    raise LedgerError(
        f"a public group of this table would be registered as {name!r}, which another table is called. "
        "Register the table under another name."
    )


def policy_changes(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What another policy changes, old -> new.

    >>> policy_changes({"user": "id", "tiers": {"strict": "0.1"}}, {"user": "id", "tiers": {"strict": "1"}})
    ["tier 'strict': 0.1 -> 1"]
    """
    return [
        f"{name}: {_text(old)} -> {_text(new)}"
        for name, old, new in (*_plain(before, now), *_tiers(before, now), *_register(before, now))
        if old != new
    ]


def refuse_other_policy(name: str, changed: list[str]) -> None:
    """Refuse a version of a table that takes levels from elsewhere than the one before."""
    if changed:
        refusal = LedgerError(
            f"the new version of {name!r} has another policy than the one that is registered: "
            f"{'; '.join(changed)}. Where levels come from stays as it was agreed. Register a table that "
            "says the same; or, if the change is meant, agree=True with actor= and purpose= (on the command "
            "line --agree --why TEXT), which is booked. Nothing was registered."
        )
        raise refusal.counted("policy")


def _plain(before: dict[str, Any], now: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    return ((name, before.get(key), now.get(key)) for key, name in _NAMES.items())


def _tiers(before: dict[str, Any], now: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    old, new = before.get("tiers") or {}, now.get("tiers") or {}
    return ((f"tier {tier!r}", old.get(tier), new.get(tier)) for tier in {**old, **new})


def _register(before: dict[str, Any], now: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    old, new = before.get("register") or {}, now.get("register") or {}
    return ((name, old.get(key), new.get(key)) for key, name in _REGISTER.items())


def _text(value: Any) -> str:
    return "none" if value is None else str(value)
