"""The same columns in every form that `accord.table` takes. None is NULL, or the nearest that the form has."""

import csv
import gzip
from math import nan

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest


def parquet(columns, folder):
    pq.write_table(pa.table(columns), folder / "people.parquet")
    return folder / "people.parquet"


def parquet_files(columns, folder):
    whole = pa.table(columns)
    for part, start in enumerate(range(0, max(whole.num_rows, 1), 7)):
        pq.write_table(whole.slice(start, 7), folder / f"part-{part}.parquet")
    return str(folder / "part-*.parquet")


def csv_file(columns, folder):
    with (folder / "people.csv").open("w", newline="", encoding="utf-8") as file:
        return _write_csv(columns, file, folder / "people.csv")


def gzipped_csv(columns, folder):
    with gzip.open(folder / "people.csv.gz", "wt", newline="", encoding="utf-8") as file:
        return _write_csv(columns, file, folder / "people.csv.gz")


def _write_csv(columns, file, path):
    writer = csv.writer(file)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return path


def pandas(columns, folder):
    return pa.table(columns).to_pandas()


def polars(columns, folder):
    return pl.DataFrame(columns, strict=False)


def arrow(columns, folder):
    return pa.table(columns)


def relation(columns, folder):
    return duckdb.connect().from_arrow(pa.table(columns))


def arrays(columns, folder):
    return {name: np.array(values) for name, values in lists(columns, folder).items()}


def lists(columns, folder):
    """A list of numbers says that one is missing by NaN."""
    return {
        name: [nan if x is None else x for x in values]
        if any(isinstance(x, float) for x in values)
        else values
        for name, values in columns.items()
    }


FORMS = (parquet, parquet_files, csv_file, gzipped_csv, pandas, polars, arrow, relation, arrays, lists)


@pytest.fixture(params=FORMS, ids=lambda form: form.__name__)
def in_form(request, tmp_path):
    """A function from columns to a source of one form."""
    return lambda columns: request.param(columns, tmp_path)
