"""What public people's values suggest, by the rule that people/suggesting.py states; and what is refused before anybody is read."""

import json
import logging
from datetime import date, datetime
from fractions import Fraction
from itertools import product
from math import inf, nan, sqrt

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import accord
from accord.budget import PUBLIC
from accord.cli import main
from accord.errors import PlanError, PrivacyWarning, QueryError, SourceError
from accord.people.reader import TableReader
from accord.people.suggesting import Known, expected_error, outward


def table(values, others=(5.0, 7.0), column="x", **options):
    """Public people with these values, and others."""
    levels = [inf] * len(values) + [0.5] * len(others)
    return accord.table({column: [*values, *others], "e": levels}, epsilon="e", **options)


def spread_out(people=200):
    """Values 0, 1, …, with a tail: one in a hundred is a hundred times as large."""
    return [float(k * (100 if k % 100 == 99 else 1)) for k in range(people)]


# ---- bounds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "bounds"),
    [
        ([18, 93], (0, 100)),
        ([52, 93], (50, 100)),
        ([170.5, 188.2], (150, 200)),
        ([-17.0, 93.0], (-20, 100)),
        ([-93.0, -60.0], (-100, -60)),
        ([-93.0, -2.0], (-100, 0)),
        ([0.031, 0.07], (0.03, 0.08)),
        ([40.0], (40, 50)),
        ([100.0] * 150, (100, 150)),
        ([0.0] * 150, (0, 1)),
        ([-100.0], (-100, -80)),
        ([1e300, 3.0], (0, 10**90)),
        ([1e-300, 0.0], (0, 1)),
    ],
)
def test_without_a_gap_bounds_are_around_all_of_them(values, bounds):
    look = table(values).public("x")
    assert look.bounds == bounds
    assert (look.people, look.missing) == (len(values), 0)
    accord.mean("x", bounds=look.bounds, step=look.step)
    assert "around all public people's values" in look.why["bounds"]
    assert "how far the others' may lie from these is not known here" in look.why["bounds"]


def test_declared_bounds_stay_unless_there_is_a_gap():
    look = table(spread_out()).public("x", (0, 1_000))
    assert look.bounds == (0, 1_000)
    assert look.why["bounds"] == "as declared; 2 of 200 public people lie outside"
    people = table(spread_out(), others=[3.0] * 3_000)
    assert people.public("x", (0, 10**6), gap=1).bounds[1] < 10**6


def test_with_a_gap_the_expected_error_is_the_smallest():
    """By the rule, written a second time; among all choices, taken one end after the other."""
    values = np.sort([4_000.0, *(float(k * 7 % 400) for k in range(1_999))])
    people = table(values, others=[3.0] * 3_000)
    spec, gap = people.spec(), 20

    def error(low, high):
        inside = np.clip(values, low, high)
        spread = min((high - low) / 2, sqrt(inside.var() + gap**2 / 4))
        plan = accord.plan(spec, accord.mean("x", (low, high), std=spread), share=0.3)
        excess = np.abs(values - inside)
        return plan.rmse**2 + (plan.bias_bound * gap) ** 2 + (3 * excess.mean()) ** 2 + excess.var() / 2_000

    look = people.public("x", gap=gap, share=0.3)
    choices = [300, 400, 4_000]
    assert look.bounds[0] == 0
    least = min(error(0, high) for high in choices)
    assert look.bounds[1] == max(high for high in choices if error(0, high) <= 1.01**2 * least)
    assert look.bounds[1] == 400
    assert expected_error(
        values, *map(Fraction, look.bounds), Known(spec, "x", None, gap, 0.3)
    ) == pytest.approx(error(*look.bounds), rel=1e-3)
    told = f"the widest within 1 % of the smallest expected error of a mean: {sqrt(error(*look.bounds)):,.3g}"
    assert told[:-1] in look.why["bounds"]
    assert "What is cut off is not added back" in look.why["bounds"]


def test_the_more_may_be_spent_the_wider_the_bounds():
    people = table(spread_out(400), others=[3.0] * 100_000)
    narrow, wide = (people.public("x", gap=0, share=share).bounds for share in (0.001, 1.0))
    assert narrow[1] <= wide[1]


def test_with_few_public_people_a_gap_is_not_enough():
    look = table(spread_out(99)).public("x", gap=1)
    assert look.bounds == (0, 100)
    assert (
        "99 public people with a value are too few (below 100) for the rule with a gap" in look.why["bounds"]
    )
    assert (look.step, look.std) == (None, None)
    one = table([3.0]).public("x", gap=1)
    assert "1 public person with a value is too few" in one.why["step"]
    assert "1 public person" in str(one)


@pytest.mark.parametrize("step", [None, 10])
def test_round_numbers_lie_outward(step):
    for x in (*np.linspace(-250, 250, 77).tolist(), 1e-7, 1e7, 99.999, 100.0):
        low, high = (outward(x, up, step and Fraction(step)) for up in (False, True))
        assert low <= Fraction(repr(x)) <= high
        assert step is None or (low % step, high % step) == (0, 0)
        assert step or high - low <= abs(Fraction(repr(x)))


# ---- step, std and keys ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([k / 1 for k in range(150)], 1),
        ([k / 10 for k in range(150)], 0.1),
        ([k / 4 for k in range(150)], 0.01),
        ([k * 100.0 for k in range(150)], 100),
        ([k / 7 for k in range(150)], None),
        ([500.0, 100.0] * 80, 1),
        ([k / 1 for k in range(99)], None),
        ([k * 1e5 + 0.01 for k in range(150)], None),
    ],
)
def test_the_step_is_the_resolution_of_their_values(values, step):
    look = table(values).public("x")
    assert look.step == step
    accord.mean("x", bounds=look.bounds, step=look.step)
    told = {
        None: "public p",
        1: "every public person's value is a multiple of it; others' are rounded to one",
    }
    assert told.get(step, told[1])[:8] in look.why["step"]


def test_a_step_that_does_not_fit_is_not_suggested():
    whole = [k / 1 for k in range(150)]
    assert (
        "multiples of 1, which does not divide these bounds"
        in table(whole).public("x", (0.5, 100)).why["step"]
    )
    fine = [k * 1e5 + 0.01 for k in range(150)]
    assert "multiples of 0.01, finer than the grid without a step" in table(fine).public("x").why["step"]
    none = [k / 7 for k in range(150)]
    assert "multiples of no power of ten from 0.000001 on" in table(none).public("x").why["step"]


def test_std_is_for_a_gap_alone():
    values = [float(k % 100) for k in range(300)]
    assert table(values).public("x").std is None
    assert (
        table(values).public("x").why["std"] == "not without gap=: public people may differ less than all do"
    )
    look = table(values).public("x", gap=10)
    assert look.bounds == (0, 100)
    assert look.std == pytest.approx(sqrt(np.var(values) + 25), rel=1e-3)
    assert look.std >= sqrt(np.var(values) + 25)
    accord.mean("x", bounds=look.bounds, std=look.std)
    constant = table([5.0] * 150).public("x", gap=0)
    assert constant.why["std"] == "public people do not differ within these bounds"
    wide = table(values).public("x", gap=1_000)
    assert wide.std == (wide.bounds[1] - wide.bounds[0]) / 2


def test_keys_of_text_and_of_codes():
    look = table(["b", "a", None, "", "b", "Ä"], others=["secret", "q"]).public("x")
    assert (look.keys, look.bounds, look.missing) == (("a", "b", "Ä"), None, 2)
    assert look.why == {"keys": "every one that a public person has, 3 in all; others may have more"}
    assert accord.histogram("x", categories=look.keys).label
    codes = table([30, 31, 30]).public("x")
    assert codes.keys == (30, 31)
    assert "if the column has codes rather than amounts" in codes.why["keys"]
    assert table([0.5, 3.0]).public("x").keys is None
    assert table([float(k) for k in range(101)]).public("x").keys is None


def test_a_column_without_types_is_what_most_public_people_have(tmp_path):
    """Others decide nothing, and what is no number is missing."""
    path = tmp_path / "people.csv"
    path.write_text("e,x,y\ninf,1,a\ninf,7,1\ninf,NA,b\n1,zzz,1\n1,zzz,2\n1,zzz,3\n")
    people = accord.table(path, epsilon="e")
    look = people.public("x")
    assert (look.bounds, look.missing) == ((0, 8), 1)
    with pytest.warns(PrivacyWarning, match="second release"):
        assert people.public("y").keys == ("1", "a", "b")


def test_dates():
    days = [date(2019, 5, 3), date(2021, 2, 1), None]
    people = accord.table(pa.table({"x": days, "e": [inf, inf, 1.0]}), epsilon="e")
    look = people.public("x")
    assert look.bounds == (date(2019, 1, 1), date(2021, 12, 31))
    assert look.why["bounds"].startswith("the whole years in which public people's values lie")
    assert accord.median("x", bounds=look.bounds).label
    assert "(2019-01-01, 2021-12-31)" in str(look)
    assert json.loads(json.dumps(look.describe()))["value"]["bounds"] == ["2019-01-01", "2021-12-31"]
    moments = np.array(["2019-05-03 12:00", "9999-12-31 23:59", "NaT"], dtype="datetime64[s]")
    people = accord.table({"x": moments, "e": [inf, inf, inf]}, epsilon="e")
    look = people.public("x")
    assert look.bounds == (datetime(2019, 1, 1), datetime(9999, 12, 31))
    assert look.missing == 1
    with pytest.warns(PrivacyWarning):
        assert people.public("x", ("2000-01-01", "2030-01-01")).bounds == ("2000-01-01", "2030-01-01")
    with pytest.raises(
        QueryError, match=r"column 'x' holds dates, and bounds=\(0, 1\) are numbers. Give two dates."
    ):
        people.public("x", (0, 1))


def test_nobody_has_a_value():
    look = table([nan, None]).public("x")
    assert (look.bounds, look.missing, look.why) == (None, 2, {"bounds": "no public person has a value"})
    assert repr(look) == "<PublicLook at x of 2 people: nothing>"
    assert "–" in str(look)
    declared = table([nan]).public("x", (0, 5))
    assert (declared.bounds, declared.why["bounds"]) == ((0, 5), "as declared; no public person has a value")
    assert table([None], [None], "x").public("x").why["bounds"] == "no public person has a value"


@pytest.mark.parametrize(
    ("per_person", "bounds"),
    [(None, (20, 40)), ("mean", (20, 40)), ("sum", (50, 80)), ("min", (0, 30)), ("max", (40, 50))],
)
def test_rows_of_one_person_come_to_one_value(per_person, bounds):
    rows = {
        "id": [1, 1, 2, 2, 2, 3, 3],
        "x": [0.0, 50.0, 30.0, 40.0, nan, 900.0, 900.0],
        "e": [inf, inf, inf, inf, inf, inf, 1.0],
    }
    look = accord.table(rows, epsilon="e", user="id").public("x", per_person=per_person)
    assert (look.people, look.bounds, look.missing) == (2, bounds, 0)


@pytest.mark.parametrize("having", [k for k in product((True, False), repeat=3) if any(k)])
def test_whichever_of_them_have_a_value(having):
    x = [float(k + 1) if having[k // 2] else None for k in range(6)]
    people = {"id": [1, 1, 2, 2, 3, 3], "x": pa.array(x, pa.float64()), "e": [inf] * 6}
    look = accord.table(pa.table(people), epsilon="e", user="id").public("x", per_person="max")
    assert look.missing == having.count(False)


# ---- what it is -----------------------------------------------------------------------------------------------------


def test_what_is_shown(caplog):
    people = table(spread_out())
    with caplog.at_level(logging.DEBUG, "accord"):
        look = people.public("x")
    assert look.charges == {0.5: 0.0, inf: inf}
    assert [r.getMessage() for r in caplog.records][-1] == (
        "looked at x of 200 public people, charges inf: inf, booked nowhere"
    )
    document = look.describe()
    assert document == look.receipt() == json.loads(json.dumps(document))
    assert document["charges"] == [
        {"level": "0.5", "tier": None, "people": 2, "charge": "0"},
        {"level": "inf", "tier": None, "people": 200, "charge": "inf"},
    ]
    assert document["value"] == {"bounds": [0, 20_000], "step": 1, "std": None, "keys": None}
    assert document["why"] == dict(look.why)
    for told in (
        "only people who are public (level inf) were read: it costs them inf, and everyone else nothing",
        "public people may differ from the others: nothing of this is a guarantee about them",
        "values outside the bounds count as the nearer bound",
    ):
        assert told in str(look)
        assert told in look._repr_html_()
        assert told in document["assumptions"]
    assert "x of 200 public people" in str(look)
    assert repr(look) == "<PublicLook at x of 200 people: bounds=(0, 20000), step=1>"
    assert "<b>" not in table(["<b>"]).public("x")._repr_html_()
    many = table([f"key {k:03}" for k in range(100)]).public("x")
    assert "…" in str(many)
    assert "key 050" not in str(many)


def test_it_counts_as_a_release():
    """What a process knows of a table without a ledger includes it."""
    people = table(spread_out())
    people.public("x")
    with pytest.warns(PrivacyWarning, match="this is the second release of this table in this process"):
        release = people.release(accord.mean("x", bounds=(0, 10)), "minimum", share=0.5)
    charged = release.unbooked.charged  # the others, by the release alone
    assert (charged.levels.tolist(), charged.charges.tolist()) == ([500_000, PUBLIC], [250_000, PUBLIC])


def test_a_described_table(tmp_path):
    (tmp_path / "people.csv").write_text(
        "e,x,d,n\ninf,1,2020-01-01,1\ninf,7,2021-05-05,2\n1,3,2020-01-01,9\n"
    )
    (tmp_path / "accord.toml").write_text(
        'schema = 1\n[tables.people]\nsource = "people.csv"\nepsilon = "e"\n'
        "[tables.people.columns.x]\nbounds = [0, 60]\n"
        '[tables.people.columns.d]\nkind = "date"\n[tables.people.columns.n]\nkind = "text"\n'
    )
    people = accord.catalog(tmp_path / "accord.toml")["people"]
    assert people.public("x").bounds == (0, 60)
    with pytest.warns(PrivacyWarning):
        assert people.public("d").bounds == (date(2020, 1, 1), date(2021, 12, 31))
    assert people.public("n").keys == ("1", "2")


def test_a_described_table_of_people_with_several_rows(tmp_path):
    """What a sum of rows may be is declared apart from what one row may be."""
    (tmp_path / "visits.csv").write_text("id,e,x\n1,inf,1\n1,inf,7\n2,1,3\n")
    (tmp_path / "accord.toml").write_text(
        'schema = 1\n[tables.visits]\nsource = "visits.csv"\nepsilon = "e"\nuser = "id"\n'
        "[tables.visits.columns.x]\nbounds = [0, 60]\ntotal = [0, 500]\n"
    )
    visits = accord.catalog(tmp_path / "accord.toml")["visits"]
    assert visits.public("x").bounds == (0, 60)
    with pytest.warns(PrivacyWarning):
        assert visits.public("x", per_person="sum").bounds == (0, 500)


# ---- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "options", "told"),
    [
        ("y", {}, "there is no column 'y'"),
        ("e", {}, "column 'e' holds the levels, about which nothing is asked. Choose another."),
        ("b", {}, r"column 'b' holds true and false, so that there is nothing to suggest: bounds=\(0, 1\)"),
        (
            "x",
            {"gap": -1},
            "gap=-1 is negative, or too large to mean anything. It is how far the means of two levels may lie apart",
        ),
        ("x", {"gap": nan}, "gap is nan. It must be a finite number."),
        ("x", {"bounds": (5, 5)}, r"bounds=\(5, 5\) are equal"),
        ("x", {"bounds": "ab"}, "bound"),
        ("t", {"bounds": (0, 5)}, "column 't' holds text, which has no bounds. Leave bounds= out."),
        ("t", {"gap": 1}, "gap= is about means of numbers, and column 't' holds none. Leave it out."),
        ("x", {"per_person": "max"}, "each row is one person here, so that per_person='max' has no meaning"),
        ("x", {"share": 2}, "share=2 is not a fraction of a level"),
    ],
)
def test_what_cannot_be_used_is_refused_before_anybody_is_read(column, options, told, monkeypatch):
    columns = {"x": [1.0, 2.0], "t": ["a", "b"], "b": [True, False], "e": [inf, 1.0]}
    people = accord.table(pa.table(columns), epsilon="e")
    people.spec()
    monkeypatch.setattr(type(people.reader.engine), "fetch", None)
    with pytest.raises((QueryError, PlanError), match=told):
        people.public(column, **options)
    assert people.reader.spending.so_far() is None


def test_nobody_is_public():
    people = accord.table({"x": [1, 2], "e": [1.0, 0.0]}, epsilon="e")
    with pytest.raises(PlanError, match=r"nobody in this table is public \(level inf\).*Nothing was spent."):
        people.public("x")
    people = accord.table({"id": [1, 1], "x": [1, 2], "e": [1.0, inf]}, epsilon="e", user="id")
    with pytest.raises(PlanError, match="nobody in this table is public"):
        people.public("x")
    with pytest.raises(QueryError, match="column 'id' holds who a row is of"):
        people.public("id")
    with pytest.raises(QueryError, match="per_person='most' is none of mean, sum, min, max"):
        people.public("x", per_person="most")


def test_public_groups_and_add_remove_are_refused():
    part = accord.count(by="x", keys=[5], membership="public").part
    group = table([5, 6]).groups(part)[5]
    with pytest.raises(QueryError, match=r"one public group of another. Look"):
        group.public("x")
    roster = accord.Spec.from_groups({inf: 3, 0.5: 3})
    people = accord.table({"x": [1.0], "e": [inf]}, epsilon="e", neighbors="add-remove", roster=roster)
    with pytest.raises(QueryError, match="it is private who is in the table, also of public people"):
        people.public("x")


def test_a_table_that_changes_meanwhile_is_refused(monkeypatch):
    people = table([1.0, 2.0])
    people.spec()
    monkeypatch.setattr(TableReader, "spec", lambda self: accord.Spec.from_groups({0.5: 2, inf: 3}))
    with pytest.raises(SourceError, match="changed"):
        people.public("x")


# ---- on the command line --------------------------------------------------------------------------------------------


def test_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{k},{k % 100},public\n" for k in range(200)) + "900,7,strict\n900,8,strict\n"
    (tmp_path / "people.csv").write_text("id,x,tier\n" + rows)
    words = [
        "public",
        "people.csv",
        "x",
        "--epsilon",
        "tier",
        "--tiers",
        "strict=0.1,public=inf",
        "--user",
        "id",
    ]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0
    assert "x of 200 public people" in done.stdout
    assert "(0, 100)" in done.stdout
    more = ["--json", "--gap", "3", "--bounds", "0", "500", "--share", "0.5", "--per-person", "max"]
    document = json.loads(CliRunner().invoke(main, [*words, *more]).stdout)
    assert document["value"]["bounds"] == [0, 500]
    assert document["charges"][0] == {"level": "0.1", "tier": "strict", "people": 1, "charge": "0"}
    refused = CliRunner().invoke(main, [*words, "--actor", "me"])
    assert refused.exit_code == 2
    assert "--actor and --purpose are booked in a ledger" in refused.stderr
    refused = CliRunner().invoke(main, [*words, "--gap", "-1"])
    assert (refused.exit_code, refused.stderr.split(".")[0]) == (1, "QueryError: --gap -1")


@pytest.mark.parametrize("per_person", [None, "sum", "min", "max"])
def test_public_people_who_have_no_value_suggest_nothing(per_person):
    table = accord.table({"x": [float("nan"), 1.0], "u": [1, 2], "e": [inf, 1.0]}, epsilon="e", user="u")
    look = table.public("x", per_person=per_person)
    assert (look.people, look.missing, look.bounds) == (1, 1, None)


def test_a_gap_of_any_size_and_odd_columns_are_refused_or_borne():
    n = 200
    data = {"x": np.arange(n) / 7, "e": np.where(np.arange(n) < 150, inf, 1.0)}
    table = accord.table(data, epsilon="e")
    assert table.public("x", (0, 30), gap=10.0**90).std is not None
    with pytest.raises(QueryError, match="too large to mean anything"):
        table.public("x", (0, 30), gap=10.0**101)
    with pytest.raises(QueryError, match="a column is named by a text"):
        table.public(["x"])
