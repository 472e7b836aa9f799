"""Channel-blocked layouts: their names, conversions to and from them, and which operators compute on them, one rule per
family.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from math import isfinite, prod

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, Float32Type, StringAttr, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.locations import inherit_location
from lowering.relax.matchers import array_of, dims_of, reshaped, shape_of
from relax_dialect.analysis.effects import is_never_written
from relax_dialect.inference import ONE
from relax_dialect.interpreter.manipulation import relaid, relaid_shape
from relax_dialect.ops.activation import ClipOp, GeluOp, GeluTanhOp, LeakyReluOp, ReluOp, SeluOp, SiluOp, SoftplusOp
from relax_dialect.ops.binary import AddOp, BroadcastOp, DivideOp, MaximumOp, MinimumOp, MultiplyOp, SubtractOp
from relax_dialect.ops.convolution import Conv2dOp
from relax_dialect.ops.datatype import AstypeOp
from relax_dialect.ops.fields import integer, integers
from relax_dialect.ops.image import Resize1dOp
from relax_dialect.ops.indexing import StridedSliceOp
from relax_dialect.ops.joining import ConcatOp, SplitOp
from relax_dialect.ops.layouts import Layout
from relax_dialect.ops.manipulation import ExpandDimsOp
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.pooling import AdaptiveAvgPool2dOp, AvgPool2dOp, MaxPool2dOp
from relax_dialect.ops.rearranging import LayoutTransformOp, PadOp
from relax_dialect.ops.reduction import MaxOp, MeanOp, MinOp, ReductionOp, SumOp
from relax_dialect.ops.sorting import WhereOp
from relax_dialect.ops.unary import AbsOp, NegativeOp, RoundOp, SigmoidOp, SquareOp, TanhOp, UnaryOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import constant
from tir_dialect.weights import Elements, TensorAttr, WeightAttr, computed, tensor_attr
from vm_dialect.host_memory import aligned_copy

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


def is_one_position(value: SSAValue) -> bool:
    """Whether data without blocks has one position only, so that both layouts have its elements in one order."""
    dims = dims_of(value)
    return dims is not None and len(dims) == 4 and dims[2] is ONE and dims[3] is ONE


class Conversions:
    """Values in other layouts, each made once, where the value itself is made."""

    def __init__(self, blocking: Blocking):
        self._blocking = blocking
        self._made: dict[tuple[SSAValue, str], SSAValue] = {}
        self._weights: dict[tuple[Attribute, str], TensorAttr] = {}

    def transformed(self, value: SSAValue, source: str, target: str) -> SSAValue:
        """A value in another layout; constants are rearranged at once, what blocks have beyond the end is zero."""
        elements = value.owner.sources if isinstance(value.owner, ConstantOp) else None
        if elements is None:
            return self._once(value, target, lambda: LayoutTransformOp(value, source, target))
        return self._once(value, target, lambda: ConstantOp(self._rearranged(value, elements, source, target)))

    def _rearranged(self, value: SSAValue, elements: Elements, source: str, target: str) -> TensorAttr:
        """The elements of a constant in another layout; a weight has the layout in its name, and is rearranged once."""
        weight = value.owner.value if isinstance(value.owner, ConstantOp) else None
        if not isinstance(weight, WeightAttr):
            return tensor_attr(_relaid(elements, source, target))
        key = (weight, target)
        if key not in self._weights:
            self._weights[key] = tensor_attr(_relaid(elements, source, target), f"{weight.weight_name}.{target}")
        return self._weights[key]

    def _once(self, value: SSAValue, form: str, make: Callable[[], Operation]) -> SSAValue:
        key = (value, form)
        if key not in self._made:
            self._made[key] = self._after(value, [make()])
        return self._made[key]

    def data(self, value: SSAValue) -> SSAValue:
        """Data in blocks; of one position that is another shape of the same memory, if the channels fill blocks."""
        dims, size = shape_of(value), self._blocking.size
        channels = dims[1].constant_value if is_one_position(value) and array_of(value) is None else None
        if channels is None or not self._blocking.is_whole(channels):
            return self.transformed(value, PLAIN, self._blocking.data)
        blocks = [dims[0], constant(channels // size), ONE, ONE, constant(size)]
        made = self._made.get((value, self._blocking.data)) or self._after(value, reshaped(value, blocks))
        return self._made.setdefault((value, self._blocking.data), made)

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


def _relaid(elements: Elements, source: str, target: str) -> Elements:
    before, after = Layout(source).dims, Layout(target).dims
    shape = relaid_shape(elements.shape, before, after)
    return computed(lambda array: aligned_copy(relaid(array, before, after)), elements, shape, elements.dtype)


def first_channels(value: SSAValue, channels: int) -> list[Operation]:
    """The op that leaves out channels after the first ones, which blocks had beyond the end; none if there are none."""
    return [] if shape_of(value)[1].constant_value == channels else [StridedSliceOp(value, [1], [0], [channels])]


FEW_PIXELS = 32
"""To rearrange weights takes longer than is gained at fewer positions of the result."""
HARMLESS = (
    *(ReluOp, GeluOp, GeluTanhOp, SiluOp, SeluOp, LeakyReluOp, SoftplusOp, ClipOp),
    *(AbsOp, AstypeOp, NegativeOp, RoundOp, SigmoidOp, SquareOp, TanhOp),
    *(AddOp, SubtractOp, MultiplyOp, MaximumOp, MinimumOp),
)
"""Elementwise operators that make a finite number of finite numbers, but for overflow: channels that blocks have beyond
the end may go through these, zero as they are at first.
"""


class Role(Enum):
    """How a step reads an operand."""

    AS_IT_IS = auto()
    BLOCKS = auto()
    """In blocks."""
    ALIGNED = auto()
    """So that it broadcasts against blocks."""
    INNER_WEIGHTS = auto()
    """Weights that read blocks and make blocks."""
    OUTER_WEIGHTS = auto()
    """Weights that make blocks."""


Make = Callable[[Sequence[SSAValue]], Sequence[Operation]]


@dataclass(frozen=True, eq=False)
class Step:
    """An operator on blocks in place of one without."""

    op: Operation
    roles: Sequence[Role]
    """Of each operand."""
    channels: Sequence[int | None]
    """Of each result, `None` for one without blocks."""
    make: Make
    """The new ops, of operands as the roles say; the results of the last replace the op's."""


@dataclass
class Known:
    """What is in blocks before an op."""

    blocking: Blocking
    channels: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """The number of channels, without those beyond the end."""

    def of(self, value: SSAValue) -> int | None:
        """The channels of a value in blocks, `None` for others."""
        return self.channels.get(value)

    def is_safe(self, op: Operation, channels: int) -> bool:
        """Whether an elementwise op does no harm with channels beyond the end, if there are some."""
        by_one = isinstance(op, DivideOp) and dims_of(op.operands[1]) == ()
        return self.blocking.is_whole(channels) or isinstance(op, HARMLESS) or by_one


def step_of(op: Operation, known: Known) -> Step | None:
    """How an op computes on blocks; `None` if it cannot, or if nothing that it reads is in blocks and it is no
    convolution.
    """
    for kinds, rule in RULES:
        if isinstance(op, kinds):
            return rule(op, known)
    return None


def _same(op: Operator, roles: Sequence[Role], channels: int, **properties: Attribute | None) -> Step:
    return Step(op, roles, [channels], lambda operands: [op.with_operands(operands, **properties)])


def _convolution(op: Conv2dOp, known: Known) -> Step | None:
    """If the filters fill at least half of their blocks; weights that are not constant are rearranged in each call."""
    x, weights, groups, blocking = dims_of(op.x), dims_of(op.w), op.groups.value.data, known.blocking
    plain = [layout.text for layout in op.layouts] == [PLAIN, WEIGHTS, PLAIN]
    if not plain or x is None or weights is None or not _is_f32(op):
        return None
    filters, inner, *window = (dim.constant_value or 0 for dim in weights)
    if 2 * filters < blocking.size or not (
        isinstance(op.w.owner, ConstantOp) or (all(window) and _may_be_rearranged(op))
    ):
        return None
    if groups == 1 and inner < blocking.size and known.of(op.x) is None:
        layouts = {"kernel_layout": StringAttr(blocking.outer), "out_layout": StringAttr(blocking.data)}
        return _same(op, [Role.AS_IT_IS, Role.OUTER_WEIGHTS], filters, **layouts)
    if x[1] is not constant(groups * inner):
        return None  # the blocks of data with any number of channels are any number
    role, kernel = Role.INNER_WEIGHTS, blocking.inner
    if 0 < inner < blocking.size and blocking.size % inner == 0 and filters == groups * inner > inner:
        role, kernel, groups = Role.OUTER_WEIGHTS, blocking.outer, blocking.padded(filters) // inner
    elif groups > 1 and not (blocking.is_whole(inner) and blocking.is_whole(filters // groups)):
        return None
    layouts = {"data_layout": StringAttr(blocking.data), "kernel_layout": StringAttr(kernel)}
    # The result is in blocks as the data is, also where its layout has been written out.
    return _same(op, [Role.BLOCKS, role], filters, groups=integer(groups), out_layout=None, **layouts)


def _may_be_rearranged(op: Conv2dOp) -> bool:
    """Whether weights that are not constant may be read before, and have enough positions that use them to pay
    for it.
    """
    positions = prod(dim.constant_value or FEW_PIXELS for dim in shape_of(op.result)[2:])
    return positions >= FEW_PIXELS and is_never_written(op.w)


def _is_f32(op: Conv2dOp) -> bool:
    return all(
        isinstance(info, TensorType) and isinstance(info.dtype, Float32Type)
        for info in [*op.operand_types, *op.result_types]
    )


def _lanes(op: Operator, known: Known) -> Step | None:
    """Elementwise, of one tensor."""
    channels = known.of(op.operands[0])
    if channels is None or len(op.operands) != 1 or not known.is_safe(op, channels):
        return None
    return _same(op, [Role.BLOCKS], channels)


def _broadcast(op: Operator, known: Known) -> Step | None:
    """Elementwise, of several tensors, all of which have these channels or one for all."""
    counts = {count for operand in op.operands if (count := known.of(operand)) is not None}
    if len(counts) != 1:
        return None
    (channels,) = counts
    roles = [_aligned(operand, known, channels) for operand in op.operands]
    if None in roles or not known.is_safe(op, channels):
        return None
    return _same(op, [role for role in roles if role is not None], channels)


def _aligned(value: SSAValue, known: Known, channels: int) -> Role | None:
    if known.of(value) is not None:
        return Role.BLOCKS
    dims = dims_of(value)
    if dims is None or len(dims) > len(PLAIN):
        return None
    fits = len(dims) < 3 or dims[-3] is ONE or dims[-3] is constant(channels)
    return Role.ALIGNED if fits else None


Pool2dOp = MaxPool2dOp | AvgPool2dOp | AdaptiveAvgPool2dOp


def _pool(op: Pool2dOp, known: Known) -> Step | None:
    channels = known.of(op.x)
    if channels is None or any(layout.text != PLAIN for layout in op.layouts):
        return None
    return _same(op, [Role.BLOCKS], channels, layout=StringAttr(known.blocking.data), out_layout=None)


def _reduction(op: ReductionOp, known: Known) -> Step | None:
    """Over positions; without them the channels are one after the other again."""
    channels = known.of(op.x)
    axes = None if op.axes is None else sorted(axis % 4 for axis in op.axes.get_values())
    if channels is None or axes is None or not set(axes) <= {2, 3} or not axes:
        return None
    positive = {"axes": integers(axes)}
    if op.keepdims is not None:
        return _same(op, [Role.BLOCKS], channels, **positive)
    if axes != [2, 3]:
        return None

    def make(operands: Sequence[SSAValue]) -> Sequence[Operation]:
        reduced = op.with_operands(operands, **positive)
        batch = shape_of(operands[0])[0]
        joined = reshaped(reduced.results[0], [batch, constant(known.blocking.padded(channels))])
        return [reduced, *joined, *first_channels(joined[-1].results[0], channels)]

    return Step(op, [Role.BLOCKS], [None], make)


def _concat(op: ConcatOp, known: Known) -> Step | None:
    """Along channels, if each part but the last one is whole blocks; along others, if all parts are in blocks."""
    counts, axis = [known.of(value) for value in op.inputs], op.axis.value.data % 4
    found = [count for count in counts if count is not None]
    if not found or len(found) < len(counts):
        return None
    if axis == 1 and not all(map(known.blocking.is_whole, found[:-1])):
        return None
    channels = sum(found) if axis == 1 else found[0]
    return _same(op, [Role.BLOCKS] * len(found), channels, axis=integer(axis))


def _split(op: SplitOp, known: Known) -> Step | None:
    """Of channels, into parts of whole blocks; of positions."""
    channels, axis = known.of(op.x), op.axis.value.data % 4
    if channels is None or axis == 0:
        return None
    if axis > 1:
        return Step(
            op,
            [Role.BLOCKS],
            [channels] * len(op.res),
            lambda operands: [op.with_operands(operands, axis=integer(axis))],
        )
    parts = [None if (dims := dims_of(part)) is None else dims[1].constant_value for part in op.res]
    known_parts = [part for part in parts if part]
    if len(known_parts) < len(parts) or not all(map(known.blocking.is_whole, known_parts)):
        return None
    size = known.blocking.size
    ends = [sum(known_parts[: index + 1]) // size for index in range(len(known_parts) - 1)]
    return Step(op, [Role.BLOCKS], known_parts, lambda operands: [SplitOp(operands[0], indices=ends, axis=1)])


def _pad(op: PadOp, known: Known) -> Step | None:
    """Of positions."""
    channels, widths = known.of(op.x), tuple(op.pad_width.get_values())
    if channels is None or any(widths[2:4]):
        return None
    return _same(op, [Role.BLOCKS], channels, pad_width=DenseArrayBase.from_list(i64, [*widths, 0, 0]))


def _resize(op: Resize1dOp, known: Known) -> Step | None:
    """Of positions. What grows and is not needed in blocks leaves them before, where it is smaller."""
    channels, axis = known.of(op.x), op.axis.value.data % 4
    finite = isfinite(op.extrapolation_value.value.data)
    if channels is None or axis < 2 or not (finite or known.blocking.is_whole(channels)):
        return None
    dims, length = dims_of(op.x), op.length.data.constant_value
    before = None if dims is None else dims[axis].constant_value
    if before and length and before < length and not _is_needed_in_blocks(op.results[0]):
        return None
    return _same(op, [Role.BLOCKS], channels, axis=integer(axis))


def _is_needed_in_blocks(value: SSAValue) -> bool:
    """Whether something that combines positions or channels uses a value, perhaps after elementwise operators."""
    pending, seen = [value], set[SSAValue]()
    while pending:
        for use in pending.pop().uses:
            if isinstance(use.operation, Conv2dOp | Pool2dOp | ReductionOp | ConcatOp | SplitOp):
                return True
            new = [each for each in use.operation.results if each not in seen]
            if any(isinstance(use.operation, kinds) for kinds, _ in RULES):
                seen.update(new)
                pending += new
    return False


RULES: Sequence[tuple[tuple[type[Operation], ...], Callable[..., Step | None]]] = (
    ((Conv2dOp,), _convolution),
    ((UnaryOp, AstypeOp, ClipOp, LeakyReluOp, SoftplusOp), _lanes),
    ((BroadcastOp, WhereOp), _broadcast),
    ((MaxPool2dOp, AvgPool2dOp, AdaptiveAvgPool2dOp), _pool),
    ((MeanOp, SumOp, MaxOp, MinOp), _reduction),
    ((ConcatOp,), _concat),
    ((SplitOp,), _split),
    ((PadOp,), _pad),
    ((Resize1dOp,), _resize),
)
"""The operators that may compute on blocks."""
