"""The audit, started from a page: `accord audit` in a process of its own.

It doubts accord itself, on tables that it makes up: it is given no table, no ledger and no text of anybody,
only two names of lists. One runs at a time, with one process, at the lowest priority, for ten minutes at
most. Officers and owners start it; analysts have no way to.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from subprocess import DEVNULL, PIPE
from tempfile import TemporaryDirectory
from threading import Lock, Thread
from typing import Any

from accord.errors import QueryError, did_you_mean
from accord.mechanisms import ALL
from accord.server.refusals import NotThereError

STATISTICS = ("mean", "sum", "count", "proportion", "median", "histogram")
_LONGEST, _LOWEST = 600.0, 19


@dataclass
class Run:
    """An audit that was started from a page."""

    mechanism: str
    statistic: str
    time: str
    state: str = "running"
    """Then "passed", "found" something, or "stopped" without an end."""
    result: dict[str, Any] | None = None
    page: str = ""

    @property
    def looks(self) -> list[dict[str, Any]]:
        """By neighbors and way: at how many levels a loss was looked for, and how often it was too large."""
        counts: dict[tuple[str, str], list[bool]] = {}
        for finding in (self.result or {}).get("findings", []):
            for way, seen in finding["ways"].items():
                counts.setdefault((finding["neighbors"], way), []).append(bool(seen["violated"]))
        return [
            {"neighbors": neighbors, "way": way, "levels": len(seen), "violated": sum(seen)}
            for (neighbors, way), seen in counts.items()
        ]


class Audits:
    """The newest audit, which is the only one that is kept."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.newest: Run | None = None

    def start(self, mechanism: str, statistic: str) -> None:
        """Run an audit.

        Raises:
            QueryError: there is no such mechanism or statistic, or one is running.
        """
        names = [each.name for each in ALL]
        if mechanism not in names:
            raise QueryError(f"there is no mechanism {mechanism!r}: {did_you_mean(mechanism, names)}")
        if statistic not in STATISTICS:
            raise QueryError(f"the page audits no {statistic!r}: {did_you_mean(statistic, STATISTICS)}")
        with self._lock:
            if self.newest is not None and self.newest.state == "running":
                raise QueryError("an audit is running. Wait for its end, and start the next one then.")
            run = self.newest = Run(mechanism, statistic, datetime.now(UTC).isoformat())
        Thread(target=_carry_out, args=(run,), daemon=True).start()

    def page(self) -> str:
        """The page of the newest audit, to be filed."""
        if self.newest is None or not self.newest.page:
            raise NotThereError
        return self.newest.page


def _carry_out(run: Run) -> None:
    with TemporaryDirectory(prefix="accord-audit-") as folder:
        page = Path(folder, "audit.html")
        command = [
            *(sys.executable, "-m", "accord.cli", "audit", run.mechanism, "--statistic", run.statistic),
            *("--jobs", "1", "--json", "--html", str(page)),
        ]
        state = "stopped"
        try:
            with subprocess.Popen(command, cwd=folder, stdout=PIPE, stderr=DEVNULL) as process:
                os.setpriority(os.PRIO_PROCESS, process.pid, _LOWEST)
                try:
                    text, _ = process.communicate(timeout=_LONGEST)
                finally:
                    process.kill()
            run.result = json.loads(text)
            run.page = page.read_text(encoding="utf-8")
            state = {0: "passed", 1: "found"}.get(process.returncode, "stopped")
        except (subprocess.TimeoutExpired, OSError, ValueError):
            run.result = None
        run.state = state
