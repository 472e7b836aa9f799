"""Running prim_funcs: the reference for schedules and lowerings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from xdsl.ir import Attribute
from xdsl.traits import SymbolTable

from tir_dialect import dtypes
from tir_dialect.analysis.layout_symbols import layout_symbols
from tir_dialect.dims import DimLike, MatchError, match
from tir_dialect.interpreter.emitter import Emitter
from tir_dialect.interpreter.errors import UnsupportedOpError
from tir_dialect.interpreter.foreign import Extern, boxed_function, foreign_function
from tir_dialect.interpreter.overlaps import check_apart, pairs_apart
from tir_dialect.interpreter.rules import rule_of
from tir_dialect.interpreter.widths import buffer_view, scalar_value
from tir_dialect.ops.boxed_calls import CallBoxedOp
from tir_dialect.ops.calls import CallOp, ForeignCallOp
from tir_dialect.ops.function import PrimFuncOp, require_prim_func
from tir_dialect.types import BufferType

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
