"""Random functions of the dialect: bytecode computes what the IR says, whatever the registers."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region, SSAValue

from lowering.relax_to_vm.allocate_registers import allocate
from vm_dialect import VirtualMachine
from vm_dialect.codegen import emit_executable
from vm_dialect.integers import INT_FUNCTIONS
from vm_dialect.ops.checks import CheckIntOp
from vm_dialect.ops.structure import FuncOp, GotoOp, IfOp, ReturnOp
from vm_dialect.ops.values import ConstOp, IntOp
from vm_dialect.types import I64, OBJECT

ARITHMETIC = ("add", "sub", "mul", "min", "max", "broadcast")
FUEL = 40


def random_function(seed: int) -> FuncOp:
    """A function of two integers with a chain of blocks and jumps back, which ends after `FUEL` jumps."""
    source = random.Random(seed)
    func = FuncOp("main", ([OBJECT, OBJECT], [OBJECT]), Region(Block(arg_types=[OBJECT, OBJECT])))
    entry = func.body.block
    visible: list[SSAValue] = []
    for argument in entry.args:
        check = CheckIntOp(argument)
        entry.add_op(check)
        visible.append(check.result)
    # The first argument of every other block is the fuel that is left.
    blocks = [entry, *(Block(arg_types=[I64] * source.randint(1, 4)) for _ in range(source.randint(1, 4)))]
    for block in blocks[1:]:
        func.body.add_block(block)
    start = ConstOp(FUEL)
    entry.add_op(start)
    for index, block in enumerate(blocks):
        fuel = start.result if index == 0 else block.args[0]
        visible += block.args if index else ()
        _fill(source, block, visible)
        _end(source, blocks, index, fuel, visible)
    return func


def _fill(source: random.Random, block: Block, visible: list[SSAValue]) -> None:
    for _ in range(source.randint(0, 5)):
        if source.random() < 0.2:
            op: ConstOp | IntOp = ConstOp(source.randint(-5, 5))
        else:
            op = IntOp(source.choice(ARITHMETIC), source.choice(visible), source.choice(visible))
        block.add_op(op)
        visible.append(op.result)


def _end(source: random.Random, blocks: list[Block], index: int, fuel: SSAValue, visible: list[SSAValue]) -> None:
    block = blocks[index]
    one = ConstOp(1)
    left = IntOp("sub", fuel, one.result)
    block.add_ops([one, left])

    def operands(target: Block) -> list[SSAValue]:
        return [left.result, *(source.choice(visible) for _ in target.args[1:])]

    if index + 1 == len(blocks):
        block.add_op(ReturnOp(source.choice(visible)))
        return
    forward = blocks[index + 1]
    if index == 0:
        block.add_op(GotoOp(forward, operands(forward)))
        return
    back = blocks[source.randint(1, index + 1)]
    more = IntOp("gt", left.result, one.result)
    block.add_op(more)
    block.add_op(IfOp(more.result, back, operands(back), forward, operands(forward)))


def evaluate(func: FuncOp, arguments: list[int]) -> int:
    """The function's result, straight from the IR."""
    block = func.body.block if len(func.body.blocks) == 1 else next(iter(func.body.blocks))
    values: dict[SSAValue, int] = dict(zip(block.args, arguments, strict=True))
    while True:
        for op in block.ops:
            match op:
                case CheckIntOp():
                    values[op.result] = values[op.value]
                case ConstOp():
                    values[op.result] = int(op.python_value)
                case IntOp():
                    values[op.result] = INT_FUNCTIONS[op.kind.data.value](values[op.lhs], values[op.rhs])
                case ReturnOp(value=SSAValue() as result):
                    return values[result]
                case GotoOp():
                    target, passed = op.target, op.arguments
                case IfOp():
                    taken = (op.then_block, op.then_arguments), (op.else_block, op.else_arguments)
                    target, passed = taken[0 if values[op.condition] else 1]
                case _:
                    raise TypeError(op.name)
        values.update(zip(target.args, [values[value] for value in passed], strict=True))
        block = target


@given(st.integers(0, 100_000), st.integers(-9, 9), st.integers(-9, 9))
def test_bytecode_computes_what_the_ir_says(seed: int, x: int, y: int):
    func = random_function(seed)
    module = ModuleOp([func])
    module.verify()
    allocate(func)
    module.verify()
    executable = emit_executable(module)
    assert VirtualMachine(executable)["main"](x, y) == evaluate(func, [x, y])
    namespace: dict[str, object] = {}
    exec(executable.as_python(), namespace)
    assert namespace["executable"] == executable
    assert type(executable).from_bytes(executable.to_bytes()) == executable
