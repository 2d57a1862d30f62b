"""Numerals: columns of whole numbers as text, and text as columns, without an object for each number.

A ledger may have an account for every person, and what is hashed and stored of them is JSON text. It is
written and read here by array, and is letter by letter what `json.dumps` would write. A row is a pattern: `#`
stands for a whole number, `$` for an amount in millionths, written as a decimal in quotes ("0.1", "inf"); −1
stands for null.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from accord.budget import MICRO, PUBLIC, IntArray, level_text

AT_ONCE = 2**15
"""So many rows at once: their text stays small."""
FEW = 2**9
"""So many are written faster one by one."""
_PLACES = 6
_Letters = NDArray[np.uint8]
"""A line for each letter of a row, a column for each row; 0: no letter."""


def written(pattern: str, between: str, columns: Sequence[IntArray]) -> Iterator[bytes]:
    """The rows as text, piece by piece.

    >>> ids, amounts = np.array([1, 20]), np.array([250_000, PUBLIC])
    >>> b"".join(written('[#,$]', ",", [ids, amounts]))
    b'[1,"0.25"],[20,"inf"]'
    """
    size = len(columns[0])
    if size <= FEW:
        yield between.join(_by_row(pattern, columns)).encode()
        return
    for start in range(0, size, AT_ONCE):
        parts, rows = iter(columns), slice(start, min(start + AT_ONCE, size))
        count = rows.stop - start
        letters = []
        for sign in between + pattern:
            if sign in "#$":
                values = next(parts)[rows]
                letters.append(_whole(values) if sign == "#" else _amount(values))
            else:
                letters.append(np.full((1, count), ord(sign), dtype=np.uint8))
        piece = np.concatenate(letters).T.tobytes().translate(None, b"\0")
        yield piece if start else piece[len(between) :]


def read(pattern: str, text: str) -> list[IntArray] | None:
    """The columns of rows that `written` wrote, with a comma between them; None for any other text.

    >>> [column.tolist() for column in read('[#,$]', '[1,"0.25"],[20,"inf"]')] == [[1, 20], [250_000, PUBLIC]]
    True
    >>> read('[#,$]', '[1,"0.250"]') is None
    True
    """
    signs = [sign for sign in pattern if sign in "#$"]
    raw = text.encode(errors="replace")
    plain = raw.translate(None, b'[]"').replace(b"null", b"-1")
    try:  # as floats: whatever is not exact shows below
        numbers = np.fromstring(plain.decode(errors="replace"), sep=",")
    except (ValueError, DeprecationWarning):
        return None
    if not numbers.size or numbers.size % len(signs):
        return None
    units = [MICRO if sign == "$" else 1 for sign in signs]
    columns = [_integers(numbers[k :: len(signs)], unit) for k, unit in enumerate(units)]
    start = 0
    for piece in written(pattern, ",", columns):  # read right is what gives the same text again
        if not raw.startswith(piece, start):
            return None
        start += len(piece)
    return columns if start == len(raw) else None


def _by_row(pattern: str, columns: Sequence[IntArray]) -> Iterator[str]:
    row = pattern.replace("#", "%s").replace("$", "%s")
    signs = [sign for sign in pattern if sign in "#$"]
    texts = [
        [_numeral(x, sign) for x in column.tolist()] for sign, column in zip(signs, columns, strict=True)
    ]
    return (row % values for values in zip(*texts, strict=True))


def _numeral(value: int, sign: str) -> object:
    if value < 0:
        return "null"
    return value if sign == "#" else f'"{level_text(value)}"'


def _integers(numbers: NDArray[np.float64], unit: int) -> IntArray:
    """Floats as whole numbers of a unit; ∞ becomes PUBLIC, and what is none of these, some other number."""
    scaled = np.rint(np.where(numbers < 0, numbers, numbers * unit))
    fits = np.abs(scaled) < 2.0**53
    return np.where(fits, np.where(fits, scaled, 0).astype(np.int64), PUBLIC)


def _whole(values: IntArray) -> _Letters:
    null = values < 0
    letters = _digits(values, max(len(str(int(values.max()))), 4 if null.any() else 1))
    return _instead(letters, null, b"null")


def _amount(values: IntArray) -> _Letters:
    public, null = values == PUBLIC, values < 0
    finite = np.where(public | null, 0, values)
    whole = finite // MICRO
    rest = finite - whole * MICRO
    after = _digits(rest + MICRO, _PLACES + 1)[1:]
    for place in range(_PLACES):  # zeros at the end are not written
        after[place, rest % 10 ** (_PLACES - place) == 0] = 0
    point = np.where(rest > 0, ord("."), 0).astype(np.uint8)[None]
    letters = np.concatenate([_digits(whole, len(str(int(whole.max())))), point, after])
    quotes = np.where(null, 0, ord('"')).astype(np.uint8)[None]
    letters = _instead(_instead(letters, public, b"inf"), null, b"null")
    return np.concatenate([quotes, letters, quotes])


def _digits(values: IntArray, width: int) -> _Letters:
    """Right-aligned decimals, without leading zeros; of negative numbers, anything."""
    letters = np.zeros((width, values.size), dtype=np.uint8)
    rest = values
    for place in range(width - 1, -1, -1):
        tenth = rest // 10
        letter = (rest - tenth * 10 + ord("0")).astype(np.uint8)
        letters[place] = letter if place == width - 1 else np.where(rest > 0, letter, 0)
        rest = tenth
    return letters


def _instead(letters: _Letters, where: NDArray[np.bool_], word: bytes) -> _Letters:
    """With a word in some rows."""
    if where.any():
        letters[:, where] = 0
        letters[: len(word), where] = np.frombuffer(word, dtype=np.uint8)[:, None]
    return letters
