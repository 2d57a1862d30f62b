"""What pages of the documentation expect to lie in the folder where they are tried."""

import subprocess
import sys

import duckdb
import pytest


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which the bundled table lies as people.parquet, and its tiers as consent.csv."""
    folder = tmp_path_factory.mktemp("readme")
    subprocess.run(
        [sys.executable, "-m", "accord.cli", "demo", "--save", str(folder / "people.parquet")], check=True
    )
    chosen = f"SELECT person, tier, DATE '2025-01-01' AS valid_from FROM '{folder / 'people.parquet'}'"
    duckdb.connect().execute(f"COPY ({chosen}) TO '{folder / 'consent.csv'}'")
    return folder
