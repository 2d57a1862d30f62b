"""What one person can do to the sums behind an answer, for every statistic: exact, by trying all there is.

A mechanism's noise is for the target's `sensitivity`. Nobody loses more than their charge only if no two
states of one person are further apart than that: all cells, and outside where a question is about members.
All of them are tried on small grids, for every statistic of `statistics.ALL` under every relation. A larger
sensitivity than is needed would be waste, so that it is attained. `sample` has sums of its own, of people who
are kept or not.
"""

import inspect
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

import accord
from accord import mechanisms, relation
from accord.cli import main
from accord.mechanisms.record import Refused
from accord.relation import ADD_REMOVE, REPLACE
from accord.statistics import ALL as ALL_NAMED
from accord.statistics import target_and_moves, target_ranks, target_sums
from accord.statistics.encoding import Codes, Grid, Indicator, OneOf, Q
from accord.statistics.mean import MembersMean
from accord.statistics.target_sums import Additive, Cells, Form, Moments

GRIDS = {
    "one step": {"bounds": (0, 1), "step": 1},
    "whole numbers": {"bounds": (0, 4), "step": 1},
    "around zero": {"bounds": (-3, 5), "step": 1},
    "above zero": {"bounds": (2, 4), "step": 0.5},
    "below zero": {"bounds": (-4, -1), "step": 1},
    "odd steps": {"bounds": (-0.3, 0.6), "step": 0.15},
    "wide steps": {"bounds": (-6, 4), "step": 2},
}
RANKED = {"bounds": (0, 3), "step": 1, "missing": "none"}
ALL = tuple(statistic for statistic in ALL_NAMED if not statistic.is_by_columns)
"""Those that are asked of people, by group or not; a crosstab, and the largest groups, are a count by columns."""
EXAMPLES = {
    "count": {"of some": accord.count(where="x > 0"), "of everyone": accord.count()},
    "sum": {name: accord.sum("x", **grid, missing="none") for name, grid in GRIDS.items()},
    "mean": {name: accord.mean("x", **grid, missing="none") for name, grid in GRIDS.items()},
    "proportion": {
        "of a value": accord.proportion("x > 0", missing="none"),
        "of missing ones": accord.proportion("x IS NULL OR NOT z IS NULL"),
    },
    "variance": {name: accord.variance("x", **grid, missing="none") for name, grid in GRIDS.items()},
    "std": {name: accord.std("x", **grid, missing="none") for name, grid in GRIDS.items()},
    "covariance": {
        "none missing": accord.covariance("x", "z", bounds={"x": (0, 2), "z": (0, 2)}, missing="none")
    },
    "correlation": {
        "none missing": accord.correlation("x", "z", bounds={"x": (0, 2), "z": (0, 2)}, missing="none")
    },
    "histogram": {
        "two cells": accord.histogram("x", edges=[0, 1, 2], missing="none"),
        "two cells and nowhere": accord.histogram("x", edges=[0, 1, 2]),
        "three cells": accord.histogram("x", edges=[0, 1, 2, 3], missing="none"),
        "two categories and nowhere": accord.histogram("x", categories=["a", "b"]),
        "two categories": accord.histogram("x", categories=["a", "b"], missing="b"),
        "a category for others": accord.histogram("x", categories=["a", "b"], missing="others"),
        **{
            f"up to {k} of {n}, {place}": accord.histogram(
                "x", categories=list("abcde")[:n], at_most=k, missing=missing
            )
            for n, k in ((2, 2), (3, 2), (3, 3), (5, 2), (5, 3))
            for place, missing in (("nowhere", None), ("the first", "a"), ("apart", "others"))
        },
    },
    "rows": {f"at most {most}": accord.rows(max=most) for most in (1, 3)},
    "median": {"one": accord.median("x", **RANKED)},
    "quantile": {
        "one": accord.quantile("x", 0.9, **RANKED),
        "two": accord.quantile("x", [0.25, 0.75], **RANKED),
    },
    "min": {"one": accord.min("x", **RANKED)},
    "max": {"one": accord.max("x", **RANKED)},
    "regression": {
        "on a number": accord.regression("x", ["z"], bounds={"x": (0, 2), "z": (0, 2)}, missing="none")
    },
}
"""Questions of every statistic, on grids so small that every person can be tried."""


def targets_of(query):
    """What mechanisms answer: of everyone under each relation, and of members where there is such a form."""
    of_everyone = {str(each): query.under(each) for each in relation.ALL}
    members = query.under(REPLACE, about_members=True)
    return of_everyone | ({} if members is None else {"replace, about members": members})


ASKED = {
    f"{name}, {example}, {under}": target
    for name, examples in EXAMPLES.items()
    for example, query in examples.items()
    for under, target in targets_of(query).items()
}
SUMS = {name: target for name, target in ASKED.items() if isinstance(target, Additive)}
each_sum = pytest.mark.parametrize("name", SUMS)
each_kept = pytest.mark.parametrize("name", [name for name, target in SUMS.items() if target.has_cells])
"""`sample` answers these."""


# ---- one person --------------------------------------------------------------------------------------------


OUTSIDE = "outside"


def states(target):
    """All that one person can be: at a cell, in no cell of a histogram (None), or outside of the question."""
    encoding = target.query.encoding
    match encoding:
        case Grid():
            cells = list(range(encoding.cells + 1))
        case Indicator():
            cells = [0, 1] if encoding.condition else [1]
        case Codes():  # every eighth of the scale, where all that matters is: test_covariance.py has the others
            cells = [*product(range(-Q, Q + 1, Q // 4), repeat=2)]
        case OneOf(at_most=1):
            cells = [*range(encoding.cells), *([None] if encoding.missing is None else [])]
        case OneOf():
            declared, others = range(len(encoding.categories)), encoding.missing
            cells = [set(some) for k in range(encoding.at_most) for some in combinations(declared, k + 1)]
            cells.append(None if others is None else {others})
    return [*cells, *([OUTSIDE] if target.about_members else [])]


def cells_of(state):
    """In which cells of a histogram somebody is."""
    return state if isinstance(state, set) else set() if state is None else {state}


def columns(target, state):
    """What one person adds to a Summary: powers of their cell, or 1 in their cell of a histogram."""
    encoding = target.query.encoding
    if isinstance(encoding, Codes):
        point = {-1: state[0], 0: state[1]}
        factors = [[point[k] for k in product.columns] for product in encoding.products]
        return [*(Q * f[0] if len(f) == 1 else f[0] * f[1] for f in factors), 1]
    if isinstance(encoding, OneOf):
        return [int(cell in cells_of(state)) for cell in range(encoding.cells)]
    powers = range(1 + getattr(encoding, "powers", 1))
    return [0 if state == OUTSIDE else state**power for power in powers]


def noisy_sums(target, state):
    """What one person adds to the sums that have a noise: of two complementary ones, the first."""
    sums = target.sums(columns(target, state), 1)
    return sums[:1] if target.complementary else sums


def kept_sums(target, state):
    """What one person who is kept adds to the sums of `sample`."""
    encoding = target.query.encoding
    cells = 1 if isinstance(encoding, Indicator) else encoding.cells
    count = cells if isinstance(encoding, OneOf) else cells + 1
    if state is None:
        return target.kept_sums(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), count)
    if isinstance(state, set):
        return target.kept_sums(np.array([*state]), np.ones(len(state), dtype=np.int64), count)
    return target.kept_sums(np.array([count if state == OUTSIDE else state]), np.array([1]), count)


def distance(one, other):
    return sum(abs(a - b) for a, b in zip(one, other, strict=True))


def largest_change(target, people_are_public):
    """By how much one person can change all noisy sums together: by another state, or by coming and going."""
    sums = [noisy_sums(target, state) for state in states(target)]
    nothing = [0] * len(sums[0])
    pairs = product(sums, sums) if people_are_public else ((one, nothing) for one in sums)
    return max(distance(one, other) for one, other in pairs)


def largest_kept(target):
    """By how much one person who is kept or not can change the sums of `sample`."""
    return max(sum(abs(x) for x in kept_sums(target, state)) for state in states(target))


def test_a_crosstab_is_a_count_by_several_columns():
    keys = {"g": [1, 2], "h": [3]}
    assert accord.crosstab("g", "h", keys=keys) == accord.count(by=["g", "h"], keys=keys)


def test_every_statistic_is_tried():
    assert set(EXAMPLES) == {statistic.name for statistic in ALL}
    summed = {s.name for s in ALL if issubclass(s.family, Additive)}
    assert {name.split(",")[0] for name in SUMS} == summed
    assert sum("about members" in name for name in SUMS) > 10


@each_sum
def test_nobody_changes_the_sums_by_more_than_the_sensitivity_and_somebody_by_as_much(name):
    target = SUMS[name]
    change = largest_change(target, target.relation.people_are_public)
    if target.is_public:  # a count of everyone: nothing can change
        assert change == 0
        return
    assert change == target.sensitivity


@each_kept
def test_nobody_who_is_kept_changes_the_sums_by_more_than_their_sensitivity(name):
    target = SUMS[name]
    most = largest_kept(target)
    assert most <= target.kept_sensitivity
    if not target.is_public:
        assert most == target.kept_sensitivity


@pytest.mark.parametrize("grid", GRIDS)
def test_somebody_outside_adds_nothing_to_a_sum_of_members(grid):
    target = EXAMPLES["sum"][grid].under(REPLACE, about_members=True)
    (form,) = target.forms
    assert 0 <= form.outside <= target.sensitivity
    assert target.finish([Fraction(form.outside)], 1) == 0


@each_sum
def test_the_forms_are_what_is_summed(name):
    """Of one person, of several of them together, and of those who are kept."""
    target, tried = SUMS[name], states(SUMS[name])
    assert target.released == len(target.sums(columns(target, tried[0]), 1))
    if isinstance(target, Cells):
        assert target.forms == ()
        assert all(sum(columns(target, state)) == len(cells_of(state)) for state in tried)
        assert max(len(cells_of(state)) for state in tried) == target.cells_each
        return
    for state in tried if target.has_cells else ():
        forms, kept = (
            [form.outside if state == OUTSIDE else form.at(state) for form in each]
            for each in (target.forms, target.kept_forms)
        )
        assert target.sums(columns(target, state), 1) == forms
        assert kept_sums(target, state) == kept
        assert target.from_kept(kept) == forms
    together = [sum(column) for column in zip(*(columns(target, state) for state in tried), strict=True)]
    alone = [target.sums(columns(target, state), 1) for state in tried]
    summed = [sum(sums) for sums in zip(*alone, strict=True)]
    assert target.sums(together, len(tried)) == summed


LEFT_OUT = {
    "sum": accord.sum("x", **GRIDS["above zero"]),
    "mean": accord.mean("x", **GRIDS["above zero"]),
    "proportion": accord.proportion("x > 2"),
    "variance": accord.variance("x", **GRIDS["above zero"]),
    "std": accord.std("x", **GRIDS["above zero"]),
    "covariance": accord.covariance("x", "z", bounds={"x": (0, 2), "z": (0, 2)}),
    "correlation": accord.correlation("x", "z", bounds={"x": (0, 2), "z": (0, 2)}),
    "median": accord.median("x", **GRIDS["above zero"]),
    "quantile": accord.quantile("x", 0.9, **GRIDS["above zero"]),
    "min": accord.min("x", **GRIDS["above zero"]),
    "max": accord.max("x", **GRIDS["above zero"]),
    "regression": accord.regression("x", ["z"], bounds={"x": (0, 2), "z": (0, 2)}),
}
"""Questions as they are asked by default, about whoever has a value."""


@pytest.mark.parametrize("name", LEFT_OUT)
def test_whoever_has_a_value_is_a_private_part(name):
    """Under replace with a form of its own, or charged as one of several groups; never as if all had one."""
    query = LEFT_OUT[name]
    target, moves = target_and_moves(query, REPLACE)
    if name in ("variance", "std", "covariance", "correlation"):
        assert (target.relation, moves) == (ADD_REMOVE, 2)
    else:
        assert target.about_members and (target.relation, moves) == (REPLACE, 1)
    assert target_and_moves(query, ADD_REMOVE) == (query.under(ADD_REMOVE), 1)
    declared = query.with_all_values()
    assert target_and_moves(declared, REPLACE) == (declared.under(REPLACE), 1)
    assert not declared.excludes_missing and declared.with_all_values() is None
    assert query.with_all_values(["x", "z"]) == declared and query.with_all_values(["z"]) is None


# ---- teeth -------------------------------------------------------------------------------------------------


def twice(form):
    """A form that moves twice as far with somebody's cell."""
    return replace(form, first=2 * form.first, second=2 * form.second)


def planted(target, **changed):
    """The same target with something else in the place of some of its properties or methods."""
    changed_type = type("Planted", (type(target),), changed)
    return changed_type(target.query, target.relation, target.about_members)


def with_large_form(target):
    if isinstance(target, Cells):  # in two cells at once
        return planted(
            target,
            sums=lambda self, columns, everyone: [2 * x for x in columns],
            kept_sums=lambda self, cells, people, count: [
                2 * x for x in target.kept_sums(cells, people, count)
            ],
        )
    if isinstance(target, Moments):
        return planted(target, sums=lambda self, *of: [2 * x for x in target.sums(*of)])
    first, *others = target.forms
    return planted(target, forms=property(lambda self: (twice(first), *others)), **kept_with(target, twice))


def kept_with(target, change):
    """The same for the sums of those who are kept, where they are others than the target's."""
    first, *others = target.kept_forms
    if not isinstance(target, MembersMean):
        return {}
    return {"kept_forms": property(lambda self: (change(first), *others))}


@each_sum
def test_a_form_that_is_too_large_is_noticed(name):
    target = SUMS[name]
    if target.is_public:
        return
    bad = with_large_form(target)
    assert bad.sensitivity == target.sensitivity and bad.kept_sensitivity == target.kept_sensitivity
    assert largest_change(bad, target.relation.people_are_public) > target.sensitivity
    if target.has_cells:
        assert largest_kept(bad) > target.kept_sensitivity


@pytest.mark.parametrize("name", [name for name in SUMS if "about members" in name])
def test_somebody_outside_who_adds_too_much_is_noticed(name):
    target = SUMS[name]
    far = 2 * target.sensitivity + 1
    first, *others = target.forms
    bad = planted(
        target,
        forms=property(lambda self: (replace(first, outside=far), *others)),
        **kept_with(target, lambda form: replace(form, outside=far)),
    )
    assert largest_change(bad, True) > target.sensitivity
    assert largest_kept(bad) > target.kept_sensitivity


def test_the_relation_decides():
    """Sums that are for who comes or goes are not for who changes a value, but for those of one sign."""
    for name in ("mean", "sum", "variance", "std"):
        target = ASKED[f"{name}, whole numbers, add-remove"]
        assert largest_change(target, True) == 2 * target.sensitivity
    cells = ASKED["histogram, three cells, add-remove"]
    assert largest_change(cells, True) == 2 * cells.sensitivity


def test_a_form_adds_up():
    form = Form(constant=3, first=-2, second=5, outside=7)
    people = [0, 1, 4, 4]
    whole = form.total(6, len(people), sum(people), sum(q * q for q in people))
    assert whole == sum(form.at(q) for q in people) + 2 * form.outside
    assert form.at(np.array(people)).tolist() == [form.at(q) for q in people]


# ---- records -----------------------------------------------------------------------------------------------

OF_WHOM = {"where", "by", "keys", "membership", "at_most", "suppress", "rest", "gap", "about"}
WORDS = {"column": {"target"}, "on": {"features", "categories"}}
"""What a regression calls the options of the command line."""
WITHOUT_DASHES = dict.fromkeys(("column", "columns", "condition", "other"), "column")
"""What stands by itself on the command line, after the statistic."""


@pytest.mark.parametrize("statistic", ALL, ids=lambda statistic: statistic.name)
def test_the_record_of_a_statistic_is_complete(statistic):
    assert [s.name for s in ALL].count(statistic.name) == 1
    assert statistic.name in accord.__all__ and getattr(accord, statistic.name) is statistic.ask
    assert statistic.ask.__doc__ and ">>>" in statistic.ask.__doc__
    taken = set(inspect.signature(statistic.ask).parameters)
    assert taken >= OF_WHOM
    declared = {option.name for option in statistic.own_options}
    assert declared <= set(statistic.options)
    assert all(declared.isdisjoint(other.options) for other in ALL if other is not statistic)
    words = WORDS if "on" in statistic.options else {}
    assert set().union(*(words.get(option, {option}) for option in statistic.options)) == taken - OF_WHOM


@pytest.mark.parametrize("command", ["plan", "release"])
@pytest.mark.parametrize("statistic", ALL, ids=lambda statistic: statistic.name)
def test_the_options_of_a_statistic_are_options_of_the_command_line(statistic, command):
    spelled = {word for parameter in main.commands[command].params for word in parameter.opts}
    assert {"--at-most", "--where", "--by", "--keys", "--membership"} <= spelled
    options = {WITHOUT_DASHES.get(name, f"--{name.replace('_', '-')}") for name in statistic.options}
    assert options <= spelled
    (chosen,) = (p for p in main.commands[command].params if p.name == "statistic")
    assert statistic.name in chosen.type.choices


@pytest.mark.parametrize("statistic", ALL, ids=lambda statistic: statistic.name)
def test_the_family_of_a_statistic_is_the_class_of_its_targets(statistic):
    families = vars(target_sums) | vars(target_ranks)
    assert families[statistic.family.__name__] is statistic.family
    for query in EXAMPLES[statistic.name].values():
        if statistic.is_alias:
            assert query.statistic in {s.name for s in ALL if not s.is_alias}
        else:
            assert query.statistic == statistic.name
        for target in targets_of(query).values():
            assert isinstance(target, statistic.family) and target.query is query


@pytest.mark.parametrize("mechanism", mechanisms.ALL, ids=lambda mechanism: mechanism.name)
def test_mechanisms_answer_the_statistics_that_they_say(mechanism):
    for statistic in ALL:
        for query in EXAMPLES[statistic.name].values():
            for target in targets_of(query).values():
                answers = any(
                    isinstance(target, method.answers) and (target.has_cells or not method.needs_cells)
                    for method in mechanism.methods
                )
                assert answers == (query.statistic in mechanism.statistics)
                try:
                    method = mechanism.method(target)
                except Refused as why:
                    assert not answers or "private" in str(why)
                else:
                    assert answers and isinstance(target, method.answers)


@pytest.mark.parametrize("neighbors", relation.ALL, ids=str)
@pytest.mark.parametrize("statistic", ALL, ids=lambda statistic: statistic.name)
def test_some_mechanism_answers_every_statistic_under_every_relation(statistic, neighbors):
    spec = accord.Spec.from_groups({0.5: 2_000, 2.0: 1_000})
    for query in EXAMPLES[statistic.name].values():
        plan = accord.plan(spec, query, neighbors=neighbors.name)
        assert plan.target == query.under(neighbors)
        assert any(candidate.rmse is not None for candidate in plan.candidates)


@each_sum
def test_an_answer_that_is_said_to_be_linear_is(name):
    """`slopes` is by what each released mean moves the answer, wherever the others are; of cells, their own."""
    target, people = SUMS[name], 8
    slopes = target.slopes(people)
    if slopes is None:
        return
    means = [Fraction(k + 1, 7) for k in range(target.released)]
    before = target.finish(means, people)
    for k in range(target.released):
        for moved in (Fraction(1, 3), Fraction(-5)):
            after = target.finish([*means[:k], means[k] + moved, *means[k + 1 :]], people)
            if isinstance(target, Cells):
                cells = zip(before, before.values(), after.values(), strict=True)
                expected = {c: float(moved) * slopes[0] * (i == k) for i, c in enumerate(before)}
                assert {c: y - x for c, x, y in cells} == pytest.approx(expected)
            else:
                assert after - before == pytest.approx(float(moved) * slopes[k])


def test_most_sums_are_linear_and_ratios_are_not():
    linear = {name.split(",")[0] for name, target in SUMS.items() if target.slopes(8) is not None}
    assert linear == {"count", "sum", "mean", "histogram", "rows"}
    of_members = [SUMS[name].slopes(8) for name in SUMS if name.startswith("mean") and "members" in name]
    assert of_members and set(of_members) == {None}
