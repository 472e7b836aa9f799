"""Appends ops of the llvm dialect to the blocks of one function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import llvm
from xdsl.dialects.builtin import UNKNOWN_LOC, FloatAttr, IntegerAttr, IntegerType, LocationAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from lowering.native.abi import F64, I1, I8, I32, I64, PAYLOAD, PTR


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
            self._alloca = llvm.AllocaOp(size, self.element, 8)
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

    # Values of the prologue.

    def integer(self, number: int, type_: IntegerType = I64) -> SSAValue:
        """An integer constant."""
        key = (number, type_.width.data)
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = self._prepend(llvm.ConstantOp(IntegerAttr(number, type_), type_))
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
            found = self._addresses[symbol] = self._prepend(llvm.AddressOfOp(symbol, PTR))
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
        return base if offset == 0 else self.value(llvm.GEPOp(base, [offset], I8, inbounds=True))

    def displaced(self, base: SSAValue, offset: SSAValue) -> SSAValue:
        """The address `offset` bytes behind `base`."""
        return self.value(llvm.GEPOp.from_mixed_indices(base, [offset], I8, inbounds=True))

    def load(self, address: SSAValue, type_: Attribute, offset: int = 0) -> SSAValue:
        """The value at `address` plus `offset` bytes."""
        return self.value(llvm.LoadOp(self.offset(address, offset), type_))

    def store(self, value: SSAValue, address: SSAValue, offset: int = 0) -> None:
        """Writes to `address` plus `offset` bytes."""
        self.add(llvm.StoreOp(value, self.offset(address, offset)))

    def number(self, address: SSAValue, kind: Attribute) -> SSAValue:
        """The number in the `TVMFFIAny` at `address`."""
        if kind == I1:
            return self.compare("ne", self.load(address, I64, PAYLOAD), self.integer(0))
        return self.load(address, kind, PAYLOAD)

    # Arithmetic and control.

    def compare(self, predicate: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """`icmp` with LLVM's name of the predicate."""
        flag = llvm.ICmpPredicateFlag(predicate).to_int()
        return self.value(llvm.ICmpOp(lhs, rhs, IntegerAttr(flag, I64)))

    def is_null(self, pointer: SSAValue) -> SSAValue:
        """Whether an address is 0."""
        return self.compare("eq", self.value(llvm.PtrToIntOp(pointer, I64)), self.integer(0))

    def select(self, condition: SSAValue, then: SSAValue, otherwise: SSAValue) -> SSAValue:
        """One of two values."""
        return self.value(llvm.SelectOp(condition, then, otherwise))

    def call(self, callee: str, arguments: Sequence[SSAValue], result: Attribute | None = I32) -> SSAValue | None:
        """Calls a function by name; gives its result, if it has one."""
        op = llvm.CallOp(callee, *arguments, return_type=result)
        return next(iter(self.add(op).results), None)

    def status(self, callee: str, arguments: Sequence[SSAValue]) -> SSAValue:
        """Calls a function that returns a status, and gives whether it failed."""
        result = self.call(callee, arguments)
        if result is None:
            raise ValueError(f"function {callee} has no result")
        return self.compare("ne", result, self.integer(0, I32))

    def branch(self, target: Block, *arguments: SSAValue) -> None:
        """Ends the block."""
        self.add(llvm.BrOp(target, *arguments))

    def branch_if(self, condition: SSAValue, then: Block, otherwise: Block) -> None:
        """Ends the block; the targets take no arguments."""
        self.add(llvm.CondBrOp(condition, then, (), otherwise, ()))

    def return_(self, value: SSAValue) -> None:
        """Ends the block."""
        self.add(llvm.ReturnOp(value))
