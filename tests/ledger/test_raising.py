"""Nobody's level is raised, and levels do not come from elsewhere, unless somebody says so in their name; and what they said is booked.

This file is also the program that the tests start, with a job as JSON.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from itertools import permutations
from pathlib import Path

import pytest
from click.testing import CliRunner

import accord
from accord.cli import main
from accord.errors import BudgetError, LedgerError
from accord.ledger import Ledger
from accord.ledger.policies import policy_changes

KEY = "a key that only tests use"
DATA = Path(__file__).parent / "data"
MEAN = accord.mean("x", bounds=(0, 10), step=1, missing="none")
AGREED = {"raise_levels": True, "actor": "the registrar", "purpose": "they signed again"}
TIERS = {"strict": 0.1, "standard": 1.0, "out": 0.0}


def opened(levels, **options):
    """A table of {id: level}."""
    columns = {"id": list(levels), "x": [float(k % 10) for k in range(len(levels))]}
    columns["level"] = list(levels.values())
    return accord.table(columns, **{"epsilon": "level", "user": "id", **options})


def tiered(people, **options):
    """A table of {id: tier}."""
    columns = {"id": list(people), "x": [1.0] * len(people), "tier": list(people.values())}
    columns |= {"other": columns["tier"], "person": columns["id"]}
    return accord.table(columns, **{"epsilon": "tier", "tiers": TIERS, "user": "id", **options})


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request, tmp_path):
    return request.getfixturevalue("postgres_url") if request.param == "postgres" else str(tmp_path / "a.db")


@pytest.fixture
def ledger(url):
    return Ledger(url, KEY)


def state(ledger):
    return ledger.accounts(), ledger.entries(), ledger.export()


def refused(ledger, table, name="people", match="would give 1 person a higher level", **agreed):
    before = state(ledger)
    with pytest.raises(LedgerError, match=match) as refusal:
        ledger.register(table, name, **agreed)
    assert state(ledger) == before and ledger.verify().problems == ()
    return str(refusal.value)


def left(ledger, table):
    spec = ledger.remaining(table)
    return {
        **dict(zip(spec.levels, spec.counts, strict=True)),
        **({0: spec.opted_out} if spec.opted_out else {}),
    }


def last(ledger):
    return ledger.entries()[-1].content


# ---- levels ----------------------------------------------------------------------------------------------------------------


def test_a_new_version_raises_nobodys_level_unless_that_is_said(ledger):
    ledger.register(opened({1: 0.1, 2: 1.0}), "people")
    higher = opened({1: 0.5, 2: 1.0, 3: 2.0})
    text = refused(ledger, higher)
    assert text == (
        "this version of 'people' would give 1 person a higher level than they last had in it. A level is a promise, and is not raised by a "
        "file: an older one may have been put back. Register the newest levels; or, if these people agreed, raise_levels=True with actor= and "
        "purpose= (on the command line --raise --why TEXT), which is booked. Nothing was registered."
    )
    assert str(ledger.register(higher, "people", **AGREED)).endswith(
        "1 joined, 0 left, 0 lowered their level, 1 raised it"
    )
    assert left(ledger, higher) == {0.5: 1, 1.0: 1, 2.0: 1}
    booked = last(ledger)
    assert (booked["raised"], booked["actor"], booked["purpose"]) == (1, AGREED["actor"], AGREED["purpose"])
    assert ledger.verify().problems == ()


def test_an_opt_out_is_not_undone_by_a_file(ledger):
    before, out = opened({1: 1.0, 2: 1.0, 3: 1.0}), opened({1: 0.0, 2: 0.0, 3: 1.0})
    ledger.register(before, "people")
    ledger.register(out, "people")
    refused(ledger, before, match="would give 2 people a higher level")
    assert left(ledger, out) == {0: 2, 1.0: 1}
    ledger.register(before, "people", **AGREED)
    assert left(ledger, before) == {1.0: 3}


def test_who_leaves_and_comes_back_has_no_higher_level(ledger):
    ledger.register(opened({1: 0.1, 2: 1.0}), "people")
    for away in ({2: 1.0}, {}, {2: 1.0}):
        ledger.register(opened(away), "people")
    refused(ledger, opened({1: 1.0, 2: 1.0}))
    back = opened({1: 0.1, 2: 1.0})
    ledger.register(back, "people")
    assert left(ledger, back) == {0.1: 1, 1.0: 1}
    ledger.register(opened({2: 1.0}), "people")
    agreed = opened({1: 1.0, 2: 1.0})
    assert ledger.register(agreed, "people", **AGREED).raised == 1
    assert left(ledger, agreed) == {1.0: 2} and ledger.verify().problems == ()


def test_leaving_a_table_raises_nothing_elsewhere(ledger):
    strict, other = opened({1: 0.1, 2: 0.1}), opened({1: 1.0, 3: 1.0})
    ledger.register(strict, "strict")
    ledger.register(other, "other")
    assert left(ledger, other) == {0.1: 1, 1.0: 1}
    ledger.register(opened({2: 0.1}), "strict")
    assert left(ledger, other) == {0.1: 1, 1.0: 1}
    with pytest.raises(BudgetError, match=r"level 1 with 0\.5; 0\.1 is left to one person"):
        other.release(MEAN, "minimum", 0.5, ledger=ledger, fresh=True)
    ledger.register(opened({}), "strict")
    later = opened({1: 2.0, 2: 2.0})
    ledger.register(later, "later")  # a table that knows nobody yet
    assert left(ledger, later) == {0.1: 2}
    ledger.register(opened({1: 3.0}), "strict", **AGREED)
    assert left(ledger, other) == {1.0: 2} and left(ledger, later) == {0.1: 1, 1.0: 1}
    assert ledger.verify().problems == ()


def test_what_was_spent_stays_spent_when_a_level_is_raised(ledger):
    low, high = opened({1: 0.5, 2: 0.5}), opened({1: 2.0, 2: 0.5})
    ledger.register(low, "people")
    low.release(MEAN, "minimum", 0.8, ledger=ledger, fresh=True)
    ledger.register(high, "people", **AGREED)
    assert left(ledger, high) == {0.1: 1, 1.6: 1}


@pytest.mark.parametrize("missing", [{}, {"actor": "me"}, {"purpose": "because"}])
@pytest.mark.parametrize("what", ["raise_levels", "agree"])
def test_it_is_said_in_somebodys_name_and_for_a_reason(tmp_path, missing, what):
    ledger = Ledger(tmp_path / "a.db")
    ledger.register(opened({1: 0.1}), "people")
    lacking = " and ".join(name for name in ("actor", "purpose") if name not in missing)
    refused(
        ledger,
        opened({1: 1.0}),
        match=f"booked with who did it and why, and {lacking} ",
        **{what: True},
        **missing,
    )


@pytest.mark.parametrize("text", ["", "  ", "two\nlines", "half \ud800", "x" * 501, 7, b"me", "\0"])
@pytest.mark.parametrize("name", ["actor", "purpose"])
def test_texts_that_are_booked_are_lines(tmp_path, name, text):
    ledger = Ledger(tmp_path / "a.db")
    with pytest.raises(LedgerError, match=f"{name}= is not a line of text") as refusal:
        ledger.register(opened({1: 1.0}), "people", **{name: text})
    assert (
        str(refusal.value)
        == f"{name}= is not a line of text. Give at most 500 printable characters: it is booked."
    )
    assert ledger.entries() == []
    ledger.register(opened({1: 1.0}), "people", **{name: "ä" * 500})
    assert last(ledger)[name] == "ä" * 500


def test_public_groups_follow_their_table(tmp_path):
    """Their levels were agreed with the table's, also those of who moved to another group."""
    ledger = Ledger(tmp_path / "a.db")

    def grouped(levels, groups):
        columns = {
            "id": list(levels),
            "level": list(levels.values()),
            "x": [1.0] * len(levels),
            "g": list(groups),
        }
        return accord.table(columns, epsilon="level", user="id")

    query = accord.mean("x", bounds=(0, 10), by="g", keys=["a", "b"], membership="public")
    first, later = grouped({1: 0.1, 2: 0.1, 3: 1.0}, "aab"), grouped({1: 0.1, 2: 1.0, 3: 1.0}, "abb")
    ledger.register(first, "people")
    first.release(query, "minimum", 0.5, ledger=ledger, fresh=True)
    ledger.register(later, "people", **AGREED)
    later.release(query, "minimum", 0.1, ledger=ledger, fresh=True)
    assert left(ledger, later) == {0.04: 1, 0.85: 1, 0.4: 1}
    assert ledger.verify().problems == ()
    parents = [e.content.get("group_of") for e in ledger.entries() if e.kind == "register"]
    assert parents == [None, 1, 1, None, 1, 1]


LEVELS = (1.0, 0.9, 0.8, 0.5, 0.1, 0.0)


def started(**job):
    """Another process that does a job."""
    return subprocess.Popen([sys.executable, __file__, json.dumps(job)], stdout=subprocess.PIPE, text=True)


def said(process):
    text = process.communicate(timeout=600)[0]
    assert process.returncode == 0
    return json.loads(text)


def attempts(url, order):
    """Register one level after the other, as they come; which of them were accepted."""
    ledger, accepted = Ledger(url, KEY), []
    for level in order:
        try:
            ledger.register(opened({1: level, 2: 1.0}), "people")
            accepted.append(level)
        except LedgerError as refusal:
            assert "would give 1 person a higher level" in str(refusal)
    return accepted


def test_processes_that_register_at_once_raise_nothing(url):
    """Each looks at what is registered in the transaction in which it writes."""
    ledger = Ledger(url, KEY)
    ledger.register(opened({1: 2.0, 2: 1.0}), "people")
    orders = list(permutations(LEVELS))[::97]
    processes = [started(do="attempts", url=url, order=sum(orders[k::2], ())) for k in range(2)]
    assert all(0.0 in said(process) for process in processes)
    steps = [e.content for e in ledger.entries() if e.kind == "register"]
    assert [step["raised"] for step in steps] == [0] * len(steps)
    assert left(ledger, opened({1: 0.0, 2: 1.0})) == {0: 1, 1.0: 1}
    assert ledger.verify().problems == ()


def spend(url, times):
    """Release whatever version is registered, so many times; the entries."""
    ledger, charged = Ledger(url, KEY), []
    versions = [opened({1: 0.3, 2: 1.0}), opened({1: 1.0, 2: 1.0})]
    while len(charged) < times:
        for table in versions:
            try:
                charged.append(table.release(MEAN, "minimum", 0.01, ledger=ledger, fresh=True).booked.entry)
            except LedgerError as refusal:
                assert "not as it was registered" in str(refusal)
    return charged


def test_a_level_is_raised_between_releases_and_not_within_one(url):
    ledger = Ledger(url, KEY)
    low, high = opened({1: 0.3, 2: 1.0}), opened({1: 1.0, 2: 1.0})
    ledger.register(low, "people")
    spending = started(do="spend", url=url, times=12)
    while spending.poll() is None:
        ledger.register(high, "people", **AGREED)
        ledger.register(low, "people")
    assert len(said(spending)) >= 12
    booked = {}
    for entry in ledger.entries():
        if entry.kind == "register":
            version, lowest = entry.content["version"], "0.3" if entry.content["version"] % 2 else "1"
        if entry.kind == "reserve":
            assert entry.content["version"] == version
            booked.setdefault(lowest, set()).update(line["charge"] for line in entry.content["booked"])
    assert booked.items() <= {"0.3": {"0.003"}, "1": {"0.01"}}.items()
    assert ledger.verify().problems == ()


def test_a_ledger_of_version_1_raises_nothing_either(tmp_path):
    for name in ("v1.db", "v1.db.key"):
        shutil.copy(DATA / name, tmp_path / name)
    ledger = Ledger(tmp_path / "v1.db")
    tiers = {"strict": 0.1, "standard": 1.0, "public": float("inf"), "out": 0.0}

    def version(ids, names):
        columns = {"id": list(ids), "x": [1.0] * len(names), "tier": list(names)}
        return accord.table(columns, epsilon="tier", tiers=tiers, user="id")

    registered = version(range(1, 7), ("standard", "standard", "public", "out", "strict", "strict"))
    refused(ledger, version(range(1, 7), ("standard", "standard", "public", "strict", "strict", "strict")))
    before = len(ledger.entries())
    assert ledger.register(registered, "people").version == 2, "the same people are no new version"
    assert len(ledger.entries()) == before + 1 and last(ledger)["policy"]["tiers"]["out"] == "0", (
        "but their policy is known now"
    )
    assert ledger.register(registered, "people").version == 2 and len(ledger.entries()) == before + 1
    ledger.register(version(range(2, 7), ("standard", "public", "out", "strict", "strict")), "people")
    refused(ledger, version(range(1, 7), ("public", "standard", "public", "out", "strict", "strict")))
    assert ledger.verify().problems == ()


# ---- policies --------------------------------------------------------------------------------------------------------------


def test_a_policy_is_booked_with_the_registration(ledger):
    table = tiered({1: "strict", 2: "standard"}, default="strict")
    ledger.register(table, "people", actor="me", purpose="a study")
    assert last(ledger)["policy"] == table.policy == {
        "user": "id", "levels": "tier", "tiers": {"strict": "0.1", "standard": "1", "out": "0"},
        "default": "0.1", "neighbors": "replace", "register": None, "as_of": None,
    }  # fmt: skip
    assert (last(ledger)["actor"], last(ledger)["purpose"]) == ("me", "a study")


@pytest.mark.parametrize(
    ("options", "changed"),
    {
        "people": ({"user": "person"}, "the column of people: id -> person"),
        "levels": ({"epsilon": "other"}, "the column of levels: tier -> other"),
        "a tier's level": ({"tiers": TIERS | {"strict": 0.05}}, r"tier 'strict': 0\.1 -> 0\.05"),
        "a new tier": ({"tiers": TIERS | {"public": 9.0}}, "tier 'public': none -> 9"),
        "two things": (
            {"default": "strict", "user": "person"},
            r"the column of people: id -> person; the level of people who have none: none -> 0\.1",
        ),
    }.values(),
)
def test_another_policy_is_refused_unless_that_is_said(tmp_path, options, changed):
    ledger = Ledger(tmp_path / "a.db")
    ledger.register(tiered({1: "strict", 2: "standard"}), "people")
    other = tiered({1: "strict", 2: "standard"}, **options)
    text = refused(ledger, other, match=f"another policy than the one that is registered: {changed}\\. Where")
    assert text.endswith(
        "Where levels come from stays as it was agreed. Register a table that says the same; or, if the change is meant, agree=True with "
        "actor= and purpose= (on the command line --agree --why TEXT), which is booked. Nothing was registered."
    )
    ledger.register(other, "people", agree=True, actor="me", purpose="a new form")
    assert (last(ledger)["policy"], last(ledger)["actor"]) == (other.policy, "me")
    entries = len(ledger.entries())
    ledger.register(other, "people")
    assert len(ledger.entries()) == entries and ledger.verify().problems == ()


def test_agreeing_to_a_policy_raises_no_level(ledger):
    ledger.register(tiered({1: "strict", 2: "standard"}), "people")
    looser = tiered({1: "strict", 2: "standard"}, tiers=TIERS | {"strict": 0.5})
    said = {"actor": "me", "purpose": "a new form"}
    refused(ledger, looser, agree=True, **said)
    refused(ledger, looser, match=r"tier 'strict': 0\.1 -> 0\.5", raise_levels=True, **said)
    assert ledger.register(looser, "people", agree=True, raise_levels=True, **said).raised == 1


def test_another_register_is_another_policy_and_another_moment_is_not(tmp_path):
    ledger = Ledger(tmp_path / "a.db")
    for name in ("one.csv", "two.csv"):
        (tmp_path / name).write_text(
            "id,tier,since\n1,strict,2026-01-01\n2,standard,2026-02-01\n", encoding="utf-8"
        )

    def registered(name, **options):
        given = {"consent": str(tmp_path / name), "valid_from": "since", "as_of": "2026-03-01", **options}
        return tiered({1: "x", 2: "y"}, epsilon="tier", **given)

    table = registered("one.csv")
    assert table.policy["register"] == {
        "source": "'one.csv'",
        "user": "id",
        "valid_from": "since",
    }
    assert table.policy["as_of"] == "2026-03-01T00:00:00"
    ledger.register(table, "people")
    ledger.register(registered("one.csv", as_of="2026-04-01"), "people")
    text = refused(ledger, registered("two.csv"), match="the consent register: ")
    assert "'one.csv' -> 'two.csv'" in text and str(tmp_path) not in text
    refused(ledger, registered("one.csv", consent_user=None, consent={"id": [1, 2], "tier": ["strict"] * 2}, valid_from=None, as_of=None), match="its column of dates: since -> none")  # fmt: skip


@pytest.mark.postgres
def test_a_policy_tells_no_password(postgres_url):
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE people AS SELECT 1 AS id, 2.0 AS x")
        connection.execute("CREATE TABLE consent AS SELECT 1 AS id, 0.5 AS level")
    address = postgres_url.replace("postgres@", "postgres:pa55w0rd@")
    table = accord.table(
        f"{address}&table=people", user="id", consent=f"{address}&table=consent", epsilon="level"
    )
    assert table.policy["register"] == {
        "source": "the PostgreSQL table 'consent'",
        "user": "id",
        "valid_from": None,
    }
    assert "pa55w0rd" not in json.dumps(table.policy)


def test_what_changes_is_listed_by_its_name():
    assert policy_changes({}, {}) == [] == policy_changes({"as_of": "1"}, {"as_of": "2"})
    one, other = (
        {"source": "'a'", "user": "id", "valid_from": None},
        {"source": "'b'", "user": "id", "valid_from": "day"},
    )
    assert policy_changes(
        {"register": None, "neighbors": "replace"}, {"register": one, "neighbors": "replace"}
    ) == [
        "the consent register: none -> 'a'",
        "its column of people: none -> id",
    ]
    assert policy_changes({"register": one}, {"register": other}) == [
        "the consent register: 'a' -> 'b'",
        "its column of dates: none -> day",
    ]


# ---- on the command line ---------------------------------------------------------------------------------------------------


def test_levels_are_raised_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOGNAME", "somebody")
    for name, level in (("old", 0.1), ("new", 1.0)):
        Path(f"{name}.csv").write_text(f"id,who,level\n1,1,{level}\n", encoding="utf-8")

    def run(*arguments):
        return CliRunner().invoke(main, ["ledger", *arguments])

    def register(name, *more, user="id"):
        return run("register", "a.db", "people", f"{name}.csv", "--epsilon", "level", "--user", user, *more)

    assert (run("init", "a.db").exit_code, register("old").exit_code) == (0, 0)
    refusal = register("new")
    assert refusal.exit_code != 0 and "would give 1 person a higher level" in " ".join(refusal.output.split())
    assert "purpose is not given" in " ".join(register("new", "--raise").output.split())
    assert register("new", "--raise", "--why", "signed on paper").exit_code == 0
    booked = last(Ledger("a.db"))
    assert (booked["actor"], booked["purpose"], booked["raised"]) == ("somebody", "signed on paper", 1)
    assert "the column of people: id -> who" in " ".join(register("new", user="who").output.split())
    assert register("new", "--agree", "--why", "renamed", "--actor", "me", user="who").exit_code == 0
    assert (last(Ledger("a.db"))["actor"], last(Ledger("a.db"))["policy"]["user"]) == ("me", "who")


if __name__ == "__main__":
    job = json.loads(sys.argv[1])
    print(json.dumps({"attempts": attempts, "spend": spend}[job.pop("do")](**job)))
