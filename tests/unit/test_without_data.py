"""Plans and outlooks before there are data: --levels in the place of a SOURCE."""

import json
from math import inf

import pytest
from click.testing import CliRunner

import accord
from accord.cli import main
from accord.lab.whatif.outlook import outlook

LEVELS = ("--levels", "strict=0.1:4000,standard=1:9000,public=inf:300,out=0:12")
TIERS = {"strict": 0.1, "standard": 1, "public": inf, "out": 0}
SPEC = accord.Spec.from_groups({"strict": 4000, "standard": 9000, "public": 300, "out": 12}, TIERS)
MEAN = ("mean", "income", "--bounds", "0", "200000")
QUERY = accord.mean("income", bounds=(0, 200_000))


def run(*words, code=0):
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == code, result.output + result.stderr
    return result


def test_a_plan_and_an_outlook_need_no_data():
    assert json.loads(run("plan", *LEVELS, *MEAN, "--json").stdout) == accord.plan(SPEC, QUERY).describe()
    assert json.loads(run("whatif", *MEAN, *LEVELS, "--json").stdout) == outlook(SPEC, QUERY).describe()
    text = run("whatif", *LEVELS, *MEAN).stdout
    assert "strict" in text and "4,000" in text and "What would change if people moved" in text


def test_levels_need_no_names():
    document = json.loads(
        run("plan", "--levels=0.1:40,1:90", "median", "x", "--bounds", 0, 10, "--json").stdout
    )
    assert [(c["level"], c["tier"], c["people"]) for c in document["charges"]] == [
        ("0.1", None, 40),
        ("1", None, 90),
    ]


@pytest.mark.parametrize("command", ["plan", "whatif"])
@pytest.mark.parametrize(
    "part",
    [("--where", "age >= 65"), ("--by", "region", "--keys", "north,south"), ("--missing", "exclude")],
    ids=lambda part: part[0],
)
def test_parts_of_the_people(command, part):
    document = json.loads(run(command, *LEVELS, *MEAN, *part, "--json").stdout)
    plan = document if command == "plan" else document["plan"]
    described = plan["query"]
    assert "exclude" in part or described["membership"] == "private"
    assert described["missing"] == "exclude"
    assert plan["spec"]["people"] == 13_300


@pytest.mark.parametrize("command", ["plan", "whatif"])
def test_they_can_be_drawn(command, tmp_path):
    run(command, *LEVELS, *MEAN, "--plot", tmp_path / "ahead.png")
    assert (tmp_path / "ahead.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (MEAN, "whatif needs a SOURCE, or --levels such as strict=0.1:4000,standard=1:9000."),
        (("count",), "whatif needs a SOURCE, or --levels such as"),
        (("people.parquet", *MEAN, *LEVELS), "--levels stands for a SOURCE: give one of them, not both."),
        ((*LEVELS, "mode", "x"), "'mode' is not one of"),
        ((*LEVELS, "mean", "--bounds", 0, 1), "mean needs a COLUMN"),
        (
            (*LEVELS, *MEAN, "--epsilon", "tier"),
            "--epsilon is about a table, and --levels stands for one. Leave it out.",
        ),
        ((*LEVELS, *MEAN, "--ledger", "accord.db"), "--ledger is about a table"),
        (("people.parquet", *MEAN), "Missing option '--epsilon'"),
    ],
)
def test_usage(words, says):
    assert says in run("whatif", *words, code=2).stderr


@pytest.mark.parametrize(
    ("levels", "says"),
    [
        (
            "strict=0.1",
            "--levels has 'strict=0.1', which is not NAME=ε:PEOPLE. Write strict=0.1:4000,standard=1:9000.",
        ),
        ("strict=low:30", "--levels has 'strict=low:30', which is not NAME=ε:PEOPLE."),
        ("a=1:-3", "--levels has 'a=1:-3', which is not NAME=ε:PEOPLE."),
        ("a=1:3,a=2:4", "--levels has 'a' twice. Give each tier one level and one number of people."),
        ("a=0:3", "nobody is left to ask: all 3 people opted out."),
    ],
)
def test_levels_that_cannot_be_read(levels, says):
    assert says in run("plan", "--levels", levels, *MEAN, code=1).stderr
    assert (
        says
        in json.loads(run("plan", "--levels", levels, *MEAN, "--json", code=1).stdout)["error"]["message"]
    )


def test_help_names_the_option():
    for command in ("plan", "whatif"):
        assert "--levels NAME=ε:N,…" in run(command, "--help").stdout
    assert "--levels" not in run("release", "--help").stdout
