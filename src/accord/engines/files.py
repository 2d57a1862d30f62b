"""Which files a path, a pattern, a folder or a list of them names, and what their folders' names tell.

    people.parquet      one file
    people/*.csv.gz     a pattern: the files that it matches
    people              a folder: its Parquet or CSV files, and those of the folders in it
    [a, b, …]           several of these; a file that is named twice is read once

A folder's name such as day=2026-01-15 is a column of the rows in it, as Hive and Spark write them, where it
lies below the folder that was opened, or at or after the first wildcard of a pattern. Names of files and
folders are public; they are compared with nothing in the files.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import unquote

from accord.errors import SourceError, without_password

PARQUET = (".parquet", ".pq")
CSV = (".csv", ".tsv")
PACKED = (".gz", ".zst")
"""Of CSV."""
_NO_VALUE = ("", "__HIVE_DEFAULT_PARTITION__")
Form: TypeAlias = Literal["parquet", "csv"]


@dataclass(frozen=True)
class Files:
    """Files that are one table."""

    label: str
    """What errors call them."""
    form: Form
    paths: tuple[str, ...]
    folder_columns: tuple[str, ...]
    """Columns that folders' names tell of."""
    folder_values: tuple[tuple[str | None, ...], ...]
    """Of each file, the value of each of these columns."""

    def state(self) -> object:
        """Something that stays equal while the files are unchanged."""
        try:
            stats = [Path(path).stat() for path in self.paths]
        except OSError:
            return object()  # gone: not as it was
        return tuple((s.st_mtime_ns, s.st_ctime_ns, s.st_size, s.st_ino) for s in stats)


def are_paths(source: Any) -> bool:
    """Whether a source names files: a path, or a list of paths."""
    if isinstance(source, list | tuple):
        return bool(source) and all(isinstance(path, str | Path) for path in source)
    return isinstance(source, str | Path)


def find(source: Any) -> Files:
    """The files that a path, a pattern, a folder or a list of them names.

    Raises:
        SourceError: there are none, or they are not one table by their names.
    """
    names = [str(path) for path in (source if isinstance(source, list | tuple) else [source])]
    label = repr(names[0]) + (f" and {len(names) - 1} more" if len(names) > 1 else "")
    folders: dict[str, tuple[str, ...]] = {}  # of each file, those whose names may tell something
    real = set()
    for path, above in (pair for name in names for pair in _named_by(name)):
        target = os.path.realpath(path)
        if target not in real:
            real.add(target)
            folders[path] = above
    paths = tuple(folders)
    forms = {_form(path) for path in paths}
    if None in forms:
        raise SourceError(
            f"{label} has an ending that accord does not know. "
            f"It reads {', '.join(PARQUET + CSV)} (CSV also as .gz and .zst)."
        )
    if len(forms) > 1:
        raise SourceError(
            f"{label} has both Parquet and CSV files. Name one kind by a pattern, such as '*.parquet'."
        )
    values = [dict(part.split("=", 1) for part in folders[path] if part.find("=") > 0) for path in paths]
    columns = tuple(values[0])
    if any(tuple(of_file) != columns for of_file in values):
        raise SourceError(
            f"the folders of {label} do not tell of the same columns in the same order (name=value). "
            "Name them alike, or name the files by several patterns."
        )
    if len({column.lower() for column in columns}) < len(columns):
        raise SourceError(f"two folders within each other in {label} have one name. Rename one of them.")
    read = tuple(tuple(_value(of_file[column]) for column in columns) for of_file in values)
    return Files(label, next(form for form in forms if form), paths, columns, read)


def _named_by(name: str) -> Iterable[tuple[str, tuple[str, ...]]]:
    """The files that one name stands for, each with the folders whose names may tell something."""
    if os.path.isdir(name):  # noqa: PTH112  False where Path raises, as of a name that is too long
        root = Path(name)
        below_root = [(path, path.relative_to(root).parts) for path in sorted(_in_folder(root))]
        if not below_root:
            raise SourceError(
                f"{name!r} is a folder without Parquet or CSV files. "
                f"It reads {', '.join(PARQUET + CSV)} (CSV also as .gz and .zst) in it and below."
            )
        return [(os.path.abspath(path), below[:-1]) for path, below in below_root]  # noqa: PTH100
    if os.path.exists(name):  # noqa: PTH110
        return [(os.path.abspath(name), ())]  # noqa: PTH100
    # any pattern, also an absolute one
    named = sorted(glob.glob(name, recursive=True))  # noqa: PTH207
    matches = [path for path in named if not Path(path).is_dir()]
    if not matches:
        raise SourceError(
            f"there is no file {without_password(name)!r}. Check the path; "
            "a pattern such as 'people/*.parquet' names several files."
        )
    fixed = next(k for k, part in enumerate(Path(name).parts) if glob.has_magic(part))
    return [(os.path.abspath(path), Path(path).parts[fixed:-1]) for path in matches]  # noqa: PTH100


def _in_folder(root: Path) -> Iterable[Path]:
    """Without what other programs hide (_SUCCESS, .part-0.crc)."""
    for folder, below, files in os.walk(root):
        below[:] = [name for name in below if not name.startswith((".", "_"))]
        shown = (Path(folder, name) for name in files if not name.startswith((".", "_")))
        yield from (path for path in shown if _form(str(path)) is not None)


def _form(path: str) -> Form | None:
    plain = path
    for packed in PACKED:
        plain = plain.removesuffix(packed)
    ending = Path(plain).suffix.lower()
    if ending in CSV:
        return "csv"
    return "parquet" if ending in PARQUET and plain == path else None


def _value(text: str) -> str | None:
    return None if text in _NO_VALUE else unquote(text)
