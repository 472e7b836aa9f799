"""How strings are matched, split, normalised and made tokens, in NumPy's arrays of objects.

Importers ask what an expression means without the values of the virtual machine, which take long to load.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]

PREFIX = "relax.strings."
"""How the names of packed functions on strings begin."""

_OF_RE2 = re.compile(r"(?:\\\\)*\\[pPzCQE]|\[\[:")


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """A regular expression of RE2 as one of Python; `ValueError` for what only one of them has."""
    if (found := _OF_RE2.search(pattern)) is not None:
        raise ValueError(f"the pattern {pattern!r} has {found.group()}, which Python's regular expressions lack")
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"the pattern {pattern!r} is no regular expression: {error}") from None


def parts_of(array: Array, options: Mapping[str, Any]) -> tuple[Array, Array]:
    """The parts of each string along a last axis as long as the most parts, and their numbers."""
    delimiter, most = options["delimiter"] or None, options["maxsplit"]
    return _padded(array, [text.split(delimiter, -1 if most is None else most) for text in array.reshape(-1)], "")


def _padded(array: Array, rows: list[list[str]], padding: str, least: int = 0) -> tuple[Array, Array]:
    """Lists of strings along a last axis, and the length of each."""
    longest = max(map(len, rows), default=least)
    made = np.empty((len(rows), longest), object)
    for i, row in enumerate(rows):
        made[i] = row + [padding] * (longest - len(row))
    counts = np.array([len(row) for row in rows], np.int64)
    return made.reshape(*array.shape, longest), counts.reshape(array.shape)


def normalized(array: Array, said: Mapping[str, Any]) -> list[Any]:
    """Strings without those of a list, in lower or upper case: of `[n]`, or of `[1, n]`. One empty string if none is
    left.
    """
    if array.ndim not in (1, 2) or (array.ndim == 2 and len(array) != 1):
        raise ValueError(f"expected strings of the shape [n] or [1, n], got {list(array.shape)}")
    change = {"LOWER": str.lower, "UPPER": str.upper, "NONE": str}[said["case"]]
    # Compared without case, strings are compared in lower case.
    compared = str if said["sensitive"] else str.lower
    stopwords = {compared(each) for each in said["stopwords"]}
    kept = [change(each) for each in array.reshape(-1) if compared(each) not in stopwords] or [""]
    return kept if array.ndim == 1 else [kept]


def tokens_of(array: Array, said: Mapping[str, Any]) -> Array:
    """The tokens of each string along a last axis as long as the most tokens; what is missing is `pad`.

    Tokens are what an expression matches, or what is between separators, or single characters; those of fewer than
    `least` characters are left out. With `mark` a start and an end are marked by the characters 2 and 3.
    """
    rows = [[each for each in _tokens(text, said) if len(each) >= said["least"]] for text in array.reshape(-1)]
    if said["mark"]:
        rows = [["\x02", *row, "\x03"] for row in rows]
    return _padded(array, rows, said["pad"])[0]


def _tokens(text: str, said: Mapping[str, Any]) -> Iterable[str]:
    if said["expression"]:
        return [each.group() for each in compiled(said["expression"]).finditer(text) if each.group()]
    parts = [text]
    for separator in said["separators"]:
        if not separator:
            return list(text)
        parts = [each for part in parts for each in compiled(separator).split(part)]
    return [each for each in parts if each]
