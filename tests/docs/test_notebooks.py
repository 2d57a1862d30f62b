"""The notebooks of docs/ run as a reader would run them, in a kernel without ipywidgets."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))
WITHOUT_WIDGETS = "import sys; sys.modules['ipywidgets'] = None"
pytestmark = pytest.mark.filterwarnings(
    "default::DeprecationWarning", "default::ResourceWarning"
)  # of Jupyter's own


def executed(notebook, folder):
    """The outputs of each code cell."""
    notebook.cells.insert(0, new_code_cell(WITHOUT_WIDGETS))
    NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    return {cell.source: cell.outputs for cell in notebook.cells[1:] if cell.cell_type == "code"}


def shown(outputs, kind):
    return [output["data"][kind] for output in outputs if kind in output.get("data", {})]


def printed(outputs):
    return "".join(output["text"] for output in outputs if output["output_type"] == "stream")


def test_there_are_some():
    assert [path.name for path in NOTEBOOKS] == ["first-look.ipynb"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_cell_fails_and_everything_shows_itself(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "notebooks are kept without outputs"
    cells = executed(notebook, tmp_path)
    for name in ("people", "people.spec()", "plan", "answer", "groups", "median", "ledger"):
        (outputs,) = [outputs for source, outputs in cells.items() if source.splitlines()[-1] == name]
        (html,) = shown(outputs, "text/html")
        assert "<table" in html, name
    assert len([png for outputs in cells.values() for png in shown(outputs, "image/png")]) == 2
    said = "".join(printed(outputs) for outputs in cells.values())
    assert said.count("PrivacyWarning") == 1
    assert "this release charges level 0.01 with 0.01; 0.0035 is left" in said
    assert "problems=()" in said


def test_text_is_text_in_a_notebook(tmp_path):
    """Also where a connection refuses to count its progress, as DuckDB does there."""
    code = """
import accord, duckdb
from accord.engines.duckdb_connection import count_progress
connection = duckdb.connect()
try:
    connection.execute("SET enable_progress_bar = true")
except duckdb.InvalidInputException:
    print("refused")
count_progress(connection)
people = accord.table({"age": [31, 45, 62], "level": [0.5, 1.0, 2.0]}, epsilon="level")
plan = people.plan(accord.mean("age", bounds=(0, 100)))
assert "Predicted error" in str(plan)
assert "95 % interval" in str(people.release(plan))
print(plan)
"""
    (outputs,) = executed(new_notebook(cells=[new_code_cell(code)]), tmp_path).values()
    assert {output["output_type"] for output in outputs} == {"stream"}
    assert printed(outputs).startswith("refused\nPlan: mean of age by")
