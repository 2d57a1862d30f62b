"""Whole programs: everything that a program shows, on neighboring worlds, with the noise recorded.

A `World` (running.py) is made of tables (forms.py), a program that uses accord as people do (library and
command line), and one person who is somebody else in a neighboring world. Both worlds go through the public
interface. A noise that draws nothing decides what comes out of every draw, the same in both, and notes what
it was made from. Then:

    whatever can be seen (values, plans, receipts, texts, errors, exit codes, logs, a ledger's books) is the
    same, letter by letter;
    what noise was added to, or chosen by, moves by no more than the receipt charges the person, and never by
    more than their level allows, over all releases of a ledger;
    a person who is not kept by `sample` moves nothing.

What the person may lose is reckoned by reference.py, which shares no code with accord.
"""

from __future__ import annotations

import json
import pprint
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from math import inf
from typing import Any

import accord
from accord.lab.audit import reference
from accord.lab.audit.cases import keeping
from accord.lab.audit.forms import Source
from accord.lab.audit.laws import Law, Leak, loss
from accord.lab.audit.replay import amplified
from accord.lab.audit.running import Shown, Step, World, run
from accord.ledger import Registration
from accord.planning import Plan

__all__ = ["Difference", "Source", "Step", "World", "difference", "replay", "run", "smallest"]


@dataclass(frozen=True)
class Difference:
    """What the person loses beyond what they agreed to, and the step that shows it."""

    world: World
    step: Step
    promised: Fraction | float
    found: Fraction | float
    said: str

    @property
    def script(self) -> str:
        """A program that shows it again."""
        names = "Source, Step, World, replay"
        return (
            f'"""Somebody loses more than they agreed to: {self.said}"""\n\nimport datetime\n'
            f"from decimal import Decimal\nfrom math import inf, nan\n\n"
            f"from accord.lab.audit.programs import {names}\n\n"
            f"replay(\n{pprint.pformat(self.world, width=110, sort_dicts=False)}\n)\n"
        )


def difference(world: World) -> Difference | None:
    """The first step at which two neighboring worlds differ by more than the person agreed to."""
    books = _Books(world)
    for here, there in zip(run(world), run(world.neighbor()), strict=True):
        found = books.compared(here, there)
        if found is not None:
            return found
    return None


def replay(world: World) -> None:
    """Print what a program shows on two neighboring worlds, up to the first step that tells too much."""
    found = difference(world)
    for here, there in zip(run(world), run(world.neighbor()), strict=True):
        print(f">>> {here.step.text}")
        for (label, one), (_, other) in zip(here.texts, there.texts, strict=False):
            if one != other:
                print(f"  {label} here:  {one}\n  {label} there: {other}")
        if found is not None and here.step == found.step:
            break
    print("nobody loses more than they agreed to" if found is None else f"VIOLATED: {found.said}")


class _Books:
    """What the person has lost so far, by what was drawn; and what has been charged to them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.registered: dict[str, float] = {}
        """Their level in every table of the ledger, in millionths."""
        self.lost: Fraction | float = Fraction(0)
        self.charged = 0
        self.allowed: float = inf
        """The most that they may have lost in all, in millionths."""

    def compared(self, here: Shown, there: Shown) -> Difference | None:
        step = here.step

        def differ(promised: Fraction | float, found: Fraction | float, said: str) -> Difference:
            return Difference(self.world, step, promised, found, f"{said}, at: {step.text}")

        if here.texts != there.texts:
            return differ(0, inf, _first(here.texts, there.texts))
        for label, text in here.texts:
            # a program without a line that it needs is no concern of anybody's
            if label == "error" and not text.startswith(("accord.errors.", "NameError")):
                return differ(0, inf, f"an error of another program's ({text.split(':')[0]})")
        if here.words < sum(_keeps_rows(result) for result in here.results):
            return differ(0, inf, "who is kept is not drawn anew")
        self._register(here)
        budget = self._budget(step)
        promised = self._promised(here)
        try:
            found = self._lost(here, there, budget)
        except Leak as leak:
            return differ(promised, inf, str(leak))
        if float(found) > float(promised) * (1 + 1e-9) + 1e-12:
            return differ(
                promised, found, f"{float(found):.6g} is lost where {float(promised):.6g} is charged"
            )
        if step.booked:
            self.lost += found
            if float(self.lost) * 10**6 > self.allowed * (1 + 1e-9) + 1e-6:
                most = Fraction(int(self.allowed), 10**6)
                return differ(
                    most,
                    self.lost,
                    f"{float(self.lost):.6g} is lost in all, and {float(most):.6g} was allowed",
                )
        return None

    def _level(self, step: Step) -> float | None:
        source = self.world.sources.get(step.about)
        return None if source is None else source.level(self.world.person)

    def _budget(self, step: Step) -> float:
        """What a step may take a share of: their level, or what they have left; 0 if they are not in the
        table.
        """
        level = self._level(step)
        if level is None or not step.booked:
            return level or 0
        return max(0, min([level, *self.registered.values()]) - self.charged) if step.rest else level

    def _register(self, shown: Shown) -> None:
        """A lower level counts from now on, and never gives back what is lost."""
        for result in shown.results:
            if isinstance(result, Registration):
                name = result.name
            elif (
                isinstance(result, accord.Release)
                and result.plan.is_grouped
                and shown.step.booked
                and _documents(result, shown.step, self.world)
            ):
                # tables of their own, with the level that people have now
                name = f"public groups of {shown.step.about}"
            else:
                continue
            level = self._level(shown.step)
            self.registered.pop(name, None)
            if level is not None:
                self.registered[name] = level
            self.allowed = max(self.charged, min(self.registered.values(), default=inf))

    def _promised(self, shown: Shown) -> Fraction | float:
        """What all that was released at this step charges the person, and no more than their share of it."""
        budget = self._budget(shown.step)
        told = Fraction(0)
        for result in shown.results:
            for document in _documents(result, shown.step, self.world):
                own = [entry["charge"] for entry in document["charges"] if entry["level"] == _text(budget)]
                told += sum((Fraction(charge) for charge in own if charge != "inf"), Fraction(0))
        if shown.step.booked:
            self.charged += int(told * 10**6)
        most = reference.most_charge(budget, shown.step.share)
        if _untold(shown) and most < inf:
            return Fraction(int(most), 10**6)
        return min(told, Fraction(int(most), 10**6)) if most < inf else told

    def _lost(self, here: Shown, there: Shown, budget: float) -> Fraction | float:
        """By how much the laws of what was drawn differ, plan by plan."""
        if [plan is None for plan, _ in here.draws] != [plan is None for plan, _ in there.draws]:
            raise Leak("other things are drawn")
        total: Fraction | float = Fraction(0)
        pairs: dict[int, tuple[Plan | None, list[Any], list[Any]]] = {}
        for (plan, one), (_, other) in zip(here.draws, there.draws, strict=True):
            _, ones, others = pairs.setdefault(id(plan), (plan, [], []))
            ones.append(one)
            others.append(other)
        for plan, ones, others in pairs.values():
            inner = loss(Law((1.0,), (tuple(ones),), ()), Law((1.0,), (tuple(others),), ()))
            total += self._kept(plan, budget, here.step.share, inner) if plan is not None and inner else inner
        return total

    def _kept(self, plan: Plan, budget: float, share: str, inner: Fraction | float) -> Fraction | float:
        """What `sample` makes of a loss: nothing may move by a person who is not kept."""
        sampled = keeping(plan)
        if sampled is None:
            return inner
        affordable = reference.most_charge(budget, share, plan.times)
        chance = reference.chance(affordable, sampled.t, plan.target.relation.name)[1]
        if self.world.word >= 2**63 * chance:
            raise Leak("somebody counts who is not kept")
        return amplified(plan, _text(budget), float(inner))


def _keeps_rows(result: Any) -> bool:
    """Whether people's rows were kept at random, one by one."""
    return isinstance(result, accord.Release) and result.plan.keeps_rows


def _untold(shown: Shown) -> bool:
    """Whether a step shows no receipt of what it costs: text on a terminal, or an algorithm that failed."""
    on_terminal = any(
        isinstance(r, dict) and "stdout" in r and "--json" not in shown.step.text for r in shown.results
    )
    return on_terminal or (bool(shown.draws) and any(label == "error" for label, _ in shown.texts))


def _documents(result: Any, step: Step, world: World) -> list[Mapping[str, Any]]:
    """The receipts of a result that tell what the person is charged."""
    if isinstance(result, dict) and "stdout" in result:
        if result["exit code"] or "--json" not in step.text:
            return []
        result = json.loads(result["stdout"])
        return [result] if "charges" in result else []
    if isinstance(result, accord.Release) and result.plan.is_grouped:
        rows = world.sources[step.about].people.get(world.person, ())
        keys = {None, *(row.get(str(result.plan.query.part.by)) for row in rows)}
        return [made.receipt() for key, made in result.releases.items() if key in keys and made is not None]
    if isinstance(result, accord.Release):
        return [result.receipt()]
    return []


def _text(micro: float) -> str:
    """A level in millionths as receipts have it."""
    if micro == inf:
        return "inf"
    whole = f"{Decimal(int(micro)).scaleb(-6):f}"
    return whole.rstrip("0").rstrip(".") if "." in whole else whole


def _first(here: list[tuple[str, str]], there: list[tuple[str, str]]) -> str:
    for (label, one), (other_label, other) in zip(here, there, strict=False):
        if (label, one) != (other_label, other):
            at = next(
                (k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
                min(len(one), len(other)),
            )
            one, other = (text[max(0, at - 30) : at + 30] for text in (one, other))
        return f"{label} tells two worlds apart: …{one!r} or …{other!r}"
    return "one world shows more than the other"


# ---- the smallest ------------------------------------------------------------------------------------------


def smallest(found: Difference, tries: int = 200) -> Difference:
    """A world that is as small as can be and still shows that somebody loses too much."""
    while tries > 0:
        for smaller in _smaller(found.world):
            tries -= 1
            again = difference(smaller)
            if again is not None and again.found > again.promised:
                found = again
                break
            if tries <= 0:
                break
        else:
            break
    return found


def _smaller(world: World) -> Iterator[World]:
    """With one line, one person, one row or one changed value less; in a simpler form."""
    for k in reversed(range(len(world.program))):
        yield replace(world, program=world.program[:k] + world.program[k + 1 :])
    everyone = {person for source in world.sources.values() for person in source.people} - {world.person}
    for some in (sorted(everyone)[::2], sorted(everyone)[1::2], *([person] for person in sorted(everyone))):
        without = {
            name: replace(source, people={p: rows for p, rows in source.people.items() if p not in some})
            for name, source in world.sources.items()
        }
        if some:
            yield replace(world, sources=without)
    for name, source in world.sources.items():
        if source.form != "lists":
            yield replace(world, sources={**world.sources, name: replace(source, form="lists")})
        own, other = source.people.get(world.person, ()), world.changed.get(name, ())
        for k in range(min(len(own), len(other))):
            for column, value in own[k].items():
                if repr(value) != repr(other[k][column]):
                    row = {**other[k], column: value}
                    yield replace(world, changed={**world.changed, name: (*other[:k], row, *other[k + 1 :])})
