"""`to-mixed-precision`: products and what lies between them in 16 bits, sums and the rest in 32.
Each operator always, never, or as its operands is computed in 16 bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint
from xdsl.utils.exceptions import PassFailedException

from lowering.relax.insert_guards import apply_graph_patterns
from lowering.relax.matchers import array_of
from lowering.rewriting import op_rewrite_pattern
from relax_dialect.analysis.effects import is_never_written, unchanged_between
from relax_dialect.ops.activation import ClipOp, LeakyReluOp, ReluOp
from relax_dialect.ops.binary import AddOp, MaximumOp, MinimumOp, MultiplyOp, SubtractOp
from relax_dialect.ops.convolution import ConvolutionOp
from relax_dialect.ops.datatype import AstypeOp
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
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.pooling import MaxPoolOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.ops.unary import AbsOp, NegativeOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.scope import prover_at
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dtypes import numpy_dtype, parse_dtype
from tir_dialect.weights import tensor_attr

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


@dataclass(frozen=True)
class ToMixedPrecisionPass(ModulePass):
    """Computes `f32` matrix products and convolutions on operands of a smaller dtype.

    Before:

    ```mlir
    %0 = relax.matmul %x, %w                       // all f32
    %1 = relax.nn.relu %0
    %2 = relax.matmul %1, %v
    %3 = relax.nn.softmax %2
    ```

    After:

    ```mlir
    %4 = relax.astype %x dtype = f16
    %0 = relax.matmul %4, %w_f16 out_dtype = f32   // a constant, converted when the program is compiled
    %5 = relax.astype %0 dtype = f16
    %1 = relax.nn.relu %5
    %2 = relax.matmul %1, %v_f16 out_dtype = f32
    %3 = relax.nn.softmax %2
    ```

    Three kinds of operators, as in TVM's pass of the same name. *Always*: products and convolutions, whose sums are of
    `out-dtype`. *Follow*: what moves elements, and simple arithmetic, are computed in the smaller dtype if all their
    operands are there already or are constants, and a product needs the result. *Never*: everything else gets `f32`.
    A conversion and the one back are none, values have at most one conversion in each block, and parameters and results
    of functions keep their types.

    Values change by the rounding to the smaller dtype; what is beyond its range becomes infinite (`f16` has 65504).
    Operands of other dtypes stay as they are, and nothing is read after somebody may have written into it. Idempotent.
    Refuses options that are no floating-point dtypes.
    """

    name = "to-mixed-precision"

    dtype: str = "f16"
    """The dtype of the operands: `f16` or `bf16`."""
    out_dtype: str = "f32"
    """The dtype in which products are summed: `f32`, or the smaller one."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites every function in program order."""
        if self.dtype not in ("f16", "bf16") or self.out_dtype not in ("f32", self.dtype):
            raise PassFailedException(
                f"'{self.name}' expected dtype f16 or bf16 and out-dtype f32 or the same, got {self.dtype} and "
                f"{self.out_dtype}"
            )
        for func in op.ops:
            if isinstance(func, FuncOp):
                values = _Values(parse_dtype(self.dtype))
                out = parse_dtype(self.out_dtype)
                apply_graph_patterns(func, [MultiplySmall(values, out), FollowSmall(values, _wanted(func))])


class MultiplySmall(RewritePattern):
    """Products and convolutions read the smaller dtype: `matmul(x, w)  ->  matmul(astype(x), astype(w), out_dtype)`."""

    def __init__(self, values: _Values, out_dtype: Attribute):
        self._values = values
        self._out_dtype = out_dtype

    @op_rewrite_pattern
    def match_and_rewrite(self, op: Operator, rewriter: PatternRewriter) -> None:
        if not is_always(op) or not all(map(_is_f32, op.operands)):
            return
        small = {value: self._values.lowered(value, op, rewriter) for value in dict.fromkeys(op.operands)}
        new = _rebuilt(op, [small[value] for value in op.operands], {"out_dtype": self._out_dtype})
        rewriter.insert(new, InsertPoint.before(op))
        if self._out_dtype == f32:
            self._values.small[new.results[0]] = new.results[0]
            rewriter.replace(op, [], new.results)
        else:
            self._values.replace(op, new, rewriter)


class FollowSmall(RewritePattern):
    """Simple operators on the way to a product follow it: `relu(astype(x, f32))  ->  astype(relu(x), f32)`."""

    def __init__(self, values: _Values, wanted: AbstractSet[SSAValue]):
        self._values = values
        self._wanted = wanted

    @op_rewrite_pattern
    def match_and_rewrite(self, op: Operator, rewriter: PatternRewriter) -> None:
        if not follows(op) or self._wanted.isdisjoint(op.results) or not self._values.has_operands(op):
            return
        tensors = [isinstance(value.type, TensorType) for value in op.operands]
        operands = [
            self._values.lowered(value, op, rewriter) if is_tensor else value
            for value, is_tensor in zip(op.operands, tensors, strict=True)
        ]
        new = _rebuilt(op, operands, {})
        rewriter.insert(new, InsertPoint.before(op))
        self._values.replace(op, new, rewriter)


@dataclass
class _Values:
    """Where the values of a function are in the smaller dtype."""

    dtype: Attribute
    small: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Values of `f32` that come from the smaller dtype, to where they do."""
    _casts: dict[tuple[SSAValue, Block], SSAValue] = field(default_factory=dict[tuple[SSAValue, Block], SSAValue])

    def has_operands(self, op: Operator) -> bool:
        """Whether all operands are in the smaller dtype already, or constants, but not all constants; and no writes."""
        if not all(map(is_never_written, op.results)) or not all(map(is_never_written, op.operands)):
            return False
        tensors = [value for value in op.operands if isinstance(value.type, TensorType)]
        known = [_is_f32(each) and (each in self.small or isinstance(each.owner, ConstantOp)) for each in tensors]
        return bool(tensors) and all(known) and any(each in self.small for each in tensors)

    def replace(self, op: Operator, new: Operator, rewriter: PatternRewriter) -> None:
        """Replaces an op by one with smaller results, which are converted for those that need them so."""
        raised = [AstypeOp(result, f32) for result in new.results]
        for each, result in zip(raised, new.results, strict=True):
            self.small[each.result] = result
        rewriter.insert(raised, InsertPoint.before(op))
        rewriter.replace(op, [], [each.result for each in raised])

    def lowered(self, value: SSAValue, user: Operation, rewriter: PatternRewriter) -> SSAValue:
        """A value in the smaller dtype, converted at most once in each block between two writes."""
        found = self.small.get(value, value) if is_never_written(value) else value
        if found is not value or user.parent is None:
            return found
        cast = self._casts.get((value, user.parent))
        maker = None if cast is None else cast.owner
        if cast is None or not isinstance(maker, Operation) or not unchanged_between([value], maker, user):
            # A conversion before the user, or another constant.
            array = array_of(value)
            if array is None:
                new = AstypeOp(value, self.dtype)
            else:
                new = ConstantOp(tensor_attr(array.astype(numpy_dtype(self.dtype))))
                new.result.name_hint = value.name_hint
            rewriter.insert(new, InsertPoint.before(user))
            cast = self._casts[value, user.parent] = new.result
        return cast


def _wanted(func: FuncOp) -> set[SSAValue]:
    """The values that products need, or what follows on the way to them."""
    wanted: set[SSAValue] = set()
    for op in func.walk(reverse=True):
        if is_always(op) or (follows(op) and not wanted.isdisjoint(op.results)):
            wanted.update(op.operands)
    return wanted


def _is_f32(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType) and value.type.dtype == f32


def _rebuilt(op: Operator, operands: Sequence[SSAValue], properties: Mapping[str, Attribute]) -> Operator:
    """The same operator on operands of another dtype."""
    given = {**op.properties, **properties}
    types = op.infer_result_types([operand.type for operand in operands], given, prover_at(op))
    made = type(op).create(operands=operands, result_types=types, properties=given)
    made.location = op.location
    for new, old in zip(made.results, op.results, strict=True):
        new.name_hint = old.name_hint
    return made
