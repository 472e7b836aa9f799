"""Arrays of strings as values of the virtual machine, and the packed functions on them, which are pure.

Elements of tensors are numbers. An array of strings is an opaque object of the host; a program moves, repeats and
chooses among its elements by tensors of indices into it, and hands both to these functions. Options are JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, TypeAlias, cast

import numpy as np
import tvm_ffi
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]


class StringArray:
    """An array of strings. NumPy takes it as an array of objects."""

    def __init__(self, elements: Any):
        """`TypeError` for elements that are no strings; bytes are UTF-8."""
        array = np.asarray(elements, object)
        flat = [_text(each) for each in array.reshape(-1).tolist()]
        self.array = np.empty(len(flat), object)
        self.array[:] = flat
        self.array = self.array.reshape(array.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.array, dtype, copy=copy) if copy else self.array.astype(dtype or object, copy=False)

    def __repr__(self) -> str:
        return f"StringArray({self.array.tolist()!r})"


def _text(element: object) -> str:
    if isinstance(element, bytes):
        return element.decode(errors="replace")
    if not isinstance(element, str):
        raise TypeError(f"expected an array of strings, got an element of {type(element).__name__}")
    return element


def is_string_array(value: object) -> bool:
    """Whether a value is an array of NumPy whose elements are strings."""
    if not isinstance(value, np.ndarray):
        return False
    array = cast("Array", value)
    if array.dtype.kind == "O":
        return all(isinstance(each, str | bytes) for each in array.reshape(-1).tolist())
    return array.dtype.kind in "STU"


def _strings(value: object) -> Array:
    return (value if isinstance(value, StringArray) else StringArray(value)).array


def constant(options: str) -> StringArray:
    """The strings of a list."""
    return StringArray(json.loads(str(options)))


def size(x: object) -> tvm_ffi.Tensor:
    """The number of elements, a scalar of `i64`."""
    return _tensor(np.array(_strings(x).size, np.int64))


def indices(x: object, rank: str) -> tvm_ffi.Tensor:
    """The indices of the elements in the shape of the array; `ValueError` for another rank."""
    array = _strings(x)
    if array.ndim != int(rank):
        raise ValueError(f"expected strings of rank {rank}, got the shape {list(array.shape)}")
    return _tensor(np.arange(array.size).reshape(array.shape))


def codes(x: object) -> tvm_ffi.Tensor:
    """For each element the index of the first one that equals it, in one dimension."""
    found: dict[str, int] = {}
    return _tensor(np.array([found.setdefault(each, i) for i, each in enumerate(_strings(x).reshape(-1))], np.int64))


def take(x: object, at: tvm_ffi.Tensor) -> StringArray:
    """The elements at indices."""
    return StringArray(_taken(x, at))


def join(x: object, y: object) -> StringArray:
    """The elements of both in one dimension."""
    return StringArray(np.concatenate([_strings(x).reshape(-1), _strings(y).reshape(-1)]))


def positions(x: object, at: tvm_ffi.Tensor, options: str) -> tvm_ffi.Tensor:
    """The position of each string in a list; its length for others."""
    names = json.loads(str(options))
    table = {name: position for position, name in enumerate(names)}
    return _tensor(_mapped(_taken(x, at), lambda text: table.get(text, len(names)), np.int64))


def concat(x: object, at: tvm_ffi.Tensor, y: object, other: tvm_ffi.Tensor) -> StringArray:
    """Strings one after the other, with broadcasting."""
    return StringArray(np.asarray(_taken(x, at) + _taken(y, other), object))


def full_match(x: object, at: tvm_ffi.Tensor, pattern: str) -> tvm_ffi.Tensor:
    """Whether a regular expression matches the whole of each string."""
    matcher = compiled(str(pattern))
    return _tensor(_mapped(_taken(x, at), lambda text: matcher.fullmatch(text) is not None, np.bool_))


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


def split(x: object, at: tvm_ffi.Tensor, options: str) -> StringArray:
    """The parts of each string along a last axis as long as the most parts; what is missing is empty."""
    return StringArray(_parts(_taken(x, at), json.loads(str(options)))[0])


def split_counts(x: object, at: tvm_ffi.Tensor, options: str) -> tvm_ffi.Tensor:
    """The number of parts of each string."""
    return _tensor(_parts(_taken(x, at), json.loads(str(options)))[1])


def _parts(array: Array, options: Mapping[str, Any]) -> tuple[Array, Array]:
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


def normalize(x: object, at: tvm_ffi.Tensor, options: str) -> StringArray:
    """Strings without those of a list, in lower or upper case: of `[n]`, or of `[1, n]`. One empty string if none is
    left.
    """
    array, said = _taken(x, at), json.loads(str(options))
    if array.ndim not in (1, 2) or (array.ndim == 2 and len(array) != 1):
        raise ValueError(f"expected strings of the shape [n] or [1, n], got {list(array.shape)}")
    change = {"LOWER": str.lower, "UPPER": str.upper, "NONE": str}[said["case"]]
    # Compared without case, strings are compared in lower case.
    compared = str if said["sensitive"] else str.lower
    stopwords = {compared(each) for each in said["stopwords"]}
    kept = [change(each) for each in array.reshape(-1) if compared(each) not in stopwords] or [""]
    return StringArray(kept if array.ndim == 1 else [kept])


def tokenize(x: object, at: tvm_ffi.Tensor, options: str) -> StringArray:
    """The tokens of each string along a last axis as long as the most tokens; what is missing is `pad`.

    Tokens are what an expression matches, or what is between separators, or single characters; those of fewer than
    `least` characters are left out. With `mark` a start and an end are marked by the characters 2 and 3.
    """
    array, said = _taken(x, at), json.loads(str(options))
    rows = [[each for each in _tokens(text, said) if len(each) >= said["least"]] for text in array.reshape(-1)]
    if said["mark"]:
        rows = [["\x02", *row, "\x03"] for row in rows]
    return StringArray(_padded(array, rows, said["pad"])[0])


def _tokens(text: str, said: Mapping[str, Any]) -> Iterable[str]:
    if said["expression"]:
        return [each.group() for each in compiled(said["expression"]).finditer(text) if each.group()]
    parts = [text]
    for separator in said["separators"]:
        if not separator:
            return list(text)
        parts = [each for part in parts for each in compiled(separator).split(part)]
    return [each for each in parts if each]


def _taken(x: object, at: tvm_ffi.Tensor) -> Array:
    where = cast("Array", np.from_dlpack(cast("Any", at)))
    return np.take(_strings(x).reshape(-1), where.reshape(-1)).reshape(where.shape)


def _mapped(array: Array, function: Callable[[str], Any], dtype: Any) -> Array:
    return np.array([function(each) for each in array.reshape(-1)], dtype).reshape(array.shape)


def _tensor(array: Array) -> tvm_ffi.Tensor:
    return tvm_ffi.from_dlpack(array)


PREFIX = "relax.strings."
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    PREFIX + each.__name__: each
    for each in (constant, size, indices, codes, take, join, positions, concat, full_match, split, split_counts)
} | {PREFIX + each.__name__: each for each in (normalize, tokenize)}

for _name, _function in FUNCTIONS.items():
    tvm_ffi.register_global_func(_name, _function, override=True)
