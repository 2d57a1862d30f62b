"""A consent register beside the data: a table joined with it is what the same table is with these levels written into its rows.

Which entry counts is written a second time here, in plain Python; the join gives the same Spec, the same integers and the same charges on every engine.
"""

import csv
import json
import random
from collections import Counter
from datetime import UTC, date, datetime, timedelta, timezone
from math import inf, nan

import numpy as np
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import accord
from accord.cli import main
from accord.errors import AccordError, LedgerError, SourceError, SpecError
from accord.people import consent as consent_module
from accord.spec import Spec

TIERS = {"public": inf, "standard": 1.5, "strict": 0.3, "none": 0}
STRICTEST = sorted(TIERS, key=TIERS.get)
AS_OF = date(2026, 6, 1)
DAYS = [AS_OF + timedelta(days=k) for k in (-400, -30, -1, 0, 1, 200)]
QUERIES = (
    accord.mean("x", (0, 10), step=1),
    accord.count(where="c = 'a'"),
    accord.sum("x", (0, 10), step=1, by="c", keys=["a", "b"]),
    accord.histogram("c", categories=["a", "b"]),
    accord.median("x", (0, 10), step=1),
    accord.rows(max=3),
    accord.mean("x", (0, 10), step=1, by="p", keys=[1, 2], membership="public"),
    accord.regression("x", ["c"], bounds={"x": (0, 10)}, categories={"c": ["a", "b"]}),
)


def current(entries, as_of=AS_OF):
    """{person: tier}: of each the latest at a moment, the strictest of several with one date."""
    levels = {}
    for who in {who for who, _, _ in entries}:
        mine = [(day, tier) for person, tier, day in entries if person == who and day <= as_of]
        if mine:
            latest = max(day for day, _ in mine)
            levels[who] = min((tier for day, tier in mine if day == latest), key=STRICTEST.index)
    return levels


def world(seed, people=40):
    """Rows of people, and entries of some of them and of others."""
    chance = random.Random(seed)
    rows = [
        (who, chance.choice([None, *range(11)]), chance.choice("abc"), 1 + who % 2, chance.choice(STRICTEST))
        for who in range(people)
        for _ in range(chance.randrange(4))
    ]
    entries = [
        (who, chance.choice(STRICTEST), chance.choice(DAYS))
        for who in range(people + 5)
        for _ in range(chance.randrange(5))
    ]
    return rows, entries


def columns(rows, entries):
    names = ("id", "x", "c", "p", "tier")
    data = {name: list(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)}
    data["x"] = [None if x is None else float(x) for x in data["x"]]
    return data, dict(zip(("id", "tier", "valid_from"), map(list, zip(*entries, strict=True)), strict=True))


def written_into_rows(data, levels, default):
    return {**data, "tier": [levels.get(who, default) for who in data["id"]]}


def contents(people, query):
    """Everything that a release reads, and what it would be charged."""
    plan = people.plan(query)
    summaries = []
    for _, (table, part) in accord_groups(people, plan):
        for summary in table.reader.summaries(part.query):
            entries = Counter()
            for key in zip(
                summary.level.tolist(), summary.output.tolist(), summary.amount.tolist(), strict=True
            ):
                entries[key[:2]] += key[2]
            summaries.append((summary.people.tolist(), {k: v for k, v in sorted(entries.items()) if v}))
    return people.spec(), plan.charges, summaries


def accord_groups(people, plan):
    if not plan.is_grouped:
        return [(None, (people, plan))]
    tables = people.groups(plan.query.part)
    return [(key, (tables[key], part)) for key, part in plan.plans.items() if part is not None]


def assert_alike(joined, written):
    for query in QUERIES:
        if joined.neighbors == "replace" or "public" not in str(query.describe()):
            assert contents(joined, query) == contents(written, query)


def opened(data, register, **more):
    options = {"user": "id", "epsilon": "tier", "tiers": TIERS, "default": "strict", "as_of": AS_OF, **more}
    return accord.table(data, consent=register, **options)


# ---- the same as levels in rows --------------------------------------------------------------------------------------


def test_in_every_form(in_form, tmp_path):
    """Of the data; the register is a table in memory."""
    rows, entries = world(1)
    data, register = columns(rows, entries)
    joined = opened(in_form(data), pa.table(register))
    assert_alike(joined, accord.table(pa.table(written_into_rows(data, current(entries), "strict")), epsilon="tier", user="id", tiers=TIERS))  # fmt: skip


def test_a_register_in_every_form(in_form):
    rows, entries = world(2)
    data, register = columns(rows, entries)
    joined = opened(pa.table(data), in_form(register))
    assert_alike(joined, accord.table(pa.table(written_into_rows(data, current(entries), "strict")), epsilon="tier", user="id", tiers=TIERS))  # fmt: skip


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from(STRICTEST), st.sampled_from(DAYS)), min_size=1),
    st.sampled_from(DAYS),
)
def test_the_latest_entry_counts_and_the_strictest_of_one_date(entries, as_of):
    register = dict(zip(("id", "tier", "valid_from"), map(list, zip(*entries, strict=True)), strict=True))
    data = {"id": np.arange(4).repeat(2), "x": np.zeros(8)}
    joined = opened(data, pa.table(register), as_of=as_of, default="none")
    levels = current(entries, as_of)
    assert joined.spec() == Spec.of([TIERS[levels.get(who, "none")] for who in range(4)])
    roster = opened(data, pa.table(register), as_of=as_of, default="none", neighbors="add-remove").spec()
    assert roster == Spec.of([TIERS[tier] for tier in levels.values()])


def test_levels_as_numbers_and_no_dates():
    """Without dates the strictest entry counts; a level is rounded down by its decimal value."""
    register = {"id": [1, 1, 2, 3], "e": ["0.5", "0.29", "inf", "2.9999999"]}
    data = {"id": [1, 2, 2, 3, 4], "x": [1.0, 2.0, 3.0, 4.0, 5.0]}
    people = accord.table(data, user="id", consent=register, epsilon="e", default=0.1)
    assert people.spec() == Spec.of([0.29, inf, 2.999999, 0.1])
    assert people.as_of is None
    assert any("each person's strictest entry" in said for said in people.plan(QUERIES[0]).assumptions)
    assert repr(people).endswith("levels of a consent register>")


def test_entries_with_one_date_never_multiply_rows():
    register = {"id": [1] * 50 + [2], "tier": ["standard"] * 51, "valid_from": [AS_OF] * 51}
    people = opened({"id": [1, 1, 2], "x": [1.0, 2.0, 3.0]}, pa.table(register))
    (summary,) = people.reader.summaries(accord.rows(max=9))
    assert summary.amount.tolist() == [2, 3]


IDS = {
    "whole numbers": np.array([7, 7, 10**15, 12]),
    "floats": np.array([7.0, 7.0, 1e15, 12.0]),
    "text": [" 7", "7.0", "1000000000000000", "12"],
    "strings of Arrow": pa.array(["7", "7", "1000000000000000", "12"]),
    "decimals": pa.array([7, 7, 10**15, 12]).cast(pa.decimal128(22, 2)),
    "small whole numbers": pa.array([7, 7, 10**15, 12]).cast(pa.uint64()),
}


@pytest.mark.parametrize("there", IDS)
@pytest.mark.parametrize("here", IDS)
def test_ids_are_the_same_as_in_ledgers(here, there):
    """7, 7.0 and '7' are one person."""
    register = {"who": IDS[there], "tier": ["standard", "strict", "public", "none"]}
    data = {"id": IDS[here], "x": [1.0, 2.0, 3.0, 4.0]}
    to_table = {True: pa.table, False: dict}
    arrow = [any(isinstance(v, pa.Array) for v in table.values()) for table in (data, register)]
    people = accord.table(
        to_table[arrow[0]](data), user="id", epsilon="tier", tiers=TIERS,
        consent=to_table[arrow[1]](register), consent_user="who",
    )  # fmt: skip
    assert people.spec() == Spec.of([0.3, inf, 0])


def test_other_spellings_are_other_people():
    register = {"id": ["007", "8"], "tier": ["strict", "none"]}
    with pytest.raises(SpecError, match="1 of 2 people have no entry"):
        accord.table({"id": [7, 8]}, user="id", consent=register, epsilon="tier", tiers=TIERS).spec()


def test_composed_letters_are_one_person():
    register = {"id": ["e\u0301", "b"], "tier": ["strict", "none"]}
    people = accord.table({"id": ["\u00e9", "b"]}, user="id", consent=register, epsilon="tier", tiers=TIERS)
    assert people.spec() == Spec.of([0.3, 0])


def test_a_file_and_its_glob(tmp_path):
    rows, entries = world(3)
    data, register = columns(rows, entries)
    for part in range(2):
        pq.write_table(pa.table({k: v[part::2] for k, v in data.items()}), tmp_path / f"visits{part}.parquet")
    with (tmp_path / "consent.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(register)
        writer.writerows(entries)
    joined = opened(str(tmp_path / "visits*.parquet"), tmp_path / "consent.csv")
    assert_alike(joined, accord.table(pa.table(written_into_rows(data, current(entries), "strict")), epsilon="tier", user="id", tiers=TIERS))  # fmt: skip


# ---- other engines ---------------------------------------------------------------------------------------------------


@pytest.mark.postgres
def test_in_postgresql(postgres_url):
    rows, entries = world(4)
    data, register = columns(rows, entries)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute('CREATE TABLE visits (id bigint, x float8, c text, p int, "tier" text)')
        connection.execute("CREATE TABLE consent (id text, tier text, valid_from date)")
        connection.execute("CREATE TABLE stamped (id bigint, tier text, since timestamp)")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO visits VALUES (%s, %s, %s, %s, %s)", rows)
            cursor.executemany(
                "INSERT INTO consent VALUES (%s, %s, %s)", [(f" {who}.0", *e) for who, *e in entries]
            )
            cursor.executemany("INSERT INTO stamped VALUES (%s, %s, %s)", entries)
    table = f"{postgres_url}&table=visits"
    written = accord.table(
        pa.table(written_into_rows(data, current(entries), "strict")), epsilon="tier", user="id", tiers=TIERS
    )
    assert_alike(opened(table, "consent"), written)
    assert_alike(opened(table, f"{postgres_url}&table=stamped", valid_from="since"), written)
    assert_alike(opened(pa.table(data), f"{postgres_url}&table=consent"), written)  # fetched into DuckDB
    with pytest.raises(SpecError, match=r"tier 'none' of \d+ people is not declared"):
        opened(pa.table(data), f"{postgres_url}&table=consent", tiers={k: v for k, v in TIERS.items() if k != "none"}).spec()  # fmt: skip
    private = opened(table, "consent", neighbors="add-remove")
    assert_alike(private, opened(pa.table(data), pa.table(register), neighbors="add-remove"))
    secret = ("0" * 64,)
    assert opened(table, "consent").identity.fingerprint(secret) == written.identity.fingerprint(secret)
    changing = opened(table, "consent")
    changing.spec()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("INSERT INTO consent SELECT id, 'none', DATE '2026-06-01' FROM visits")
    with pytest.raises(SourceError, match="the table has changed since its levels were read"):
        changing.release(QUERIES[0], "minimum")
    same = "is a table of the same database. Load it there, and give its name or the same address"
    for wrong, text in (
        (register, "consent= is a dict. The consent register of a table in PostgreSQL"),
        ("consent.csv", "there is no table 'consent.csv' in the database"),
        ("postgresql://elsewhere/db?table=consent", "the register has another address than the table"),
    ):
        with pytest.raises(SourceError, match=f"{text}.*{same}"):
            opened(table, wrong)
    with pytest.raises(SourceError, match="column 'tier' of the consent register holds no dates"):
        opened(table, "consent", valid_from="tier")
    with pytest.raises(SpecError, match=r"tier 'none' of \d+ people is not declared"):
        opened(table, "consent", tiers={k: v for k, v in TIERS.items() if k != "none"}).spec()


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
def test_in_spark(session):
    rows, entries = world(5, 12)
    data, register = columns(rows, entries)
    visits = session.createDataFrame([(a, None if x is None else float(x), *r) for a, x, *r in rows], "id bigint, x double, c string, p int, tier string")  # fmt: skip
    frame = session.createDataFrame([(f" {who}.0", *e) for who, *e in entries], "id string, tier string, valid_from date")  # fmt: skip
    written = accord.table(
        pa.table(written_into_rows(data, current(entries), "strict")), epsilon="tier", user="id", tiers=TIERS
    )
    joined = opened(visits, frame)
    assert contents(joined, QUERIES[2]) == contents(written, QUERIES[2])
    frame.createOrReplaceTempView("chosen")
    assert opened(visits, "chosen").spec() == written.spec()
    assert opened(visits, "spark://chosen").spec() == written.spec()
    session.catalog.dropTempView("chosen")
    assert opened(pa.table(data), frame).spec() == written.spec()  # fetched into DuckDB
    here = "The consent register of a table in Spark is a DataFrame or a table of the same session. Read it there"
    with pytest.raises(SourceError, match=f"consent= is a dict. {here}"):
        opened(visits, register)
    with pytest.raises(
        SourceError, match=f"cannot read 'consent.csv' .*Is it a table of the session\\? {here}"
    ):
        opened(visits, "consent.csv")
    elsewhere = session.newSession().createDataFrame([("1", "strict")], "id string, tier string")
    with pytest.raises(SourceError, match=f"the register is a DataFrame of another session. {here}"):
        opened(visits, elsewhere)


# ---- moments ---------------------------------------------------------------------------------------------------------


def of_moment(moment, as_of, **more):
    register = {"id": [1, 1], "tier": ["strict", "standard"], "valid_from": [datetime(2020, 1, 1), moment]}
    people = opened({"id": [1], "x": [1.0]}, pa.table(register), as_of=as_of, **more)
    return people.spec().levels[0], people


@pytest.mark.parametrize(
    "as_of",
    [
        "2026-01-31 12:00",
        datetime(2026, 1, 31, 12),
        datetime(2026, 1, 31, 13, tzinfo=timezone(timedelta(hours=1))),
        pd.Timestamp("2026-01-31 12:00"),
    ],
)
def test_an_entry_counts_from_its_moment_on(as_of):
    assert of_moment(datetime(2026, 1, 31, 12), as_of)[0] == 1.5
    later, people = of_moment(datetime(2026, 1, 31, 12, 0, 0, 1), as_of)
    assert later == 0.3
    assert people.as_of == datetime(2026, 1, 31, 12)


def test_a_date_is_its_first_moment():
    assert of_moment(datetime(2026, 1, 31), date(2026, 1, 31))[0] == 1.5
    assert of_moment(datetime(2026, 1, 31, 0, 0, 1), "2026-01-31")[0] == 0.3


def test_now_is_fixed_when_a_table_is_opened(monkeypatch):
    now = [datetime(2026, 1, 31, 12, 0, 0, 7, tzinfo=UTC)]

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return now[0]

    monkeypatch.setattr(consent_module, "datetime", Clock)
    level, people = of_moment(datetime(2026, 2, 1), None)
    now[0] += timedelta(days=30)
    assert (level, people.as_of) == (0.3, datetime(2026, 1, 31, 12))
    assert people.spec().levels == (0.3,)
    assert of_moment(datetime(2026, 2, 1), None)[0] == 1.5
    plan = people.plan(QUERIES[0])
    told = (
        "levels are those of the consent register as of 2026-01-31 12:00:00: each person's latest entry, "
        "the strictest of several with one date; 0.3 for people without one"
    )
    assert told in plan.assumptions
    assert told in people.release(plan).receipt()["assumptions"]
    assert repr(people) == (
        "<Table of 2 columns; neighbors: replace; levels of a consent register as of 2026-01-31 12:00:00>"
    )


def test_dates_as_text():
    """As a file without types, or a data frame, has them."""
    register = {
        "id": [1, 1],
        "tier": ["strict", "standard"],
        "valid_from": ["2020-01-01", "2026-01-31 12:00:00"],
    }
    for form in (dict, pd.DataFrame, pl.DataFrame, pa.table):
        assert opened({"id": [1]}, form(register)).spec().levels == (1.5,)


# ---- what a program does with it -------------------------------------------------------------------------------------


def test_a_ledger_knows_the_levels_of_the_register(tmp_path):
    rows, entries = world(6)
    data, register = columns(rows, entries)
    joined = opened(pa.table(data), pa.table(register))
    written = accord.table(pa.table(written_into_rows(data, current(entries), "strict")), epsilon="tier", user="id", tiers=TIERS)  # fmt: skip
    ledgers = [accord.Ledger(tmp_path / f"{k}.db", key="one key of both ledgers") for k in range(2)]
    for ledger, people in zip(ledgers, (joined, written), strict=True):
        ledger.register(people, "visits")
        people.release(QUERIES[0], share=0.5, ledger=ledger)
        people.release(accord.plan(ledger.remaining(people), QUERIES[2], share=0.5), ledger=ledger)
        people.release(accord.workload([QUERIES[0], QUERIES[4]]), share=0.1, ledger=ledger)
        accord.sample(lambda rows, epsilon: 0, people, share=0.05, ledger=ledger, columns=["x"], rows="numpy")
    assert ledgers[0].remaining(joined) == ledgers[1].remaining(written)
    assert ledgers[0].accounts() == ledgers[1].accounts()
    secret = ("0" * 64,)
    assert joined.identity.fingerprint(secret) == written.identity.fingerprint(secret)


def test_a_withdrawal_is_an_entry_and_a_later_table_has_it(tmp_path):
    """What was spent stays spent; from then on nobody reads them."""
    register = {"id": [1, 2, 1], "tier": ["standard", "standard", "none"], "valid_from": [date(2025, 1, 1), date(2025, 1, 1), date(2026, 3, 1)]}  # fmt: skip
    data = {"id": [1, 2], "x": [1.0, 2.0]}
    before, after = (opened(data, pa.table(register), as_of=day) for day in ("2026-02-28", "2026-03-01"))
    assert (before.spec(), after.spec()) == (Spec.of([1.5, 1.5]), Spec.of([0, 1.5]))
    ledger = accord.Ledger(tmp_path / "books.db")
    ledger.register(before, "visits")
    before.release(QUERIES[0], "minimum", share=0.4, ledger=ledger)
    with pytest.raises(LedgerError, match="1 lowered their level"):
        after.release(QUERIES[0], "minimum", share=0.4, ledger=ledger)
    ledger.register(after, "visits")
    assert ledger.remaining(after) == Spec.of([0, 0.9])


def test_rows_for_an_algorithm_have_no_column_of_the_register():
    rows, entries = world(7)
    data, register = columns(rows, entries)
    joined = opened(pa.table(data), pa.table(register))
    seen = []

    def look(rows, epsilon):
        seen.append(rows.column_names)
        return 0

    accord.sample(look, joined, t="max", columns=["x", "tier"])
    assert seen == [["x", "tier"]]


def test_a_column_of_the_same_name_in_the_table_is_not_the_levels():
    rows, entries = world(8)
    data, register = columns(rows, entries)
    joined = opened(pa.table(data), pa.table(register))
    plan = joined.plan(accord.histogram("tier", categories=list(TIERS)))
    assert any(
        note.endswith("; column 'tier' of the table itself is not read as levels")
        for note in plan.assumptions
    )
    changed = {**data, "tier": [None] * len(data["id"])}
    assert opened(changed, pa.table(register)).spec() == joined.spec()


# ---- who could be there ----------------------------------------------------------------------------------------------


def test_under_add_remove_the_register_is_the_roster():
    """Nobody else is read, whatever the default is, and how many are there decides nothing."""
    register = {"id": [1, 2, 3, 4], "tier": ["standard", "strict", "none", None]}
    options = {
        "user": "id",
        "epsilon": "tier",
        "tiers": TIERS,
        "default": "strict",
        "neighbors": "add-remove",
    }
    roster = Spec.of([1.5, 0.3, 0, 0.3])
    for ids in ([1, 1, 2, 3, 4, 99], [99], [], [1, None, 98, 99]):
        data = {"id": np.array([nan if i is None else i for i in ids], dtype=float), "x": np.ones(len(ids))}
        people = accord.table(data, consent=register, **options)
        assert people.spec() == roster
        (summary,) = people.reader.summaries(accord.count())
        assert int(sum(summary.amount)) // 2 == len({1, 2, 4} & set(ids))
    with pytest.raises(SourceError, match=r"the consent register is the roster of who could be in the table\. Leave roster= or consent= out"):  # fmt: skip
        accord.table(data, consent=register, roster=roster, **options)


# ---- what is refused -------------------------------------------------------------------------------------------------

REGISTER = {"id": [1, 2], "tier": ["strict", "standard"], "valid_from": ["2020-01-01", "2020-01-01"]}
FLOATS = {"id": np.array([2.0**53, 1]), "tier": ["strict", "strict"]}
REFUSED = {
    "2 of 3 people have no entry in the consent register as of 2019-01-01 00:00:00. Give default=, or leave them out of the table.": {"as_of": "2019-01-01", "consent": {**REGISTER, "valid_from": ["2018-01-01", "2020-01-01"]}},
    "1 of 3 people have no entry in the consent register. Give default=, or leave them out of the table.": {"consent": {"id": [1, 2], "tier": ["strict", "strict"]}},
    "1 of 3 people have an entry without a level (NULL) in the consent register. Give default=, or correct the register.": {"consent": {"id": [1, 2, 3], "tier": ["strict", None, "none"]}},
    "tier 'strct' of 1 people is not declared. Give it a level (0: opted out), or correct it: did you mean 'strict'?": {"consent": {"id": [1, 2, 3], "tier": ["strct", "none", "none"]}},
    "1 of 3 people have an entry in the consent register with a level that is not a number from 0 to 1000000, nor inf.": {"tiers": None, "consent": {"id": [1, 2, 3], "tier": ["1", "nan", "2"]}},
    "1 entries of the consent register are of nobody ('id' is NULL). Say whose they are, or leave them out of it.": {"consent": {**REGISTER, "id": [1, None]}},
    "1 entries of the consent register have no date, or one that cannot be read: any of them could be somebody's latest.": {"consent": {**REGISTER, "valid_from": ["2020-01-01", "31.1.2020"]}},
    "2 entries of the consent register have no date": {"consent": {**REGISTER, "valid_from": [None, "infinity"]}},
    "1 ids of the consent register are floating-point numbers too large to be exact": {"consent": FLOATS},
    "1 ids in 'id' are floating-point numbers too large to be exact": {"source": {"id": np.array([2.0**53])}, "default": "none"},
    "the consent register has no column 'tier': did you mean 'tiers'? Known: 'id', 'tiers'.": {"consent": {"id": [1], "tiers": ["strict"]}},
    "the consent register has no column 'id': ": {"consent": {"who": [1], "tier": ["strict"]}},
    "the consent register has no column 'patient': ": {"consent_user": "patient"},
    "the consent register has no column 'since': ": {"valid_from": "since"},
    "as_of= is given, and the consent register has no column 'valid_from'. Name its column of dates: valid_from='…'. Known: 'id', 'tier'.": {"as_of": "2020-01-01", "consent": {"id": [1], "tier": ["strict"]}},
    "column 'n' of the consent register holds no dates. Use a column of dates, or of timestamps without a time zone.": {"valid_from": "n", "consent": {**REGISTER, "n": np.array([1, 2])}},
    "as_of='yesterday' is not a moment. Give a date or a timestamp, such as '2026-01-31' or '2026-01-31 12:00'.": {"as_of": "yesterday"},
    "as_of=NaT is not a moment.": {"as_of": pd.NaT},
    "as_of=2026 is not a moment.": {"as_of": 2026},
    "with consent= the levels are in the register, and epsilon=0.5 is no column of it. Name its column of tiers or levels.": {"epsilon": 0.5},
    "a consent register is joined by who a row is of. Give user='…' (on the command line --user).": {"user": None},
    "there is no column 'patient': ": {"user": "patient"},
    "column 'id' cannot tell people apart. Use a column of text or whole numbers.": {"source": {"id": np.array(["2020-01-01"], dtype="datetime64[D]")}},
    "as_of= is about a consent register. Give consent=, or leave it out.": {"consent": None, "as_of": "2020-01-01"},
    "valid_from= is about a consent register.": {"consent": None, "valid_from": "since"},
    "consent_user= is about a consent register.": {"consent": None, "consent_user": "who"},
    "cannot read a set. A table is made from": {"consent": {1, 2}},
    "with neighbors='add-remove' who is in the table is private, so that its levels cannot be counted: give roster=Spec of everyone who could be in it, or consent=, a register of them.": {"consent": None, "neighbors": "add-remove"},
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_refusals(text):
    given = {
        "source": {"id": [1, 2, 3]},
        "user": "id",
        "epsilon": "tier",
        "tiers": TIERS,
        "consent": REGISTER,
    }
    given |= REFUSED[text]
    with pytest.raises(AccordError) as refusal:
        accord.table(given.pop("source"), **given).spec()
    assert text in str(refusal.value)


def test_faults_of_people_who_are_elsewhere_do_not_matter():
    """But under add-remove they are on the roster."""
    register = {"id": [1, 9], "tier": ["strict", "gold"]}
    options = {"user": "id", "epsilon": "tier", "tiers": TIERS, "consent": register}
    assert accord.table({"id": [1]}, **options).spec() == Spec.of([0.3])
    with pytest.raises(SpecError, match="tier 'gold' of 1 people is not declared"):
        accord.table({"id": [1]}, neighbors="add-remove", **options)


def test_undeclared_tiers_in_rows_are_named():
    people = {"id": [1, 1, 2, 3], "tier": ["gold", "strict", "gold", "none"]}
    with pytest.raises(SpecError, match="tier 'gold' of 2 people is not declared"):
        accord.table(people, user="id", epsilon="tier", tiers=TIERS).spec()
    wrong = {"id": list(range(7)), "tier": [f"secret {k}" for k in range(7)]}
    with pytest.raises(SpecError, match="the levels have 7 names that are not declared tiers"):
        accord.table(wrong, user="id", epsilon="tier", tiers=TIERS).spec()


def test_a_register_is_copied_once(tmp_path):
    """Its file may be gone; nothing is left in the database that tables share."""
    from accord.engines.duckdb_connection import OWN

    def tables():
        return OWN.connect().execute("SELECT COUNT(*) FROM duckdb_tables() WHERE NOT temporary").fetchone()

    before = tables()
    path = tmp_path / "consent.csv"
    path.write_text("id,tier\n1,strict\n2,standard\n")
    people = accord.table({"id": [1, 2]}, user="id", epsilon="tier", tiers=TIERS, consent=path)
    path.unlink()
    assert people.spec() == Spec.of([0.3, 1.5])
    assert tables() == before


# ---- files that are not plain ------------------------------------------------------------------------------------------


def test_a_register_in_german(tmp_path):
    """`consent_csv` is about the register alone, `csv` about the table."""
    (tmp_path / "consent.csv").write_text(
        "Kürzel;Stufe;seit\n1;streng;01.02.2026\n1;frei;01.01.2026\n2;frei;31.01.2026\n",
        encoding="windows-1252",
    )
    (tmp_path / "people.csv").write_text("id,x\n1,3.5\n2,4.5\n")
    options = {
        "user": "id",
        "consent": str(tmp_path / "consent.csv"),
        "consent_user": "Kürzel",
        "epsilon": "Stufe",
        "tiers": {"streng": 0.1, "frei": 1.0},
        "valid_from": "seit",
        "as_of": "2026-06-01",
    }
    csv = {"encoding": "windows-1252", "dates": "%d.%m.%Y"}
    people = accord.table(str(tmp_path / "people.csv"), **options, consent_csv=csv)
    assert people.spec() == accord.Spec.of([0.1, 1.0])
    with pytest.raises(SourceError, match=r"the header of .* is not UTF-8"):
        accord.table(str(tmp_path / "people.csv"), **options)
    with pytest.raises(SourceError, match="consent_csv= is about a consent register"):
        accord.table({"e": [1.0]}, epsilon="e", consent_csv=csv)
    with pytest.raises(SourceError, match="csv= says how CSV files are read, and the table is none"):
        accord.table(
            {"id": [1]}, epsilon="tier", user="id", consent={"id": [1], "tier": [1.0]}, consent_csv=csv
        )
    words = ["plan", str(tmp_path / "people.csv"), "mean", "x", "--bounds", "0", "9", "--epsilon", "Stufe"]
    words += ["--tiers", "streng=0.1,frei=1", "--user", "id", "--consent", options["consent"]]
    words += ["--consent-user", "Kürzel", "--valid-from", "seit", "--as-of", "2026-06-01", "--json"]
    words += ["--consent-csv", "encoding=windows-1252", "--consent-csv", "dates=%d.%m.%Y"]
    ran = CliRunner().invoke(main, words)
    assert ran.exit_code == 0 and json.loads(ran.stdout)["spec"]["people"] == 2, ran.output
