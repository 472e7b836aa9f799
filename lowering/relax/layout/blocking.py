"""Channel-blocked layouts: their names, and conversions to and from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.locations import inherit_location
from relax_dialect.inference import ONE
from relax_dialect.interpreter.rearranging import relaid
from relax_dialect.ops.indexing import StridedSliceOp
from relax_dialect.ops.layouts import Layout
from relax_dialect.ops.manipulation import ExpandDimsOp, ReshapeOp
from relax_dialect.ops.rearranging import LayoutTransformOp
from relax_dialect.ops.shapes import ShapeOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, constant
from tir_dialect.elements import TensorAttr, tensor_attr
from tir_dialect.weights import WeightAttr
from vm_dialect.tensors import aligned_copy

PLAIN = "NCHW"
WEIGHTS = "OIHW"


@dataclass(frozen=True)
class Blocking:
    """Blocks of `size` channels."""

    size: int

    @property
    def data(self) -> str:
        """The layout of data."""
        return f"NCHW{self.size}c"

    @property
    def inner(self) -> str:
        """The layout of weights that read blocks and make blocks."""
        return f"OIHW{self.size}i{self.size}o"

    @property
    def outer(self) -> str:
        """The layout of weights that make blocks: of each channel for itself, or of data without blocks."""
        return f"OIHW{self.size}o"

    def padded(self, channels: int) -> int:
        """As many channels as the blocks have that hold `channels`."""
        return -(-channels // self.size) * self.size

    def is_whole(self, channels: int) -> bool:
        """Whether the channels fill their blocks."""
        return channels % self.size == 0


def dims_of(value: SSAValue) -> tuple[Dim, ...] | None:
    """The dimensions of a tensor, if all of them have a name."""
    return value.type.known_dims if isinstance(value.type, TensorType) else None


def shape_of(value: SSAValue) -> tuple[Dim, ...]:
    """The dimensions of a tensor all of whose dimensions have a name; `ValueError` for others."""
    dims = dims_of(value)
    if dims is None:
        raise ValueError(f"expected a tensor of known dimensions, got {value.type}")
    return dims


def is_one_position(value: SSAValue) -> bool:
    """Whether data without blocks has one position only, so that both layouts have its elements in one order."""
    dims = dims_of(value)
    return dims is not None and len(dims) == 4 and dims[2] is ONE and dims[3] is ONE


def array_of(value: SSAValue) -> NDArray[Any] | None:
    """The elements of a constant that are in this process."""
    return value.owner.array if isinstance(value.owner, ConstantOp) else None


class Conversions:
    """Values in other layouts, each made once, where the value itself is made."""

    def __init__(self, blocking: Blocking):
        self._blocking = blocking
        self._made: dict[tuple[SSAValue, str], SSAValue] = {}
        self._weights: dict[tuple[Attribute, str], TensorAttr] = {}

    def transformed(self, value: SSAValue, source: str, target: str) -> SSAValue:
        """A value in another layout; constants are rearranged at once, what blocks have beyond the end is zero."""
        array = array_of(value)
        if array is None:
            return self._once(value, target, lambda: LayoutTransformOp(value, source, target))
        return self._once(value, target, lambda: ConstantOp(self._rearranged(value, array, source, target)))

    def _rearranged(self, value: SSAValue, array: NDArray[Any], source: str, target: str) -> TensorAttr:
        """The elements of a constant in another layout; a weight has the layout in its name, and is rearranged once."""
        weight = value.owner.value if isinstance(value.owner, ConstantOp) else None
        if not isinstance(weight, WeightAttr):
            return tensor_attr(_relaid(array, source, target))
        key = (weight, target)
        if key not in self._weights:
            self._weights[key] = tensor_attr(_relaid(array, source, target), f"{weight.weight_name}.{target}")
        return self._weights[key]

    def _once(self, value: SSAValue, form: str, make: Callable[[], Operation]) -> SSAValue:
        key = (value, form)
        if key not in self._made:
            self._made[key] = self._after(value, [make()])
        return self._made[key]

    def data(self, value: SSAValue) -> SSAValue:
        """Data in blocks."""
        return self.transformed(value, PLAIN, self._blocking.data)

    def aligned(self, value: SSAValue) -> SSAValue:
        """An operand that broadcasts against data, so that it does so against blocks."""
        dims = shape_of(value)
        if all(dim is ONE for dim in dims):
            return value
        if len(dims) < 3 or dims[-3] is ONE:
            return self._expanded(value, -1)
        if len(dims) == 3:
            # Without a batch it broadcasts as well: CHW and CHW16c.
            return self.transformed(value, PLAIN[1:], self._blocking.data[1:])
        return self.data(value)

    def _expanded(self, value: SSAValue, axis: int) -> SSAValue:
        """The value with another dimension of 1."""
        array = array_of(value)
        if array is None:
            return self._once(value, f"expanded at {axis}", lambda: ExpandDimsOp(value, [axis]))
        return self._once(value, f"expanded at {axis}", lambda: ConstantOp(tensor_attr(np.expand_dims(array, axis))))

    def plain(self, value: SSAValue, channels: int, one_position: bool) -> SSAValue:
        """Data in blocks without them; of one position that is another shape of the same memory."""
        made: list[Operation] = [LayoutTransformOp(value, self._blocking.data, PLAIN)]
        if one_position:
            batch = shape_of(value)[0]
            made = reshaped(value, [batch, constant(self._blocking.padded(channels)), ONE, ONE])
        made += first_channels(made[-1].results[0], channels)
        return self._after(value, made)

    def _after(self, value: SSAValue, made: list[Operation]) -> SSAValue:
        owner = value.owner
        if isinstance(owner, Block):
            Rewriter.insert_op(made, InsertPoint.at_start(owner))
        else:
            inherit_location(owner, made)
            Rewriter.insert_op(made, InsertPoint.after(owner))
        result = made[-1].results[0]
        result.name_hint = value.name_hint
        return result


def _relaid(array: NDArray[Any], source: str, target: str) -> NDArray[Any]:
    return aligned_copy(relaid(array, Layout(source).dims, Layout(target).dims))


def reshaped(value: SSAValue, dims: list[Dim]) -> list[Operation]:
    """The ops that give a value another shape."""
    shape = ShapeOp(dims)
    return [shape, ReshapeOp(value, shape)]


def first_channels(value: SSAValue, channels: int) -> list[Operation]:
    """The op that leaves out channels after the first ones, which blocks had beyond the end; none if there are none."""
    return [] if shape_of(value)[1].constant_value == channels else [StridedSliceOp(value, [1], [0], [channels])]
