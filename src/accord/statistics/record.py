"""What a statistic is, to whoever lists them: its name, how to ask for it, and its kind of target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from accord.statistics.query import Query


@dataclass(frozen=True)
class Statistic:
    """A statistic that can be asked for by name."""

    name: str
    ask: Callable[..., Query]
    family: type[Any]
    """Which of target.py its target is, under every relation: mechanisms say which of these they answer."""
    options: tuple[str, ...]
    """What `ask` takes besides where, by, keys and membership, in the words of the command line."""
    listed: bool = True
    """Whether it is a statistic of its own, not another name for one."""
