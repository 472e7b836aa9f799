"""Translation validation: what public functions compute is compared before and after each pass, on inputs drawn from
their signatures.

Inputs are drawn from the signatures, with every symbol at several small sizes; the program as it was at first is the
reference. A program of the graph level is interpreted, one of the machine runs as bytecode, with its kernels
interpreted while they are loops, and LLVM functions run natively. A call that fails at first is compared with nothing:
its inputs are not what the function is for.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeGuard, cast

import numpy as np
import tvm_ffi
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import DiagnosticException

from lowering.llvm.binding import CodegenError
from relax_dialect.ops.structure import FuncOp
from relax_dialect.struct_info.types import FuncType, ObjectType, PrimType, ShapeType, TensorType, TupleType
from tir_dialect.dims import Dim
from tir_dialect.dtypes import is_bool, is_float, is_integer, is_unsigned, numpy_dtype
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.types import SymbolAttr
from vm_dialect.executable import Executable
from vm_dialect.tensors import from_numpy, to_numpy

if TYPE_CHECKING:
    from tir_dialect.interpreter import Run

Array: TypeAlias = NDArray[Any]

UNKNOWN_SHAPE = (2, 3)
"""The shape of a tensor whose rank is unknown; a dimension that is unknown is as long as the first symbol."""


class CannotDraw(Exception):
    """A type of which no value can be made."""


def symbol_values(symbols: Sequence[SymbolAttr], sizes: Sequence[int]) -> dict[str, int]:
    """The sizes of the symbols, within their bounds."""
    values: dict[str, int] = {}
    for index, bound in enumerate(symbols):
        lower, upper = bound.interval
        size = max(lower, sizes[index % len(sizes)])
        values[bound.symbol.data] = size if upper is None else min(size, upper)
    return values


@dataclass(frozen=True)
class Draw:
    """Draws values of types for given sizes."""

    random: np.random.Generator
    symbols: Mapping[str, int]
    other: int
    """The length of what has no known size."""
    integers: tuple[int, int] = (-1, 4)
    """Integers are at least the first, and below the second."""

    def value(self, info: Attribute) -> object:
        """A value of the type; arrays for tensors."""
        match info:
            case TensorType():
                dims = info.dims
                shape = UNKNOWN_SHAPE if dims is None else tuple(map(self._size, dims))
                return self._array(shape, info.dtype or f32)
            case ShapeType():
                return tvm_ffi.Shape(tuple(map(self._size, info.dims or (None, None))))
            case PrimType():
                return self._size(info.value) if info.value is not None else self._array((), info.dtype).item()
            case TupleType():
                return tuple(map(self.value, info.fields))
            case _:
                raise CannotDraw

    def _size(self, dim: Dim | None) -> int:
        try:
            size = self.other if dim is None else dim.evaluate(self.symbols)
        except (KeyError, ZeroDivisionError, ValueError) as error:
            raise CannotDraw from error
        if size < 0:
            raise CannotDraw
        return size

    def _array(self, shape: tuple[int, ...], dtype: Attribute) -> Array:
        if is_bool(dtype):
            drawn = self.random.integers(0, 2, shape)
        elif is_integer(dtype):
            low, high = self.integers
            drawn = self.random.integers(max(low, 0) if is_unsigned(dtype) else low, high, shape)
        elif is_float(dtype):
            drawn = self.random.standard_normal(shape)
        else:
            raise CannotDraw
        return np.asarray(drawn).astype(numpy_dtype(dtype))


SIZES: Sequence[Sequence[int]] = ((3, 5, 2, 4), (1,), (0,), (2, 7, 3))
"""What the symbols of a function are in each of its calls, in turn."""

TOLERANCES: Mapping[str, float] = {"float64": 1e-9, "float32": 1e-4, "float16": 2e-2, "bfloat16": 6e-2}
"""How much two floats may differ, relative to the largest in the tensor: passes change the order of sums. Narrower ones
may differ by a quarter.
"""

NARROW = 0.25

MAX_ITERATIONS, MAX_INSTRUCTIONS = 5_000, 2_000_000
"""Calls and iterations of a graph, and instructions of bytecode: on inputs that were drawn there may be no end."""

NO_RUN = (DiagnosticException, CodegenError, NotImplementedError)
"""What says that a module cannot be run as it is."""


class ValueChanged(DiagnosticException):
    """A pass that changes what a function computes."""


@dataclass(frozen=True)
class Call:
    """A call of a function on inputs that were drawn."""

    function: str
    sizes: Mapping[str, int]
    arguments: tuple[object, ...]

    def __str__(self) -> str:
        sizes = ", ".join(f"{name} = {size}" for name, size in self.sizes.items())
        return f"@{self.function}{f' with {sizes}' if sizes else ''}"


Mode: TypeAlias = Literal["native", "bytecode"]
Build: TypeAlias = Callable[[ModuleOp, Mode, Mapping[str, Any]], Executable]
"""Compiles a module whose constants are given by name."""


@dataclass
class Validation:
    """Compares a module with what it was at first, after each of its passes."""

    build: Build
    """What compiles modules of the levels that only run compiled."""

    weights: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The constants that the module refers to by name."""

    seed: int = 0
    notes: list[str] = field(default_factory=list[str])
    """What was not validated, and why."""

    validated: int = 0
    """How many passes were."""

    _signatures: dict[str, FuncType] = field(default_factory=dict[str, FuncType])
    _expected: list[tuple[Call, object]] = field(default_factory=list[tuple[Call, object]])

    def begin(self, module: ModuleOp) -> None:
        """Takes what the functions of a module compute now as what they have to compute."""
        program = _exposed(module)
        self._signatures = _signatures(program)
        self._expected = []
        for name, signature in self._signatures.items():
            calls = list(self._calls(name, signature))
            if not calls:
                self.notes.append(f"@{name} is not validated: no inputs can be drawn for its parameters")
            run = runner(program, self.build, self.weights)
            outcomes = [(call, outcome(run, call)) for call in calls]
            failures = [found for _, found in outcomes if isinstance(found, Failure)]
            if calls and len(failures) == len(calls):
                self.notes.append(f"@{name} is not validated: it fails on all inputs drawn: {failures[0].message}")
            self._expected += [(call, found) for call, found in outcomes if not isinstance(found, Failure)]

    def after(self, module: ModuleOp, pass_name: str) -> None:
        """Raises `ValueChanged` if a function computes something else than it did at first."""
        program = _exposed(module)
        if self._begins_anew(program):
            self.notes.append(f"{pass_name} is not validated: it changes the signatures of functions")
            self.begin(module)
            return
        try:
            run = runner(program, self.build, self.weights)
        except (*NO_RUN, ValueError) as error:  # also a packed function that is nowhere
            self.notes.append(f"{pass_name} is not validated: its result cannot be run: {_first_line(error)}")
            return
        self._compare(run, f"pass '{pass_name}'")

    def executable(self, executable: Executable) -> None:
        """Raises `ValueChanged` if the compiled functions compute something else."""
        self._compare(machine(executable), "the compilation to machine code")

    def report(self) -> str:
        """How much was compared, and what was not."""
        functions = {call.function for call, _ in self._expected}
        first = f"validated {self.validated} passes by {len(self._expected)} calls of {len(functions)} functions"
        return "\n".join([first, *dict.fromkeys(self.notes)])

    def _compare(self, run: Runner, what: str) -> None:
        for call, expected in self._expected:
            found = outcome(run, call)
            if isinstance(found, Failure) and found.cannot_run:
                self.notes.append(f"{what} is not validated: its result cannot be run: {found.message}")
                return
            if (changed := outcomes_differ(found, expected)) is not None:
                raise ValueChanged(f"{what} changes a value: {call}: {changed}")
        self.validated += bool(self._expected)

    def _begins_anew(self, module: ModuleOp) -> bool:
        """Whether functions take other arguments now; that they take objects only says that checks are explicit."""
        now = _signatures(module)
        if not now:
            return not any(op.name in ("vm.func", "llvm.func") for op in module.ops)
        return any(
            name not in now or (_takes(now[name]) != _takes(was) and not _is_general(now[name], was))
            for name, was in self._signatures.items()
        )

    def _calls(self, name: str, signature: FuncType) -> Iterator[Call]:
        made: set[tuple[int, ...]] = set()
        for number, sizes in enumerate(SIZES):
            values = symbol_values(signature.symbols, sizes)
            if (key := tuple(values.values())) in made:
                continue
            made.add(key)
            draw = Draw(np.random.default_rng((self.seed, number)), values, sizes[0])
            try:
                yield Call(name, values, tuple(draw.value(info) for info in signature.params))
            except CannotDraw:
                continue


Runner: TypeAlias = Callable[[str, Sequence[object]], object]


@dataclass(frozen=True)
class Failure:
    """A call that raised."""

    message: str
    cannot_run: bool
    """Whether it is no fault of the arguments: there is nothing that runs such a module."""


def _exposed(module: ModuleOp) -> ModuleOp:
    """A module whose kernels can be called if it has nothing else."""
    from lowering.relax.functions.expose_prim_funcs import ExposePrimFuncsPass

    copy = module.clone()
    try:
        ExposePrimFuncsPass().apply(Context(), copy)
    except DiagnosticException:  # kernels that cannot be called with tensors
        return module.clone()
    return copy


def _signatures(module: ModuleOp) -> dict[str, FuncType]:
    functions = [op for op in module.ops if isinstance(op, FuncOp) and not op.is_private]
    return {func.sym_name.data: func.function_type for func in functions}


def _takes(signature: FuncType) -> tuple[object, ...]:
    return (*signature.params, *signature.symbols)


def _is_general(now: FuncType, was: FuncType) -> bool:
    return len(now.params) == len(was.params) and all(isinstance(param, ObjectType) for param in now.params)


def runner(module: ModuleOp, build: Build, weights: Mapping[str, Any]) -> Runner:
    """What runs the functions of a module: the interpreter for graphs; bytecode for functions of the machine, with
    kernels that are interpreted as long as they are loops; LLVM functions run natively, compiled by `build`.
    """
    levels = {op.name for op in module.ops}
    if "llvm.func" in levels:
        return machine(build(module, "native", weights))
    from vm_dialect.builtins import register_globals

    register_globals()  # what was deferred calls one of them
    if "vm.func" in levels:
        from lowering.relax_to_vm.allocate_registers import AllocateRegistersPass
        from tir_dialect.interpreter import compile_prim_func
        from vm_dialect import VirtualMachine
        from vm_dialect.codegen import emit_executable

        kernels = {op.sym_name.data: _interpreted(op, compile_prim_func(op)) for op in module.ops if _is_kernel(op)}
        lowered = module.clone()
        AllocateRegistersPass().apply(Context(), lowered)
        executable = emit_executable(lowered, tensors=dict(weights))
        made = VirtualMachine(executable, kernels=kernels, max_steps=MAX_INSTRUCTIONS)
        return lambda name, arguments: made[name](*arguments)
    from relax_dialect.interpreter import run

    return lambda name, arguments: run(module, name, arguments, weights=weights, max_steps=MAX_ITERATIONS)


def machine(executable: Executable) -> Runner:
    """What runs the functions of an executable."""
    from vm_dialect import VirtualMachine

    made = VirtualMachine(executable)
    return lambda name, arguments: made[name](*arguments)


def _is_kernel(op: Operation) -> TypeGuard[PrimFuncOp]:
    return isinstance(op, PrimFuncOp) and not op.is_private


def _interpreted(function: PrimFuncOp, run: Run) -> Callable[..., None]:
    """A kernel as the machine calls it: with sizes, tensors and scalars."""
    names = function.symbol_names

    def kernel(*values: Any) -> None:
        sizes = dict(zip(names, values, strict=False))
        run([to_numpy(each) if isinstance(each, tvm_ffi.Tensor) else each for each in values[len(names) :]], sizes)

    return kernel


# Runs


@contextmanager
def _quiet() -> Generator[None]:
    """What a program prints or NumPy warns of is no part of what it computes."""
    with redirect_stdout(io.StringIO()), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def outcome(run: Runner, call: Call) -> object:
    """What a call gives, with what its arguments are afterwards; a `Failure` if it raises."""
    arguments = _copied(call.arguments)
    try:
        with _quiet():
            result = run(call.function, [_as_tensors(each) for each in cast("Sequence[object]", arguments)])
    except Exception as error:  # of any kind: what a run raises is compared with what the other one does
        return Failure(f"{type(error).__name__}: {_first_line(error)}", isinstance(error, NO_RUN))
    return _plain(result), arguments


def _as_tensors(value: object) -> object:
    """What every mode takes for a value: tensors on the memory of its arrays."""
    if isinstance(value, tuple) and not isinstance(value, tvm_ffi.Shape):
        return tuple(map(_as_tensors, cast("tuple[object, ...]", value)))
    return from_numpy(cast("Array", value)) if isinstance(value, np.ndarray) else value


def _copied(value: object) -> object:
    if isinstance(value, tuple) and not isinstance(value, tvm_ffi.Shape):
        return tuple(map(_copied, cast("tuple[object, ...]", value)))
    return cast("Array", value).copy() if isinstance(value, np.ndarray) else value


def _plain(value: Any) -> object:
    """A result with tensors as arrays of its own and sequences as tuples, whatever has run."""
    if isinstance(value, tvm_ffi.Tensor):
        return to_numpy(value).copy()
    if isinstance(value, tvm_ffi.Shape | tuple | list | tvm_ffi.Array):
        return tuple(_plain(each) for each in cast("Sequence[Any]", value))
    return _copied(value)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


# Comparison


def outcomes_differ(found: object, expected: object) -> str | None:
    """The first difference between two outcomes, in words."""
    if isinstance(found, Failure):
        return f"it fails now: {found.message}"
    result, arguments = cast("tuple[object, tuple[object, ...]]", found)
    wanted, before = cast("tuple[object, tuple[object, ...]]", expected)
    return difference(result, wanted, "the result") or next(
        (
            text
            for index, pair in enumerate(zip(arguments, before, strict=True))
            if (text := difference(*pair, f"argument #{index} after the call")) is not None
        ),
        None,
    )


def difference(found: Any, expected: Any, where: str) -> str | None:
    """The first difference of two values, in words; `None` if they agree. Floats may differ by `TOLERANCES`."""
    if isinstance(expected, tuple):
        wanted = cast("tuple[object, ...]", expected)
        got = cast("tuple[object, ...]", found) if isinstance(found, tuple) else None
        if got is None or len(got) != len(wanted):
            return f"{where} is {_kind(cast('object', found))}, was {_kind(wanted)}"
        pairs = enumerate(zip(got, wanted, strict=True))
        texts = (difference(*pair, f"{where.removeprefix('the ')}[{index}]") for index, pair in pairs)
        return next((text for text in texts if text is not None), None)
    if isinstance(expected, np.ndarray):
        return _array_difference(found, cast("Array", expected), where)
    if isinstance(expected, int | float) and isinstance(found, int | float):
        return _array_difference(np.asarray(found, float), np.asarray(expected, float), where)
    if isinstance(expected, str | None):
        return None if found == expected else f"{where} is {found!r}, was {expected!r}"
    return None  # functions and other objects have no value to compare


def _array_difference(found: object, expected: Array, where: str) -> str | None:
    if not isinstance(found, np.ndarray):
        return f"{where} is {_kind(found)}, was {_kind(expected)}"
    array = cast("Array", found)
    if array.dtype != expected.dtype or array.shape != expected.shape:
        return f"{where} is {_kind(array)}, was {_kind(expected)}"
    wrong = np.argwhere(~_agrees(array, expected))
    if not len(wrong):
        return None
    position = tuple(int(index) for index in wrong[0])
    element = f" element {list(position)}" if position else ""
    return f"{where}{element} is {array[position]}, was {expected[position]}"


def _agrees(found: Array, expected: Array) -> Array:
    if expected.dtype.kind in "iub":
        return np.asarray(found == expected)
    relative = TOLERANCES.get(expected.dtype.name, NARROW)
    a, b = found.astype(np.float64), expected.astype(np.float64)
    with np.errstate(all="ignore"):
        finite = np.abs(b[np.isfinite(b)])
        scale = max(1.0, float(finite.max())) if finite.size else 1.0
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        return np.asarray(same | (np.abs(a - b) <= relative * scale))


def _kind(value: object) -> str:
    if isinstance(value, np.ndarray):
        array = cast("Array", value)
        return f"{array.dtype.name}{list(array.shape)}"
    if isinstance(value, tuple):
        return f"a tuple of {len(cast('tuple[object, ...]', value))}"
    return type(value).__name__
