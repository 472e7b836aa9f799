"""Random functions print, parse back to the same, and mean the same in both forms of text."""

from __future__ import annotations

from io import StringIO

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, ModuleOp, StringAttr, f32
from xdsl.ir import Block, BlockArgument, Region, SSAValue
from xdsl.printer import Printer

from lowering.parsing import parse_module
from tir_dialect.interpreter import run_prim_func
from tir_dialect.ops.arithmetic import DimOp
from tir_dialect.ops.blocks import BlockOp, InitOp
from tir_dialect.ops.control_flow import ForOp, IfOp, YieldOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.types import BufferType, IteratorKind, LoopKind, SymbolAttr

KINDS = [LoopKind.SERIAL, LoopKind.SERIAL, LoopKind.PARALLEL, LoopKind.UNROLLED]


class Generator:
    """Builds a function that updates every element of a square buffer some times."""

    def __init__(self, draw):
        self.draw = draw
        self.func = PrimFuncOp("f", [SymbolAttr("n", 0, 8)], [("X", BufferType(["n", "n"], f32))])
        self.block = self.func.body.block
        self.sizes = [self.func.symbol_args[0]]
        for value in (0, 1, 2):
            self.sizes.append(self.add(arith.ConstantOp(IntegerAttr(value, IndexType()))).result)
        self.sizes.append(self.add(DimOp("n")).result)

    def add(self, op, block=None):
        (block or self.block).add_op(op)
        return op

    def body(self, block: Block, variables: list[SSAValue], depth: int) -> None:
        for _ in range(self.draw(st.integers(1, 2))):
            choice = self.draw(st.integers(0, 4)) if depth else 4
            if choice <= 2:
                self.loop(block, variables, depth)
            elif choice == 3:
                self.branch(block, variables, depth)
            else:
                self.update(block, variables)

    def loop(self, block: Block, variables: list[SSAValue], depth: int) -> None:
        kind = self.draw(st.sampled_from(KINDS))
        upper = self.draw(st.sampled_from([*self.sizes, *variables]))
        lower = self.draw(st.sampled_from([None, None, *self.sizes[1:4]]))
        note = self.draw(st.sampled_from([None, None, None, {"note": StringAttr("x")}]))
        loop = self.add(ForOp(upper, lower=lower, kind=kind, annotations=note, name_hint="i"), block)
        if self.draw(st.booleans()):
            self.body(loop.body.block, [*variables, loop.induction_var], depth - 1)
        else:
            self.loop_only(loop.body.block, [*variables, loop.induction_var], depth - 1)

    def loop_only(self, block: Block, variables: list[SSAValue], depth: int) -> None:
        if depth > 0:
            self.loop(block, variables, depth)

    def branch(self, block: Block, variables: list[SSAValue], depth: int) -> None:
        lhs, rhs = (self.draw(st.sampled_from([*self.sizes, *variables])) for _ in range(2))
        condition = self.add(arith.CmpiOp(lhs, rhs, "slt"), block)
        bodies = [Region(Block()), Region(Block())]
        self.body(bodies[0].block, variables, depth - 1)
        if self.draw(st.booleans()):
            self.body(bodies[1].block, variables, depth - 1)
        self.add(IfOp(condition, *bodies), block)

    def update(self, block: Block, variables: list[SSAValue]) -> None:
        """A block whose iterators are two values that are in range, and maybe a reduction."""
        n = self.sizes[0]
        inside = [value for value in variables if isinstance(value, BlockArgument)]
        picks = [self.draw(st.sampled_from([*inside, self.sizes[1]])) for _ in range(2)]
        checks = [self.add(arith.CmpiOp(pick, n, "slt"), block) for pick in picks]
        where = self.add(arith.AndIOp(checks[0], checks[1]), block)
        reduce = self.draw(st.booleans())
        iterators = [(IteratorKind.SPATIAL, pick, n) for pick in picks]
        if reduce:
            iterators.append((IteratorKind.REDUCE, self.sizes[1], self.sizes[2]))
        op = self.add(BlockOp("update", iterators, where=where, name_hints=["vi", "vj", "vr"]), block)
        body, indices = op.body.block, op.body.block.args[:2]
        if reduce:
            init = self.add(InitOp(), body)
            zero = self.add(self.constant(0.5), init.body.block)
            self.add(StoreOp(zero, self.func.params[0], indices), init.body.block)
        value = self.add(LoadOp(self.func.params[0], indices), body)
        one = self.add(self.constant(1.0), body)
        total = self.add(arith.AddfOp(value, one), body)
        result = self.through_memory(total.result, body) if self.draw(st.booleans()) else total.result
        self.add(StoreOp(result, self.func.params[0], indices), body)

    def through_memory(self, value: SSAValue, block: Block) -> SSAValue:
        local = self.add(AllocBufferOp(BufferType([], f32, scope="local")), block).buffer
        self.add(StoreOp(value, local, []), block)
        condition = self.add(arith.CmpiOp(self.sizes[1], self.sizes[2], "slt"), block)
        regions = [Region(Block()), Region(Block())]
        for region in regions:
            load = self.add(LoadOp(local, []), region.block)
            self.add(YieldOp(load), region.block)
        return self.add(IfOp(condition, *regions, result_types=[f32]), block).outputs[0]

    @staticmethod
    def constant(value: float):
        return arith.ConstantOp(FloatAttr(value, f32))


@st.composite
def functions(draw):
    generator = Generator(draw)
    generator.body(generator.block, [], 4)
    return generator.func


def run(func: PrimFuncOp) -> np.ndarray:
    array = np.zeros((3, 3), np.float32)
    run_prim_func(func, [array])
    return array


@given(functions())
def test_both_forms_parse_back(func):
    module = ModuleOp([func])
    module.verify()
    expected = run(func)
    for generic in (False, True):
        stream = StringIO()
        Printer(stream, print_generic_format=generic).print_op(module)
        again = parse_module(stream.getvalue())
        again.verify()
        assert module.is_structurally_equivalent(again)
        np.testing.assert_array_equal(run(again.body.block.first_op), expected)
