"""Alone: a lock on a file that a process holds until it lets go or ends, however it ends."""

from __future__ import annotations

import os
from pathlib import Path


class FileLock:
    """Held since it was made."""

    def __init__(self, file: int | None) -> None:
        self._file = file

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def lock(path: Path) -> FileLock | None:
    """The lock of a file; None: another process has it."""
    try:
        import fcntl
    except ImportError:  # not on Windows, where the documentation has to do
        return FileLock(None)
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        return None
    return FileLock(file)
