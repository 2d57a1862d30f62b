"""All methods, for every mechanism and statistic, in as many processes as there are cores for."""

from __future__ import annotations

import os
import secrets
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count, islice
from math import inf
from time import perf_counter
from zlib import crc32

import numpy as np

from accord.errors import AccordError, AccordWarning, did_you_mean
from accord.lab.audit import (
    empirical,
    exact,
    invariants,
    noise_laws,
    noise_source,
    offered_programs,
    programs,
    random_programs,
    reference_comparison,
    replay,
)
from accord.lab.audit.case_tables import populations
from accord.lab.audit.cases import NEIGHBORS, STATISTICS
from accord.lab.audit.findings import Audit, Look, findings_of
from accord.lab.audit.random_tables import ALL_FORMS, FORMS
from accord.lab.processes import shared
from accord.mechanisms import ALL
from accord.mechanisms.record import Mechanism

ALPHA = 1e-4
"""The probability that the audit of a sound library finds a violation by the empirical method."""
_BASICS, PROGRAMS, _COMBINATIONS = "basics", "programs", "combinations"
_COMBINATION_PARTS = 50
"""Into so many parts of a deep audit the combinations that are offered are split."""
WORLDS, BATCHES = 8, 3
"""Programs that are tried in one part of an audit, and such parts."""
_FEWEST_RUNS = 100
_SLOW = 20
"""So many times fewer runs where every one reads the table anew."""


@dataclass(frozen=True)
class Job:
    """A statistic under one neighbor relation; without them, what all have in common, or whole programs."""

    statistic: str
    neighbors: str
    mechanisms: tuple[str | Mechanism, ...]
    runs: int
    alpha: float
    """Of all lower bounds together."""
    lower_bounds: int
    """How many lower bounds the whole audit reckons at most."""
    seed: int
    part: int = 0

    @property
    def name(self) -> str:
        return f"{self.statistic}, {self.neighbors}" if self.neighbors else self.statistic


def run(
    mechanisms: Sequence[str | Mechanism] = (),
    statistics: Sequence[str] = (),
    *,
    runs: int = 0,
    alpha: float = ALPHA,
    seed: int | None = None,
    jobs: int | None = None,
    deep: float = 0.0,
    progress: Callable[[str], None] = lambda name: None,
    planned: Callable[[int], None] = lambda steps: None,
) -> Audit:
    """Audit mechanisms (all, if none are named) for statistics (all).

    Args:
        mechanisms: names of `accord mechanisms`, or mechanisms of your own (`accord.mechanism`), which are
            looked at in this process.
        statistics: such as "mean", "mean where", "median by"; "mean" alone is all three. "basics" is what
            they have in common: noise, books, order, decisions. "programs" are whole programs, of which
            everything that they show is compared.
        runs: releases of each of two tables for the empirical method; 0: without it.
        alpha: the probability that a sound library fails by the empirical method, over the whole audit.
        seed: decides which neighbors and programs are drawn; others each time if it is not given.
            Releases have no seed.
        jobs: processes; as many as there are cores if it is not given. 1: this process, but for programs.
        deep: for how many more seconds further programs are tried, first of all one for every combination
            that is offered; inf: until Ctrl-C, which then ends the audit and not the caller.
        progress: is told the name of each part when it is done.
        planned: is told how many parts there are.
    """
    chosen = _chosen(mechanisms)
    names = [mechanism if isinstance(mechanism, str) else mechanism.name for mechanism in chosen]
    asked = _statistic_names(statistics)
    refuse_too_few(runs or _FEWEST_RUNS, alpha)
    workers = jobs if jobs is not None else (os.cpu_count() or 1)
    if not all(isinstance(mechanism, str) for mechanism in chosen):
        workers = min(workers, 1)  # no other process has its function
    if workers < 1:
        raise AccordError(f"jobs={workers} cannot work. Give at least 1.")
    seed = secrets.randbelow(10**6) if seed is None else seed
    lower_bounds = most_lower_bounds([s for s in asked if s in STATISTICS], names) if runs else 0
    tasks = [
        Job(s, n, tuple(chosen), runs, alpha, lower_bounds, seed)
        for s in asked
        for n in (NEIGHBORS if s in STATISTICS else ("",))
        if s != PROGRAMS
    ]
    skipped = [] if mechanisms or statistics or deep else _half_of_the_parts(tasks, seed)
    tasks = [job for job in tasks if job not in skipped]
    tasks.sort(key=_longest_first)
    batches = (Job(PROGRAMS, "", (), 0, alpha, 0, seed + k * WORLDS) for k in count())
    program_jobs = list(islice(batches, BATCHES)) if PROGRAMS in asked else []
    planned(len(tasks) + len(program_jobs))
    start = perf_counter()
    looks: list[Look] = []

    def take(done: Iterable[tuple[Job, list[Look]]]) -> None:
        for job, of_job in done:
            looks.extend(of_job)
            progress(job.name)

    if workers == 1:
        take((job, examine(job)) for job in tasks)
        take(shared(program_jobs, examine, 1))
    else:
        take(shared([*tasks, *program_jobs], examine, workers))
    until = perf_counter() + deep
    offered = (Job(_COMBINATIONS, "", (), 0, alpha, 0, seed, part) for part in range(_COMBINATION_PARTS))
    further = chain(offered, batches)
    try:
        while perf_counter() < until:
            take(shared(list(islice(further, 4 * workers)), examine, workers))
    except KeyboardInterrupt:
        if not deep:
            raise
    if mechanisms and not {look.mechanism for look in looks} & set(names):
        raise AccordError(
            f"{' and '.join(names)} answer none of {', '.join(asked)}. See 'accord mechanisms'."
        )
    not_looked_at = [*_not_looked_at(asked, names, runs, sum(look.method == "program" for look in looks))]
    if skipped:
        text = "; ".join(job.name for job in skipped)
        not_looked_at.append(f"this time: {text} (--deep, or naming them, has all)")
    seconds = perf_counter() - start
    return Audit(findings_of(looks), seed, runs, alpha, lower_bounds, seconds, tuple(not_looked_at))


def _longest_first(job: Job) -> tuple[bool, bool]:
    return job.statistic != _BASICS, "regression" not in job.statistic


def _half_of_the_parts(tasks: list[Job], seed: int) -> list[Job]:
    """Half of the questions about parts of the people, others with every seed, which are left out.

    So a look at everything takes about two minutes.
    """
    parts = [job for job in tasks if job.statistic.endswith((" where", " by", " by two columns"))]
    drawn = np.random.default_rng([seed, crc32(b"left out")]).permutation(len(parts))
    return [parts[k] for k in sorted(drawn[: len(parts) // 2].tolist())]


def refuse_too_few(runs: int, alpha: float) -> None:
    """Refuse what cannot show anything."""
    if runs < _FEWEST_RUNS:
        raise AccordError(
            f"runs={runs} shows nothing. Give at least {_FEWEST_RUNS}; 10,000 shows four fifths of ε = 1."
        )
    if not 0 < alpha < 1:
        raise AccordError(f"alpha={alpha} is not a probability. Give one between 0 and 1, such as {ALPHA}.")


def examine(job: Job) -> list[Look]:
    """All that one job looks at. Its levels are as odd as can be, on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccordWarning)
        return _examined(job)


def _examined(job: Job) -> list[Look]:
    rng = np.random.default_rng([job.seed, crc32(job.name.encode())])
    if job.statistic == PROGRAMS:
        return [_look_at_world(random_world(k)) for k in range(job.seed, job.seed + WORLDS)]
    if job.statistic == _COMBINATIONS:
        worlds = offered_programs.worlds(job.seed, job.part, _COMBINATION_PARTS)
        return [_look_at_world(world) for world in worlds]
    if job.statistic == _BASICS:
        return list(_examine_basics(job, rng))
    return list(_examine_statistic(job, rng))


def _examine_statistic(job: Job, rng: np.random.Generator) -> Iterator[Look]:
    losses = list(exact.examine(STATISTICS[job.statistic], job.neighbors, job.mechanisms))
    yield from (look_at("exact", job, worst) for worst in losses)
    yield from examine_at_random(job, losses, rng)
    for worst in invariants.decisions(STATISTICS[job.statistic], job.neighbors):
        yield look_at("replay", job, worst, mechanism="auto")


def examine_at_random(
    job: Job, losses: Sequence[exact.WorstLoss], rng: np.random.Generator
) -> Iterator[Look]:
    """By the methods that come out differently each time.

    The replay; and the empirical method, on the pairs that the exact method found to lose most.
    """
    for worst in replay.examine(STATISTICS[job.statistic], job.neighbors, job.mechanisms, rng):
        yield look_at("replay", job, worst)
    if job.runs:
        for worst in largest_ratios(job.statistic, losses):
            yield look_at("empirical", job, _measured(job, worst))


def largest_ratios(statistic: str, losses: Iterable[exact.WorstLoss]) -> list[exact.WorstLoss]:
    """For each mechanism and level, the exact loss with a pair of releases that is nearest to the promise."""
    levels = populations(STATISTICS[statistic])[0].levels
    largest: dict[tuple[str, str], exact.WorstLoss] = {}
    for worst in losses:
        key = worst.plan.mechanism, worst.level
        usable = worst.pair and all(worst.pair) and worst.promised > 0 and worst.level in levels
        if usable and (key not in largest or worst.ratio > largest[key].ratio):
            largest[key] = worst
    return list(largest.values())


def _measured(job: Job, worst: exact.WorstLoss) -> exact.WorstLoss:
    here, there = worst.pair or ()
    runs = max(_FEWEST_RUNS, job.runs // _SLOW) if worst.is_slow else job.runs
    answers, answers_there = ([release() for _ in range(runs)] for release in (here, there))
    loss = empirical.loss_lower_bound(answers, answers_there, job.alpha / job.lower_bounds)
    evidence = f"{runs:,} releases of each; {worst.evidence}"
    return exact.WorstLoss(worst.plan, worst.level, worst.promised, loss, evidence)


def _examine_basics(job: Job, rng: np.random.Generator) -> Iterator[Look]:
    yield from _or_failure(reference_comparison.examine(rng), "any", "the reference")
    yield from _or_failure(noise_laws.examine(rng), "noise", "its law")
    yield from _or_failure(noise_source.examine(rng), "noise", "its source")
    parts: list[tuple[str, str | None, Iterator[exact.WorstLoss]]] = [
        ("order of rows", None, invariants.row_order(rng)),
        ("booked in a ledger", None, invariants.booked_charges(job.mechanisms)),
        ("workload", "auto", invariants.workload(rng)),
        ("public groups", "auto", invariants.public_groups(rng)),
        ("what is left in a ledger", None, invariants.remaining_budgets(rng)),
    ]
    if "sample" in job.mechanisms:
        parts.append(("who is kept", None, invariants.kept_people(rng)))
    for name, mechanism, losses in parts:
        looks = (look_at("replay", job, worst, mechanism, name) for worst in losses)
        yield from _or_failure(looks, mechanism or "any", name)


def _or_failure(looks: Iterator[Look], mechanism: str, statistic: str) -> Iterator[Look]:
    """What fails on sound tables is a finding, and no reason not to look at the rest."""
    try:
        yield from looks
    except Exception as fault:
        yield Look("replay", mechanism, statistic, "", "", 0.0, inf, f"it fails ({type(fault).__name__})")


def random_world(seed: int) -> programs.World:
    """The one that an audit with this seed tries first."""
    return random_programs.world(np.random.default_rng([seed, crc32(PROGRAMS.encode())]))


def _look_at_world(world: programs.World) -> Look:
    """One program in two neighboring worlds; of a violation, the smallest that shows it."""
    difference = programs.difference(world)
    if difference is None:
        return Look("program", "any", world.name, "", "", 0.0, 0.0)
    small = programs.smallest(difference)
    return Look(
        "program", "any", world.name, "", "", small.promised, small.loss, small.evidence, small.script
    )


def _not_looked_at(asked: Sequence[str], mechanisms: Sequence[str], runs: int, tried: int) -> Iterator[str]:
    """In sentences; `tried`: how many programs."""
    yield (
        "how long anything takes; who holds a ledger's key; levels that depend on values (docs/guarantees.md)"
    )
    yield (
        "Spark and PostgreSQL: that their integers are those of the embedded engine "
        "is a matter of accord's tests"
    )
    yield "tables of more than a few people, of which the proofs speak"
    if len(mechanisms) < len(ALL):
        yield f"the mechanisms {', '.join(m.name for m in ALL if m.name not in mechanisms)}"
    missing = [s for s in (*STATISTICS, _BASICS, PROGRAMS) if s not in asked]
    if missing:
        yield f"{len(missing)} statistics that were not asked for: {', '.join(missing)}"
    if tried:
        yield f"programs other than the {tried} that were tried (--deep tries more, until Ctrl-C)"
        absent = [form for form in ALL_FORMS if form not in FORMS]
        if absent:
            yield f"tables of {', '.join(absent)}, which are not installed"
    if not runs:
        yield "real noise, many times (--runs 10000)"


def look_at(
    method: str,
    job: Job,
    worst: exact.WorstLoss,
    mechanism: str | None = None,
    statistic: str | None = None,
) -> Look:
    return Look(
        method,
        mechanism or worst.plan.mechanism,
        statistic or job.statistic,
        job.neighbors or worst.plan.neighbors,
        worst.level,
        worst.promised,
        worst.loss,
        worst.evidence,
    )


def _statistic_names(asked: Sequence[str]) -> list[str]:
    others = (_BASICS, PROGRAMS)
    names: dict[str, None] = {}
    for name in asked or (*STATISTICS, *others):
        matching = [s.name for s in STATISTICS.values() if name in (s.name, s.base)]
        matching += [s for s in others if s == name]
        if not matching:
            raise AccordError(
                f"there is no statistic {name!r} to audit: {did_you_mean(name, (*STATISTICS, *others))}"
            )
        names |= dict.fromkeys(matching)
    return list(names)


def _chosen(asked: Sequence[str | Mechanism]) -> list[str | Mechanism]:
    """All mechanisms by name, or those that are asked for."""
    names = [m.name for m in ALL]
    for mechanism in asked:
        if isinstance(mechanism, str) and mechanism not in names:
            raise AccordError(f"there is no mechanism {mechanism!r}: {did_you_mean(mechanism, names)}")
    return list(asked) or [*names]


def most_lower_bounds(statistics: Sequence[str], mechanisms: Sequence[str]) -> int:
    """The most lower bounds that there can be: two directions are one, whose α they share."""
    levels = sum(len(populations(STATISTICS[s])[0].levels) for s in statistics)
    return levels * len(mechanisms) * len(NEIGHBORS)
