"""Refusals in the words of the command line: what Python calls where=, one types as --where.

Messages are made where something is refused, in the words of Python. Here alone they become those of the
options; what a user wrote himself, which stands in quotes, stays as it is.
"""

from __future__ import annotations

import re

from accord.cli.options import (
    STATISTICS,
    gap_options,
    level_options,
    look_options,
    select_options,
    table_options,
)

_CALLS = {
    "table.plan(query, remaining=ledger) (on the command line --remaining)": "--remaining",
    "table.plan(query, share=…), or table.plan(query, remaining=ledger)": "--share F, or --remaining",
    "user='…' (on the command line --user)": "--user COLUMN",
    "Open it again with accord.table and plan again.": "Ask again.",
    "Plan again with table.plan(query)": "Ask again",
    "levels='private'": "--expected",
    "one_row_each=True": "--one-row-each",
    "Restore it, or give key=.": "Restore it.",
    ", or give key=. Use": ". Use",
}
"""Calls of Python, and what does the same on the command line."""
_WITHOUT_REMAINING = dict(zip(_CALLS, ("accord release with --remaining", "--share F"), strict=False))
"""The same, of a command that cannot plan from what is left."""


def _option_names() -> tuple[str, ...]:
    """The options whose names are arguments of Python."""

    def command() -> None: ...

    everything = gap_options(look_options(select_options(level_options(table_options(command)))))
    parameters = getattr(everything, "__click_params__", [])
    return tuple({parameter.name for parameter in parameters if parameter.param_type_name == "option"})


_BOUNDS_OF_A_COLUMN = re.compile(r"""bounds=\{['"]([^'"]+)['"]: \(([^(),]+), ([^(),]+)\)\}""")
"""Those of one column, as accord sql takes them."""
_REPEATED = ("by", "keys")
"""Options that are given once for each column."""
_IN_BOTH = re.compile(r"csv=accord\.CSV\([^()]*\) \(on the command line (--csv [^()]*)\)")
"""What is said in both ways."""
_STATISTIC = re.compile(rf"\baccord\.({'|'.join(STATISTICS)})\b(?:\(([^()]*)\))?")
_ARGUMENT = re.compile(
    rf"""(?<![\w.-])(?P<name>{"|".join(_option_names())})=
        (?: \((?P<pair>[^()]*)\) | \[(?P<list>[^\[\]]*)\] | \{{(?P<dict>[^{{}}]*)\}}
          | (?P<quote>['"])(?P<text>[^'"]*)(?P=quote) | (?P<next>[\w…-])? )
      | (?<!\w)'[^']*' | (?<!\w)"[^"]*" """,
    re.VERBOSE,
)


def in_options(message: str, offered: tuple[str, ...] = ("remaining",)) -> str:
    """A message with the names of options, of which a command offers these.

    >>> in_options("by='ward' needs keys=, such as keys=['a', 'b']; share=7 is too much for 'by=x'.")
    "--by ward needs --keys, such as --keys a,b; --share 7 is too much for 'by=x'."
    """
    for call, typed in (_CALLS | ({} if "remaining" in offered else _WITHOUT_REMAINING)).items():
        message = message.replace(call, typed)
    message = _BOUNDS_OF_A_COLUMN.sub(r"--bounds \1=\2..\3", message)
    message = _IN_BOTH.sub(r"\1", message)
    message = _STATISTIC.sub(lambda m: f"{m[1]} {m[2].replace(',', '')}" if m[2] else m[1], message)
    return _ARGUMENT.sub(_option, message)


def _option(found: re.Match[str]) -> str:
    if found["name"] is None:  # what a user wrote
        return found[0]
    return f"--{found['name'].replace('_', '-')}{_value(found)}"


def _value(found: re.Match[str]) -> str:
    """What follows the name, as one types it."""
    if found["pair"] is not None:
        return " " + " ".join(_plain(item) for item in found["pair"].split(","))
    again = f" --{found['name']} " if found["name"] in _REPEATED else ","
    if found["list"] is not None:
        between = again if found["name"] == "by" else ","
        return " " + between.join(_plain(item) for item in found["list"].split(","))
    if found["dict"] is not None:
        entries = (entry.split(":") for entry in found["dict"].replace("[…]", "…").split(","))
        return " " + again.join("=".join(map(_plain, entry)) for entry in entries)
    if found["text"] is not None:
        return (
            f" {found['text']}"
            if re.fullmatch(r"[\w…]+", found["text"])
            else f" {found[0].partition('=')[2]}"
        )
    return f" {found['next']}" if found["next"] else ""


def _plain(item: str) -> str:
    """A number or a text as one types it: 200_000 and 'north' without what Python needs."""
    item = item.strip()
    return item.strip("'\"") if item[:1] in "'\"" else item.replace("_", "")
