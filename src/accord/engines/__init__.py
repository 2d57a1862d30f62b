"""Engines read the data: one opened source, its columns, and exact aggregates by SQL."""

from accord.engines.csv_options import CSV, csv_options
from accord.engines.engine import (
    SUPPORTED,
    Columns,
    Engine,
    Kind,
    absolute,
    can_be_opened_again,
    has_place,
    open_source,
    source_label,
    tell,
    watched,
    without_password,
)

__all__ = [
    "CSV",
    "SUPPORTED",
    "Columns",
    "Engine",
    "Kind",
    "absolute",
    "can_be_opened_again",
    "csv_options",
    "has_place",
    "open_source",
    "source_label",
    "tell",
    "watched",
    "without_password",
]
