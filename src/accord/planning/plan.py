"""Plan: how a question will be answered, with what every other mechanism would have done.

A plan is for one question, for several together (a workload), or for one about each of several public groups.
What is chosen for one question is a `Choice` (choice.py); a plan of several has a plan for each, in `plans`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import inf, sqrt
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic

from accord import budget
from accord.budget import IntArray
from accord.mechanisms import named
from accord.mechanisms.additive import BoxCalibration, ChoosingCalibration
from accord.mechanisms.prediction import AroundValue, Prediction
from accord.mechanisms.rank_choice import RankCalibration
from accord.mechanisms.record import Calibration, Method
from accord.planning.assumptions import assumptions_of
from accord.planning.choice import NO_DATA, Candidate, Choice, by_level
from accord.planning.fingerprint import fingerprint
from accord.planning.largest import Largest, error_of_selected, predict_largest
from accord.planning.released_errors import error_factor, errors_of
from accord.planning.tasks import people_of
from accord.planning.together import cost_together, total_error
from accord.relation import Relation
from accord.spec import Spec
from accord.statistics import Grouped, Query, Target, Workload
from accord.statistics.query import A


@dataclass(frozen=True, repr=False)
class Plan(Generic[A]):
    """A decision, ready to be released. `print(plan)` shows it with its reason and its assumptions."""

    spec: Spec
    query: Any
    """The question that was asked, a Query; or several, a Workload."""
    share: int
    """Of everyone's level that may be spent, in millionths."""
    relation: Relation
    choice: Choice | None = None
    """Of one question about everyone, or about private groups."""
    plans: Mapping[Any, Plan | None] = field(default_factory=dict, hash=False)
    """Of a workload, a plan for each question by its place; of public groups, for each by its key.

    None: nobody is in that group.
    """
    notes: tuple[str, ...] = ()
    """Assumptions that come with the table."""
    equal: float = 0.0
    """Of a workload: the total error of an equal split."""
    read_as: Query | None = None
    """The question as it is read, where the table declares more than was asked: that no value is missing."""

    @property
    def is_workload(self) -> bool:
        """Whether it is for several questions, which are charged together."""
        return isinstance(self.query, Workload)

    @property
    def is_grouped(self) -> bool:
        """Whether it is for public groups, each of which is charged for itself."""
        return self.choice is None and not self.is_workload

    @property
    def parts(self) -> tuple[Plan, ...]:
        """The plans of all questions or groups; itself if it is for one."""
        if self.choice is not None:
            return (self,)
        return tuple(plan for plan in self.plans.values() if plan is not None)

    @property
    def neighbors(self) -> str:
        """The name of the relation."""
        return self.relation.name

    @property
    def most_people(self) -> int:
        """How many the answer may be about at most."""
        return self.relation.most_people(self.people)

    def asked_as(self, query: Query | Workload) -> Plan:
        """This plan for the question that was asked, where it was made for what the table declares beside."""
        if isinstance(query, Workload):
            each = zip(self.plans.items(), query.queries, strict=True)
            plans = {key: part and part.asked_as(asked) for (key, part), asked in each}
            return replace(self, query=query, plans=plans)
        if self.is_grouped:
            assert isinstance(query, Grouped)
            plans = {key: part and part.asked_as(query.query) for key, part in self.plans.items()}
            return replace(self, query=query, plans=plans)
        return self if query == self.query else replace(self, query=query, read_as=self.query)

    def noted(self, notes_of: Callable[[Query], Iterable[str]]) -> Plan:
        """With what a table takes for granted of each question."""
        if self.is_workload:
            plans = {key: part and part.noted(notes_of) for key, part in self.plans.items()}
            return replace(self, plans=plans)
        return replace(self, notes=tuple(dict.fromkeys((*notes_of(self.query), *self.notes))))

    @property
    def as_read(self) -> Query:
        """The question as a Reader answers it: with what the table declares."""
        query: Query = self.query if self.read_as is None else self.read_as
        return query

    # ---- of one question -----------------------------------------------------------------------------------

    @property
    def of_one(self) -> Choice:
        """What was chosen for one question.

        Raises:
            AttributeError: there are several; look at `parts`.
        """
        if self.choice is None:
            raise AttributeError(
                "this plan is for several questions or groups. Look at its parts: plan.parts."
            )
        return self.choice

    def with_choice(self, **changes: Any) -> Plan:
        """The same plan with another choice: for the lab, and for tests."""
        return replace(self, choice=replace(self.of_one, **changes))

    @property
    def mechanism(self) -> str:
        """The name of a mechanism; "midpoint" or "public" where the answer needs no data."""
        return self.of_one.mechanism

    @property
    def target(self) -> Target:
        """What the mechanism answers."""
        return self.of_one.target

    @property
    def calibration(self) -> Calibration:
        return self.of_one.calibration

    @property
    def prediction(self) -> Prediction:
        return self.of_one.prediction

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """Every mechanism, with its predicted error or with why it is refused."""
        return self.of_one.candidates

    @property
    def reason(self) -> str:
        """Why the mechanism was chosen."""
        return self.of_one.reason

    @property
    def times(self) -> int:
        """In how many answers a person may change something, and is charged for."""
        return self.of_one.times

    @property
    def rmse(self) -> Any:
        """Predicted root mean squared error about the population that the people are drawn from, in `unit`.

        Of public groups, {key: error}.
        """
        if self.is_grouped:
            return MappingProxyType({key: plan.rmse for key, plan in self.plans.items() if plan is not None})
        return self.of_one.prediction.rmse

    @property
    def rmse_here(self) -> float:
        """Predicted root mean squared error about these very people, in `unit`."""
        return self.of_one.prediction.rmse_here

    @property
    def unit(self) -> str:
        unit: str = self.query.unit
        return unit

    @property
    def bias_bound(self) -> float | None:
        """κ: if the means of any two levels differ by at most D, the answer is off by at most κ·D.

        Of members of a private part it is the worst, whoever they are. None: not defined here.
        """
        return self.of_one.prediction.bias_bound

    @property
    def break_even_gap(self) -> float | None:
        """At which gap between levels the worst bias is as large as the predicted error, in `gap`'s units.

        Of errors with a declared gap in them, as they would be without. ∞: no gap biases the answer. None:
        nothing is known about it here.
        """
        scale, prediction, target = self.query.gap_scale, self.prediction, self.target
        if scale is None or prediction.bias_bound is None or not self.method.bounds_bias:
            return None
        of_one = target.factor(self.people) * sqrt(target.gap_effects[0] / target.outputs)
        of_one *= prediction.bias_bound * float(scale.factor)
        chance = sqrt(max(0.0, prediction.rmse**2 - prediction.bias**2))
        return chance / of_one if of_one else inf

    @property
    def people(self) -> int:
        """How many people it is about: those who have not opted out, or everyone."""
        return people_of(self.spec, self.query)

    @property
    def assumptions(self) -> list[str]:
        """What is taken as public knowledge, in sentences."""
        return assumptions_of(self)

    @property
    def heading(self) -> str:
        """What is asked, in a few words; and where people have several rows, in which group they are."""
        chosen: str = self.query.chosen if self.about_rows else ""
        return f"{self.query.label} ({chosen})" if chosen else str(self.query.label)

    @property
    def about_rows(self) -> str:
        """Who a person is, and what their rows come to; empty where each row is one person."""
        come_to = f", {self.query.rows_come_to}"
        return next((note for note in self.notes if note.endswith(come_to)), "")

    @property
    def private_groups(self) -> int:
        """How many private groups it is about; 1 without groups."""
        return self.query.groups if isinstance(self.query, Grouped) else 1

    @property
    def largest(self) -> Largest | None:
        """Of `accord.top`: what is predicted about the largest groups; of any other question None."""
        query = self.query
        if not isinstance(query, Grouped) or query.part.largest is None:
            return None
        return predict_largest(
            self.prediction.error_model,
            self.calibration,
            self.spec.people,
            query.part.largest,
            query.groups,
            self.most_people,
        )

    @property
    def error_of_selected(self) -> float:
        """Of one of many private groups' sizes or sums, whichever it is, and if it was taken for its noise.

        About these very people, at most.
        """
        model = self.prediction.error_model
        if isinstance(model, AroundValue):
            part, groups = self.query.part, self.private_groups
            return max(self.rmse_here, error_of_selected(model, self.calibration, groups, part.suppress))
        ends: Any = self.target.possible(self.most_people)
        return float(ends[1] - ends[0])

    @property
    def counted_groups(self) -> int:
        """How many private groups' sizes are released: all, or those that are chosen first."""
        if isinstance(self.calibration, ChoosingCalibration):
            return self.calibration.shown
        return self.private_groups

    @property
    def chooses_first(self) -> bool:
        """Whether the largest groups are chosen before they are counted, and no others are."""
        return isinstance(self.calibration, ChoosingCalibration)

    @property
    def draws_together(self) -> bool:
        """Whether several quantiles are one draw, at one charge."""
        return isinstance(self.calibration, RankCalibration) and self.calibration.parts is not None

    @property
    def reads_data(self) -> bool:
        """Whether a mechanism answers; otherwise nothing is read, and nobody is charged."""
        return self.mechanism not in NO_DATA

    @property
    def keeps_rows(self) -> bool:
        """Whether people's rows are kept or left out one by one, in the engine, for any of its questions."""
        return any(part.reads_data and part.method.keeps_rows for part in self.parts)

    @property
    def method(self) -> Method:
        """How the mechanism answers."""
        own = None if self.choice is None else self.choice.own
        return named(own or self.mechanism).method(self.target)

    def errors_of(self, released: Sequence[Fraction]) -> tuple[float, float]:
        """The errors of an answer, once what was released tells roughly how many it is about.

        About the population, and about these very people.
        """
        return errors_of(self, released)

    def error_factor(self, released: Sequence[Fraction]) -> float | None:
        """How many times the error is as predicted; None: too few people to tell anything."""
        return error_factor(self, released)

    # ---- of one or several ---------------------------------------------------------------------------------

    @property
    def cost(self) -> IntArray:
        """What it costs a person of each level, in millionths: all questions together.

        (Public groups: see `plans`.)
        """
        if self.choice is not None:
            return budget.times(self.choice.calibration.charges, self.choice.times)
        if self.is_grouped:
            raise AttributeError(
                "public groups have levels of their own. Look at the plan of each: plan.plans."
            )
        total = cost_together(self.parts)
        total.flags.writeable = False
        return total

    @property
    def boxes(self) -> tuple[tuple[Any, ...], ...]:
        """The questions that share one noise, by their places, for each such noise; of a workload."""
        by_block: dict[int, list[Any]] = {}
        for key, part in self.plans.items():
            calibration = None if part is None or part.choice is None else part.choice.calibration
            if isinstance(calibration, BoxCalibration):
                by_block.setdefault(calibration.block, []).append(key)
        return tuple(tuple(keys) for keys in by_block.values())

    @property
    def charges(self) -> Mapping[Any, Any]:
        """{level: charge}: what the release costs a person of each level.

        Of public groups, {key: {level: charge}}.
        """
        if self.is_grouped:
            return MappingProxyType(
                {key: plan.charges for key, plan in self.plans.items() if plan is not None}
            )
        return by_level(self.spec, self.cost)

    @property
    def workload(self) -> Workload:
        """The questions, of a workload."""
        assert isinstance(self.query, Workload)
        return self.query

    @property
    def queries(self) -> tuple[Query, ...]:
        """The questions: one, or those of a workload."""
        return self.query.queries if isinstance(self.query, Workload) else (self.query,)

    @property
    def total(self) -> float:
        """Of a workload, what was minimised: the weighted sum of squared relative errors.

        Each is a fraction of the error of an answer without data.
        """
        return total_error(self.parts, self.workload)

    @property
    def spent(self) -> IntArray:
        """What all questions together charge each level, in millionths."""
        return self.cost

    @property
    def fingerprint(self) -> str | None:
        """The same for the same question about the same levels, answered by the same mechanism; else another.

        None: somebody's own algorithm answers, which nothing tells from another of its name.
        """
        return fingerprint(self)

    def describe(self) -> dict[str, Any]:
        """The plan as plain data, for `--json`."""
        from accord.release.receipt import plan_document

        return plan_document(self)

    def plot(self, path: str | Path | None = None) -> Any:
        """Every mechanism's predicted error, and what each level is charged, as a picture.

        Returns:
            The figure, which a notebook shows; with a path (.png, .svg, .pdf), where it was written.

        Raises:
            AccordError: matplotlib is not installed (accord[plot]), or the file cannot be written.
        """
        from accord.report.figures import plan_figure, write

        figure = plan_figure(self)
        return figure if path is None else write(figure, path)

    def __str__(self) -> str:
        from accord.report.plans import plan_text

        return plan_text(self)

    def _repr_html_(self) -> str:
        from accord.report.html import plan_html

        return plan_html(self)

    def __repr__(self) -> str:
        if self.is_grouped:
            return f"<Plan: {self.query.label}, {len(self.plans)} groups>"
        if self.is_workload:
            return f"<Plan: {', '.join(f'{p.query.label} by {p.mechanism}' for p in self.parts)}>"
        return f"<Plan: {self.query.label} by {self.mechanism}, rmse {self.rmse:.6g} ({self.unit})>"
