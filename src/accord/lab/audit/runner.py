"""All ways, for every mechanism and statistic, in as many processes as there are cores for."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count, islice
from math import inf
from time import perf_counter
from zlib import crc32

import numpy as np

from accord.errors import AccordError, did_you_mean
from accord.lab.audit import (
    agreement,
    basics,
    combinations,
    empirical,
    exact,
    noise_laws,
    programs,
    replay,
    source,
    worlds,
)
from accord.lab.audit.cases import NEIGHBORS, STATISTICS, peoples
from accord.lab.audit.findings import Audit, Seen, gathered
from accord.lab.processes import shared
from accord.mechanisms import ALL

ALPHA = 1e-4
"""The probability that the audit of a sound library finds a violation by the empirical way."""
_BASICS, PROGRAMS, _COMBINATIONS = "basics", "programs", "combinations"
_PARTS = 50
"""Of all combinations that are offered, each a part of a deep audit."""
WORLDS, BATCHES = 8, 3
"""Programs that are tried in one part of an audit, and such parts."""
_FEWEST = 100
_FEWER = 20
"""So many fewer runs where every one reads the table anew."""


@dataclass(frozen=True)
class Job:
    """A statistic under one neighbor relation; without them, what all have in common, or whole programs."""

    statistic: str
    neighbors: str
    mechanisms: tuple[str, ...]
    runs: int
    alpha: float
    """Of all looks together."""
    looks: int
    seed: int
    part: int = 0

    @property
    def name(self) -> str:
        return f"{self.statistic}, {self.neighbors}" if self.neighbors else self.statistic


def run(
    mechanisms: Sequence[str] = (),
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
        mechanisms: names of `accord mechanisms`.
        statistics: such as "mean", "mean where", "median by"; "mean" alone is all three. "basics" is what
            they have in common: noise, books, order, decisions. "programs" are whole programs, which show all
            that they show.
        runs: releases of each of two tables for the empirical way; 0: without it.
        alpha: the probability that a sound library fails by the empirical way, over the whole audit.
        seed: decides which neighbors and programs are drawn; others each time if it is not given. Releases
            have no seed.
        jobs: processes; as many as there are cores if it is not given. 1: this process, but for programs.
        deep: for how many more seconds further programs are tried, first of all one for every combination
            that is offered; inf: until Ctrl-C, which then ends the audit and not the caller.
        progress: is told the name of each part when it is done.
        planned: is told how many parts there are.
    """
    names = _named(mechanisms, [m.name for m in ALL], "mechanism")
    asked = _asked(statistics)
    enough(runs or _FEWEST, alpha)
    workers = jobs if jobs is not None else (os.cpu_count() or 1)
    if workers < 1:
        raise AccordError(f"jobs={workers} cannot work. Give at least 1.")
    seed = secrets.randbelow(10**6) if seed is None else seed
    looks = looks_of([s for s in asked if s in STATISTICS], names) if runs else 0
    tasks = [
        Job(s, n, tuple(names), runs, alpha, looks, seed)
        for s in asked
        for n in (NEIGHBORS if s in STATISTICS else ("",))
        if s != PROGRAMS
    ]
    skipped = [] if mechanisms or statistics or deep else _left_out(tasks, seed)
    tasks = [job for job in tasks if job not in skipped]
    tasks.sort(
        key=lambda job: (job.statistic != _BASICS, "regression" not in job.statistic)
    )  # the longest first
    batches = (Job(PROGRAMS, "", (), 0, alpha, 0, seed + k * WORLDS) for k in count())
    tried = list(islice(batches, BATCHES)) if PROGRAMS in asked else []
    planned(len(tasks) + len(tried))
    start = perf_counter()
    seen: list[Seen] = []

    def take(done: Iterable[tuple[Job, list[Seen]]]) -> None:
        for job, found in done:
            seen.extend(found)
            progress(job.name)

    if workers == 1:
        take((job, look(job)) for job in tasks)
        take(shared(tried, look, 1))
    else:
        take(shared([*tasks, *tried], look, workers))
    until = perf_counter() + deep
    combined = (Job(_COMBINATIONS, "", (), 0, alpha, 0, seed, part) for part in range(_PARTS))
    further = chain(combined, batches)
    try:
        while perf_counter() < until:
            take(shared(list(islice(further, 4 * workers)), look, workers))
    except KeyboardInterrupt:
        if not deep:
            raise
    if mechanisms and not {s.mechanism for s in seen} & set(names):
        raise AccordError(
            f"{' and '.join(names)} answer none of {', '.join(asked)}. See 'accord mechanisms'."
        )
    unseen = (
        *_unseen(asked, names, runs, sum(s.way == "program" for s in seen)),
        *(
            [f"this time: {'; '.join(job.name for job in skipped)} (--deep, or naming them, has all)"]
            if skipped
            else []
        ),
    )
    return Audit(gathered(seen), seed, runs, alpha, looks, perf_counter() - start, unseen)


def _left_out(tasks: list[Job], seed: int) -> list[Job]:
    """Half of the questions about parts of the people, others with every seed, so that a look at everything
    takes about two minutes.
    """
    parts = [job for job in tasks if job.statistic.endswith((" where", " by"))]
    drawn = np.random.default_rng([seed, crc32(b"left out")]).permutation(len(parts))
    return [parts[k] for k in sorted(drawn[: len(parts) // 2].tolist())]


def enough(runs: int, alpha: float) -> None:
    """Refuse what cannot show anything."""
    if runs < _FEWEST:
        raise AccordError(
            f"runs={runs} shows nothing. Give at least {_FEWEST}; 10,000 shows four fifths of ε = 1."
        )
    if not 0 < alpha < 1:
        raise AccordError(f"alpha={alpha} is not a probability. Give one between 0 and 1, such as {ALPHA}.")


def look(job: Job) -> list[Seen]:
    """All that one job sees."""
    rng = np.random.default_rng([job.seed, crc32(job.name.encode())])
    if job.statistic == PROGRAMS:
        return [_tried(_world(k)) for k in range(job.seed, job.seed + WORLDS)]
    if job.statistic == _COMBINATIONS:
        return [_tried(world) for world in combinations.worlds(job.seed, job.part, _PARTS)]
    if job.statistic == _BASICS:
        return list(_basics(job, rng))
    return list(_looked(job, rng))


def _looked(job: Job, rng: np.random.Generator) -> Iterator[Seen]:
    accounts = list(exact.examine(STATISTICS[job.statistic], job.neighbors, job.mechanisms))
    yield from (seen_by("exact", job, account) for account in accounts)
    yield from at_random(job, accounts, rng)
    for account in basics.decisions(STATISTICS[job.statistic], job.neighbors):
        yield seen_by("replay", job, account, mechanism="auto")


def at_random(job: Job, accounts: Sequence[exact.Worst], rng: np.random.Generator) -> Iterator[Seen]:
    """The ways that come out differently each time: the replay, and of the pairs that the exact way found,
    the empirical way.
    """
    for account in replay.examine(STATISTICS[job.statistic], job.neighbors, job.mechanisms, rng):
        yield seen_by("replay", job, account)
    if not job.runs:
        return
    worst: dict[tuple[str, str], exact.Worst] = {}
    first = peoples(STATISTICS[job.statistic])[0].levels
    for account in accounts:
        key = account.plan.mechanism, account.level
        shown = all(account.pair or [None]) and account.promised > 0 and account.level in first
        if shown and (key not in worst or account.near > worst[key].near):
            worst[key] = account
    for account in worst.values():
        yield seen_by("empirical", job, _measured(job, account))


def _measured(job: Job, account: exact.Worst) -> exact.Worst:
    here, there = account.pair or ()
    runs = max(_FEWEST, job.runs // _FEWER) if account.is_slow else job.runs
    found = empirical.lower_bound(here, there, runs, job.alpha / job.looks)
    return exact.Worst(
        account.plan, account.level, account.promised, found, f"{runs:,} releases of each; {account.said}"
    )


def _basics(job: Job, rng: np.random.Generator) -> Iterator[Seen]:
    yield from _or_fails(agreement.examine(rng), "any", "the reference")
    yield from _or_fails(noise_laws.losses(rng), "noise", "its law")
    yield from _or_fails(source.sources(rng), "noise", "its source")
    parts: list[tuple[str, str | None, Iterator[exact.Worst]]] = [
        ("order of rows", None, basics.order(rng)),
        ("booked in a ledger", None, basics.booked(job.mechanisms)),
        ("workload", "auto", basics.together(rng)),
        ("public groups", "auto", basics.public_groups(rng)),
        ("what is left in a ledger", None, basics.rest(rng)),
    ]
    if "sample" in job.mechanisms:
        parts.append(("who is kept", None, basics.kept(rng)))
    for name, mechanism, accounts in parts:
        yield from _or_fails(
            (seen_by("replay", job, a, mechanism, name) for a in accounts), mechanism or "any", name
        )


def _or_fails(seen: Iterator[Seen], mechanism: str, statistic: str) -> Iterator[Seen]:
    """What fails on sound tables is a finding, and no reason not to look at the rest."""
    try:
        yield from seen
    except Exception as fault:
        yield Seen("replay", mechanism, statistic, "", "", 0.0, inf, f"it fails ({type(fault).__name__})")


def _world(seed: int) -> programs.World:
    return worlds.world(np.random.default_rng([seed, crc32(PROGRAMS.encode())]))


def _tried(world: programs.World) -> Seen:
    """One program on two neighboring worlds; of a violation, the smallest that shows it."""
    found = programs.difference(world)
    if found is None:
        return Seen("program", "any", world.name, "", "", 0.0, 0.0)
    small = programs.smallest(found)
    return Seen("program", "any", world.name, "", "", small.promised, small.found, small.said, small.script)


def _unseen(asked: Sequence[str], mechanisms: Sequence[str], runs: int, tried: int) -> Iterator[str]:
    """What was not looked at, in sentences."""
    yield (
        "how long anything takes; who holds a ledger's key; levels that depend on values (docs/guarantees.md)"
    )
    yield (
        "Spark and PostgreSQL: that their integers are those of the embedded engine is a matter of "
        "accord's tests"
    )
    yield "tables of more than a few people, of which the proofs speak"
    if len(mechanisms) < len(ALL):
        yield f"the mechanisms {', '.join(m.name for m in ALL if m.name not in mechanisms)}"
    left = [s for s in (*STATISTICS, _BASICS, PROGRAMS) if s not in asked]
    if left:
        yield f"{len(left)} statistics that were not asked for: {', '.join(left)}"
    if tried:
        yield f"programs other than the {tried} that were tried (--deep tries more, until Ctrl-C)"
        absent = [form for form in worlds.ALL_FORMS if form not in worlds.FORMS]
        if absent:
            yield f"tables of {', '.join(absent)}, which are not installed"
    if not runs:
        yield "real noise, many times (--runs 10000)"


def seen_by(
    way: str, job: Job, account: exact.Worst, mechanism: str | None = None, statistic: str | None = None
) -> Seen:
    return Seen(
        way,
        mechanism or account.plan.mechanism,
        statistic or job.statistic,
        job.neighbors or account.plan.neighbors,
        account.level,
        account.promised,
        account.found,
        account.said,
    )


def _asked(statistics: Sequence[str]) -> list[str]:
    found: dict[str, None] = {}
    others = (_BASICS, PROGRAMS)
    for name in statistics or (*STATISTICS, *others):
        matching = [s.name for s in STATISTICS.values() if name in (s.name, s.base)] + [
            s for s in others if s == name
        ]
        if not matching:
            raise AccordError(
                f"there is no statistic {name!r} to audit: {did_you_mean(name, (*STATISTICS, *others))}"
            )
        found |= dict.fromkeys(matching)
    return list(found)


def _named(given: Sequence[str], known: Sequence[str], what: str) -> list[str]:
    for name in given:
        if name not in known:
            raise AccordError(f"there is no {what} {name!r}: {did_you_mean(name, known)}")
    return list(given) or list(known)


def looks_of(statistics: Sequence[str], mechanisms: Sequence[str]) -> int:
    """The most lower bounds that there can be: two directions are one look, whose α they share."""
    levels = sum(len(peoples(STATISTICS[s])[0].levels) for s in statistics)
    return levels * len(mechanisms) * len(NEIGHBORS)
