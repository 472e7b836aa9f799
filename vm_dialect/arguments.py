"""Arguments from Python, and how they become what a function takes: the same for bytecode, native code, libraries and
the interpreter, which has NumPy arrays for tensors.

A tensor that is given in another layout than the function reads is copied once, here: without rights to write, with
gaps or negative strides between its elements, unaligned, or in another byte order. Where a tensor of a dtype that the
signature says is expected, numbers and nested sequences of them become one. What the function writes is never copied,
since the caller would not see it: that is an error.

Results are tensors that read like arrays of NumPy, and tuples whose fields have names.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
import tvm_ffi
from numpy.lib.mixins import NDArrayOperatorsMixin
from tvm_ffi import core
from typing_extensions import override

from vm_dialect import messages
from vm_dialect.dtypes import BY_FFI_NAME, ELEMENT_TYPES, ElementType, element_type
from vm_dialect.executable.model import SIGNATURES_NOTE
from vm_dialect.host_memory import aligned_copy
from vm_dialect.messages import render
from vm_dialect.tensors import Array, array_element, from_dlpack, from_numpy, kind_of, numpy_dtype, to_numpy, to_value

_MOST_SHOWN = 60
"""Elements of a tensor that are shown; of larger ones those at the corners are."""


class Tensor(NDArrayOperatorsMixin, tvm_ffi.Tensor):
    """A tensor that shows its elements, and that NumPy takes for an array: `np.asarray(t)` is its memory.

    Operators and functions of NumPy compute with the elements; their results are arrays. Whatever takes a
    `tvm_ffi.Tensor` takes it. What NumPy's arrays have beside, such as `sum` and `T`, is that of the array.
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

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self)
        return getattr(to_numpy(self), name)

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


Kind: TypeAlias = "str | tuple[Kind, ...] | None"
"""What a parameter expects: the IR name of a tensor's dtype, `ANY_DTYPE`, one kind for each field of a tuple, or
`None` for anything else."""

ANY_DTYPE = "_"

_LOG = logging.getLogger("vm_dialect")
_CPU = 1
_TAKEN = frozenset({type(None), bool, int, float, str, tvm_ffi.Shape, tvm_ffi.Function})


@dataclass(frozen=True)
class Signature:
    """What a function expects of its arguments, as far as it is known."""

    kinds: tuple[Kind, ...] = ()
    written: frozenset[int] = frozenset()
    """The parameters that the function may write into."""


def write_signatures(signatures: Mapping[str, Signature]) -> str:
    """The signatures as the text of a note."""
    rows = {name: [each.kinds, sorted(each.written)] for name, each in signatures.items()}
    return json.dumps(rows, separators=(",", ":"))


def read_signatures(text: str) -> dict[str, Signature]:
    """What `write_signatures` wrote; `ValueError` for other text."""
    try:
        rows: dict[str, tuple[list[object], list[int]]] = json.loads(text) if text else {}
        return {
            name: Signature(tuple(map(_kind, kinds)), frozenset(map(int, written)))
            for name, (kinds, written) in rows.items()
        }
    except (TypeError, AttributeError, RecursionError, ValueError) as error:
        raise ValueError(f"the note {SIGNATURES_NOTE} has no signatures: {error}") from None


def _kind(row: object) -> Kind:
    if isinstance(row, list):
        return tuple(map(_kind, cast("list[object]", row)))
    if row is None or row == ANY_DTYPE or row in ELEMENT_TYPES:
        return cast("str | None", row)
    raise ValueError(f"{row!r} is no kind of a parameter")


class Arguments:
    """The arguments of one function."""

    def __init__(
        self,
        function: str,
        parameters: Sequence[str],
        signature: Signature | None,
        argument: type[Argument] | None = None,
    ):
        """`argument` says what becomes of each; without it, a value of the virtual machine."""
        known = signature or Signature()
        kinds = known.kinds if len(known.kinds) == len(parameters) else (None,) * len(parameters)
        self._function = function
        self._parameters = tuple(parameters)
        self._kinds: tuple[Kind, ...] = kinds
        self._written = known.written
        self._argument = argument or Argument

    def were_refused(self, arguments: Sequence[Any], error: Exception) -> bool:
        """Whether a native function has raised an error since it does not take an argument as it was given.

        tvm-ffi raises a `BufferError` for arrays that it does not exchange; for everything else a function names the
        argument, and checks all of them before it does anything. So it may be called again with `converted` ones.
        """
        if not isinstance(error, BufferError) and not str(error).startswith(f"{self._function}: argument #"):
            return False
        return not all(map(_is_ready, arguments, self._kinds))

    def converted(self, arguments: Sequence[Any]) -> list[Any]:
        """The arguments as values, of the virtual machine if nothing else is said.

        `TypeError` for what is no such value, `ValueError` for an argument that is written and would have to be copied;
        both name the argument. Whether the values are what the function expects is checked by the function itself.
        """
        made: list[Any] = []
        for index, argument in enumerate(arguments):
            kind = self._kinds[index] if index < len(self._kinds) else None
            subject = "" if kind is None else messages.argument(self._function, index, self._parameters[index])
            try:
                made.append(self._argument(subject, index in self._written).value(argument, kind))
            except TypeError as error:
                if subject or index >= len(self._parameters):
                    raise
                subject = messages.argument(self._function, index, self._parameters[index])
                raise TypeError(f"{subject}: {error}") from error
        return made


def _is_ready(argument: Any, kind: Kind) -> bool:
    """Whether a native function takes an argument as it is, but for its dtype and shape."""
    if isinstance(argument, np.ndarray):
        array = cast("Array", argument)
        return unfit(array) is None and array.dtype.kind in "biuf" and array.dtype.type.__module__ == "numpy"
    if (is_contiguous := getattr(argument, "is_contiguous", None)) is not None:  # of tvm-ffi, of PyTorch
        return is_contiguous()
    if isinstance(kind, tuple) and isinstance(argument, list | tuple | tvm_ffi.Array):
        fields = cast("Sequence[object]", argument)
        return len(fields) == len(kind) and all(map(_is_ready, fields, kind))
    return kind is None and type(argument) in _TAKEN


@dataclass(frozen=True)
class Argument:
    """One argument, or a field of one; it becomes a value of the virtual machine, or what a subclass makes of it."""

    subject: str
    """What errors call it."""
    is_written: bool
    """Whether the function may write into it."""

    def value(self, given: Any, kind: Kind) -> Any:
        """The value for a parameter of a kind. `TypeError` for what cannot become a tensor where one is expected,
        `ValueError` for numbers that its dtype does not have and for memory that cannot be written.
        """
        if isinstance(kind, tuple):
            return self._tuple(given, kind)
        if kind is None:
            return self.plain(given)
        if isinstance(given, np.ndarray):
            return self.array(cast("Array", given), kind)
        if isinstance(given, tvm_ffi.Tensor):
            return self.tensor(given, kind)
        if hasattr(given, "__dlpack__") and not isinstance(given, np.generic):
            return self.tensor(from_dlpack(given), kind)
        if isinstance(given, np.generic):
            return self._new(np.asarray(cast("Any", given)), cast("object", given), kind)
        if hasattr(given, "__array__"):  # a column of pandas, an image
            return self.array(np.asarray(given), kind)
        if kind == ANY_DTYPE or not isinstance(given, bool | int | float | list | tuple):
            return self.plain(given)
        element, number = element_type(kind), cast("object", given)
        return self._new(numbers(number, numpy_dtype(element), element, self.subject), number, kind)

    def plain(self, given: Any) -> Any:
        """What is given where no tensor is expected, or is none."""
        try:
            return to_value(given)
        except TypeError as error:
            raise TypeError(f"{self.subject}: {error}" if self.subject else str(error)) from error

    def fields(self, fields: Sequence[Any]) -> Any:
        """A tuple of values."""
        return tvm_ffi.Array(fields)

    def array(self, array: Array, kind: str) -> Any:
        """A NumPy array, where a tensor of a kind is expected."""
        self.require_dtype(array, kind)
        why = unfit(array)
        return from_numpy(array if why is None else self.copied(array, why))

    def tensor(self, tensor: tvm_ffi.Tensor, kind: str) -> Any:
        """A tensor of another library, where one of a kind is expected."""
        if tensor.is_contiguous() or tensor.numel() == 0 or tensor.__dlpack_device__()[0] != _CPU:
            return tensor
        return from_numpy(self.copied(to_numpy(tensor), messages.WITH_GAPS))

    def made(self, array: Array) -> Any:
        """An array that has just been made of numbers."""
        return from_numpy(aligned_copy(array))

    def require_dtype(self, array: Array, kind: str) -> None:
        """`TypeError` unless there are tensors of the array's dtype."""
        if array_element(array.dtype) is None:
            expected = "any number" if kind == ANY_DTYPE else element_type(kind).ffi_name
            raise TypeError(render(messages.wrong_dtype(self.subject, expected), name=str(array.dtype)))

    def copied(self, array: Array, why: str) -> Array:
        """A copy that compiled code can use; `ValueError` if the function writes into the argument."""
        if self.is_written:
            raise ValueError(messages.written_copy(self.subject, why))
        _LOG.debug("%s: %s: copied", self.subject, why)
        return aligned_copy(array)

    def _tuple(self, given: Any, kinds: tuple[Kind, ...]) -> Any:
        if not isinstance(given, list | tuple | tvm_ffi.Array):
            return self.plain(given)
        items = cast("Sequence[object]", given)
        if len(items) != len(kinds):
            return self.plain(items)
        return self.fields(
            [
                type(self)(messages.describe_field(self.subject, index), self.is_written).value(item, kind)
                for index, (item, kind) in enumerate(zip(items, kinds, strict=True))
            ]
        )

    def _new(self, array: Array, given: object, kind: str) -> Any:
        if self.is_written:
            raise TypeError(messages.written_number(self.subject, kind_of(to_value(given))))
        if array_element(array.dtype) is None:
            return self.array(array, kind)
        return self.made(array)


def unfit(array: Array) -> str | None:
    """Why compiled code cannot use the memory of an array as it is; `None` if it can."""
    flags = array.flags
    if not array.dtype.isnative:
        return "is in the byte order of other machines"
    if array.size and not flags.c_contiguous:
        return messages.WITH_GAPS
    if array.size and not flags.aligned:
        return "is not aligned to its elements"
    return None if flags.writeable else "is read-only"


def numbers(given: object, dtype: np.dtype[Any], element: ElementType, subject: str) -> Array:
    """The array of a number, or of a sequence of them, of a dtype that has these values.

    `TypeError` for what holds other things than numbers, has rows of several lengths or numbers of another kind,
    `ValueError` for a number beyond the range of the dtype.
    """
    strange = _strange_item(given, dtype)
    if strange is not None:
        raise TypeError(render(messages.wrong_dtype(subject, element.ffi_name), name=strange))
    try:
        natural = np.asarray(cast("Any", given))
    except ValueError:
        raise TypeError(f"{subject}: expected rows of one length, got a {type(given).__name__} of several") from None
    kind = natural.dtype.kind
    if natural.size and ((kind == "f" and not element.is_float) or (kind in "iu" and element.code == 6)):
        raise TypeError(render(messages.wrong_dtype(subject, element.ffi_name), name=kind_of(natural.flat[0].item())))
    with np.errstate(all="ignore"):
        made = natural.astype(dtype) if kind != "O" else natural
    if kind == "O" or not _fits(natural, made, element):
        raise ValueError(f"{subject}: expected numbers that fit into {element.ffi_name}")
    return made


def _strange_item(given: object, dtype: np.dtype[Any]) -> str | None:
    """What one of the items of nested sequences is, unless all are numbers of Python or of the dtype."""
    if isinstance(given, np.ndarray | np.generic):
        found = cast("np.dtype[Any]", given.dtype)
        return None if found == dtype else found.name
    if isinstance(given, list | tuple):
        found = (_strange_item(item, dtype) for item in cast("Sequence[object]", given))
        return next((each for each in found if each is not None), None)
    return None if isinstance(given, bool | int | float) else kind_of(given)


def _fits(natural: Array, made: Array, element: ElementType) -> bool:
    if not natural.size:
        return True
    if element.is_float:
        lost = np.isfinite(natural.astype(np.float64)) & ~np.isfinite(made.astype(np.float64))
        return not lost.any()
    if element.code == 6 or natural.dtype.kind == "b":
        return True
    low, high = (-(1 << (element.bits - 1)), 1 << (element.bits - 1)) if element.code == 0 else (0, 1 << element.bits)
    return low <= int(natural.min()) and int(natural.max()) < high


def signatures(notes: Mapping[str, str]) -> Mapping[str, Signature]:
    """The signatures in the notes of an executable, as far as it has them; `ValueError` for a damaged note."""
    return read_signatures(notes.get(SIGNATURES_NOTE, ""))
