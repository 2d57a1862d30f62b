"""What the laws are tried on: random levels, tables and queries."""

from math import inf

import numpy as np
from hypothesis import strategies as st

import accord
from accord.summary import Summary

levels = st.one_of(st.integers(1_000, 5_000_000).map(lambda k: k / 1e6), st.sampled_from([0.01, 0.1, 1.0]))
finite_specs = st.dictionaries(levels, st.integers(1, 3_000), min_size=1, max_size=6).map(accord.Spec.from_groups)
specs = (
    st.dictionaries(st.one_of(levels, st.just(inf), st.just(0.0)), st.integers(1, 3_000), min_size=1, max_size=6)
    .map(accord.Spec.from_groups)
    .filter(lambda spec: spec.total > 0)
)

QUERIES = {
    "mean": accord.mean("x", bounds=(-3, 5)),
    "mean with std": accord.mean("x", bounds=(-3, 5), std=0.7),
    "mean on a small grid": accord.mean("x", bounds=(0, 2), step=1),
    "sum": accord.sum("x", bounds=(-3, 5)),
    "sum from above zero": accord.sum("x", bounds=(2, 4), step=0.5),
    "count": accord.count(where="x > 0"),
    "histogram of two cells": accord.histogram("x", edges=[0, 1, 2]),
    "histogram of three cells": accord.histogram("x", edges=[0, 1, 2, 3]),
    "histogram of categories": accord.histogram("x", categories=["a", "b"]),
}
RANKED = {
    "median": accord.median("x", bounds=(0, 3), step=1),
    "a quantile far out": accord.quantile("x", 0.9, bounds=(-1, 2), step=1),
    "two quantiles": accord.quantile("x", [0.25, 0.75], bounds=(0, 3), step=1),
    "min": accord.min("x", bounds=(0, 3), step=1),
    "max": accord.max("x", bounds=(0, 3), step=1),
}
additive_queries = st.sampled_from(sorted(QUERIES)).map(QUERIES.get)
queries = st.sampled_from(sorted(QUERIES | RANKED)).map((QUERIES | RANKED).get)


def summary_of(spec, query, integers, by_cell=False):
    """The Summary of people given as rows of integers (one for each output, or the point), in the order of the Spec's levels; None: not there.

    `by_cell`: how many people have each integer (or are in each cell of a histogram), as `sample` needs it.
    """
    level_of = np.repeat(np.arange(spec.micro.size), spec.people)
    there = [i for i, row in enumerate(integers) if row is not None]
    level = level_of[there]
    rows = np.asarray([integers[i] for i in there], dtype=object).reshape(
        len(there), query.outputs if query.statistic == "histogram" else 1
    )
    if query.unit == "percentile points":
        points = rows[:, 0].astype(np.int64)
        return Summary(spec.people, query.points, level, points, np.ones(len(there), dtype=np.int64))
    if by_cell:
        histogram = query.statistic == "histogram"
        groups = {}
        for j, row in zip(level.tolist(), rows.tolist(), strict=True):
            cell = row.index(1) if histogram and 1 in row else None if histogram else row[0]
            if cell is not None:
                groups[j, cell] = groups.get((j, cell), 0) + 1
        keys = np.array(sorted(groups), dtype=np.int64).reshape(-1, 2)
        people = np.array([groups[key] for key in sorted(groups)], dtype=np.int64)
        return Summary(spec.people, query.outputs if histogram else query.span + 1, keys[:, 0], keys[:, 1], people)
    if query.sums > query.outputs:  # of whoever is there: Σq, and Σ(span − q) beside it
        rows = np.concatenate((rows, query.span - rows), axis=1)
    entries = [(j, k, int(sum(rows[level == j, k]))) for j in range(spec.micro.size) for k in range(query.sums)]
    level, output, amount = zip(*entries, strict=True)
    return Summary(spec.people, query.sums, np.array(level), np.array(output), np.array(amount, dtype=object))


def person_values(query):
    """Every vector of integers that one person can have (the ends, for a long grid)."""
    if query.unit == "percentile points":
        return [(k,) for k in range(query.points)]
    if query.statistic == "histogram":
        cells = [tuple(int(k == j) for k in range(query.outputs)) for j in range(query.outputs)]
        return cells if query.missing is not None else [*cells, (0,) * query.outputs]
    return [(q,) for q in sorted({0, 1, query.span // 2, query.span})]
