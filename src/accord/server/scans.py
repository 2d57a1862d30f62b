"""Scans: requests are carried out two at a time, in the order in which they came.

How long a scan takes may tell something about the data. So what has become of a request is neither seen nor
booked before the end of its slot: the first of 1, 2, 4, 8, … times a length that follows from how many people
the table has, which is public. (Were it booked before, numbers of entries, which receipts have, would tell,
and so would the same question, which is answered again.) A lane takes nothing else up before that. What is
left to see is whether a scan needed the next slot.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from functools import cache, partial
from threading import Condition, Thread
from time import monotonic

from accord.ledger.requests import Request

LANES = 2
_SHORTEST, _EACH = 0.05, 4e-7
"""Seconds of a slot, and for each person."""
_LOG = logging.getLogger("accord")


def slot(people: int) -> float:
    """The length of the first slot, in seconds.

    >>> slot(0), round(slot(1_000_000), 2)
    (0.05, 0.45)
    """
    return _SHORTEST + _EACH * people


def end_of(length: float, elapsed: float) -> float:
    """When a slot ends in which something is done after so many seconds.

    >>> [end_of(0.5, elapsed) for elapsed in (0.1, 0.5, 0.6, 1.2)]
    [0.5, 0.5, 1.0, 2.0]
    """
    while length < elapsed:
        length *= 2
    return length


class Scans:
    """A queue, and the lanes that carry out what is in it."""

    def __init__(
        self, carry_out: Callable[[Request, int, Callable[[], None]], None], people: Callable[[str], int]
    ) -> None:
        """
        Args:
            carry_out: a request, in a lane; it raises nothing. Before it books what came of reading it calls
                what it is given last, which waits for the end of the slot.
            people: how many a table has.
        """
        self._carry_out, self._people = carry_out, people
        self._changed = Condition()
        self._queue: deque[Request] = deque()
        self._running: set[str] = set()
        self.changes = 0
        """So often something has become of a request, as far as anybody may know."""
        self._is_closed = False
        self._lanes = [Thread(target=self._work, args=(k,), daemon=True) for k in range(LANES)]

    def start(self) -> None:
        """Begin to carry out what is queued."""
        for lane in self._lanes:
            lane.start()

    def close(self) -> None:
        """Take nothing else up, and wait for what is under way."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for lane in self._lanes:
            if lane.ident is not None:
                lane.join()

    def add(self, request: Request) -> None:
        """Queue a request, once."""
        with self._changed:
            if request.id not in self._running and all(each.id != request.id for each in self._queue):
                self._queue.append(request)
                self.changes += 1
                self._changed.notify()

    @property
    def running(self) -> frozenset[str]:
        """The requests that are carried out, as far as anybody may know."""
        with self._changed:
            return frozenset(self._running)

    def note_change(self) -> None:
        """Something has become of a request without a scan."""
        with self._changed:
            self.changes += 1

    def place(self, number: str) -> int | None:
        """How many requests come before one that waits; None: it does not."""
        with self._changed:
            return next((k for k, each in enumerate(self._queue) if each.id == number), None)

    def _work(self, lane: int) -> None:
        while True:
            with self._changed:
                while not self._queue and not self._is_closed:
                    self._changed.wait()
                if self._is_closed:
                    return
                request = self._queue.popleft()
                self._running.add(request.id)
                self.changes += 1
            end_slot = cache(partial(self._end_slot, request, monotonic()))  # there is one end
            try:
                self._carry_out(request, lane, end_slot)
                end_slot()
            except Exception as fault:
                _LOG.error("request %s: %s", request.id, type(fault).__name__)
            finally:
                with self._changed:
                    self._running.discard(request.id)
                    self.changes += 1

    def _end_slot(self, request: Request, started: float) -> None:
        """Wait for the end of the slot that a request fits into which has come so far."""
        elapsed = monotonic() - started
        length = end_of(slot(self._people(request.table)), elapsed)
        _LOG.info("request %s: %.2f s of a slot of %.2f s", request.id, elapsed, length)
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed, started + length - monotonic())
