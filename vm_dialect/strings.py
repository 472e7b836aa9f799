"""Arrays of strings as values of the virtual machine, and the packed functions on them, which are pure.

Elements of tensors are numbers. An array of strings is an opaque object of the host; a program moves, repeats and
chooses among its elements by tensors of indices into it, and hands both to these functions. Options are JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import tvm_ffi

from vm_dialect.texts import PREFIX, Array, compiled, normalized, parts_of, tokens_of


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


def split(x: object, at: tvm_ffi.Tensor, options: str) -> StringArray:
    """The parts of each string along a last axis as long as the most parts; what is missing is empty."""
    return StringArray(parts_of(_taken(x, at), json.loads(str(options)))[0])


def split_counts(x: object, at: tvm_ffi.Tensor, options: str) -> tvm_ffi.Tensor:
    """The number of parts of each string."""
    return _tensor(parts_of(_taken(x, at), json.loads(str(options)))[1])


def normalize(x: object, at: tvm_ffi.Tensor, options: str) -> StringArray:
    """Strings without those of a list, in lower or upper case: of `[n]`, or of `[1, n]`."""
    return StringArray(normalized(_taken(x, at), json.loads(str(options))))


def tokenize(x: object, at: tvm_ffi.Tensor, options: str) -> StringArray:
    """The tokens of each string along a last axis as long as the most tokens."""
    return StringArray(tokens_of(_taken(x, at), json.loads(str(options))))


def _taken(x: object, at: tvm_ffi.Tensor) -> Array:
    where = cast("Array", np.from_dlpack(cast("Any", at)))
    return np.take(_strings(x).reshape(-1), where.reshape(-1)).reshape(where.shape)


def _mapped(array: Array, function: Callable[[str], Any], dtype: Any) -> Array:
    return np.array([function(each) for each in array.reshape(-1)], dtype).reshape(array.shape)


def _tensor(array: Array) -> tvm_ffi.Tensor:
    return tvm_ffi.from_dlpack(array)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    PREFIX + each.__name__: each
    for each in (constant, size, indices, codes, take, join, positions, concat, full_match, split, split_counts)
} | {PREFIX + each.__name__: each for each in (normalize, tokenize)}

for _name, _function in FUNCTIONS.items():
    tvm_ffi.register_global_func(_name, _function, override=True)
