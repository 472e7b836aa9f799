"""Constant padding: rows are copied or filled whole, without a condition per element.

The last vector of a row overlaps the one before, so that it needs no mask. If a row is shorter than a vector, narrower
vectors are used in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from lowering.kernels.cost_model import PAD_MIN_VECTOR_BYTES
from lowering.kernels.emit.kernel import Kernel
from lowering.kernels.structure.padding import Padding
from lowering.kernels.structure.stages import work_of
from tir_dialect.dims import Dim, constant, product
from tir_dialect.dtypes import byte_size

Write = Callable[[SSAValue, int | None], None]
"""Writes a vector of so many elements, or one element, at an index."""


def emit_padding(kernel: Kernel, padding: Padding) -> None:
    """Row by row; rows are partitioned among threads."""
    code, stage, row = kernel.code, padding.stage, padding.row
    rows = product(stage.extents[:row])
    with kernel.partition(rows, work_of(stage)) as chunk:
        low, high = (None, code.dim(rows)) if chunk is None else chunk
        with code.loop(high, "row", lower=low) as number:
            _Row(kernel, padding).emit(number)


class _Row:
    """Generates one row."""

    def __init__(self, kernel: Kernel, padding: Padding):
        self.kernel, self.code, self.padding = kernel, kernel.code, padding
        stage, row = padding.stage, padding.row
        self.inner = product(stage.extents[row + 1 :])
        self.target = kernel.flat[stage.stores[0].buffer]
        self.source = kernel.flat[padding.load.buffer]
        dtype = padding.load.buffer_type.dtype
        size = byte_size(dtype)
        lanes, inner = kernel.target.lanes(8 * size), self.inner.constant_value
        self.widths = [
            lanes >> halved for halved in range(lanes.bit_length()) if lanes >> halved >= PAD_MIN_VECTOR_BYTES // size
        ]
        self.widths = [width for width in self.widths if width > 1]
        self.whole = lanes if inner is not None and inner % lanes == 0 and lanes > 1 else None
        """The vector width that divides the innermost extent, if there is one."""

    def emit(self, number: SSAValue) -> None:
        """Row `number`: padding, data, padding; or only padding."""
        code, row, padding = self.code, self.padding.row, self.padding
        length, data = (dims[row] * self.inner for dims in (padding.stage.extents, padding.data))
        low = padding.low[row] * self.inner
        start, begin, inside = code.mul(number, code.dim(length)), *self._begin_in_data(number)
        fill = partial(self._set, start)
        if inside is None:
            self._write(constant(0), low, fill)
            self._write(low, data, partial(self._move, start, code.sub(begin, code.dim(low))))
        else:
            with code.when(inside) as branch:
                self._write(constant(0), low, fill)
                self._write(low, data, partial(self._move, start, code.sub(begin, code.dim(low))))
            with code.otherwise(branch):
                self._write(constant(0), low + data, fill)
        self._write(low + data, length - data - low, fill)

    def _begin_in_data(self, number: SSAValue) -> tuple[SSAValue, SSAValue | None]:
        """The address of the data of a row, and whether the row has data."""
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

    def _move(self, start: SSAValue, moved: SSAValue, at: SSAValue, lanes: int | None) -> None:
        value = self.code.load(self.source, [self.code.add(moved, at)], lanes)
        self.code.store(value, self.target, [self.code.add(start, at)])

    def _set(self, start: SSAValue, at: SSAValue, lanes: int | None) -> None:
        value = self.code.value(arith.ConstantOp(self.padding.filler.value))
        value = value if lanes is None else self.code.splat(value, lanes)
        self.code.store(value, self.target, [self.code.add(start, at)])

    def _write(self, begin: Dim, length: Dim, write: Write) -> None:
        """Writes a range of a row."""
        first, count = self.code.dim(begin), self.code.dim(length)
        if self.whole is None:
            self._by_widths(first, count, length.constant_value, self.widths, write)
        else:
            self._vectors(first, count, self.whole, write)

    def _by_widths(
        self, begin: SSAValue, count: SSAValue, known: int | None, widths: Sequence[int], write: Write
    ) -> None:
        """Uses the largest vector width that is not greater than the count."""
        code = self.code
        while widths and known is not None and known < widths[0]:
            widths = widths[1:]
        if not widths:
            with code.loop(code.add(begin, count), "i", lower=begin, vectorize=False) as at:
                write(at, None)
            return
        with code.when(code.compare("sge", count, widths[0])) as branch:
            self._vectors(begin, count, widths[0], write)
            write(code.sub(code.add(begin, count), widths[0]), widths[0])
        with code.otherwise(branch):
            self._by_widths(begin, count, known, widths[1:], write)

    def _vectors(self, begin: SSAValue, count: SSAValue, lanes: int, write: Write) -> None:
        code = self.code
        with code.loop(code.divide(count, lanes), "v", vectorize=False) as v:
            write(code.add(begin, code.mul(v, lanes)), lanes)
