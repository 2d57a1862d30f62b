"""Bugs that only whole programs show, to be planted one by one.

Each lets somebody lose more than they agreed to, or tells of a value by the side.
"""

import logging
from dataclasses import replace

import numpy as np
from planted import changed, everywhere

from accord.budget import PUBLIC
from accord.engines import duckdb_connection, duckdb_sources, keys, per_person, register_sql, row_sampling
from accord.engines.duckdb_dialect import DuckDBDialect
from accord.engines.shapes import meeting
from accord.ledger import cohorts
from accord.people.levels import Levels, RegisteredLevels, Strictest
from accord.people.reader import TableReader
from accord.release import answer as answering
from accord.release import receipt
from accord.report import releases
from accord.statistics import moment_boxes, moments

PLANTED = {}


def bug(function):
    """By its name, in words."""
    PLANTED[function.__name__.replace("_", " ")] = function
    return function


@bug
def a_level_is_taken_for_a_chance(monkeypatch):
    """As it was: with many levels, the chance had a name that a person's level had already."""
    changed(
        monkeypatch,
        row_sampling,
        "kept",
        "WHERE {LENT_WORD} < {KEPT_CHANCE}",
        "WHERE {LENT_WORD} < 9000000000000000000",
    )


@bug
def who_lacks_a_value_is_public(monkeypatch):
    """Of public groups, in which only those are counted who have one."""
    good = keys.with_part

    def bad(dialect, source, part, columns, *lent):
        source, place = good(dialect, source, part, columns, *lent)
        if part.public:
            place = f"CASE WHEN {dialect.finite_number('x', columns['x'])} IS NOT NULL THEN {place} END"
        return source, place

    monkeypatch.setattr(keys, "with_part", bad)


@bug
def one_missing_value_changes_what_kind_a_column_is(monkeypatch):
    monkeypatch.setattr(duckdb_sources, "is_untyped", lambda values: np.asarray(values).dtype.kind == "O")


@bug
def text_among_numbers_makes_a_release_fail(monkeypatch):
    monkeypatch.setattr(DuckDBDialect, "attempt", lambda self, x, kind: f"CAST({x} AS {kind})")


@bug
def an_error_of_the_engine_is_passed_on(monkeypatch):
    """Of dates that no timestamp can hold."""
    changed(monkeypatch, duckdb_connection, "quietly", "fault = type(error).__name__", "fault = str(error)")
    monkeypatch.setattr(DuckDBDialect, "attempt", lambda self, x, kind: f"CAST({x} AS {kind})")


@bug
def a_log_tells_a_sum(monkeypatch):
    good = TableReader.summarize

    def bad(self, *args, **options):
        summaries = good(self, *args, **options)
        logging.getLogger("accord.people.reader").debug("read %s", [list(s.amount) for s in summaries])
        return summaries

    monkeypatch.setattr(TableReader, "summarize", bad)


@bug
def a_text_tells_how_many_were_read(monkeypatch):
    """Under add-remove that is private."""
    good, seen = answering.answer, []

    def answer(plan, summaries, noise):
        seen.extend(int(np.asarray(summary.amount != 0).sum()) for summary in summaries or ())
        return good(plan, summaries, noise)

    release_text = releases.release_text
    everywhere(monkeypatch, good, answer)
    monkeypatch.setattr(releases, "release_text", lambda release: f"{release_text(release)}\n{seen[-1:]}")


@bug
def noise_is_used_twice(monkeypatch):
    """What was drawn for a scale once is added to everything that has it."""
    good, drawn = answering.answer, {}

    class Again:
        def __init__(self, noise):
            self.noise = noise

        def laplace(self, scale):
            if scale not in drawn:
                drawn[scale] = 0 + self.noise.laplace(scale)
            return drawn[scale]

        def __getattr__(self, name):
            return getattr(self.noise, name)

    everywhere(monkeypatch, good, lambda plan, summaries, noise: good(plan, summaries, Again(noise)))


@bug
def who_comes_back_starts_anew(monkeypatch):
    """Whoever leaves all tables has spent nothing afterwards."""
    good = cohorts.apply_moves

    def apply_moves(before, table, moves):
        after, mixed = good(before, table, moves)
        return replace(after, spent=np.where(np.isin(after.id, after.members.cohort), after.spent, 0)), mixed

    everywhere(monkeypatch, good, apply_moves)


@bug
def the_laxest_of_a_persons_tables_counts(monkeypatch):
    def highest(numbers, members):
        level = np.zeros(numbers.size, dtype=np.int64)
        np.maximum.at(level, np.searchsorted(numbers, members.cohort), members.level)
        return level

    monkeypatch.setattr(cohorts, "lowest_level", highest)


@bug
def a_new_version_forgets_what_was_spent(monkeypatch):
    good = cohorts.apply_moves

    def apply_moves(before, table, moves):
        is_old = moves.source != cohorts.NONE
        was = before.levels_in(table)[before.positions(moves.source[is_old])]
        forgotten = moves.target[is_old][(was != cohorts.NONE) & (was != moves.level[is_old])]
        after, mixed = good(before, table, moves)
        return replace(after, spent=np.where(np.isin(after.id, forgotten), 0, after.spent)), mixed

    everywhere(monkeypatch, good, apply_moves)


@bug
def who_chose_no_tier_has_the_laxest(monkeypatch):
    """The default is left out of account."""
    good = Levels.decode

    def decode(self, raw, people):
        if self.tiers is not None and self.default is not None and not self.lenient:
            finite = [level for level in self.tiers.values() if level < PUBLIC]
            object.__setattr__(self, "default", max(finite))
        return good(self, raw, people)

    monkeypatch.setattr(Levels, "decode", decode)


@bug
def cross_products_are_left_out_of_the_sensitivity(monkeypatch):
    """Of regressions with several features."""
    good = moments.sensitivity

    def bad(query, relation, about_members=False):
        entries, whole = query.encoding.products, good(query, relation, about_members)
        crossed = sum(getattr(moments.weights_for(query.codes), e.kind) for e in entries if e.kind == "xx")
        return max(whole - 2 * crossed, whole / 4)

    monkeypatch.setattr(moments, "sensitivity", bad)
    boxes = moment_boxes.MomentBoxes.boxes.fget

    def without(self):
        kept = boxes(self)
        return [replace(box, scale=box.scale / (4 if box is kept[-1] else 1)) for box in kept]

    monkeypatch.setattr(moment_boxes.MomentBoxes, "boxes", property(without))


@bug
def rows_of_one_person_are_kept_one_by_one(monkeypatch):
    """Of an algorithm of one's own: somebody with five rows counts five times."""
    monkeypatch.setattr(
        row_sampling, "single_row_people", lambda dialect, source, user, columns: f"(SELECT * FROM {source})"
    )


@bug
def json_tells_the_exact_answer(monkeypatch):
    """On the command line alone."""
    good, seen = answering.answer, []

    def answer(plan, summaries, noise):
        seen.extend(int(sum(summary.amount.tolist())) for summary in summaries or ())
        return good(plan, summaries, noise)

    to_json = receipt.to_json
    everywhere(monkeypatch, good, answer)
    monkeypatch.setattr(receipt, "to_json", lambda document: to_json({**document, "sum": seen[-1:]}))


@bug
def the_level_of_a_public_group_is_that_of_its_rows(monkeypatch):
    """Somebody's strictest row lies outside of the group."""
    good = per_person.aggregated

    def bad(dialect, source, user, level, encoding, columns, part="0", condition=None, group=None):
        own = condition if group is None else f"({group}) IS NOT NULL"
        inside = source if own is None else meeting(source, own)
        return good(dialect, inside, user, level, encoding, columns, part, condition, group)

    monkeypatch.setattr(per_person, "aggregated", bad)


@bug
def letters_are_not_composed(monkeypatch):
    """é and e with an accent are two people."""
    good = DuckDBDialect.identity
    monkeypatch.setattr(
        DuckDBDialect,
        "identity",
        lambda self, user, kind: good(self, user, kind).replace("nfc_normalize", "trim"),
    )


@bug
def an_undeclared_tier_is_refused_under_add_remove(monkeypatch):
    good = Strictest.decode

    def decode(self, raw, people):
        return good(Strictest(replace(self.rows, lenient=False)), raw, people)

    monkeypatch.setattr(Strictest, "decode", decode)


@bug
def an_entry_of_the_future_counts(monkeypatch):
    """Somebody who chose a stricter tier until a date already has what comes after it."""
    changed(monkeypatch, register_sql, "current_entries", " WHERE {ENTRY_MOMENT} <= {as_of}", "")


@bug
def the_laxest_entry_of_a_day_counts(monkeypatch):
    changed(monkeypatch, register_sql, "current_entries", "MIN({ENTRY_LEVEL})", "MAX({ENTRY_LEVEL})")


@bug
def who_is_not_in_the_register_is_read_under_add_remove(monkeypatch):
    """At the default, as if who is in the table were public."""
    good = RegisteredLevels.expression.fget
    monkeypatch.setattr(
        RegisteredLevels, "expression", property(lambda self: good(replace(self, lenient=False)))
    )
