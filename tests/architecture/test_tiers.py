"""What keeps the tests quick.

The table of what is left to the slow tests names tests that there are, and leaves something of every file to the quick ones. Processes do not disturb each other.
"""

import ast
from pathlib import Path

import pytest
from threadpoolctl import threadpool_info
from tiers import THINNED

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("file", THINNED)
def test_every_name_is_a_test(file):
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assert set(THINNED[file]) - {"*"} <= names
    tests = {name for name in names if name.startswith("test_")}
    assert tests - {name for name, every in THINNED[file].items() if every == 0}


def test_one_process_has_all_that_needs_spark(request):
    """A cluster takes long to start. (pytest-xdist 3.8 does not group tests under pytest 9.2, and says nothing.)"""
    if not hasattr(request.config, "workerinput"):
        pytest.skip("there is one process")
    needing = [item.nodeid for item in request.session.items if item.get_closest_marker("spark")]
    assert all(name.endswith("@spark") for name in needing)


def test_linear_algebra_has_one_thread():
    """tests/one_thread.py comes before NumPy."""
    pools = threadpool_info()
    assert pools and all(pool["num_threads"] == 1 for pool in pools), pools
