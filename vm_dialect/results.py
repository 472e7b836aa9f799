"""What calls give: tensors that read like arrays of NumPy, and tuples whose fields have names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
import tvm_ffi
from numpy.lib.mixins import NDArrayOperatorsMixin
from tvm_ffi import core
from typing_extensions import override

from vm_dialect.dtypes import BY_FFI_NAME
from vm_dialect.tensors import Array, to_numpy

_MOST_SHOWN = 60
"""Elements of a tensor that are shown; of larger ones those at the corners are."""


class Tensor(NDArrayOperatorsMixin, tvm_ffi.Tensor):
    """A tensor that shows its elements, and that NumPy takes for an array: `np.asarray(t)` is its memory.

    Operators and functions of NumPy compute with the elements; their results are arrays. Whatever takes a
    `tvm_ffi.Tensor` takes it.
    """

    __slots__ = ()

    def numpy(self) -> Array:
        """The array on the memory of the tensor, which it keeps alive."""
        return to_numpy(self)

    def item(self) -> Any:
        """The only element, as a number of Python; `ValueError` if there is not exactly one."""
        return to_numpy(self).item()

    def tolist(self) -> Any:
        """The elements as nested lists of numbers."""
        return to_numpy(self).tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(to_numpy(self), dtype, copy=copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if "out" in options:
            options["out"] = tuple(map(_array, options["out"]))
        return getattr(ufunc, method)(*map(_array, inputs), **options)

    def __getitem__(self, index: Any) -> Any:
        return to_numpy(self)[index]

    def __len__(self) -> int:
        return len(to_numpy(self))

    def __iter__(self) -> Iterator[Any]:
        return iter(to_numpy(self))

    def __bool__(self) -> bool:
        return bool(to_numpy(self))

    def __int__(self) -> int:
        return int(to_numpy(self))

    def __float__(self) -> float:
        return float(to_numpy(self))

    @override
    def __hash__(self) -> int:
        """Of the object: equal elements are compared, and equal objects are the same one."""
        return tvm_ffi.Tensor.__hash__(self)

    @override
    def __repr__(self) -> str:
        element = BY_FFI_NAME.get(self.dtype)
        kind = f"{self.dtype if element is None else element.name}{list(self.shape)}"
        if element is None or self.device.type != "cpu":
            return f"Tensor({kind}, {self.device})"
        shown = np.array2string(to_numpy(self), separator=", ", prefix="Tensor(", threshold=_MOST_SHOWN, edgeitems=2)
        return f"Tensor({shown}, {kind})"

    __str__ = __repr__


def _array(value: Any) -> Any:
    return to_numpy(value) if isinstance(value, Tensor) else value


class Results(tvm_ffi.Array[Any]):
    """A tuple whose fields are called as the model calls its results: `results["logits"]` is `results[0]`."""

    __slots__ = ("names",)

    names: tuple[str, ...]

    @classmethod
    def of(cls, fields: tvm_ffi.Array[Any], names: Sequence[str]) -> Results:
        """The tuple with names for its fields; it replaces `fields`, which is empty then."""
        made = cls.__new__(cls)
        made.__move_handle_from__(fields)
        made.names = tuple(names)
        return made

    @override
    def __getitem__(self, key: Any, /) -> Any:
        return super().__getitem__(_position(self.names, key) if isinstance(key, str) else key)

    def keys(self) -> tuple[str, ...]:
        """The names."""
        return self.names

    def items(self) -> list[tuple[str, Any]]:
        """Names and fields."""
        return list(zip(self.names, self, strict=True))

    def as_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return dict(self.items())

    @override
    def __repr__(self) -> str:
        return f"({', '.join(f'{name!r}: {value!r}' for name, value in self.items())})"

    __str__ = __repr__


def _position(names: Sequence[str], name: str) -> int:
    try:
        return names.index(name)
    except ValueError:
        raise KeyError(f"no result '{name}', the results are {', '.join(names)}") from None


def with_names(result: Any, names: Sequence[str]) -> Any:
    """What a function returns, with the names of its fields if it is a tuple of as many."""
    fields = as_tuple(result)
    return result if not names or fields is None or len(fields) != len(names) else Results.of(fields, names)


def by_name(result: Any, names: Sequence[str]) -> dict[str, Any]:
    """What a function returns, by the names of its results; `output_0`, `output_1`, ... where it has none."""
    fields = as_tuple(result)
    values = [result] if fields is None else list(fields)
    if len(names) == 1 and len(values) != 1:  # one result that is a tuple
        values = [result]
    called = names if len(names) == len(values) else [f"output_{index}" for index in range(len(values))]
    return dict(zip(called, values, strict=True))


def as_tuple(value: Any) -> tvm_ffi.Array[Any] | None:
    """The value if it is a tuple of the virtual machine."""
    return cast("tvm_ffi.Array[Any]", value) if isinstance(value, tvm_ffi.Array) else None


def register_tensor_class() -> None:
    """Makes tvm-ffi give `Tensor` where it gives tensors, unless another package, as TVM, has registered its own."""
    if type(tvm_ffi.from_dlpack(np.zeros(0))) is tvm_ffi.Tensor:
        vars(core)["_set_class_tensor"](Tensor)  # what TVM calls for its own class; there is no public name
