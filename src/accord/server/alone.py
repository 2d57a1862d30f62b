"""Alone: a lock that a process holds as long as it lives, however it ends."""

from __future__ import annotations

import os
from pathlib import Path

_HELD: list[int] = []


def is_locked(path: Path) -> bool:
    """Whether this process has the lock of a file now; False: another has it."""
    try:
        import fcntl
    except ImportError:  # not on Windows, where the documentation has to do
        return True
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        return False
    _HELD.append(file)
    return True
