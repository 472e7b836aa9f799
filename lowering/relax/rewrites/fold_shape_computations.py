"""`fold-shape-computations`: integer tensors that hold shapes become shapes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint
from xdsl.utils.exceptions import VerifyException

from lowering.locations import inherit_location
from lowering.registry import Pass
from lowering.relax.infer_struct_info import ResultTypes, StructInfoInference
from lowering.rewriting import IndexedPattern, apply_patterns, op_rewrite_pattern
from relax_dialect.analysis.effects import is_never_written
from relax_dialect.analysis.shape_rules import RULES, Elements
from relax_dialect.analysis.shape_values import ShapeValues
from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.indexing import DynamicStridedSliceOp, StridedSliceOp
from relax_dialect.ops.shapes import ShapeOp, ShapeToTensorOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.ops.values import ConstantOp, PrimOp
from relax_dialect.struct_info.match import Mismatch
from relax_dialect.struct_info.types import PrimType, ShapeType, TensorType
from tir_dialect.dims import Dim
from tir_dialect.dtypes import numpy_dtype
from tir_dialect.fast_ops import erase_dead
from tir_dialect.weights import tensor_attr


class FoldShapeComputationsPass(Pass):
    """Folds integer tensors whose elements are known dimensions to shapes, prims and constants, and infers types anew.

    Before:

    ```mlir
    %s = relax.shape_of %x                      // %x : !relax.tensor<[n, 4, 8], f32>
    %t = relax.shape_to_tensor %s
    %i = relax.constant dense<0> : tensor<1xi64>
    %b = relax.take %t, %i axis = 0
    %r = relax.constant dense<32> : tensor<1xi64>
    %c = relax.concat %b, %r axis = 0
    %d = relax.tensor_to_shape %c
    %y = relax.reshape %x, %d : !relax.tensor<[_, _], f32>
    ```

    After:

    ```mlir
    %d = relax.shape [n, 32]
    %y = relax.reshape %x, %d
    ```

    A slice at positions that are known so becomes a `relax.strided_slice`. Types that the program declares, as of a
    `relax.match_cast`, stay, and so do tensors that somebody may write into or keep. A computation stays as far as its
    values are not known; nothing else changes. Idempotent.
    """

    name = "fold-shape-computations"
    requires = (
        "relax.arange",
        "relax.broadcast_to",
        "relax.concat",
        "relax.dynamic_strided_slice",
        "relax.expand_dims",
        "relax.flatten",
        "relax.flip",
        "relax.full",
        "relax.full_like",
        "relax.gather_elements",
        "relax.gather_nd",
        "relax.guard",
        "relax.match_cast",
        "relax.max",
        "relax.min",
        "relax.ones",
        "relax.ones_like",
        "relax.permute_dims",
        "relax.prod",
        "relax.repeat",
        "relax.reshape",
        "relax.shape_get",
        "relax.shape_of",
        "relax.shape_to_tensor",
        "relax.size",
        "relax.split",
        "relax.squeeze",
        "relax.stack",
        "relax.strided_slice",
        "relax.sum",
        "relax.take",
        "relax.tensor_to_shape",
        "relax.tile",
        "relax.tuple_get",
        "relax.zeros",
        "relax.zeros_like",
    )
    folds = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Folds every function, in program order: what is found refines the types of what comes later."""
        for func in op.ops:
            if isinstance(func, FuncOp):
                known = _Known()
                if apply_patterns(func, [InferTypesAgain(known), SliceAtKnownIndices(known), FoldKnownValues(known)]):
                    StructInfoInference().function(func)


class _Known:
    """What the patterns have found out about a function."""

    def __init__(self) -> None:
        self.values = ShapeValues()
        self.types = ResultTypes()
        self.stale: set[Operation] = set()
        """Ops with operands whose types have changed."""

    def changed_types(self, values: Iterable[SSAValue], rewriter: PatternRewriter) -> None:
        """Has the ops that use the values visited again."""
        for value in values:
            self.values.forget(value)
            for use in value.uses:
                self.stale.add(use.operation)
                rewriter.notify_op_modified(use.operation)

    def fold(self, result: OpResult) -> list[Operation] | None:
        """Ops of which the last makes the value, if it is known."""
        elements = self.values.elements(result)
        if elements is None or not _can_be_made(result, elements):
            return None
        dims: list[Dim] = elements.reshape(-1).tolist()
        if isinstance(result.type, ShapeType):
            return [ShapeOp(dims)]
        if isinstance(result.type, PrimType):
            return [PrimOp(dims[0])]
        numbers = _numbers(dims)
        if numbers is None:
            shape = ShapeOp(dims)
            return [shape, ShapeToTensorOp(shape)]
        dtype = result.type.dtype if isinstance(result.type, TensorType) else None
        return [ConstantOp(tensor_attr(np.array(numbers, numpy_dtype(dtype or i64)).reshape(elements.shape)))]

    def is_folded(self, op: Operation) -> bool:
        """Whether all results of an op are known, so that it goes with its uses."""
        folds = type(op) in RULES and not isinstance(op, MatchCastOp)
        return folds and all(_can_be_made(result, self.values.elements(result)) for result in op.results)


class InferTypesAgain(RewritePattern):
    """An op has the result types that follow from operands whose types have changed."""

    def __init__(self, known: _Known):
        self._known = known

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        """What can never be right is reported by the verifier, which comes afterwards."""
        if op not in self._known.stale:
            return
        self._known.stale.remove(op)
        before = op.result_types
        try:
            self._known.types.infer(op)
        except (VerifyException, Mismatch, ValueError):
            return
        pairs = zip(op.results, before, strict=True)
        self._known.changed_types([result for result, was in pairs if result.type != was], rewriter)


class SliceAtKnownIndices(RewritePattern):
    """Indices that are known are attributes: `dynamic_strided_slice(x, [n], [m], [1])  ->  strided_slice(x)`."""

    def __init__(self, known: _Known):
        self._known = known

    @op_rewrite_pattern
    def match_and_rewrite(self, op: DynamicStridedSliceOp, rewriter: PatternRewriter) -> None:
        begin, end, strides = (self._known.values.known_dims(indices) for indices in (op.begin, op.end, op.strides))
        steps = _numbers(strides or ())
        if begin is None or end is None or strides is None or steps is None or 0 in steps:
            return
        new = StridedSliceOp(op.x, range(len(begin)), begin, end, steps)
        rewriter.replace(op, new)
        self._known.changed_types([new.result], rewriter)


class FoldKnownValues(IndexedPattern):
    """A known value is a shape, prim or constant where an op needs it that is not known itself."""

    def __init__(self, known: _Known):
        self._known = known

    @override
    def may_match(self, op_class: type[Operation]) -> bool:
        return op_class in RULES and not issubclass(op_class, ConstantOp | PrimOp | ShapeOp | MatchCastOp)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        """Uses by ops that are known themselves go with these ops."""
        for result in op.results:
            users = {use.operation for use in result.uses if not self._known.is_folded(use.operation)}
            new = self._known.fold(result) if users else None
            if new is None or _says_the_same(op, new):
                continue
            value = new[-1].results[0]
            value.name_hint = result.name_hint
            inherit_location(op, new)
            rewriter.insert(new, InsertPoint.after(op))
            rewriter.replace_uses_with_if(result, value, lambda use, users=users: use.operation in users)
            self._known.stale |= users
        if rewriter.has_done_action:
            erase_dead([op], erase=rewriter.erase)


def _can_be_made(result: SSAValue, elements: Elements | None) -> bool:
    """Whether there are ops for known values: any shape, prims and tensors of constants, symbols in rank 1 of `i64`."""
    if elements is None or any(dim is None for dim in elements.reshape(-1).tolist()):
        return False
    info = result.type
    if isinstance(info, TensorType):
        numbers = _numbers(elements.reshape(-1).tolist())
        if numbers is None:
            return info.rank == 1 and info.dtype == i64
        return info.dtype is not None and is_never_written(result)  # the memory of a constant is shared
    return isinstance(info, ShapeType) or (isinstance(info, PrimType) and info.dtype == i64)


def _numbers(dims: tuple[Dim, ...] | list[Dim]) -> list[int] | None:
    """The dimensions as numbers, if all are."""
    numbers = [number for dim in dims if (number := dim.constant_value) is not None]
    return numbers if len(numbers) == len(dims) else None


def _says_the_same(op: Operation, new: list[Operation]) -> bool:
    """Whether an op is what it would be replaced by: the tensor of a known shape."""
    of_shape = isinstance(op, ShapeToTensorOp) and isinstance(op.shape.owner, ShapeOp)
    return of_shape and isinstance(new[-1], ShapeToTensorOp)
