"""`fold-constants`: operators on constants are computed when the program is compiled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from lowering.registry import Pass
from lowering.relax.infer_struct_info import StructInfoInference
from lowering.rewriting import apply_patterns, op_rewrite_pattern
from relax_dialect.analysis.effects import is_never_written
from relax_dialect.interpreter.frame import RULES, Frame
from relax_dialect.interpreter.machine import Interpreter
from relax_dialect.interpreter.runtime_values import Array, Shape, Value, is_tensor
from relax_dialect.ops.binding import GuardOp
from relax_dialect.ops.manipulation import PermuteDimsOp
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.structure import FuncOp
from relax_dialect.ops.values import ConstantOp, PrimOp
from relax_dialect.scope import symbols_used
from relax_dialect.struct_info.types import ShapeType, TensorType
from relax_dialect.traits import AliasesOperand, Unpacks, impurity_of
from tir_dialect.dtypes import numpy_dtype
from tir_dialect.types import DimAttr
from tir_dialect.weights import tensor_attr

MOST_BYTES_OF_WEIGHTS = 1 << 29
"""Weights up to this size are made when the program is compiled."""


@dataclass(frozen=True)
class FoldConstantsPass(Pass):
    """Evaluates every operator whose operands are constants, by the interpreter; whole subgraphs become one constant.

    Before:

    ```mlir
    %w = relax.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
    %s = relax.constant dense<0.5> : tensor<f32>
    %0 = relax.permute_dims %w
    %1 = relax.multiply %0, %s
    %y = relax.matmul %x, %1
    ```

    After:

    ```mlir
    %1 = relax.constant dense<[[0.5, 1.5], [1.0, 2.0]]> : tensor<2x2xf32>
    %y = relax.matmul %x, %1
    ```

    Left alone: results that somebody may keep or write into, as the memory of a constant is shared; what has effects,
    needs a symbol, or would fail (where it runs, the program reports it); weights whose elements are not in this
    process, and packed ones, which kernels decode; and results of more than `most_bytes` that are also more than four
    times as large as the constants that they are made of: a scalar that is broadcast to a gigabyte stays a scalar.
    Weights of products and convolutions may be larger, as they are needed as a whole in any case. Idempotent.
    """

    name = "fold-constants"
    requires = ("relax.guard",)
    folds = True

    most_bytes: int = 1 << 16
    """Results up to this size are kept, however small their operands are."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Folds every function, from its end: what only folded ops read needs no constant."""
        interpreter = Interpreter(op)
        for func in op.ops:
            if isinstance(func, FuncOp):
                fold = FoldToConstant(ConstantValues(interpreter, self.most_bytes))
                apply_patterns(func, [fold], reverse=True)
                if fold.refines:
                    StructInfoInference().function(func)


class FoldToConstant(RewritePattern):
    """An operator on constants is the constant that it computes: `permute_dims(constant)  ->  constant`."""

    def __init__(self, values: ConstantValues):
        self._values = values
        self.refines = False
        """Whether a constant has a more precise type than what it replaces."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: Operator | GuardOp, rewriter: PatternRewriter) -> None:
        used = [result for result in op.results if result.first_use is not None]
        values = [self._values.of(result) for result in used]
        if not used or any(value is None for value in values):
            return
        constants = {result: ConstantOp(tensor_attr(value)) for result, value in zip(used, values, strict=True)}
        self.refines |= any(result.type != new.result.type for result, new in constants.items())
        results = [constants[result].result if result in constants else None for result in op.results]
        rewriter.replace(op, list(constants.values()), results)


def constant_of(interpreter: Interpreter, op: Operator) -> Array | None:
    """The tensor that an operator with one result computes of constants; `None` if it fails, or is impure."""
    rule = RULES[type(op)]
    if rule is None or not _is_computable(op) or not all(isinstance(each.owner, ConstantOp) for each in op.operands):
        return None
    frame = Frame(interpreter, "constant")
    frame.values.update((each, each.owner.array) for each in op.operands if isinstance(each.owner, ConstantOp))
    try:
        rule(frame, op)
    except (ValueError, TypeError, ArithmeticError, LookupError):
        return None
    found = frame.get(op.results[0])
    return found if is_tensor(found) else None


class ConstantValues:
    """The values of a function that are constants, and those that operators compute of them: an analysis on demand."""

    def __init__(self, interpreter: Interpreter, most_bytes: int):
        self._interpreter = interpreter
        self._most_bytes = most_bytes
        self._values: dict[SSAValue, Value] = {}

    def of(self, value: SSAValue) -> Value:
        """What a value is, `None` if that is not known before the program runs."""
        pending = [value]
        while pending:
            op = pending[-1].owner
            if pending[-1] in self._values:
                pending.pop()
            elif not isinstance(op, Operator | GuardOp) or not _is_computable(op):
                self._values[pending[-1]] = _constant(pending[-1])
            elif missing := [operand for operand in op.operands if operand not in self._values]:
                pending += missing
            else:
                self._values.update(zip(op.results, self._computed(op), strict=True))
        return self._values[value]

    def _computed(self, op: Operator | GuardOp) -> Sequence[Value]:
        """The results of an op whose operands have been looked at."""
        unknown = [None] * len(op.results)
        operands = [self._values[operand] for operand in op.operands]
        rule = RULES[type(op)]
        if rule is None or any(value is None for value in operands) or self._is_too_large(op, operands):
            return unknown
        if not all(map(is_never_written, op.results)):
            return unknown
        frame = Frame(self._interpreter, "constant")
        frame.values.update(zip(op.operands, operands, strict=True))
        try:
            rule(frame, op)
        except (ValueError, TypeError, ArithmeticError, LookupError):
            return unknown  # the program fails here, if it comes here
        return [frame.get(result) for result in op.results]

    def _is_too_large(self, op: Operation, operands: Sequence[Value]) -> bool:
        given = sum(value.nbytes for value in operands if is_tensor(value))
        made = sum(_bytes(info) for info in op.result_types)
        if made <= max(self._most_bytes, 4 * given):
            return False
        return made > MOST_BYTES_OF_WEIGHTS or not all(map(_is_weight, op.results))


def _is_computable(op: Operator | GuardOp) -> bool:
    """Whether an op computes tensors of its operands alone."""
    if not all(isinstance(info, TensorType) for info in op.result_types):
        return False
    return impurity_of(op) is None and not symbols_used(op) and not op.has_trait(Unpacks)


def _is_weight(value: SSAValue) -> bool:
    """Whether a product or convolution has the value as its second operand, perhaps under another shape."""
    # Not at the top: most programs have nothing that is so large.
    from relax_dialect.ops.convolution import ConvolutionOp
    from relax_dialect.ops.linear_algebra import MatmulOp

    for use in value.uses:
        op = use.operation
        if isinstance(op, MatmulOp | ConvolutionOp):
            return use.index == 1
        if op.has_trait(AliasesOperand) or isinstance(op, PermuteDimsOp):
            return use.index == 0 and _is_weight(op.results[0])
    return False


def _constant(value: SSAValue) -> Value:
    owner, info = value.owner, value.type
    if isinstance(owner, ConstantOp):
        return owner.array if is_never_written(value) else None
    if isinstance(owner, PrimOp) and not isinstance(owner.value, DimAttr):
        return owner.value.value.data
    if isinstance(owner, PrimOp) and isinstance(owner.value, DimAttr):
        return owner.value.data.constant_value
    if isinstance(info, ShapeType) and info.known_dims is not None:
        sizes = [size for dim in info.known_dims if (size := dim.constant_value) is not None]
        return Shape(sizes) if len(sizes) == len(info.known_dims) else None
    return None


def _bytes(info: Any) -> int:
    """The size of a tensor; of one whose size is not known, none."""
    if not isinstance(info, TensorType) or info.known_dims is None or info.dtype is None:
        return 0
    count = numpy_dtype(info.dtype).itemsize
    for dim in info.known_dims:
        count *= 1 if dim.constant_value is None else dim.constant_value
    return count
