"""Where the IR keeps registers: the attribute `regs` of ops, `frame_size` and `block_registers` of functions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr, i32, i64
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from vm_dialect.ops.structure import FuncOp
from vm_dialect.registers import NO_REGISTER

REGISTERS = "regs"
"""The registers of an op's results, `array<i32: 3>`; -1 for a result without a use."""


def set_op_registers(op: Operation, registers: Sequence[int]) -> None:
    """Writes the registers of an op's results."""
    op.attributes[REGISTERS] = DenseArrayBase.from_list(i32, registers)


def set_frame(func: FuncOp, frame_size: int, block_registers: Sequence[Sequence[int]]) -> None:
    """Writes the number of registers of a function, and the registers of each block's arguments."""
    func.frame_size = IntegerAttr(frame_size, i64)
    func.block_registers = ArrayAttr([DenseArrayBase.from_list(i32, registers) for registers in block_registers])


def frame_size(func: FuncOp) -> int | None:
    """The number of registers of a function; `None` before `allocate-registers`."""
    return None if func.frame_size is None else func.frame_size.value.data


def value_register(value: SSAValue) -> int | None:
    """The register of a value; `None` if it has none, because nobody uses it or it is a constant."""
    registers = None
    index = 0
    if isinstance(value, OpResult):
        registers, index = value.op.attributes.get(REGISTERS), value.index
    elif isinstance(value, BlockArgument):
        func = value.block.parent_op()
        if isinstance(func, FuncOp) and func.block_registers is not None:
            registers, index = func.block_registers.data[func.body.get_block_index(value.block)], value.index
    if not isinstance(registers, DenseArrayBase):
        return None
    register = int(registers.get_values()[index])
    return None if register == NO_REGISTER else register
