"""Work shared among processes.

What comes out does not depend on how many processes there are: each of them computes with one thread.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from threading import Thread
from types import ModuleType
from typing import TypeVar

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
Task = TypeVar("Task")
Outcome = TypeVar("Outcome")


def shared(
    tasks: Sequence[Task], work: Callable[[Task], Outcome], jobs: int
) -> Iterator[tuple[Task, Outcome]]:
    """Every task with what came of it, as they are done."""
    with (
        _one_thread(),
        ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_end_with_parent) as pool,
    ):
        with _no_main():
            futures = {pool.submit(work, task): task for task in tasks}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:  # Ctrl-C, or the caller wants no more: no process works on
            for process in list((pool._processes or {}).values()):
                process.terminate()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _end_with_parent() -> None:
    """Leave Ctrl-C to the parent, which then ends its processes; none outlives it, however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    Thread(target=follow, daemon=True).start()


@contextmanager
def _no_main() -> Iterator[None]:
    """Processes that start now do not run the caller's script again.

    It may have no guard against that, or no file.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextmanager
def _one_thread() -> Iterator[None]:
    """Processes that start now have one thread each: sums of floats then have one order."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
