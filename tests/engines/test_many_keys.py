"""Thousands of groups: the same integers as one by one, and a text that can be read."""

from datetime import date
from math import inf, nan

import numpy as np
import psycopg
import pyarrow as pa
import pytest
from noises import SEEDED

import accord
from accord.engines import keys as key_sql
from accord.engines.duckdb import DuckDB
from accord.errors import QueryError, SourceError
from accord.people.public_groups import PublicGroups

N = 3_000


def answers(source, by, keys, monkeypatch, few, user=None):
    """Exact, because everybody is public."""
    monkeypatch.setattr(key_sql, "FEW_KEYS", few)
    people = accord.table(
        {**source, "e": np.full(N, inf)} if isinstance(source, dict) else source, epsilon="e", user=user
    )
    counted = people.release(accord.count(by=by, keys=keys), "threshold", t=inf)
    summed = people.release(accord.sum("x", bounds=(0, 100), step=1, by=by, keys=keys), "threshold", t=inf)
    return [(row[by], row["value"]) for release in (counted, summed) for row in release.value]


def columns():
    draw = np.random.default_rng(5)
    numbers = draw.choice([*np.arange(200.0), nan, inf, -0.0, 0.5, 2.0**53, 2.0**53 + 2], N)
    words = [*(f"k{j}" for j in range(150)), "it's", "", "É", "e\u0301", " k1", "K1", "k1\n", None]
    text = np.array(words, dtype=object)[draw.integers(0, len(words), N)]
    return {
        "x": draw.integers(0, 100, N).astype(float),
        "number": numbers,
        "text": text,
        "mixed": np.array([1.0, "1", "k1", None, True, "2.0"], dtype=object)[draw.integers(0, 6, N)],
        "day": np.datetime64("2026-01-01") + draw.integers(0, 300, N).astype("timedelta64[D]"),
        "who": draw.integers(0, 1_000, N),
    }


KEYS = {
    "number": [*range(180), 0.5, 2**53, 10**9],
    "text": [*(f"k{j}" for j in range(140)), "it's", "", "É", " k1", "K1", "nobody"],
    "mixed": ["1", "k1", "2.0", *(f"z{j}" for j in range(100))],
    "day": [str(date(2026, 1, 1).replace(month=1 + j // 28, day=1 + j % 28)) for j in range(100)],
}


@pytest.mark.parametrize("by", KEYS)
@pytest.mark.parametrize("user", [None, "who"])
def test_many_keys_are_found_as_one_by_one(by, user, monkeypatch):
    data = columns()
    looked_up = answers(data, by, KEYS[by], monkeypatch, 64, user=user)
    one_by_one = answers(data, by, KEYS[by], monkeypatch, 10**6, user=user)
    assert looked_up == one_by_one
    assert sum(value for _, value in looked_up) > N / 4


TYPES = {
    "x": "double precision",
    "number": "double precision",
    "text": "text",
    "day": "date",
    "who": "bigint",
    "e": "double precision",
}
SERVED = [by for by in KEYS if by in TYPES]


def rows():
    """As a server has them: NULL for None, a date for a day."""
    data = {**columns(), "e": np.full(N, inf)}
    return list(zip(*(data[name].tolist() for name in TYPES), strict=True))


@pytest.mark.postgres
@pytest.mark.parametrize("user", [None, "who"])
def test_many_keys_in_postgresql(postgres_url, user, monkeypatch):
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            f"CREATE TABLE people ({', '.join(f'{name} {kind}' for name, kind in TYPES.items())})"
        )
        with connection.cursor().copy("COPY people FROM STDIN") as copy:
            for row in rows():
                copy.write_row(row)
    for by in SERVED:
        joined = answers(f"{postgres_url}&table=people", by, KEYS[by], monkeypatch, 64, user)
        assert joined == answers(columns(), by, KEYS[by], monkeypatch, 10**6, user), by


@pytest.fixture(scope="module")
def served_by_spark(session):
    schema = ", ".join(f"{name} {kind.split()[0].replace('text', 'string')}" for name, kind in TYPES.items())
    return session.createDataFrame(rows(), schema).cache()


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("by", SERVED)
@pytest.mark.parametrize("user", [None, "who"])
def test_many_keys_in_spark(served_by_spark, by, user, monkeypatch):
    joined = answers(served_by_spark, by, KEYS[by], monkeypatch, 64, user)
    assert joined == answers(columns(), by, KEYS[by], monkeypatch, 10**6, user)


def test_keys_that_are_one_number_are_the_first_of_them():
    keys = [*range(100), 2**53, float(2**53), 0.0, -0.0]
    places = key_sql.key_places(tuple(keys))
    assert places == {float(key): keys.index(key) for key in keys} and len(places) == 101


def test_a_text_shows_the_first_and_the_last_of_many_groups():
    keys = [f"k{j}" for j in range(10_000)]
    people = accord.table({"w": keys, "e": [1.0] * len(keys)}, epsilon="e")
    release = people.release(accord.count(by="w", keys=keys, suppress=False), "minimum")
    text = str(release)
    assert "… 9,900 more groups" in text and "all of them: .value, or --json" in text
    assert "k49 " in text and "k50 " not in text and "k9950 " in text and "k9949 " not in text
    assert len(release.value) == len(release.interval()) == 10_000


GROUPS = {"by": "w", "keys": [f"k{j}" for j in range(80)]}
NUMBERS = {"bounds": (0, 100), "step": 1, **GROUPS}
ASKED = {
    "where": accord.sum("x", where="m = 1", **NUMBERS),
    "exclude": accord.mean("x", missing="exclude", **NUMBERS),
    "median": accord.median("x", **NUMBERS),
    "public": accord.count(where="m = 1", membership="public", **GROUPS),
    "public, exclude": accord.mean("x", missing="exclude", membership="public", **NUMBERS),
    "histogram": accord.histogram("x", edges=[0, 50, 100], **GROUPS),
    "regression": accord.regression("x", ["z"], bounds={"x": (0, 100), "z": (0, 1)}, **GROUPS),
}


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("user", [None, "who"])
def test_every_question_finds_its_keys(name, user, monkeypatch):
    """Conditions, public groups, missing values, choices and moments go through the same join."""
    people, draw = 1_200, np.random.default_rng(5)
    data = {
        "x": np.where(np.arange(people) % 7, draw.integers(0, 100, people), nan),
        "z": draw.uniform(0, 1, people),
        "w": np.array([f"k{j}" for j in range(90)], dtype=object)[np.arange(people) // 4 % 90],
        "m": draw.integers(0, 2, people).astype(float),
        "who": np.arange(people) // 4,
        "e": np.full(people, inf),
    }
    texts = []
    for few in (64, 10**6):
        monkeypatch.setattr(key_sql, "FEW_KEYS", few)
        release = accord.table(data, epsilon="e", user=user).release(ASKED[name], "threshold", t=inf)
        texts.append(repr(release.value))
    assert texts[0] == texts[1] and len(release.value) == 80


# ---- public groups ---------------------------------------------------------------------------------------------------

ALONE = {
    "mean": (accord.mean, {"bounds": (0, 100), "step": 1}, "minimum"),
    "mean where": (accord.mean, {"bounds": (0, 100), "step": 1, "where": "m = 1"}, "proportional"),
    "exclude": (accord.mean, {"bounds": (0, 100), "step": 1, "missing": "exclude"}, "auto"),
    "sum, exclude": (accord.sum, {"bounds": (0, 100), "step": 1, "missing": "exclude"}, "affine"),
    "median": (accord.median, {"bounds": (0, 100)}, "rank"),
    "median, exclude": (accord.median, {"bounds": (0, 100), "missing": "exclude"}, "rank"),
    "by cell": (accord.mean, {"bounds": (0, 8), "step": 1}, "mix"),
    "count where": (accord.count, {"where": "m = 1"}, "auto"),
    "histogram": (accord.histogram, {"edges": [0, 50, 100]}, "minimum"),
}


def crowd(people=900):
    """Nobody is in two of the groups of `w`; a person has up to four rows there and others elsewhere, with a level in each."""
    draw = np.random.default_rng(7)
    who = np.sort(draw.integers(0, people // 3, people))
    key = np.array([f"k{j}" for j in draw.integers(0, 90, people)], dtype=object)[who]
    return {
        "x": np.where(draw.integers(0, 7, people), draw.integers(0, 100, people), nan),
        "w": np.where(draw.integers(0, 5, people), key, None),
        "m": draw.integers(0, 2, people).astype(float),
        "who": who,
        "e": draw.choice([0.0, 0.1, 0.5, 1.0], people),
    }


def group(data, inside, user):
    """The rows of one group as data of their own; levels of people are those of all their rows."""
    strictest = {w: data["e"][data["who"] == w].min() for w in set(data["who"].tolist())}
    e = np.array([strictest[w] for w in data["who"].tolist()]) if user else data["e"]
    return {name: values[inside] for name, values in {**data, "e": e}.items()}


@pytest.mark.parametrize("name", ALONE)
@pytest.mark.parametrize("user", [None, "who"])
def test_public_groups_are_answered_as_tables_of_their_own(name, user):
    """Plans, answers, errors and intervals, on the same noise; one group has nobody, and some rows are of none."""
    make, options, mechanism = ALONE[name]
    data, keys = crowd(), [f"k{j}" for j in range(95)]
    column = () if make is accord.count else ("x",)
    whole = accord.table(data, epsilon="e", user=user)
    SEEDED.seed(name)
    plan = whole.plan(make(*column, by="w", keys=keys, membership="public", **options), mechanism)
    release = whole.release(plan)
    SEEDED.seed(name)
    met, query = (
        (data["m"] == 1) | ("where" not in options),
        {k: v for k, v in options.items() if k != "where"},
    )
    for key in keys:
        rows = group(data, (data["w"] == key) & met, user)
        alone = accord.table(rows, epsilon="e", user=user)
        if not len(rows["x"]) or not alone.spec().total:
            assert plan.plans[key] is None and release.releases[key] is None
            continue
        expected = alone.release(make(*column, **query), mechanism)
        group_release = release.releases[key]
        assert group_release.plan == plan.plans[key] == expected.plan
        assert group_release.value == expected.value and group_release.released == expected.released
        assert {**group_release.receipt(), "time": ""} == {**expected.receipt(), "time": ""}
    assert 0 < sum(part is None for part in release.releases.values()) < 50


@pytest.mark.parametrize("few", [1, 64])
@pytest.mark.parametrize("keys", [["a"], ["a", "b", "c"]])
@pytest.mark.parametrize("values", [[1.0, 9.0, 3.0], [1.0, None, 3.0], [None, None, None]])
def test_whether_a_public_group_of_text_is_answered_is_not_up_to_who_has_a_value(
    values, keys, few, monkeypatch
):
    """With few keys in a column of text it failed, unless nobody had a value: who has one is private."""
    monkeypatch.setattr(key_sql, "FEW_KEYS", few)
    columns = {"w": ["a"] * 3, "x": pa.array(values, pa.float64()), "e": [inf] * 3}
    people = accord.table(pa.table(columns), epsilon="e")
    assert people.columns["w"] == "text"
    query = accord.mean(
        "x", bounds=(0, 10), step=1, by="w", keys=keys, membership="public", missing="exclude"
    )
    present = [x for x in values if x is not None]
    assert people.release(query).value[0]["value"] == (sum(present) / len(present) if present else 5)


def test_a_public_group_has_no_public_groups_of_its_own():
    """They were those of the whole table."""
    columns = {"w": ["a", "a", "b"], "s": ["f", "m", "f"], "e": [inf] * 3}
    by_ward = accord.count(by="w", keys=["a", "b"], membership="public")
    by_sex = accord.count(by="s", keys=["f", "m"], membership="public")
    ward = accord.table(pa.table(columns), epsilon="e").groups(by_ward.part)["a"]
    for ask in (ward.plan, ward.release):
        with pytest.raises(QueryError, match=r"one public group of another.*Ask the whole table, or leave"):
            ask(by_sex)
    assert [row["value"] for row in ward.release(accord.count(by="s", keys=["f", "m"])).value] == [1, 1]


@pytest.mark.parametrize("few", [1, 64])
@pytest.mark.parametrize("user", [None, "who"])
def test_an_algorithm_of_ones_own_is_given_the_rows_of_its_public_group_only(user, few, monkeypatch):
    """With many rows a person, of whoever has one row. Others are not charged for the group's release."""
    monkeypatch.setattr(key_sql, "FEW_KEYS", few)
    data = {"who": [0, 1, 2, 3, 4, 4], "w": [*"aabbaa"], "x": np.arange(6.0), "e": [inf] * 6}
    part = accord.count(by="w", keys=["a", "b"], membership="public").part
    groups = accord.table(data, epsilon="e", user=user).groups(part)
    for key, expected in {"a": [0, 1] if user else [0, 1, 4, 5], "b": [2, 3]}.items():
        rows_given = []
        accord.sample(
            lambda rows, _, given=rows_given: given.append(rows) or 0,
            groups[key],
            rows="numpy",
            columns=["x"],
        )
        assert sorted(rows_given[0][:, 0]) == expected


@pytest.mark.parametrize("user", ["who", None])
def test_regressions_of_public_groups_have_the_moments_of_tables_of_their_own(user):
    data, keys = crowd(), [f"k{j}" for j in range(95)]
    query = accord.regression(
        "x", ["m"], bounds={"x": (0, 100), "m": (0, 1)}, by="w", keys=keys, membership="public"
    )
    whole = accord.table(data, epsilon="e", user=user)
    specs = {k: group.spec() for k, group in enumerate(whole.groups(query.part).values())}
    summaries = PublicGroups(whole.reader, query.part).summaries(query.query, False, specs)
    for place, key in enumerate(keys):
        alone = accord.table(group(data, data["w"] == key, user), epsilon="e", user=user)
        assert sums(summaries[place][0]) == sums(alone.reader.summary(query.query)), key


def sums(summary):
    return summary.people.tolist(), list(summary.rows())


@pytest.mark.parametrize("name", ["mean", "exclude", "median"])
def test_the_number_of_scans_does_not_grow_with_the_number_of_public_groups(name, monkeypatch):
    make, options, mechanism = ALONE[name]
    asked, fetch = [], DuckDB.fetch
    monkeypatch.setattr(DuckDB, "fetch", lambda *args, **more: asked.append(args) or fetch(*args, **more))
    counts = []
    for keys in (2, 95):
        asked.clear()
        table = accord.table(crowd(), epsilon="e", user="who")
        query = make("x", by="w", keys=[f"k{j}" for j in range(keys)], membership="public", **options)
        table.release(table.plan(query, mechanism))
        counts.append(len(asked))
    assert counts[0] == counts[1] <= 10


def test_people_of_no_group_may_have_levels_that_cannot_be_used():
    """Of public groups only their own people are read."""
    data = {"x": [1.0, 2.0, 3.0], "w": ["a", "b", "z"], "e": [1.0, 1.0, 1.0]}
    query = accord.mean("x", bounds=(0, 4), by="w", keys=["a", "b"], membership="public")
    plan = accord.table(data, epsilon="e").plan(query, "minimum")
    release = accord.table({**data, "e": [1.0, 1.0, -7.0]}, epsilon="e").release(plan)
    assert [row["value"] is not None for row in release.value] == [True, True]


def test_rows_of_nobody_are_refused_in_public_groups_too():
    data = {"x": [1.0, 2.0], "w": ["a", "b"], "e": [1.0, 1.0], "who": ["p", None]}
    query = accord.mean("x", bounds=(0, 4), by="w", keys=["a", "b"], membership="public")
    table = accord.table(data, epsilon="e", user="who")
    for _ in range(2):
        with pytest.raises(SourceError, match=r"^1 rows are of nobody"):
            table.plan(query)


def test_rows_of_nobody_are_refused_where_a_plan_was_made_before_they_were_there():
    data = {"x": [1.0, 2.0], "w": ["a", "b"], "e": [1.0, 1.0], "who": ["p", "q"]}
    query = accord.mean("x", bounds=(0, 4), by="w", keys=["a", "b"], membership="public")
    plan = accord.table(data, epsilon="e", user="who").plan(query, "minimum")
    more = {name: [*values, values[0]] for name, values in data.items()} | {"who": ["p", "q", None]}
    with pytest.raises(SourceError, match=r"^1 rows are of nobody"):
        accord.table(more, epsilon="e", user="who").release(plan)


@pytest.mark.parametrize("user", [None, "who"])
def test_a_public_condition_is_answered_about_those_who_meet_it(user):
    data = {"x": [1.0, 2.0, 4.0], "w": ["a", "b", "a"], "e": [inf] * 3, "who": ["p", "q", "r"]}
    query = accord.mean("x", bounds=(0, 4), step=1, where="w = 'a'", membership="public")
    table = accord.table(data, epsilon="e", user=user)
    assert table.release(table.plan(query, "minimum")).value == 2.5


def test_a_text_shows_the_first_and_the_last_of_many_public_groups():
    keys = [f"k{j}" for j in range(300)]
    people = accord.table({"w": keys, "x": [1.0] * 300, "e": [1.0] * 300}, epsilon="e")
    plan = people.plan(accord.mean("x", bounds=(0, 2), by="w", keys=keys, membership="public"), "minimum")
    assert "… 200 more groups" in str(plan) and "'k49'" in str(plan) and "'k50'" not in str(plan)
    text = str(people.release(plan))
    assert text.count("… 200 more groups") == 2 and "w = 'k250'" in text and "w = 'k249'" not in text
