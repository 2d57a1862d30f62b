"""Twenty thousand people who all have another level: everyone is an account of their own, and every step is compared with plain Python."""

import hashlib
import json
import sqlite3
from contextlib import closing
from math import inf

import numpy as np
import pytest

import accord
from accord.budget import level_text
from accord.ledger import Ledger
from accord.ledger.accounts import checked_accounts
from accord.ledger.chain import Entry, ListText, next_entry
from accord.people.identity import fingerprint

PEOPLE = 20_000
QUERY = accord.mean("x", bounds=(0, 1))
KEY = "a key that only tests use"


def table(ids, levels):
    return accord.table({"id": ids, "x": ids % 7 / 7, "e": levels}, epsilon="e", user="id")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def ledger(request, tmp_path):
    return Ledger(
        tmp_path / "a.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url"), KEY
    )


def left_by_hand(levels, spent):
    """How many people have how many millionths left."""
    counts = {}
    for person, level in levels.items():
        amount = inf if level == inf else max(0, round(level * 1e6) - spent[person])
        counts[amount] = counts.get(amount, 0) + 1
    return counts


def as_counts(spec):
    amounts = [inf if level == inf else round(level * 1e6) for level in spec.levels]
    return dict(zip(amounts, spec.counts, strict=True)) | ({0: spec.opted_out} if spec.opted_out else {})


def charge(release, levels, spent):
    """By person: what the release says that it charges their level."""
    charged = {round(level * 1e6): round(c * 1e6) for level, c in release.charges.items() if level != inf}
    for person, level in levels.items():
        if 0 < level < inf:
            spent[person] += charged[round(level * 1e6)]


def test_everyone_has_what_a_dictionary_of_people_says(ledger):
    ids = np.arange(PEOPLE)
    level = (1 + ids[::-1]) / 1e4
    level[:5], level[5:9] = inf, 0
    levels, spent = (
        dict(zip(ids.tolist(), level.tolist(), strict=True)),
        dict.fromkeys(range(PEOPLE + 500), 0),
    )
    people = table(ids, level)
    assert str(ledger.register(people, "people")) == "registered 'people': 20,000 people"
    assert as_counts(ledger.remaining(people)) == left_by_hand(levels, spent)
    for mechanism, share in (("proportional", 0.25), ("affine", 0.1)):
        part = people if mechanism == "affine" else None
        if part is None:  # which knows no public people
            part = table(ids[5:], level[5:])
            ledger.register(part, "without public people")
        charge(
            part.release(QUERY, mechanism, share, ledger=ledger, fresh=True),
            {p: levels[p] for p in levels if part is people or p >= 5},
            spent,
        )
        assert as_counts(ledger.remaining(people)) == left_by_hand(levels, spent)

    # some leave, some come, some lower their level and some raise it
    here = np.concatenate([ids[1_000:], np.arange(PEOPLE, PEOPLE + 500)])
    again = np.concatenate([level[1_000:], np.full(500, 0.5)])
    again[5_000:8_000] *= 0.5
    again[9_000:9_100] *= 2
    change = ledger.register(table(here, again), "people", raise_levels=True, actor="me", purpose="a test")
    assert (change.joined, change.left, change.lowered, change.raised) == (500, 1_000, 3_000, 100)
    levels = dict(zip(here.tolist(), again.tolist(), strict=True))
    elsewhere = dict(zip(ids[5:].tolist(), level[5:].tolist(), strict=True))
    lowest = {p: min(x, elsewhere.get(p, inf)) for p, x in levels.items()}
    people = table(here, again)
    rest = ledger.remaining(people)
    assert as_counts(rest) == left_by_hand(lowest, spent)
    released = people.release(accord.plan(rest, QUERY, "minimum", share=0.5), ledger=ledger, fresh=True)
    (paid,) = {round(c * 1e6) for c in released.charges.values()}
    for person, x in lowest.items():
        if x == inf or round(x * 1e6) > spent[person]:
            spent[person] += paid
    assert as_counts(ledger.remaining(people)) == left_by_hand(lowest, spent)
    assert ledger.verify().problems == () and ledger.verify().open == 0

    booked = ledger.history()
    assert [line["state"] for line in booked] == ["released"] * 3
    assert [sum(line["people"] for line in reservation["booked"]) for reservation in booked] == [
        PEOPLE - 5,
        PEOPLE,
        PEOPLE - 500,
    ]
    accounts = ledger.accounts()
    assert sum(a.people for a in accounts if a.table == "people") == PEOPLE - 500
    assert [a.level for a in accounts if a.table == "people"] == sorted(set(levels.values()))
    for entry in ledger.entries():  # what was written is what json would have written
        assert entry.body == json.dumps(entry.content, ensure_ascii=False, separators=(",", ":"))
        kept = entry.outline
        assert {n: json.loads(v) if isinstance(v, ListText) else v for n, v in kept.items()} == entry.content
        assert list(kept) == list(entry.content)
    assert any(isinstance(entry.outline.get("charges"), ListText) for entry in ledger.entries())


def test_digests_are_of_the_same_text_as_ever(ledger):
    """[meta, tables, cohorts, members, people] as JSON; and of a table, [[level, [people, sum of hashes]], …]."""
    people = table(np.arange(3_000), (1 + np.arange(3_000)) / 1e3)
    ledger.register(people, "people")
    people.release(QUERY, "minimum", 0.1, ledger=ledger, fresh=True)
    with ledger.books.store.read() as db:
        accounts = checked_accounts(db)
        rows = [
            db.rows(f"SELECT {columns} FROM {name} ORDER BY 1, 2")
            for name, columns in (
                ("accord_table", "*"),
                ("accord_cohort", "id, level, allowed, spent, people"),  # nothing was renewed
                ("accord_member", "*"),
            )
        ]
    digest = ledger.entries()[-1].content
    text = json.dumps([accounts.meta, *rows, digest["digest"]], sort_keys=True)
    assert (
        hashlib.sha256(text.encode()).hexdigest() == digest["accounts"] == accounts.digest(digest["digest"])
    )


@pytest.mark.parametrize("levels", [3, 1_000])
@pytest.mark.parametrize("hashes", [2**40, 2**63])
def test_a_fingerprint_is_of_the_same_text_as_ever(levels, hashes):
    micro, counts = np.arange(levels)[::-1].repeat(2), np.arange(1, 2 * levels + 1)
    totals = [hashes * (k + 1) for k in range(2 * levels)]
    for m, n, t in ((micro, counts, totals), (micro[::2], counts[::2], totals[::2])):
        sums = {}
        for level, count, total in zip(m.tolist(), n.tolist(), t, strict=True):
            before = sums.get(level, (0, 0))
            sums[level] = (before[0] + count, before[1] + total)
        assert (
            fingerprint(m, n, t) == hashlib.sha256(json.dumps(sorted(sums.items())).encode()).hexdigest()[:32]
        )


def test_a_charge_that_was_changed_among_many_shows(tmp_path):
    ledger = Ledger(tmp_path / "a.db", KEY)
    people = table(np.arange(5_000), (1 + np.arange(5_000)) / 1e3)
    ledger.register(people, "people")
    people.release(QUERY, "proportional", 0.5, ledger=ledger, fresh=True)
    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as connection:
        body = connection.execute("SELECT body FROM accord_entry WHERE seq = 2").fetchone()[0]
        assert '[4000,"2"]' in body
        forged = body.replace('[4000,"2"]', '[4000,"1"]')
        connection.execute("UPDATE accord_entry SET body = ? WHERE seq = 2", [forged])
    assert ledger.verify().problems == (
        "entry 2 has been changed: its hash is another",
        "the account of cohort 4000 is not what follows from the entries",
    )
    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as connection:
        connection.execute("UPDATE accord_entry SET body = ? WHERE seq = 2", [body])
        assert ledger.verify().problems == ()
        connection.execute("UPDATE accord_member SET level = level + 1 WHERE cohort = 7")
    assert "the levels of cohorts are not what follows from the entries" in ledger.verify().problems
    with pytest.raises(accord.errors.LedgerError, match="the accounts are not what the entries left"):
        ledger.remaining(people)


def many(name, count=3_000):
    return f'"{name}":[' + ",".join(f'[{k},"{level_text(k)}"]' for k in range(1, count)) + "]"


def entry(body):
    return Entry(1, "now", "reserve", body, "0" * 64, "0" * 64, "0" * 64)


@pytest.mark.parametrize(
    "body",
    [
        f'{{"a":1,{many("charges")},"b":2}}',
        f'{{"a":1,{many("charges")}}}',
        json.dumps({"a": "b," + many("charges"), "b": 2}, separators=(",", ":")),
        f'{{"a":{{"b":1,{many("charges")}}},"c":2}}',
        f'{{"a":{{"b":1,{many("charges")}}},{many("charges", 2_500)},"c":2}}',
        f'{{"a":1,{many("charges")},"charges":[[1,"1"]]}}',
        f'{{"charges":[],{many("charges")},"b":2}}',
        f'{{"a":1,{many("charges")},"a":3}}',
        f'{{"a":1,{many("charges")},"b":[{{"charges":[[1,"x]]"]]}}]}}',
        f'{{"a":1,{many("charges", 2_000)[:-1]},[5,"]]"]],"b":2}}',
    ],
    ids=["whole", "last", "in a text", "within", "within and beside", "twice", "twice before", "another twice", "odd after", "odd text"],
)  # fmt: skip
def test_an_outline_is_the_content_whatever_the_body(body):
    """Bodies that no version writes are read as JSON has it, also where a list seems to be one of charges."""
    parsed = entry(body)
    assert {
        n: json.loads(v) if isinstance(v, ListText) else v for n, v in parsed.outline.items()
    } == parsed.content


def test_a_body_is_what_json_writes():
    content = {"a": 'ä"', "charges": ListText('[[1,"0.5"]]'), "b": [1, None, {"c": 2.5}]}
    first = next_entry(None, "reserve", content, str.upper)
    assert first.content == content | {"charges": [[1, "0.5"]]}
    assert first.body == json.dumps(first.content, ensure_ascii=False, separators=(",", ":"))
