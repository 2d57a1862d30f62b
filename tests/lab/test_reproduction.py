"""The runner, the page and the command."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner

from accord.cli import main
from accord.errors import AccordError
from accord.lab.papers import page, reproduction
from accord.lab.papers.reproduction import EXPERIMENTS, reproduce, wanted


def results(ids, **options):
    by_id = {r.experiment.id: r for r in reproduce(wanted(ids), **options)}
    return [by_id[e.id] for e in wanted(ids)]


def test_numbers_do_not_depend_on_the_number_of_processes():
    one, two = (results(["C-fig1b", "F-fig1"], runs=50, seed=7, jobs=jobs) for jobs in (1, 2))
    assert [r.points.all for r in one] == [r.points.all for r in two]
    assert [r.claims for r in one] == [r.claims for r in two]
    other = results(["C-fig1b"], runs=50, seed=8, jobs=2)
    assert other[0].points.all != one[0].points.all


def test_it_works_in_a_script_without_a_guard(tmp_path):
    """Processes do not run the script again; also where it comes from standard input and has no file."""
    code = "from accord import lab\nprint([r.experiment.id for r in lab.reproduce(lab.wanted(['Z-fig1']), jobs=2)])"
    script = tmp_path / "script.py"
    script.write_text(code)
    for words, typed in (([str(script)], None), (["-"], code)):
        done = subprocess.run(
            [sys.executable, *words], input=typed, capture_output=True, text=True, check=True
        )
        assert done.stdout == "['Z-fig1']\n" and not done.stderr


def test_the_page(tmp_path):
    measured = results(["C-fig1b", "Z-fig1"], runs=40)
    written = page.write(measured, tmp_path)
    assert [p.name for p in written] == ["reproduction.md", "reproduction.html"]
    markdown, html = (p.read_text(encoding="utf-8") for p in written)
    for r in measured:
        key = r.experiment.id
        for kind in ("png", "svg", "csv"):
            assert (tmp_path / "reproduction" / f"{key}.{kind}").stat().st_size > 500
        assert f"](reproduction/{key}.png)" in markdown and f'src="reproduction/{key}.png"' in html
        for note in (*r.experiment.warnings, *r.experiment.notes):
            assert note in markdown
        numbers = (tmp_path / "reproduction" / f"{key}.csv").read_text(encoding="utf-8")
        rows = list(csv.DictReader(numbers.splitlines()))
        assert [(row["method"], float(row["x"]), float(row["value"])) for row in rows] == [
            (p.method, p.x, p.value) for p in r.points.all
        ]
    assert "fewer runs than the paper's" in markdown
    checker = HTMLParser()
    checker.feed(html)
    checker.close()


def test_figures_are_the_same_bytes_again(tmp_path):
    for folder in ("a", "b"):
        page.write(results(["Z-fig1"]), tmp_path / folder)
    first, second = (
        (tmp_path / folder / "reproduction" / "Z-fig1.png").read_bytes() for folder in ("a", "b")
    )
    assert first == second


def test_command(tmp_path):
    out = tmp_path / "out"
    ran = CliRunner().invoke(
        main, ["reproduce", "C-fig1b", "Z-fig1", "--runs", "40", "--out", str(out), "--jobs", "2"]
    )
    assert ran.exit_code == 0, ran.output
    assert "agrees?" in ran.stdout and "[C] Fig. 1(B)" in ran.stdout and "[Z] Figure 1" in ran.stdout
    assert str(out / "reproduction.html") in ran.stderr and (out / "reproduction.md").exists()


def test_command_in_json(tmp_path):
    ran = CliRunner().invoke(main, ["reproduce", "Z", "--json", "--out", str(tmp_path)])
    document = json.loads(ran.stdout)
    assert document["schema"] == 1 and [r["id"] for r in document["results"]] == ["Z-fig1", "Z-fig2"]
    for result in document["results"]:
        assert result["agrees"] is True
        for row in result["rows"]:
            assert {"method", "setting", "paper", "here", "agrees"} <= set(row)
            assert (row["paper"] is None) == (row["agrees"] is None)


def test_without_an_id_it_lists_them():
    ran = CliRunner().invoke(main, ["reproduce"])
    assert ran.exit_code == 0 and all(key in ran.stdout for key in EXPERIMENTS)
    listed = json.loads(CliRunner().invoke(main, ["reproduce", "--json"]).stdout)
    assert [entry["id"] for entry in listed["figures"]] == list(EXPERIMENTS)


def test_refusals(tmp_path):
    args = ["reproduce", "C-tabel2", "--out", str(tmp_path)]
    ran = CliRunner().invoke(main, args)
    assert ran.exit_code == 1 and "C-table2" in ran.stderr and "Traceback" not in ran.output
    in_json = CliRunner().invoke(main, [*args, "--json"])
    assert "C-table2" in json.loads(in_json.stdout)["error"]["message"]
    with pytest.raises(AccordError, match="at least 2"):
        next(reproduce(wanted(["Z"]), runs=1))
    with pytest.raises(AccordError, match="at least 1"):
        next(reproduce(wanted(["Z"]), jobs=0))


@pytest.mark.parametrize("args", [["--runs", "1"], ["--jobs", "0"], ["--seed", "-1"], ["--data", __file__]])
def test_usage(args, tmp_path):
    ran = CliRunner().invoke(main, ["reproduce", "C-fig1b", *args, "--out", str(tmp_path)])
    assert ran.exit_code == 2 and not list(tmp_path.iterdir())


def session(leader):
    """The processes of a session."""
    processes = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            processes += [int(status.parent.name)] * (
                int(status.read_text().rsplit(")", 1)[1].split()[3]) == leader
            )
    return processes


@pytest.mark.parametrize("signal_sent", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)])
def test_when_the_command_ends_everyone_does(tmp_path, signal_sent):
    """By Ctrl-C soon and politely, or killed: no process works on."""
    command = [
        sys.executable,
        "-m",
        "accord.cli",
        "reproduce",
        "J-fig2",
        "--jobs",
        "2",
        "--out",
        str(tmp_path),
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True)
    deadline = time.monotonic() + 600
    while len(session(process.pid)) < 4:  # until it works: with two others, and who tidies up after them
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.1)
    time.sleep(2)
    os.kill(process.pid, signal_sent)
    process.wait(timeout=600)
    assert process.returncode == (1 if signal_sent == signal.SIGINT else -signal.SIGKILL)
    if signal_sent == signal.SIGINT:
        stderr = process.stderr.read()
        assert b"Aborted" in stderr and b"Traceback" not in stderr
    process.stderr.close()
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        try:
            os.killpg(process.pid, 0)  # whether anyone of its session is left
        except ProcessLookupError:
            return
        time.sleep(0.2)
    pytest.fail("somebody works on")


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(AccordError, match="cannot make the folder"):
        page.write(results(["Z-fig1"]), tmp_path / "file")


def test_without_matplotlib_it_says_so_before_the_work(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(reproduction, "reproduce", lambda *_: pytest.fail("it began to work"))
    ran = CliRunner().invoke(main, ["reproduce", "Z-fig1", "--out", str(tmp_path)])
    assert ran.exit_code == 1 and "accord[plot]" in ran.stderr


def test_names():
    assert [e.id for e in wanted(["J-fig1"])] == [f"J-fig1{panel}" for panel in "abcd"]
    assert [e.id for e in wanted(["all"])] == list(EXPERIMENTS)
    assert [e.id for e in wanted(["Z-fig2", "Z"])] == ["Z-fig2", "Z-fig1"]
