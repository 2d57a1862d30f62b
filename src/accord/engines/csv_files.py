"""CSV files before an engine reads them: their header, and copies in UTF-8 of files that are not.

The header is public, and everything that is found out about a file is found out from it: rows are not. So
whether a byte in a row is valid must decide nothing. Bytes that are none of the declared encoding are read as
Windows-1252, which most of them are, and the few that it does not have as Latin-1. None of them becomes a
quote, a delimiter or the end of a line, which would make other people's rows of somebody's text: a byte that
is one of these by itself (half of a character in UTF-16) is read as U+FFFD.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import os
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from io import BufferedIOBase
from pathlib import Path

from accord.engines.csv_options import UTF8
from accord.errors import SourceError

_DELIMITERS = ",;\t|"
_CHUNK = 2**20
_LONGEST_HEADER = 2**22
_LENIENT = "accord-windows-1252"


def _as_windows_1252(fault: UnicodeError) -> tuple[str, int]:
    if not isinstance(fault, UnicodeDecodeError):
        raise fault
    undecoded = fault.object[fault.start : fault.end]
    return "".join(_character(byte) for byte in undecoded), fault.end


def _character(byte: int) -> str:
    if byte < 0x80:
        return "\ufffd"
    one = bytes([byte])
    try:
        return one.decode("cp1252")
    except UnicodeDecodeError:
        return one.decode("latin-1")


codecs.register_error(_LENIENT, _as_windows_1252)


def can_be_decoded(path: str) -> bool:
    """Whether Python can unpack a file."""
    return not path.endswith(".zst")


def header(path: str, encoding: str, label: str) -> str:
    """The first line of a file.

    Raises:
        SourceError: it is not in this encoding.
    """
    with _opened(path) as file:
        start = file.read(_CHUNK)
        while not any(end in start for end in (b"\n", b"\r")) and len(start) < _LONGEST_HEADER:
            more = file.read(_CHUNK)
            if not more:
                break
            start += more
    text = _first_line(start, encoding)
    in_utf8 = _first_line(start, UTF8)
    is_utf16 = "\0" in in_utf8 or start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if encoding == UTF8 and is_utf16:
        raise SourceError(
            f"the header of {label} is not UTF-8; it looks like UTF-16. "
            "Give csv=accord.CSV(encoding='utf-16') (on the command line --csv encoding=utf-16)."
        )
    if encoding == UTF8 and "\ufffd" in text:
        raise SourceError(
            f"the header of {label} is not UTF-8. Say what it is, such as "
            "csv=accord.CSV(encoding='windows-1252') (on the command line --csv encoding=windows-1252)."
        )
    if not is_utf16 and "\ufffd" not in in_utf8 and text != in_utf8:
        raise SourceError(
            f"the header of {label} looks like UTF-8, and not like {encoding}. Leave encoding out."
        )
    if "\ufffd" in text:
        raise SourceError(f"the header of {label} is not {encoding}. Name the encoding that it is in.")
    return text


def _first_line(start: bytes, encoding: str) -> str:
    """With \\ufffd where it is not in this encoding."""
    try:
        text = codecs.getincrementaldecoder(encoding)("replace").decode(start)
    except UnicodeError:  # UTF-16 without its mark
        return "\ufffd"
    return str(text).replace("\r", "\n").partition("\n")[0].lstrip("\ufeff")


def delimiter(line: str, given: str | None, is_tsv: bool, label: str) -> str:
    """What separates the columns of a header: what was given, a tab in .tsv, or what it has most of.

    Raises:
        SourceError: it looks like another.
    """
    declared = given or ("\t" if is_tsv else None)
    names = {mark: split(line, mark) for mark in dict.fromkeys([*(declared or ""), *_DELIMITERS])}
    # none inside of quotes
    nearest: str = max(names, key=lambda mark: (not any('"' in n for n in names[mark]), len(names[mark])))
    if declared is None:
        return nearest
    if len(names[declared]) == 1 < len(names[nearest]):
        raise SourceError(
            f"the header of {label} is one column where {_spelled(declared)!r} separates them, and "
            f"{len(names[nearest])} where {_spelled(nearest)!r} does. This looks like "
            f"delimiter={_spelled(nearest)!r}."
        )
    return declared


def _spelled(mark: str) -> str:
    return "tab" if mark == "\t" else mark


def split(line: str, mark: str) -> list[str]:
    """The names in a header."""
    names: list[str] = next(csv.reader([line], delimiter=mark), [])
    return names


def longest_record(path: str) -> int:
    """How many bytes the longest record of a copy has: lines, where no quote is open."""
    longest = length = 0
    is_quoted = False
    with Path(path).open("rb") as file:
        for line in file:
            length += len(line)
            is_quoted ^= line.count(b'"') % 2 == 1
            if not is_quoted:
                longest, length = max(longest, length), 0
    return max(longest, length)


class Copies:
    """Copies of files in UTF-8, in a folder that nobody else may read, for as long as this lives."""

    def __init__(self, files: Sequence[str], encoding: str) -> None:
        self._files, self._encoding = files, encoding
        self._folder = tempfile.mkdtemp(prefix="accord-csv-")
        weakref.finalize(self, _remove, self._folder, os.getpid())
        self.paths = [str(Path(self._folder, f"{k}.csv")) for k in range(len(files))]

    def make(self) -> None:
        """Copy the files as they are now."""
        for source, target in zip(self._files, self.paths, strict=True):
            decoder = codecs.getincrementaldecoder(self._encoding)(_LENIENT)
            with _opened(source) as packed, Path(target).open("w", encoding=UTF8, newline="") as plain:
                while chunk := packed.read(_CHUNK):
                    plain.write(decoder.decode(chunk))
                plain.write(decoder.decode(b"", final=True))


def _opened(path: str) -> BufferedIOBase:
    return gzip.open(path) if path.endswith(".gz") else Path(path).open("rb")


def _remove(folder: str, process: int) -> None:
    if os.getpid() == process:  # a forked process leaves its parent's copies
        shutil.rmtree(folder, ignore_errors=True)
