"""`at_most=` and `per_person=`: what is refused, what a plan says about a person's rows, and the command line."""

import json

import pytest
from click.testing import CliRunner

import accord
from accord import cli
from accord.errors import QueryError
from accord.planning import refusals

COLUMNS = {
    "id": [1, 1, 1, 2, 3, 3],
    "product": ["tea", "milk", "tea", "milk", "milk", "rye"],
    "price": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    "e": [1.0] * 6,
}
PRODUCTS = ["milk", "tea", "rye"]
BY = {"by": "product", "keys": PRODUCTS}
SPEC = accord.Spec.from_groups({0.5: 2_000, 2.0: 1_000})


@pytest.fixture
def orders():
    return accord.table(COLUMNS, epsilon="e", user="id")


REFUSED = {
    r"at_most=0 is not a number of categories that one person may be in. Give a whole number from 1 to 3.": lambda: (
        accord.histogram("product", categories=PRODUCTS, at_most=0)
    ),
    r"at_most=True is not a number of groups": lambda: accord.count(**BY, at_most=True),
    r"at_most=4 is not a number of groups .* from 1 to 3": lambda: accord.count(**BY, at_most=4),
    r"at_most=2 says in how many groups .* Add by=": lambda: accord.count(where="price > 1", at_most=2),
    r"at_most=2 says in how many groups or categories one": lambda: accord.mean("price", (0, 9), at_most=2),
    r"at_most=3 says in how many": lambda: accord.histogram("price", edges=[0, 1, 9], at_most=3),
    r"at_most=2 is for groups of which it is private who is in which: nobody is in several public groups.": lambda: (
        accord.count(**BY, at_most=2, membership="public")
    ),
    r"at_most=2 could be of the categories or of the groups. Leave by= out": lambda: accord.histogram(
        "price", categories=[1, 2, 3], **BY, at_most=2
    ),
    r"per_person='most' is not offered. A person's rows come to one number: their 'mean', 'sum'": lambda: (
        accord.median("price", (0, 9), per_person="most")
    ),
    r"per_person='sum' is for edges. Somebody whose rows are of several categories": lambda: accord.histogram(
        "product", categories=PRODUCTS, per_person="sum"
    ),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_has_no_meaning_is_refused(words):
    with pytest.raises(QueryError, match=words):
        REFUSED[words]()


def test_dates_have_no_sum():
    from datetime import date

    with pytest.raises(QueryError, match=r"dates have no sum. Give per_person='mean', 'min' or 'max'"):
        accord.median("day", (date(2020, 1, 1), date(2021, 1, 1)), per_person="sum")
    with pytest.raises(QueryError, match=r"dates have no sum. Give per_person='mean', 'min' or 'max'"):
        accord.histogram("day", edges=["2020-01-01", "2020-02-01", "2021-01-01"], per_person="sum")


@pytest.mark.parametrize(
    ("query", "argument"),
    [
        (accord.histogram("product", categories=PRODUCTS, at_most=2), "at_most=2"),
        (accord.mean("price", (0, 9), **BY, at_most=3), "at_most=3"),
        (accord.mean("price", (0, 9), per_person="sum"), "per_person='sum'"),
        (accord.median("price", (0, 9), where="price > 1", per_person="mean"), "per_person='mean'"),
        (accord.histogram("price", edges=[0, 1, 9], per_person="max"), "per_person='max'"),
    ],
)
def test_a_row_that_is_one_person_has_neither(query, argument, orders):
    with pytest.raises(QueryError, match=f"each row is one person here, so that {argument} has no meaning"):
        accord.table(COLUMNS, epsilon="e").plan(query)
    orders.plan(query)


def test_what_is_charged_follows():
    """Every group's answer has its part of a charge, and nobody is charged more than their level. There are three groups."""
    for k in (1, 2, 3):
        for neighbors, times in (("replace", min(2 * k, 3)), ("add-remove", k)):
            plan = accord.plan(SPEC, accord.count(**BY, at_most=k), "proportional", neighbors=neighbors)
            assert plan.times == times
            assert plan.calibration.charges.tolist() == [500_000 // times, 2_000_000 // times]
            assert all(charge <= level for level, charge in plan.charges.items())
    one, two = (accord.plan(SPEC, accord.count(**BY, at_most=k), "minimum") for k in (1, 2))
    assert two.rmse_here == pytest.approx(1.5 * one.rmse_here, rel=1e-5)
    cells = [f"c{k}" for k in range(8)]
    sensitivities = {
        (k, neighbors): accord.plan(
            SPEC, accord.histogram("product", categories=cells, at_most=k), neighbors=neighbors
        ).target.sensitivity
        for k in (1, 2, 5)
        for neighbors in ("replace", "add-remove")
    }
    assert sensitivities == {
        (1, "replace"): 2,
        (1, "add-remove"): 1,
        (2, "replace"): 4,
        (2, "add-remove"): 2,
        (5, "replace"): 8,  # there are no more cells to change
        (5, "add-remove"): 5,
    }


def test_who_may_be_in_several_groups_needs_no_other_relation_where_people_come_and_go():
    by_two = accord.variance("price", (0, 9), **BY, at_most=2)
    reasons = {neighbors: refusals(by_two, neighbors)["mix"] for neighbors in ("replace", "add-remove")}
    assert reasons["add-remove"] == "proves neighbors replace only"
    moving = "that somebody moves between private groups takes add-remove"
    assert reasons["replace"] == f"proves neighbors replace only, and {moving}"


def first_lines(plan):
    return " ".join(str(plan).split("\n\n")[0].split())


def test_a_plan_says_first_what_rows_come_to(orders):
    histogram = orders.plan(accord.histogram("product", categories=PRODUCTS))
    assert first_lines(histogram).startswith(
        "A person is whoever has the same value in the column id, and is in their most frequent category; of equally frequent ones a "
        "public hash decides. Plan: histogram of product (each in their most frequent one) by "
    )
    assert str(histogram).count("whoever has the same value in the column id") == 1
    assert "(each in up to 2) by" in first_lines(
        orders.plan(accord.histogram("product", categories=PRODUCTS, at_most=2))
    )
    assert first_lines(orders.plan(accord.mean("price", (0, 9), **BY, at_most=2))).startswith(
        "A person is whoever has the same value in the column id, is in their 2 most frequent groups, and counts with the mean of "
        "their rows in each; of equally frequent ones a public hash decides. "
        "Plan: mean of price by product (each in up to 2) by "
    )
    sums = orders.plan(accord.median("price", (0, 99), per_person="sum"))
    assert first_lines(sums).startswith(
        "A person is whoever has the same value in the column id, and counts with the sum of their rows. "
        "Plan: median of price, each person's sum by "
    )
    assert "A person is whoever" in str(orders.release(accord.count(**BY), "minimum"))
    alone = accord.table(COLUMNS, epsilon="e").plan(accord.histogram("product", categories=PRODUCTS))
    assert first_lines(alone).startswith("Plan: histogram of product by ")
    assert "each row is one person" in str(alone)


def test_documents_say_so_only_where_it_is_not_the_default(orders):
    plain = orders.plan(accord.count(**BY)).describe()["query"]
    assert "at_most" not in plain and "per_person" not in plain
    plan = orders.plan(accord.mean("price", (0, 9), **BY, at_most=2, per_person="max"))
    assert plan.describe()["query"] | {"at_most": 2, "per_person": "max"} == plan.describe()["query"]
    assert "a person may be in up to 2 of the groups, and is charged for all of them" in plan.assumptions
    cells = orders.plan(accord.histogram("product", categories=PRODUCTS, at_most=2))
    assert cells.describe()["query"]["at_most"] == 2
    assert "a person may be in up to 2 of the cells, and is charged for all of them" in cells.assumptions
    mean = accord.mean("price", (0, 9), per_person="mean")  # as without
    assert "per_person" not in mean.describe() and mean.label == "mean of price"


def test_the_command_line_has_both(tmp_path):
    lines = [",".join(COLUMNS), *(",".join(map(str, row)) for row in zip(*COLUMNS.values(), strict=True))]
    (tmp_path / "orders.csv").write_text("\n".join(lines), encoding="utf-8")
    source = [str(tmp_path / "orders.csv")]
    levels = ["--epsilon", "e", "--user", "id", "--json"]

    def planned(*words):
        result = CliRunner().invoke(cli.main, ["plan", *source, *words, *levels])
        return json.loads(result.output) if result.exit_code == 0 else result.output

    histogram = planned("histogram", "product", "--categories", "milk,tea,rye", "--at-most", "2")
    assert histogram["query"]["at_most"] == 2
    grouped = planned("median", "price", "--bounds", "0", "99", "--by", "product", "--keys", "milk,tea",
                      "--at-most", "2", "--per-person", "sum")  # fmt: skip
    assert grouped["query"]["at_most"] == 2 and grouped["query"]["per_person"] == "sum"
    assert "at_most" not in planned("count", "--where", "price > 1")["query"]
    assert "--per-person has no meaning for count" in planned(
        "count", "--where", "x > 1", "--per-person", "sum"
    )
