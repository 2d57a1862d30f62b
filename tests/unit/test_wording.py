"""On the command line a refusal names options, not arguments of Python."""

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from click.testing import CliRunner

import accord
from accord.cli import main
from accord.cli.options import STATISTICS
from accord.cli.wording import in_options

ERRORS = Path(__file__).parent.parent / "golden" / "errors.txt"
PYTHON_ONLY = (
    "another table's plan",
    "neighbors without a roster",
    "a confidence of 2",
    "a plan of a table",
    "a question that is none",
)
"""What the command line cannot ask for."""
ARGUMENT = re.compile(r"(?<![\w.-])(\w+)=(?!\w*ε)")
LEVELS = ("--epsilon", "e")
MEAN = ("mean", "x", "--bounds", "0", "1")


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    path = tmp_path_factory.mktemp("words") / "people.parquet"
    columns = {"x": np.linspace(0, 1, 40), "g": ["a", "b"] * 20, "u": np.arange(40), "e": np.ones(40)}
    pyarrow.parquet.write_table(pa.table({**columns, "tier": ["low", None] * 20}), path)
    return str(path)


def refusal(*words):
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 1, result.output
    return result.stderr.strip()


@pytest.mark.parametrize(
    "line",
    [
        line
        for line in ERRORS.read_text(encoding="utf-8").splitlines()
        if line.split("\t")[0] not in PYTHON_ONLY
    ],
    ids=lambda line: line.split("\t")[0],
)
def test_no_message_that_the_command_line_can_give_speaks_python(line):
    text = in_options(json.loads(line.split("\t")[1])["text"])
    outside = re.sub(r"(?<!\w)(['\"]).*?\1", "", text)
    assert not ARGUMENT.search(outside), text
    assert not re.search(rf"accord\.({'|'.join(STATISTICS)}|table|plan|Ledger)\b", text), text


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((*MEAN, *LEVELS, "--by", "g"), "QueryError: --by g needs --keys, the groups to answer about"),
        (
            (*MEAN, *LEVELS, "--keys", "a,b"),
            "QueryError: --keys and --membership are about groups. Add --by with",
        ),
        ((*MEAN, *LEVELS, "--where", "g >"), "QueryError: --where has 'the end' where a number"),
        ((*MEAN, *LEVELS, "--where", "by=1 or x"), "QueryError: there is no column 'by': "),
        ((*MEAN, *LEVELS, "--share", "7"), "PlanError: --share 7.0 is not a fraction of a level."),
        (
            (*MEAN, *LEVELS, "--t", "1"),
            "PlanError: --t is the level of the mechanisms threshold and sample. Add --mechanism threshold",
        ),
        (
            ("mean", "x", "--bounds", "1", "0", *LEVELS),
            "QueryError: --bounds 1 0 are reversed. Give (low, high)",
        ),
        (("mean", "x", "--bounds", "0", "1", "--epsilon", "tier"), "SpecError: column 'tier' "),
        (
            (*MEAN, "--epsilon", "tier", "--tiers", "low=1"),
            "20 of 40 people have no level (NULL). Give --default, or leave them out",
        ),
        (
            (*MEAN, "--epsilon", "1", "--tiers", "low=1"),
            "--epsilon is one number for everyone, so --tiers has no meaning.",
        ),
        (
            ("quantile", "x", "--p", "1", "--bounds", "0", "1", *LEVELS),
            "QueryError: --p 1 is the largest value. Ask for max.",
        ),
        (("rows", "--max", "3", *LEVELS), "Open the table with --user COLUMN."),
        (("histogram", "g", "--categories", "a", *LEVELS), "for one, ask count --where …."),
        ((*MEAN, *LEVELS, "--as-of", "2026-01-01"), "--as-of is about a consent register. Give --consent"),
        ((*MEAN, *LEVELS, "--at-most", "2"), "--at-most 2 says in how many groups or categories"),
        ((*MEAN, *LEVELS, "--where", "x > 1 & x < 2"), "' & x < 2'. Write AND for &. Write tests such as"),
        (
            (*MEAN, *LEVELS, "--where", 'g = "a"'),
            "A text stands in single quotes; double quotes name a column.",
        ),
    ],
)
def test_refusals_name_options(people, words, says):
    text = refusal("plan", people, *words)
    assert says in text
    assert "(on the command line" not in text


def test_tiers_are_written_as_one_types_them(people):
    assert "declare them: --tiers strict=0.1,public=inf." in refusal(
        "plan", people, *MEAN, "--epsilon", "tier"
    )


def test_a_ledgers_refusals_do_too(people, tmp_path):
    url = str(tmp_path / "accord.db")
    table = accord.table(people, epsilon="e", user="u")
    ledger = accord.Ledger(url)
    ledger.register(table, "people")
    table.release(accord.count(where="x > 0.5"), share=0.6, ledger=ledger)
    text = refusal(
        "release",
        people,
        "count",
        "--where",
        "x > 0.5",
        *LEVELS,
        "--user",
        "u",
        "--ledger",
        url,
        "--share",
        "0.5",
    )
    assert (
        "Ask for --share 0.4 or less, or plan from what is left: --remaining. See 'accord ledger show'."
        in text
    )


def test_what_is_planned_from_what_is_left_says_of_how_many_people_it_is(tmp_path):
    path, url = tmp_path / "people.parquet", str(tmp_path / "accord.db")
    columns = {"x": np.linspace(0, 1, 40), "u": np.arange(40), "e": np.repeat([0.1, 2.0], 20)}
    pyarrow.parquet.write_table(pa.table(columns), path)
    table, ledger = accord.table(str(path), epsilon="e", user="u"), accord.Ledger(url)
    ledger.register(table, "people")
    table.release(
        accord.count(where="x > 0.5"), "minimum", share=1.0, ledger=ledger
    )  # leaves 0 to the strict
    words = (str(path), "count", "--where", "x > 0.5", *LEVELS, "--user", "u", "--ledger", url, "--remaining")
    for command in ("plan", "release"):
        result = CliRunner().invoke(main, (command, *words))
        assert result.exit_code == 0, result.stderr
        assert "count of people where x > 0.5, of 20 of all 40 people, by " in result.stdout.splitlines()[1]
    assert "of all" not in CliRunner().invoke(main, ("plan", *words[:6])).stdout.partition("\n")[0]


def test_what_a_user_wrote_stays():
    assert (
        in_options("there is no column 'keys=x': did you mean \"by='g'\"?")
        == "there is no column 'keys=x': did you mean \"by='g'\"?"
    )
    assert (
        in_options("everyone's share=0.5 and user's keys=[…]") == "everyone's --share 0.5 and user's --keys …"
    )
    assert (
        in_options("bounds=(0, 200_000), missing=, region=north")
        == "--bounds 0 200000, --missing, region=north"
    )


def test_json_says_the_same(people):
    result = CliRunner().invoke(main, ("plan", people, *MEAN, *LEVELS, "--share", "7", "--json"))
    assert json.loads(result.stdout)["error"]["message"].startswith("--share 7.0 is not")


def test_how_a_file_is_to_be_read_is_said_in_options(tmp_path):
    (tmp_path / "leute.csv").write_bytes("Größe;Stufe\n1;2\n".encode("windows-1252"))
    text = refusal(
        "plan", str(tmp_path / "leute.csv"), "mean", "x", "--bounds", "0", "1", "--epsilon", "Stufe"
    )
    assert text.rstrip().endswith("Say what it is, such as --csv encoding=windows-1252.")


def test_bounds_in_one_word_do_not_take_the_next_option_for_the_other(people):
    for bounds in (("0,15000", "--epsilon"), ("0", "2500,5")):
        result = CliRunner().invoke(main, ("plan", people, "mean", "x", "--bounds", *bounds, *LEVELS))
        assert result.exit_code == 2
        assert "are not two bounds. Write two words, with points in numbers: --bounds 0 2500.5." in " ".join(
            result.stderr.split()
        )


def test_a_select_names_the_flag_for_one_row_each(people):
    select = ("sql", f"SELECT AVG(x) FROM '{people}'", *LEVELS, "--user", "u")
    text = CliRunner().invoke(main, (*select, "--bounds", "x=0..1")).stderr
    assert "declare that everyone has one row: --one-row-each." in text
