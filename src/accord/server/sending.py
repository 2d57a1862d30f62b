"""Sending: a question as the document that a service reads (asking.py)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from fractions import Fraction
from math import inf
from numbers import Integral, Real
from typing import Any

from accord.errors import QueryError
from accord.statistics import Query, Workload
from accord.statistics.declared import Undescribed, asked_with


def request_document(asked: Query | Workload | Undescribed) -> dict[str, Any]:
    """One question, or several.

    Raises:
        QueryError: it is of a kind that no service answers.
    """
    if isinstance(asked, Workload):
        each = zip(asked.queries, asked.weights, strict=True)
        return {"questions": [_question(query) | {"weight": weight} for query, weight in each]}
    name, arguments = asked_with(asked) or ("", {})
    if name == "workload":
        weights = arguments.get("weights") or [1] * len(arguments["queries"])
        each = zip(arguments["queries"], weights, strict=True)
        return {"questions": [_question(query) | {"weight": weight} for query, weight in each]}
    return {"question": _question(asked)}


def _question(query: Any) -> dict[str, Any]:
    name, arguments = asked_with(query) or ("", {})
    if not name:
        raise QueryError(
            f"{getattr(query, 'label', 'this')} cannot be sent to a service. Ask with accord.mean and "
            "its siblings."
        )
    given = {key: value for key, value in arguments.items() if value is not None}
    if name == "_largest":  # as accord.top asks
        name = "top"
        given["column"] = given.pop("by")
    if given.get("membership") == "private":
        del given["membership"]
    return {"statistic": name, **sendable(given)}


def sendable(given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as JSON has them."""
    return {str(name): _plain(str(name), value) for name, value in given.items()}


def _plain(name: str, value: Any) -> Any:
    if hasattr(value, "tolist"):  # of NumPy, pandas, …
        value = value.tolist()
    match value:
        case None | bool() | str():
            return value
        case date():
            return value.isoformat()
        case Integral():
            return int(value)
        case Real() | Decimal() if abs(number := float(value)) < inf:
            if isinstance(value, Decimal | Fraction) and Fraction(repr(number)) != value:
                raise QueryError(f"{name}= holds {value}, which JSON has no number for. Give {number}.")
            return number
        case Mapping():
            return {str(key): _plain(name, each) for key, each in value.items()}
        case Iterable() if not isinstance(value, bytes):
            return [_plain(name, each) for each in value]
    raise QueryError(f"{name}= holds a {type(value).__name__}, which cannot be sent to a service.")
