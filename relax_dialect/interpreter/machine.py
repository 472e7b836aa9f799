"""The interpreter, and its function values: functions of the module, closures, and calls of either that do not nest.

From outside the interpreter takes the arguments that compiled functions take (`vm_dialect.arguments`). NumPy reads
memory of any layout, so nothing is copied but arrays in another byte order. What a function writes has to be as
compiled code needs it, since packed functions get its memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tvm_ffi
from xdsl.dialects.builtin import ModuleOp

from relax_dialect.interpreter.conform import Contract, Expectation, argument_names
from relax_dialect.interpreter.frame import Callee, Frame, Program, TailCall
from relax_dialect.interpreter.runtime_values import Array, Value, from_python, to_array
from relax_dialect.ops.structure import ClosureOp, FuncOp
from relax_dialect.scope import find_function
from relax_dialect.signatures import signature_of
from relax_dialect.struct_info.types import FuncType
from vm_dialect.arguments import Argument, Arguments, unfit
from vm_dialect.callee import in_order


class InterpretedArgument(Argument):
    """An argument of an interpreted function: tensors are NumPy arrays."""

    def plain(self, given: Any) -> Value:
        return from_python(given)

    def fields(self, fields: Sequence[Value]) -> Value:
        return tuple(fields)

    def array(self, array: Array, kind: str) -> Value:
        self.require_dtype(array, kind)
        why = unfit(array) if self.is_written or not array.dtype.isnative else None
        return array if why is None else self.copied(array, why)

    def tensor(self, tensor: tvm_ffi.Tensor, kind: str) -> Value:
        return self.array(to_array(tensor), kind)

    def made(self, array: Array) -> Value:
        return array


@dataclass(eq=False)
class Function:
    """A function value: of the module, or a closure with the frame that it captures."""

    interpreter: Program
    op: FuncOp | ClosureOp
    outer: Frame | None = None
    captured: tuple[Value, ...] = ()
    """The first arguments, if they are given already."""

    @property
    def name(self) -> str:
        """What errors begin with."""
        return self.interpreter.remember(self.op, lambda: _name(self.op), "name")

    @property
    def type(self) -> FuncType:
        """The signature."""
        return self.op.function_type

    def __call__(self, *arguments: Value) -> Value:
        """Runs the function for a caller outside the interpreter, with values from there: also `tvm_ffi` objects."""
        with self.interpreter.entered():
            return self.run([from_python(argument) for argument in arguments])

    def taken(self, given: Sequence[Any]) -> list[Value]:
        """Arguments from a caller that knows nothing of the interpreter as values that its parameters take."""
        arguments = Arguments(self.name, self.op.param_names, signature_of(self.op), InterpretedArgument)
        return arguments.converted(given)

    def in_order(self, named: Mapping[str, Any]) -> list[Any]:
        """Arguments by name in the order of the parameters; `TypeError` for an unknown name, or if one is missing."""
        return in_order(self.name, self.op.param_names[len(self.captured) :], (), named)

    def _wrong_count(self, given: int) -> str:
        names = self.op.param_names[len(self.captured) :]
        listed = f" ({', '.join(names)})" if names else ""
        plural = "" if len(names) == 1 else "s"
        return f"{self.name}: expected {len(names)} argument{plural}{listed}, got {given}"

    def run(self, arguments: Sequence[Value]) -> Value:
        """Runs the function; calls in tail position do not nest.

        Raises `RecursionError` if too many calls are inside each other.
        """
        self.interpreter.push(self.name)
        function: Callee = self
        expectations: dict[Expectation, None] = {}
        while True:
            frame = function.enter(arguments)
            result = frame.run_block(function.op.body.block)
            if not isinstance(result, TailCall):
                break
            function, arguments = result.function, result.arguments
            expectations[result.expected] = None
            self.interpreter.step(self.name)
        for expected in reversed(expectations):
            expected.check(result)
        self.interpreter.pop()
        return result

    def enter(self, arguments: Sequence[Value]) -> Frame:
        """A frame with the arguments after those that are given, all checked against the signature."""
        frame = Frame(self.interpreter, self.name)
        if self.outer is not None:
            frame.values.update(self.outer.values)
            frame.symbols.update(self.outer.symbols)
        params, values = self.op.params, (*self.captured, *arguments)
        if len(values) != len(params):
            raise TypeError(self._wrong_count(len(arguments)))
        bindings = frame.bind(self.op, self._contract, values)
        for param, argument in zip(params, values, strict=True):
            frame.set(param, argument)
        for witness, bound in zip(self.op.witnesses, self.type.symbols, strict=True):
            frame.values[witness] = bindings[bound.symbol.data]
        if isinstance(self.op, ClosureOp) and self.op.itself is not None:
            frame.values[self.op.itself] = self
        return frame

    def _contract(self) -> Contract:
        captured = self.interpreter.captured.get(self.name, 0) if isinstance(self.op, FuncOp) else 0
        positions = argument_names(self.name, self.op.param_names, captured)
        return Contract(self.type.params, positions, self.type.symbols, captured)


def function_named(program: Program, name: str) -> Function:
    """A function of the module; `KeyError` if there is none."""
    found = find_function(program.module, name)
    if not isinstance(found, FuncOp):
        raise KeyError(f"no relax function {name} in the module")
    return Function(program, found)


def _name(op: FuncOp | ClosureOp) -> str:
    """The name of a function; closures have the one that `lambda-lift` gives to them, unless it is taken."""
    if isinstance(op, FuncOp):
        return op.sym_name.data
    outer = op.parent_op()
    while outer is not None and not isinstance(outer, FuncOp):
        outer = outer.parent_op()
    prefix = "" if outer is None else f"{outer.sym_name.data}_"
    return f"{prefix}{op.result.name_hint or 'closure'}"


class Interpreter(Program):
    """Runs the functions of a module."""

    def function(self, name: str) -> Function:
        """A function of the module; `KeyError` if there is none."""
        return function_named(self, name)

    def run(self, entry: str, arguments: Sequence[Any] | Mapping[str, Any]) -> Value:
        """Calls the function `entry` with values from outside, in order or by name."""
        function = self.function(entry)
        given = function.in_order(arguments) if isinstance(arguments, Mapping) else arguments
        return function(*function.taken(given))


def run(
    module: ModuleOp,
    entry: str,
    arguments: Sequence[Any] | Mapping[str, Any],
    packed_functions: Mapping[str, Callable[..., Any]] | None = None,
    weights: Mapping[str, Any] | None = None,
    max_steps: int | None = None,
) -> Value:
    """Calls the relax function `entry` of a module with NumPy semantics.

    Arguments, in order or by the names of the parameters, are arrays of any DLPack library, numbers, strings, sequences
    for tuples, `tvm_ffi` values. Results are NumPy arrays, tuples, `Shape`s and Python scalars. A check that fails
    raises `TypeError` or `ValueError`, an exception of a packed function passes through. `max_steps` limits calls and
    iterations of loops: `StepLimitError` after the last one.
    """
    return Interpreter(module, packed_functions, weights, max_steps=max_steps).run(entry, arguments)
