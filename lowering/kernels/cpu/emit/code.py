"""Writes tir code: a thin layer over op constructors, with loops and branches as context managers."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from xdsl.dialects import arith, math, vector
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    UnitAttr,
    VectorType,
    i1,
    i32,
    i64,
)
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, SSAValue

from lowering.kernels.cpu.emit.indices import IndexCode
from tir_dialect.codegen_hints import PLAIN_ADDRESSES, STREAMED_FROM
from tir_dialect.dims import DimLike
from tir_dialect.new_ops import new_op
from tir_dialect.ops.accesses import RegionAxis
from tir_dialect.ops.control_flow import IfOp
from tir_dialect.ops.loops import ForOp, LoopKind
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp, vector_of
from tir_dialect.ops.misalignment import MisalignmentOp
from tir_dialect.ops.prefetch import PrefetchOp
from tir_dialect.ops.regions import MatchBufferOp
from tir_dialect.types import BufferType

_CONTRACT = arith.FastMathFlagsAttr((FastMathFlag.ALLOW_CONTRACT,))


class Code(IndexCode):
    """Emits ops on indices, elements and vectors, and the loops and branches around them."""

    # Elements and vectors

    def alloc(
        self, shape: Sequence[DimLike], dtype: AnyFloat | IntegerType, name: str, scope: str = "global"
    ) -> SSAValue:
        """New memory, aligned to a cache line."""
        return self.value(AllocBufferOp(BufferType(shape, dtype, scope=scope, align=64)), name)

    def part(self, buffer: SSAValue, number: SSAValue, shape: Sequence[DimLike]) -> SSAValue:
        """The part of a buffer with this number along its first dimension, as a buffer of this shape."""
        kind, zero = SSAValue.get(buffer, type=BufferType).type, self.index(0)
        ranges = [RegionAxis(zero, self.dim(length)) for length in shape]
        part = BufferType(shape, kind.dtype, strides=kind.strides[1:], scope=kind.scope)
        return self.value(MatchBufferOp(buffer, [RegionAxis(number), *ranges], part))

    def load(
        self, buffer: SSAValue, indices: Sequence[SSAValue], lanes: int | None = None, mask: SSAValue | None = None
    ) -> SSAValue:
        """An element, or `lanes` of them along the last dimension."""
        return self.value(LoadOp(buffer, indices, lanes=lanes, mask=mask))

    def store(
        self,
        value: SSAValue,
        buffer: SSAValue,
        indices: Sequence[SSAValue],
        mask: SSAValue | None = None,
        streamed_from: int | None = None,
    ) -> None:
        """Writes an element or a vector; past the caches where the buffer has `streamed_from` bytes and more."""
        op = StoreOp(value, buffer, indices, mask=mask)
        if streamed_from is not None:
            op.attributes[STREAMED_FROM] = IntegerAttr(streamed_from, i64)
        self.emit(op)

    def prefetch(self, buffer: SSAValue, indices: Sequence[SSAValue], level: int) -> None:
        """Asks for the cache line of an element, which need not be in the buffer."""
        self.emit(PrefetchOp(buffer, indices, level))

    def zeros(self, dtype: AnyFloat, lanes: int) -> SSAValue:
        """A vector of zeros."""
        kind = VectorType(dtype, [lanes])
        return self.value(arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(kind, [0.0])))

    def number(self, value: float, dtype: AnyFloat) -> SSAValue:
        """A constant."""
        return self.value(arith.ConstantOp(FloatAttr(value, dtype)))

    def splat(self, value: SSAValue, lanes: int) -> SSAValue:
        """A vector with one value in all lanes."""
        return self.value(new_op(vector.BroadcastOp, (value,), (vector_of(value.type, lanes),)))

    def leading(self, count: SSAValue, lanes: int) -> SSAValue:
        """A mask whose first `count` lanes are on: none if it is negative, all if it is large."""
        return self._once((count, lanes), lambda: vector.CreateMaskOp([count], VectorType(i1, [lanes])))

    def fma(self, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
        """`a * b + c`, rounded once where the processor can."""
        properties = {"fastmath": _CONTRACT}
        return self.value(new_op(math.FmaOp, (a, b, c), (c.type,), properties))

    def add_floats(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """The sum of two numbers or vectors."""
        return self._binary(arith.AddfOp, a, b)

    def misalignment(self, buffer: SSAValue, indices: Sequence[SSAValue], lanes: int) -> SSAValue:
        """How many elements lie between an element and where an aligned vector of `lanes`, a power of two, begins."""
        return self.value(MisalignmentOp(buffer, indices, lanes))

    # Structure

    @contextmanager
    def loop(
        self,
        upper: SSAValue,
        name: str,
        *,
        lower: SSAValue | None = None,
        kind: LoopKind = LoopKind.SERIAL,
        grain: int = 1,
        vectorize: bool = True,
        unroll: int = 1,
        plain: bool = False,
    ) -> Generator[SSAValue]:
        """What happens for each value; gives the value. A thread of a parallel loop gets `grain` of them or more.

        LLVM leaves the loop as it is if it is not to `vectorize`; an iteration has `unroll` values. In the kernel of a
        `plain` loop no address gets a register of its own that counts it up.
        """
        annotations: dict[str, Attribute] = {"grain": IntegerAttr(grain, i64)} if grain > 1 else {}
        if unroll > 1:
            annotations["llvm.loop.unroll.count"] = IntegerAttr(unroll, i32)
        if not vectorize:
            annotations = {"llvm.loop.vectorize.enable": IntegerAttr(0, i1), "llvm.loop.unroll.disable": UnitAttr()}
        if plain:
            annotations[PLAIN_ADDRESSES] = UnitAttr()
        op = ForOp(upper, lower=lower, kind=kind, annotations=annotations or None, name_hint=name)
        self.emit(op)
        # What a parallel loop uses from outside is passed to it: more than an instruction.
        with self.inside(op.body.block, apart=kind is LoopKind.PARALLEL):
            yield op.induction_var

    @contextmanager
    def when(self, condition: SSAValue) -> Generator[IfOp]:
        """What happens only if a condition holds; `otherwise` takes what this gives."""
        op = IfOp(condition)
        self.emit(op)
        with self.inside(op.then_body.block):
            yield op

    @contextmanager
    def otherwise(self, op: IfOp) -> Generator[None]:
        """What happens if the condition of a `when` does not hold."""
        with self.inside(op.else_body.block):
            yield
