"""The fingerprint of a plan: two plans with the same one answer the same question about the same levels, by
the same mechanism with the same charges. Words do not matter.

A question is frozen plain data, so that all of it goes into the hash, field by field and with its type: what
is added to a statistic later is not forgotten here. Of a condition it is what was read of it, not how it was
written: "x>.5" is "x > 0.5". Of counts and proportions ledgers have the fingerprints of plans from before as
they were written (`fingerprint_as_written`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import date
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from accord.statistics import Algorithm, Count, Part, Proportion

if TYPE_CHECKING:
    from accord.mechanisms.record import Calibration
    from accord.planning.plan import Plan


_Words: TypeAlias = Mapping[type[Any], tuple[str, ...]]
_WORDS: _Words = {Part: ("where", "suppress", "largest")}
"""Fields that do not count: what stands beside what was read of it; and what is shown of an answer."""
_NOT_AS_WRITTEN: _Words = {**_WORDS, Count: ("where",), Proportion: ("text",)}


def fingerprint(plan: Plan) -> str | None:
    """Of a plan; None: it runs somebody's own algorithm, which nothing tells from another of its name."""
    return _fingerprint(plan, _NOT_AS_WRITTEN)


def fingerprint_as_written(plan: Plan) -> str | None:
    """The one that ledgers had before, with the words of a count's or proportion's condition."""
    return _fingerprint(plan, _WORDS)


def _fingerprint(plan: Plan, words: _Words) -> str | None:
    if any(isinstance(part.query, Algorithm) for part in plan.parts):
        return None
    return _digest(_pieces(plan, words))


def digest_of(value: Any) -> str:
    """Of plain data: texts, numbers, dates, tuples of these and the like."""
    return _digest(_plain(value, _WORDS))


def _is_left_out(name: str, value: Any) -> bool:
    """Whether a field of a question says that something is not asked for which there was not always."""
    return (name in ("rounded", "about_everyone") and not value) or (name == "gap" and value is None)


def _digest(pieces: Iterable[bytes]) -> str:
    digest = hashlib.sha256(b"accord plan 1")
    for piece in pieces:
        digest.update(f"{len(piece)}\n".encode())
        digest.update(piece)
    return digest.hexdigest()


def _pieces(plan: Plan, words: _Words) -> Iterator[bytes]:
    yield from _plain((plan.query, plan.read_as, plan.share, plan.neighbors, plan.spec.fingerprint), words)
    if plan.choice is not None:
        choice = (plan.choice.mechanism, _whole_numbers(plan.choice.calibration), plan.choice.times)
        yield from _plain(choice, words)
    for key, part in plan.plans.items():
        yield from _plain(key, words)
        yield from (b"nobody",) if part is None else _pieces(part, words)


def _whole_numbers(calibration: Calibration) -> dict[str, Any]:
    """Charges and levels; floats follow from them and the question, and machines round them differently."""
    return {
        name: value
        for name, value in vars(calibration).items()
        if isinstance(value, int) or (isinstance(value, np.ndarray) and value.dtype == np.int64)
    }


def _plain(value: Any, words: _Words) -> Iterator[bytes]:
    """Plain data as bytes, each piece after its type; without the fields of these `words`."""
    yield type(value).__name__.encode()
    match value:
        case np.ndarray():
            yield value.tobytes()
        case tuple() | list():
            yield str(len(value)).encode()
            for item in value:
                yield from _plain(item, words)
        case frozenset():
            yield from _plain(sorted(value), words)
        case Mapping():
            yield from _plain(tuple(value.items()), words)
        case None | bool() | int() | float() | str() | Fraction() | date():
            yield repr(value).encode(errors="surrogatepass")
        case _ if is_dataclass(value):
            # of groups by one column, what ledgers have from before there were groups by several
            asked = dict(zip(("by", "keys"), value.as_asked, strict=True)) if isinstance(value, Part) else {}
            for field in fields(value):
                if field.name in words.get(type(value), ()):
                    continue
                if _is_left_out(field.name, getattr(value, field.name)):
                    continue  # as ledgers have it from before there was such a thing
                yield field.name.encode()
                yield from _plain(asked.get(field.name, getattr(value, field.name)), words)
        case _:
            raise TypeError(f"{type(value).__name__} is not plain data")
