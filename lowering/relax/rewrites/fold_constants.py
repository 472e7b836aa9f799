"""`fold-constants`: operators on constants are computed when the program is compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.locations import inherit_location
from lowering.passes import Pass
from lowering.relax.struct_info_inference import StructInfoInference
from relax_dialect.analysis.effects import is_never_written
from relax_dialect.interpreter.frame import RULES, Frame
from relax_dialect.interpreter.machine import Interpreter
from relax_dialect.interpreter.runtime_values import Shape, Value, is_tensor
from relax_dialect.ops.guard import GuardOp
from relax_dialect.ops.manipulation import PermuteDimsOp
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.structure import FuncOp
from relax_dialect.ops.values import ConstantOp, PrimOp
from relax_dialect.scope import symbols_used
from relax_dialect.struct_info.types import ShapeType, TensorType
from relax_dialect.traits import AliasesOperand, Unpacks, impurity_of
from tir_dialect.attributes import DimAttr
from tir_dialect.dead_code import erase_dead
from tir_dialect.dtypes import numpy_dtype
from tir_dialect.elements import tensor_attr

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
        """Folds every function, in program order."""
        interpreter = Interpreter(op)
        for func in op.ops:
            if isinstance(func, FuncOp):
                _Folder(interpreter, self.most_bytes).fold(func)


class _Folder:
    """One function. A value becomes a constant in the program only where an op that stays uses it."""

    def __init__(self, interpreter: Interpreter, most_bytes: int):
        self._interpreter = interpreter
        self._most_bytes = most_bytes
        self._values: dict[SSAValue, Value] = {}

    def fold(self, func: FuncOp) -> None:
        """Folds everything in a function."""
        computed = [op for op in func.walk() if self._run(op)]
        folded = dict.fromkeys(computed)
        precise = [self._replace_uses(op, result, folded) for op in folded for result in reversed(op.results)]
        erase_dead(folded)
        if not all(precise):
            StructInfoInference().function(func)

    def _run(self, op: Operation) -> bool:
        """Computes the results of an op if that can be done."""
        if not isinstance(op, Operator | GuardOp) or not all(isinstance(info, TensorType) for info in op.result_types):
            return False
        if impurity_of(op) is not None or symbols_used(op) or op.has_trait(Unpacks):
            return False
        operands = [self._value_of(operand) for operand in op.operands]
        if any(value is None for value in operands) or self._is_too_large(op, operands):
            return False
        if not all(map(is_never_written, op.results)):
            return False
        frame = Frame(self._interpreter, "constant")
        frame.values.update(zip(op.operands, operands, strict=True))
        rule = RULES[type(op)]
        if rule is None:
            return False
        try:
            rule(frame, op)
        except (ValueError, TypeError, ArithmeticError, LookupError):
            return False  # the program fails here, if it comes here
        self._values.update((result, frame.get(result)) for result in op.results)
        return True

    def _value_of(self, value: SSAValue) -> Value:
        """What a constant is, `None` for other values."""
        if value not in self._values:
            self._values[value] = _constant(value)
        return self._values[value]

    def _is_too_large(self, op: Operation, operands: Sequence[Value]) -> bool:
        given = sum(value.nbytes for value in operands if is_tensor(value))
        made = sum(_bytes(info) for info in op.result_types)
        if made <= max(self._most_bytes, 4 * given):
            return False
        return made > MOST_BYTES_OF_WEIGHTS or not all(map(_is_weight, op.results))

    def _replace_uses(self, op: Operation, result: OpResult, folded: Mapping[Operation, None]) -> bool:
        """Puts a constant where ops that stay use a result; whether it is of the result's own type."""
        uses = [use for use in result.uses if use.operation not in folded]
        if not uses:
            return True
        new = ConstantOp(tensor_attr(self._values[result]))
        new.result.name_hint = result.name_hint
        inherit_location(op, new)
        Rewriter.insert_op(new, InsertPoint.after(op))
        for use in uses:
            use.operation.operands[use.index] = new.result
        return new.result.type == result.type


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
