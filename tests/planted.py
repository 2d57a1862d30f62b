"""Bugs of the kind that privacy libraries have had, to be planted one by one.

An audit that does not find them is worth nothing.
"""

import __future__

import inspect
import random
import secrets
import sys
import textwrap
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from threading import Condition
from types import ModuleType, SimpleNamespace

import numpy as np

from accord import budget, noise, ordered
from accord.budget import MICRO
from accord.engines import per_person, shapes
from accord.engines.duckdb_dialect import DuckDBDialect
from accord.engines.sql_names import SUM
from accord.lab.simulation.noise import Seeded
from accord.ledger import charging
from accord.mechanisms import additive, pe, rank_choice, regression, sample
from accord.mechanisms.record import Calibration
from accord.people import aggregation, keeping
from accord.people.levels import Levels
from accord.people.public_groups import PublicGroups
from accord.people.reader import TableReader
from accord.people.summary import Summary
from accord.people.table import Table
from accord.planning import Plan, together
from accord.release import answer as answering
from accord.spec import Spec
from accord.statistics import Grid, groups, ranks
from accord.statistics.histogram import CellsTarget
from accord.statistics.mean import MembersMean
from accord.statistics.ranks import spending

releasing = import_module("accord.release.release")
"""Where releases take their noise from, and are carried out."""
PLANTED = {}


def bug(function):
    """By its name, in words."""
    PLANTED[function.__name__.replace("_", " ")] = function
    return function


def everywhere(monkeypatch, original, bad):
    """In every module that has it under its own name."""
    for name, module in list(sys.modules.items()):
        if name.startswith("accord") and vars(module).get(original.__name__) is original:
            monkeypatch.setattr(module, original.__name__, bad)


def sums_at_scale(target, summary, c, noise, scale):
    """`additive.noisy_sums` with another scale."""
    total = budget.total_of(c, summary.people)
    sums = target.sums(summary.weighted(c), total)
    noisy = [s + noise.laplace(Fraction(scale)) for s in sums[: 1 if target.complementary else None]]
    return [noisy[0], total - noisy[0]] if target.complementary else noisy


@bug
def noise_scale_halved(monkeypatch):
    monkeypatch.setattr(
        additive,
        "noisy_sums",
        lambda s, c, _, target, n: sums_at_scale(target, s, c, n, Fraction(MICRO * target.sensitivity, 2)),
    )


@bug
def noise_scale_halved_in_the_sampler(monkeypatch):
    text = Path(noise.__file__).read_text(encoding="utf-8")
    good = "t, s = scale.numerator, scale.denominator"
    assert good in text
    copy = ModuleType("accord.noise")
    exec(
        compile(text.replace(good, "t, s = scale.numerator, 2 * scale.denominator"), "noise", "exec"),
        vars(copy),
    )
    monkeypatch.setattr(releasing, "SECURE", copy.SECURE)


@bug
def charge_not_applied_to_one_tier(monkeypatch):
    def cost(self):
        charges = self.calibration.charges.copy()
        charges[0] = 0
        return charges

    monkeypatch.setattr(Plan, "cost", property(cost))


@bug
def epsilon_rounded_up(monkeypatch):
    good = budget.to_micro

    def bad(levels):
        down = good(levels)
        return np.where(down == budget.PUBLIC, down, down + (down / MICRO < np.asarray(levels, dtype=float)))

    everywhere(monkeypatch, good, bad)


@bug
def sampled_count_as_the_denominator(monkeypatch):
    kept = []

    def thin(*args):
        kept.append(good(*args))
        return kept[-1]

    good = sample.thin
    monkeypatch.setattr(sample, "thin", thin)
    monkeypatch.setattr(
        sample, "expected", lambda calibration, summary: Fraction(max(1, int(kept[-1].sum())))
    )


def naive_scores(levels, points, level, people, p, size):
    """[J]'s words taken literally.

    The rank of r is the number of people below it, and the change is of so many people on the other side.
    """
    n = int(people.sum())
    m = min(int(p * n), n - 1)
    people = [
        (int(x), int(levels[j]))
        for x, j, count in zip(points, level, people, strict=True)
        for _ in range(count)
    ]
    scores = []
    for r in range(size):
        below = sorted(level for x, level in people if x < r)
        above = sorted(level for x, level in people if x > r)
        scores.append(-sum(above[: max(m - len(below), 0)]) - sum(below[: max(len(below) - m, 0)]))
    return np.array(scores)


@bug
def rank_of_pe_read_naively_under_ties(monkeypatch):
    monkeypatch.setattr(pe, "quantile_scores", naive_scores)


@bug
def sensitivity_of_the_larger_bound_under_replace(monkeypatch):
    def bad(summary, c, _, target, noise):
        grid = target.query.encoding
        larger = (
            max(abs(grid.low), abs(grid.high)) / grid.step if isinstance(grid, Grid) else target.sensitivity
        )
        return sums_at_scale(target, summary, c, noise, MICRO * larger)

    monkeypatch.setattr(additive, "noisy_sums", bad)


@bug
def histogram_noise_for_one_cell(monkeypatch):
    monkeypatch.setattr(CellsTarget, "sensitivity", property(lambda self: 1))


@bug
def a_float_sum(monkeypatch):
    monkeypatch.setattr(DuckDBDialect, "sum", lambda self, x: f"CAST(SUM(CAST({x} AS DOUBLE)) AS HUGEINT)")


@bug
def a_seeded_generator(monkeypatch):
    monkeypatch.setattr(releasing, "SECURE", Seeded(np.random.default_rng(0)))


@bug
def midpoint_decided_from_the_data(monkeypatch):
    good = Table.plan

    def bad(self, query, *args, **options):
        plan = good(self, query, *args, **options)
        engine = self.reader.engine
        mean = engine.fetch(f"SELECT COALESCE(AVG(x), 0) AS mean FROM {engine.source} AS everyone")["mean"]
        if float(mean[0]) >= 0:
            return plan
        nobody = np.zeros(plan.spec.micro.size)
        return replace(
            plan,
            mechanism="midpoint",
            calibration=Calibration(nobody.astype(np.int64), nobody, 0.0, "not worth it"),
        )

    monkeypatch.setattr(Table, "plan", bad)


@bug
def exact_size_of_a_group_leaks(monkeypatch):
    good = answering.answer

    def bad(decided, summaries, noise):
        value, released = good(decided, summaries, noise)
        if summaries is None:
            return value, released
        return [
            row | {"people": int(s.amount.sum())} for row, s in zip(value, summaries, strict=True)
        ], released

    everywhere(monkeypatch, good, bad)


@bug
def missing_values_are_not_counted(monkeypatch):
    good = shapes.by_level

    def bad(dialect, source, *args):
        return good(dialect, f"(SELECT * FROM {source} AS everyone WHERE NOT isnan(x))", *args)

    monkeypatch.setattr(shapes, "by_level", bad)


@bug
def rows_of_a_person_without_a_limit(monkeypatch):
    good = per_person.cell

    def bad(dialect, encoding, is_read):
        is_rows = isinstance(encoding, Grid) and encoding.per_person == "rows"
        return SUM.format(0) if is_rows else good(dialect, encoding, is_read)

    monkeypatch.setattr(per_person, "cell", bad)


@bug
def people_kept_too_often(monkeypatch):
    good = sample.probabilities
    monkeypatch.setattr(sample, "probabilities", lambda *args: np.minimum(1.0, 1.05 * good(*args)))


@bug
def opted_out_people_are_read(monkeypatch):
    monkeypatch.setattr(Levels, "is_read", "TRUE")
    good = budget.to_micro
    everywhere(monkeypatch, good, lambda levels: np.maximum(good(levels), 1))


@bug
def half_of_a_charge_is_booked(monkeypatch):
    good = charging.reserve_all

    def halved(plan):
        if plan.choice is None:
            return plan
        return plan.with_choice(calibration=replace(plan.calibration, charges=plan.calibration.charges // 2))

    def bad(books, asked, *signature):
        return good(books, [(table, halved(plan)) for table, plan in asked], *signature)

    monkeypatch.setattr(charging, "reserve_all", bad)


def changed(monkeypatch, owner, name, good, bad):
    """A function of a module or a class with other words in its text, or several of each."""
    function = vars(owner)[name]
    text = textwrap.dedent(inspect.getsource(function))
    for one, other in [(good, bad)] if isinstance(good, str) else zip(good, bad, strict=True):
        assert text.count(one) == 1, (name, one)
        text = text.replace(one, other)
    defined = {}
    code = compile(text, name, "exec", __future__.annotations.compiler_flag)
    exec(code, inspect.unwrap(function).__globals__, defined)
    everywhere(monkeypatch, function, defined[name])
    monkeypatch.setattr(owner, name, defined[name])


SECURE = type(noise.SECURE)


@bug
def laxest_level_of_a_persons_rows(monkeypatch):
    changed(monkeypatch, per_person, "aggregated", 'f"MIN({level})', 'f"MAX({level})')


@bug
def chances_of_another_level(monkeypatch):
    good = "chances[np.searchsorted(spec.micro, micro[has_chance])]"
    changed(monkeypatch, keeping, "kept_rows", good, "chances.max()")


@bug
def random_words_of_half_the_size(monkeypatch):
    changed(monkeypatch, SECURE, "words", ">> 1", ">> 2")


@bug
def an_algorithm_is_told_twice_its_budget(monkeypatch):
    changed(monkeypatch, answering, "run_algorithm", "calibration.t * plan.relation.inner", "calibration.t")


@bug
def exact_size_in_the_interval(monkeypatch):
    exact = "tuple(Fraction(int(sum(s.amount))) for s in summaries or [] for _ in released)"
    changed(
        monkeypatch,
        releasing,
        "carry_out",
        "return Release(plan, value, datetime.now(UTC), released)",
        f"return Release(plan, value, datetime.now(UTC), {exact})",
    )


@bug
def noise_for_one_cell_of_several(monkeypatch):
    """A person is in up to two cells, and the noise is for one that they leave, and one that they enter."""
    monkeypatch.setattr(CellsTarget, "sensitivity", property(lambda self: self.relation.cells_changed))


@bug
def a_charge_for_one_group_of_several(monkeypatch):
    def bad(query, relation):
        target, moves = good(query, relation)
        return target, min(moves, relation.group_moves)

    good = groups.target_and_moves
    everywhere(monkeypatch, good, bad)


@bug
def several_private_groups_charged_as_one(monkeypatch):
    """What one group bears, where nobody can move into another."""
    monkeypatch.setattr(groups, "number_of_parts", lambda part: 1)


@bug
def the_rest_is_no_group_to_move_to(monkeypatch):
    """As if whoever has no key stayed where they are, so that nobody comes or goes."""

    def bad(query, relation):
        target, moves = good(query, relation)
        has_rest = isinstance(query, groups.Grouped) and query.part.about_rest
        return target, 1 if has_rest else moves

    good = groups.target_and_moves
    everywhere(monkeypatch, good, bad)


@bug
def the_largest_by_exact_sizes(monkeypatch):
    """Noisy sizes of groups that are chosen without noise."""
    exact = (
        "rows, noisy = finished(plan, released, True)\n"
        "    part = getattr(plan.query, 'part', None)\n"
        "    if part is not None and part.largest is not None:\n"
        "        size = {group: sum(summaries[place].amount) for group, place in part.places.items()}\n"
        "        rows = sorted(rows, key=lambda row: -size[part.group_of(row)])[: part.largest]\n"
        "    return rows, noisy"
    )
    text = "        released.append(tuple(method.answer(summary, calibration, plan.target, noise)))\n    "
    changed(monkeypatch, answering, "answer", f"{text}return finished(plan, released)", text + exact)


@bug
def share_rounded_up(monkeypatch):
    changed(monkeypatch, budget, "share", "finite * fraction // MICRO", "-(-finite * fraction // MICRO)")


@bug
def one_draw_for_all_cells(monkeypatch):
    changed(
        monkeypatch, additive, "noisy_sums", "return [s + noise.laplace(scale) for s in sums]",
        "z = noise.laplace(scale)\n    return [s + z for s in sums]",
    )  # fmt: skip


@bug
def a_box_without_its_ceiling(monkeypatch):
    """N(z) = max ⌊|z|/span⌋: a change of less than a span may count for one."""
    changed(
        monkeypatch, SECURE, "box", "randbelow(2 * r * span + 1) - r * span for",
        "randbelow(2 * (r + 1) * span - 1) - (r + 1) * span + 1 for",
    )  # fmt: skip


@bug
def a_sum_left_out_of_a_box(monkeypatch):
    changed(
        monkeypatch, additive, "answer_together", "noise.box([*spans, *spans[:1] * absent])",
        "[*noise.box(spans[:-1]), 0]",
    )  # fmt: skip


@bug
def a_moment_left_out_of_its_box(monkeypatch):
    """Of a regression."""
    changed(
        monkeypatch, regression, "_share_noises", "noise.box(box.spans, MICRO * box.scale)",
        "[*noise.box(box.spans[:-1], MICRO * box.scale), 0]",
    )  # fmt: skip


@bug
def a_radius_kept_too_often(monkeypatch):
    """Coins whose chance would be above 1, for the first span."""
    changed(
        monkeypatch, SECURE, "box", ("(r + j)", "enumerate(spans, 1)"), ("max(r + j, 1)", "enumerate(spans)"),
    )  # fmt: skip


@bug
def a_box_at_the_charge_of_one_question(monkeypatch):
    changed(
        monkeypatch,
        together,
        "cost_together",
        "np.maximum.reduce(costs) for costs",
        "costs[0] for costs",
    )


@bug
def the_span_of_another_sum(monkeypatch):
    """Of a mean of members, whose first sum one person moves by two spans."""
    monkeypatch.setattr(MembersMean, "box_spans", property(lambda target: (target.query.cells,) * 2))


@bug
def drawn_again_below_zero(monkeypatch):
    changed(
        monkeypatch, additive, "noisy_sums", "[s + noise.laplace(scale) for s in sums]",
        "[max(s + noise.laplace(scale), 0) or s + noise.laplace(scale) for s in sums]",
    )  # fmt: skip


@bug
def large_scales_cut_to_32_bits(monkeypatch):
    changed(
        monkeypatch, noise, "geometric", "u = secrets.randbelow(t)", "u = secrets.randbelow(min(t, 2**32))"
    )


@bug
def the_tail_of_the_noise_cut_off(monkeypatch):
    changed(monkeypatch, noise, "geometric", "while exp_coin(1, 1):", "while v < 8 and exp_coin(1, 1):")


@bug
def a_choice_without_its_coin(monkeypatch):
    changed(monkeypatch, SECURE, "choose", "if exp_coin(int(gaps[run]) % scale, scale):", "if True:")


@bug
def values_below_the_upper_bound_go_beyond_it(monkeypatch):
    monkeypatch.setattr(Grid, "inverse", property(lambda self: 1.01 / float(self.step)))


@bug
def people_outside_the_roster_are_read(monkeypatch):
    changed(
        monkeypatch, aggregation, "summaries",
        ("np.isin(micro, spec.micro) if", "np.searchsorted(spec.micro, micro[kept])"),
        ("(micro >= 0) if", "np.minimum(np.searchsorted(spec.micro, micro[kept]), spec.micro.size - 1)"),
    )  # fmt: skip


@bug
def a_person_in_two_public_groups(monkeypatch):
    changed(monkeypatch, PublicGroups, "_refuse_people_of_several_groups", "if several:", "if False:")


@bug
def only_one_question_of_a_workload_is_booked(monkeypatch):
    changed(monkeypatch, charging, "_charge_by_cohort", "plan.cost[place]", "plan.parts[0].cost[place]")


@bug
def a_prior_taken_from_the_data(monkeypatch):
    """Points at which somebody is count twice, where the round ones should."""
    bad = "offset, None if times is None else 1 + (weights > 0)))"
    changed(monkeypatch, rank_choice, "chosen", "offset, times))", bad)


@bug
def a_prior_of_tuples_taken_from_the_data(monkeypatch):
    bad = "scale, parts, 1 + (weights > 0))"
    changed(monkeypatch, rank_choice, "chosen", "scale, parts, times)", bad)


@bug
def quantiles_together_at_a_rate_for_one(monkeypatch):
    """As if whoever comes or goes moved no more than somebody whose value changes."""
    changed(
        monkeypatch, ranks, "_spending_together", "/ relation.rank_change(most)", "* 2 / relation.rank_change(most)"
    )  # fmt: skip


@bug
def tuples_out_of_order(monkeypatch):
    changed(monkeypatch, ordered, "draw", "for place in places]", "for place in reversed(places)]")


@bug
def weights_clamped_inside_a_point(monkeypatch):
    """What is aimed at, where it lies inside the weight of a point, in the place of the part's own."""
    good = "f.append(2 * m * int(before[k]) + int(self.weights[k]) * (2 * s + 1))"
    aims = "[int(2 * m * total * p) for p in self.ps if before[k] <= p * total <= before[k + 1]]"
    bad = f"f += {aims}[:1] or [2 * m * int(before[k]) + int(self.weights[k]) * (2 * s + 1)]"
    changed(monkeypatch, ordered.OrderedLaw, "energy", good, bad)


@bug
def a_tuple_accepted_with_more_than_certainty(monkeypatch):
    changed(monkeypatch, ordered, "propose", "largest + rounding", "largest - 2")


# ---- the noise, and where it comes from --------------------------------------------------------------------


def instead(monkeypatch, name, text, **names):
    """A method of the noise with another text, in its own module, where the right one is `fresh`."""
    monkeypatch.setattr(noise, "fresh", vars(SECURE)[name], raising=False)
    for key, value in names.items():
        monkeypatch.setattr(noise, key, value, raising=False)
    defined = {}
    exec(compile(textwrap.dedent(text), name, "exec"), vars(noise), defined)
    monkeypatch.setattr(SECURE, name, defined[name])


@bug
def a_draw_is_kept_for_its_scale(monkeypatch):
    monkeypatch.setattr(SECURE, "laplace", lru_cache(maxsize=None)(vars(SECURE)["laplace"]))


@bug
def every_second_draw_is_the_last_one_again(monkeypatch):
    text = """
        def laplace(self, scale):
            if spare and spare[0][0] == scale:
                return spare.pop()[1]
            spare[:] = [(scale, fresh(self, scale))]
            return spare[0][1]
    """
    instead(monkeypatch, "laplace", text, spare=[])


@bug
def random_words_drawn_ahead(monkeypatch):
    """A child process begins with its parent's."""
    text = """
        def words(self, count):
            if len(ahead) < count:
                ahead.extend(fresh(self, 4096).tolist())
            return np.array([ahead.pop() for _ in range(count)], dtype=np.uint64)
    """
    instead(monkeypatch, "words", text, ahead=[])


@bug
def private_levels_counted_from_the_table(monkeypatch):
    good = TableReader.spec

    def bad(self):
        if self.roster is None or not self.roster.is_expected:
            return good(self)
        columns = self.engine.fetch(shapes.levels(self.people(), self.level_reader.expression))
        return Spec(self.level_reader.decode(columns["level"], columns["people"]), columns["people"])

    monkeypatch.setattr(TableReader, "spec", bad)


@bug
def a_clip_that_follows_from_who_is_there(monkeypatch):
    good = Summary.weighted

    def bad(self, weights):
        there = weights[self.level]
        return good(self, np.minimum(weights, int(there.mean())) if there.size else weights)

    monkeypatch.setattr(Summary, "weighted", bad)


@bug
def a_total_over_the_number_who_are_there(monkeypatch):
    good = additive.noisy_sums

    def bad(summary, weights, total, target, noise):
        there = max(1, int(np.unique(summary.level).size))
        return [s * weights.size // there for s in good(summary, weights, total, target, noise)]

    monkeypatch.setattr(additive, "noisy_sums", bad)


@bug
def a_choice_by_a_generator_seeded_once(monkeypatch):
    text = """
        def choose(self, scores, scale):
            if not once:
                once.append(np.random.default_rng(secrets.randbits(128)))
            return int(np.argmax(np.asarray(scores, dtype=float) / scale + once[0].gumbel(size=len(scores))))
    """
    instead(monkeypatch, "choose", text, once=[])


@bug
def two_threads_at_once_get_one_draw(monkeypatch):
    text = """
        def laplace(self, scale):
            with done:
                if scale in under_way:
                    done.wait_for(lambda: scale not in under_way, 60)
                    return latest[scale]
                under_way.add(scale)
            try:
                latest[scale] = fresh(self, scale)
            finally:
                with done:
                    under_way.remove(scale)
                    done.notify_all()
            return latest[scale]
    """
    instead(monkeypatch, "laplace", text, done=Condition(), under_way=set(), latest={})


@bug
def a_seeded_generator_by_the_name_of_secrets(monkeypatch):
    rng = random.Random(0)
    seeded = SimpleNamespace(randbelow=rng.randrange, randbits=rng.getrandbits, token_bytes=rng.randbytes)
    monkeypatch.setattr(noise, "secrets", seeded)


@bug
def the_generator_of_secrets_is_seeded(monkeypatch):
    monkeypatch.setattr(secrets, "_sysrand", random.Random(0))


@bug
def fractions_of_a_scale_cut_off(monkeypatch):
    changed(monkeypatch, SECURE, "laplace", "scale.numerator, scale.denominator", "max(1, int(scale)), 1")


@bug
def differences_of_scores_beyond_64_bits(monkeypatch):
    changed(monkeypatch, SECURE, "choose", "scores = scores.astype(object)", "pass")


@bug
def a_size_at_the_whole_charge_beside_a_choice(monkeypatch):
    def bad(ps, relation, tells_size, draws=1, together=False):
        good = spending(ps, relation, tells_size, draws, together)
        return replace(good, size=Fraction(1)) if tells_size else good

    everywhere(monkeypatch, spending, bad)
