"""Random functions over integers, tensors and tuples, with loops and kills."""

from __future__ import annotations

import random

from xdsl.dialects.builtin import f32
from xdsl.ir import Block, Operation, Region, SSAValue

from vm_dialect.ops.calls import CallKernelOp, CallOp, CallPackedOp
from vm_dialect.ops.checks import CheckTensorOp
from vm_dialect.ops.memory import (
    AllocStorageOp,
    AllocTensorOp,
    KillOp,
    MakeShapeOp,
    NewTensorOp,
    ShapeOfOp,
    TensorDimOp,
    ViewOp,
)
from vm_dialect.ops.structure import FuncOp, GotoOp, IfOp, ReturnOp
from vm_dialect.ops.values import ConstOp, IntOp, MakeTupleOp, NullOp, StrOp, TupleGetOp
from vm_dialect.types import I64, OBJECT, TensorType

FUEL = 12
SIZE = 512
"""Elements of a vector: so many that glibc hands freed memory to `M_PERTURB`."""
VECTOR = TensorType(1, f32)
ECHO = "test.native.random_echo"


class RandomFunction:
    """`main(a, b)` of two vectors of `SIZE` floats; ends after `FUEL` jumps."""

    def __init__(self, seed: int):
        self.source = random.Random(seed)
        self.func = FuncOp("main", ([OBJECT, OBJECT], [OBJECT]), Region(Block(arg_types=[OBJECT, OBJECT])))
        self.block = self.func.body.block
        self.numbers: list[SSAValue] = []
        self.tensors: list[SSAValue] = []
        self.tuples: list[SSAValue] = []
        """Tuples whose first field is a vector."""

    def build(self) -> FuncOp:
        """The function."""
        for argument in self.block.args:
            self.tensors.append(self.add(CheckTensorOp(argument, VECTOR)))
        fuel = self.add(ConstOp(FUEL))
        self.numbers.append(fuel)
        blocks = [self.block, *(self.new_block() for _ in range(self.source.randint(1, 3)))]
        for index, block in enumerate(blocks):
            self.block = block
            if index:
                fuel = block.args[0]
                for argument in block.args:
                    kind = self.numbers if argument.type == I64 else self.tensors
                    (kind if argument.type != OBJECT else self.tuples).append(argument)
            for _ in range(self.source.randint(1, 6)):
                self.random_op()
            self.end(blocks, index, fuel)
        for block in blocks:
            self.kill_what_is_dead(block)
        return self.func

    def new_block(self) -> Block:
        kinds = [self.source.choice((I64, VECTOR, OBJECT)) for _ in range(self.source.randint(0, 3))]
        block = Block(arg_types=[I64, *kinds])
        self.func.body.add_block(block)
        return block

    def add(self, op: Operation) -> SSAValue:
        self.block.add_op(op)
        return op.results[0]

    def pick(self, kind: object) -> SSAValue:
        if kind == I64:
            return self.source.choice(self.numbers)
        if kind == VECTOR:
            return self.source.choice(self.tensors)
        if not self.tuples or self.source.random() < 0.3:
            self.make_tuple()
        return self.source.choice(self.tuples)

    def random_op(self) -> None:
        values = (self.number, self.kernel, self.through_storage, self.view)
        self.source.choice((*values, self.make_tuple, self.field, self.call, self.packed))()

    def number(self) -> None:
        lhs, rhs = self.pick(I64), self.add(ConstOp(self.source.randint(-3, 3)))
        self.numbers.append(self.add(IntOp(self.source.choice(("add", "mul", "min", "max")), lhs, rhs)))

    def kernel(self) -> None:
        source = self.pick(VECTOR)
        size = self.add(TensorDimOp(source, 0))
        result = self.add(NewTensorOp([size], f32))
        self.block.add_op(CallKernelOp("add_one", [size], [source, result]))
        self.tensors.append(result)

    def through_storage(self) -> None:
        source = self.pick(VECTOR)
        size, bytes_, zero = self.add(TensorDimOp(source, 0)), self.add(ConstOp(4 * SIZE)), self.add(ConstOp(0))
        inside = self.add(AllocTensorOp(self.add(AllocStorageOp(bytes_)), zero, [size], f32))
        result = self.add(NewTensorOp([size], f32))
        self.block.add_op(CallKernelOp("add_one", [size], [source, inside]))
        flat = self.add(ViewOp(inside, [size]))
        self.block.add_op(CallKernelOp("add_one", [size], [flat, result]))
        self.tensors.append(result)

    def view(self) -> None:
        """Of a vector that nobody else uses, or of any."""
        self.kernel()
        source = self.tensors.pop() if self.source.random() < 0.6 else self.pick(VECTOR)
        two, half, size = (self.add(ConstOp(number)) for number in (2, SIZE // 2, SIZE))
        matrix = self.add(ViewOp(source, [two, half]))
        flat = self.add(ViewOp(matrix, [size]))
        if self.source.random() < 0.5:
            result = self.add(NewTensorOp([size], f32))
            self.block.add_op(CallKernelOp("add_one", [size], [flat, result]))
            flat = result
        self.tensors.append(flat)

    def make_tuple(self) -> None:
        tensor = self.pick(VECTOR)
        rest = (
            lambda: self.pick(I64),
            lambda: self.add(StrOp("a string that is an object")),
            lambda: self.add(NullOp()),
            lambda: self.add(ShapeOfOp(tensor)),
            lambda: self.add(MakeShapeOp([self.add(ConstOp(1)), self.add(ConstOp(2))])),
            lambda: self.source.choice(self.tuples or self.tensors),
        )
        fields = [self.source.choice(rest)() for _ in range(self.source.randint(0, 3))]
        self.tuples.append(self.add(MakeTupleOp([tensor, *fields])))

    def field(self) -> None:
        field = self.add(TupleGetOp(self.pick(OBJECT), 0))
        self.tensors.append(self.add(CheckTensorOp(field, VECTOR)))
        if self.source.random() < 0.5:
            self.tuples.append(self.add(MakeTupleOp([field])))

    def call(self) -> None:
        call = CallOp("helper", [self.pick(VECTOR), self.pick(I64), self.pick(OBJECT)], OBJECT)
        self.tuples.append(self.add(call))

    def packed(self) -> None:
        result = self.add(CallPackedOp(ECHO, [self.pick(VECTOR), self.pick(I64), self.pick(OBJECT)], OBJECT))
        self.tuples.append(result)

    def end(self, blocks: list[Block], index: int, fuel: SSAValue) -> None:
        one = self.add(ConstOp(1))
        left = self.add(IntOp("sub", fuel, one))
        if index + 1 == len(blocks):
            self.block.add_op(ReturnOp(self.pick(self.source.choice((I64, VECTOR, OBJECT)))))
            return
        forward = blocks[index + 1]
        if index == 0:
            self.block.add_op(GotoOp(forward, self.operands(forward, left)))
            return
        back = blocks[self.source.randint(1, index + 1)]
        more = self.add(IntOp("gt", left, one))
        passed = self.operands(back, left), self.operands(forward, left)
        self.block.add_op(IfOp(more, back, passed[0], forward, passed[1]))

    def operands(self, target: Block, fuel: SSAValue) -> list[SSAValue]:
        return [fuel, *(self.pick(argument.type) for argument in target.args[1:])]

    def kill_what_is_dead(self, block: Block) -> None:
        """A kill after the last use of many values that are used in their own block only."""
        for op in list(block.ops):
            for result in op.results:
                users = [use.operation for use in result.uses]
                local = all(user.parent is block and user is not block.last_op for user in users)
                if users and local and result.type != I64 and self.source.random() < 0.7:
                    last = max(users, key=block.get_operation_index)
                    block.insert_op_after(KillOp(result), last)


def helper() -> FuncOp:
    """Gives a tuple of its arguments, in another order."""
    func = FuncOp("helper", ([VECTOR, I64, OBJECT], [OBJECT]), visibility="private")
    tensor, number, value = func.body.block.args
    result = MakeTupleOp([tensor, value, number])
    func.body.block.add_ops([result, ReturnOp(result)])
    return func
