"""Published methods of finding privacy violations, and what they find in every mechanism.

They are written after their papers' ideas, in simpler form:

hockey_stick  Kong, Muñoz Medina, Ribero, Syed, "DP-Auditorium" (2023): the hockey-stick divergence is the
              supremum over functions f of E f(here) − e^ε·E f(there). A classifier is trained on one half of
              the samples; the other half bounds its two means (Hoeffding).
statdp        Ding, Wang, Wang, Zhang, Kifer, "Detecting violations of differential privacy" (2018): out of
              candidate events the most suspicious one; then the hypothesis P(E) ≤ e^ε·P′(E) is tested: hits
              here are thinned by e^−ε, and Fisher's exact test compares what is left with the hits there.
sniper        Bichsel, Steffen, Bogunovic, Vechev, "DP-Sniper" (2021): a logistic regression learns which
              table an output comes from; the attack is the set of outputs it is surest of, of probability c
              at least; Clopper and Pearson bound its two probabilities.
replay        Re:cord-play: the randomness of one release is recorded and played again for the neighbor; what
              noise was added to may move by the charge.

The first three are functions of samples: a lower bound of ε that holds with probability 1 − alpha, for both
directions together.

    python tests/auditors.py      # prints the table of docs/audit.md
"""

from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from math import exp, inf, log, sqrt
from typing import Any

import numpy as np
from scipy import stats

from accord import relation
from accord.budget import to_micro
from accord.lab.audit import exact, replay
from accord.lab.audit.case_plans import keep_chances, sampling_of
from accord.lab.audit.cases import STATISTICS
from accord.lab.audit.recorded_draws import Added
from accord.lab.audit.release_laws import law
from accord.lab.audit.runner import largest_ratios
from accord.lab.simulation.noise import Seeded
from accord.mechanisms import ALL
from accord.noise import MILLION

NEIGHBORS = tuple(each.name for each in relation.ALL if each.levels_are_public)
"""Of private levels, charges and noises are those of add-remove: tests/laws/test_private_levels.py."""
ASKED = ("mean", "sum", "count where", "histogram", "median", "max", "regression")
ALPHA = 1e-9
RUNS, FEWER, STRICT = 240_000, 80_000, 0.2
"""Of each table, for claims below STRICT, and for others."""
_PLACES = np.linspace(0.01, 0.99, 33)
_FEW = 24
_SURE = 6.0
_ROUNDS, _RIDGE = 12, 1e-3


# ---- samples in, a lower bound out -------------------------------------------------------------------------


def hockey_stick(here, there, alpha):
    return _both_directions(_hockey_stick, here, there, alpha, 1 / 2)


def statdp(here, there, alpha):
    return _both_directions(_statdp, here, there, alpha, 1 / 4)


def sniper(here, there, alpha):
    return _both_directions(_sniper, here, there, alpha, 1 / 4)


METHODS = {"hockey-stick": hockey_stick, "StatDP": statdp, "DP-Sniper": sniper}


def _both_directions(method, here, there, alpha, part):
    """Train on a part of the samples, and judge by the rest; each direction has half of alpha."""
    cut = int(part * len(here))
    directions = ((here, there), (there, here))
    return max(0.0, *(method(a[:cut], b[:cut], a[cut:], b[cut:], alpha / 2) for a, b in directions))


def _hockey_stick(trained, against, here, there, alpha):
    score = _naive_bayes(trained, against)
    room = sqrt(log(2 / alpha) / (2 * len(here)))  # Hoeffding, for each of the two means

    def bound(p, q):
        return log((p - room) / (q + room)) if p > room else -inf

    ones, others = score(trained), score(against)
    best = max(np.quantile(ones, _PLACES), key=lambda c: bound((ones >= c).mean(), (others >= c).mean()))
    return bound((score(here) >= best).mean(), (score(there) >= best).mean())


def _naive_bayes(here, there):
    """ln P(x)/P′(x) as if outputs were independent, from counts in bins."""
    bins = []
    for columns in zip(here.T, there.T, strict=True):
        edges = np.unique(np.quantile(np.concatenate(columns), _PLACES, method="nearest"))
        counts = [np.bincount(np.searchsorted(edges, x), minlength=edges.size + 1) + 1 for x in columns]
        bins.append((edges, np.log(counts[0] / counts[1])))
    return lambda x: sum(
        ratio[np.searchsorted(edges, column)] for (edges, ratio), column in zip(bins, x.T, strict=True)
    )


def _statdp(trained, against, here, there, alpha):
    event = max(_events(trained), key=lambda e: _promising(int(e(trained).sum()), int(e(against).sum())))
    luck = np.sort(np.random.default_rng(0).random(int(event(here).sum())))
    others = int(event(there).sum())

    def refuted(epsilon):
        kept = int(np.searchsorted(luck, exp(-epsilon)))
        return stats.hypergeom.sf(kept - 1, len(here) + len(there), kept + others, len(here)) < alpha

    if not refuted(0.0):
        return 0.0
    low, high = 0.0, 20.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def _events(x):
    """Half-lines of every output, single values where there are few, and both ends at once of any two."""
    for k, column in enumerate(x.T):
        values = np.unique(column)
        if values.size <= _FEW:
            yield from (partial(lambda k, v, x: x[:, k] == v, k, v) for v in values)
        for sign in (1, -1):
            yield from (partial(_beyond, (k,), (sign,), (v,)) for v in np.quantile(sign * column, _PLACES))
    middles = np.median(x, axis=0)
    for j, k in combinations(range(x.shape[1]), 2):
        for signs in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
            yield partial(_beyond, (j, k), signs, (signs[0] * middles[j], signs[1] * middles[k]))


def _beyond(columns, signs, ends, x):
    return np.all([sign * x[:, k] >= end for k, sign, end in zip(columns, signs, ends, strict=True)], axis=0)


def _promising(hits, others):
    """About how large a bound these counts would give."""
    return log((hits + 1) / (others + 1)) - _SURE * sqrt(1 / (hits + 1) + 1 / (others + 1))


def _sniper(trained, against, here, there, alpha):
    posterior = _logistic(trained, against)
    ones, others = posterior(trained), posterior(against)
    ends = np.unique(np.quantile(ones, _PLACES))
    end = max(ends, key=lambda c: _promising(int((ones >= c).sum()), int((others >= c).sum())))
    hits, misses = int((posterior(here) >= end).sum()), int((posterior(there) >= end).sum())
    least = stats.beta.ppf(alpha / 2, hits, len(here) - hits + 1) if hits else 0.0
    most = stats.beta.isf(alpha / 2, misses + 1, len(there) - misses) if misses < len(there) else 1.0
    return log(least / most) if least > 0 else -inf


def _logistic(here, there):
    """A score that grows with the probability that an output comes from here, by Newton's method."""
    both = np.concatenate((here, there))
    features = _features(both)
    x = features(both)
    y = np.repeat((1.0, 0.0), (len(here), len(there)))
    w = np.zeros(x.shape[1])
    for _ in range(_ROUNDS):
        p = 1 / (1 + np.exp(-np.clip(x @ w, -30, 30)))
        curved = (x * (p * (1 - p))[:, None]).T @ x + _RIDGE * len(y) * np.eye(len(w)) / 100
        w = w + np.linalg.solve(curved, x.T @ (y - p) - _RIDGE * len(y) * w / 100)
    return lambda x: features(x) @ w


def _features(x):
    """Outputs for the regression: few values one by one, others by their place between the ends.

    Heavy tails do not move those.
    """
    makers = [lambda x: np.ones((len(x), 1))]
    for k, column in enumerate(x.T):
        values = np.unique(column)
        if values.size <= _FEW:
            makers.append(partial(lambda k, values, x: (x[:, [k]] == values).astype(float), k, values))
        else:
            low, middle, high = np.quantile(column, (0.1, 0.5, 0.9))
            size = max(high - low, 1e-12)
            makers.append(partial(lambda k, m, s, x: np.tanh(2 * (x[:, [k]] - m) / s), k, middle, size))
    return lambda x: np.concatenate([make(x) for make in makers], axis=1)


# ---- what is played again ----------------------------------------------------------------------------------


class _Draw(int):
    """A draw that tells what it is added to."""

    __array_ufunc__ = None

    def __radd__(self, value):
        self.added_to.append(int(value))
        return int(value) + int(self)

    __add__ = __radd__


class Recorder:
    """A noise that notes what was asked; with a record, it gives what was drawn then."""

    def __init__(self, noise, record=None):
        self.noise, self.record, self.asked, self.drawn = noise, record, [], []

    def _next(self, fresh):
        self.drawn.append(fresh() if self.record is None else self.record.drawn[len(self.drawn)])
        return self.drawn[-1]

    def laplace(self, scale):
        draw = _Draw(self._next(lambda: self.noise.laplace(scale)))
        draw.added_to = []
        self.asked.append((scale, draw.added_to))
        return draw

    def box(self, spans, scale=MILLION):
        draws = [_Draw(x) for x in self._next(lambda: self.noise.box(spans, scale))]
        for draw in draws:
            draw.added_to = []
        self.asked.append(((tuple(spans), scale), [draw.added_to for draw in draws]))
        return draws

    def choose(self, scores, scale):
        self.asked.append((scale, scores))
        return self._next(lambda: self.noise.choose(scores, scale))

    def keep(self, chances):
        """Everyone who can be: what is lost then is amplified in `replayed`."""
        return chances > 0


def replayed(pair, noise):
    """The loss that one recorded release shows."""
    here = Recorder(noise)
    pair.runs[0](here)
    there = Recorder(noise, here)
    pair.runs[1](there)
    lost = 0.0
    for (scale, inputs), (scale_there, inputs_there) in zip(here.asked, there.asked, strict=True):
        assert scale == scale_there
        if isinstance(scale, tuple):
            spans, of_box = scale
            pairs = zip(inputs, inputs_there, strict=True)
            moves = [[abs(a - b) for a, b in zip(*pair, strict=True)] for pair in pairs]
            lost += max(-(-x // span) for xs, span in zip(moves, spans, strict=True) for x in xs) / of_box
        elif isinstance(inputs, list):
            lost += sum(abs(a - b) for a, b in zip(inputs, inputs_there, strict=True)) / scale
        else:
            lost += float(np.abs(_logs(inputs, scale) - _logs(inputs_there, scale)).max())
    if sampling_of(pair.plan) is None:
        return float(lost)
    return replay.amplified(pair.plan, pair.level, float(lost))


def _logs(scores, scale):
    parts = np.asarray(scores - scores.max(), dtype=float) / scale
    return parts - np.log(np.exp(parts).sum())


# ---- the pairs of accord -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """The neighbors that lose most by the exact method, for people of one level."""

    plan: Any
    statistic: str
    neighbors: str
    level: str
    claim: float
    exact: float
    runs: tuple

    @property
    def by_row(self):
        """Whether who is kept is decided row by row, in the engine."""
        return len(self.runs[0].args) == 5

    @property
    def name(self):
        return self.plan.mechanism, self.statistic, self.neighbors, self.level

    def samples(self, runs, rng):
        """What comes out of the draws of so many releases of each table, of which all else is made."""
        return tuple(_sampled(_law(run), runs, rng) for run in self.runs)


def pairs(statistic, neighbors):
    """Of every mechanism that answers this and every level, the pair that loses most of its claim.

    Asked with missing="none", which every mechanism answers.
    """
    asked = STATISTICS[statistic]
    sharper = replace(asked, ask=lambda scale: asked.ask(scale).with_all_values() or asked.ask(scale))
    losses = exact.examine(sharper, neighbors, [m.name for m in ALL if not m.needs_gap])
    for worst in largest_ratios(statistic, losses):
        claim, lost = float(worst.promised), float(worst.loss)
        yield Pair(worst.plan, statistic, neighbors, worst.level, claim, lost, worst.pair)


def _law(run):
    if len(run.args) < 5:
        return law(run)
    _, plan, tiny, people, _ = run.args
    levels = [level for level, who in zip(people.numbers, tiny, strict=True) if who is not None]
    return law(run, [keep_chances(plan)[int(to_micro(level))] for level in levels])


def _sampled(law, runs, rng):
    """Outputs of a law, one row each: noisy integers in units of their scale, and choices."""
    counts = rng.multinomial(runs, np.array(law.weights) / sum(law.weights))
    samples = [
        np.stack([_many(draw, n, rng) for draw in draws], axis=1)
        for draws, n in zip(law.branches, counts, strict=True)
    ]
    return rng.permutation(np.concatenate(samples))


def _many(draw, runs, rng):
    """Like the lab's `Seeded`, for many runs at once."""
    if not isinstance(draw, Added):
        return rng.choice(len(draw.scores), runs, p=np.exp(draw.logs)).astype(float)
    size = float(draw.scale)
    if size >= 2**20:
        noise = np.round(rng.laplace(0.0, size, runs))
    else:
        noise = rng.geometric(-np.expm1(-1 / size), (2, runs)).astype(float)
        noise = noise[0] - noise[1]
    return (draw.value + noise) / size


@dataclass(frozen=True)
class Audited:
    """A pair, and what each method surely finds."""

    pair: Pair
    bounds: dict
    replayed: float | None

    @property
    def best(self):
        return max(self.bounds.values())


def audited(statistic, neighbors, seed=0):
    """Every pair by every method. The same seed gives the same bounds."""
    for number, pair in enumerate(pairs(statistic, neighbors)):
        rng = np.random.default_rng([seed, ASKED.index(statistic), NEIGHBORS.index(neighbors), number])
        here, there = pair.samples(RUNS if pair.claim < STRICT else FEWER, rng)
        bounds = {name: method(here, there, ALPHA) for name, method in METHODS.items()}
        lost = None if pair.by_row else replayed(pair, Seeded(rng))
        yield Audited(pair, bounds, lost)


ENDS = ("0.1234569", "2.5")
"""The strictest level and the laxest."""
HEAD = "| mechanism | statistic | neighbors | strict: claim | exact | found | lax: claim | exact | found |"


def rows(audits):
    """Markdown: a row a mechanism, with what each method finds at the strictest and the laxest level."""
    cells = {}
    for audit in audits:
        pair = audit.pair
        bounds = " / ".join(
            "–" if x is None else f"{x:.3f}" for x in (*audit.bounds.values(), audit.replayed)
        )
        cells.setdefault(pair.name[:3], {})[pair.level] = f"{pair.claim:.3f} | {pair.exact:.3f} | {bounds}"
    for name, levels in cells.items():
        yield f"| {' | '.join(name)} | {' | '.join(levels.get(level, '– | – | –') for level in ENDS)} |"


def table():
    print(HEAD, "|---" * 9 + "|", sep="\n")
    for statistic in ASKED:
        for neighbors in NEIGHBORS:
            print(*rows(audited(statistic, neighbors)), sep="\n", flush=True)


if __name__ == "__main__":
    table()
