"""Which operators are computed in lower precision, which may be, and which are not."""

from __future__ import annotations

from xdsl.ir import Operation

from relax_dialect.ops.activation import ClipOp, LeakyReluOp, ReluOp
from relax_dialect.ops.binary import AddOp, MaximumOp, MinimumOp, MultiplyOp, SubtractOp
from relax_dialect.ops.convolution import ConvolutionOp
from relax_dialect.ops.indexing import StridedSliceOp
from relax_dialect.ops.joining import ConcatOp, RepeatOp, SplitOp, StackOp, TileOp
from relax_dialect.ops.linear_algebra import MatmulOp
from relax_dialect.ops.manipulation import (
    BroadcastToOp,
    ExpandDimsOp,
    FlattenOp,
    FlipOp,
    PermuteDimsOp,
    ReshapeOp,
    SqueezeOp,
)
from relax_dialect.ops.pooling import MaxPoolOp
from relax_dialect.ops.unary import AbsOp, NegativeOp

_ALWAYS = (MatmulOp, ConvolutionOp)

_MOVES = (
    BroadcastToOp,
    ConcatOp,
    ExpandDimsOp,
    FlattenOp,
    FlipOp,
    MaxPoolOp,
    PermuteDimsOp,
    RepeatOp,
    ReshapeOp,
    SplitOp,
    SqueezeOp,
    StackOp,
    StridedSliceOp,
    TileOp,
)

_SIMPLE = (AbsOp, AddOp, ClipOp, LeakyReluOp, MaximumOp, MinimumOp, MultiplyOp, NegativeOp, ReluOp, SubtractOp)


def is_always(op: Operation) -> bool:
    """Sums of products: most of the work, and their operands most of the memory."""
    return isinstance(op, _ALWAYS)


def follows(op: Operation) -> bool:
    """What moves elements, and arithmetic that loses no more than its operands have lost: where its operands are."""
    return isinstance(op, _MOVES + _SIMPLE)
