"""Rank: quantiles by weighted rank.

Ours; it answers the question that closes [F], how to weigh people of different levels in a median.

Neighbors  replace: one person's value changes, the number of people and all levels stay; or add-remove.
Releases   a point r of the grid with probability ∝ exp(score(r)/2), drawn exactly, where with W = Σc
               score(r) = −max(0, Σ_{x<r} c − p·W, Σ_{x>r} c − (1−p)·W)
           is minus the weight that lies on the wrong side of r. J quantiles have exp(score(r)/2J) each; or,
           where that is predicted to be better, all of them are one tuple of points in order.
Weights    are the charges c; where only public people are read each counts 1, and the best point is taken.
Guarantee  person i loses at most c_i.
           *Replace.* Changing x_i moves both sums by at most c_i, so the maximum by at most c_i, while W
           stays; the exponential mechanism then loses 2·c_i/2J for each quantile, c_i for all.
           *Add-remove.* A person who comes or goes moves W as well, and with it a score by at most
           m_p·c_i, m_p = max(p, 1−p); so it is exp(score(r)/(2J·m_p)).
Size       Where the number of people is private (add-remove, private groups, `where=`), W + Z is released
           with the points, Z discrete Laplace, so that there can be an interval (size.py).
           *Add-remove*, which private groups under replace have at half the charge: W moves by c_i, and Z
           has the scale 10, which loses c_i/10. The choices are made at nine tenths of every charge,
           exp(9/10·score(r)/(2J·m_p)), which lose 9/10·c_i for all J. Both are functions of the same data
           with independent noise, so that losses add up (sequential composition): c_i.
           *One private `where=` under replace* (`about_members`): somebody whose value changes moves every
           score by at most c_i, and leaves W; somebody who comes in or goes out moves the score of p by at
           most m_p·c_i, and W by c_i. With choices exp(θ·score(r)/2J) and Z of scale 1/φ the first loses
           θ·c_i and the second (θ·m + φ)·c_i, m being the mean of the m_p. So θ = min(1, 9/10/m) and
           φ = 1 − θ·m lose at most c_i: the median keeps the whole charge (θ = 1, φ = 1/2), and nothing is
           halved.
           Scales of choices are rounded up to whole numbers: losses only shrink.
Together   J points in order, drawn with P ∝ exp(−r/4·Σ_j |F_j − F_{j−1} − (p_j − p_{j−1})·W|), F_j being the
           weight before the j-th (ordered.py). With δ the smallest share between two p, or a p and an end,
           whose value changes loses r·c_i and who comes or goes r·(1 − δ)·c_i: docs/proofs/joint.md. So
           r = 1 under replace; 9/10/(1 − δ) beside a size of scale 10 under add-remove; and with one
           private `where=` r = min(1, 9/10/(1 − δ)) and φ = 1 − r·(1 − δ). The size is drawn first; where it
           is more than a roster can have, the tuple is drawn with more parts, or at a lower rate, which are
           functions of it alone (`fitted`; adaptive composition). The plan takes it where its error is lower
           than that of single choices. For an interval in values each is drawn by itself.
Error      on the scale of ranks (1 is everyone): the weighted rank of p differs from the rank by a variance
           of p(1−p)·Σc²/W², and the choice falls off as exp(−|rank|·W/2), a Laplace law of variance 8/W²
           (8J²/W²; together 8(2J + 1)/3W² on average) where the points near the quantile are dense. So the
           charges of charges.py fit here with the constant 8/(p(1−p)) in the place of 2Δ²/σ²: `rank` is
           `affine` with it, and distribution-free.
           Whatever the values are, P(score ≤ −a) ≤ K·exp(−a/2J) for K points: that bounds the error where W
           is small, when the answer may land anywhere in the bounds, and it is in every interval.
Rounded    values: with `rounded=` points count several times, public numbers t(r), and the choice is with
           probability ∝ t(r)·exp(score(r)/2). The proof stays, and K becomes Σt (statistics/rounding.py).
Brackets   for an interval in values are two more choices for each quantile, with 3J for J above: brackets.py.
           With private levels how far out they are follows from the noisy size, which is drawn before them.
Gap        Where levels may go with values, weighted ranks are off by at most κ·D for distribution functions
           of levels that lie D apart: a bias in the same unit, so that `robust` is the best charge here, too,
           and intervals are wider by it. (What Chernoff's bounds say about chance is for random levels.)
Min, max   are the quantile p* = 2·ln(K/0.05)/W from the end (with 9/10·W where a size is released): far
           enough in that, with probability 95 %, the answer is not beyond everyone. `threshold` takes the t
           of the lowest error that is predicted for that, 100·p* and the error about it, and not that of a
           mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import ceil, log
from typing import TYPE_CHECKING

import numpy as np

from accord.budget import MICRO
from accord.mechanisms.additive import calibrate_by, integer_weights, reads_public_only
from accord.mechanisms.brackets import brackets
from accord.mechanisms.rank_choice import MOST_ENTRIES, RankCalibration, chosen, spending_for, spending_of
from accord.mechanisms.rank_errors import predict, size_errors, total_weight
from accord.mechanisms.record import Calibration, ChargeRule, Method, Task
from accord.mechanisms.size import BEYOND
from accord.ordered import MOST_PARTS, entries
from accord.statistics.ranks import SIZE_PART
from accord.statistics.target_ranks import Extremes, Quantiles, Ranks
from accord.theory import as_floats, threshold_errors

if TYPE_CHECKING:
    from accord.noise import Noise
    from accord.people.summary import Summary

ANYWHERE = "may land anywhere in the bounds"
LEAST_WEIGHT = 20
"""For which parts are planned where people may come and go, however little weight the roster has."""


def weighted_rank(charge_rule: ChargeRule) -> Method:
    """A function of charges.py, for quantiles."""
    calibrate_mean = calibrate_by(charge_rule)

    def calibrate(task: Task) -> RankCalibration:
        one_by_one = calibrated(task)
        is_bounded = task.relation.levels_are_public  # else nobody knows how much W is at most, as M must
        if task.target.outputs == 1 or task.target.in_values or not is_bounded:
            return one_by_one
        together = calibrated(task, together=True)
        if together.parts is None or predict(task, together).rmse >= predict(task, one_by_one).rmse:
            return one_by_one
        return together

    def calibrated(task: Task, together: bool = False) -> RankCalibration:
        target: Ranks = task.target
        if isinstance(target, Quantiles):
            variance = target.smooth_cost**2 * spending_for(target, target.ps, together).variance
            weighted, ps = calibrate_mean(replace(task, noise_variance=variance)), target.ps
        else:
            weighted, ps = _extreme(calibrate_mean, task)
        calibration = RankCalibration(
            weighted.charges, weighted.weights, weighted.noise_variance, weighted.note, ps
        )
        weight = total_weight(calibration, task)
        if together:
            calibration = drawn_together(calibration, target, task.groups * weight)
        by_size = size_errors(task, calibration, spending_of(target, calibration))
        if target.in_values:
            is_assumed = not task.relation.levels_are_public
            beside = brackets(by_size, weight, task.groups * weight, target.tells_size, is_assumed)
            calibration = replace(calibration, brackets=beside)
        if not by_size.is_safe(weight):
            return replace(calibration, note=f"{calibration.note}; {ANYWHERE}")
        if calibration.noise_variance and isinstance(target, Extremes):
            rarely = "beyond everyone at most once in 20" + (" if all are there" if target.tells_size else "")
            return replace(calibration, note=f"{calibration.note}, {rarely}")
        return calibration

    return Method((Quantiles, Extremes), calibrate, predict, _answer, draws_brackets=True)


def drawn_together(calibration: RankCalibration, target: Ranks, most: float) -> RankCalibration:
    """With as many parts of each point as a tuple needs where people weigh `most` at most.

    As it is where there would be too many, or where there is no noise.
    """
    rate, outputs = spending_for(target, calibration.ps, together=True).rate, len(calibration.ps)
    assert rate is not None
    least = 0 if target.relation.people_are_public else LEAST_WEIGHT
    parts = max(1, ceil(rate * outputs * max(Fraction(most), Fraction(least)) / 2))
    is_large = entries(outputs, most * float(rate) / 4) > MOST_ENTRIES
    if is_large or target.total_times * parts >= MOST_PARTS or calibration.noise_variance == 0:
        return calibration
    note = f"{calibration.note}; all {outputs} quantiles in one draw"
    return replace(calibration, note=note, parts=parts)


def _answer(summary: Summary, calibration: RankCalibration, target: Ranks, noise: Noise) -> list[Fraction]:
    weights = summary.at_points(integer_weights(calibration.charges))
    return chosen(
        weights,
        calibration.ps,
        noise,
        spending_of(target, calibration),
        reads_public_only(calibration.charges),
        calibration.brackets,
        target.times,
        calibration.parts,
    )


def _extreme(
    calibrate_mean: Callable[[Task], Calibration], task: Task
) -> tuple[Calibration, tuple[Fraction, ...]]:
    """Charges and p*, which depend on each other: a few rounds settle it."""
    target: Extremes = task.target
    p, scale = Fraction(1, 2), _extreme_scale(target)
    if not isinstance(task.t, int):  # `threshold` looks at t; other functions of charges.py do not
        task = replace(task, t=_best_threshold(task))
    for _ in range(6):
        weighted = calibrate_mean(replace(task, variance=float(p * (1 - p))))
        if weighted.noise_variance == 0:
            p = Fraction(1, 2 * task.total)  # the end itself
        else:
            fraction = scale * log(target.total_times / BEYOND) / total_weight(weighted, task)
            p = min(Fraction(1, 2), Fraction(ceil(fraction * MICRO), MICRO))
    ps = (1 - p if target.is_largest else p,)
    return replace(weighted, note=f"{weighted.note}; at the quantile {float(ps[0]):.6g}"), ps


def _extreme_scale(target: Extremes) -> float:
    """Of the choices of a minimum or maximum, at most."""
    return 2 / float(1 - SIZE_PART) if target.tells_size else 2.0


def _best_threshold(task: Task) -> int:
    """The level t of the lowest error that is predicted for a minimum or maximum of people charged t."""
    target, levels = task.target, as_floats(task.levels)
    people = np.cumsum(task.people[::-1])[::-1].astype(np.float64)
    weight = people * levels  # ∞: public people alone, without noise
    needed = _extreme_scale(target) * log(target.total_times / BEYOND) / weight
    p = np.maximum(np.minimum(needed, 0.5), 1 / (2 * task.total))
    variance = p * (1 - p) / people + task.noise_variance / weight**2 + 2 / people**2
    errors = np.where(needed <= 0.5, np.minimum(p + np.sqrt(variance), 1.0), 1.0)
    if task.squared_bias:
        kappas = np.where(people < task.total, 1.0, 0.0) if target.tells_size else 1 - people / task.total
        errors = np.sqrt(errors**2 + task.squared_bias * kappas**2)
    if errors.min() >= 1.0:  # it may land anywhere, whichever t it is: as for a mean
        errors = threshold_errors(levels, task.people, task.variance, task.noise_variance)
    return int(task.levels[np.argmin(errors)])
