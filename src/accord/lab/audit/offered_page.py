"""The page docs/offered.md: every combination in tables, of what behaves alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from string import ascii_lowercase
from typing import Any

from accord.lab.audit.cases import NEIGHBORS
from accord.lab.audit.examples import MECHANISMS, MODIFIERS, QUESTIONS
from accord.lab.audit.offered import ENGINES, combinations

_INTRODUCTION = """# What is offered

<!-- made by python -m accord.lab.audit.offered_page -->

Every statistic × mechanism × notion of neighbors × modifier × engine, as accord itself answers when it is
asked: {offered:,} combinations of {all:,} are offered, the others are refused before anybody is charged. A
table is about statistics that behave alike, a row about mechanisms and a column about modifiers that do.

- ✓ is offered: the tests release it (`tests/promises/test_offered.py`).
- A letter is refused, for the reason [below](#reasons): the tests see that it is, and that it costs nothing.
- ✓<sup>b</sup> is offered, but for the reason b not on {others}. Otherwise engines make no difference.
- Where {relations} are not all alike, they stand in this order, as ✓ / ✓ / a.

The columns:
"""
_FOLDED = (
    (r"^answers .* only$", "it answers other statistics"),
    (r"^accord\.\w+ has no \w+=$", "its function takes no such argument"),
)
"""Reasons that differ only in what a table shows anyway."""


Symbols = dict[tuple[str, str, str], str]
"""Of statistic, mechanism and modifier."""


def page() -> str:
    """docs/offered.md."""
    every = list(combinations())
    letters: dict[str, str] = {}
    by_engine: dict[tuple[str, str, str, str], dict[str, str]] = {}
    for c in every:
        entry = by_engine.setdefault((c.statistic, c.mechanism, c.modifier, c.neighbors), {})
        entry[c.engine] = _letter(c.reason, letters)
    symbols: Symbols = {}
    for statistic, mechanism, modifier, _ in by_engine:
        each = [_symbol(by_engine[statistic, mechanism, modifier, n]) for n in NEIGHBORS]
        symbols[statistic, mechanism, modifier] = each[0] if len({*each}) == 1 else " / ".join(each)
    columns = _alike(MODIFIERS, lambda m: [symbol for key, symbol in symbols.items() if key[2] == m])
    others = " or ".join(name for name, lends in ENGINES.items() if not lends)
    said = {"offered": sum(c.offered for c in every), "all": len(every), "others": others}
    parts = [_INTRODUCTION.format(**said, relations=", ".join(f"`{n}`" for n in NEIGHBORS))]
    parts += [f"- **{group[0]}**: {'; '.join(MODIFIERS[m].words for m in group)}" for group in columns]
    for family in _alike(QUESTIONS, lambda s: [symbol for key, symbol in symbols.items() if key[0] == s]):
        parts.append(f"\n## {', '.join(family)}\n\n" + _table(family[0], columns, symbols))
    parts.append("\n## Reasons\n")
    parts += [f"- **{letter}**: {_sentence(reason)}" for reason, letter in letters.items()]
    return "\n".join(parts) + "\n"


def _letter(reason: str, letters: dict[str, str]) -> str:
    for pattern, words in _FOLDED:
        reason = re.sub(pattern, words, reason)
    return letters.setdefault(reason, ascii_lowercase[len(letters)]) if reason else ""


def _symbol(by_engine: dict[str, str]) -> str:
    """Of the engines together: ✓, a letter, or ✓ with the letter of those that refuse."""
    letters = set(by_engine.values())
    if letters == {""}:
        return "✓"
    return f"✓<sup>{max(letters)}</sup>" if "" in letters else "".join(sorted(letters))


def _alike(names: Iterable[str], of: Callable[[str], Any]) -> list[list[str]]:
    """Names in groups of those for which everything is the same."""
    groups: dict[Any, list[str]] = {}
    for name in names:
        groups.setdefault(tuple(of(name)), []).append(name)
    return list(groups.values())


def _table(statistic: str, columns: list[list[str]], symbols: Symbols) -> str:
    lines = [["", *(group[0] for group in columns)], ["---"] * (len(columns) + 1)]

    def row(mechanism: str) -> list[str]:
        return [symbols[statistic, mechanism, group[0]] for group in columns]

    for mechanisms in _alike(MECHANISMS, row):
        lines.append([", ".join(f"`{name}`" for name in mechanisms), *row(mechanisms[0])])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _sentence(reason: str) -> str:
    return reason if reason.endswith(".") else f"{reason}."


if __name__ == "__main__":
    print(page(), end="")
