"""The program method: everything that a program shows, in neighboring worlds, with the noise recorded.

A `World` (program_runs.py) is made of tables (table_forms.py), a program that uses accord as people do
(library and command line), and one person who is somebody else in a neighboring world. Both worlds go through
the public interface. A noise that draws nothing decides what comes out of every draw, the same in both, and
records what it was made from. Then:

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
from accord.lab.audit.case_plans import sampling_of
from accord.lab.audit.program_runs import Step, StepOutput, World, run
from accord.lab.audit.recording_noise import Leak
from accord.lab.audit.release_laws import Law, loss
from accord.lab.audit.replay import amplified
from accord.lab.audit.table_forms import Source
from accord.ledger import Registration
from accord.planning import Plan
from accord.release.sizing import SizeChoice
from accord.statistics import Part
from accord.statistics.keys import split_rest

__all__ = ["Difference", "Source", "Step", "World", "difference", "replay", "run", "smallest"]


@dataclass(frozen=True)
class Difference:
    """What the person loses beyond what they agreed to, and the step that shows it."""

    world: World
    step: Step
    promised: Fraction | float
    loss: Fraction | float
    evidence: str

    @property
    def script(self) -> str:
        """A program that shows it again."""
        names = "Source, Step, World, replay"
        return (
            f'"""Somebody loses more than they agreed to: {self.evidence}"""\n\nimport datetime\n'
            f"from decimal import Decimal\nfrom math import inf, nan\n\n"
            f"from accord.lab.audit.programs import {names}\n\n"
            f"replay(\n{pprint.pformat(self.world, width=110, sort_dicts=False)}\n)\n"
        )


def difference(world: World) -> Difference | None:
    """The first step at which two neighboring worlds differ by more than the person agreed to."""
    account = _Account(world)
    for here, there in zip(run(world), run(world.neighbor()), strict=True):
        first = account.compare(here, there)
        if first is not None:
            return first
    return None


def replay(world: World) -> None:
    """Print what a program shows on two neighboring worlds, up to the first step that tells too much."""
    first = difference(world)
    for here, there in zip(run(world), run(world.neighbor()), strict=True):
        print(f">>> {here.step.text}")
        for (label, text), (_, text_there) in zip(here.texts, there.texts, strict=False):
            if text != text_there:
                print(f"  {label} here:  {text}\n  {label} there: {text_there}")
        if first is not None and here.step == first.step:
            break
    print("nobody loses more than they agreed to" if first is None else f"VIOLATED: {first.evidence}")


class _Account:
    """What the person has lost so far, by what was drawn; and what has been charged to them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.registered: dict[str, float] = {}
        """Their level in every table of the ledger, in millionths."""
        self.lost: Fraction | float = Fraction(0)
        self.charged = 0
        self.allowed: float = inf
        """The most that they may have lost in all, in millionths."""

    def compare(self, here: StepOutput, there: StepOutput) -> Difference | None:
        step = here.step

        def differ(promised: Fraction | float, loss: Fraction | float, evidence: str) -> Difference:
            return Difference(self.world, step, promised, loss, f"{evidence}, at: {step.text}")

        if here.texts != there.texts:
            return differ(0, inf, _first_difference(here.texts, there.texts))
        for label, text in here.texts:
            # a program without a line that it needs is no concern of anybody's
            if label == "error" and not text.startswith(("accord.errors.", "NameError")):
                return differ(0, inf, f"an error of another program's ({text.split(':')[0]})")
        if here.times_words < sum(_keeps_rows(result) for result in here.results):
            return differ(0, inf, "who is kept is not drawn anew")
        self._register(here)
        budget = self._budget(step)
        promised = self._promised(here)
        try:
            loss = self._loss(here, there, budget)
        except Leak as leak:
            return differ(promised, inf, str(leak))
        if float(loss) > float(promised) * (1 + 1e-9) + 1e-12:
            return differ(promised, loss, f"{float(loss):.6g} is lost where {float(promised):.6g} is charged")
        if step.booked:
            self.lost += loss
            if float(self.lost) * 10**6 > self.allowed * (1 + 1e-9) + 1e-6:
                most = Fraction(int(self.allowed), 10**6)
                evidence = f"{float(self.lost):.6g} is lost in all, and {float(most):.6g} was allowed"
                return differ(most, self.lost, evidence)
        return None

    def _level(self, step: Step) -> float | None:
        source = self.world.sources.get(step.about)
        return None if source is None else source.level(self.world.person)

    def _budget(self, step: Step) -> float:
        """What a step may take a share of: their level, or what remains; 0 if they are not in the table."""
        level = self._level(step)
        if level is None or not step.booked or not step.of_remaining:
            return level or 0
        return max(0, min([level, *self.registered.values()]) - self.charged)

    def _register(self, output: StepOutput) -> None:
        """A lower level counts from now on, and never gives back what is lost."""
        for result in output.results:
            if isinstance(result, Registration):
                name = result.name
            elif self._books_public_groups(result, output.step):
                # tables of their own, with the level that people have now
                name = f"public groups of {output.step.about}"
            else:
                continue
            level = self._level(output.step)
            self.registered.pop(name, None)
            if level is not None:
                self.registered[name] = level
            self.allowed = max(self.charged, min(self.registered.values(), default=inf))

    def _books_public_groups(self, result: Any, step: Step) -> bool:
        if not (isinstance(result, accord.Release) and result.plan.is_grouped and step.booked):
            return False
        return bool(_receipts(result, step, self.world))

    def _promised(self, output: StepOutput) -> Fraction | float:
        """What all that was released at this step charges the person, and no more than their share of it."""
        budget, step = self._budget(output.step), output.step
        level, charged = _level_text(budget), Fraction(0)
        for result in output.results:
            for receipt in _receipts(result, step, self.world):
                charges = [entry["charge"] for entry in receipt["charges"] if entry["level"] == level]
                charged += sum((Fraction(charge) for charge in charges if charge != "inf"), Fraction(0))
        if step.booked:
            self.charged += int(charged * 10**6)
        most = reference.most_charge(budget, step.share)
        if most == inf:
            return charged
        limit = Fraction(int(most), 10**6)
        return limit if _lacks_receipt(output) else min(charged, limit)

    def _loss(self, here: StepOutput, there: StepOutput, budget: float) -> Fraction | float:
        """By how much the laws of what was drawn differ, plan by plan."""
        if [plan is None for plan, _ in here.draws] != [plan is None for plan, _ in there.draws]:
            raise Leak("other things are drawn")
        total: Fraction | float = Fraction(0)
        by_plan: dict[int, tuple[Plan | None, list[Any], list[Any]]] = {}
        for (plan, draw), (_, draw_there) in zip(here.draws, there.draws, strict=True):
            _, draws, draws_there = by_plan.setdefault(id(plan), (plan, [], []))
            draws.append(draw)
            draws_there.append(draw_there)
        for plan, draws, draws_there in by_plan.values():
            inner = loss(Law((1.0,), (tuple(draws),), ()), Law((1.0,), (tuple(draws_there),), ()))
            if plan is not None and inner:
                inner = self._amplified(plan, budget, here.step.share, inner)
            total += inner
        return total

    def _amplified(self, plan: Plan, budget: float, share: str, inner: Fraction | float) -> Fraction | float:
        """What `sample` makes of a loss: nothing may move by a person who is not kept."""
        sampled = sampling_of(plan)
        if sampled is None:
            return inner
        affordable = reference.most_charge(budget, share, plan.times)
        chance = reference.chance(affordable, sampled.t, plan.target.relation.name)[1]
        if self.world.word >= 2**63 * chance:
            raise Leak("somebody counts who is not kept")
        return amplified(plan, _level_text(budget), float(inner))


def _keeps_rows(result: Any) -> bool:
    """Whether people's rows were kept at random, one by one."""
    return isinstance(result, accord.Release) and result.plan.keeps_rows


def _lacks_receipt(output: StepOutput) -> bool:
    """Whether a step does not show what it costs: text on a terminal, or an algorithm that failed."""
    as_json = "--json" in output.step.text
    on_terminal = any(isinstance(r, dict) and "stdout" in r and not as_json for r in output.results)
    return on_terminal or (bool(output.draws) and any(label == "error" for label, _ in output.texts))


def _receipts(result: Any, step: Step, world: World) -> list[Mapping[str, Any]]:
    """The receipts of a result that tell what the person is charged."""
    if isinstance(result, dict) and "stdout" in result:
        if result["exit code"] or "--json" not in step.text:
            return []
        document = json.loads(result["stdout"])
        return [document] if "charges" in document else []
    if isinstance(result, SizeChoice):
        return [result.receipt()]
    if not isinstance(result, accord.Release):
        return []
    if not result.plan.is_grouped:
        return [result.receipt()]
    rows = world.sources[step.about].people.get(world.person, ())
    part = result.plan.query.part
    keys = {None, *(part.group_of(_keys_of(row, part)) for row in rows if part.by)}
    return [group.receipt() for key, group in result.releases.items() if key in keys and group is not None]


def _keys_of(row: Mapping[str, Any], part: Part) -> dict[str, Any]:
    """The key that a row of a table has in each column of the groups, be it the rest."""
    group = {}
    for column, keys in zip(part.by, part.keys, strict=True):
        declared, rest = split_rest(keys)
        group[column] = row[column] if rest is None or row[column] in declared else rest
    return group


def _level_text(micro: float) -> str:
    """A level in millionths as receipts have it."""
    if micro == inf:
        return "inf"
    whole = f"{Decimal(int(micro)).scaleb(-6):f}"
    return whole.rstrip("0").rstrip(".") if "." in whole else whole


def _first_difference(here: list[tuple[str, str]], there: list[tuple[str, str]]) -> str:
    """In words, with a few letters around the place where two texts begin to differ."""
    for (label, text), (label_there, text_there) in zip(here, there, strict=False):
        if (label, text) != (label_there, text_there):
            at = next(
                (k for k, (a, b) in enumerate(zip(text, text_there, strict=False)) if a != b),
                min(len(text), len(text_there)),
            )
            around = slice(max(0, at - 30), at + 30)
            return f"{label} tells two worlds apart: …{text[around]!r} or …{text_there[around]!r}"
    return "one world shows more than the other"


# ---- the smallest ------------------------------------------------------------------------------------------


def smallest(first: Difference, tries: int = 200) -> Difference:
    """A world that is as small as can be and still shows that somebody loses too much."""
    least = first
    while tries > 0:
        for smaller in _smaller(least.world):
            tries -= 1
            again = difference(smaller)
            if again is not None and again.loss > again.promised:
                least = again
                break
            if tries <= 0:
                break
        else:
            break
    return least


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
        rows, changed = source.people.get(world.person, ()), world.changed.get(name, ())
        for k in range(min(len(rows), len(changed))):
            for column, value in rows[k].items():
                if repr(value) != repr(changed[k][column]):
                    row = {**changed[k], column: value}
                    fewer = (*changed[:k], row, *changed[k + 1 :])
                    yield replace(world, changed={**world.changed, name: fewer})
