"""The builder of functions of the virtual machine: memory, numbers and calls of the run-time support."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    IntegerAttr,
    UnitAttr,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from lowering.llvm.function_builder import FunctionBuilder, call_op
from lowering.vm_to_llvm.abi import I1, I8, I32, I64, PAYLOAD, PTR
from tir_dialect.new_ops import new_op
from tir_dialect.ops.memory import i32_array

_WORD = IntegerAttr(8, I64)
_WRAPS: dict[str, Attribute] = {"overflowFlags": IntegerAttr(0, I32)}
_PLAIN_ACCESS: dict[str, Attribute] = {"ordering": IntegerAttr(0, I64)}
_PREDICATES = {flag.value: IntegerAttr(flag.to_int(), I64) for flag in llvm.ALL_ICMP_FLAGS}


@dataclass
class StackArea:
    """Room in the entry block for values of one type, as many as the function turns out to need."""

    builder: RuntimeBuilder
    element: Attribute
    _alloca: llvm.AllocaOp | None = None
    _count: int = 0

    def at_least(self, count: int) -> SSAValue:
        """The address of `count` values or more, 8 bytes aligned."""
        size = self.builder.integer(max(count, self._count))
        if self._alloca is None:
            self._alloca = new_op(llvm.AllocaOp, (size,), (PTR,), {"elem_type": self.element, "alignment": _WORD})
            self._alloca.location = self.builder.location
            self.builder.entry.add_op(self._alloca)
        elif count > self._count:
            self._alloca.operands[0] = size
        self._count = max(count, self._count)
        return self._alloca.res

    def drop(self) -> None:
        """Takes the room away, since nobody uses it."""
        if self._alloca is not None:
            self._alloca.detach()
            self._alloca.erase()


class RuntimeBuilder(FunctionBuilder):
    """Builds a function of the virtual machine, with what the run-time support and its layouts need.

    The entry block holds constants, addresses and stack slots, so that they dominate every use and exist once. It ends
    with a branch that the user adds last.
    """

    def __init__(self, function: llvm.FuncOp) -> None:
        super().__init__(function.function_type.inputs.data)
        self.function = function

    @property
    def arguments(self) -> Sequence[SSAValue]:
        """The function's parameters."""
        return self.entry.args

    def finished(self, body: Block | None = None) -> llvm.FuncOp:
        """The function; the entry block ends in a branch to `body`, unless it is the whole body."""
        if body is not None:
            self.block = self.entry
            self.branch(body)
        self.function.detach_region(0)
        self.function.add_region(self.finish())
        return self.function

    def value(self, op: Operation) -> SSAValue:
        """Appends an op and gives its result."""
        return self.insert(op).results[0]

    def stack(self, type_: Attribute) -> StackArea:
        """Room in the function's frame for values of a type."""
        return StackArea(self, type_)

    # Memory.

    def offset(self, base: SSAValue, offset: int) -> SSAValue:
        """The address `offset` bytes behind `base`."""
        return base if offset == 0 else self.make(llvm.GEPOp, (base,), PTR, _byte_offset(offset))

    def displaced(self, base: SSAValue, offset: SSAValue) -> SSAValue:
        """The address `offset` bytes behind `base`."""
        return self.make(llvm.GEPOp, (base, offset), PTR, _byte_offset(llvm.GEP_USE_SSA_VAL))

    def load(self, address: SSAValue, type_: Attribute, offset: int = 0) -> SSAValue:
        """The value at `address` plus `offset` bytes."""
        return self.make(llvm.LoadOp, (self.offset(address, offset),), type_, _PLAIN_ACCESS)

    def store(self, value: SSAValue, address: SSAValue, offset: int = 0) -> None:
        """Writes to `address` plus `offset` bytes."""
        self.insert(new_op(llvm.StoreOp, (value, self.offset(address, offset)), (), _PLAIN_ACCESS))

    def number(self, address: SSAValue, kind: Attribute) -> SSAValue:
        """The number in the `TVMFFIAny` at `address`."""
        if kind == I1:
            return self.compare("ne", self.load(address, I64, PAYLOAD), self.integer(0))
        return self.load(address, kind, PAYLOAD)

    # Arithmetic and control.

    def convert(self, kind: type[Operation], value: SSAValue, type_: Attribute) -> SSAValue:
        """A value as one of another type, by an op without properties."""
        return self.make(kind, (value,), type_)

    def subtract(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """The difference of two integers, which may wrap."""
        return self.make(llvm.SubOp, (lhs, rhs), lhs.type, _WRAPS)

    def compare(self, predicate: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """`icmp` with LLVM's name of the predicate."""
        return self.make(llvm.ICmpOp, (lhs, rhs), I1, {"predicate": _PREDICATES[predicate]})

    def is_null(self, pointer: SSAValue) -> SSAValue:
        """Whether an address is 0."""
        return self.compare("eq", self.convert(llvm.PtrToIntOp, pointer, I64), self.integer(0))

    def select(self, condition: SSAValue, then: SSAValue, otherwise: SSAValue) -> SSAValue:
        """One of two values."""
        return self.value(llvm.SelectOp(condition, then, otherwise))

    def call(self, callee: str, arguments: Sequence[SSAValue], result: Attribute | None = I32) -> SSAValue | None:
        """Calls a function by name; gives its result, if it has one."""
        return next(iter(self.insert(call_op(callee, arguments, result)).results), None)

    def called(self, callee: str, arguments: Sequence[SSAValue], result: Attribute) -> SSAValue:
        """The result of a function that has one."""
        value = self.call(callee, arguments, result)
        assert value is not None  # it has a type
        return value

    def status(self, callee: str, arguments: Sequence[SSAValue]) -> SSAValue:
        """Calls a function that returns a status, and gives whether it failed."""
        return self.compare("ne", self.called(callee, arguments, I32), self.integer(0, I32))

    def return_(self, value: SSAValue) -> None:
        """Ends the block."""
        self.insert(new_op(llvm.ReturnOp, (value,)))


@cache
def _byte_offset(offset: int) -> dict[str, Attribute]:
    """The properties of an address so many bytes behind another."""
    return {
        "rawConstantIndices": i32_array(offset),
        "elem_type": I8,
        "noWrapFlags": IntegerAttr(0, 32),
        "inbounds": UnitAttr(),
    }
