"""The pass `allocate-registers`."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block as IRBlock
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from vm_dialect.ops.base import ConstantOp
from vm_dialect.ops.structure import FuncOp, GotoOp, IfOp
from vm_dialect.registers import Block, Edge, Instruction, allocate_registers, set_frame, set_op_registers


class AllocateRegistersPass(ModulePass):
    """Assigns every value of a `vm.func` a register of the function's frame.

    ```mlir
    vm.func @f(%x : !vm.object) {
      %n = vm.check_int %x
      %m = vm.int add %n, %n
      vm.call_packed "use"(%m)
      vm.ret
    }
    // becomes
    vm.func @f(%x : !vm.object) attributes {frame_size = 1 : i64, block_registers = [array<i32: 0>]} {
      %n = vm.check_int %x {regs = array<i32: 0>}
      %m = vm.int add %n, %n {regs = array<i32: 0>}
      vm.call_packed "use"(%m)
      vm.ret
    }
    ```

    The parameters have the first registers. Two values share a register if they are never live at once; a block
    argument takes that of a value which is passed to it where it can. Constants have no register; a result that nobody
    uses has -1. Registers that are there already are replaced. The time is linear in the number of ops, times the
    number of blocks that a value lives through.
    """

    name = "allocate-registers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Allocates the registers of every function."""
        for func in op.ops:
            if isinstance(func, FuncOp):
                allocate(func)


def allocate(func: FuncOp) -> None:
    """Writes the registers of one function."""
    blocks = list(func.body.blocks)
    # A number for each value that may have a register.
    numbers: dict[SSAValue, int] = {}
    for block in blocks:
        for value in block.args:
            numbers[value] = len(numbers)
        for op in block.ops:
            if not isinstance(op, ConstantOp):
                for value in op.results:
                    numbers[value] = len(numbers)
    indices = {block: index for index, block in enumerate(blocks)}
    allocation = allocate_registers([_plain_block(block, numbers, indices) for block in blocks], len(numbers))
    registers = allocation.registers
    for block in blocks:
        for op in block.ops:
            if op.results and not isinstance(op, ConstantOp):
                set_op_registers(op, [registers[numbers[result]] for result in op.results])
    arguments = [[registers[numbers[argument]] for argument in block.args] for block in blocks]
    set_frame(func, allocation.frame_size, arguments)


def _plain_block(block: IRBlock, numbers: dict[SSAValue, int], indices: dict[IRBlock, int]) -> Block:
    def known(values: Iterable[SSAValue]) -> tuple[int, ...]:
        return tuple(numbers[value] for value in values if value in numbers)

    def edge(target: IRBlock, values: Iterable[SSAValue]) -> Edge:
        return Edge(indices[target], tuple(numbers.get(value) for value in values))

    edges: tuple[Edge, ...] = ()
    last: Operation | None = block.last_op
    if isinstance(last, GotoOp):
        edges = (edge(last.target, last.arguments),)
    elif isinstance(last, IfOp):
        edges = (edge(last.then_block, last.then_arguments), edge(last.else_block, last.else_arguments))
    instructions = [Instruction(known(op.operands), known(op.results)) for op in block.ops]
    return Block(known(block.args), tuple(instructions), edges)
