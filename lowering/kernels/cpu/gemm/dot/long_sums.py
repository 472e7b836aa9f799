"""Vector accumulators of the products of long rows of a matrix with one row that is in cache.

A routine where both are in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from typing_extensions import override
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.blocked_accumulation import MOST, VectorTotals, in_blocks
from lowering.kernels.cpu.emit.code import Code
from lowering.kernels.cpu.emit.routines import Routine, flat
from tir_dialect.dims import constant
from tir_dialect.dtypes import byte_size
from tir_dialect.target import LINE_BYTES
from tir_dialect.types import BufferType

Line = Callable[[SSAValue, SSAValue | None], SSAValue]
"""A vector of a line at a step of the reduction; all its lanes, or so many or more."""
Bounds = tuple[SSAValue, SSAValue]
"""How many elements lie before the first element where a vector of the lines may begin, and the length of the sums."""

WHOLE, SHORTER = (1, 4), (4, 2)
"""How many lines are read side by side, and vectors of each, with a vector of sums each: where a vector is a whole
cache line, and where it is shorter."""


@dataclass(frozen=True)
class LongSums(Routine):
    """How rows are read: how many side by side, and how many vectors of each."""

    dtype: AnyFloat
    lanes: int
    count: int
    side: int

    @staticmethod
    def of(dtype: AnyFloat, lanes: int) -> LongSums:
        """The best way for vectors of a machine."""
        whole = lanes * byte_size(dtype) >= LINE_BYTES or lanes < SHORTER[0]
        return LongSums(dtype, lanes, *(WHOLE if whole else SHORTER))

    def emit(
        self,
        code: Code,
        bounds: Bounds,
        near: Line,
        far: Callable[[SSAValue], Line],
        memory: SSAValue,
        alone: bool = False,
    ) -> None:
        """Fills memory with as many vectors of sums as they have lanes, those of the lines with these numbers.

        Addresses are as they are written where this is `alone` in a function, or has many: in other loops of a kernel
        they are better counted up.
        """
        with code.loop(code.index(self.lanes // self.count), "part", vectorize=False) as part:
            numbers = [code.add(code.mul(part, self.count), i) for i in range(self.count)]
            found = self._sums(code, bounds, near, [far(number) for number in numbers], alone or self.count > 1)
            for number, total in zip(numbers, found, strict=True):
                code.store(total, memory, [number, code.index(0)])

    def _sums(self, code: Code, bounds: Bounds, near: Line, far: Sequence[Line], plain: bool) -> list[SSAValue]:
        """A vector of sums of each line."""
        (head, k), side, lanes = bounds, self.side, self.lanes
        buffer = code.alloc([len(far) * side, lanes], self.dtype, "sums", scope="local")
        accumulators = [[[code.index(i * side + v), code.index(0)] for v in range(side)] for i in range(len(far))]
        for accumulator in (accumulator for line in accumulators for accumulator in line):
            code.store(code.zeros(self.dtype, lanes), buffer, accumulator)

        def add(v: int, r: SSAValue, on: SSAValue | None) -> None:
            own = near(r, on)
            for accumulator, line in zip(accumulators, far, strict=True):
                code.store(code.fma(own, line(r, on), code.load(buffer, accumulator[v], lanes)), buffer, accumulator[v])

        with code.when(code.compare("sgt", head, 0)):
            add(0, code.index(0), head)
        groups, step = code.divide(code.sub(k, head), side * lanes), side * lanes

        def run(lower: SSAValue | None, upper: SSAValue) -> None:
            with code.loop(upper, "group", lower=lower, vectorize=False, plain=plain) as group:
                for v in range(side):
                    add(v, code.add(code.add(head, code.mul(group, step)), v * lanes), None)

        places = [each for line in accumulators for each in line]
        in_blocks(
            code, (None, groups), run, lambda: VectorTotals(code, self.dtype, buffer, places, lanes), constant(MOST)
        )
        done = code.add(head, code.mul(groups, step))
        with code.loop(code.divide(code.add(code.sub(k, done), lanes - 1), lanes), "rest", vectorize=False) as rest:
            r = code.add(done, code.mul(rest, lanes))
            add(0, r, code.sub(k, r))
        return [_total(code, [code.load(buffer, accumulator, lanes) for accumulator in line]) for line in accumulators]

    # As a routine.

    @property
    @override
    def label(self) -> str:
        """How lines are read."""
        return f"lines.{self.dtype}.{self.count}x{self.side * self.lanes}"

    @override
    def sizes(self) -> Sequence[str]:
        return ("head", "k", "near", "first", "last", "each")

    @override
    def buffers(self) -> Mapping[str, BufferType]:
        return {
            **flat(self.dtype, "copies", "matrix"),
            "sums": BufferType([self.lanes, self.lanes], self.dtype, align=64),
        }

    @override
    def write(self, code: Code, size: Mapping[str, SSAValue], buffer: Mapping[str, SSAValue]) -> None:
        """The code of the function: `near` and `first` are where lines begin, up to `last`, `each` elements apart."""

        def line(name: str, begin: SSAValue) -> Line:
            def vector(r: SSAValue, on: SSAValue | None) -> SSAValue:
                mask = None if on is None else code.leading(on, self.lanes)
                return code.load(buffer[name], [code.add(begin, r)], self.lanes, mask)

            return vector

        def far(number: SSAValue) -> Line:
            begin = code.add(size["first"], code.mul(number, size["each"]))
            return line("matrix", code.minimum(begin, size["last"]))

        self.emit(code, (size["head"], size["k"]), line("copies", size["near"]), far, buffer["sums"], alone=True)


def _total(code: Code, vectors: Sequence[SSAValue]) -> SSAValue:
    """The sum of some vectors, a power of two: neighbours first."""
    while len(vectors) > 1:
        vectors = [code.add_floats(a, b) for a, b in zip(vectors[::2], vectors[1::2], strict=True)]
    return vectors[0]
