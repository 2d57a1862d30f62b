"""What the README and docs say is run, and what exists is documented."""

import ast
import json
import os
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from click.testing import CliRunner
from noises import SEEDED
from reading import blocks, values_shown

import accord
from accord.cli import main
from accord.mechanisms import ALL

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *(p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts)]
README = (ROOT / "README.md").read_text(encoding="utf-8")
START = README + (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
"""What somebody new reads, in its order."""


def commands():
    lines = [
        line.removeprefix("$ ")
        for block in blocks("console", START)
        for line in block.splitlines()
        if line.startswith("$ ")
    ]
    lines += [
        line for block in blocks("sh", START) for line in block.splitlines() if line.startswith("accord ")
    ]
    return [shlex.split(line, comments=True) for line in lines]


def test_python_examples_run_and_give_what_they_say(folder, monkeypatch, capsys):
    """Lines with a number in their comment are compared with it, loosely where there is noise."""
    monkeypatch.chdir(folder)
    names = {}
    compared = 0
    for block in blocks("python", START):
        for code, value, comment in values_shown(block, names):
            if isinstance(value, float) and (told := re.match(r"[\d.]+", comment)):
                loosely = 0.1 if code == "answer.value" else 0.01
                assert value == pytest.approx(float(told[0]), rel=loosely), code
                compared += 1
    assert compared >= 5
    assert "affine" in capsys.readouterr().out


def test_the_ledgers_page_runs(folder, tmp_path, monkeypatch):
    """With the commands that it names in comments."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.parquet").symlink_to(folder / "people.parquet")
    first, *others, check = blocks("python", (ROOT / "docs" / "ledger.md").read_text(encoding="utf-8"))
    names = {}
    for block in (first, *others):
        exec(block, names)
    command = re.search(r"# of: (accord .*) > (\S+)", check)
    done = subprocess.run(
        [sys.executable, "-m", "accord.cli", *shlex.split(command[1])[1:]], capture_output=True, check=True
    )
    Path(command[2]).write_bytes(done.stdout)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        exec(check, names)
    assert names["previous"] == names["ledger"].entries()[-1].hash


def test_the_example_of_the_consent_page_runs_and_gives_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "consent.md").read_text(encoding="utf-8")
    Path("consent.csv").write_text(*blocks("text", page), encoding="utf-8")
    (example,) = blocks("python", page)
    names = {}
    exec(example, names)
    people = names["people"]
    assert f"people.spec()  # {people.spec()!r}\n" in example
    assert f"people.as_of  # {people.as_of}\n" in example


def test_the_page_of_public_people_runs_and_gives_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (example,) = blocks("python", (ROOT / "docs" / "public.md").read_text(encoding="utf-8"))
    names = {}
    for statement in ast.parse(example).body:
        code = ast.unparse(statement)
        exec(code, names)
        if code in ("look", "look.charges"):
            shown = names["look"] if code == "look" else dict(names["look"].charges)
            assert f"{code}  # {shown!r}\n" in example
    assert [event["state"] for event in names["ledger"].history()] == ["released"] * 3
    assert names["answer"].value == pytest.approx(200, abs=20)


def test_the_page_of_described_tables_runs(folder, tmp_path, monkeypatch):
    """The files that it shows, its commands and its lines of Python, in their order."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.parquet").symlink_to(folder / "people.parquet")
    page = (ROOT / "docs" / "described.md").read_text(encoding="utf-8")
    for name, text in zip(("accord.toml", "questions.toml"), blocks("toml", page), strict=True):
        Path(name).write_text(text, encoding="utf-8")
    first, second = blocks("sh", page)

    def run(lines):
        for line in lines.splitlines():
            words, _, file = line.partition(" > ")
            done = CliRunner().invoke(main, shlex.split(words)[1:])
            assert done.exit_code == 0, done.output
            if file:
                Path(file).write_text(done.stdout, encoding="utf-8")

    run(first)
    (example,) = blocks("python", page)
    names = {}
    exec(example, names)
    run(second)
    assert len(names["people"].own_ledger().history()) == 5
    assert len(names["people"].own_ledger().history(kind="repeat")) == 1  # in words, then in Python
    assert json.loads(Path("answers.json").read_text(encoding="utf-8"))["names"][1] == "old people"


def test_the_examples_of_the_page_of_crosstabs_run(folder, monkeypatch):
    monkeypatch.chdir(folder)
    page = (ROOT / "docs" / "crosstabs.md").read_text(encoding="utf-8")
    (example,), names = blocks("python", page), {}
    exec(example, names)
    assert len(names["table"].value) == len(names["rows"]) == 6
    assert sum(row["value"] for row in names["by_status"]) == pytest.approx(names["total"]["value"])
    assert (
        names["total"]["low"] - 2_000 < 18_376 < names["total"]["high"] + 2_000
    )  # of all who are in the cells
    (block,) = blocks("sh", page)
    for line in block.splitlines():
        result = CliRunner().invoke(main, [*shlex.split(line)[1:], "--json"])
        assert result.exit_code == 0 and len(json.loads(result.stdout)["value"]) == 4


def test_the_example_of_the_page_of_long_lists_runs(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.parquet").symlink_to(folder / "people.parquet")
    examples, names = blocks("python", (ROOT / "docs" / "groups.md").read_text(encoding="utf-8")), {}
    for example in examples:
        exec(example, names)
    release = names["release"]
    assert [row["filing_status"] for row in names["counted"].value] == ["single", "joint", "other"]
    assert names["counted"]["other"].value == pytest.approx(1_750, abs=1_000)
    assert [row["filing_status"] for row in names["largest"].value] == ["single", "joint"]
    assert names["query"].part.groups == ("A", "B", "C", "other") and len(examples) == 4
    assert [row["filing_status"] for row in release.value][:3] == ["single", "joint", "separate"]
    assert release.suppressed >= 497 and release.suppressed == 503 - len(release.value)


def test_the_examples_of_the_mechanisms_page_run(folder, monkeypatch):
    monkeypatch.chdir(folder)
    names = {}
    examples = blocks("python", (ROOT / "docs" / "mechanisms.md").read_text(encoding="utf-8"))
    for block in examples:
        exec(block, names)
    assert len(examples) == 4
    assert names["plan"].boxes == ((0, 1, 2),)
    assert names["answer"].charges == {0.01: 0.01, 0.05: 0.05, float("inf"): 0.05}


def test_the_examples_of_the_page_of_private_levels_run(folder, monkeypatch):
    monkeypatch.chdir(folder)
    text = (ROOT / "docs" / "private-levels.md").read_text(encoding="utf-8")
    example, of_size, of_ledger = blocks("python", text)
    names = {}
    exec(example, names)
    exec(of_size, names)
    assert names["better"].spec() == names["choice"].expected
    exec(of_ledger, names)
    assert [account.people for account in names["ledger"].accounts()] == [None] * 3
    assert repr(names["people"].spec()) in example
    assert names["mean"].value == pytest.approx(14.5, abs=2)
    assert [row["value"] for row in names["count"].value] == [
        pytest.approx(n, abs=600) for n in (3_000, 6_000)
    ]


def test_the_example_of_the_page_of_sql_runs(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    (example,) = blocks("python", (ROOT / "docs" / "sql.md").read_text(encoding="utf-8"))
    exec(compile(example, "sql.md", "exec"), {})
    assert "income" in capsys.readouterr().out


def test_the_examples_of_the_labs_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks("python", (ROOT / "docs" / "lab.md").read_text(encoding="utf-8")):
        exec(block, names)
    assert names["made"].rmse == pytest.approx(names["made"].predicted, rel=0.05)
    assert {path.name for path in tmp_path.iterdir()} == {"errors.png", "correlated.png"}


def test_the_example_of_the_audits_page_runs(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setitem(sys.modules, "secrets", SEEDED)  # the example's own noise, the same each time
    names = {"people": accord.table("people.parquet", epsilon="epsilon")}
    (example,) = blocks("python", (ROOT / "docs" / "audit.md").read_text(encoding="utf-8"))
    exec(example.replace("runs=2_000", "runs=200"), names)
    assert names["result"].passed


LONG = ("audit", "whatif", "reproduce")


def runs(words, folder):
    """An audit draws its seed if it is given none."""
    assert words[0] == "accord"
    words = [*words, "--seed", "1"] if words[1] == "audit" else words
    done = subprocess.run(
        [sys.executable, "-m", "accord.cli", *words[1:]],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONUTF8": "1"},
    )
    assert done.returncode == 0, (words, done.stderr)
    assert done.stdout, words


def test_commands_run(folder):
    """One after the other: some need what those before them made."""
    short = [words for words in commands() if words[1] not in LONG]
    assert len(short) >= 9
    for words in short:
        runs(words, folder)


@pytest.mark.parametrize("name", LONG)
def test_long_commands_run(name, folder):
    named = [words for words in commands() if words[1] == name]
    assert named
    for words in named:
        runs(words, folder)


def test_the_first_number_comes_within_eight_lines():
    assert re.search(r"47,\d{3}", "\n".join(README.splitlines()[:8]))


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 120


def test_make_targets_of_the_readme_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^make (\S+)", "\n".join(blocks("sh", START)), re.MULTILINE)
    assert {"demo", "test"} <= set(targets)
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_every_command_and_option_is_documented():
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    named = {f"accord {name}": command for name, command in main.commands.items()}
    named |= {f"accord ledger {name}": command for name, command in main.commands["ledger"].commands.items()}
    for name, command in named.items():
        assert name in text
        for parameter in command.params:
            for option in parameter.opts:
                if option.startswith("--"):
                    assert f"`{option}" in text, f"{name} {option}"


def test_every_mechanism_is_documented():
    for page in ("docs/mechanisms.md", "docs/how-it-works.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        for mechanism in ALL:
            assert f"`{mechanism.name}`" in text, page


def test_links_and_named_tests_exist():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for link in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (page.parent / link).exists(), f"{page.name}: {link}"
        for named in re.findall(r"`(tests/\S+\.py)`", text):
            assert list(ROOT.glob(named)), f"{page.name}: {named}"


def test_the_page_of_sources_runs(tmp_path, monkeypatch):
    """Its examples, and the command, on the files that they write."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
    names, told = {}, []
    for block in blocks("python", page):
        for statement in ast.parse(block).body:
            code = ast.unparse(statement)
            if not isinstance(statement, ast.Expr):
                exec(code, names)
                continue
            value = eval(code, names)
            comment = block.splitlines()[statement.end_lineno - 1].partition("# about ")[2]
            told += [(code, value, comment)] if comment else []
    for code, value, comment in told:
        if isinstance(value, float):
            assert value == pytest.approx(float(comment), rel=0.05), code
        else:
            assert abs((value - type(value).fromisoformat(comment)).days) <= 2, code
    assert len(told) == 6
    (command,) = re.findall(r"^accord (release .*)$", page, re.MULTILINE)
    done = subprocess.run([sys.executable, "-m", "accord.cli", *shlex.split(command)], capture_output=True, text=True, check=True)  # fmt: skip
    assert "mean of Gehalt" in done.stdout


def test_the_page_of_answers_runs_and_gives_what_it_says(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    names, told = {}, {}
    for block in blocks("python", (ROOT / "docs" / "answers.md").read_text(encoding="utf-8")):
        exec(block, names)
        told |= {
            line.split("  # ")[0]: line.split("  # ")[1] for line in block.splitlines() if "  # " in line
        }
    apart = names["apart"]
    assert apart.value == pytest.approx(float(told["apart.value"].removeprefix("about ")), rel=0.1)
    assert apart.interval()[0] < apart.value < apart.interval()[1]
    low, high = names["share"].interval()
    assert 0 < low < high < 1
    assert "100·a / (" in capsys.readouterr().out
    assert dict(names["per_head"].charges) == eval(told["per_head.charges"], {"inf": float("inf")})
    assert names["low"] < names["per_head"].value < names["high"]


def test_the_examples_of_the_notebooks_page_run(folder, monkeypatch, caplog):
    monkeypatch.chdir(folder)
    caplog.set_level("INFO", logger="accord")  # put back afterwards
    names = {}
    examples = blocks("python", (ROOT / "docs" / "notebooks.md").read_text(encoding="utf-8"))
    for block in examples:
        exec(block, names)
    assert len(examples) == 3
    assert len(names["frame"]) == 4
    assert (folder / "plan.svg").exists()
    assert "released <Plan: median of age" in caplog.text


MADE_BY_CODE = ("offered.md", "reproduction.md")


def test_lines_end_at_110_columns():
    """But for tables, and for commands and formulas, which are one line each."""
    assert len(PAGES) > 40
    for page in PAGES:
        if page.name in MADE_BY_CODE:
            continue
        prose = re.sub(r"^ *```.*?^ *```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
        long = [
            line
            for line in prose.splitlines()
            if len(line) > 110 and not line.startswith(("    ", "|", "  |"))
        ]
        assert not long, (page.name, long)


def test_the_page_of_own_mechanisms_runs_and_gives_what_it_says():
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    names, said = {}, {}
    for block in blocks("python", page):
        said |= {comment: value for _, value, comment in values_shown(block, names)}
    for comment, value in said.items():
        if isinstance(value, float):
            assert value == pytest.approx(float(comment.partition(":")[0]), abs=0.005)
        else:
            shown = (
                {key: round(charge, 5) for key, charge in value.items()} if isinstance(value, dict) else value
            )
            assert repr(shown) == comment
    assert len(said) == 4
