"""Running prim_funcs: the reference for schedules and lowerings. Functions outside of the module are given from
Python, by the tvm-ffi registry, or by the C library; packed functions that take their arguments out of memory, as
`tir.call_boxed` has them, too.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import Float32Type, Float64Type, IndexType, IntegerType
from xdsl.ir import Attribute, Operation
from xdsl.traits import SymbolTable

from tir_dialect import dtypes
from tir_dialect.analysis.dims import layout_symbols
from tir_dialect.analysis.structure import written_buffers
from tir_dialect.calling_conventions import ANY_BYTES, TENSOR_OBJECT_HEADER, Kind, OldKind
from tir_dialect.dims import DimLike, MatchError, match
from tir_dialect.dtypes import from_dlpack, from_numpy, lookup, numpy_dtype
from tir_dialect.interpreter.emit_statements import STATEMENT_RULES
from tir_dialect.interpreter.emit_values import SCALAR_RULES, VECTOR_RULES, emit_elementwise
from tir_dialect.interpreter.emitter import Emitter, Rule
from tir_dialect.interpreter.numerics import (
    UnsupportedOpError,
    buffer_view,
    memory_at,
    outside_view,
    read_text,
    scalar_value,
)
from tir_dialect.ops.calls import CallBoxedOp, CallExternOp, CallOp, ForeignCallOp
from tir_dialect.ops.function import PrimFuncOp, require_prim_func
from tir_dialect.types import BufferType
from vm_dialect.numpy_library import register_functions_of_tvm

CPU = 1
_TO_OLD = {
    Kind.NONE: OldKind.NULL,
    Kind.INT: OldKind.INT,
    Kind.BOOL: OldKind.INT,
    Kind.FLOAT: OldKind.FLOAT,
    Kind.TENSOR: OldKind.TENSOR,
    Kind.TEXT: OldKind.TEXT,
}


class Packed:
    """Arguments in memory, which lives as long as this object."""

    def __init__(self, name: str, arguments: Sequence[object]):
        """Raises `TypeError` for a value that has no form there."""
        self._kept: list[object] = []
        self.boxes = (Box * (len(arguments) + 1))()
        for index, argument in enumerate(arguments):
            position = f"{name}: argument #{index}"
            box = self.boxes[index]
            match argument:
                case None:
                    box.kind = Kind.NONE
                case bool() | np.bool_():
                    box.kind, box.payload.integer = Kind.BOOL, int(argument)
                case int() | np.integer():
                    box.kind, box.payload.integer = Kind.INT, int(argument)
                case float() | np.floating():
                    box.kind, box.payload.number = Kind.FLOAT, float(argument)
                case str():
                    text = ctypes.create_string_buffer(argument.encode())
                    self._kept.append(text)
                    box.kind, box.payload.address = Kind.TEXT, ctypes.addressof(text)
                case _:
                    box.kind, box.payload.address = Kind.TENSOR, ctypes.addressof(self._tensor(position, argument))
        self.values = (Payload * len(self.boxes))(*(box.payload for box in self.boxes))
        kinds = [_TO_OLD[Kind(box.kind)] for box in self.boxes]
        self.kinds = np.array(kinds, np.int32)

    def _tensor(self, position: str, value: object) -> Tensor:
        array = self._array(position, value)
        shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
        steps = (step // array.itemsize for step in array.strides)
        strides = (ctypes.c_int64 * max(array.ndim, 1))(*steps)
        code, bits = lookup(from_numpy(array.dtype)).dlpack
        where = ctypes.addressof(shape), 0 if array.flags.c_contiguous else ctypes.addressof(strides)
        tensor = Tensor(array.ctypes.data, CPU, 0, array.ndim, code, bits, 1, *where, 0)
        self._kept += [array, shape, strides, tensor]
        return tensor

    @staticmethod
    def _array(position: str, value: Any) -> np.ndarray:
        if isinstance(value, np.ndarray):
            return cast("np.ndarray", value)
        if hasattr(value, "__dlpack__"):
            return np.from_dlpack(value)
        raise TypeError(f"{position} expected an array, a number, a text or None, got a {type(value).__name__}")


class Tensor(ctypes.Structure):
    """A `DLTensor`."""

    _fields_ = (
        ("data", ctypes.c_uint64),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("type_code", ctypes.c_uint8),
        ("type_bits", ctypes.c_uint8),
        ("type_lanes", ctypes.c_uint16),
        ("shape", ctypes.c_uint64),
        ("strides", ctypes.c_uint64),
        ("byte_offset", ctypes.c_uint64),
    )


class Payload(ctypes.Union):
    """The eight bytes of a value."""

    _fields_ = (("integer", ctypes.c_int64), ("number", ctypes.c_double), ("address", ctypes.c_uint64))


class Box(ctypes.Structure):
    """A `TVMFFIAny`."""

    _fields_ = (("kind", ctypes.c_int32), ("padding", ctypes.c_int32), ("payload", Payload))


def call_boxed(name: str, function: Callable[..., Any], values: int, count: int) -> None:
    """Calls a function with the values at an address; the result goes after them."""
    boxes = [Box.from_address(values + index * ANY_BYTES) for index in range(count + 1)]
    box_result(name, boxes[-1], function(*(unboxed(name, each) for each in boxes[:-1])))


def unboxed(name: str, box: Box) -> Any:
    """What a box holds, as Python has it; a tensor is an array on its memory."""
    match box.kind:
        case Kind.NONE:
            return None
        case Kind.INT:
            return box.payload.integer
        case Kind.BOOL:
            return bool(box.payload.integer)
        case Kind.FLOAT:
            return box.payload.number
        case Kind.POINTER:
            return ctypes.c_void_p(box.payload.address)
        case Kind.TEXT:
            return read_text(box.payload.address)
        case Kind.TENSOR:
            return array_of(Tensor.from_address(box.payload.address))
        case Kind.TENSOR_OBJECT:
            return array_of(Tensor.from_address(box.payload.address + TENSOR_OBJECT_HEADER))
        case other:
            raise UnsupportedOpError(f"'tir.call_boxed' of \"{name}\" with a value of type index {other}")


def array_of(tensor: Tensor) -> np.ndarray:
    """The array that a tensor describes; `TypeError` or `ValueError` for elements that NumPy does not have."""
    if tensor.type_lanes != 1:
        raise TypeError(f"expected a tensor of elements with one lane, got {tensor.type_lanes}")
    dtype = numpy_dtype(from_dlpack(tensor.type_code, tensor.type_bits))
    shape = _integers(tensor.shape, tensor.ndim)
    strides = _integers(tensor.strides, tensor.ndim) if tensor.strides else _row_major(shape)
    if 0 in shape:
        return np.empty(shape, dtype)
    return memory_at(tensor.data + tensor.byte_offset, shape, strides, dtype)


def _integers(address: int, count: int) -> list[int]:
    return list((ctypes.c_int64 * count).from_address(address)) if count else []


def _row_major(shape: list[int]) -> list[int]:
    strides = [1] * len(shape)
    for axis in range(len(shape) - 1, 0, -1):
        strides[axis - 1] = strides[axis] * shape[axis]
    return strides


def box_result(name: str, box: Box, value: object) -> None:
    """Puts a result into a box: a number, a truth value or nothing."""
    box.padding, box.payload.integer = 0, 0
    match value:
        case None:
            box.kind = Kind.NONE
        case bool():
            box.kind, box.payload.integer = Kind.BOOL, int(value)
        case int():
            box.kind, box.payload.integer = Kind.INT, value
        case float():
            box.kind, box.payload.number = Kind.FLOAT, value
        case _:
            raise UnsupportedOpError(f"'tir.call_boxed' of \"{name}\", which returned a {type(value).__name__}")


Extern = Callable[..., Any]
"""A Python function; buffers arrive as NumPy arrays, scalars as numbers."""

_RUN_TIME: dict[str, Extern] = {"relax_max_threads": lambda: 1}
"""What the run time of compiled kernels has: parallel loops are interpreted on one thread."""

_C_INTEGERS = {8: ctypes.c_int8, 16: ctypes.c_int16, 32: ctypes.c_int32, 64: ctypes.c_int64}


def foreign_function(op: ForeignCallOp, externs: Mapping[str, Extern]) -> Callable[..., Any]:
    """What stands for the callee of `op`: an entry of `externs`, else a C or a registered function.

    Raises `UnsupportedOpError` if there is none of that name, or a C function whose types have no C equivalent.
    """
    types = [argument.type for argument in op.arguments]
    result = None if op.result is None else op.result.type
    name = op.function.data
    function = externs.get(name) or _RUN_TIME.get(name)
    if function is None:
        function = _c_function(name, types, result) if isinstance(op, CallExternOp) else _packed_function(name)

    def call(*arguments: Any) -> Any:
        value = function(*(_outside(argument, type) for argument, type in zip(arguments, types, strict=True)))
        return None if result is None else scalar_value(value, result)

    return call


def boxed_function(op: CallBoxedOp, externs: Mapping[str, Extern]) -> Callable[[int, int], None]:
    """What stands for the callee of `op`, as a function of where its arguments lie and how many they are."""
    name = op.function.data
    function = externs.get(name) or _packed_function(name)
    return partial(call_boxed, name, function)


def _outside(argument: Any, type: Attribute) -> Any:
    return outside_view(argument, type.dtype) if isinstance(type, BufferType) else argument


def _packed_function(name: str) -> Extern:
    import tvm_ffi

    from vm_dialect.errors import register_error_types

    register_error_types()
    register_functions_of_tvm()
    function = tvm_ffi.get_global_func(name, allow_missing=True)
    if function is None:
        raise UnsupportedOpError(f"'tir.call_packed' of \"{name}\", which is not a registered function")

    def call(*arguments: Any) -> Any:
        return function(*map(_to_ffi, arguments))

    return call


def _to_ffi(argument: Any) -> Any:
    import tvm_ffi

    if isinstance(argument, np.ndarray):
        return tvm_ffi.from_dlpack(argument)
    return argument if isinstance(argument, int | str | None | ctypes.c_void_p) else float(argument)


def _c_function(name: str, types: list[Attribute], result: Attribute | None) -> Extern:
    function = getattr(ctypes.CDLL(None), name, None)
    if function is None:
        raise UnsupportedOpError(f"'tir.call_extern' of \"{name}\", which is not among the externs or in the C library")
    function.argtypes = [_c_type(name, type) for type in types]
    function.restype = None if result is None else _c_type(name, result)

    def call(*arguments: Any) -> Any:
        return function(*(_to_c(argument) for argument in arguments))

    return call


def _to_c(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        return argument.ctypes.data
    return argument if isinstance(argument, int) else float(argument)


def _c_type(name: str, type: Attribute) -> Any:
    match type:
        case BufferType():
            return ctypes.c_void_p
        case IndexType():
            return ctypes.c_int64
        case Float32Type():
            return ctypes.c_float
        case Float64Type():
            return ctypes.c_double
        case IntegerType() if type.width.data in _C_INTEGERS:
            return _C_INTEGERS[type.width.data]
        case _:
            raise UnsupportedOpError(f"'tir.call_extern' of \"{name}\" with type {type}; pass the function in externs")


Pairs = Sequence[tuple[int, int]]
"""Positions of two parameters, the later one first."""


def pairs_apart(func: PrimFuncOp) -> Pairs:
    """The parameters of which one is written, so that the other one must be apart from it."""
    if func.may_alias is not None:
        return ()
    written = written_buffers(func)
    changes = [param in written for param in func.params]
    return [
        (index, other) for index in range(len(changes)) for other in range(index) if changes[index] or changes[other]
    ]


def check_apart(
    func: PrimFuncOp,
    pairs: Pairs,
    args: Sequence[np.ndarray | int | float | np.number[Any] | np.bool_],
    *,
    inner: bool = False,
) -> None:
    """Raises `ValueError` if such arguments overlap, as compiled functions do: from the first to the last byte.

    `inner` arguments are those of `tir.call`: views of one buffer, which may lie between each other's rows.
    """
    for index, other in pairs:
        one, two = args[index], args[other]
        if isinstance(one, np.ndarray) and isinstance(two, np.ndarray) and _overlap(one, two, inner):
            subject = f"{func.sym_name.data}: {_describe(func, index)}"
            raise ValueError(f"{subject}: overlaps {_describe(func, other)}: pass a copy")


def _overlap(one: np.ndarray, two: np.ndarray, inner: bool) -> bool:
    if not np.may_share_memory(one, two):
        return False
    return not inner or np.shares_memory(one, two)


def _describe(func: PrimFuncOp, index: int) -> str:
    name = func.params[index].name_hint
    return f"argument #{index} ({name})" if name else f"argument #{index}"


_RULES: dict[type[Operation], Rule] = {
    **STATEMENT_RULES,
    **SCALAR_RULES,
    **VECTOR_RULES,
}


def rule_of(op: Operation) -> Rule:
    """The rule for an op; what has none of its own is taken for elementwise arithmetic, whose rule refuses the rest."""
    return _RULES.get(type(op), emit_elementwise)


Order = Callable[[range], Iterable[int]]
"""In which order the iterations of a parallel loop run."""

Argument: TypeAlias = np.ndarray | int | float | np.number[Any] | np.bool_
"""An array for a buffer (of the logical shape, with the buffer's dtype), or a number for a scalar."""


class Run(Protocol):
    """What runs a function; as `run_prim_func`."""

    def __call__(self, args: Sequence[Argument], symbols: Mapping[str, int] | None = None, /) -> None: ...


def run_prim_func(
    func: PrimFuncOp,
    args: Sequence[Argument],
    symbols: Mapping[str, int] | None = None,
    *,
    externs: Mapping[str, Extern] | None = None,
    parallel_order: Order = iter,
) -> None:
    """Runs `func` on `args`, one per parameter; buffers are read and written in place.

    Symbols are bound from the shapes of the arrays, as far as `symbols` does not give their values, and those that are
    only strides or offsets of parameters from the strides, in elements, and as 0. `externs` are
    Python functions for `tir.call_extern` and `tir.call_packed`; others are looked for in the C library and the tvm-ffi
    registry. `parallel_order` reorders the iterations of parallel loops.

    Arithmetic is the machine's: integers wrap, and give 0 if divided by 0, each floating-point op rounds to its type.
    Raises `TypeError` and `ValueError` for arguments that do not fit, `ValueError` for memory that is written and part
    of another argument unless the function says `may_alias`, `OutOfRangeError` for an access outside a buffer,
    `ValueError` for a failed assertion, `ZeroDivisionError` for an index that is divided by 0, and `UnsupportedOpError`
    for ops without semantics.
    """
    compile_prim_func(func, externs=externs, parallel_order=parallel_order)(args, symbols)


def compile_prim_func(
    func: PrimFuncOp, *, externs: Mapping[str, Extern] | None = None, parallel_order: Order = iter
) -> Run:
    """`run_prim_func` for several runs of one function, which must not change in between."""
    require_prim_func("run_prim_func", func)
    main = _Program(externs or {}, parallel_order).function(func)
    pairs = pairs_apart(func)

    def run(args: Sequence[Argument], symbols: Mapping[str, int] | None = None) -> None:
        values = bind_symbols(func, args, symbols or {})
        check_apart(func, pairs, args)
        inner = [_inside(arg, param.type) for arg, param in zip(args, func.params, strict=True)]
        with np.errstate(all="ignore"):
            main(*(values[name] for name in func.symbol_names), *inner)

    return run


def source_of(func: PrimFuncOp) -> str:
    """The Python text that runs `func`, for looking at."""
    return Emitter(func, rule_of, lambda op: None, lambda op: None).source()


class _Program:
    """The functions that a run may call, each compiled once, when it is first called."""

    def __init__(self, externs: Mapping[str, Extern], parallel_order: Order):
        self._externs = externs
        self._order = parallel_order
        self._functions: dict[PrimFuncOp, Callable[..., None]] = {}

    def function(self, func: PrimFuncOp) -> Callable[..., None]:
        found = self._functions.get(func)
        if found is None:
            emitter = Emitter(func, rule_of, self._callee, self._foreign)
            source = emitter.source()
            emitter.namespace["parallel_order"] = self._order
            exec(compile(source, f"<tir.prim_func @{func.sym_name.data}>", "exec"), emitter.namespace)
            found = self._functions[func] = emitter.namespace["main"]
        return found

    def _foreign(self, op: ForeignCallOp | CallBoxedOp) -> Callable[..., Any]:
        if isinstance(op, CallBoxedOp):
            return boxed_function(op, self._externs)
        return foreign_function(op, self._externs)

    def _callee(self, op: CallOp) -> Callable[..., None]:
        func = SymbolTable.lookup_symbol(op, op.callee)
        if not isinstance(func, PrimFuncOp):
            raise UnsupportedOpError(f"'tir.call' of {op.callee}, which is not a 'tir.prim_func' of the module")
        count, pairs = len(func.symbols), () if op.unchecked is not None else pairs_apart(func)

        def call(*values: Any) -> None:
            bind_symbols(func, values[count:], dict(zip(func.symbol_names, values[:count], strict=True)), inner=True)
            check_apart(func, pairs, values[count:], inner=True)
            self.function(func)(*values)

        return call


def bind_symbols(
    func: PrimFuncOp, args: Sequence[Argument], symbols: Mapping[str, int], *, inner: bool = False
) -> dict[str, int]:
    """The values of all symbols of `func`, from `symbols` and the shapes of `args`; checks the arguments.

    `inner` arrays are those of running programs, in which unsigned elements are seen as signed.
    """
    name = func.sym_name.data
    if len(args) != len(func.params):
        raise TypeError(f"{name}: expected {len(func.params)} arguments, got {len(args)}")
    unknown = sorted(symbols.keys() - set(func.symbol_names))
    if unknown:
        raise ValueError(f"{name}: {unknown[0]} is not a symbol of the function")
    known = [_Known(symbol, value, f"symbol {symbol}") for symbol, value in symbols.items()]
    known += [*_from_shapes(func, args, inner=inner), *_from_strides(func, args, symbols)]
    try:
        bound = match([each.pattern for each in known], [each.value for each in known])
    except MatchError as error:
        raise ValueError(f"{name}: {known[error.source].location}: {error}") from None
    missing = [symbol for symbol in func.symbol_names if symbol not in bound]
    if missing:
        raise ValueError(f"{name}: symbol {missing[0]} cannot be bound from the arguments, pass its value")
    return bound


@dataclass(frozen=True)
class _Known:
    """A dimension whose value a call tells, and where it tells it."""

    pattern: DimLike
    value: int
    location: str


def _from_shapes(func: PrimFuncOp, args: Sequence[Argument], *, inner: bool) -> Iterator[_Known]:
    """What the shapes of arrays tell; checks the kinds of the arguments."""
    name = func.sym_name.data
    for index, (arg, param) in enumerate(zip(args, func.params, strict=True)):
        position = f"argument #{index} ({param.name_hint})" if param.name_hint else f"argument #{index}"
        type = param.type
        if isinstance(type, BufferType):
            array = _check_array(arg, type, f"{name}: {position}", inner=inner)
            for axis, (pattern, extent) in enumerate(zip(type.shape, array.shape, strict=True)):
                yield _Known(pattern, extent, f"{position} dimension {axis}")
        elif isinstance(arg, np.ndarray):
            raise TypeError(f"{name}: {position} expected a number, got an array")


def _from_strides(func: PrimFuncOp, args: Sequence[Argument], symbols: Mapping[str, int]) -> Iterator[_Known]:
    """What the strides of arrays tell of symbols that are not given."""
    for each in layout_symbols([param.type for param in func.params]):
        array = args[each.param]
        if each.name not in symbols and isinstance(array, np.ndarray):
            position = f"argument #{each.param} ({func.params[each.param].name_hint}) stride {each.axis}"
            stride = 0 if each.axis is None else _stride(array, each.axis, f"{func.sym_name.data}: {position}")
            yield _Known(each.name, stride, position)


def _stride(array: np.ndarray, axis: int, position: str) -> int:
    """In elements; ValueError if it is negative or not a number of them."""
    count, rest = divmod(array.strides[axis], array.itemsize)
    if count < 0 or rest:
        raise ValueError(
            f"{position}: expected at least 0 elements of {array.itemsize} bytes, got {array.strides[axis]}"
        )
    return count


def _check_array(arg: Argument, type: BufferType, position: str, *, inner: bool) -> np.ndarray:
    if not isinstance(arg, np.ndarray):
        raise TypeError(f"{position} expected an array, got {arg.__class__.__name__}")
    expected = dtypes.numpy_dtype(type.element_type if inner else type.dtype)
    if arg.dtype != expected or arg.ndim != type.rank:
        raise TypeError(
            f"{position} expected rank {type.rank} and dtype {expected}, got rank {arg.ndim} and dtype {arg.dtype}"
        )
    dtypes.check_extents(arg.shape, arg.itemsize, position)
    return arg


def _inside(arg: Argument, type: Attribute) -> Any:
    if isinstance(arg, np.ndarray) and isinstance(type, BufferType):
        return buffer_view(arg, type.dtype)
    if isinstance(arg, np.ndarray):
        raise TypeError("expected a number, got an array")
    return scalar_value(arg, type)
