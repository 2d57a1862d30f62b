"""Release: from a plan to a noisy answer.

deciding.py  what is asked becomes a plan, or is refused
release.py   reserve, read, noise, commit, in this order
answer.py    the one seam for noise
repeated.py  the booked answer to a question that was asked before
result.py    Release: the answer, its error, its interval
picking.py   one number out of an answer
numbers.py   a number with what is known of its error; joint.py: of several together
derived.py   sums, differences and ratios of released numbers (arithmetic.py has the signs)
tidy.py      the answer as rows, for data frames and figures
receipt.py   plans, releases and accounts as plain data
"""

from typing import TypeAlias

from accord.release.deciding import signed
from accord.release.derived import Derived, Ratio
from accord.release.release import release
from accord.release.result import Booked, Release

WorkloadRelease: TypeAlias = Release
GroupedRelease: TypeAlias = Release
"""What releases of several questions, and of public groups, were called before."""

__all__ = [
    "Booked",
    "Derived",
    "GroupedRelease",
    "Ratio",
    "Release",
    "WorkloadRelease",
    "release",
    "signed",
]
