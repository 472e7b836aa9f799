"""Generation of Python source code from a prim_func, and what that code calls: checks and views."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NoReturn, TypeAlias

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from tir_dialect import dtypes
from tir_dialect.analysis.accesses import first_effect, size_conditions
from tir_dialect.analysis.dims import DimEvaluator
from tir_dialect.analysis.index_space import DataSources
from tir_dialect.analysis.init import InitPlacement, init_placement
from tir_dialect.dims import Atom, BroadcastAtom, Dim, FloorDivAtom, MaxAtom, MinAtom, ModAtom, SymbolAtom
from tir_dialect.dims.division import broadcast_extents
from tir_dialect.interpreter import numerics
from tir_dialect.interpreter.numerics import (
    OutOfRangeError,
    TileRegisters,
    UnsupportedOpError,
    address_of,
    fail_access,
    holds_integers,
    memory_at,
)
from tir_dialect.ops.arithmetic import DEFAULT_ERROR
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.calls import CallBoxedOp, CallOp, ForeignCallOp
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.function import PrimFuncOp


def dim_text(dim: Dim, names: Mapping[str, str]) -> str:
    """`dim` as a Python expression in parentheses if it is not one word; `names` are those of the symbols."""
    if not dim.terms:
        return "0"
    parts: list[str] = []
    for coefficient, monomial in dim.terms:
        factors = [_atom_text(atom, names) for atom, power in monomial for _ in range(power)]
        if coefficient != 1 or not factors:
            factors.insert(0, str(coefficient))
        parts.append(" * ".join(factors))
    text = " + ".join(parts)
    return text if text.isalnum() else f"({text})"


def _atom_text(atom: Atom, names: Mapping[str, str]) -> str:
    if isinstance(atom, SymbolAtom):
        return names[atom.name]
    operands = [dim_text(operand, names) for operand in atom.operands]
    match atom:
        case FloorDivAtom():
            return f"({operands[0]} // {operands[1]})"
        case ModAtom():
            return f"({operands[0]} % {operands[1]})"
        case MinAtom():
            return f"min({', '.join(operands)})"
        case MaxAtom():
            return f"max({', '.join(operands)})"
        case BroadcastAtom():
            return f"broadcast_extents([{', '.join(operands)}])"
        case _:
            raise TypeError(f"unknown atom class {type(atom).__name__}")


def fail_iterator(block: str, iterator: str, value: int, extent: int) -> NoReturn:
    """Raises the error of an iterator outside its domain."""
    raise OutOfRangeError(
        f"'tir.block' \"{block}\": iterator {iterator} is {value}, expected 0 <= {iterator} < {extent}"
    )


def fail_assertion(message: str, kind: str = DEFAULT_ERROR) -> NoReturn:
    """Raises the error of a failed assertion."""
    raise getattr(builtins, kind)(message)


def view_region(
    array: np.ndarray, name: str, axes: Sequence[tuple[int, int] | int], expected: Sequence[int]
) -> np.ndarray:
    """The value of a `tir.match_buffer`: axes are points, or starts and ends."""
    lengths = [axis[1] - axis[0] for axis in axes if isinstance(axis, tuple)]
    if lengths != list(expected):
        raise ValueError(f"'tir.match_buffer' of buffer {name}: expected a region of shape {expected}, got {lengths}")
    selection: list[slice | int] = []
    for axis, (part, extent) in enumerate(zip(axes, array.shape, strict=True)):
        start, stop = part if isinstance(part, tuple) else (part, part + 1)
        if start < 0 or stop > extent:
            raise OutOfRangeError(
                f"'tir.match_buffer' of buffer {name}: dimension {axis} covers {start} to {stop} of {extent}"
            )
        selection.append(slice(start, stop) if isinstance(part, tuple) else part)
    return array[(*selection, ...)]


def view_flat(array: np.ndarray, name: str) -> np.ndarray:
    """The value of a `tir.flatten`; `ValueError` if the elements do not lie in row-major order."""
    if not array.flags.c_contiguous:
        raise ValueError(f"'tir.flatten' of buffer {name}: expected elements in row-major order, got other strides")
    return array.reshape(-1)


def view_memory(
    array: np.ndarray, name: str, start: int, shape: Sequence[int], strides: Sequence[int], dtype: np.dtype[Any]
) -> np.ndarray:
    """The value of a `tir.view`, its strides in elements; `ValueError` if the buffer's elements do not lie in row-major
    order, or are too few.
    """
    if not array.flags.c_contiguous:
        raise ValueError(f"'tir.view' of buffer {name}: expected elements in row-major order, got other strides")
    first = start * dtype.itemsize
    span = 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
    length = (span if math.prod(shape) else 0) * dtype.itemsize
    if first < 0 or first + length > array.nbytes:
        raise ValueError(f"'tir.view' of buffer {name}: expected {first + length} bytes, got {array.nbytes}")
    memory = array.reshape(-1).view(np.uint8)[first : first + length]
    return np.ndarray(shape, dtype, memory, 0, [stride * dtype.itemsize for stride in strides])


def fresh_buffer(shape: Sequence[int], dtype: np.dtype[Any], type_text: str) -> np.ndarray:
    """Memory whose content is recognisable as undefined: NaN, or a large negative number.

    `MemoryError`, as compiled code raises it, where there is not so much or the size is none.
    """
    try:
        return np.full(shape, _undefined(dtype), dtype)
    except (MemoryError, ValueError):
        raise MemoryError(f"cannot allocate a buffer of type {type_text}") from None


def _undefined(dtype: np.dtype[Any]) -> float | int | bool:
    if dtype == np.bool_:
        return True
    if np.issubdtype(dtype, np.integer):
        return int(np.iinfo(dtype).min) + 85
    return 1 if holds_integers(dtype) else np.nan


def bitcast(value: Any, source: Any, target: Any) -> Any:
    """The bits of `value` in another type of the same width."""
    result: Any = np.array([value], source).view(target)[0]
    return result.item() if holds_integers(result.dtype) else result


NAMESPACE: dict[str, Any] = {
    "TileRegisters": TileRegisters,
    "address_of": address_of,
    "bitcast": bitcast,
    "broadcast_extents": broadcast_extents,
    "count_leading_zeros": numerics.count_leading_zeros,
    "count_ones": numerics.count_ones,
    "count_trailing_zeros": numerics.count_trailing_zeros,
    "divide_towards_zero": numerics.divide_towards_zero,
    "dot_words": numerics.dot_words,
    "look_up_bytes": numerics.look_up_bytes,
    "fail_access": fail_access,
    "fail_assertion": fail_assertion,
    "fail_iterator": fail_iterator,
    "fresh_buffer": fresh_buffer,
    "fused_multiply_add": numerics.fused_multiply_add,
    "integer_power": numerics.integer_power,
    "integer_to_float": numerics.integer_to_float,
    "load_vector": numerics.load_vector,
    "map_lanes": numerics.map_lanes,
    "memory_at": memory_at,
    "multiply_add_lanes": numerics.multiply_add_lanes,
    "maximum": numerics.maximum,
    "maximum_number": numerics.maximum_number,
    "minimum": numerics.minimum,
    "minimum_number": numerics.minimum_number,
    "np": np,
    "reduce": reduce,
    "remainder_towards_zero": numerics.remainder_towards_zero,
    "shift_left": numerics.shift_left,
    "shift_right": numerics.shift_right,
    "shift_right_unsigned": numerics.shift_right_unsigned,
    "store_vector": numerics.store_vector,
    "to_integer": numerics.to_integer,
    "view_flat": view_flat,
    "view_memory": view_memory,
    "view_region": view_region,
    **{f"np_{dtype.numpy_name}": dtypes.numpy_dtype(dtype.type).type for dtype in dtypes.DTYPES},
    **{name.replace(".", "_"): function for name, function in (numerics.UNARY | numerics.BINARY).items()},
}
"""The names that generated code uses."""


MAX_NESTED_LOOPS = 18
"""CPython allows 20 nested blocks in a function; deeper loops go into functions of their own."""


@dataclass
class _Function:
    """The source of one Python function, and the names of the values in it."""

    lines: list[str] = field(default_factory=list[str])
    used: set[str] = field(default_factory=set[str])
    defined: set[str] = field(default_factory=set[str])
    indent: int = 1
    loop_depth: int = 0


class Emitter:
    """The generated source, the names of SSA values in it, and the objects that it refers to."""

    def __init__(
        self,
        func: PrimFuncOp,
        rule_of: RuleOf,
        call: Callable[[CallOp], Any],
        foreign: Callable[[ForeignCallOp | CallBoxedOp], Any],
    ):
        """`rule_of` says how an op is written; `call` and `foreign` give the functions that stand for callees."""
        self.func = func
        self.rule_of = rule_of
        self.call = call
        self.foreign = foreign
        self.dims = DimEvaluator()
        self.sources = DataSources()
        self.namespace: dict[str, Any] = dict(NAMESPACE)
        self._finished: list[str] = []
        self._current = _Function()
        self._names: dict[SSAValue, str] = {}
        self._counter = 0
        self._symbols: dict[str, str] = {}
        self._early_inits: dict[ForOp, list[tuple[BlockOp, InitPlacement]]] = {}

    def source(self) -> str:
        """The text of the function `main`, whose parameters are those of the prim_func, symbols first."""
        for op in self.func.body.walk():
            placement = init_placement(op) if isinstance(op, BlockOp) else None
            if isinstance(op, BlockOp) and placement is not None:
                self._early_inits.setdefault(placement.loop, []).append((op, placement))
        arguments = [self.define(argument) for argument in self.func.body.block.args]
        self._symbols = dict(zip(self.func.symbol_names, arguments, strict=False))
        # The ops of the prim_func; what sizes have to be like comes before the first that has an effect.
        position = first_effect(self.func)
        for op in self.func.body.block.ops:
            if op is position:
                for condition in size_conditions(self.func):
                    tests = [f"{self.dim(condition.smaller)} <= {self.dim(condition.larger)}"]
                    tests += [f"{self.dim(length)} <= 0" for length in condition.lengths]
                    self.line(f"if not ({' or '.join(tests)}): fail_assertion({self.constant(condition.message)})")
            self.op(op)
        self._finish("main", arguments)
        return "\n".join(self._finished)

    def _finish(self, name: str, parameters: Sequence[str]) -> None:
        self._finished += [f"def {name}({', '.join(parameters)}):", *(self._current.lines or ["  pass"])]

    @contextmanager
    def loop(self) -> Generator[None]:
        """Room for one more loop: in a function of its own where nesting gets too deep for CPython."""
        outer = self._current
        if outer.loop_depth < MAX_NESTED_LOOPS:
            outer.loop_depth += 1
            yield
            outer.loop_depth -= 1
            return
        self._current = _Function(loop_depth=1)
        yield
        name, captured = self.fresh("body"), sorted(self._current.used - self._current.defined)
        self._finish(name, captured)
        self._current = outer
        outer.used.update(captured)
        self.line(f"{name}({', '.join(captured)})")

    def early_inits(self, loop: ForOp) -> list[tuple[BlockOp, InitPlacement]]:
        """The blocks whose reductions start with `loop`, and where their inits go."""
        return self._early_inits.get(loop, [])

    def line(self, text: str) -> None:
        """Adds a line."""
        self._current.lines.append("  " * self._current.indent + text)

    @contextmanager
    def indented(self) -> Generator[None]:
        """Lines of a nested block; `pass` if there are none."""
        function = self._current
        function.indent += 1
        start = len(function.lines)
        yield
        if len(function.lines) == start:
            self.line("pass")
        function.indent -= 1

    def block(self, block: Block) -> None:
        """Adds the ops of a block."""
        for op in block.ops:
            self.op(op)

    def op(self, op: Operation) -> None:
        """Adds one op; UnsupportedOpError if it has no semantics here."""
        self.rule_of(op)(self, op)

    def fresh(self, prefix: str = "t") -> str:
        """A name that is not used yet."""
        self._counter += 1
        return f"{prefix}{self._counter}"

    def define(self, value: SSAValue) -> str:
        """A name for a new value."""
        name = self._names[value] = self.fresh("v")
        self._current.defined.add(name)
        return name

    def alias(self, value: SSAValue, name: str) -> None:
        """Makes `value` go by the name of something else."""
        self._names[value] = name

    def name(self, value: SSAValue) -> str:
        """The name of a value."""
        found = self._names.get(value)
        if found is None:
            raise UnsupportedOpError("a value is used before its definition")
        if found.startswith("v"):
            self._current.used.add(found)
        return found

    def names(self, values: tuple[SSAValue, ...]) -> list[str]:
        """The names of values."""
        return [self.name(value) for value in values]

    def assign(self, value: SSAValue, expression: str) -> None:
        """Adds the definition of a value."""
        self.line(f"{self.define(value)} = {expression}")

    def constant(self, value: object, prefix: str = "c") -> str:
        """A name for an object outside the text."""
        name = self.fresh(prefix)
        self.namespace[name] = value
        return name

    def dim(self, dim: Dim) -> str:
        """The text of a dimension over the symbols of the function."""
        self._current.used.update(self._symbols[name] for name in dim.symbols)
        return dim_text(dim, self._symbols)


Rule: TypeAlias = Callable[[Emitter, Any], None]
"""Adds the text of one kind of op."""

RuleOf: TypeAlias = Callable[[Operation], Rule]


def hint(value: SSAValue, default: str = "value") -> str:
    """How messages call a value."""
    return f"%{value.name_hint}" if value.name_hint else default
