"""Code that puts a constant around data: whole rows are copied or filled, and no element asks where it is."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from lowering.schedule.cpu.emit.kernel import Kernel, work_of
from lowering.schedule.cpu.structure.padding import Padding
from tir_dialect.dims import product
from tir_dialect.dtypes import byte_size


def emit_padding(kernel: Kernel, padding: Padding) -> None:
    """Row by row; threads take parts of the rows."""
    code, stage, row = kernel.code, padding.stage, padding.row
    rows = product(stage.extents[:row])
    with kernel.shared(rows, work_of(stage)) as part:
        low, high = (None, code.dim(rows)) if part is None else part
        with code.loop(high, "row", lower=low) as number:
            _Row(kernel, padding).emit(number)


class _Row:
    """The code of one row."""

    def __init__(self, kernel: Kernel, padding: Padding):
        self.kernel, self.code, self.padding = kernel, kernel.code, padding
        stage, row = padding.stage, padding.row
        self.inner = product(stage.extents[row + 1 :])
        self.target = kernel.flat[stage.stores[0].buffer]
        self.source = kernel.flat[padding.load.buffer]
        dtype = padding.load.buffer_type.dtype
        lanes, whole = kernel.target.lanes(8 * byte_size(dtype)), self.inner.constant_value
        self.lanes = lanes if whole is not None and whole % lanes == 0 and lanes > 1 else None

    def emit(self, number: SSAValue) -> None:
        """The row with some number: zeros, data, zeros; or zeros only."""
        code, padding, row = self.code, self.padding, self.padding.row
        length, data = (dims[row] * self.inner for dims in (padding.stage.extents, padding.data))
        start, begin = code.mul(number, code.dim(length)), code.mul(code.index(padding.low[row]), code.dim(self.inner))
        end, (place, inside) = code.add(begin, code.dim(data)), self._place(number)
        if inside is None:
            self._copy(start, begin, end, place)
        else:
            with code.when(inside) as branch:
                self._copy(start, begin, end, place)
            with code.otherwise(branch):
                self._fill(start, code.index(0), begin)
                self._fill(start, begin, end)
        self._fill(start, end, code.dim(length))

    def _place(self, number: SSAValue) -> tuple[SSAValue, SSAValue | None]:
        """Where in the data a row begins, and whether it is there."""
        code, padding, row = self.code, self.padding, self.padding.row
        index, stride, inside = code.index(0), padding.data[row] * self.inner, None
        for axis in reversed(range(row)):
            extent = code.dim(padding.stage.extents[axis])
            digit, number = (code.remainder(number, extent), code.divide(number, extent)) if axis else (number, number)
            if padding.is_padded(axis):
                digit = code.sub(digit, padding.low[axis])
                fits = code.compare("ult", digit, code.dim(padding.data[axis]))
                inside = fits if inside is None else code.value(arith.AndIOp(inside, fits))
            index = code.add(index, code.mul(digit, code.dim(stride)))
            stride = stride * padding.data[axis]
        return index, inside

    def _copy(self, start: SSAValue, begin: SSAValue, end: SSAValue, place: SSAValue) -> None:
        self._fill(start, self.code.index(0), begin)
        with self._elements(begin, end) as at:
            value = self.code.load(self.source, [self.code.add(place, self.code.sub(at, begin))], self.lanes)
            self.code.store(value, self.target, [self.code.add(start, at)])

    def _fill(self, start: SSAValue, begin: SSAValue, end: SSAValue) -> None:
        with self._elements(begin, end) as at:
            value = self.kernel.code.value(arith.ConstantOp(self.padding.filler.value))
            value = value if self.lanes is None else self.code.splat(value, self.lanes)
            self.code.store(value, self.target, [self.code.add(start, at)])

    @contextmanager
    def _elements(self, begin: SSAValue, end: SSAValue) -> Generator[SSAValue]:
        """What happens at each place of a row from `begin` on, or at the first of each vector."""
        code = self.code
        if self.lanes is None:
            with code.loop(end, "i", lower=begin) as at:
                yield at
            return
        with code.loop(code.divide(code.sub(end, begin), self.lanes), "v", vectorize=False) as v:
            yield code.add(begin, code.mul(v, self.lanes))
