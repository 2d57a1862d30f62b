"""What a table declares about its columns, and questions that leave it to the table to say.

`accord.mean("stay")` has no bounds. It becomes a question when it is asked of a table that declares some
(catalogs.py), and is refused where nothing declares them: bounds are never taken from the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from functools import wraps
from inspect import signature, unwrap
from typing import Any

from accord.errors import QueryError
from accord.statistics.encoding import Grid


@dataclass(frozen=True)
class Declared:
    """What is publicly known of a column. None: nothing."""

    kind: str | None = None
    """What it holds: "number", "text", "boolean", "date" or "timestamp"."""
    bounds: tuple[Any, Any] | None = None
    """Of the value in a row."""
    total: tuple[Any, Any] | None = None
    """Of the sum of a person's rows, where they may have several."""
    step: Any = None
    std: float | None = None
    missing: Any = None
    """What becomes of missing values, unless a question says it; "none": there are none."""
    keys: tuple[Any, ...] | None = None
    """Its groups or categories."""
    about: str = ""
    """A sentence for people."""
    rounded: Any = None
    """Whether people round its values, or to which steps."""
    gap: float | None = None
    """How far the means of two levels may lie apart, at most."""


_NOTHING = Declared()
Columns = Mapping[str, Declared]


class Undescribed:
    """A question that leaves something out which a table may declare."""

    def __init__(self, ask: Callable[..., Any], arguments: dict[str, Any]) -> None:
        self._ask, self._arguments = ask, arguments

    @property
    def asked_with(self) -> tuple[str, dict[str, Any]]:
        """The constructor by its name, and its arguments."""
        return self._ask.__name__, dict(self._arguments)

    def described(self, columns: Columns, several_rows: bool = False) -> Any:
        """The question, or the workload, with what is declared of its columns.

        `several_rows`: whether people may have more than one.

        Raises:
            QueryError: something is declared by neither.
        """
        ask, arguments = unwrap(self._ask), dict(self._arguments)
        if "queries" in arguments:
            queries = [described(query, columns, several_rows) for query in arguments["queries"]]
            return ask(**arguments | {"queries": queries})
        if arguments.get("by") is not None:
            arguments["keys"] = _keys(arguments["by"], arguments.get("keys"), columns)
        if _several_columns(arguments):
            return ask(**arguments | _of_several(arguments, columns))
        declared, leaves_bounds = _of(columns, arguments.get("column")), arguments.get("bounds") is None
        filled = _of_column(arguments, signature(ask).parameters, declared)
        query = ask(**arguments | filled)
        if several_rows and leaves_bounds and isinstance(grid := query.encoding, Grid):
            return ask(**arguments | _of_rows(filled, grid.per_person, declared, query.label))
        return query

    @property
    def columns_named(self) -> tuple[str, ...]:
        """The columns that it names, of which a table may declare something."""
        if "queries" in self._arguments:
            asked = (query for query in self._arguments["queries"] if isinstance(query, Undescribed))
            return tuple(name for query in asked for name in query.columns_named)
        by = _listed(self._arguments.get("by"))
        named = (self._arguments.get("column"), *by, *_several_columns(self._arguments))
        return tuple(name for name in named if isinstance(name, str))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # what Python itself looks for
            raise AttributeError(name)
        return getattr(self.described({}), name)  # which says what is left out

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self._arguments.items())
        return f"<{self._ask.__name__}({given}), to be asked of a table that declares the rest>"


def described(asked: Any, columns: Columns, several_rows: bool = False) -> Any:
    """A question with what is declared of its columns; anything else as it is."""
    return asked.described(columns, several_rows) if isinstance(asked, Undescribed) else asked


def left_to_the_table(constructor: Callable[..., Any]) -> Callable[..., Any]:
    """A question's constructor that gives an `Undescribed` one where something is left out."""
    parameters = signature(constructor)

    @wraps(constructor)
    def ask(*args: Any, **options: Any) -> Any:
        arguments = dict(parameters.bind(*args, **options).arguments)
        for name in ("features", "by", "keys"):
            if name in arguments and _is_one_list(arguments[name]):
                arguments[name] = list(arguments[name])  # which may be an iterator
        if _leaves_out(arguments, parameters.parameters):
            return Undescribed(ask, arguments)
        query = constructor(**arguments)
        object.__setattr__(query, _ASKED_WITH, (constructor.__name__, arguments))  # no field of the question
        return query

    return ask


_ASKED_WITH = "asked_with"


def asked_with(query: Any) -> tuple[str, dict[str, Any]] | None:
    """The constructor of a question by its name, and its arguments, to ask it elsewhere; None: not known."""
    if isinstance(query, Undescribed):
        return query.asked_with
    known: tuple[str, dict[str, Any]] | None = vars(query).get(_ASKED_WITH)
    return known


def _is_listed(values: Any) -> bool:
    return isinstance(values, Iterable) and not isinstance(values, str)


def _is_one_list(values: Any) -> bool:
    """Whether it has an order and one dimension: sets, mappings and tables are refused by what reads them."""
    is_table = len(getattr(values, "shape", ())) > 1
    return _is_listed(values) and not is_table and not isinstance(values, Set | Mapping)


def _leaves_out(arguments: Mapping[str, Any], parameters: Mapping[str, Any]) -> bool:
    if _lacks_keys(arguments.get("by"), arguments.get("keys")):
        return True
    if columns := _several_columns(arguments):
        given = [arguments.get(name) or {} for name in ("bounds", "categories")]
        if not all(isinstance(each, Mapping) for each in given):
            return False  # which is refused
        return any(isinstance(name, str) and not any(name in each for each in given) for name in columns)
    if "features" in parameters:
        return False  # they are no list, which is refused
    if "edges" in parameters:
        return arguments.get("edges") is None and arguments.get("categories") is None
    return "bounds" in parameters and arguments.get("bounds") is None


def _listed(by: Any) -> tuple[Any, ...]:
    """The columns of by=: one, several or none."""
    return tuple(by) if _is_listed(by) else () if by is None else (by,)


def _lacks_keys(by: Any, keys: Any) -> bool:
    """Whether a column of by= has no keys."""
    if isinstance(keys, Mapping):
        return any(isinstance(column, str) and column not in keys for column in _listed(by))
    return by is not None and keys is None


def _keys(by: Any, given: Any, columns: Columns) -> Any:
    """The keys of by=, with what is declared of the columns that have none; None: nothing is."""
    if not _lacks_keys(by, given):
        return given
    if not _is_listed(by):
        return _of(columns, by).keys if given is None else given
    keys = {name: _of(columns, name).keys for name in by if isinstance(name, str)} | dict(given or {})
    return {name: of_column for name, of_column in keys.items() if of_column is not None} or None


def _of(columns: Columns, name: Any) -> Declared:
    return columns.get(name, _NOTHING) if isinstance(name, str) else _NOTHING


def _of_column(
    arguments: Mapping[str, Any], parameters: Mapping[str, Any], declared: Declared
) -> dict[str, Any]:
    """What a question about one column leaves out, as it is declared."""
    if "edges" in parameters:
        is_left_out = arguments.get("edges") is None and arguments.get("categories") is None
        return {"categories": declared.keys} if is_left_out else {}
    if "bounds" not in parameters or arguments.get("bounds") is not None:
        return {}
    about_some = arguments.get("where") is not None or arguments.get("by") is not None
    # some people may differ more than all do; and the gap is of means, which alone take both of these
    of_all = ("std", *(("gap",) if {"std", "per_person"} <= parameters.keys() else ()))
    names = ("bounds", "step", "rounded", *(() if about_some else of_all))
    filled = {
        name: getattr(declared, name) for name in names if name in parameters and arguments.get(name) is None
    }
    if "missing" not in arguments and declared.missing not in (None, "none"):
        filled["missing"] = declared.missing
    return filled


def _several_columns(arguments: Mapping[str, Any]) -> tuple[Any, ...]:
    """The columns of a question about several, of which each has bounds or categories; of others none."""
    if "other" in arguments:
        return arguments["column"], arguments["other"]
    if _is_listed(arguments.get("features")):
        return arguments["target"], *arguments["features"]
    return ()


def _of_several(arguments: Mapping[str, Any], columns: Columns) -> dict[str, Any]:
    """The bounds and categories of several columns, with what is declared of those that have none."""
    bounds, categories = (dict(arguments.get(name) or {}) for name in ("bounds", "categories"))
    for name in _several_columns(arguments):
        declared = _of(columns, name)
        if not isinstance(name, str) or name in bounds or name in categories:
            continue
        if declared.bounds is not None:
            bounds[name] = declared.bounds
        elif declared.keys is not None:
            categories[name] = declared.keys
    return {"bounds": bounds} | ({"categories": categories} if "features" in arguments else {})


def _of_rows(filled: dict[str, Any], per_person: str, declared: Declared, label: str) -> dict[str, Any]:
    """The same, where a person's rows come to one number: what is declared is of single values.

    A mean of whole numbers is none, nor one of round numbers, and people differ less, or more, than rows do:
    steps hold for the smallest and the largest row only, a standard deviation for none.
    """
    holds = {"bounds", "missing"} | ({"step", "rounded"} if per_person in ("min", "max") else set())
    holds |= {"gap"} if per_person == "mean" else set()  # which is declared of people
    kept = {name: value for name, value in filled.items() if name in holds}
    if per_person != "sum":
        return kept
    if declared.total is None:
        raise QueryError(
            f"the {label} is about the sum of each person's rows, and bounds are declared of single values. "
            "Declare total = [low, high] for the column as well, or give bounds=."
        )
    if "missing" in kept:
        raise QueryError(
            f"the {label} is about the sum of each person's rows, and what a missing value counts as is "
            "declared of single values. Give missing=: 'exclude', 'none', or what a person's sum counts as."
        )
    return {"bounds": declared.total}
