"""Tables that are described once: accord.toml."""

import json
from datetime import date
from math import inf

import pytest

import accord
from accord.errors import LedgerError, SourceError

PEOPLE = """\
id,stay,day,ward,tier
1,3,2024-01-01,a,strict
2,8,2024-02-01,b,standard
3,1,2024-03-01,a,standard
4,30,2024-04-01,b,public
"""
WHOLE = """\
schema = 1
ledger = "accord.db"

[tables.people]
source = "people.csv"
about = "Patients of one year"
user = "id"
epsilon = "tier"
tiers = { strict = 0.1, standard = 1, public = inf }
default = "strict"
neighbors = "replace"
csv = { delimiter = "," }

[tables.people.columns.stay]
about = "Nights in hospital"
kind = "number"
bounds = [0, 60]
total = [0, 365]
step = 1
std = 10
missing = "none"

[tables.people.columns.ward]
keys = ["a", "b"]

[tables.people.columns.day]
kind = "date"
bounds = [2020-01-01, 2026-01-01]
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "people.csv").write_text(PEOPLE)
    return tmp_path


def written(folder, text):
    (folder / "accord.toml").write_text(text)
    return folder / "accord.toml"


def refused(folder, text, name="people"):
    """What is said of a description, without the folder."""
    with pytest.raises(SourceError) as refusal:
        accord.catalog(written(folder, text))[name]
    return str(refusal.value).replace(f"{folder}/", "")


def test_a_whole_description(folder, monkeypatch):
    catalog = accord.catalog(written(folder, WHOLE))
    monkeypatch.chdir("/")  # files are looked for beside the description
    assert (list(catalog), len(catalog), "people" in catalog, "x" in catalog) == (["people"], 1, True, False)
    assert repr(catalog) == f"<Catalog {folder}/accord.toml: people>"
    people = catalog["people"]
    assert (people.user, people.neighbors) == ("id", "replace")
    assert people.spec().tiers == {
        "strict": 100_000,
        "standard": 1_000_000,
        "public": people.spec().tiers["public"],
    }
    assert people.spec().levels == (0.1, 1.0, inf)
    assert people.description.about == "Patients of one year"
    assert people.description.columns["stay"].about == "Nights in hospital"
    assert people.described(accord.median("day")) == accord.median(
        "day", (date(2020, 1, 1), date(2026, 1, 1))
    )
    assert people.described(accord.sum("stay")) == accord.sum("stay", (0, 365))


def test_a_register_and_a_roster(folder):
    (folder / "consent.csv").write_text("who;tier;since\n1;strict;2020-01-01\n2;standard;2020-01-01\n")
    text = """\
schema = 1
[tables.people]
source = ["people.csv"]
user = "id"
epsilon = "tier"
tiers = { strict = 0.1, standard = 1 }
default = "strict"
consent = { source = "consent.csv", user = "who", valid_from = "since", as_of = 2024-01-01, csv = { delimiter = ";" } }
[tables.private]
source = "people.csv"
epsilon = "tier"
tiers = { strict = 0.1, standard = 1 }
neighbors = "add-remove"
roster = { strict = 5, standard = 7 }
[tables.levels]
source = "people.csv"
epsilon = 1
neighbors = "add-remove"
roster = { "0.5" = 3, "1" = 4 }
"""
    catalog = accord.catalog(written(folder, text))
    people = catalog["people"]
    assert people.spec().counts == (3, 1) and people.as_of.isoformat().startswith("2024-01-01")
    assert catalog["private"].spec().counts == (5, 7)
    assert catalog["levels"].spec().levels == (0.5, 1.0)


def test_releases_are_booked_in_the_described_ledger(folder):
    people = accord.catalog(written(folder, WHOLE))["people"]
    with pytest.raises(LedgerError, match="there is no ledger"):
        people.release(accord.mean("stay"), share=0.1)
    ledger = accord.Ledger(folder / "accord.db")
    ledger.register(people, "people")
    with pytest.raises(accord.errors.PlanError, match=r"share=0\.1 is a tenth"):
        people.release(accord.mean("stay"))
    people.release(accord.mean("stay"), share=0.1)
    assert [each["table"] for each in ledger.history()] == ["people"]
    other = accord.Ledger(folder / "other.db")
    other.register(people, "people")
    people.release(accord.mean("stay"), share=0.1, ledger=other)
    assert len(ledger.history()) == len(other.history()) == 1


def test_a_ledger_of_its_own(folder):
    text = WHOLE.replace('epsilon = "tier"', 'epsilon = "tier"\nledger = "own.db"')
    assert accord.catalog(written(folder, text))["people"].description.ledger == f"{folder}/own.db"
    url = WHOLE.replace('"accord.db"', '"postgresql://host/db"')
    assert accord.catalog(written(folder, url))["people"].description.ledger == "postgresql://host/db"


REFUSED = {
    # by what stands in the place of what, and what is said
    "no schema": ("schema = 1", "", "line 1: the file needs schema = …"),
    "another schema": ("schema = 1", "schema = 2", "line 1: schema = 2 is not 1."),
    "an unknown key": (
        'user = "id"',
        'usr = "id"',
        "line 7: [tables.people] has no key 'usr': did you mean 'user'?",
    ),
    "an unknown key at the top": (
        "schema = 1",
        "schema = 1\nledgr = 1",
        "line 2: the file has no key 'ledgr': did you",
    ),
    "no source": ('source = "people.csv"', "", "line 4: [tables.people] needs source = …"),
    "a source that is not there": ('"people.csv"', '"peeple.csv"', "line 5: there is no file"),
    "a number as a source": (
        'source = "people.csv"',
        "source = 5",
        "line 5: source = 5 is not a text in quotes",
    ),
    "levels in quotes": ("strict = 0.1", 'strict = "0.1"', "line 9: tiers = {"),
    "a negative level": ("strict = 0.1", "strict = -1", "line 9: tier 'strict'"),
    "a default that is no tier": (
        '"strict"',
        '"strikt"',
        "line 10: there is no tier 'strikt': did you mean 'strict'?",
    ),
    "other neighbors": (
        '"replace"',
        '"replaced"',
        'line 11: neighbors = \'replaced\' is not "replace" or "add-remove".',
    ),
    "an option of CSV": (
        "delimiter",
        "delimeter",
        "csv has no option 'delimeter': did you mean 'delimiter'?",
    ),
    "no column": ("columns.stay]", "columns.sty]", "line 14: there is no column 'sty': did you mean 'stay'?"),
    "another kind": ('kind = "number"', 'kind = "numeric"', "line 16: kind = 'numeric' is not \"number\" or"),
    "bounds that are reversed": ("[0, 60]", "[60, 0]", "line 17: bounds=(60, 0) are reversed."),
    "one bound": (
        "[0, 60]",
        "[60]",
        "line 17: bounds = [60] is not two numbers, dates or timestamps, [low, high].",
    ),
    "two kinds of bounds": ("[0, 60]", "[0, 2026-01-01]", "line 17: bounds="),
    "bounds of another kind": (
        "[0, 60]",
        "[2020-01-01, 2021-01-01]",
        "bounds of dates are declared of a column of",
    ),
    "a total that is none": ("[0, 365]", "[0, inf]", "line 18: a bound is inf."),
    "a step that does not divide": (
        "step = 1",
        "step = 7",
        "line 19: step=7 does not fit bounds of width 60.",
    ),
    "a std that cannot be": ("std = 10", "std = 31", "line 20: std=31 is not possible."),
    "a missing value outside": (
        'missing = "none"',
        "missing = 61",
        "line 21: missing=61 lies outside the bounds.",
    ),
    "a step without bounds": (
        "bounds = [0, 60]\n",
        "",
        "line 18: step is about values between bounds.",
    ),
    "a key twice": ('["a", "b"]', '["a", "a"]', "line 24: keys= has 2 groups, 1 of them different."),
    "keys of two kinds": ('["a", "b"]', '["a", 1]', "line 24: keys= are of several kinds."),
    "no keys": ('["a", "b"]', "[]", "line 24: keys = [] is not a list, or a file of one"),
    "the column of levels": (
        "columns.ward]",
        "columns.tier]",
        "'tier' holds the levels, about which nothing is asked.",
    ),
    "no TOML": ('user = "id"', "user = id", "accord.toml is no TOML: "),
    "a value for a column": (
        "[tables.people.columns.stay]",
        "columns.x = 1\n[tables.people.columns.stay]",
        "columns.x is not",
    ),
    "a name with a dot": ("[tables.people]", '[tables."a.b"]', "is no table with a name of letters"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_says_where_and_what(folder, name):
    old, new, says = REFUSED[name]
    assert old in WHOLE
    assert says in refused(folder, WHOLE.replace(old, new, 1))


def test_contradictions(folder):
    register = '\nconsent = { source = "people.csv" }'
    text = WHOLE.replace('\nuser = "id"', register)
    assert 'line 7: a consent register is joined by who a row is of. Add user = "…".' in refused(folder, text)
    text = WHOLE.replace('\nuser = "id"', f'\nuser = "id"{register}\nroster = {{ strict = 1 }}')
    assert "line 9: the consent register is the roster." in refused(folder, text)
    text = WHOLE.replace('keys = ["a", "b"]', 'kind = "number"\nkeys = ["a", "b"]')
    assert "line 25: keys of another kind are declared of a column of kind 'number'." in refused(folder, text)
    text = WHOLE.replace('neighbors = "replace"', "roster = { strict = 1.5 }")
    assert "line 11: " in refused(folder, text)


@pytest.mark.parametrize("source", ['"people.csv"', '"peo*.csv"', '["people.csv", "people.csv"]', '"parts"'])
def test_keys_are_not_read_from_the_people_themselves(folder, source):
    """Everybody sees declared keys: those of the table would tell who is there."""
    (folder / "parts").mkdir()
    (folder / "parts" / "people.csv").write_text(PEOPLE)
    (folder / "other.csv").symlink_to(folder / "people.csv")
    (folder / "ward.csv").write_text("ward\na\nb\n")
    described = WHOLE.replace('source = "people.csv"', f"source = {source}")
    listed = "parts/people.csv" if "parts" in source else "other.csv"
    for keys in (listed, f"../{folder.name}/{listed}"):
        text = described.replace('["a", "b"]', f'"{keys}"')
        assert f"line 24: keys={keys!r} is a file of people, not a public list:" in refused(folder, text)
    register = 'consent = { source = "register.csv" }\n'
    (folder / "register.csv").write_text("id,ward\n1,a\n")
    text = described.replace('user = "id"\n', f'user = "id"\n{register}').replace(
        '["a", "b"]', '"register.csv"'
    )
    assert "is a file of people, not a public list:" in refused(folder, text)
    assert accord.catalog(written(folder, described.replace('["a", "b"]', '"ward.csv"')))


def test_kinds_are_those_of_the_table(folder):
    import duckdb

    duckdb.sql(f"COPY (SELECT 1 AS x, 'a' AS w, 0.5 AS e) TO '{folder}/t.parquet'")
    text = 'schema = 1\n[tables.t]\nsource = "t.parquet"\nepsilon = "e"\n[tables.t.columns.{}]\nkind = "{}"\n'
    assert accord.catalog(written(folder, text.format("x", "number")))["t"].columns["x"] == "number"
    assert "line 6: the column holds texts, not numbers." in refused(folder, text.format("w", "number"), "t")


def test_what_is_not_there(folder):
    with pytest.raises(
        SourceError, match=r"there is no file .*nowhere\.toml\. A first one is written by 'accord init"
    ):
        accord.catalog(folder / "nowhere.toml")
    with pytest.raises(SourceError, match="cannot be read"):
        accord.catalog(folder)
    with pytest.raises(SourceError, match="describes no table 'peple': did you mean 'people'"):
        accord.catalog(written(folder, WHOLE))["peple"]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ('epsilon = "tier"', 'epsilon = "teir"', 8),
        ('user = "id"', 'user = "ID"', 7),
        ('csv = { delimiter = "," }', 'csv = { delimiter = "" }', 12),
        ("strict = 0.1", "strict = -1", 9),
    ],
)
def test_the_line_is_that_of_the_mistake(folder, old, new, line):
    assert refused(folder, WHOLE.replace(old, new)).startswith(f"accord.toml, line {line}: ")


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "[" * 5000,
        "x = " + "9" * 5000,
        "x = 0x" + "f" * 5000,
        WHOLE.replace("[0, 60]", f"[0, {2**80}]"),
        WHOLE.replace("schema = 1", f"schema = {2**64}"),
    ],
)
def test_numbers_and_depths_that_nothing_holds(folder, text):
    assert "Correct it" in refused(folder, text)


def test_other_ways_to_write_a_file(folder):
    path = folder / "accord.toml"
    path.write_bytes(b"\xef\xbb\xbf" + WHOLE.replace("\n", "\r\n").encode())
    assert list(accord.catalog(path)) == ["people"]
    path.write_bytes(WHOLE.replace("\n", "\r\n").replace("step = 1", "step = 7").encode())
    with pytest.raises(SourceError, match="line 19: step=7 does not fit"):
        accord.catalog(path)
    with pytest.raises(SourceError, match="Correct it"):
        accord.catalog("a\0b.toml")
    with pytest.raises(SourceError, match="describes no table"):
        accord.catalog(written(folder, WHOLE))[["people"]]


SECRETS = [
    ('source = "people.csv"', 'source = ["postgresql://u:PW@h/db", 3]'),
    ('source = "people.csv"', 'source = "mysql://u:PW@h/db"'),
    ('source = "people.csv"', 'source = "postgres:/u:PW@h/db"'),
    ('source = "people.csv"', 'source = "host=h password=PW"'),
    ('ledger = "accord.db"', 'ledger = ["postgresql://u:PW@h/db"]'),
    ('ledger = "accord.db"', 'ledger = { url = "postgresql://u:PW@h/db" }'),
    ('csv = { delimiter = "," }', 'csv = "postgresql://u:PW@h/db"'),
    ('csv = { delimiter = "," }', 'consent = "postgresql://u:PW@h/db"'),
]


@pytest.mark.parametrize(("old", "new"), SECRETS)
def test_no_password_is_echoed(folder, old, new):
    assert "PW" not in refused(folder, WHOLE.replace(old, new))


def test_no_password_is_shown(folder):
    text = WHOLE.replace('ledger = "accord.db"', 'ledger = "postgres//u:PW@h/db"')
    people = accord.catalog(written(folder, text))["people"]
    assert "PW" not in repr(people.description) + repr(people)
    with pytest.raises(LedgerError) as refusal:
        people.release(accord.mean("stay"), share=0.1)
    assert "PW" not in str(refusal.value)


def test_a_ledger_needs_ids(folder):
    assert "line 4: a ledger knows people by their ids." in refused(
        folder, WHOLE.replace('user = "id"\n', "")
    )


def test_a_ledger_must_know_who_is_there(folder):
    text = WHOLE.replace('"replace"', '"add-remove"').replace('default = "strict"', "roster = { strict = 5 }")
    assert "line 11: a ledger must know who is in a table" in refused(folder, text)


def test_moments_beyond_the_end_of_time(folder):
    text = WHOLE.replace(
        'csv = { delimiter = "," }',
        'consent = { source = "people.csv", valid_from = "day", as_of = 0001-01-01T00:00:00+05:00 }',
    )
    assert "is not a moment" in refused(folder, text)


def test_lines_of_dotted_keys_lists_and_headers(folder):
    from accord.toml_files import TomlFile

    path = folder / "any.toml"
    path.write_text(
        'a.b = 1\n"c d" = [\n  2,\n]\n[x."y.z"]\nk = 3\n[[q]]\nn = 1\n[[q]]\nn = 2\n[q.sub]\nm = 1\n'
    )
    file = TomlFile(path, SourceError, "")
    places = {
        ("a", "b"): 1,
        ("c d", 0): 2,
        ("x", "y.z"): 5,
        ("x", "y.z", "k"): 6,
        ("x", "y.z", "none"): 5,
        ("q", 0, "n"): 8,
        ("q", 1): 9,
        ("q", 1, "n"): 10,
        ("q", 1, "sub", "m"): 12,
        ("nowhere",): 1,
    }
    assert {place: file.line(place) for place in places} == places
    assert json.loads(json.dumps(file.top.values))["q"][1]["n"] == 2
