"""A program that is interpreted, one call in progress, and the table of what each op does to it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeAlias, TypeVar, cast

import tvm_ffi
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from relax_dialect.interpreter.conform import Contract, Expectation, as_declared, has_type
from relax_dialect.interpreter.runtime_values import Value, from_python, packed
from relax_dialect.loading import FAMILIES, FamilyRules
from relax_dialect.ops.callees import captured_parameters
from relax_dialect.ops.structure import ClosureOp, FuncOp
from relax_dialect.struct_info.symbols import free_symbols
from relax_dialect.struct_info.types import StructInfo, as_struct_infos
from vm_dialect import messages
from vm_dialect.errors import StepLimitError, register_error_types
from vm_dialect.numpy_library import register_functions_of_tvm

register_error_types()

T = TypeVar("T")

MAX_DEPTH = 2_000
"""Calls inside each other before a `RecursionError`."""

MAX_ENTRIES = 50
"""How often packed functions may call back into the interpreter inside each other: these calls are on the C stack."""

FRAMES_OF_A_CALL = 20
"""Frames of Python that a call may take, for its branches and loops too. They are on the heap, not on the C stack."""


class Worker(Protocol):
    """What a rank knows of the other ranks that run the same program."""

    @property
    def rank(self) -> int:
        """Its number, from 0."""
        ...

    @property
    def mesh(self) -> Mapping[str, int]:
        """How many workers there are along each axis."""
        ...

    @property
    def begun(self) -> dict[str, str]:
        """The exchanges of groups that have begun and not ended."""
        ...

    def exchange(self, group: str, what: str, value: Value) -> Sequence[Value]:
        """The values of all workers of a group, in its order; `what` is the same for all of them, or an error."""
        ...

    def send(self, group: str, to: int, tag: int, what: str, value: Value) -> None:
        """Gives a value to another worker of a group, which need not wait for it yet."""
        ...

    def receive(self, group: str, source: int, tag: int, what: str) -> Value:
        """The next value that another worker of a group sends with a tag; `what` is as the sender says, or an error."""
        ...


class Program:
    """The module, what is given to it from outside, what is known about its ops, and how deep its calls are.

    The module must not be changed while a program of it is in use.
    """

    def __init__(
        self,
        module: ModuleOp,
        packed_functions: Mapping[str, Callable[..., Any]] | None = None,
        weights: Mapping[str, Any] | None = None,
        worker: Worker | None = None,
        max_steps: int | None = None,
    ):
        """Packed functions come from `packed_functions`, then from the tvm-ffi registry; `weights` are the constants
        that are kept outside of the module, by name; `worker` is the rank that this is, if there are several;
        `max_steps` is how many calls and iterations of loops there may be in all, if that is limited.
        """
        self.module = module
        self.worker = worker
        self._packed = packed_functions or {}
        self._weights = weights or {}
        self._facts: dict[tuple[Operation, str], Any] = {}
        self._depth = 0
        self._entries = 0
        self._steps, self._max_steps = 0, max_steps

    @cached_property
    def captured(self) -> dict[str, int]:
        """How many arguments the closures of a private function give; errors do not count these."""
        return captured_parameters(self.module)

    def packed_function(self, name: str) -> Callable[..., Value]:
        """A packed function on values of the interpreter; `ValueError` if it is not registered."""
        register_functions_of_tvm()
        found = self._packed.get(name) or tvm_ffi.get_global_func(name, allow_missing=True)
        if found is None:
            raise ValueError(messages.unknown_packed(name))
        return packed(found)

    def weight(self, name: str) -> Value:
        """A constant that is kept outside; `KeyError` if it was not given."""
        if name not in self._weights:
            raise KeyError(f"the elements of weight {name} were not given to the interpreter")
        return from_python(self._weights[name])

    def remember(self, op: Operation, make: Callable[[], T], what: str = "") -> T:
        """A fact about an op that holds for every time that it is run; `make` is called the first time."""
        key = (op, what)
        if key not in self._facts:
            self._facts[key] = make()
        return cast("T", self._facts[key])

    def step(self, function: str) -> None:
        """A call or an iteration begins; `StepLimitError` after the last one that may."""
        self._steps += 1
        if self._max_steps is not None and self._steps > self._max_steps:
            raise StepLimitError(messages.too_many_iterations(function, self._max_steps))

    # Depth

    def push(self, function: str) -> None:
        """A call begins; `RecursionError` if there are too many inside each other."""
        self.step(function)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise RecursionError(too_deep(function, MAX_DEPTH))

    def pop(self) -> None:
        """A call has ended."""
        self._depth -= 1

    @contextmanager
    def entered(self) -> Generator[None]:
        """Python has enough frames for the calls that begin inside; depth is as before afterwards, also on errors."""
        if self._entries >= MAX_ENTRIES:
            raise RecursionError(too_deep("packed functions", MAX_ENTRIES))
        depth, limit = self._depth, sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, FRAMES_OF_A_CALL * MAX_DEPTH))
        self._entries += 1
        try:
            yield
        finally:
            self._entries -= 1
            self._depth = depth
            sys.setrecursionlimit(limit)


def too_deep(function: str, limit: int) -> str:
    """What the error of a recursion without end says."""
    return f"{function}: more than {limit} calls inside each other: turn the recursion into a loop or a tail call"


OpT = TypeVar("OpT", bound=Operation)
Rule: TypeAlias = "Callable[[Frame, OpT], TailCall | None]"
Ending: TypeAlias = "Callable[[Frame, OpT], Value]"

_PACKAGE = "relax_dialect.interpreter"
_FILES = {
    "collective": "distributed",
    "control_flow": "calls effects structure binding dataflow",
    "convolution": "pooling",
    "image": "vision",
    "creation": "datatype",
    "linear_algebra": "normalization activation",
    "manipulation": "joining rearranging indexing gather",
    "operators": "unary binary",
    "reduction": "sorting",
    "values": "shapes memory call_tir",
}

RULES: FamilyRules[Rule[Operation]] = FamilyRules(_PACKAGE, FAMILIES, _FILES)
"""How ops are run."""

ENDINGS: FamilyRules[Ending[Any]] = FamilyRules(_PACKAGE, FAMILIES, _FILES)
"""What terminators pass on."""


def runs(*op_types: type[OpT]) -> Callable[[Rule[OpT]], Rule[OpT]]:
    """Registers how ops of some classes are run.

    A rule sets the op's results in the frame, or gives a call that replaces the function.
    """

    def register(rule: Rule[OpT]) -> Rule[OpT]:
        for op_type in op_types:
            RULES[op_type] = cast("Rule[Operation]", rule)
        return rule

    return register


def ends(op_type: type[OpT]) -> Callable[[Ending[OpT]], Ending[OpT]]:
    """Registers what a terminator passes on."""

    def register(rule: Ending[OpT]) -> Ending[OpT]:
        ENDINGS[op_type] = rule
        return rule

    return register


@dataclass
class Frame:
    """One call: the values of SSA values and of symbols."""

    interpreter: Program
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
        self.values[result] = as_declared(value, result.type)

    def set_checked(self, result: SSAValue, value: Value, what: str) -> None:
        """Gives an SSA value its value, which has to be of its type; `what` is how errors call the value."""
        self.check(value, result.type, what)
        self.set(result, value)

    def check(self, value: Value, info: Attribute, what: str) -> None:
        """Raises `TypeError` or `ValueError` unless a value has a type whose symbols are in scope."""
        if isinstance(info, StructInfo) and not has_type(value, info, self.symbols):
            Contract([info], [f"{self.function}: {what}"]).meet([value], self.symbols)

    def expectation(self, result: SSAValue, what: str) -> Expectation:
        """What `set_checked` would check, for when the frame is gone."""
        (info,) = as_struct_infos((result.type,))
        symbols = tuple((name, self.symbols[name]) for name in sorted(free_symbols(info)))
        return Expectation(info, f"{self.function}: {what}", symbols)

    def bind(self, key: Operation, contract: Callable[[], Contract], values: Sequence[Value]) -> Mapping[str, int]:
        """Checks values against the contract of an op, made once, and brings the symbols that they bind into scope."""
        found = self.interpreter.remember(key, contract)
        known = self.symbols
        if not found.bound_names.isdisjoint(known):
            known = {name: number for name, number in known.items() if name not in found.bound_names}
        bindings = found.meet(values, known)
        self.symbols.update(bindings)
        return bindings

    def run_block(self, block: Block) -> Value:
        """Runs the ops of a block; gives what its terminator passes on: one value, or a tuple for `relax.yield`."""
        for op in block.ops:
            op_type = type(op)
            rule = RULES[op_type]
            if rule is not None:
                tail_call = rule(self, op)
                if tail_call is not None:
                    return tail_call
                continue
            ending = ENDINGS[op_type]
            if ending is None:
                raise NotImplementedError(f"the interpreter does not know '{op.name}'{where(op)}")
            return ending(self, op)
        raise ValueError("a block has to end in a terminator")


class Callee(Protocol):
    """A function with a body that can be entered."""

    @property
    def op(self) -> FuncOp | ClosureOp:
        """The function."""
        ...

    def enter(self, arguments: Sequence[Value]) -> Frame:
        """A frame with the arguments, all checked against the signature."""
        ...


@dataclass(frozen=True)
class TailCall:
    """A call whose result is the result of the caller: it takes the caller's position."""

    function: Callee
    arguments: Sequence[Value]
    expected: Expectation
    """What the caller, which is gone by then, says of the result."""


def where(op: Operation) -> str:
    """` at file:line:column`, or nothing if the position of an op is not known."""
    location = op.location
    if not isinstance(location, FileLineColLoc):
        return ""
    return f" at {location.filename.data}:{location.line.data}:{location.column.data}"
