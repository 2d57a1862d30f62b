"""The fingerprint of a plan: two plans with the same one answer the same question about the same levels, by
the same mechanism with the same numbers. Words do not matter.

A question is frozen plain data, so that all of it goes into the hash, field by field and with its type: what
is added to a statistic later is not forgotten here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import date
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from accord.statistics import Algorithm

if TYPE_CHECKING:
    from accord.planning.plan import Plan


def fingerprint(plan: Plan) -> str | None:
    """Of a plan; None: it runs somebody's own algorithm, which nothing tells from another of its name."""
    if any(isinstance(part.query, Algorithm) for part in plan.parts):
        return None
    digest = hashlib.sha256(b"accord plan 1")
    for piece in _pieces(plan):
        digest.update(f"{len(piece)}\n".encode())
        digest.update(piece)
    return digest.hexdigest()


def _pieces(plan: Plan) -> Iterator[bytes]:
    yield from _plain((plan.query, plan.read_as, plan.share, plan.neighbors, plan.spec.fingerprint))
    if plan.choice is not None:
        numbers = {name: value for name, value in vars(plan.choice.calibration).items() if name != "note"}
        yield from _plain((plan.choice.mechanism, numbers, plan.choice.times))
    for key, part in plan.plans.items():
        yield from _plain(key)
        yield from (b"nobody",) if part is None else _pieces(part)


def _plain(value: Any) -> Iterator[bytes]:
    """Plain data as bytes, each piece after its type."""
    yield type(value).__name__.encode()
    match value:
        case np.ndarray():
            yield value.tobytes()
        case tuple() | list():
            yield str(len(value)).encode()
            for item in value:
                yield from _plain(item)
        case frozenset():
            yield from _plain(sorted(value))
        case Mapping():
            yield from _plain(tuple(value.items()))
        case None | bool() | int() | float() | str() | Fraction() | date():
            yield repr(value).encode(errors="surrogatepass")
        case _ if is_dataclass(value):
            for field in fields(value):
                yield field.name.encode()
                yield from _plain(getattr(value, field.name))
        case _:
            raise TypeError(f"{type(value).__name__} is not plain data")
