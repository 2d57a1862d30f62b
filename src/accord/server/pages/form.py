"""What was filled in on the page that asks, as a request: the same plain data that a program would send."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from accord.errors import QueryError

STATISTICS = {
    "mean": "the mean",
    "sum": "the sum",
    "count": "how many people",
    "proportion": "the share of people who …",
    "median": "the median",
    "quantile": "a quantile",
    "histogram": "how values are spread",
    "std": "the standard deviation",
    "min": "the smallest value",
    "max": "the largest value",
    "correlation": "the correlation of two columns",
    "top": "the largest groups",
    "sql": "a SELECT",
}
"""What can be asked on the page, by name; programs can ask more."""
_OF_NUMBERS = ("mean", "sum", "median", "quantile", "histogram", "std", "min", "max", "correlation")
_KEYED = ("histogram", "top")
_TAKES: dict[str, tuple[str, ...]] = {
    "count": (),
    "proportion": ("condition",),
    "quantile": ("column", "p"),
    "histogram": ("column", "cells"),
    "correlation": ("column", "other"),
    "top": ("column", "k"),
    "sql": ("text",),
}
"""What a statistic needs; others need a column."""
_GROUPED = ("mean", "sum", "count", "proportion", "median", "quantile", "std", "min", "max")
_NUMBERS = ("std", "gap")
_MOST_CELLS = 200


@dataclass(frozen=True)
class Form:
    """The page that asks, as it was filled in."""

    table: dict[str, Any]
    """What is declared of the table: see `Office.table`."""
    fields: Mapping[str, str]

    def said(self, name: str) -> str:
        return self.fields.get(name, "").strip()

    @property
    def statistic(self) -> str:
        name = self.said("statistic") or "mean"
        if name not in STATISTICS:
            raise QueryError(f"the page does not ask for {name!r}. Choose one of its list.")
        return name

    @property
    def takes(self) -> tuple[str, ...]:
        """The fields that this statistic has besides those of all."""
        needed = _TAKES.get(self.statistic, ("column",))
        if self.statistic == "sql":
            return needed
        return (*needed, "where", *(("by", "and_by") if self.statistic in _GROUPED else ()))

    @property
    def columns(self) -> list[dict[str, Any]]:
        """Those that the statistic may be about."""
        return [column for column in self.table["columns"] if self._fits(column)]

    @property
    def keyed(self) -> list[dict[str, Any]]:
        """Columns with declared groups."""
        return [column for column in self.table["columns"] if "keys" in column]

    def _fits(self, column: dict[str, Any]) -> bool:
        is_number = self.statistic in _OF_NUMBERS and "bounds" in column
        return is_number or (self.statistic in _KEYED and "keys" in column)

    @property
    def missing(self) -> str | None:
        """What is still to be said, in words."""
        words = {
            "column": "a column",
            "other": "a second column",
            "condition": "what people meet",
            "text": "a SELECT",
        }
        lacking = [word for name, word in words.items() if name in self.takes and not self.said(name)]
        return lacking[0] if lacking else None

    def request(self) -> dict[str, Any]:
        """What is asked.

        Raises:
            QueryError: a number is none, or a column was chosen that the page does not offer.
        """
        about = {"sql": self._select()} if self.statistic == "sql" else {"question": self._question()}
        request: dict[str, Any] = {**about, "share": self._number("share", 0.05)}
        if self.said("mechanism"):
            request["mechanism"] = self.said("mechanism")
        if self.said("purpose"):
            request["purpose"] = self.said("purpose")
        if self.said("fresh"):
            request["fresh"] = True
        return request

    def _select(self) -> dict[str, Any]:
        return {"text": self.said("text"), **({"one_row_each": True} if self.said("one_row_each") else {})}

    def _question(self) -> dict[str, Any]:
        statistic = self.statistic
        question: dict[str, Any] = {"statistic": statistic}
        for name in ("column", "other", "condition", "where"):
            if name in self.takes and self.said(name):
                question[name] = self.said(name)
        by = [self.said(name) for name in ("by", "and_by") if name in self.takes and self.said(name)]
        if by:
            question["by"] = by[0] if len(set(by)) == 1 else by
        if "p" in self.takes:
            question["p"] = self._number("p", 0.5)
        if "k" in self.takes:
            question["k"] = int(self._number("k", 3))
        if "cells" in self.takes:
            question |= self._cells(question.get("column", ""))
        if statistic == "correlation":
            return question
        if "column" in self.takes and (self.said("low") or self.said("high")):
            question["bounds"] = [self._number("low"), self._number("high")]
        for name in _NUMBERS:
            if self.said(name):
                question[name] = self._number(name)
        return question

    def _cells(self, name: str) -> dict[str, Any]:
        """Cells of equal width between the declared bounds; those of a column with groups are declared."""
        column: dict[str, Any] = next(
            (column for column in self.table["columns"] if column["name"] == name), {}
        )
        if "keys" in column or "bounds" not in column:
            return {}
        cells = int(self._number("cells", 10))
        if not 1 <= cells <= _MOST_CELLS:
            raise QueryError(f"a page draws 1 to {_MOST_CELLS} cells, and {cells} are asked for.")
        low, high = (float(end) for end in column["bounds"])
        return {"edges": [_tidy(low + (high - low) * k / cells) for k in range(cells + 1)]}

    def _number(self, name: str, default: float | None = None) -> float:
        text = self.said(name).replace(",", "").replace("_", "")
        if not text and default is not None:
            return default
        try:
            return _tidy(float(text))
        except ValueError:
            pass
        raise QueryError(f"{name}: {text!r} is not a number. Write it with digits, such as 0.05.")


def _tidy(x: float) -> float:
    """A whole number as one."""
    return int(x) if x == int(x) and abs(x) < 1e15 else x


def as_python(url: str, table: str, request: dict[str, Any]) -> str:
    """The same question, asked by a program in Python."""
    more = [
        f"{name}={request[name]!r}" for name in ("mechanism", "share", "purpose", "fresh") if name in request
    ]
    if "sql" in request:
        said = dict(request["sql"])
        asked = [repr(said.pop("text")), *(f"{name}={value!r}" for name, value in said.items())]
        call = f"people.sql({', '.join(asked + more)})"
    else:
        call = f"people.release({_constructor(dict(request['question']))}, {', '.join(more)})"
    lines = (
        "import os",
        "import accord",
        "",
        f'people = accord.connect({url!r}, os.environ["ACCORD_TOKEN"])[{table!r}]',
        f"answer = {call}",
        "print(answer)",
    )
    return "\n".join(lines)


def _constructor(question: dict[str, Any]) -> str:
    statistic = question.pop("statistic")
    first = [repr(question.pop(name)) for name in ("column", "other", "condition") if name in question]
    said = (f"{name}={tuple(value) if name == 'bounds' else value!r}" for name, value in question.items())
    return f"accord.{statistic}({', '.join([*first, *said])})"


def as_command(url: str, table: str, request: dict[str, Any], key: str) -> str:
    """The same question, asked on the command line."""
    lines = (
        f"curl {shlex.quote(f'{url}/api/tables/{table}/release')}",
        '-H "Authorization: Bearer $ACCORD_TOKEN"',
        f"-H 'Idempotency-Key: {key}'",
        f"--json {shlex.quote(json.dumps(request, ensure_ascii=False))}",
    )
    return " \\\n  ".join(lines)
