"""Statistic: what can be asked for by name, its options, and which mechanisms may answer it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from accord.statistics.query import Query


@dataclass(frozen=True)
class Option:
    """An option that one statistic alone takes, as the command line shows it."""

    name: str
    """--name on the command line, and what `ask` calls it."""
    type: type[Any]
    metavar: str
    help: str
    needed: str = ""
    """What is said where it is missing; empty: it may be left out."""


@dataclass(frozen=True)
class Statistic:
    """A statistic that can be asked for by name."""

    name: str
    ask: Callable[..., Query]
    family: type[Any]
    """Which class of target_sums.py or target_ranks.py its target is, under every relation."""
    options: tuple[str, ...]
    """What `ask` takes besides where, by, keys and membership, in the words of the command line."""
    own_options: tuple[Option, ...] = ()
    """Those of `options` that no other statistic takes: it declares them itself."""
    is_alias: bool = False
    """Whether it is another name for a statistic, as median is for a quantile."""
    is_by_columns: bool = False
    """Whether the columns that it names are those of its groups, so that it takes no `by`."""
