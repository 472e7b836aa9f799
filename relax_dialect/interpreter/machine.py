"""The interpreter: runs relax functions op by op."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, TypeAlias, TypeVar, cast

import tvm_ffi
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from relax_dialect.interpreter.conform import conform
from relax_dialect.interpreter.runtime_values import Value, from_python, packed
from relax_dialect.ops.structure import ClosureOp, FuncOp
from relax_dialect.struct_info.base import as_struct_infos
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.symbols import find_function

OpT = TypeVar("OpT", bound=Operation)
Rule: TypeAlias = "Callable[[Frame, OpT], TailCall | None]"

FAMILIES = (
    "binary",
    "binding",
    "calls",
    "control_flow",
    "linear_algebra",
    "manipulation",
    "set",
    "shapes",
    "unary",
    "values",
)
"""Files with rules, with the stems of the families in `relax_dialect/ops`."""

_RULES: dict[type[Operation], Rule[Operation]] = {}


def runs(*op_types: type[OpT]) -> Callable[[Rule[OpT]], Rule[OpT]]:
    """Registers how ops of some classes are run.

    A rule sets the op's results in the frame, or gives a call that takes the place of the function.
    """

    def register(rule: Rule[OpT]) -> Rule[OpT]:
        for op_type in op_types:
            _RULES[op_type] = cast("Rule[Operation]", rule)
        return rule

    return register


@dataclass
class Frame:
    """One call: the values of SSA values and of symbols."""

    interpreter: Interpreter
    function: str
    """What errors begin with."""
    values: dict[SSAValue, Value] = field(default_factory=dict[SSAValue, Value])
    symbols: dict[str, int] = field(default_factory=dict[str, int])

    def get(self, value: SSAValue) -> Value:
        """The value of an SSA value."""
        return self.values[value]

    def get_all(self, values: Sequence[SSAValue]) -> list[Value]:
        """The values of several SSA values."""
        return [self.values[value] for value in values]

    def set(self, result: SSAValue, value: Value) -> None:
        """Gives an SSA value its value."""
        self.values[result] = value

    def check(self, value: Value, info: Attribute, place: str) -> None:
        """Raises `TypeError` or `ValueError` unless a value has a type whose symbols are in scope."""
        (declared,) = as_struct_infos((info,))
        conform([value], [declared], (), self.symbols, [f"{self.function}: {place}"])


@dataclass(frozen=True)
class TailCall:
    """A call whose result is the result of the caller: it takes the caller's place."""

    function: Function
    arguments: Sequence[Value]


@dataclass(eq=False)
class Function:
    """A function value: of the module, or a closure with the frame that it captures."""

    interpreter: Interpreter
    op: FuncOp | ClosureOp
    outer: Frame | None = None

    @property
    def name(self) -> str:
        """What errors begin with."""
        return self.op.sym_name.data if isinstance(self.op, FuncOp) else "closure"

    @property
    def type(self) -> FuncType:
        """The signature."""
        return self.op.function_type

    def __call__(self, *arguments: Value) -> Value:
        """Runs the function; calls in tail position do not nest."""
        function: Function = self
        while True:
            frame = function.enter(arguments)
            result = frame.interpreter.run_block(frame, function.op.body.block)
            if not isinstance(result, TailCall):
                return result
            function, arguments = result.function, tuple(result.arguments)

    def enter(self, arguments: Sequence[Value]) -> Frame:
        """A frame with the arguments, which are checked against the signature."""
        frame = Frame(self.interpreter, self.name)
        if self.outer is not None:
            frame.values.update(self.outer.values)
            frame.symbols.update(self.outer.symbols)
        params = self.op.params
        names = [param.name_hint or f"arg{index}" for index, param in enumerate(params)]
        if len(arguments) != len(params):
            listed = f" ({', '.join(names)})" if names else ""
            plural = "" if len(params) == 1 else "s"
            raise TypeError(f"{self.name}: expected {len(params)} argument{plural}{listed}, got {len(arguments)}")
        places = [f"{self.name}: argument #{index} ({name})" for index, name in enumerate(names)]
        bindings = conform(arguments, self.type.params, self.type.symbols, frame.symbols, places)
        frame.symbols.update(bindings)
        frame.values.update(zip(params, arguments, strict=True))
        for witness, bound in zip(self.op.witnesses, self.type.symbols, strict=True):
            frame.values[witness] = bindings[bound.symbol.data]
        if isinstance(self.op, ClosureOp) and self.op.itself is not None:
            frame.values[self.op.itself] = self
        return frame


class Interpreter:
    """Runs the functions of a module. Packed functions come from `packed_functions`, then from the tvm-ffi registry."""

    def __init__(
        self,
        module: ModuleOp,
        packed_functions: Mapping[str, Callable[..., Any]] | None = None,
        weights: Mapping[str, Any] | None = None,
    ):
        """`weights` are the constants that are kept outside of the module, by name."""
        self.module = module
        self._packed = packed_functions or {}
        self._weights = weights or {}
        for family in FAMILIES:
            import_module(f"relax_dialect.interpreter.{family}")

    def function(self, name: str) -> Function:
        """A function of the module; `KeyError` if there is none."""
        found = find_function(self.module, name)
        if not isinstance(found, FuncOp):
            raise KeyError(f"no relax function {name} in the module")
        return Function(self, found)

    def packed_function(self, name: str) -> Callable[..., Value]:
        """A packed function on values of the interpreter; `ValueError` if it is not registered."""
        found = self._packed.get(name) or tvm_ffi.get_global_func(name, allow_missing=True)
        if found is None:
            hint = f'use tvm_ffi.register_global_func("{name}")'
            raise ValueError(f'packed function "{name}" is not registered: {hint}')
        return packed(found)

    def weight(self, name: str) -> Value:
        """A constant that is kept outside; `KeyError` if it was not given."""
        if name not in self._weights:
            raise KeyError(f"the weight {name} was not given to the interpreter")
        return from_python(self._weights[name])

    def run(self, entry: str, arguments: Sequence[Any]) -> Value:
        """Calls the function `entry` with values from outside."""
        try:
            return self.function(entry)(*map(from_python, arguments))
        except RecursionError as error:
            raise RecursionError(
                f"{entry}: too many calls inside each other: turn the recursion into a loop or a tail call"
            ) from error

    def run_block(self, frame: Frame, block: Block) -> Value:
        """Runs the ops of a block; gives what its terminator passes on: one value, or a tuple for `relax.yield`."""
        for op in block.ops:
            ending = _ENDINGS.get(type(op))
            if ending is not None:
                return ending(frame, op)
            tail_call = self.run_op(frame, op)
            if tail_call is not None:
                return tail_call
        raise ValueError("a block has to end in a terminator")

    def run_op(self, frame: Frame, op: Operation) -> TailCall | None:
        """Runs one op; `NotImplementedError` names it if it has no meaning here."""
        rule = _RULES.get(type(op))
        if rule is None:
            raise NotImplementedError(f"the interpreter does not know '{op.name}'{_where(op)}")
        return rule(frame, op)


_ENDINGS: dict[type[Operation], Callable[[Frame, Any], Value]] = {}
"""Terminators: what they pass on."""


def ends(op_type: type[OpT]) -> Callable[[Callable[[Frame, OpT], Value]], Callable[[Frame, OpT], Value]]:
    """Registers what a terminator passes on."""

    def register(rule: Callable[[Frame, OpT], Value]) -> Callable[[Frame, OpT], Value]:
        _ENDINGS[op_type] = rule
        return rule

    return register


def _where(op: Operation) -> str:
    location = op.location
    return f" at {location.filename.data}:{location.line.data}" if isinstance(location, FileLineColLoc) else ""


def run(
    module: ModuleOp,
    entry: str,
    arguments: Sequence[Any],
    packed_functions: Mapping[str, Callable[..., Any]] | None = None,
    weights: Mapping[str, Any] | None = None,
) -> Value:
    """Calls the relax function `entry` of a module with NumPy semantics.

    Arguments are arrays of any DLPack library, numbers, strings, sequences for tuples, `tvm_ffi` values. Results are
    NumPy arrays, tuples, `Shape`s and Python scalars. A check that fails raises `TypeError` or `ValueError`, an
    exception of a packed function passes through.
    """
    return Interpreter(module, packed_functions, weights).run(entry, arguments)
