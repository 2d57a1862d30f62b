"""reproduce: measure experiments in several processes, and say where the papers are met.

What comes out depends on the seed alone: every setting has a generator of its own, and every process computes
with one thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isinf
from pathlib import Path
from time import perf_counter
from typing import Any
from zlib import crc32

import numpy as np

from accord.errors import AccordError, did_you_mean
from accord.lab.papers import (
    chaudhuri,
    cyffers,
    ferrando,
    jorgensen_counts,
    jorgensen_medians,
    jorgensen_regression,
)
from accord.lab.papers.experiment import Claim, Context, Experiment, Point, Points
from accord.lab.processes import shared

EXPERIMENTS: dict[str, Experiment] = {
    e.id: e
    for paper in (
        jorgensen_counts,
        jorgensen_medians,
        jorgensen_regression,
        ferrando,
        chaudhuri,
        cyffers,
    )
    for e in paper.ALL
}


@dataclass(frozen=True)
class Result:
    """One figure or table, measured."""

    experiment: Experiment
    runs: int
    seed: int
    data: Path | None
    points: Points
    claims: list[Claim]
    seconds: float
    """Of all processes together."""

    @property
    def agrees(self) -> bool:
        return all(claim.agrees for claim in self.claims)

    def rows(self) -> list[dict[str, Any]]:
        """Claims, then every point: plain data, ready for JSON."""
        return [
            *(
                {
                    "method": c.method,
                    "setting": c.setting,
                    "paper": c.paper,
                    "here": c.here,
                    "agrees": c.agrees,
                    "standard_errors_to_the_border": None if isinf(c.margin) else c.margin,
                }
                for c in self.claims
            ),
            *(
                {
                    "method": p.method,
                    "setting": _setting_text(self.experiment, p),
                    "paper": None,
                    "here": p.value,
                    "agrees": None,
                    "standard_error": p.error,
                }
                for p in self.points.all
            ),
        ]


def _setting_text(experiment: Experiment, point: Point) -> str:
    """Where a point lies."""
    panel = next((p for p in experiment.panels if p.key == point.panel), None)
    parts = [f"{(panel or experiment.panels[0]).symbol} = {point.x:g}"]
    if point.y is not None:
        parts.append(f"ε₁ = {point.y:.4g}")
    if point.panel:
        parts.append(point.panel if panel is None else panel.title)
    return ", ".join(parts)


def wanted(ids: Sequence[str]) -> list[Experiment]:
    """The experiments of these names: "all", whole ids, or beginnings of them such as C or J-fig1."""
    chosen: dict[str, Experiment] = {}
    for name in ids or ("all",):
        matching = {key: e for key, e in EXPERIMENTS.items() if name == "all" or key.startswith(name)}
        if not matching:
            raise AccordError(f"there is no figure {name!r}: {did_you_mean(name, EXPERIMENTS)}")
        chosen |= matching
    return list(chosen.values())


def reproduce(
    experiments: Sequence[Experiment],
    runs: int | None = None,
    seed: int = 0,
    jobs: int | None = None,
    data: Path | None = None,
    progress: Callable[[str], None] = lambda name: None,
) -> Iterator[Result]:
    """Measure them, one after the other as they are done.

    Args:
        experiments: see `wanted`.
        runs: instead of the paper's own number.
        seed: the same seed gives the same numbers, however many jobs there are.
        jobs: processes; as many as there are cores if it is not given.
        data: a census file for the regressions, instead of the generator.
        progress: is told the id after each setting.
    """
    if runs is not None and runs < 2:
        raise AccordError(f"runs={runs} is too few to tell an error. Give at least 2.")
    workers = jobs if jobs is not None else (os.cpu_count() or 1)
    if workers < 1:
        raise AccordError(f"jobs={workers} cannot work. Give at least 1.")
    context = Context(data)
    tasks = [(e.id, k) for e in experiments for k in range(len(e.settings))]
    measured: dict[str, dict[int, list[Point]]] = {e.id: {} for e in experiments}
    spent = dict.fromkeys(measured, 0.0)
    work = partial(measure, runs=runs, seed=seed, context=context)
    for (key, k), (points, seconds) in shared(tasks, work, workers):
        measured[key][k] = points
        spent[key] += seconds
        progress(key)
        experiment = EXPERIMENTS[key]
        if len(measured[key]) == len(experiment.settings):
            yield _result(experiment, measured[key], runs, seed, data, spent[key])


def document(results: Sequence[Result]) -> dict[str, Any]:
    """Plain data, for `--json`."""
    return {
        "schema": 1,
        "results": [
            {
                "id": r.experiment.id,
                "paper": r.experiment.paper,
                "runs": r.runs,
                "seed": r.seed,
                "agrees": r.agrees,
                "rows": r.rows(),
            }
            for r in results
        ],
    }


def catalogue() -> dict[str, Any]:
    return {
        "schema": 1,
        "figures": [
            {"id": e.id, "paper": e.paper, "title": e.title, "setting": e.setting, "runs": e.runs}
            for e in EXPERIMENTS.values()
        ],
    }


def measure(
    task: tuple[str, int], runs: int | None, seed: int, context: Context
) -> tuple[list[Point], float]:
    """The points of an experiment's k-th setting, and how many seconds they took."""
    key, k = task
    experiment = EXPERIMENTS[key]
    rng = np.random.default_rng([seed, crc32(key.encode()), k])
    start = perf_counter()
    points = list(experiment.measure(experiment.settings[k], runs or experiment.runs, rng, context))
    return points, perf_counter() - start


def _result(
    experiment: Experiment,
    measured: dict[int, list[Point]],
    runs: int | None,
    seed: int,
    data: Path | None,
    seconds: float,
) -> Result:
    points = Points(p for k in sorted(measured) for p in measured[k])
    if experiment.gather is not None:
        points = experiment.gather(points)
    claims = experiment.claims(points)
    if data is not None:  # reasons were found for the generator's people
        claims = [replace(claim, why="") for claim in claims]
    return Result(experiment, runs or experiment.runs, seed, data, points, claims, seconds)
