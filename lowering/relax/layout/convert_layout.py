"""`convert-layout`: networks of convolutions compute on channel-blocked data, where operators that pass blocked data to
each other are converted together or not at all.

`convert-conv1d-to-conv2d`: 1-D convolutions become 2-D convolutions of images with one row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod

import numpy as np
from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import Float32Type, ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue, Use
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.utils.exceptions import VerifyException

from lowering.locations import inherit_location
from lowering.registry import Pass, pass_target
from lowering.relax.insert_guards import apply_graph_patterns
from lowering.relax.layout.blocking import WEIGHTS, Blocking, Conversions, Known, Role, Step, is_one_position, step_of
from lowering.relax.matchers import array_of, dims_of
from lowering.rewriting import IndexedPattern, apply_patterns, op_rewrite_pattern
from relax_dialect.analysis.effects import is_never_written
from relax_dialect.inference import ONE
from relax_dialect.ops.convolution import Conv1dOp, Conv2dOp, Conv3dOp
from relax_dialect.ops.dataflow import DataflowOp, OutputOp
from relax_dialect.ops.manipulation import ExpandDimsOp, SqueezeOp
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.rearranging import LayoutTransformOp
from relax_dialect.ops.shapes import TupleOp
from relax_dialect.ops.structure import FuncOp, ReturnOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.struct_info.types import TensorType
from tir_dialect.target import Target
from tir_dialect.weights import tensor_attr

CHANNELS = 16
"""Of data and of filters there are multiples of so many, so that blocks of any machine are full."""


@dataclass(frozen=True)
class ConvertConv1dToConv2dPass(Pass):
    """Rewrites 1-D convolutions as 2-D ones, which `convert-layout` can block.

    Before:

    ```mlir
    %y = relax.nn.conv1d %x, %w padding = [1, 1]            // %x : [n, 64, w], %w : [32, 64, 3]
    ```

    After:

    ```mlir
    %v = ...                                                // [32, 64, 1, 3], the elements of %w
    %0 = relax.expand_dims %x axes = [2]
    %2 = relax.nn.conv2d %0, %v padding = [0, 1, 0, 1]      // [n, 32, 1, w]
    %y = relax.squeeze %2 axes = [2]
    ```

    Changed are convolutions of `f32` of one group in the default layouts, with so many channels and products for each
    result that blocks are profitable; without a stride only if the weights are known. Values are the same, but for
    the order of sums. Idempotent.
    """

    name = "convert-conv1d-to-conv2d"
    requires = ("relax.nn.conv1d",)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_graph_patterns(op, [ConvertConv1d()])


class ConvertConv1d(RewritePattern):
    """A 1-D convolution is one of images of one row: `conv1d(x, w)  ->  squeeze(conv2d(expand_dims(x), w'))`."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: Conv1dOp, rewriter: PatternRewriter) -> None:
        if not _is_profitable_in_2d(op):
            return
        windows, weights = op.windows, array_of(op.w)
        x = ExpandDimsOp(op.x, [2])
        w = ExpandDimsOp(op.w, [2]) if weights is None else ConstantOp(tensor_attr(np.expand_dims(weights, 2)))
        low, high = windows.padding
        made = Conv2dOp(x, w, strides=[1, *windows.strides], padding=[0, low, 0, high], dilation=[1, *windows.dilation])
        result = SqueezeOp(made, [2])
        if result.result.type == op.result.type:
            rewriter.replace(op, [x, w, made, result])


def _is_profitable_in_2d(op: Conv1dOp) -> bool:
    data, weights = dims_of(op.x), dims_of(op.w)
    types = [*op.operand_types, *op.result_types]
    if data is None or weights is None or dims_of(op.result) is None:
        return False
    if not all(isinstance(each, TensorType) and isinstance(each.dtype, Float32Type) for each in types):
        return False
    if [layout.text for layout in op.layouts] != ["NCW", "OIW", "NCW"]:
        return False
    filters, channels, size = (dim.constant_value or 0 for dim in weights)
    whole = filters > 0 and filters % CHANNELS == channels % CHANNELS == 0
    skips = max(op.windows.strides) > 1  # else windows are rows as they lie
    return (
        whole
        and (skips or array_of(op.w) is not None)
        and size > 1
        and channels * size >= LONG_SUM
        and op.groups.value.data == 1
        and data[1] == weights[1]
    )


LONG_SUM = 25
"""Products for each result from which a window gains more than two changes of layout cost."""
LONGER_SUM = 64
"""The same for what three changes cost, such as that of weights which are not constant."""
FULL = 0.8
"""So much of the work in blocks has to be for results and channels that there are."""


WEIGHT_ROLES = (Role.INNER_WEIGHTS, Role.OUTER_WEIGHTS)


@dataclass
class _Group:
    """Operators connected by values in blocks."""

    gain: int = 0
    """What its convolutions gain, in changes of layout."""
    moved: set[SSAValue] = field(default_factory=set[SSAValue])
    """The values with more than one position that are in blocks for some and without for others."""

    @property
    def is_profitable(self) -> bool:
        return self.gain > len(self.moved)


def plan(func: FuncOp, blocking: Blocking) -> tuple[Mapping[Operation, Step], Known]:
    """The steps of a function in program order, and the channels of what they make."""
    known, steps = Known(blocking), dict[Operation, Step]()
    for op in func.walk():
        step = _step(op, known)
        if step is not None:
            steps[op] = step
            pairs = zip(op.results, step.channels, strict=True)
            known.channels.update((result, count) for result, count in pairs if count is not None)
    groups = _groups(steps, known)
    return {op: step for op, step in steps.items() if groups[op].is_profitable}, known


def _step(op: Operation, known: Known) -> Step | None:
    """The step of an op whose results have the types that can be inferred and are written into by nobody, as are the
    operands whose layout is changed where they are made.
    """
    step = step_of(op, known)
    if step is None or not isinstance(op, Operator) or not all(map(_stays, op.results)):
        return None
    read_early = (value for value, role in zip(op.operands, step.roles, strict=True) if role is not Role.AS_IT_IS)
    if not all(known.of(value) is not None or is_never_written(value) for value in read_early):
        return None
    try:
        inferred = op.infer_result_types(op.operand_types, op.properties)
    except VerifyException:
        return None
    return step if inferred == tuple(op.result_types) and all(map(dims_of, op.results)) else None


def _stays(value: SSAValue) -> bool:
    """Whether nobody writes into a value while the function runs; the caller may get it in a tuple."""
    return is_never_written(value) or all(_is_result(use) or _reads(value, use) for use in value.uses)


def _is_result(use: Use) -> bool:
    """Whether a use is nothing but returning the value."""
    op = use.operation
    if isinstance(op, ReturnOp):
        return True
    if isinstance(op, OutputOp):
        dataflow = op.parent_op()
        return isinstance(dataflow, DataflowOp) and _stays(dataflow.results[use.index])
    return isinstance(op, TupleOp) and all(map(_is_result, op.result.uses))


def _reads(value: SSAValue, use: Use) -> bool:
    return isinstance(use.operation, Operator) and is_never_written(use.operation.results[0])


def _groups(steps: Mapping[Operation, Step], known: Known) -> Mapping[Operation, _Group]:
    """The group of each op."""
    leaders = {op: op for op in steps}

    def leader(op: Operation) -> Operation:
        while leaders[op] is not op:
            leaders[op] = leaders[leaders[op]]
            op = leaders[op]
        return op

    for op in steps:
        for maker in _makers(op, known):
            leaders[leader(maker)] = leader(op)
    groups = {op: _Group() for op in steps if leaders[op] is op}
    found = {op: groups[leader(op)] for op in steps}
    for op, step in steps.items():
        found[op].gain += _gain(op, known.blocking) if isinstance(op, Conv2dOp) else 0
        found[op].moved.update(_moved(op, step, steps, known))
    return found


def _gain(op: Conv2dOp, blocking: Blocking) -> int:
    """How many changes of layout a convolution pays for: without blocks its window is gathered position by position.

    Where blocks are not filled, what is beyond their end takes that gain away. The fewer filters share a window, the
    longer it takes to gather it: those of a group.
    """
    filters, inner, *window = (dim.constant_value or 1 for dim in dims_of(op.w) or ())
    in_blocks = blocking.padded(filters) * (inner if inner < blocking.size else blocking.padded(inner))
    if FULL * in_blocks > filters * inner or prod(window) == 1:
        return 1
    if inner * prod(window) >= LONGER_SUM or (op.groups.value.data > 1 and inner > 1):
        return 4
    return 3 if inner * prod(window) >= LONG_SUM else 1


def _makers(op: Operation, known: Known) -> Iterator[Operation]:
    """The ops that make what an op reads in blocks."""
    for operand in op.operands:
        if known.of(operand) is not None and isinstance(operand.owner, Operation):
            yield operand.owner


def _moved(op: Operation, step: Step, steps: Mapping[Operation, Step], known: Known) -> Iterator[SSAValue]:
    """The values at an op that are needed in both layouts, but for small ones."""
    for operand, role in zip(op.operands, step.roles, strict=True):
        moves = role is not Role.AS_IT_IS and known.of(operand) is None
        if moves and not isinstance(operand.owner, ConstantOp) and (role in WEIGHT_ROLES or _is_large(operand)):
            yield operand
    for result, channels in zip(op.results, step.channels, strict=True):
        if (
            channels is not None
            and not is_one_position(result)
            and any(use.operation not in steps for use in result.uses)
        ):
            yield result


def _is_large(value: SSAValue) -> bool:
    """Whether a value has channels and positions."""
    dims = dims_of(value) or ()
    if len(dims) < 3:
        return False
    return dims[-3] is not ONE and (dims[-1] is not ONE or dims[-2] is not ONE)


DATA_3D, WEIGHTS_3D = "NCDHW", "OIDHW"


@dataclass(frozen=True)
class BlockConv3d(RewritePattern):
    """A 3-D convolution computes on blocks: `conv3d(x, w)  ->  layout_transform(conv3d(layout_transform(x), w'))`.

    Without blocks the windows of each position are gathered, which takes as long as the products of some ten filters.
    Changed are convolutions of `f32` of one group in the default layouts, with whole blocks of channels and filters,
    and so many products for each result that the changes of layout are profitable.
    """

    blocking: Blocking
    conversions: Conversions
    """The weights in their new layout, each made once."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: Conv3dOp, rewriter: PatternRewriter) -> None:
        if not _is_profitable(op, self.blocking):
            return
        size, windows = self.blocking.size, op.windows
        blocks, kernel = f"{DATA_3D}{size}c", f"{WEIGHTS_3D}{size}i{size}o"
        data = LayoutTransformOp(op.x, DATA_3D, blocks)
        made = Conv3dOp(
            data,
            self.conversions.transformed(op.w, WEIGHTS_3D, kernel),
            strides=windows.strides,
            padding=windows.padding,
            dilation=windows.dilation,
            data_layout=blocks,
            kernel_layout=kernel,
        )
        result = LayoutTransformOp(made, blocks, DATA_3D)
        if result.result.type == op.result.type:
            rewriter.replace(op, [data, made, result])


def _is_profitable(op: Conv3dOp, blocking: Blocking) -> bool:
    data, weights = dims_of(op.x), dims_of(op.w)
    types = [*op.operand_types, *op.result_types]
    if data is None or weights is None or dims_of(op.result) is None:
        return False
    if not all(isinstance(each, TensorType) and isinstance(each.dtype, Float32Type) for each in types):
        return False
    filters, channels, *window = (dim.constant_value or 0 for dim in weights)
    positions = window[0] * window[1] * window[2]
    return (
        [layout.text for layout in op.layouts] == [DATA_3D, WEIGHTS_3D, DATA_3D]
        and filters > 0
        and blocking.is_whole(filters)
        and blocking.is_whole(channels)
        and positions > 1
        and channels * positions >= LONG_SUM
        and op.groups.value.data == 1
        and data[1] == weights[1]
        and is_never_written(op.w)
    )


@dataclass(frozen=True)
class ConvertLayoutPass(Pass):
    """Converts convolutions, and the operators between them, to a channel-blocked layout such as `NCHW16c`, whose block
    is one vector of `f32`.

    Before:

    ```mlir
    %0 = relax.nn.conv2d %x, %v                  // %x : !relax.tensor<[n, 3, h, w], f32>, %v of [32, 3, 1, 1]
    %1 = relax.add %0, %bias                     // %bias : !relax.tensor<[32, 1, 1], f32>
    %2 = relax.nn.conv2d %1, %w                  // %w : !relax.tensor<[64, 32, 1, 1], f32>
    ```

    After:

    ```mlir
    %0 = relax.nn.conv2d %x, %v1 kernel_layout = "OIHW16o" out_layout = "NCHW16c"
    %1 = relax.add %0, %bias1                    // %bias1 : !relax.tensor<[2, 1, 1, 16], f32>
    %2 = relax.nn.conv2d %1, %w1 data_layout = "NCHW16c" kernel_layout = "OIHW16i16o"
    %3 = relax.layout_transform %2 source = "NCHW16c" target = "NCHW"
    ```

    Converted are convolutions of `f32` in `NCHW` of one group, of each channel for itself or of groups that divide
    blocks or consist of some, and after them elementwise operators, also with operands that broadcast, pooling,
    reductions over positions, joining, cutting, padding and resizing. Constant weights are rearranged when the program
    is compiled, others in each call. Data with fewer channels than a block is read as it is. Where another operator
    needs a value, `relax.layout_transform` gives it back; of one position (after global pooling) that is a reshape.

    The rule of costs: operators that hand blocks to each other are a group, and a group is converted if its
    convolutions gain more than the weights that are not constant cost, and the values with more than one position that
    are needed in both layouts. A convolution of a window with long sums gains more than both transposes around it,
    others as much as one: a convolution of 1 x 1 between two transposes stays what it is.

    Channels that blocks have beyond the end are what channels with weights and biases of zero would be. They pass
    through operators that make finite numbers of finite numbers only, and the weights of zero of the next convolution
    leave them out; elsewhere they are cut off. So results are the same, but for the order of sums, as long as values
    are finite; if a value becomes infinite, the next convolution of such channels gives NaN, where it may have
    given an infinity. With whole blocks there is no such difference.

    3-D convolutions are converted one by one, with changes of layout around each (`BlockConv3d`).

    Nothing is converted that somebody may write into while the function runs. Idempotent.
    """

    name = "convert-layout"
    requires = ("relax.nn.conv2d", "relax.nn.conv3d")

    block: int = 0
    """The channels of a block; 0 for the elements of a vector of the target."""

    target: str = ""
    """The machine; this one if it is not named."""

    def __post_init__(self) -> None:
        """`ValueError` for a block of fewer channels than none."""
        if self.block < 0:
            raise ValueError(f"block expected a number of channels, or 0, got {self.block}")

    def for_target(self, target: Target) -> ConvertLayoutPass:
        return ConvertLayoutPass(block=target.lanes(32))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Converts each function by itself, then 3-D convolutions."""
        classes = {type(inner) for inner in op.walk()}
        if classes.isdisjoint((Conv2dOp, Conv3dOp)):
            return
        blocking = Blocking(self.block or pass_target(self.target).lanes(32))
        for func in op.ops:
            if isinstance(func, FuncOp) and any(isinstance(inner, Conv2dOp) for inner in func.walk()):
                steps, known = plan(func, blocking)
                if steps:
                    apply_patterns(func, [ComputeOnBlocks(blocking, steps, known)])
        if Conv3dOp in classes:
            apply_graph_patterns(op, [BlockConv3d(blocking, Conversions(blocking))])


class ComputeOnBlocks(IndexedPattern):
    """A planned operator computes on blocks: `relu(x)  ->  layout_transform(relu(blocks of x))`."""

    def __init__(self, blocking: Blocking, steps: Mapping[Operation, Step], known: Known):
        self._blocking = blocking
        self._steps = steps
        self._known = known
        self._classes = tuple({type(op) for op in steps})
        self._conversions = Conversions(blocking)
        self._blocked: dict[SSAValue, SSAValue] = {}
        """From what results have been replaced by to the blocks that are in it."""

    @override
    def may_match(self, op_class: type[Operation]) -> bool:
        return op_class in self._classes

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        """Converts an op after those that it reads."""
        step = self._steps.get(op)
        if step is None or any(operand.owner in self._steps for operand in op.operands):
            return
        operands = [self._operand(value, role) for value, role in zip(op.operands, step.roles, strict=True)]
        made = step.make(operands)
        for old, new in zip(op.results, made[-1].results, strict=True):
            new.name_hint = old.name_hint
        inherit_location(op, made)
        rewriter.insert(made)
        pairs = zip(op.results, made[-1].results, strict=True)
        rewriter.replace(op, [], [self._replacement(old, new) for old, new in pairs])

    def _operand(self, value: SSAValue, role: Role) -> SSAValue:
        match role:
            case Role.AS_IT_IS:
                return value
            case Role.BLOCKS:
                return self._blocked.get(value) or self._conversions.data(value)
            case Role.ALIGNED:
                return self._conversions.aligned(value)
            case Role.INNER_WEIGHTS:
                return self._conversions.transformed(value, WEIGHTS, self._blocking.inner)
            case Role.OUTER_WEIGHTS:
                return self._conversions.transformed(value, WEIGHTS, self._blocking.outer)

    def _replacement(self, old: OpResult, new: OpResult) -> SSAValue:
        """What a result is replaced by: data without blocks if an op needs that, else the blocks."""
        channels = self._known.of(old)
        if channels is None:
            return new
        plain = new
        if not all(map(self._reads_blocks, old.uses)):
            plain = self._conversions.plain(new, channels, is_one_position(old))
        self._blocked[plain] = new
        return plain

    def _reads_blocks(self, use: Use) -> bool:
        step = self._steps.get(use.operation)
        return step is not None and step.roles[use.index] is Role.BLOCKS
