"""Deferred functions at run time: each is compiled once for every combination of types that it is called with.
It gets the types that its arguments turn out to have.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from threading import RLock
from typing import Any, TypeAlias, cast

import tvm_ffi
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from lowering.compiler.build import build
from lowering.diagnostics import InvalidModule
from lowering.locations import source_position
from lowering.parsing import parse_module
from lowering.relax.functions.bind_params import bind_symbols
from lowering.relax.infer_struct_info import ResultTypes
from lowering.relax.unknown_types import Options, is_deferred
from lowering.verify import verify_module
from relax_dialect.function_symbols import all_symbols
from relax_dialect.inference import InfersResultTypes, Refuted, operand_error_class
from relax_dialect.ops.structure import FuncOp
from relax_dialect.struct_info.types import (
    FuncType,
    ObjectType,
    PrimType,
    Shape,
    ShapeType,
    StructInfo,
    TensorType,
    TupleType,
)
from tir_dialect.dims import DimLike
from tir_dialect.dtypes import parse_dtype
from vm_dialect import VirtualMachine
from vm_dialect.dtypes import element_type

Key: TypeAlias = Hashable


def kind_key(value: Any) -> Key:
    """The kind of a value, with rank and dtype of tensors; equal ones have the same symbolic types."""
    if isinstance(value, tvm_ffi.Tensor):
        return (len(value.shape), value.dtype)
    if isinstance(value, tvm_ffi.Shape):
        return len(value)
    if isinstance(value, tvm_ffi.Array):
        return tuple(map(kind_key, cast("tvm_ffi.Array[Any]", value)))
    return None


def value_key(value: Any) -> Key:
    """What inference may look at of a value: also dimensions."""
    if isinstance(value, tvm_ffi.Tensor):
        return (tuple(value.shape), value.dtype)
    if isinstance(value, tvm_ffi.Shape):
        return tuple(cast("Sequence[int]", value))
    if isinstance(value, tvm_ffi.Array):
        return tuple(map(value_key, cast("tvm_ffi.Array[Any]", value)))
    return value if isinstance(value, int) else None


class TypesOfValues:
    """Types of values whose dimensions are new symbols, or the numbers that they are."""

    def __init__(self, taken: set[str], *, static: bool):
        """`taken` are symbols that may not be used; with `static`, dimensions are numbers."""
        self._taken = taken
        self._static = static
        self.symbols: list[str] = []
        """Those that have been made."""

    def of(self, value: Any, declared: StructInfo) -> StructInfo:
        """The type of a value of which `declared` was known before."""
        if isinstance(value, tvm_ffi.Tensor) and isinstance(declared, TensorType | ObjectType):
            dims = declared.dims if isinstance(declared, TensorType) else None
            device = declared.device if isinstance(declared, TensorType) else None
            return TensorType(self._shape(value.shape, dims), parse_dtype(element_type(str(value.dtype)).name), device)
        if isinstance(value, tvm_ffi.Shape) and isinstance(declared, ShapeType | ObjectType):
            return ShapeType(self._shape(value, declared.dims if isinstance(declared, ShapeType) else None))
        if isinstance(value, tvm_ffi.Array) and isinstance(declared, TupleType):
            fields = cast("tvm_ffi.Array[Any]", value)
            return TupleType(self.of(*pair) for pair in zip(fields, declared.fields, strict=True))
        return declared

    def _shape(self, numbers: Sequence[int], declared: Shape) -> list[DimLike]:
        known = [None] * len(numbers) if declared is None else declared
        return [
            (int(number) if self._static else self._fresh()) if dim is None else dim
            for number, dim in zip(numbers, known, strict=True)
        ]

    def _fresh(self) -> str:
        number = len(self.symbols)
        while (name := f"s{number}") in self._taken:
            number += 1
        self._taken.add(name)
        self.symbols.append(name)
        return name


def bindings(value: Any, info: StructInfo) -> dict[str, int]:
    """The values of the symbols that stand alone in the type of a value."""
    found: dict[str, int] = {}
    if isinstance(info, TensorType | ShapeType):
        numbers = value.shape if isinstance(value, tvm_ffi.Tensor) else value
        for dim, number in zip(info.dims or (), numbers, strict=False):
            if dim is not None and dim.as_symbol is not None:
                found[dim.as_symbol] = int(number)
    elif isinstance(info, PrimType) and info.symbol is not None:
        found[info.symbol] = int(value)
    elif isinstance(info, TupleType):
        for field, part in zip(value, info.fields, strict=True):
            found |= bindings(field, part)
    return found


def for_kinds(template: FuncOp, arguments: Sequence[Any]) -> FuncOp:
    """The function for the ranks and dtypes of the arguments; its dimensions are symbols.

    `TypeError` if an op cannot take these, `ValueError` if only dimensions are wrong.
    """
    func = _with_types(template, arguments, static=False)
    _infer(func)
    return func


def for_values(template: FuncOp, arguments: Sequence[Any]) -> FuncOp:
    """The function for the shapes of the arguments; raises as `for_kinds`."""
    func = _with_types(template, arguments, static=True)
    values: dict[str, int] = {}
    for argument, info in zip(arguments, func.function_type.params, strict=True):
        values |= bindings(argument, info)
    try:
        if func.symbols:
            bind_symbols(func, {name: values[name] for name in func.function_type.symbol_names})
    except InvalidModule as error:
        raise run_time_error(error) from error
    _infer(func)
    return func


def needs_values(func: FuncOp) -> bool:
    """Whether ranks are left that follow from dimensions."""
    return any(is_deferred(op) for op in func.body.block.ops)


def run_time_error(error: InvalidModule) -> ValueError | TypeError:
    """The first finding of a report, as an error at run time."""
    found = error.findings[0]
    return _error_class(found.op)(_at(found.op, found.message))


def _error_class(op: Operation) -> type[ValueError | TypeError]:
    if not isinstance(op, InfersResultTypes):
        return TypeError
    return operand_error_class(type(op), op.operand_types, op.properties)


def _at(op: Operation, message: str) -> str:
    parent = op.parent_op()
    function = op if isinstance(op, FuncOp) else parent
    name = f"{function.sym_name.data}: " if isinstance(function, FuncOp) else ""
    where = str(source_position(op.location))
    return f"{name}{message}{f' at {where}' if where else ''}"


def _with_types(template: FuncOp, arguments: Sequence[Any], *, static: bool) -> FuncOp:
    old = template.function_type
    types = TypesOfValues(all_symbols(template), static=static)
    params = [types.of(*pair) for pair in zip(arguments, old.params, strict=True)]
    func = FuncOp(template.sym_name.data, FuncType(params, old.ret, symbols=[*old.symbols, *types.symbols]))
    func.location = template.location
    values: dict[SSAValue, SSAValue] = dict(zip(template.params, func.params, strict=True))
    values |= zip(template.witnesses, func.witnesses[: len(old.symbols)], strict=True)
    for before, after in values.items():
        after.name_hint = before.name_hint
    func.name_params(template.param_names)
    for op in template.body.block.ops:
        func.body.block.add_op(op.clone(values))
    ModuleOp([func])
    return func


def _infer(func: FuncOp) -> None:
    """Infers all types anew; errors name the function and the op."""
    types = ResultTypes()
    for op in func.body.block.ops:
        try:
            types.infer(op)
        except Refuted as error:
            facts, dims = error.check.facts
            raise _error_class(op)(f"{_at(op, error.check.message)}: {facts.format(*dims)}") from error
        except (VerifyException, ValueError) as error:
            raise _error_class(op)(_at(op, str(error))) from error


MAX_KEPT = 256
"""Compiled functions that one deferred function keeps; the oldest goes first."""


class DeferredFunction:
    """A function whose parameters have types that are not wholly known."""

    def __init__(self, text: str):
        """Reads and verifies the text; raises what a module that is read raises."""
        self._options = Options.of(text)
        module = parse_module(text, "<deferred>")
        verify_module(module)
        self._template = next(op for op in module.ops if isinstance(op, FuncOp))
        self._compiled: dict[Key, Callable[..., Any]] = {}
        self._dependent: set[Key] = set()
        """Kinds of arguments for which ranks follow from their shapes."""
        self._lock = RLock()

    def __call__(self, arguments: Sequence[Any]) -> Any:
        """Calls it; `TypeError` or `ValueError` if an op cannot take the arguments."""
        key: Key = tuple(map(kind_key, arguments))
        if key in self._dependent:
            key = tuple(map(value_key, arguments))
        function = self._compiled.get(key)
        if function is None:
            with self._lock:
                function = self._compiled.get(key) or self._compile(arguments, key)
        return function(*arguments)

    def _compile(self, arguments: Sequence[Any], key: Key) -> Callable[..., Any]:
        func = for_kinds(self._template, arguments)
        if needs_values(func):
            self._dependent.add(tuple(map(kind_key, arguments)))
            func, key = for_values(self._template, arguments), tuple(map(value_key, arguments))
        function = _machine_code(func, self._options)
        while len(self._compiled) >= MAX_KEPT:
            del self._compiled[next(iter(self._compiled))]
        self._compiled[key] = function
        return function


def _machine_code(func: FuncOp, options: Options) -> Callable[..., Any]:
    module = func.parent_op()
    if not isinstance(module, ModuleOp):
        raise ValueError("a deferred function has to be in a module")
    try:
        built = build(module, target=options.target, opt_level=options.opt_level)
        return VirtualMachine(built)[func.sym_name.data]
    except InvalidModule as error:
        raise run_time_error(error) from error


_finding = RLock()


@lru_cache(maxsize=4096)
def deferred_function(text: str) -> DeferredFunction:
    """The function that a text is."""
    return DeferredFunction(text)


def run_deferred(text: str, *arguments: Any) -> Any:
    """Calls the function that a text is, compiled for the arguments."""
    with _finding:  # threads that miss in the cache at once would get a function each, and compile twice
        function = deferred_function(text)
    return function(arguments)
