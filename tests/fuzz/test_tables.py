"""Any table and any question: a refusal while planning, or a whole release. A column's name is just a name."""

import json
from datetime import date
from fractions import Fraction
from math import inf, isfinite
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import (
    PLAIN,
    arrow,
    different,
    mechanisms,
    no_wishes,
    opened,
    questions,
    shares,
    tables,
    ways_in,
    wishes,
)

import accord
from accord.errors import AccordError
from accord.people.reader import TableReader

patient = settings(suppress_health_check=list(HealthCheck))
named = different(len(PLAIN)).map(lambda given: dict(zip(PLAIN, given, strict=True)))
asked = st.one_of(questions, questions, questions, st.lists(questions, min_size=1, max_size=2))
options = st.one_of(
    st.fixed_dictionaries({"mechanism": mechanisms, "share": shares}),
    st.fixed_dictionaries({"mechanism": st.sampled_from(["auto", "threshold", "sample"]), "share": shares, "t": st.sampled_from([None, 0.3, inf, "max"])}),
)  # fmt: skip


def made(asked, named=PLAIN):
    """The question, or a workload of several."""
    return accord.workload([a.of(named) for a in asked]) if isinstance(asked, list) else asked.of(named)


def refused(call):
    """What accord says if it refuses; anything else that is raised is a fault."""
    try:
        call()
    except AccordError as refusal:
        told = str(refusal)
        assert told
        assert (refusal.__cause__ is None and refusal.__suppress_context__) or refusal.__context__ is None
        return told
    return None


def whole(value):
    """Numbers, dates and names, and no number that is none."""
    match value:
        case dict():
            assert value and all(whole(v) for v in value.values())
        case list():
            assert value and all(whole(v) for v in value)
        case float():
            assert isfinite(value)
        case accord.Coefficients():
            assert whole([value.intercept, *value.coefficients.values()])
        case _:
            assert value is None or isinstance(value, str | bool | int | date)
    return True


def affordable(share, charges):
    """Nobody is charged more than their share of their level, by the decimals that are shown."""
    for line in charges:
        level, charge = line["level"], line["charge"]
        assert level == "inf" or Fraction(charge) <= Fraction(share) * Fraction(level)


def paid(receipt):
    """Of every receipt in a document."""
    if "charges" in receipt:
        affordable(receipt["share"], receipt["charges"])
    for part in [
        *receipt.get("receipts", ()),
        *(g["receipt"] for g in receipt.get("groups", ()) if g["receipt"]),
    ]:
        paid(part)


def answered(table, query, how):
    """Plan and release: the laws hold for both. None if it is refused."""
    with patch.object(TableReader, "summaries", side_effect=AssertionError("a plan reads no value")):
        told = refused(lambda: table.plan(query, **how))
    if told is not None:
        assert refused(lambda: table.release(query, **how)) == told
        return None
    plan = table.plan(query, **how)
    release = table.release(plan)
    assert str(plan) and repr(plan) and str(release) and repr(release)
    described, receipt = plan.describe(), release.receipt()
    for document in (described, receipt):
        assert json.loads(json.dumps(document, allow_nan=False)) == json.loads(json.dumps(document))
    assert whole(release.value)
    paid(receipt)
    return release


def tried(rows, named, asked, how, way, user):
    table = opened(arrow(rows, named), way, user, named)
    if refused(lambda: made(asked, named)) is None:
        answered(table, made(asked, named), how)


@given(tables(), named, asked, options, ways_in, st.booleans())
@settings(patient, max_examples=75)
def test_a_release_or_a_refusal_while_planning(rows, named, asked, how, way, user):
    tried(rows, named, asked, how, way, user)


@pytest.mark.slow
@given(tables(st.one_of(wishes, wishes, no_wishes)), named, asked, options, ways_in, st.booleans())
@settings(patient, max_examples=400)
def test_a_release_or_a_refusal_while_planning_many_times(rows, named, asked, how, way, user):
    tried(rows, named, asked, how, way, user)


def exact(rows, named, asked, user):
    """The answer when everyone is public, which has no noise; or the refusal."""
    try:
        table = accord.table(arrow(rows, named), epsilon=inf, user=named["who"] if user else None)
        value = table.release(asked.of(named)).receipt()
    except AccordError as refusal:
        return type(refusal)
    answers = [value] if "value" in value else [g["receipt"] for g in value["groups"] if g["receipt"]]
    return [_values(answer["value"]) for answer in answers]


def _values(value):
    """The numbers of an answer, without the names."""
    if isinstance(value, dict) and "coefficients" in value:
        return [value["intercept"], *value["coefficients"].values()]
    if isinstance(value, list):
        return [_values(v["value"]) if isinstance(v, dict) else v for v in value]
    return value


@given(tables(st.just(inf), times=(1, 3)), named, questions, st.booleans())
@settings(patient, max_examples=50)
def test_a_name_is_just_a_name(rows, named, asked, user):
    """Answers without noise are the same under any names of the columns."""
    assert exact(rows, named, asked, user) == exact(rows, PLAIN, asked, user)
