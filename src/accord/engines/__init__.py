"""Engines read the data: one opened source, its columns, and exact aggregates by SQL."""

from accord.engines.engine import SUPPORTED, Columns, Engine, Kind, open_source, tell, watched

__all__ = ["SUPPORTED", "Columns", "Engine", "Kind", "open_source", "tell", "watched"]
