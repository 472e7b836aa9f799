"""The builder of TensorIR code: a thin layer over op constructors, with loops and branches as context managers.

Ops are appended to a block. Index arithmetic is folded, and common subexpressions are emitted once.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TypeAlias

from xdsl.dialects import arith, math, vector
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    UnitAttr,
    VectorType,
    i1,
    i32,
    i64,
)
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tir_dialect.codegen_hints import PLAIN_ADDRESSES, STREAMED_FROM
from tir_dialect.dims import Dim, DimLike, to_dim
from tir_dialect.fast_ops import new_op
from tir_dialect.ops.arithmetic import DimOp
from tir_dialect.ops.blocks import MatchBufferOp
from tir_dialect.ops.control_flow import ForOp, IfOp, LoopKind
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, RegionAxis, StoreOp, vector_of
from tir_dialect.ops.raw_memory import MisalignmentOp, PrefetchOp
from tir_dialect.types import BufferType

INDEX = IndexType()

_Key: TypeAlias = tuple[object, ...]
"""The key of an op for common subexpressions: its kind and its operands."""

_FOLDED: Mapping[type[Operation], Callable[[int, int], int]] = {
    arith.AddiOp: operator.add,
    arith.SubiOp: operator.sub,
    arith.MuliOp: operator.mul,
    arith.MinSIOp: min,
    arith.MaxSIOp: max,
    arith.DivUIOp: lambda a, b: a // b,
    arith.RemUIOp: lambda a, b: a % b,
}
_DIVISIONS = (arith.DivUIOp, arith.RemUIOp)
_NEUTRAL_RIGHT = {(arith.AddiOp, 0), (arith.SubiOp, 0), (arith.MuliOp, 1), (arith.DivUIOp, 1)}
_NEUTRAL_LEFT = {(arith.AddiOp, 0), (arith.MuliOp, 1)}
_PREDICATES = {name: IntegerAttr(number, i64) for number, name in enumerate(arith.CMPI_COMPARISON_OPERATIONS)}


class IndexCode:
    """Emits index arithmetic at the end of a block; every op has the same location."""

    def __init__(self, block: Block, location: LocationAttr):
        self._block = block
        self._location = location
        self._constants: list[dict[int, SSAValue]] = [{}]
        self._known: list[dict[_Key, SSAValue]] = [{}]
        self._computed: list[dict[_Key, SSAValue]] = [{}]
        """Index arithmetic since the innermost parallel loop."""
        self._numbers: dict[SSAValue, int] = {}
        """The values of index constants."""

    def emit(self, op: Operation) -> Operation:
        """Appends an op."""
        op.location = self._location
        self._block.add_op(op)
        return op

    def value(self, op: Operation, name: str | None = None) -> SSAValue:
        """Appends an op and returns its result."""
        result = self.emit(op).results[0]
        if name is not None:
            result.name_hint = name
        return result

    @contextmanager
    def inside(self, block: Block, *, apart: bool = False) -> Generator[None]:
        """Ops go to the end of another block meanwhile; if that is `apart`, it shares no arithmetic with the
        outside.
        """
        outer, self._block = (self._block, self._computed), block
        self._computed = [{}] if apart else [*self._computed, {}]
        self._constants.append({})
        self._known.append({})
        yield
        self._constants.pop()
        self._known.pop()
        self._block, self._computed = outer

    def index(self, value: int) -> SSAValue:
        """An index constant; equal ones are emitted once for the block of the first and what is inside of it."""
        for scope in reversed(self._constants):
            if value in scope:
                return scope[value]
        made = self.value(new_op(arith.ConstantOp, (), (INDEX,), {"value": _index_attr(value)}))
        self._constants[-1][value] = made
        self._numbers[made] = value
        return made

    def known(self, index: SSAValue) -> int | None:
        """The value of an index constant; `None` for other indices."""
        return self._numbers.get(index)

    def dim(self, dim: DimLike, name: str | None = None) -> SSAValue:
        """The value of a dimension over the function's symbols."""
        known = to_dim(dim)
        constant = known.constant_value
        return self.index(constant) if constant is not None else self._once((known,), lambda: DimOp(known), name)

    def _once(self, key: _Key, make: Callable[[], Operation], name: str | None = None) -> SSAValue:
        """The result of an op without effects; equal ones are emitted once for the block of the first."""
        found = _seen(self._known, key)
        if found is None:
            found = self._known[-1][key] = self.value(make(), name)
        return found

    def add(self, a: SSAValue, b: SSAValue | int) -> SSAValue:
        """The sum of two indices."""
        return self._index(arith.AddiOp, a, b)

    def linear(self, base: Dim, terms: Sequence[tuple[SSAValue, Dim]]) -> SSAValue:
        """`base` and the sum of the products of indices and strides."""
        total = self.dim(base) if base.terms else None
        for value, stride in terms:
            if stride.terms:
                chunk = self.mul(value, 1 if stride.constant_value == 1 else self.dim(stride))
                total = chunk if total is None else self.add(total, chunk)
        return self.index(0) if total is None else total

    def sub(self, a: SSAValue, b: SSAValue | int) -> SSAValue:
        """The difference of two indices."""
        return self._index(arith.SubiOp, a, b)

    def mul(self, a: SSAValue, b: SSAValue | int) -> SSAValue:
        """The product of two indices."""
        return self._index(arith.MuliOp, a, b)

    def divide(self, a: SSAValue, b: SSAValue | int) -> SSAValue:
        """The quotient of indices that are not negative."""
        return self._index(arith.DivUIOp, a, b)

    def remainder(self, a: SSAValue, b: SSAValue | int) -> SSAValue:
        """The remainder of indices that are not negative."""
        return self._index(arith.RemUIOp, a, b)

    def minimum(self, a: SSAValue, b: SSAValue | int) -> SSAValue:
        """The smaller of two indices."""
        return self._index(arith.MinSIOp, a, b)

    def maximum(self, a: SSAValue, b: SSAValue | int) -> SSAValue:
        """The larger of two indices."""
        return self._index(arith.MaxSIOp, a, b)

    def compare(self, predicate: str, a: SSAValue, b: SSAValue | int) -> SSAValue:
        """A comparison of indices: `slt`, `eq`, ..."""
        key = (predicate, a, self._operand(b))
        found = _seen(self._computed, key)
        if found is None:
            op = new_op(arith.CmpiOp, key[1:], (i1,), {"predicate": _PREDICATES[predicate]})
            found = self._keep(key, self.value(op))
        return found

    def both(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Whether two conditions hold."""
        return self._binary(arith.AndIOp, a, b)

    def either(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Whether one of two conditions holds."""
        return self._binary(arith.OrIOp, a, b)

    def select(self, condition: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        """`a` if a condition holds, else `b`."""
        return self.value(new_op(arith.SelectOp, (condition, a, b), (a.type,)))

    def _binary(self, kind: type[Operation], a: SSAValue, b: SSAValue | int) -> SSAValue:
        """An op of one type."""
        return self.value(new_op(kind, (a, self._operand(b)), (a.type,)))

    def _index(self, kind: type[Operation], a: SSAValue, b: SSAValue | int) -> SSAValue:
        """Index arithmetic: constants are folded, and common subexpressions are emitted once."""
        left, right = self._numbers.get(a), b if isinstance(b, int) else self._numbers.get(b)
        if left is not None and right is not None and kind in _FOLDED and not (kind in _DIVISIONS and right == 0):
            return self.index(_FOLDED[kind](left, right))
        if (kind, right) in _NEUTRAL_RIGHT:
            return a
        b = self._operand(b)
        if (kind, left) in _NEUTRAL_LEFT:
            return b
        if kind is arith.MuliOp and 0 in (left, right):
            return self.index(0)
        key = (kind, a, b)
        found = _seen(self._computed, key)
        return self._keep(key, self._binary(kind, a, b)) if found is None else found

    def _keep(self, key: _Key, value: SSAValue) -> SSAValue:
        self._computed[-1][key] = value
        return value

    def _operand(self, value: SSAValue | int) -> SSAValue:
        return self.index(value) if isinstance(value, int) else value


@lru_cache(maxsize=1024)
def _index_attr(value: int) -> IntegerAttr:
    return IntegerAttr(value, INDEX)


def _seen(scopes: Sequence[Mapping[_Key, SSAValue]], key: _Key) -> SSAValue | None:
    for scope in reversed(scopes):
        if (found := scope.get(key)) is not None:
            return found
    return None


_CONTRACT = arith.FastMathFlagsAttr((FastMathFlag.ALLOW_CONTRACT,))


class Code(IndexCode):
    """Emits ops on indices, elements and vectors, and the loops and branches around them."""

    # Elements and vectors

    def alloc(
        self, shape: Sequence[DimLike], dtype: AnyFloat | IntegerType, name: str, scope: str = "global"
    ) -> SSAValue:
        """Allocates a buffer, aligned to a cache line."""
        return self.value(AllocBufferOp(BufferType(shape, dtype, scope=scope, align=64)), name)

    def part(self, buffer: SSAValue, number: SSAValue, shape: Sequence[DimLike]) -> SSAValue:
        """The slice of a buffer at an index of its first dimension, as a buffer of this shape."""
        kind, zero = SSAValue.get(buffer, type=BufferType).type, self.index(0)
        ranges = [RegionAxis(zero, self.dim(length)) for length in shape]
        chunk = BufferType(shape, kind.dtype, strides=kind.strides[1:], scope=kind.scope)
        return self.value(MatchBufferOp(buffer, [RegionAxis(number), *ranges], chunk))

    def load(
        self, buffer: SSAValue, indices: Sequence[SSAValue], lanes: int | None = None, mask: SSAValue | None = None
    ) -> SSAValue:
        """Loads an element, or `lanes` of them along the last dimension."""
        return self.value(LoadOp(buffer, indices, lanes=lanes, mask=mask))

    def store(
        self,
        value: SSAValue,
        buffer: SSAValue,
        indices: Sequence[SSAValue],
        mask: SSAValue | None = None,
        non_temporal_from: int | None = None,
    ) -> None:
        """Stores an element or a vector; non-temporally if the buffer has `non_temporal_from` bytes or more."""
        op = StoreOp(value, buffer, indices, mask=mask)
        if non_temporal_from is not None:
            op.attributes[STREAMED_FROM] = IntegerAttr(non_temporal_from, i64)
        self.emit(op)

    def prefetch(self, buffer: SSAValue, indices: Sequence[SSAValue], level: int) -> None:
        """Prefetches the cache line of an element, which need not be in the buffer."""
        self.emit(PrefetchOp(buffer, indices, level))

    def zeros(self, dtype: AnyFloat | IntegerType, lanes: int) -> SSAValue:
        """A vector of zeros."""
        if isinstance(dtype, IntegerType):
            zeros = DenseIntOrFPElementsAttr.from_list(VectorType(dtype, [lanes]), [0])
        else:
            zeros = DenseIntOrFPElementsAttr.from_list(VectorType(dtype, [lanes]), [0.0])
        return self.value(arith.ConstantOp(zeros))

    def number(self, value: float, dtype: AnyFloat) -> SSAValue:
        """A constant."""
        return self.value(arith.ConstantOp(FloatAttr(value, dtype)))

    def splat(self, value: SSAValue, lanes: int) -> SSAValue:
        """A vector with one value in all lanes."""
        return self.value(new_op(vector.BroadcastOp, (value,), (vector_of(value.type, lanes),)))

    def leading(self, count: SSAValue, lanes: int) -> SSAValue:
        """A mask whose first `count` lanes are set: none if it is negative, all if it is large."""
        return self._once((count, lanes), lambda: vector.CreateMaskOp([count], VectorType(i1, [lanes])))

    def fma(self, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
        """`a * b + c`, with one rounding where the processor has an FMA."""
        properties = {"fastmath": _CONTRACT}
        return self.value(new_op(math.FmaOp, (a, b, c), (c.type,), properties))

    def add_floats(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """The sum of two numbers or vectors."""
        return self._binary(arith.AddfOp, a, b)

    def misalignment(self, buffer: SSAValue, indices: Sequence[SSAValue], lanes: int) -> SSAValue:
        """The elements between an element and the start of the aligned vector of `lanes`, a power of two, that
        it is in.
        """
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
        """A loop; yields the induction variable. A thread of a parallel loop has `grain` iterations or more.

        Without `vectorize` LLVM leaves the loop as it is. In the kernel of a `plain` loop no address has an induction
        variable of its own.
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
        # What a parallel loop uses from outside is passed to it, which costs more than an instruction.
        with self.inside(op.body.block, apart=kind is LoopKind.PARALLEL):
            yield op.induction_var

    @contextmanager
    def when(self, condition: SSAValue) -> Generator[IfOp]:
        """The then-branch of a condition; `otherwise` takes what this yields."""
        op = IfOp(condition)
        self.emit(op)
        with self.inside(op.then_body.block):
            yield op

    @contextmanager
    def otherwise(self, op: IfOp) -> Generator[None]:
        """The else-branch of a `when`."""
        with self.inside(op.else_body.block):
            yield
