"""One call in progress, and the table of what each op does to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, TypeVar, cast

from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Attribute, Block, Operation, SSAValue

from relax_dialect.interpreter.conform import Contract, Expectation, as_declared, has_type
from relax_dialect.interpreter.program import Program
from relax_dialect.interpreter.runtime_values import Value
from relax_dialect.loading import FAMILIES, FamilyRules
from relax_dialect.ops.structure import ClosureOp, FuncOp
from relax_dialect.struct_info.base import StructInfo, as_struct_infos
from relax_dialect.struct_info.symbols import free_symbols

OpT = TypeVar("OpT", bound=Operation)
T = TypeVar("T")
Rule: TypeAlias = "Callable[[Frame, OpT], TailCall | None]"
Ending: TypeAlias = "Callable[[Frame, OpT], Value]"

_PACKAGE = "relax_dialect.interpreter"
_FILES = {
    "collective": "distributed",
    "control_flow": "calls effects",
    "memory": "call_tir",
    "operators": "unary binary",
    "structure": "binding dataflow",
    "values": "shapes",
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
