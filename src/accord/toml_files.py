"""TOML files that people write: read with a place for every fault, which is a file and a line.

A `Section` is a table of such a file. It is read by `Field`s, which say what may stand there: one list serves
the reading, the refusals, a first file with comments, and the JSON Schema that is published.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time
from pathlib import Path
from typing import Any, NoReturn, Protocol, TypeAlias

from accord.errors import AccordError, did_you_mean, without_password

Place: TypeAlias = tuple[str | int, ...]
"""Of a value in a file: names of tables and keys, and places in lists."""


@dataclass(frozen=True)
class Form:
    """What a value may be."""

    words: str
    """For whoever wrote something else."""
    fits: Callable[[Any], bool]
    schema: Mapping[str, Any]
    """The same as JSON Schema, in which moments are texts."""


@dataclass(frozen=True)
class Field:
    """Something that may stand in a section."""

    name: str
    form: Form
    about: str
    """What it says, in a sentence."""
    is_required: bool = False


def _is_text(x: Any) -> bool:
    return isinstance(x, str) and bool(x.strip()) and x.isprintable()


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, float)) and not isinstance(x, bool)


def _is_end(x: Any) -> bool:
    return _is_number(x) or _is_text(x) or (isinstance(x, date) and not isinstance(x, time))


def _is_key(x: Any) -> bool:
    return isinstance(x, (str, bool)) or _is_end(x)


def _is_list_of(fits: Callable[[Any], bool], x: Any) -> bool:
    return isinstance(x, list) and bool(x) and all(map(fits, x))


def _is_table_of(fits: Callable[[Any], bool], x: Any) -> bool:
    return isinstance(x, dict) and bool(x) and all(map(fits, x.values()))


_END = {"type": ["number", "string"]}
_ANY = {"type": ["string", "number", "boolean"]}
TEXT = Form("a text in quotes", _is_text, {"type": "string", "minLength": 1})
TEXTS = Form(
    "a text in quotes, or a list of them",
    lambda x: _is_text(x) or _is_list_of(_is_text, x),
    {"anyOf": [TEXT.schema, {"type": "array", "items": TEXT.schema, "minItems": 1}]},
)
NUMBER = Form("a number", _is_number, {"type": "number"})
TEXT_OR_NUMBER = Form(
    "a text in quotes or a number", lambda x: _is_text(x) or _is_number(x), {"type": ["string", "number"]}
)
MOMENT = Form(
    "a date or a timestamp", lambda x: _is_text(x) or isinstance(x, date), {"type": "string", "minLength": 1}
)
ENDS = Form(
    "two numbers, dates or timestamps, [low, high]",
    lambda x: _is_list_of(_is_end, x) and len(x) == 2,
    {"type": "array", "items": _END, "minItems": 2, "maxItems": 2},
)
TRUE_OR_NUMBERS = Form(
    "true, or a list of numbers",
    lambda x: isinstance(x, bool) or _is_list_of(_is_number, x),
    {"anyOf": [{"type": "boolean"}, {"type": "array", "items": {"type": "number"}, "minItems": 1}]},
)
VALUE = Form("a text in quotes, a number or a date", _is_end, _END)
LIST = Form("a list", lambda x: _is_list_of(_is_key, x), {"type": "array", "items": _ANY, "minItems": 1})
KEYS = Form(
    "a list, or a file of one such as 'codes.txt'",
    lambda x: LIST.fits(x) or _is_text(x),
    {"anyOf": [LIST.schema, TEXT.schema]},
)
KEYS_BY_COLUMN = Form(
    "a list, a file of one, or a table of these such as { ward = ['A', 'B'], sex = ['f', 'm'] }",
    lambda x: KEYS.fits(x) or _is_table_of(KEYS.fits, x),
    {
        "anyOf": [
            LIST.schema,
            TEXT.schema,
            {"type": "object", "additionalProperties": KEYS.schema, "minProperties": 1},
        ]
    },
)
TEXTS_BY_COLUMN = Form(
    "a text, or a table of them such as { ward = 'other', sex = 'other' }",
    lambda x: TEXT.fits(x) or _is_table_of(TEXT.fits, x),
    {
        "anyOf": [
            TEXT.schema,
            {"type": "object", "additionalProperties": TEXT.schema, "minProperties": 1},
        ]
    },
)
NUMBERS_BY_NAME = Form(
    "a table of numbers, such as { strict = 0.1, standard = 1 }",
    lambda x: _is_table_of(_is_number, x),
    # JSON has no inf
    {"type": "object", "additionalProperties": {"type": ["number", "string"]}, "minProperties": 1},
)
TRUTH = Form("true or false", lambda x: isinstance(x, bool), {"type": "boolean"})
VERSION = Form("1", lambda x: x == 1 and not isinstance(x, bool), {"const": 1})


def placed(keys: Any, folder: Path) -> Any:
    """Keys as they are found from any folder: files of them are beside the file that names them."""
    if isinstance(keys, dict):
        return {column: placed(listed, folder) for column, listed in keys.items()}
    return str(folder / keys) if isinstance(keys, str) else keys


def one_of(*words: str) -> Form:
    """One of a few words."""
    listed = " or ".join(f'"{word}"' for word in words)
    return Form(listed, lambda x: isinstance(x, str) and x in words, {"enum": list(words)})


def table_of(meaning: str, schema: Mapping[str, Any]) -> Form:
    """A table that is read by fields of its own, or by somebody else."""
    return Form(f"a table of {meaning}", lambda x: isinstance(x, dict), schema)


class Document(Protocol):
    """Where sections are: a file, or something else that somebody wrote."""

    @property
    def called(self) -> str:
        """What it is, in a sentence: the file."""
        ...

    @property
    def folder(self) -> Path:
        """Where the files are that it names."""
        ...

    def refuse(self, path: Place, fact: str) -> NoReturn:
        """Refuse what stands somewhere in it."""
        ...


@dataclass(frozen=True)
class Section:
    """A table of a TOML file, or of what is written like one."""

    file: Document
    path: Place
    values: Mapping[str, Any]

    def read(self, fields: Sequence[Field]) -> dict[str, Any]:
        """Its values, all of which are fields, each of its form."""
        names = [field.name for field in fields]
        for name in self.values:
            if name not in names:
                self.refuse(name, f"{self._where}has no key {name!r}: {did_you_mean(name, names)}")
        for field in fields:
            if field.name not in self.values:
                if field.is_required:
                    self.refuse(None, f"{self._where}needs {field.name} = …: {field.about}.")
            elif not field.form.fits(self.values[field.name]):
                given = _shown(self.values[field.name])
                fault = "is empty" if self.values[field.name] == "" else f"is not {field.form.words}"
                self.refuse(field.name, f"{field.name} = {given} {fault}. {field.about}.")
        return dict(self.values)

    @property
    def _where(self) -> str:
        name = ".".join(str(part) for part in self.path if isinstance(part, str))
        return f"[{name}] " if name else f"{self.file.called} "

    def section(self, *path: str | int) -> Section:
        """A table within it."""
        values: Any = self.values
        for name in path:
            values = values[name]
        return Section(self.file, (*self.path, *path), values)

    def refuse(self, key: str | None, fact: str) -> NoReturn:
        """Refuse what stands at a key, or the whole section."""
        self.file.refuse(self.path if key is None else (*self.path, key), fact)

    @contextmanager
    def at(self, key: str | None) -> Iterator[None]:
        """What is refused in here is refused because of what stands at a key."""
        try:
            yield
        except AccordError as fault:
            message = str(fault)
        else:
            return
        self.refuse(key, message)


class TomlFile:
    """A TOML file that somebody wrote."""

    called = "the file"

    def __init__(self, path: str | Path, refusal: type[AccordError], what: str) -> None:
        """`refusal`: what to raise; `what`: what the file is, and how one is made, in a sentence.

        Raises:
            AccordError: it is not there, or no TOML.
        """
        self.path, self.refusal = Path(path), refusal
        try:
            self.text = self.path.read_text(encoding="utf-8-sig")
            values = tomllib.loads(self.text)
            if is_too_large(values):
                raise ValueError
        except FileNotFoundError:
            raise refusal(f"there is no file {self.label}. {what}") from None
        except (OSError, UnicodeDecodeError) as fault:
            raise refusal(f"{self.label} cannot be read ({type(fault).__name__}). {what}") from None
        except tomllib.TOMLDecodeError as fault:
            raise refusal(f"{self.label} is no TOML: {fault}. Correct it there.") from None
        except (ValueError, RecursionError):
            raise refusal(
                f"{self.label} has a whole number of more than 64 bits, or is nested too deeply. Correct it."
            ) from None
        self.top = Section(self, (), values)

    @property
    def label(self) -> str:
        """Its name in messages."""
        return str(self.path)

    @property
    def folder(self) -> Path:
        """Where the files are that it names."""
        return self.path.resolve().parent

    def refuse(self, path: Place, fact: str) -> NoReturn:
        """Refuse what stands somewhere in it."""
        raise self.refusal(f"{self.label}, line {self.line(path)}: {fact}")

    def line(self, path: Place) -> int:
        """Where a value stands, or the nearest table around it that has a line of its own."""
        best, nearest = 0, 1
        for number, place in _places(self.text):
            if len(place) > best and place == path[: len(place)]:
                best, nearest = len(place), number
        return nearest


def is_too_large(values: Any) -> bool:
    """Of what somebody wrote: whether there is a whole number in it that no engine holds."""
    if isinstance(values, dict | list):
        return any(map(is_too_large, values.values() if isinstance(values, dict) else values))
    return isinstance(values, int) and not -(2**63) <= values < 2**63


def _places(text: str) -> Iterator[tuple[int, Place]]:
    """The lines on which a table or a key begins, and which."""
    table: Place = ()
    counts: dict[Place, int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        header = re.match(r"\s*(\[\[?[^\[\]]+\]\]?)\s*(#.*)?\r?$", line)
        key = None if header else re.match(r"\s*([^=#\[\]{}]+)=", line)
        if header:
            names = _names(header[1])
            if header[1].startswith("[["):
                counts[names] = counts.get(names, -1) + 1
            table = ()
            for k, name in enumerate(names, start=1):
                place = (counts[names[:k]],) if names[:k] in counts else ()  # in a list of tables
                table = (*table, name, *place)
            yield number, table
        elif key and (names := _names(f"{key[1]}= 0")):
            yield number, (*table, *names)


def _names(line: str) -> tuple[str, ...]:
    """The names in a header or before the sign of a key; none if it is neither."""
    try:
        value: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return ()
    names = []
    while isinstance(value, dict) and value:
        ((name, value),) = value.items()
        names.append(name)
        value = value[0] if isinstance(value, list) else value
    return tuple(names)


def _shown(value: Any) -> str:
    """What somebody wrote, about as they wrote it, if it is short."""
    if isinstance(value, bool):
        return str(value).lower()
    text = value.isoformat() if isinstance(value, (date, datetime, time)) else without_password(repr(value))
    return text if len(text) <= 60 else f"{text[:57]}…"


def json_schema(title: str, fields: Sequence[Field], **more: Any) -> dict[str, Any]:
    """The fields of a section as JSON Schema."""
    return {
        "title": title,
        "type": "object",
        "properties": {field.name: {**field.form.schema, "description": field.about} for field in fields},
        "required": [field.name for field in fields if field.is_required],
        "additionalProperties": False,
        **more,
    }
