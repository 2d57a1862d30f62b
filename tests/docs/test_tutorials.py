"""The tutorials of docs/tutorials run as a reader would run them: in a real kernel, in an empty folder, by their own cells."""

import re
from pathlib import Path

import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

FOLDER = Path(__file__).parents[2] / "docs" / "tutorials"
HEAD = "---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---\n"
CELL = re.compile(
    r"^```\{code-cell\} ipython3\n((?::tags: \[[^\]\n]*\]\n)?)\n?(.*?)^```$", re.MULTILINE | re.DOTALL
)
pytestmark = pytest.mark.filterwarnings(
    "default::DeprecationWarning", "default::ResourceWarning"
)  # of Jupyter's own


def text_of(name):
    return (FOLDER / f"{name}.md").read_text(encoding="utf-8")


class Run:
    """A tutorial that was executed: what its cells showed."""

    def __init__(self, name, folder):
        cells = [new_code_cell(code.rstrip("\n")) for _, code in CELL.findall(text_of(name))]
        notebook = new_notebook(cells=cells)
        resources = {"metadata": {"path": str(folder)}}
        NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
        self.cells = notebook.cells
        self.printed = "".join(map(printed, self.cells))
        self.pictures = sum(
            "image/png" in output.get("data", {}) for cell in self.cells for output in cell.outputs
        )

    def of(self, code):
        """What the one cell that has this code printed, or else the text of its value."""
        (cell,) = [cell for cell in self.cells if code in cell.source]
        values = [output["data"]["text/plain"] for output in cell.outputs if "data" in output]
        return printed(cell) + "".join(values)

    def page_of(self, code):
        """The tables that the one cell which has this code shows, as text."""
        (cell,) = [cell for cell in self.cells if code in cell.source]
        (html,) = [output["data"]["text/html"] for output in cell.outputs if "data" in output]
        return re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", html))

    @property
    def warned(self):
        """What went to stderr."""
        return "".join(
            output["text"]
            for cell in self.cells
            for output in cell.outputs
            if output["output_type"] == "stream" and output["name"] == "stderr"
        )


def printed(cell):
    return "".join(
        output["text"]
        for output in cell.outputs
        if output["output_type"] == "stream" and output["name"] == "stdout"
    )


def numbers(text):
    return [float(number.replace(",", "")) for number in re.findall(r"-?\d[\d,]*\.?\d*", text)]


NAMES = sorted(path.stem for path in FOLDER.glob("*.md") if path.stem != "index")


@pytest.mark.parametrize("name", NAMES)
def test_a_tutorial_is_a_notebook_that_leads_on(name):
    """Its head; no fence that only looks like a cell; no line that is too wide; no link that leads nowhere."""
    text = text_of(name)
    assert text.startswith(HEAD)
    assert len(CELL.findall(text)) == text.count("{code-cell}") > 0
    assert max(map(len, text.splitlines())) <= 110
    for link in re.findall(r"\]\((?!http)([^)#]+)", text):
        assert (FOLDER / link).is_file(), link


@pytest.mark.slow
def test_hospital(tmp_path):
    run = Run("hospital", tmp_path)
    assert not run.warned
    assert run.pictures == 2
    assert "0.1   at most 52.5% sure" in run.printed and "2     at most 88.1% sure" in run.printed
    stricter = [int(told) for told in re.findall(r"opted out: (\d+)", run.of("in 2025:"))]
    assert stricter[0] < stricter[1]
    assert "mean of nights by affine: lowest predicted error" in run.page_of("plan = people.plan(nights")
    assert "meets the condition if any of their rows does" in run.page_of("emergencies = ")
    low, high, exact = numbers(run.of("exact = of_each").partition("interval")[2])
    assert low - 3 < exact < high + 3
    by_ward = run.of("by_ward = accord.mean").splitlines()
    assert [line.split()[1] for line in by_ward[1:]] == ["surgery", "medicine", "maternity", "burns"]
    assert run.of("again = ").startswith("(True, {0.1: 0.0")
    assert "0.05 is left to 1," in run.of("share=0.9") and "Nothing was spent." in run.of("share=0.9")
    assert "1 person has withdrawn from the ledger" in run.of("spread = accord.std")
    assert "1 lowered their level" in run.of('open_stays("2026-06-04")')
    assert "They have withdrawn" in run.of("ledger.person")
    assert run.of("verdict.problems").endswith("())")


@pytest.mark.slow
def test_survey(tmp_path):
    run = Run("survey", tmp_path)
    assert not run.warned
    assert run.pictures == 2
    answer, low, high = numbers(run.of("print(plan.mechanism").splitlines()[1].replace("95 % interval", ""))
    assert low < answer < high and high - low < 3_000
    (exact,) = numbers(run.of("exact = clipped.mean()"))
    gap, bias = numbers(run.of("bias = ").splitlines()[1])
    assert exact == pytest.approx(41_200, rel=0.02) and gap == pytest.approx(7_000, rel=0.1)
    kappa, break_even, worst = numbers(run.of("worst bias with the true gap"))
    assert gap > 3 * break_even  # so that it matters, as the text says
    assert worst / 2 < -bias < worst == pytest.approx(kappa * gap, rel=0.01)
    assert "mean of income by robust" in run.page_of("honest = opened")
    assert "With 95% the gap between these levels is at most" in run.of("check_gap")
    assert run.of("look.tells").startswith("(True, ")
    assert run.of("guarded.release").startswith("robust: ")


@pytest.mark.slow
def test_service(tmp_path):
    run = Run("service", tmp_path)
    assert run.pictures == 1
    assert "made the ledger 'accord.db'" in run.printed
    assert "registered 'people': 20,000 people" in run.printed
    assert "accord_" not in run.printed  # a token is on no page
    assert "mean of income by" in run.page_of("answer = people.release(plan")
    refused = run.of("except accord.errors.AccordError")
    assert "QueryError: question.bounds: bounds of 'income' are declared as [0, 200000]" in refused
    assert "SourceError: the service has no table 'wages'" in refused
    assert "BudgetError: this asks for a share of 0.5; of your 0.3 a month of this table" in refused
    assert "waits for the officer" in run.of('key="main-result")\nexcept')
    assert run.of('request["actor"]') == "('analyst', '0.15', 'study 17, main result')"
    assert run.of('decided["state"]') == "'queued'"
    median, low, high = numbers(run.of("median.value"))
    assert 30 < median < 60 and 40 < low < 50 < high < 60
    history = re.sub(" +", " ", run.of('officer("/api/history'))
    assert history.count(" release analyst – study 17") == 4
    assert " approval officer – as agreed" in history
    assert run.of("service.wait") == "0"
    assert "whole: " in run.of("accord ledger verify people")
    assert "Error" not in (tmp_path / "serve.log").read_text()


@pytest.mark.slow
def test_nightly(tmp_path):
    run = Run("nightly", tmp_path)
    assert not run.warned
    assert "registered 'meters': 50,000 people" in run.printed
    assert "0.33 of everyone's level comes back every calendar month" in run.printed
    planned = run.of('Path("plan.json")').splitlines()
    assert [line[:19].strip() for line in planned] == ["litres by district", "median", "heavy users"]
    assert len(run.of("show(first)").splitlines()) == 5
    again = run.of("show(again)")
    assert again.startswith("exit code 0\nAsked before: ") and again.endswith(run.of("show(first)"))
    second = run.of("show(second)")
    assert second.startswith("exit code 0\n\n") and not second.endswith(run.of("show(first)"))
    refused = run.of("refused = night")
    assert refused.startswith("exit code 1") and "1 lowered their level" in refused
    assert "exit code 0" in run.of("changes of the day")
    broken = run.of("broken = night")
    assert broken.startswith("exit code 1") and "cannot read '/srv/meters/meters.parquet'" in broken
    too_much = run.of("too_much = night")
    assert too_much.startswith("exit code 1") and "Nothing was spent." in too_much
    assert "whole: " in run.of("accord ledger verify meters")


@pytest.mark.slow
def test_retail(tmp_path):
    run = Run("retail", tmp_path)
    assert not run.warned
    assert run.pictures == 2
    rows, most, _ = numbers("\n".join(run.of("in the middle").splitlines()[:2]))
    assert rows > 200_000 and most > 100  # one customer would lose a hundred times what a plan says
    assert "counts with the mean of their rows" in run.of('str(shop.plan(accord.mean("euros"')
    assert "is in their most frequent group, and is counted once" in run.of("str(shop.plan(listed")
    high, low_percentile, high_percentile = numbers(run.of("high = shop.release"))
    assert low_percentile < 95 < high_percentile and 100 < high < 2_000
    assert "counts with the sum of their rows" in run.page_of("turnover = shop.release")
    exact, clipped, released = (numbers(line)[-1] for line in run.of("exact turnover").splitlines())
    assert clipped <= exact and released == pytest.approx(exact, rel=0.2)
    assert "derived from released numbers, free of charge" in run.of("answers[0] / answers[1]")
    assert 300 < numbers(run.of("by_product.suppressed"))[0] < 400
    errors = [numbers(line)[1] for line in run.of("at most {most").splitlines()]
    assert errors == sorted(errors) and errors[-1] > 4 * errors[0]
    assert "everything else" in run.of("few = accord.count")


@pytest.mark.slow
def test_mechanism(tmp_path):
    run = Run("mechanism", tmp_path)
    assert not run.warned
    assert run.pictures == 2
    assert run.of("dict(plan.charges)") == "{0.01: 0.01, 0.2: 0.03, 2.0: 0.03}"
    *errors, kappas = run.of("for candidate in plan.candidates").splitlines()
    errors = {line.split()[0]: numbers(line)[0] for line in errors}
    assert errors["affine"] == min(errors.values()) and errors["affine"] < errors["threefold"]
    own, affine = numbers(kappas)
    assert own < affine
    assert "'greedy' charges 0.02 at level 0.01. Nobody is charged more" in run.of("greedy = ")
    assert "'threefold')" in run.of("answer = people.release")
    assert re.findall("^(affine|threefold|minimum) ", run.of("compared = lab.compare"), re.MULTILINE) == [
        "affine",
        "threefold",
        "minimum",
    ]
    assert run.of("result = audit.run").startswith("passed: True")
    for lost, promised in re.findall(r"lost (\S+) of (\S+)", run.of("shown([each for each in result")):
        assert lost == promised
    caught = run.of("caught = audit.run")
    assert caught.startswith("passed: False")
    losses = re.findall(r"lost (\S+) of (\S+)", caught)
    assert losses
    for lost, promised in losses:
        assert float(lost) == pytest.approx(2 * float(promised), abs=2e-4)


@pytest.mark.slow
def test_personal(tmp_path):
    run = Run("personal", tmp_path)
    tried, told = numbers(run.of("epsilon=0.5)").replace("np.float64", ""))
    assert tried == pytest.approx(told, rel=0.1)
    assert "algorithm geometric_mean by sample" in run.page_of("answer = accord.sample")
    assert "{0.1: 0.02, 0.5: 0.1, inf: 0.1}, 'sample')" in run.of("answer.value, dict")
    (exact,), *errors = (numbers(line.split("by about")[-1]) for line in run.of("for t in [").splitlines())
    assert exact == pytest.approx(33_442, rel=0.001) and len(errors) == 3
    refused = run.of("def careless")
    assert "the algorithm careless raised a ValueError. Its text is not shown" in refused
    assert "first income" not in refused
    table = numbers(run.of('"least squares": exact'))
    predicted = [(table[k + 1], table[k + 2]) for k in range(0, 9, 3)]
    assert all(ours == pytest.approx(theirs, abs=25_000) for ours, theirs in predicted)
    assert "[('0.1', 4400, '0.1'), ('0.5', 9650, '0.5')" in run.of("model.receipt_")
    assert "this is fit 2 in this process" in run.of("heard[0].message")


@pytest.mark.slow
def test_engine(tmp_path):
    run = Run("engine", tmp_path)
    assert not run.warned
    assert "'real')\nOperationalError" in run.of("import sqlite3")
    assert "20 words" in run.of("__abstractmethods__")
    assert "'exact': 'number'" in run.of("people.columns")
    assert run.of("def differences") == "0 differences in 92 questions\n"
    careless = run.of("patch.object(HouseDialect")
    assert numbers(careless)[0] > 10 and "'Mean of a row each'" in careless
    assert run.of("ledger.remaining").startswith("registered 'people': 103 people\n<Spec of 43 people.")
    refused = run.of("nowhere.duckdb")
    assert "SourceError: this table is read where it lies" in refused
    assert "no table 'peple': did you mean 'people'?" in refused
    assert "cannot read nowhere.duckdb (IOException)" in refused
