"""From accumulators to the output: partial sums of earlier K blocks are added, the epilogue is computed and stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import VectorType, i32
from xdsl.ir import SSAValue

from lowering.kernels.cost_model import LONG_EPILOGUE_OPS
from lowering.kernels.emit.body import Explicit, Lanes
from lowering.kernels.emit.code import Code
from lowering.kernels.emit.kernel import buffer_type
from lowering.kernels.emit.vectorization import element_of
from lowering.kernels.gemm.problem import Coords, Gemm
from lowering.kernels.structure.contraction import Step, is_chain
from tir_dialect.dims import constant
from tir_dialect.ops.arithmetic import ConvertOp
from tir_dialect.ops.blocks import FlattenOp


@dataclass(frozen=True)
class OutputTile:
    """Rows of a one-dimensional buffer: column `j` of row `i` is element `first + i * each + j`."""

    buffer: SSAValue
    first: SSAValue
    each: SSAValue
    k_block: SSAValue | None
    """How many K blocks have left partial sums there, to be added to; `None` if they are replaced."""
    count: SSAValue | None = None
    """How many columns there are, if some may be missing."""
    masks_if_needed: bool = False
    """Whether vectors are stored under masks only if columns are missing, since masks take long."""
    is_prefetched: bool = True
    """Whether the rows are prefetched before the accumulators are made."""

    def index(self, code: Code, i: int, j: int) -> list[SSAValue]:
        """The indices of an element."""
        return [code.add(code.add(self.first, code.mul(self.each, i)), j)]


def as_output_tile(gemm: Gemm, tile: SSAValue) -> OutputTile:
    """Memory for a whole tile as an `OutputTile`, so that one micro-kernel function does for both."""
    code, (_, width) = gemm.code, buffer_type(tile).shape
    zero = code.index(0)
    return OutputTile(code.value(FlattenOp(tile)), zero, code.dim(width), zero)


def can_store_tiles(gemm: Gemm) -> bool:
    """Whether accumulators go to the output as they are, to evenly spaced rows of contiguous columns."""
    return bool(gemm.contraction.column) and can_store_accumulators(gemm)


def can_store_accumulators(gemm: Gemm) -> bool:
    """The same for any number of columns."""
    contraction, buffer = gemm.contraction, gemm.kernel.flat.get(gemm.contraction.store.buffer)
    if gemm.epilogue.steps or contraction.is_integer or buffer is None:
        return False
    even = all(
        is_chain([contraction.output], contraction.stage.extents, axes)
        for axes in (contraction.row, contraction.column)
    )
    beside = not contraction.column or contraction.output.strides[contraction.column[-1]] == constant(1)
    return even and beside and buffer_type(buffer).dtype == contraction.element


def output_tile(gemm: Gemm, coords: Coords, k_block: SSAValue) -> OutputTile:
    """The rows of the output of the tile whose first row and column the coordinates say."""
    contraction, code = gemm.contraction, gemm.code
    each = contraction.output.strides[contraction.row[-1]] if contraction.row else constant(0)
    return OutputTile(
        gemm.kernel.flat[contraction.store.buffer], gemm.offset(contraction.output, coords), code.dim(each), k_block
    )


class EpilogueEmitter:
    """Stores vector accumulators to the output, with the epilogue after the last K block.

    `first` and `last` say whether it is the first and the last K block. They are `None` where there is only one; `last`
    is `None`, too, in code that only the last one runs.
    """

    def __init__(self, gemm: Gemm, first: SSAValue | None, last: SSAValue | None):
        self.gemm = gemm
        self.code = gemm.code
        self.first = first
        self.last = last

    @property
    def is_long(self) -> bool:
        """Whether more vectors than those of a row are in flight at once, so that none waits for the one before."""
        return sum(len(step.stage.body) for step in self.gemm.epilogue.steps) > LONG_EPILOGUE_OPS

    def store(self, accumulators: SSAValue, coords: Coords, count: SSAValue) -> None:
        """Stores a vector accumulator, of which `count` lanes or more are on."""
        lanes = self.gemm.tiles.lanes
        self.gemm.masked(count, lanes, lambda masked: self.store_lanes(accumulators, coords, count if masked else None))

    def store_some(self, accumulators: SSAValue, coords: Coords, count: SSAValue) -> None:
        """Stores a vector accumulator, of which `count` lanes are on, never all."""
        self.store_lanes(accumulators, coords, count)

    def prefetch(self, coords: Coords) -> None:
        """Prefetches the partial sums that earlier K blocks left, where rows are evenly spaced."""
        contraction, accumulators = self.gemm.contraction, self.gemm.kernel.flat.get(self.gemm.contraction.store.buffer)
        if accumulators is not None and is_chain([contraction.output], contraction.stage.extents, contraction.row):
            self.code.prefetch(accumulators, [self._index(coords)], 2)

    def store_lanes(self, accumulators: SSAValue, coords: Coords, on: SSAValue | None) -> None:
        """Stores all lanes of a vector accumulator, or those that are on."""
        self.store_vectors([(accumulators, coords)], on)

    def store_vectors(self, accumulators: Sequence[tuple[SSAValue, Coords]], on: SSAValue | None = None) -> None:
        """Stores all lanes of some vector accumulators, or those that are on.

        Each op of the epilogue is emitted for one vector after the other: a vector's ops depend on each other, and
        processors do not look far enough ahead to find those of the next vector behind them.
        """
        self._put([(self._total(value, coords, on), coords) for value, coords in accumulators], on)

    def put(self, value: SSAValue, coords: Coords, on: SSAValue | None) -> None:
        """Stores a vector that already has what earlier K blocks left, in the type of the output."""
        self._put([(value, coords)], on)

    def _put(self, vectors: Sequence[tuple[SSAValue, Coords]], on: SSAValue | None) -> None:
        code = self.code
        if not self.gemm.epilogue.steps:
            self._keep(vectors, on)
        elif self.last is None:
            self._follow(vectors, on)
        else:
            with code.when(self.last) as branch:
                self._follow(vectors, on)
            with code.otherwise(branch):
                self._keep(vectors, on)

    def _total(self, accumulators: SSAValue, coords: Coords, on: SSAValue | None) -> SSAValue:
        """A vector accumulator with what earlier K blocks left, in the type of the output."""
        value = self.as_output(accumulators)
        return value if self.first is None else self.added(value, self._earlier(coords, on))

    def as_output(self, value: SSAValue) -> SSAValue:
        """A vector accumulator in the type of the output: as integers if it is of these."""
        if not self.gemm.contraction.is_integer or element_of(value) == i32:
            return value
        kind = VectorType(i32, [self.gemm.tiles.lanes])
        return self.code.value(ConvertOp("fptosi", value, kind))

    def added(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """The sum of two vectors in the type of the output."""
        return self.code.value(arith.AddiOp(a, b) if self.gemm.contraction.is_integer else arith.AddfOp(a, b))

    def _index(self, coords: Coords) -> SSAValue:
        """The index in the output."""
        return self.gemm.offset(self.gemm.contraction.output, coords)

    def _earlier(self, coords: Coords, on: SSAValue | None) -> SSAValue:
        """What earlier K blocks left: zeros in the first one."""
        code, lanes, index = self.code, self.gemm.tiles.lanes, self._index(coords)
        assert self.first is not None  # the reduction is split
        if on is None:
            old = code.load(self.gemm.accumulators, [index], lanes)
            return code.select(self.first, self._zeros, old)
        some = code.leading(code.select(self.first, code.index(0), on), lanes)
        return code.load(self.gemm.accumulators, [index], lanes, some)

    @property
    def _zeros(self) -> SSAValue:
        contraction = self.gemm.contraction
        return self.code.zeros(i32 if contraction.is_integer else contraction.element, self.gemm.tiles.lanes)

    def _keep(self, vectors: Sequence[tuple[SSAValue, Coords]], on: SSAValue | None) -> None:
        mask = None if on is None else self.code.leading(on, self.gemm.tiles.lanes)
        for value, coords in vectors:
            self.code.store(value, self.gemm.accumulators, [self._index(coords)], mask)

    def _follow(self, vectors: Sequence[tuple[SSAValue, Coords]], on: SSAValue | None) -> None:
        """Computes the epilogue of vectors of complete results."""
        contraction, epilogue = self.gemm.contraction, self.gemm.epilogue
        count = len(contraction.stage.axes)
        targets = [step.access(op, count) for step, op in epilogue.accesses]
        at = [self.gemm.at(targets, (), coords) for _, coords in vectors]
        produced = [{contraction.store.buffer: value} for value, _ in vectors]
        if contraction.store.buffer not in epilogue.unread:
            self._keep(vectors, on)
        for step in epilogue.steps:
            bodies = [self._body(step, *each, on) for each in zip(at, produced, strict=True)]
            for op in step.stage.body:
                for body in bodies:
                    body.run([op])
            for body, known in zip(bodies, produced, strict=True):
                known |= {store.buffer: body.widened(body.value(store.value)) for store in step.stage.stores}

    def _body(
        self, step: Step, at: dict[int, SSAValue], produced: dict[SSAValue, SSAValue], on: SSAValue | None
    ) -> Explicit:
        """A step of the epilogue of one vector."""
        kernel, tiles, contraction = self.gemm.kernel, self.gemm.tiles, self.gemm.contraction
        own = {axis: at[target] for axis, target in step.axes.items() if target in at}
        axis = next(axis for axis, target in step.axes.items() if target == contraction.along[-1])
        body = Explicit(kernel, step.stage, own, Lanes(axis, tiles.lanes, on))
        for load in step.stage.loads:
            if load.buffer in produced:
                body.values[load.result] = produced[load.buffer]
        return body


class SinglePassGemm:
    """A generator that completes every reduction in one pass over K: accumulators go to the epilogue at once."""

    def __init__(self, gemm: Gemm):
        self.gemm = gemm
        self.code = gemm.code
        self.lanes = gemm.tiles.lanes
        self.epilogue = EpilogueEmitter(gemm, None, None)
