"""What public people have is the same in every engine and form: the same suggestions, to the letter."""

from datetime import date, datetime
from decimal import Decimal
from math import inf, nan

import psycopg
import pyarrow as pa
import pytest
from engines.conftest import FORMS

import accord
from accord.errors import LedgerError

PEOPLE = 240
TIERS = {"public": inf, "standard": 1.5, "none": 0}
QUESTIONS = (
    ("x", {}),
    ("x", {"gap": 3}),
    ("n", {}),
    ("c", {}),
    ("d", {}),
    ("m", {}),
)


def rows():
    """Some people have two rows; one in seven of these has a strict one."""
    for k in range(PEOPLE):
        tier = ("public", "public", "standard", None, "none")[k % 5]
        x = None if k % 11 == 3 else nan if k % 13 == 5 else k * 0.1 + (1e6 if tier != "public" else 0)
        word = None if k % 6 == 1 else f"{'ward' if tier == 'public' else 'secret'} {k % 4} ä"
        day = None if k % 8 == 1 else date(2015 + k % 3, 2, 1) if tier == "public" else date(1900, 1, 1)
        moment = None if day is None else datetime(day.year, 2, 1, 12, 30)
        number = None if x is None or x != x else Decimal(f"{x:.2f}")
        for j in range(1 + k % 2):
            own = "standard" if tier == "public" and j == 1 and k % 7 == 2 else tier
            yield k, x if j == 0 or x is None else x + 0.3, number, word, day, moment, own


NAMES = ("id", "x", "n", "c", "d", "m", "tier")
ARROW = (
    pa.int64(),
    pa.float64(),
    pa.decimal128(12, 2),
    pa.string(),
    pa.date32(),
    pa.timestamp("us"),
    pa.string(),
)
OPTIONS = {"epsilon": "tier", "tiers": TIERS, "default": "standard", "user": "id"}


def in_arrow():
    columns = zip(*rows(), strict=True)
    return pa.table(
        {name: pa.array(values, kind) for name, kind, values in zip(NAMES, ARROW, columns, strict=True)}
    )


def looks(source, **options):
    """Everything but the time."""
    found = []
    for column, more in QUESTIONS:
        look = accord.table(source, **OPTIONS, **options).public(column, **more)
        found.append({name: value for name, value in look.describe().items() if name != "time"})
    return found


@pytest.fixture(scope="module")
def expected():
    return looks(in_arrow())


def test_they_are_what_they_are_in_plain_python(expected):
    levels = {}
    values = {}
    for who, x, _, _, _, _, tier in rows():
        levels[who] = min(levels.get(who, inf), TIERS[tier or "standard"])
        values.setdefault(who, []).extend([] if x is None or x != x else [x])
    public = {who for who, level in levels.items() if level == inf}
    means = [sum(values[who]) / len(values[who]) for who in public if values[who]]
    assert {look["people"] for look in expected} == {len(public)}
    assert expected[0]["missing"] == len(public) - len(means)
    assert (
        expected[0]["value"]["bounds"][0]
        <= min(means)
        <= max(means)
        <= expected[0]["value"]["bounds"][1]
        < 100
    )
    assert expected[3]["value"]["keys"] == [f"ward {k} ä" for k in range(4)]
    assert expected[4]["value"]["bounds"] == ["2015-01-01", "2017-12-31"]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_in_every_form(form, expected, tmp_path):
    """Text of a CSV file has no types: dates are declared where it is described."""
    columns = {name: column.to_pylist() for name, column in zip(NAMES, in_arrow().columns, strict=True)}
    columns["n"] = [None if n is None else float(n) for n in columns["n"]]
    people = form(columns, tmp_path)
    for (column, more), look in zip(QUESTIONS, expected, strict=True):
        if column in "xnc":
            again = accord.table(people, **OPTIONS).public(column, **more).describe()
            assert {name: again[name] for name in ("people", "missing", "value", "why")} == {
                name: look[name] for name in ("people", "missing", "value", "why")
            }, column


@pytest.fixture
def in_postgres(postgres_url):
    with psycopg.connect(postgres_url) as connection, connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE visits (id bigint, x float8, n numeric(12,2), c text, d date, m timestamp, tier text)"
        )
        with cursor.copy("COPY visits FROM STDIN") as copy:
            for row in rows():
                copy.write_row(row)
    return f"{postgres_url}&table=visits"


@pytest.mark.postgres
def test_in_postgresql(in_postgres, expected, tmp_path):
    assert looks(in_postgres) == expected
    people = accord.table(in_postgres, **OPTIONS)
    ledger = accord.Ledger(tmp_path / "a.db")
    ledger.register(people, "visits")
    assert people.public("x", ledger=ledger).bounds == tuple(expected[0]["value"]["bounds"])
    ledger.withdraw(0)
    with pytest.raises(LedgerError, match="cannot be matched with the ledger person by person"):
        people.public("x", ledger=ledger)


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
def test_in_spark(session, expected):
    types = "id bigint, x double, n decimal(12,2), c string, d date, m timestamp_ntz, tier string"
    assert looks(session.createDataFrame(list(rows()), types)) == expected


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.string()])
def test_ids_of_every_kind_with_a_register(kind, expected):
    """Levels of the register; whatever stands in the rows."""
    table = in_arrow().drop_columns(["tier"])
    table = table.set_column(0, "id", table["id"].cast(kind))
    levels = {}
    for who, *_, tier in rows():
        levels[who] = min(levels.get(who, "public"), tier or "standard", key=TIERS.get)
    register = {"who": [f" {who}.0" for who in levels], "tier": list(levels.values())}
    people = accord.table(table, epsilon="tier", tiers=TIERS, user="id", consent=register, consent_user="who")
    look = people.public("x").describe()
    assert (look["people"], look["value"]) == (expected[0]["people"], expected[0]["value"])


def test_hostile_names_are_only_names():
    columns = {
        "g_user": [1, 2, 3],
        "value": [1.0, 2.0, 9.0],
        "times": ["a", "b", "c"],
        'e" --': [inf, inf, 1.0],
    }
    people = accord.table(columns, epsilon='e" --', user="g_user")
    assert people.public("value").bounds == (1, 2)
    with pytest.warns(accord.errors.PrivacyWarning):
        assert people.public("times").keys == ("a", "b")
