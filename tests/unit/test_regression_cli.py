"""Regressions and samples on the command line: text, JSON, and what is said of mistakes."""

import json
from importlib.resources import files

import duckdb
import numpy as np
import pytest
from click.testing import CliRunner

import accord
from accord.cli import main

PEOPLE = str(files("accord.data") / "people.parquet")
LEVELS = ["--epsilon", "epsilon"]
ON = "age=18..85,children=0..9,filing_status=single|joint|head_of_household|separate,foodstamps=false|true"
INCOME = ["regression", "income", "--bounds", "0", "200000"]
ASKED = [*INCOME, "--on", ON]
NAMES = [
    "age",
    "children",
    "filing_status=joint",
    "filing_status=head_of_household",
    "filing_status=separate",
    "foodstamps=True",
]


def run(*words, code=0):
    result = CliRunner().invoke(main, [str(w) for w in words])
    assert result.exit_code == code, result.output + result.stderr
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def document(*words, code=0):
    """stdout is exactly one JSON document."""
    return json.loads(run(*words, "--json", code=code).stdout)


def least_squares():
    data = duckdb.execute(
        "SELECT least(greatest(income, 0), 200000)::DOUBLE AS y, 1.0 AS one, age, children, (filing_status = 'joint')::INT AS j, "
        f"(filing_status = 'head_of_household')::INT AS h, (filing_status = 'separate')::INT AS s, foodstamps::INT AS f FROM read_parquet('{PEOPLE}')"
    ).fetchnumpy()
    y, *columns = data.values()
    return np.linalg.lstsq(np.column_stack(columns).astype(float), y, rcond=None)[0]


def test_release_prints_every_coefficient_and_what_it_cost():
    text = run("release", PEOPLE, *ASKED, *LEVELS, "--mechanism", "affine").stdout
    assert "regression of income on age, children, filing_status, foodstamps by affine" in text
    for word in (
        "intercept",
        *NAMES,
        "Charges",
        "predictions are within about ±",
        "approximate: 1.96 × a predicted error",
        "coefficients are shrunk towards zero",
    ):
        assert word in text


def test_release_as_json_is_the_receipt():
    receipt = document("release", PEOPLE, *ASKED, *LEVELS, "--mechanism", "affine")
    assert receipt["query"] == {
        "statistic": "regression",
        "target": "income",
        "features": ["age", "children", "filing_status", "foodstamps"],
        "bounds": {"income": ["0", "200000"], "age": ["18", "85"], "children": ["0", "9"]},
        "categories": {
            "filing_status": ["single", "joint", "head_of_household", "separate"],
            "foodstamps": [False, True],
        },
        "missing": "exclude",
    }
    assert list(receipt["value"]["coefficients"]) == NAMES and isinstance(
        receipt["value"]["intercept"], float
    )
    assert receipt["mechanism"] == "affine" and receipt["rmse"] > receipt["rmse_here"] > 0
    low, high = receipt["interval"]["bounds"]
    assert low == -high < 0


def test_the_answer_of_public_people_is_least_squares():
    receipt = document("release", PEOPLE, *ASKED, "--epsilon", "inf")
    intercept, *slopes = least_squares()
    value = receipt["value"]
    widths = [67, 9, 1, 1, 1, 1]
    assert abs(value["intercept"] - intercept) < 500
    for got, expected, width in zip(value["coefficients"].values(), slopes, widths, strict=True):
        assert abs(got - expected) * width < 500
    assert receipt["rmse_here"] == 0 and value["note"] == ""


def test_features_may_have_negative_bounds_numbers_as_categories_and_blanks():
    receipt = document(
        "plan",
        PEOPLE,
        *INCOME,
        "--on",
        " age = -5.5..1e2 , children=0|1|2 ,filing_status= single | joint",
        *LEVELS,
    )
    assert receipt["query"]["bounds"]["age"] == ["-5.5", "100"]
    assert receipt["query"]["categories"] == {"children": [0, 1, 2], "filing_status": ["single", "joint"]}


def test_categories_of_a_file_without_types_are_text(tmp_path):
    (tmp_path / "p.csv").write_text("y,k,t,e\n1,1,a,inf\n0,2,b,inf\n1,1,b,inf\n0,2,a,inf\n")
    receipt = document(
        "release",
        tmp_path / "p.csv",
        "regression",
        "y",
        "--bounds",
        0,
        1,
        "--on",
        "k=2|1,t=a|b",
        "--epsilon",
        "e",
    )
    assert receipt["value"]["coefficients"] == pytest.approx({"k=1": 1.0, "t=b": 0.0}, abs=1e-9)


def test_plan_compares_the_mechanisms_and_says_what_is_taken_for_granted():
    text = run("plan", PEOPLE, *ASKED, *LEVELS).stdout
    for word in ("affine", "threshold", "minimum", "sample", "refused", "values are rounded to 1,025 steps"):
        assert word in text
    plan = document("plan", PEOPLE, *ASKED, *LEVELS)
    answered = {c["mechanism"]: c["rmse"] for c in plan["candidates"] if c["rmse"] is not None}
    assert set(answered) == {"minimum", "threshold", "affine", "sample"}
    assert "value" not in plan and plan["rmse"] <= 1.06 * min(answered.values())


@pytest.mark.parametrize(
    ("t", "charges"),
    [
        ("max", ["0.01", "0.05", "0.05"]),
        ("min", ["0.01", "0.01", "0.01"]),
        ("mean", ["0.01", "0.037473", "0.037473"]),
        ("0.02", ["0.01", "0.02", "0.02"]),
        ("inf", ["0", "0", "inf"]),
        ("best", ["0", "0", "inf"]),
    ],
)
def test_t_of_sample_has_names(t, charges):
    for command in ("plan", "release"):
        receipt = document(command, PEOPLE, *ASKED, *LEVELS, "--mechanism", "sample", "--t", t)
        assert receipt["mechanism"] == "sample" and [c["charge"] for c in receipt["charges"]] == charges


@pytest.mark.parametrize(
    "statistic", [["mean", "income", "--bounds", "0", "200000"], ["count", "--where", "age > 65"]]
)
def test_t_of_sample_has_names_for_other_questions_too(statistic):
    receipt = document("release", PEOPLE, *statistic, *LEVELS, "--mechanism", "sample", "--t", "max")
    assert [c["charge"] for c in receipt["charges"]] == ["0.01", "0.05", "0.05"]


def test_share_is_passed_on():
    receipt = document("release", PEOPLE, *ASKED, *LEVELS, "--mechanism", "minimum", "--share", "0.5")
    assert receipt["share"] == "0.5" and [c["charge"] for c in receipt["charges"]] == ["0.005"] * 3


def test_few_people_get_the_mean_only(tmp_path):
    rows = "\n".join(f"{k % 7},{k % 5},0.5" for k in range(40))
    (tmp_path / "p.csv").write_text(f"y,x,e\n{rows}\n")
    words = [tmp_path / "p.csv", "regression", "y", "--bounds", 0, 10, "--on", "x=0..10", "--epsilon", "e", "--mechanism", "affine"]  # fmt: skip
    assert "only the mean of the target: the slopes would be noise" in run("release", *words).stdout
    assert document("release", *words)["value"]["coefficients"] == {"x": 0.0}
    assert "only the mean of the target is released" in " ".join(run("plan", *words).stdout.split())


def test_with_a_ledger(tmp_path):
    url = tmp_path / "ledger.db"
    run("ledger", "init", url)
    run("ledger", "register", url, "people", PEOPLE, *LEVELS, "--user", "person")
    words = [
        PEOPLE,
        *ASKED,
        *LEVELS,
        "--user",
        "person",
        "--ledger",
        url,
        "--mechanism",
        "sample",
        "--t",
        "max",
    ]
    assert "with a ledger, say how much" in run("release", *words, code=2).stderr
    receipt = document("release", *words, "--share", "0.5")
    assert receipt["ledger"]["entry"] == 3 and [c["charge"] for c in receipt["charges"]] == [
        "0.005",
        "0.025",
        "0.025",
    ]
    assert "regression of income" in run("ledger", "history", url).stdout
    assert document("ledger", "history", url)["releases"][0]["receipts"][0]["value"] == receipt["value"]
    assert not document("ledger", "verify", url)["problems"]
    rest = document("plan", *words, "--remaining")
    assert [c["charge"] for c in rest["charges"]] == ["0.005", "0.025", "0.025"]


def test_mechanisms_says_who_answers_regressions():
    listed = {m["name"]: m["answers"] for m in document("mechanisms")["mechanisms"]}
    assert {name for name, answers in listed.items() if "regression" in answers} == {
        "minimum",
        "threshold",
        "affine",
        "sample",
    }


def test_a_figure_is_written(tmp_path):
    run("plan", PEOPLE, *ASKED, *LEVELS, "--plot", tmp_path / "plan.png")
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")


# --- mistakes -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (INCOME, "regression needs --on with its features"),
        (["regression", "--on", ON, "--bounds", "0", "1"], "regression needs a COLUMN"),
        (["regression", "income", "--on", ON], "regression needs --bounds LO HI"),
        ([*INCOME, "--on", "age"], "--on has 'age'. Every feature needs its public bounds or categories"),
        ([*INCOME, "--on", "age=18"], "--on has 'age=18'."),
        ([*INCOME, "--on", "age=18..85,"], "--on has ''."),
        ([*INCOME, "--on", ""], "--on has ''."),
        ([*INCOME, "--on", "age=18..85,age=0..100"], "'age'"),
        ([*INCOME, "--on", "age=18..85,age=1|2"], "'age'"),
        ([*INCOME, "--on", "age=18..85,income=0..5"], "'income'"),
        ([*ASKED, "--max", "3"], "--max has no meaning for regression"),
        ([*ASKED, "--p", "0.5"], "--p has no meaning for regression"),
        ([*ASKED, "--categories", "a,b"], "--categories has no meaning for regression"),
        (["mean", "income", "--bounds", "0", "1", "--on", ON], "--on has no meaning for mean"),
    ],
)
def test_usage_errors_have_exit_code_2(words, message):
    for command in ("plan", "release"):
        result = run(command, PEOPLE, *words, *LEVELS, code=2)
        assert message in result.stderr and not result.stdout


REFUSED = [
    ([*INCOME, "--on", "aeg=18..85"], "QueryError: there is no column 'aeg': did you mean 'age'?"),
    ([*INCOME, "--on", "=18..85"], "QueryError"),
    ([*INCOME, "--on", "age=85..18"], "QueryError: the bounds of 'age' are 85 and 18. The lower one comes first"),
    ([*INCOME, "--on", "age=18..18"], "QueryError: the bounds of 'age' are 18 and 18."),
    ([*INCOME, "--on", "age=low..high"], "QueryError: the lower bound of 'age' is 'low'. It must be a finite number."),
    ([*INCOME, "--on", "age=..85"], "QueryError: the lower bound of 'age' is ''."),
    ([*INCOME, "--on", "age=0..inf"], "QueryError: the upper bound of 'age' is inf."),
    ([*INCOME, "--on", "filing_status=0..1"], "QueryError: column 'filing_status' holds text; a regression needs numbers."),
    ([*INCOME, "--on", "filing_status=single|single"], "QueryError: the feature 'filing_status' got 2 categories, 1 of them different."),
    ([*INCOME, "--on", "foodstamps=yes|no"], "QueryError: column 'foodstamps' holds true and false, and 'yes' is not one."),
    ([*INCOME, "--on", "age=old|young"], "QueryError: column 'age' holds numbers, and 'old' is not one."),
    ([*INCOME, "--on", "epsilon=0..1"], "QueryError: column 'epsilon' holds the levels"),
    (["regression", "filing_status", "--bounds", "0", "1", "--on", "age=18..85"], "QueryError: column 'filing_status' holds text"),
    (["regression", "income", "--bounds", "2020-01-01", "2021-01-01", "--on", "age=18..85"], "QueryError: the lower bound of 'income'"),
    (["regression", "income", "--bounds", "5", "1", "--on", "age=18..85"], "QueryError: the bounds of 'income' are 5 and 1."),
    ([*ASKED, "--mechanism", "mix"], "PlanError: mix cannot answer the regression of income"),
    ([*ASKED, "--t", "max"], "PlanError: --t is the level of the mechanisms threshold and sample."),
    ([*ASKED, "--mechanism", "threshold", "--t", "max"], "PlanError: --t max is not a level."),
    ([*ASKED, "--mechanism", "sample", "--t", "median"], "PlanError: --t median is not a level. Give a number of at least a millionth, or inf for public people only, or one of max, mean, min, best."),
    ([*ASKED, "--mechanism", "sample", "--t", "0"], "PlanError: --t 0.0 is not a level."),
    ([*ASKED, "--mechanism", "threshold", "--t", "7e5"], None),  # public people allow it
    ([*ASKED, "--share", "0"], "PlanError: --share 0.0 is not a fraction"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "message"), REFUSED)
def test_refusals_go_to_stderr_with_exit_code_1(words, message):
    for command in ("plan", "release"):
        if message is None:
            run(command, PEOPLE, *words, *LEVELS)
            continue
        result = run(command, PEOPLE, *words, *LEVELS, code=1)
        assert message in result.stderr and not result.stdout


def test_a_refusal_as_json_is_a_document():
    error = document("release", PEOPLE, *INCOME, "--on", "aeg=18..85", *LEVELS, code=1)["error"]
    assert error["type"] == "QueryError" and "did you mean 'age'" in error["message"]


def test_python_and_the_command_line_ask_the_same():
    query = accord.regression(
        "income",
        ["age", "children", "filing_status", "foodstamps"],
        {"income": (0, 200_000), "age": (18, 85), "children": (0, 9)},
        {"filing_status": ["single", "joint", "head_of_household", "separate"], "foodstamps": [False, True]},
    )
    table = accord.table(PEOPLE, epsilon="epsilon")
    assert document("plan", PEOPLE, *ASKED, *LEVELS) == json.loads(json.dumps(table.plan(query).describe()))
