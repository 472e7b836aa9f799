"""Appends ops of the llvm dialect to the blocks of one function.

They are made by `new_op`: keyword constructors take eight times as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    UnitAttr,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from lowering.tir_to_llvm.builder.function_ops import call_op, symbol_ref
from lowering.vm_to_llvm.abi import F64, I1, I8, I32, I64, PAYLOAD, PTR
from tir_dialect.new_ops import new_op
from tir_dialect.ops.memory import i32_array

_WORD = IntegerAttr(8, I64)
_WRAPS: dict[str, Attribute] = {"overflowFlags": IntegerAttr(0, I32)}
_PLAIN_ACCESS: dict[str, Attribute] = {"ordering": IntegerAttr(0, I64)}
_PREDICATES = {flag.value: IntegerAttr(flag.to_int(), I64) for flag in llvm.ALL_ICMP_FLAGS}


@dataclass
class StackArea:
    """Room in the prologue for values of one type, as many as the function turns out to need."""

    emitter: Emitter
    element: Attribute
    _alloca: llvm.AllocaOp | None = None
    _count: int = 0

    def at_least(self, count: int) -> SSAValue:
        """The address of `count` values or more, 8 bytes aligned."""
        size = self.emitter.integer(max(count, self._count))
        if self._alloca is None:
            self._alloca = new_op(llvm.AllocaOp, (size,), (PTR,), {"elem_type": self.element, "alignment": _WORD})
            self._alloca.location = self.emitter.location
            self.emitter.prologue.add_op(self._alloca)
        elif count > self._count:
            self._alloca.operands[0] = size
        self._count = max(count, self._count)
        return self._alloca.res

    def drop(self) -> None:
        """Takes the room away, since nobody uses it."""
        if self._alloca is not None:
            self._alloca.detach()
            self._alloca.erase()


class Emitter:
    """Builds a function block by block.

    The first block is the prologue: constants and stack slots, so that they dominate every use and exist once. It ends
    with a branch that the user adds last.
    """

    def __init__(self, function: llvm.FuncOp) -> None:
        self.function = function
        self.location: LocationAttr = UNKNOWN_LOC
        """What new ops get as their location."""
        self.prologue = Block(arg_types=function.function_type.inputs.data)
        function.body.add_block(self.prologue)
        self.block = self.prologue
        """Where new ops go."""
        self._constants: dict[tuple[int | str, int], SSAValue] = {}
        self._addresses: dict[str, SSAValue] = {}

    @property
    def arguments(self) -> Sequence[SSAValue]:
        """The function's parameters."""
        return self.prologue.args

    def new_block(self, arg_types: Sequence[Attribute] = ()) -> Block:
        """An empty block after all others; emission goes on where it was."""
        block = Block(arg_types=arg_types)
        self.function.body.add_block(block)
        return block

    def start(self, block: Block) -> None:
        """Continues emission at the end of `block`."""
        self.block = block

    def add(self, op: Operation) -> Operation:
        """Appends an op."""
        op.location = self.location
        self.block.add_op(op)
        return op

    def value(self, op: Operation) -> SSAValue:
        """Appends an op and gives its result."""
        return self.add(op).results[0]

    def _make(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue],
        type_: Attribute,
        properties: dict[str, Attribute] | None = None,
    ) -> SSAValue:
        """Appends an op with one result; properties are its own from then on, so shared ones are copied."""
        return self.value(new_op(kind, operands, (type_,), properties or {}))

    # Values of the prologue.

    def integer(self, number: int, type_: IntegerType = I64) -> SSAValue:
        """An integer constant."""
        key = (number, type_.width.data)
        found = self._constants.get(key)
        if found is None:
            op = new_op(llvm.ConstantOp, (), (type_,), {"value": _integer(number, type_)})
            found = self._constants[key] = self._prepend(op)
        return found

    def float(self, number: float) -> SSAValue:
        """An `f64` constant; zeros of either sign are two constants."""
        key = (number.hex(), 0)
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = self._prepend(llvm.ConstantOp(FloatAttr(number, F64), F64))
        return found

    def address(self, symbol: str) -> SSAValue:
        """The address of a global or a function."""
        found = self._addresses.get(symbol)
        if found is None:
            found = self._addresses[symbol] = self._prepend(
                new_op(llvm.AddressOfOp, (), (PTR,), {"global_name": symbol_ref(symbol)})
            )
        return found

    def stack(self, type_: Attribute) -> StackArea:
        """Room in the function's frame for values of a type."""
        return StackArea(self, type_)

    def _prepend(self, op: Operation) -> SSAValue:
        op.location = self.location
        first = self.prologue.first_op
        if first is None:
            self.prologue.add_op(op)
        else:
            self.prologue.insert_op_before(op, first)
        return op.results[0]

    # Memory.

    def offset(self, base: SSAValue, offset: int) -> SSAValue:
        """The address `offset` bytes behind `base`."""
        return base if offset == 0 else self._make(llvm.GEPOp, (base,), PTR, _bytes_behind(offset))

    def displaced(self, base: SSAValue, offset: SSAValue) -> SSAValue:
        """The address `offset` bytes behind `base`."""
        return self._make(llvm.GEPOp, (base, offset), PTR, _bytes_behind(llvm.GEP_USE_SSA_VAL))

    def load(self, address: SSAValue, type_: Attribute, offset: int = 0) -> SSAValue:
        """The value at `address` plus `offset` bytes."""
        return self._make(llvm.LoadOp, (self.offset(address, offset),), type_, _PLAIN_ACCESS)

    def store(self, value: SSAValue, address: SSAValue, offset: int = 0) -> None:
        """Writes to `address` plus `offset` bytes."""
        self.add(new_op(llvm.StoreOp, (value, self.offset(address, offset)), (), _PLAIN_ACCESS))

    def number(self, address: SSAValue, kind: Attribute) -> SSAValue:
        """The number in the `TVMFFIAny` at `address`."""
        if kind == I1:
            return self.compare("ne", self.load(address, I64, PAYLOAD), self.integer(0))
        return self.load(address, kind, PAYLOAD)

    # Arithmetic and control.

    def convert(self, kind: type[Operation], value: SSAValue, type_: Attribute) -> SSAValue:
        """A value as one of another type, by an op without properties."""
        return self._make(kind, (value,), type_)

    def subtract(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """The difference of two integers, which may wrap."""
        return self._make(llvm.SubOp, (lhs, rhs), lhs.type, _WRAPS)

    def compare(self, predicate: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """`icmp` with LLVM's name of the predicate."""
        return self._make(llvm.ICmpOp, (lhs, rhs), I1, {"predicate": _PREDICATES[predicate]})

    def is_null(self, pointer: SSAValue) -> SSAValue:
        """Whether an address is 0."""
        return self.compare("eq", self.convert(llvm.PtrToIntOp, pointer, I64), self.integer(0))

    def select(self, condition: SSAValue, then: SSAValue, otherwise: SSAValue) -> SSAValue:
        """One of two values."""
        return self.value(llvm.SelectOp(condition, then, otherwise))

    def call(self, callee: str, arguments: Sequence[SSAValue], result: Attribute | None = I32) -> SSAValue | None:
        """Calls a function by name; gives its result, if it has one."""
        return next(iter(self.add(call_op(callee, arguments, result)).results), None)

    def called(self, callee: str, arguments: Sequence[SSAValue], result: Attribute) -> SSAValue:
        """The result of a function that has one."""
        value = self.call(callee, arguments, result)
        assert value is not None  # it has a type
        return value

    def status(self, callee: str, arguments: Sequence[SSAValue]) -> SSAValue:
        """Calls a function that returns a status, and gives whether it failed."""
        return self.compare("ne", self.called(callee, arguments, I32), self.integer(0, I32))

    def branch(self, target: Block, *arguments: SSAValue) -> None:
        """Ends the block."""
        self.add(new_op(llvm.BrOp, arguments, successors=(target,)))

    def branch_if(self, condition: SSAValue, then: Block, otherwise: Block, *arguments: SSAValue) -> None:
        """Ends the block: jumps to `then` with arguments, or to a block that takes none."""
        sizes: dict[str, Attribute] = {"operandSegmentSizes": i32_array(1, len(arguments), 0)}
        self.add(new_op(llvm.CondBrOp, (condition, *arguments), (), sizes, successors=(then, otherwise)))

    def return_(self, value: SSAValue) -> None:
        """Ends the block."""
        self.add(new_op(llvm.ReturnOp, (value,)))


@cache
def _bytes_behind(offset: int) -> dict[str, Attribute]:
    """The properties of an address so many bytes behind another."""
    return {
        "rawConstantIndices": i32_array(offset),
        "elem_type": I8,
        "noWrapFlags": IntegerAttr(0, 32),
        "inbounds": UnitAttr(),
    }


@cache
def _integer(number: int, type_: IntegerType) -> IntegerAttr:
    return IntegerAttr(number, type_)
