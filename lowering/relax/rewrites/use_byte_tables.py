"""`use-byte-tables`: functions of bytes with values of bytes are looked up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, i8, i32
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from lowering.passes import Pass
from lowering.relax.movement import is_elementwise, is_single_element, with_operands
from lowering.relax.rewrites.fold_constants import constant_of
from lowering.rewriting import apply_patterns, op_rewrite_pattern
from relax_dialect.analysis.effects import is_never_written
from relax_dialect.interpreter.machine import Interpreter
from relax_dialect.interpreter.runtime_values import Array
from relax_dialect.ops.activation import GeluOp, SiluOp
from relax_dialect.ops.datatype import AstypeOp
from relax_dialect.ops.indexing import TakeOp
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.structure import FuncOp
from relax_dialect.ops.unary import ErfOp, ExpOp, LogOp, SigmoidOp, TanhOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dtypes import numpy_dtype
from tir_dialect.elements import tensor_attr
from tir_dialect.ops.dot import ui8

_COSTLY = (SigmoidOp, TanhOp, ExpOp, ErfOp, LogOp, GeluOp, SiluOp)
"""Operators that take longer than to look up a byte."""

_DTYPES = (i8, ui8)
_BYTES = 256


class UseByteTablesPass(Pass):
    """Looks up functions of one byte whose values are bytes, instead of computing them.

    Before:

    ```mlir
    %0 = relax.astype %q dtype = f32              // %q of ui8
    %1 = relax.multiply %0, %scale
    %2 = relax.sigmoid %1
    %3 = relax.multiply %2, %steps
    %4 = relax.round %3
    %5 = relax.astype %4 dtype = ui8
    ```

    After:

    ```mlir
    %table = relax.constant dense<[...]> : tensor<256xui8>
    %0 = relax.astype %q dtype = i32
    %5 = relax.take %table, %0 axis = 0
    ```

    So the activations of quantised networks take no exponential functions, also those that use the byte several times
    (`x * sigmoid(x)`). The interpreter computes the 256 values, so results are its own; those of kernels, which round
    exponential functions otherwise, may be the next integer. Left alone: functions without an operator that takes
    longer than to look up a byte, and those with other operands than constants of one element. Idempotent.
    """

    name = "use-byte-tables"
    requires = ("relax.astype",)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Looks up in every function, from its end: what leads from bytes to bytes may be a part of more of it."""
        interpreter = Interpreter(op)
        for func in op.ops:
            if isinstance(func, FuncOp):
                order: dict[Operation | Block, int] = {each: number for number, each in enumerate(func.walk())}
                apply_patterns(func, [UseByteTable(interpreter, order)], reverse=True)


class UseByteTable(RewritePattern):
    """`astype(f(x), ui8)  ->  take(table, x)` for an `x` of bytes."""

    def __init__(self, interpreter: Interpreter, order: Mapping[Operation | Block, int]):
        self._interpreter, self._order = interpreter, order

    @op_rewrite_pattern
    def match_and_rewrite(self, op: AstypeOp, rewriter: PatternRewriter) -> None:
        found = _argument(op, self._order) if op.dtype in _DTYPES else None
        table = None if found is None else self._table(*found)
        if found is None or table is None:
            return
        constant = ConstantOp(tensor_attr(table))
        index = AstypeOp(found[0], i32)
        taken = TakeOp(constant.result, index, axis=0)
        if taken.result.type == op.result.type:
            rewriter.replace(op, [constant, index, taken])

    def _table(self, root: SSAValue, ops: Sequence[Operator]) -> Array | None:
        """The value for each byte, in the order of their bits; a negative index counts from the back."""
        known = np.arange(_BYTES, dtype=np.uint8).view(numpy_dtype(_dtype(root)))
        values: dict[SSAValue, SSAValue] = {root: ConstantOp(tensor_attr(known)).result}
        made = values[root]
        for op in ops:
            again = with_operands(op, [values.get(each, each) for each in op.operands])
            constant = constant_of(self._interpreter, again)
            if constant is None or constant.size != _BYTES:
                return None
            made = values[op.results[0]] = ConstantOp(tensor_attr(constant.reshape(_BYTES))).result
        return made.owner.array if isinstance(made.owner, ConstantOp) else None


def _dtype(value: SSAValue) -> Attribute | None:
    return value.type.dtype if isinstance(value.type, TensorType) else None


def _argument(op: AstypeOp, order: Mapping[Operation | Block, int]) -> tuple[SSAValue, Sequence[Operator]] | None:
    """The bytes that a conversion to bytes is a function of, and the ops that compute it of them, in their order;
    `None` if it is of more, or takes no time.

    What it is computed from is followed back, the last op first, until it is all computed from one value.
    """
    pending, ops = {op.result}, list[Operator]()
    while pending:
        value = max(pending, key=lambda each: order.get(each.owner, -1))
        if len(pending) == 1 and _dtype(value) in _DTYPES and any(isinstance(each, _COSTLY) for each in ops):
            return value, ops[::-1]
        pending.remove(value)
        owner = value.owner
        if not is_elementwise(owner) or not is_never_written(value):
            return None
        ops.append(owner)
        pending |= {each for each in owner.operands if not _is_number(each)}
    return None


def _is_number(value: SSAValue) -> bool:
    return isinstance(value.owner, ConstantOp) and is_single_element(value)
