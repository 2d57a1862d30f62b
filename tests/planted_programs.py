"""Bugs that only whole programs show, to be planted one by one: each lets somebody lose more than they agreed to, or tells of a value by the side."""

import logging
from dataclasses import replace

import numpy as np
from planted import changed, everywhere

from accord.budget import PUBLIC
from accord.engines import duckdb_connection, duckdb_sources, gathering, keeping
from accord.engines.duckdb import DuckDBDialect
from accord.engines.shapes import meeting
from accord.ledger import cohorts
from accord.mechanisms import regression
from accord.people.levels import Levels, Strictest
from accord.people.reader import TableReader
from accord.release import answer as answering
from accord.release import receipt
from accord.report import text
from accord.statistics import groups

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
        keeping,
        "kept",
        "WHERE {LENT_WORD} < k_chance",
        "WHERE {LENT_WORD} < 9000000000000000000",
    )


@bug
def who_lacks_a_value_is_public(monkeypatch):
    changed(monkeypatch, groups, "part_of", "if has_value is not None and is_public:", "if False:")


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
    good = TableReader.aggregate

    def bad(self, *args, **options):
        found = good(self, *args, **options)
        logging.getLogger("accord.people.reader").debug("read %s", [list(s.amount) for s in found])
        return found

    monkeypatch.setattr(TableReader, "aggregate", bad)


@bug
def a_text_tells_how_many_were_read(monkeypatch):
    """Under add-remove that is private."""
    good, seen = answering.answer, []

    def answer(plan, summaries, noise):
        seen.extend(int(np.asarray(one.amount != 0).sum()) for one in summaries or ())
        return good(plan, summaries, noise)

    told = text.release_text
    everywhere(monkeypatch, good, answer)
    monkeypatch.setattr(text, "release_text", lambda made: f"{told(made)}\n{seen[-1:]}")


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
    good = cohorts.follow

    def follow(before, table, moves):
        after, mixed = good(before, table, moves)
        return replace(after, spent=np.where(np.isin(after.id, after.members.cohort), after.spent, 0)), mixed

    everywhere(monkeypatch, good, follow)


@bug
def the_laxest_of_a_persons_tables_counts(monkeypatch):
    def highest(numbers, members):
        level = np.zeros(numbers.size, dtype=np.int64)
        np.maximum.at(level, np.searchsorted(numbers, members.cohort), members.level)
        return level

    monkeypatch.setattr(cohorts, "lowest_level", highest)


@bug
def a_new_version_forgets_what_was_spent(monkeypatch):
    good = cohorts.follow

    def follow(before, table, moves):
        known = moves.source != cohorts.NONE
        was = before.levels_in(table)[before.at(moves.source[known])]
        forgotten = moves.target[known][(was != cohorts.NONE) & (was != moves.level[known])]
        after, mixed = good(before, table, moves)
        return replace(after, spent=np.where(np.isin(after.id, forgotten), 0, after.spent)), mixed

    everywhere(monkeypatch, good, follow)


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
    good = regression.sensitivity

    def bad(query, relation):
        entries = query.encoding.products
        crossed = sum(getattr(regression.weights_for(query.codes), e.kind) for e in entries if e.kind == "xx")
        return max(good(query, relation) - 2 * crossed, good(query, relation) / 4)

    monkeypatch.setattr(regression, "sensitivity", bad)


@bug
def rows_of_one_person_are_kept_one_by_one(monkeypatch):
    """Of an algorithm of one's own: somebody with five rows counts five times."""
    monkeypatch.setattr(
        keeping, "single_row_people", lambda dialect, source, user, kind: f"(SELECT * FROM {source})"
    )


@bug
def json_tells_the_exact_answer(monkeypatch):
    """On the command line alone."""
    good, seen = answering.answer, []

    def answer(plan, summaries, noise):
        seen.extend(int(sum(one.amount.tolist())) for one in summaries or ())
        return good(plan, summaries, noise)

    told = receipt.to_json
    everywhere(monkeypatch, good, answer)
    monkeypatch.setattr(receipt, "to_json", lambda document: told({**document, "sum": seen[-1:]}))


@bug
def the_level_of_a_public_group_is_that_of_its_rows(monkeypatch):
    """Somebody's strictest row lies outside of the group."""
    good = gathering.gathered

    def bad(dialect, source, user, level, encoding, columns, part="0", condition=None, group=None):
        own = condition if group is None else f"({group}) IS NOT NULL"
        inside = source if own is None else meeting(source, own)
        return good(dialect, inside, user, level, encoding, columns, part, condition, group)

    monkeypatch.setattr(gathering, "gathered", bad)


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
