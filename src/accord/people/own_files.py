"""Keys are public knowledge, and never what stands in the table: its values would tell who is there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from accord.engines import absolute
from accord.planning import Plan
from accord.statistics import Query, Workload
from accord.statistics.declared import Undescribed, asked_with

OWN = (
    "keys={!r} is a file of people, not a public list: its values would tell who is there. Name the keys "
    "from public knowledge, in a file or a list of their own."
)


def files_of(source: Any) -> set[Path]:
    """The files that a source is read from: those of a path, a pattern, a folder, or several of them."""
    files: set[Path] = set()
    for place in source if isinstance(source, list) else [source]:
        if isinstance(place, Path) or (isinstance(place, str) and "://" not in place):
            path = Path(absolute(place))
            top = Path(path.anchor)
            found = path.rglob("*") if path.is_dir() else top.glob(str(path.relative_to(top)))
            files |= {file.resolve() for file in (path, *found)}
    return files


def is_own(path: str | PathLike[str], sources: Iterable[Any]) -> bool:
    """Whether a file of keys is one of those that the people are read from."""
    file = Path(path).resolve()
    return any(file in files_of(source) for source in sources)


def key_files_of(asked: Any) -> Iterator[str | PathLike[str]]:
    """The files of keys that a question, a workload or a plan was asked with."""
    asked = asked.query if isinstance(asked, Plan) else asked
    for query in asked.queries if isinstance(asked, Workload) else (asked,):
        known = asked_with(query) if isinstance(query, Query | Undescribed) else None
        keys = None if known is None else known[1].get("keys")
        for each in keys.values() if isinstance(keys, Mapping) else (keys,):
            if isinstance(each, (str, PathLike)):
                yield each
