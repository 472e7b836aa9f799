"""`propagate-quantization`: max pooling and concatenation of quantised values work on bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from lowering.registry import Pass
from lowering.relax.rewrites.simplify_quantization import BYTE_DTYPES, COSTLY, is_number, values_of_bytes
from lowering.relax.rewrites.simplify_reshapes import (
    ElementwiseOp,
    dims_of,
    dtype_of,
    is_elementwise,
    used_only_by,
    with_operands,
)
from lowering.relax.shapes.insert_guards import apply_graph_patterns
from lowering.rewriting import op_rewrite_pattern
from relax_dialect.analysis.effects import is_never_written
from relax_dialect.interpreter.machine import Interpreter
from relax_dialect.ops.datatype import AstypeOp
from relax_dialect.ops.joining import ConcatOp
from relax_dialect.ops.manipulation import PermuteDimsOp, permutation
from relax_dialect.ops.pooling import MaxPoolOp


class PropagateQuantizationPass(Pass):
    """Moves max pooling before the conversion of its operand from bytes, and concatenation after the conversion of its
    result to bytes; a conversion from bytes to the same bytes is dropped.

    Before:

    ```mlir
    %0 = relax.astype %q dtype = f32                     // %q of ui8
    %1 = relax.multiply %0, %scale
    %2 = relax.nn.max_pool2d %1 pool_size = [2, 2]
    %3 = relax.concat %2, %x axis = 1
    %4 = relax.multiply %3, %steps
    %5 = relax.round %4
    %6 = relax.astype %5 dtype = ui8
    ```

    After:

    ```mlir
    %2 = relax.nn.max_pool2d %q pool_size = [2, 2]       // of ui8
    %5 = relax.multiply %x, %steps
    %6 = relax.round %5
    %7 = relax.astype %6 dtype = ui8
    %8 = relax.concat %2, %7 axis = 1                    // the scales of %q and the result are the same
    ```

    So a fourth of the bytes is moved, and what is computed one by one fuses with what makes the operands. A maximum is
    moved past a function of one byte that never decreases, of which the interpreter computes the 256 values. Moved are
    chains of elementwise operators whose other operands are constants of one element, and that nothing else uses.
    Values are the same bit for bit. Nothing moves that somebody may write into. Idempotent.
    """

    name = "propagate-quantization"
    requires = ("relax.astype",)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        interpreter = Interpreter(op)
        apply_graph_patterns(op, [PoolBytes(interpreter), ConcatenateBytes(), DropIdentity(interpreter)])


class PoolBytes(RewritePattern):
    """Of bytes: `max_pool(f(x))  ->  f(max_pool(x))` for an f that never decreases."""

    def __init__(self, interpreter: Interpreter):
        self._interpreter = interpreter

    @op_rewrite_pattern
    def match_and_rewrite(self, op: MaxPoolOp, rewriter: PatternRewriter) -> None:
        found = _chain_from_bytes(op.x)
        if found is None or dtype_of(op.x) in BYTE_DTYPES:
            return
        root, chain = found
        # Kernels may round what is costly so that it decreases somewhere.
        if any(isinstance(each, (*COSTLY, PermuteDimsOp)) for each in chain):
            return
        values = values_of_bytes(self._interpreter, root, chain)
        if values is None or not _never_decreases(root, values):
            return
        pooled = with_operands(op, [root])
        new = _applied(chain, pooled.results[0])
        if new[-1].results[0].type == op.result.type:
            rewriter.replace(op, [pooled, *new])


class ConcatenateBytes(RewritePattern):
    """`f(concat(x, y))  ->  concat(f(x), f(y))` for an f that gives bytes, and may permute dimensions."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: AstypeOp, rewriter: PatternRewriter) -> None:
        if op.dtype not in BYTE_DTYPES or not is_never_written(op.result):
            return
        chain: list[ElementwiseOp | PermuteDimsOp] = [op]
        while (
            (value := _argument(chain[-1])) is not None and used_only_by(value, chain[-1]) and is_never_written(value)
        ):
            maker = value.owner
            if isinstance(maker, ConcatOp) and dtype_of(value) not in BYTE_DTYPES:
                self._exchange(maker, chain[::-1], rewriter)
                return
            if not is_elementwise(maker) and not isinstance(maker, PermuteDimsOp):
                return
            chain.append(maker)

    def _exchange(
        self, concat: ConcatOp, chain: Sequence[ElementwiseOp | PermuteDimsOp], rewriter: PatternRewriter
    ) -> None:
        orders = [permutation(each) for each in chain if isinstance(each, PermuteDimsOp)]
        axis, dims = concat.axis.value.data, dims_of(concat.result)
        if dims is None:
            return
        axis %= len(dims)
        for order in orders:
            if order is None:
                return
            axis = order.index(axis)
        new = [_applied(chain, operand) for operand in concat.inputs]
        joined = ConcatOp([each[-1].results[0] for each in new], axis)
        last = chain[-1]
        if joined.result.type == last.results[0].type:
            rewriter.replace(last, [*(each for some in new for each in some), joined])


class DropIdentity(RewritePattern):
    """`f(x)  ->  x` for bytes that are converted to the same bytes; what permutes dimensions in f stays."""

    def __init__(self, interpreter: Interpreter):
        self._interpreter = interpreter

    @op_rewrite_pattern
    def match_and_rewrite(self, op: AstypeOp, rewriter: PatternRewriter) -> None:
        found = _chain_from_bytes(op.result) if op.dtype in BYTE_DTYPES else None
        if found is None or dtype_of(found[0]) != op.dtype:
            return
        root, chain = found
        moves = _applied([each for each in chain if isinstance(each, PermuteDimsOp)], root)
        result = moves[-1].results[0] if moves else root
        values = values_of_bytes(self._interpreter, root, chain) if result.type == op.result.type else None
        if values is not None and np.array_equal(values.view(np.uint8), np.arange(values.size)):
            rewriter.replace(op, moves, [result])


def _argument(op: ElementwiseOp | PermuteDimsOp) -> SSAValue | None:
    """The operand that is no number, if there is one."""
    others = [operand for operand in op.operands if not is_number(operand)]
    return others[0] if len(others) == 1 else None


def _chain_from_bytes(value: SSAValue) -> tuple[SSAValue, list[ElementwiseOp | PermuteDimsOp]] | None:
    """The bytes that a value is computed from one by one, and the ops that do it, or permute dimensions, in their
    order.
    """
    chain: list[ElementwiseOp | PermuteDimsOp] = []
    while not chain or dtype_of(value) not in BYTE_DTYPES:
        maker = value.owner
        if not (is_elementwise(maker) or isinstance(maker, PermuteDimsOp)) or not is_never_written(value):
            return None
        argument = _argument(maker)
        if argument is None:
            return None
        chain.append(maker)
        value = argument
    return (value, chain[::-1]) if is_never_written(value) else None


def _applied(chain: Sequence[ElementwiseOp | PermuteDimsOp], value: SSAValue) -> list[Operation]:
    """The same ops on another value."""
    new: list[Operation] = []
    for op in chain:
        new.append(with_operands(op, [operand if is_number(operand) else value for operand in op.operands]))
        value = new[-1].results[0]
    return new


def _never_decreases(root: SSAValue, values: np.ndarray) -> bool:
    """Whether values of bytes, in the order of their bits, are in the order of the bytes."""
    signed = np.arange(values.size, dtype=np.uint8).view(np.int8)
    in_order = values if dtype_of(root) == BYTE_DTYPES[1] else values[np.argsort(signed)]
    return bool(np.all(in_order[1:] >= in_order[:-1]))
