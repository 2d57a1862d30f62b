"""All tables of a process share one DuckDB database that is accord's own, and see nothing of each other."""

import gc
import os
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from math import inf

import duckdb
import numpy as np
import pyarrow as pa

import accord
from accord.engines import duckdb_connection as engine


def opened(values, level=inf):
    data = {"x": np.array(values, dtype=float), "e": np.full(len(values), level)}
    return accord.table(data, epsilon="e")


def total(table):
    """Of public people, so that it is exact."""
    return table.release(accord.sum("x", bounds=(0, 1000), step=1)).value


def test_tables_have_the_same_names_and_see_nothing_of_each_other():
    tables = [opened([k, 10 * k]) for k in range(20)]
    assert [total(table) for table in reversed(tables)] == [11.0 * k for k in reversed(range(20))]
    assert [total(table) for table in tables] == [11.0 * k for k in range(20)]


def test_tables_of_several_threads():
    def ask(k):
        table = opened(np.full(1000, k % 100))
        return [total(table) for _ in range(5)]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(64))) == [[1000.0 * (k % 100)] * 5 for k in range(64)]


def test_a_table_that_is_gone_keeps_no_data():
    data = pa.table({"x": np.arange(10.0), "e": np.full(10, inf)})
    table = accord.table(data, epsilon="e")
    assert total(table) == 45
    gone = weakref.ref(data)
    del data, table
    gc.collect()
    assert gone() is None


def test_settings_hold_in_every_connection():
    for connection in (engine.OWN.connect(), engine.OWN.connect()):
        for name, value in (
            ("disabled_optimizers", "type_pushdown"),
            ("pandas_analyze_sample", 0),
            ("perfect_ht_threshold", 20),
            ("autoinstall_known_extensions", False),
            ("cache_local_files", False),  # a file that has changed is read again
            ("parquet_metadata_cache", False),
            ("enable_progress_bar_print", False),
        ):
            assert connection.execute(f"SELECT current_setting('{name}')").fetchone() == (value,)


def test_a_child_that_was_forked_opens_its_own():
    assert total(opened([1, 2])) == 3
    child = os.fork()
    if child == 0:  # never back into pytest, whatever happens
        right = False
        try:
            right = total(opened([3, 4])) == 7 and len(engine.OWN.inherited) == 1
        finally:
            os._exit(0 if right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert total(opened([5, 6])) == 11 and not engine.OWN.inherited


def test_a_database_that_is_beyond_use_is_replaced(monkeypatch):
    class Beyond:
        def cursor(self):
            raise duckdb.FatalException("invalidated")

    monkeypatch.setattr(engine.OWN, "database", Beyond())
    assert total(opened([1, 2])) == 3


def test_tables_open_in_jupyter_without_ipywidgets():
    """There DuckDB refuses a connection's settings of progress, but not those of a cursor."""
    program = """
import sys, types
shell = types.SimpleNamespace(config={"IPKernelApp": {}})
sys.modules["IPython"] = types.SimpleNamespace(get_ipython=lambda: shell)
sys.modules["ipywidgets"] = None
import accord, duckdb
try:
    duckdb.connect().execute("SET enable_progress_bar = true")
except duckdb.InvalidInputException as refused:
    assert "ipywidgets" in str(refused)
else:
    raise AssertionError("DuckDB does not take this for Jupyter")
print(accord.table({"e": [1.0, 2.0]}, epsilon="e").spec().total)
"""
    asked = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (asked.stdout, asked.returncode) == ("2\n", 0), asked.stderr
