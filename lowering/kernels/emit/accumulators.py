"""Accumulators of reductions: one vector per unrolled iteration, and blocks of long sums, so that no accumulator takes
more than some elements one after the other.

They are in buffers that LLVM promotes to registers, because every access to them has constant indices.

A vector of f32 is folded to its maximum or minimum by integer keys of the same order. The maximum of two floats, where
NaN wins and 0 is above -0, is several dependent instructions on x86; that of integers is one. Every NaN is mapped to
the key that wins.

The rounding error of sequential summation grows with the number of elements n: it is up to n / 2 ulp. So an accumulator
that has taken `SUM_BLOCK_STEPS` elements is added to a total, and begins anew. The error is then that of so many
elements, and of one for each block. Sums of a single block have no total, and take no longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, Float32Type, IntegerAttr, f32, i32
from xdsl.ir import Operation, SSAValue

from lowering.kernels.cost_model import SUM_BLOCK_STEPS
from lowering.kernels.emit.body import Body, combined
from lowering.kernels.emit.code import Code
from lowering.kernels.emit.kernel import Kernel, buffer_type
from lowering.kernels.structure.reduction import Reduction, rounds
from lowering.kernels.structure.stages import Stage
from tir_dialect.dims import Dim, constant, floordiv, maximum, minimum, product
from tir_dialect.ops.memory import AllocBufferOp, StoreOp
from tir_dialect.types import BufferType, LoopKind


class Totals(Protocol):
    """Where accumulators are added up after each block."""

    def put_away(self, is_first: SSAValue) -> None:
        """Adds the accumulators to the totals, which do not exist yet if `is_first`, and clears them."""
        ...

    def take_back(self) -> None:
        """Adds the totals to the accumulators."""
        ...


def iterations_of_block(inner: Iterable[Dim]) -> Dim:
    """How many iterations of a loop make a block, if the loops inside have these extents."""
    return maximum(floordiv(constant(SUM_BLOCK_STEPS), maximum(product(inner), constant(1))), constant(1))


def in_blocks(
    code: Code,
    bounds: tuple[SSAValue | None, SSAValue],
    body: Callable[[SSAValue | None, SSAValue], None],
    totals: Callable[[], Totals],
    most: Dim,
) -> None:
    """A loop over the range `bounds` that accumulates in its `body`, in blocks of `most` iterations."""
    lower, upper = bounds
    length, known = upper if lower is None else code.sub(upper, lower), most.constant_value
    count = code.known(length)
    if known is not None and count is not None and count <= known:
        body(lower, upper)
        return
    kept, size = totals(), code.dim(most)
    blocks = code.divide(code.add(length, code.sub(size, 1)), size)
    with code.loop(blocks, "chunk", vectorize=False) as block:
        first = code.mul(block, size)
        first = first if lower is None else code.add(lower, first)
        end = code.minimum(code.add(first, size), upper)
        body(first, end)
        with code.when(code.compare("slt", end, upper)):
            kept.put_away(code.compare("eq", block, 0))
    with code.when(code.compare("sgt", blocks, 1)):
        kept.take_back()


def with_and_without_blocks(code: Code, spare: Iterable[Dim], emit: Callable[[bool], None]) -> None:
    """Two versions of a loop nest, with and without blocks in the inner loops; none are needed if `spare` is
    not negative.
    """
    open_, all_known = list[Dim](), True
    for each in spare:
        if each.constant_value is None:
            open_.append(each)
        else:
            all_known = all_known and each.constant_value >= 0
    if not all_known or not open_:
        emit(not all_known)
        return
    with code.when(code.compare("sge", code.dim(minimum(*open_)), 0)) as branch:
        emit(False)
    with code.otherwise(branch):
        emit(True)


@dataclass
class VectorTotals:
    """The totals of vectors at constant indices of a buffer that LLVM keeps in registers."""

    code: Code
    dtype: AnyFloat
    buffer: SSAValue
    indices: Sequence[Sequence[SSAValue]]
    lanes: int

    def __post_init__(self) -> None:
        self._totals = self.code.alloc(buffer_type(self.buffer).shape, self.dtype, "totals", scope="local")

    def put_away(self, is_first: SSAValue) -> None:
        """As in `Totals`."""
        code = self.code
        with code.when(is_first) as branch:
            for index in self.indices:
                code.store(code.load(self.buffer, index, self.lanes), self._totals, index)
        with code.otherwise(branch):
            for index in self.indices:
                code.store(self._added(index), self._totals, index)
        zeros = code.zeros(self.dtype, self.lanes)
        for index in self.indices:
            code.store(zeros, self.buffer, index)

    def take_back(self) -> None:
        """As in `Totals`."""
        for index in self.indices:
            self.code.store(self._added(index), self.buffer, index)

    def _added(self, index: Sequence[SSAValue]) -> SSAValue:
        values = (self.code.load(memory, index, self.lanes) for memory in (self._totals, self.buffer))
        return self.code.add_floats(*values)


_DIGITS = 0x7FFFFFFF
_GREATEST_NAN, _LEAST_NAN = _DIGITS, -1


def folds_as_integers(kernel: Kernel, combine: Sequence[Operation]) -> bool:
    """Whether the reduction is a maximum or minimum of f32, on a machine where integer keys are faster."""
    if len(combine) != 1 or not isinstance(combine[0], arith.MaximumfOp | arith.MinimumfOp):
        return False
    return isinstance(combine[0].result.type, Float32Type) and kernel.target.arch.startswith("x86")


def integer_extremum(kernel: Kernel, buffer: SSAValue, kind: type[Operation]) -> SSAValue:
    """The maximum (`arith.MaximumfOp`) or minimum of a local buffer of f32, whose length is a power of 2."""
    code = kernel.code
    length = buffer_type(buffer).shape[0].constant_value
    assert length is not None  # the length of a vector
    keys = _keys(kernel, length)
    with code.loop(code.index(length), "lane", kind=LoopKind.VECTORIZED) as lane:
        code.store(key_of(kernel, code.load(buffer, [lane]), kind), keys, [lane])
    while length > 1:
        length //= 2
        half = _keys(kernel, length)
        with code.loop(code.index(length), "lane", kind=LoopKind.VECTORIZED) as lane:
            pair = code.load(keys, [lane]), code.load(keys, [code.add(lane, length)])
            code.store(combine_keys(kernel, kind, *pair), half, [lane])
        keys = half
    return float_of_key(kernel, code.load(keys, [code.index(0)]))


def _keys(kernel: Kernel, length: int) -> SSAValue:
    return kernel.code.value(AllocBufferOp(BufferType([length], i32, scope="local", align=64)), "keys")


def key_of(kernel: Kernel, value: SSAValue, kind: type[Operation]) -> SSAValue:
    """The integer key of a float."""
    code, nan = kernel.code, _GREATEST_NAN if kind is arith.MaximumfOp else _LEAST_NAN
    is_nan = code.value(arith.CmpfOp(value, value, "uno"))
    return _swapped(kernel, code.select(is_nan, _integer(kernel, nan), code.value(arith.BitcastOp(value, i32))))


def combine_keys(kernel: Kernel, kind: type[Operation], left: SSAValue, right: SSAValue) -> SSAValue:
    """The maximum or minimum of two keys."""
    return kernel.code.value((arith.MaxSIOp if kind is arith.MaximumfOp else arith.MinSIOp)(left, right))


def float_of_key(kernel: Kernel, key: SSAValue) -> SSAValue:
    """The float of a key."""
    return kernel.code.value(arith.BitcastOp(_swapped(kernel, key), f32))


def _swapped(kernel: Kernel, bits: SSAValue) -> SSAValue:
    """Converts between the bits of a float and an integer of the same order: digits of negative values are inverted."""
    code = kernel.code
    signs = code.value(arith.ShRSIOp(bits, _integer(kernel, 31)))
    digits = code.value(arith.AndIOp(signs, _integer(kernel, _DIGITS)))
    return code.value(arith.XOrIOp(bits, digits))


def _integer(kernel: Kernel, value: int) -> SSAValue:
    return kernel.code.value(arith.ConstantOp(IntegerAttr(value, i32)))


def accumulator(kernel: Kernel, kind: BufferType, length: int) -> SSAValue:
    """A buffer of `length` accumulators for results of some type."""
    type_ = BufferType([length], kind.dtype, scope="local", align=64)
    return kernel.code.value(AllocBufferOp(type_), "sums")


def folded(kernel: Kernel, buffer: SSAValue, combine: Callable[[SSAValue, SSAValue], SSAValue]) -> SSAValue:
    """Folds a buffer to one value by halving it; its length is a power of 2."""
    code, kind = kernel.code, buffer_type(buffer)
    width = kind.shape[0].constant_value
    assert width is not None  # the length of some vectors
    while width > 1:
        width //= 2
        half = accumulator(kernel, kind, width)
        with code.loop(code.index(width), "lane", kind=LoopKind.VECTORIZED) as lane:
            pair = code.load(buffer, [lane]), code.load(buffer, [code.add(lane, width)])
            code.store(combine(*pair), half, [lane])
        buffer = half
    return code.load(buffer, [code.index(0)])


@dataclass
class BufferTotals:
    """The totals of blocked accumulation for a reduction, each of `width` lanes."""

    kernel: Kernel
    reduction: Reduction
    buffers: Sequence[SSAValue]
    width: int
    begin: Callable[[], None]
    """Sets the accumulators to their initial values."""

    def __post_init__(self) -> None:
        kinds = [load.buffer_type for load in self.reduction.accumulators]
        self._totals = [accumulator(self.kernel, kind, self.width) for kind in kinds]

    def put_away(self, is_first: SSAValue) -> None:
        """As in `Totals`."""
        with self.kernel.code.when(is_first) as branch:
            self._move(self._totals, lambda _, chunks: chunks)
        with self.kernel.code.otherwise(branch):
            self._move(self._totals, self._combined)
        self.begin()

    def take_back(self) -> None:
        """As in `Totals`."""
        self._move(self.buffers, self._combined)

    def _combined(self, totals: Sequence[SSAValue], chunks: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return combined(self.kernel, self.reduction, totals, chunks)

    def _move(
        self,
        target: Sequence[SSAValue],
        joined: Callable[[Sequence[SSAValue], Sequence[SSAValue]], Sequence[SSAValue]],
    ) -> None:
        code = self.kernel.code
        with code.loop(code.index(self.width), "lane", kind=LoopKind.VECTORIZED) as lane:
            totals, chunks = ([code.load(each, [lane]) for each in memory] for memory in (self._totals, self.buffers))
            for value, buffer in zip(joined(totals, chunks), target, strict=True):
                code.store(value, buffer, [lane])


@dataclass(frozen=True)
class _AllTotals:
    """The totals of several reductions."""

    each: Sequence[BufferTotals]

    def put_away(self, is_first: SSAValue) -> None:
        """As in `Totals`."""
        for totals in self.each:
            totals.put_away(is_first)

    def take_back(self) -> None:
        """As in `Totals`."""
        for totals in self.each:
            totals.take_back()


@dataclass
class Accumulators:
    """The accumulators of several reductions."""

    kernel: Kernel
    stages: Sequence[Stage]
    reductions: Mapping[int, Reduction]
    """By the number of the stage."""
    width: int
    """Lanes of each accumulator."""
    at: Mapping[int, SSAValue]
    """The values of the axes around."""
    other_rows: Mapping[Stage, Mapping[int, SSAValue]] = field(default_factory=dict[Stage, Mapping[int, SSAValue]])
    """Those of stages that are at another row."""
    buffers: dict[int, list[SSAValue]] = field(default_factory=dict[int, list[SSAValue]], init=False)

    def __post_init__(self) -> None:
        self.code = self.kernel.code

    @property
    def all(self) -> list[SSAValue]:
        """The buffers of all reductions, in order."""
        return [buffer for buffers in self.buffers.values() for buffer in buffers]

    @property
    def round(self) -> bool:
        """Whether accumulation rounds, so that long sums need blocked accumulation."""
        return all(map(rounds, self.reductions.values()))

    def start(self) -> None:
        """Allocates the accumulators, with initial values."""
        for position, reduction in self.reductions.items():
            kinds = [load.buffer_type for load in reduction.accumulators]
            self.buffers[position] = [accumulator(self.kernel, kind, self.width) for kind in kinds]
            self._begin(position)

    def _begin(self, position: int) -> None:
        """Sets the accumulators of a reduction to their initial values."""
        body = self._body(position)
        body.run([op for op in body.stage.init if not isinstance(op, StoreOp)])
        for buffer, first in zip(self.buffers[position], self.reductions[position].first, strict=True):
            with self.code.loop(self.code.index(self.width), "lane", kind=LoopKind.VECTORIZED) as lane:
                self.code.store(body.value(first), buffer, [lane])

    def totals(self) -> Totals:
        """The totals of blocked accumulation."""
        each = [
            BufferTotals(self.kernel, self.reductions[position], buffers, self.width, partial(self._begin, position))
            for position, buffers in self.buffers.items()
        ]
        return _AllTotals(each)

    def _body(self, position: int) -> Body:
        stage = self.stages[position]
        return Body(self.kernel, stage, {**self.at, **self.other_rows.get(stage, {})})

    def absorb(self, wide: Accumulators, are_first: bool) -> None:
        """Folds wider accumulators into these; with `are_first` these hold only initial values."""
        code = self.code
        for position, buffers in self.buffers.items():
            reduction, chunks, width = self.reductions[position], wide.buffers[position], wide.width
            while width > self.width:
                width //= 2
                chunks = self._halved(position, chunks, width)
            with code.loop(code.index(width), "lane", kind=LoopKind.VECTORIZED) as lane:
                values = [code.load(chunk, [lane]) for chunk in chunks]
                if not are_first:
                    values = combined(self.kernel, reduction, [code.load(each, [lane]) for each in buffers], values)
                for value, buffer in zip(values, buffers, strict=True):
                    code.store(value, buffer, [lane])

    def finish(self) -> dict[int, list[SSAValue]]:
        """One value for each result of each reduction."""
        return {position: self._epilogue(position) for position in self.buffers}

    def _epilogue(self, position: int) -> list[SSAValue]:
        buffers, width = self.buffers[position], self.width
        combine = self.reductions[position].combine
        if width > 1 and folds_as_integers(self.kernel, combine):
            return [integer_extremum(self.kernel, buffers[0], type(combine[0]))]
        while width > 1:
            width //= 2
            buffers = self._halved(position, buffers, width)
        return [self.code.load(buffer, [self.code.index(0)]) for buffer in buffers]

    def _halved(self, position: int, buffers: Sequence[SSAValue], width: int) -> list[SSAValue]:
        """The two halves of accumulators combined, in new buffers of half the length."""
        code, kernel, reduction = self.code, self.kernel, self.reductions[position]
        halves = [accumulator(kernel, load.buffer_type, width) for load in reduction.accumulators]
        with code.loop(code.index(width), "lane", kind=LoopKind.VECTORIZED) as lane:
            left = [code.load(buffer, [lane]) for buffer in buffers]
            right = [code.load(buffer, [code.add(lane, width)]) for buffer in buffers]
            for value, half in zip(combined(kernel, reduction, left, right), halves, strict=True):
                code.store(value, half, [lane])
        return halves

    def write(self, results: Mapping[int, Sequence[SSAValue]]) -> None:
        """Stores results."""
        for position, values in results.items():
            reduction, body = self.reductions[position], self._body(position)
            body.values |= {store.value: value for store, value in zip(reduction.stores, values, strict=True)}
            body.run(reduction.stores)
