"""What accord refuses, and how it says so.

    AccordError
    ├── SpecError     the levels cannot be used          (also a ValueError)
    ├── QueryError    the question cannot be asked       (also a ValueError)
    ├── PlanError     no plan answers it as asked        (also a ValueError)
    ├── BudgetError   somebody has less left than it would cost them
    ├── LedgerError   the ledger cannot be used, or does not know the table
    ├── SourceError   the data cannot be opened or read
    └── ServiceError  a service cannot be reached, or has no answer
        ├── ApprovalError  the officer has not approved it yet: nothing is charged
        └── ChargedError   people are charged, and there is no answer

An error is an output channel. Every message states the fact, the rule and the next step from public things
alone: levels, numbers of people, names of columns, what the user typed. It never carries a value of the data,
nor the text of an engine's error, which may quote one.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from difflib import get_close_matches
from inspect import currentframe
from typing import TypeVar

E = TypeVar("E", bound="AccordError")


class AccordWarning(UserWarning):
    """Something is done as it was asked, and looks like a mistake."""


class PrivacyWarning(AccordWarning):
    """Something is about to be lost that no charge tells of, or that nobody keeps account of."""


class AccordError(Exception):
    """Everything that accord refuses on purpose."""

    counted_as = ""
    """In a word, why a ledger refused it, if ledgers count such refusals."""

    def counted(self: E, reason: str) -> E:
        """The same, as a refusal that ledgers count."""
        self.counted_as = reason
        return self


class SpecError(AccordError, ValueError):
    """The levels cannot be used."""


class QueryError(AccordError, ValueError):
    """The question cannot be asked."""


class PlanError(AccordError, ValueError):
    """No plan answers the question as asked."""


class BudgetError(AccordError):
    """Somebody has less left than the release would cost them. Nothing is spent."""

    counted_as = "budget"


class LedgerError(AccordError):
    """The ledger cannot be used, or does not know the table."""


class SourceError(AccordError):
    """The data cannot be opened or read."""


class ServiceError(AccordError):
    """A service cannot be reached, does not let one in, or has no answer."""


class ApprovalError(ServiceError):
    """A request waits for the officer. Nothing is charged; ask again with the same key."""


class ChargedError(ServiceError):
    """People are charged, and there is no answer, nor will there be."""


def without_password(text: str) -> str:
    """A text that may be an address, without what may be a password in it.

    >>> without_password("mysql://me:secret@host/db"), without_password("host=h password=secret")
    ('mysql://…@host/db', 'host=h password=…')
    """
    hidden = re.sub(r"(:?/{1,2})[^@'\"]*@", r"\1…@", text)
    return re.sub(r"(?i)(password|passwd|pwd)(\s*=\s*)[^\s&'\"]+", r"\1\2…", hidden)


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line that called accord, however deep in accord this is said."""
    frame, depth = currentframe(), 1
    while frame is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame, depth = frame.f_back, depth + 1
    warnings.warn(message, category, stacklevel=depth)


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == __name__.partition(".")[0]


TABLE_CHANGED = (
    "the table has changed since its levels were read. Open it again with accord.table and plan again."
)
"""What is said by whoever notices it: readers, ledgers and releases."""


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """A hint for an unknown name: the nearest known one, and all of them if they are few.

    >>> did_you_mean("incme", ["income", "age"])
    "did you mean 'income'? Known: 'income', 'age'."
    """
    listed = list(known)
    names = [str(k) for k in listed]
    by_case = {k.lower(): k for k in reversed(names)}  # of names that differ by case, the first
    near = get_close_matches(str(name).lower(), by_case, n=1)
    quoted = [repr(k) if isinstance(k, str) else str(k) for k in listed[:20]]
    listing = f"Known: {', '.join(quoted)}{', …' if len(listed) > 20 else ''}."
    return f"did you mean {by_case[near[0]]!r}? {listing}" if near else listing
