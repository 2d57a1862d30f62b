"""The command line, run as a person would: what it prints, where, and with which exit code."""

import json
from importlib.resources import files

import click
import duckdb
import pytest
from click.testing import CliRunner

import accord
from accord.cli import main

PEOPLE = str(files("accord.data") / "people.parquet")
MEAN = ["mean", "income", "--bounds", "0", "200000"]
LEVELS = ["--epsilon", "epsilon"]
TIERS = ["--epsilon", "tier", "--tiers", "strict=0.01,standard=0.05,public=inf,opted out=0"]


def run(*words, code=0):
    result = CliRunner().invoke(main, [str(w) for w in words])
    assert result.exit_code == code, result.output + result.stderr
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def document(*words, code=0):
    """stdout is exactly one JSON document."""
    return json.loads(run(*words, "--json", code=code).stdout)


def test_plan_lists_every_mechanism_and_its_reason():
    text = run("plan", PEOPLE, *MEAN, *LEVELS).stdout
    for word in (
        "→ affine",
        "threshold",
        "minimum",
        "mix",
        "fallah",
        "refused",
        "κ = ",
        "lowest predicted error",
        "1,008 people opted out",
    ):
        assert word in text


def test_release_prints_a_value_near_the_truth():
    text = run("release", PEOPLE, *MEAN, *LEVELS).stdout
    value = float(text.splitlines()[2].split()[0].replace(",", ""))
    assert abs(value - 47_345) < 15 * 466


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_an_answer_is_shown_even_if_its_figure_cannot_be_written(tmp_path, more):
    """It has been paid for. What stands on stdout is one document."""
    (tmp_path / "full.png").symlink_to("/dev/full")
    result = run("release", PEOPLE, *MEAN, *LEVELS, "--plot", tmp_path / "full.png", *more, code=1)
    assert "AccordError: cannot write" in result.stderr and "OSError" in result.stderr
    assert json.loads(result.stdout)["value"] if more else "95 % interval" in result.stdout


def test_release_as_json_is_the_receipt():
    receipt = document("release", PEOPLE, *MEAN, *TIERS, "--mechanism", "affine")
    assert receipt["schema"] == 1 and receipt["mechanism"] == "affine" and receipt["neighbors"] == "replace"
    assert [(c["level"], c["tier"], c["people"]) for c in receipt["charges"]] == [
        ("0.01", "strict", 4400),
        ("0.05", "standard", 9650),
        ("inf", "public", 4942),
    ]
    assert receipt["charges"][0]["charge"] == "0.01" and receipt["spec"]["opted_out"] == 1008
    low, high = receipt["interval"]["bounds"]
    assert low < receipt["value"] < high


def test_plan_as_json_names_every_candidate():
    plan = document("plan", PEOPLE, *MEAN, *LEVELS)
    assert {c["mechanism"]: c["rmse"] is None for c in plan["candidates"]} == {
        "minimum": False,
        "threshold": False,
        "proportional": True,
        "affine": False,
        "fallah": False,
        "stretch": True,
        "mix": False,
        "rank": True,
        "sample": False,
        "pe": True,
    }
    assert plan["reason"] and "value" not in plan


@pytest.mark.parametrize(
    ("words", "exact"),
    [
        (["count", "--where", "age >= 65"], "age >= 65"),
        (["sum", "wage", "--bounds", "0", "100000"], "least(wage, 100000)"),
        (["histogram", "age", "--edges", "18,65,100"], {"[18, 65)": "age < 65", "[65, 100]": "age >= 65"}),
        (
            ["histogram", "foodstamps", "--categories", "true,false"],
            {"True": "foodstamps", "False": "NOT foodstamps"},
        ),
        (
            ["histogram", "children", "--categories", "0,1", "--missing", "more"],
            {"0": "children = 0", "1": "children = 1", "more": "children > 1"},
        ),
        (
            ["histogram", "filing_status", "--categories", "single,joint"],
            {"single": "filing_status = 'single'", "joint": "filing_status = 'joint'"},
        ),
    ],
)
def test_every_statistic(words, exact):
    """Within twenty standard errors of the exact answer."""
    receipt = document("release", PEOPLE, *words, *LEVELS)
    got, exact = (
        (receipt["value"], exact) if isinstance(exact, dict) else ({"": receipt["value"]}, {"": exact})
    )
    assert set(got) == set(exact)
    for cell, expression in exact.items():
        truth = duckdb.execute(
            f"SELECT sum(({expression})::DOUBLE) FROM read_parquet('{PEOPLE}') WHERE epsilon > 0"
        ).fetchall()[0][0]
        assert abs(got[cell] - truth) < 20 * receipt["rmse"]


KEYS = {
    "age 30,31": [30, 31],
    "age 30.0,31.5": [30, 31.5],
    "member true,False": [True, False],
    "member true,maybe": ["true", "maybe"],
    "zip 01067,10115": ["01067", "10115"],
    "age '30','31'": ["30", "31"],
    "age nan,inf": ["nan", "inf"],
    "age 30,x": ["30", "x"],
}


@pytest.mark.parametrize("text", KEYS)
def test_keys_of_a_column_without_a_type_are_read_as_literals_of_conditions_are(tmp_path, text):
    column, keys = text.split(" ")
    rows = [f"{30.0 + k % 2},{k % 3 > 0},{('01067', '10115')[k % 2]}" for k in range(60)]
    (tmp_path / "people.csv").write_text("\n".join(["age,member,zip", *rows]))
    count = "release", tmp_path / "people.csv", "count", "--by", column, "--keys", keys, "--epsilon", "inf"
    answer = document(*count)
    assert answer["query"]["keys"] == KEYS[text]
    assert [type(key) for key in answer["query"]["keys"]] == [type(key) for key in KEYS[text]]
    people = {"age 30,31": [30, 30], "member true,False": [40, 20], "zip 01067,10115": [30, 30]}
    assert [row["value"] for row in answer["value"]] == people.get(
        text, [row["value"] for row in answer["value"]]
    )


def test_mechanism_share_and_t_are_passed_on():
    receipt = document(
        "plan", PEOPLE, *MEAN, *LEVELS, "--mechanism", "threshold", "--t", "0.02", "--share", "0.5"
    )
    assert receipt["share"] == "0.5" and [c["charge"] for c in receipt["charges"]] == ["0", "0.02", "0.02"]


def test_one_level_for_everyone():
    receipt = document("plan", PEOPLE, *MEAN, "--epsilon", "0.5", "--mechanism", "minimum")
    assert receipt["charges"] == [{"level": "0.5", "tier": None, "people": 20000, "charge": "0.5"}]


def test_a_figure_is_written(tmp_path):
    figure = tmp_path / "plan.png"
    result = run("plan", PEOPLE, *MEAN, *TIERS, "--plot", figure)
    assert (
        figure.read_bytes().startswith(b"\x89PNG")
        and str(figure) in result.stderr
        and str(figure) not in result.stdout
    )


def test_a_figure_that_cannot_be_written_is_said_so(tmp_path):
    assert (
        "cannot write the figure"
        in run("plan", PEOPLE, *MEAN, *LEVELS, "--plot", tmp_path / "no" / "plan.png", code=1).stderr
    )
    assert (
        "cannot write the figure"
        in run("plan", PEOPLE, *MEAN, *LEVELS, "--plot", tmp_path / "plan.xyz", code=1).stderr
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["plan", PEOPLE, "mean", "incme", "--bounds", "0", "1", *LEVELS],
            "QueryError: there is no column 'incme': did you mean 'income'?",
        ),
        (["plan", "nowhere.parquet", *MEAN, *LEVELS], "SourceError: there is no file 'nowhere.parquet'."),
        (
            ["plan", PEOPLE, *MEAN, "--epsilon", "tier", "--tiers", "strict=0.1"],
            "SpecError: tier 'opted out' of 1008 people is not declared",
        ),
        (
            ["plan", PEOPLE, *MEAN, "--epsilon", "tier", "--tiers", "a=1,a=2"],
            "SpecError: tier 'a' is declared twice.",
        ),
        (
            ["plan", PEOPLE, *MEAN, "--epsilon", "tier", "--tiers", "a"],
            "SpecError: --tiers has 'a', which is not NAME=ε.",
        ),
        (["plan", PEOPLE, *MEAN, "--epsilon", "tier"], "SpecError: column 'tier' holds no numbers."),
        (
            ["plan", PEOPLE, *MEAN, *LEVELS, "--mechanism", "afine"],
            "PlanError: there is no mechanism 'afine': did you mean 'affine'?",
        ),
        (
            ["release", PEOPLE, *MEAN, *LEVELS, "--mechanism", "stretch"],
            "PlanError: stretch cannot answer the mean of income",
        ),
        (["release", PEOPLE, *MEAN, *LEVELS, "--share", "2"], "PlanError: --share 2.0 is not a fraction"),
        (
            ["release", PEOPLE, "histogram", "foodstamps", "--categories", "yes,no", *LEVELS],
            "QueryError: column 'foodstamps' holds true and false, and 'yes' is not one.",
        ),
        (
            ["demo", "--save", "/nowhere/people.parquet"],
            "AccordError: cannot write '/nowhere/people.parquet'",
        ),
    ],
)
def test_refusals_go_to_stderr_with_exit_code_1(words, message):
    result = run(*words, code=1)
    assert message in result.stderr and not result.stdout


def test_a_refusal_as_json_is_a_document():
    assert document("plan", "nowhere.parquet", *MEAN, *LEVELS, code=1)["error"]["type"] == "SourceError"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["plan", PEOPLE, "mean", *LEVELS], "mean needs a COLUMN"),
        (["plan", PEOPLE, "mean", "income", *LEVELS], "mean needs --bounds LO HI"),
        (["plan", PEOPLE, "count", "income", *LEVELS], "COLUMN has no meaning for count"),
        (["plan", PEOPLE, *MEAN, "--max", "3", *LEVELS], "--max has no meaning for mean"),
        (["plan", PEOPLE, "mode", "income", *LEVELS], "'mode' is not one of"),
        (["plan", PEOPLE, *MEAN], "Missing option '--epsilon'"),
    ],
)
def test_usage_errors_have_exit_code_2(words, message):
    assert message in run(*words, code=2).stderr


def test_negative_bounds_are_numbers_and_not_options():
    assert document("plan", PEOPLE, "mean", "income", "--bounds", "-5", "200000", *LEVELS)["query"][
        "bounds"
    ] == [
        "-5",
        "200000",
    ]


def test_mechanisms_names_paper_neighbors_and_guarantee():
    text = run("mechanisms").stdout
    listed = document("mechanisms")["mechanisms"]
    for record in listed:
        assert (
            record["name"] in text
            and record["paper"]
            and record["neighbors"][0] == "replace"
            and record["guarantee"]
        )


def test_demo_tells_the_story_and_draws(tmp_path):
    figure = tmp_path / "demo.png"
    text = run("demo", "--figure", figure).stdout
    for word in (
        "People chose their own level",
        "No income has been read",
        "95 % interval",
        "Charges",
        "treat everyone like the strictest",
        "throw the strict away",
    ):
        assert word in text
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_demo_saves_its_table(tmp_path):
    run("demo", "--save", tmp_path / "people.parquet")
    assert accord.table(tmp_path / "people.parquet", epsilon="epsilon").spec().total == 18_992


def test_version():
    assert run("version").stdout.strip() == accord.__version__


def test_whatif_answers_to_its_former_name():
    words = (PEOPLE, *MEAN, *LEVELS)
    assert document("compare", *words) == document("whatif", *words)
    listed = run("--help").stdout
    assert "whatif" in listed and "compare" not in listed


def test_every_command_has_help():
    for name, command in main.commands.items():
        assert command.help, name
        assert isinstance(command, click.Command) and command.get_help(click.Context(command))


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["rele"], ["plain,release"]),
        (["release", "peo"], ["file,peo"]),
        (["release", "people.parquet", "med"], ["plain,median"]),
        (["plan", "people.parquet", "mean", "x", "--boun"], ["plain,--bounds"]),
        (["ledger", "verify", "acc"], ["file,acc"]),
    ],
    ids=" ".join,
)
def test_a_shell_completes(words, wanted):
    """What the script asks for that `_ACCORD_COMPLETE=bash_source accord` prints."""
    asked = {
        "COMP_WORDS": " ".join(["accord", *words]),
        "COMP_CWORD": str(len(words)),
        "_ACCORD_COMPLETE": "bash_complete",
    }
    done = CliRunner().invoke(main, [], prog_name="accord", env=asked)
    assert done.output.splitlines() == wanted
