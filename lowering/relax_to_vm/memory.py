"""Explicit memory, and operators that give a tensor's memory another shape."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, SSAValue
from xdsl.pattern_rewriter import RewritePattern

from lowering.diagnostics import fail
from lowering.relax_to_vm.binding import check, guards_ahead, guards_of_sizes
from lowering.relax_to_vm.converter import Converter
from lowering.rewriting import op_rewrite_pattern
from relax_dialect.analysis.aliases import leaves
from relax_dialect.ops.manipulation import ExpandDimsOp, FlattenOp, ReshapeOp, SqueezeOp
from relax_dialect.ops.memory import AllocStorageOp, AllocTensorOp, CallKernelOp, CheckApartOp, KillOp, StorageTensorOp
from relax_dialect.struct_info.types import ObjectType, TensorType
from tir_dialect.dims import Dim
from vm_dialect.ops import calls as vm_calls
from vm_dialect.ops import checks as vm_checks
from vm_dialect.ops import memory as vm_memory
from vm_dialect.ops.memory import ViewOp
from vm_dialect.ops.shapes import ShapeDimOp
from vm_dialect.ops.values import DtypeOp
from vm_dialect.types import OBJECT, ShapeType
from vm_dialect.types import ShapeType as VMShapeType

NEW_TENSOR_OF_SHAPE = "vm.builtin.new_tensor_of_shape"


def known_dims(op: AllocTensorOp | StorageTensorOp, tensor: TensorType) -> tuple[Dim, ...]:
    """The dimensions of a tensor that is made; an error at the op if one is not known."""
    if tensor.known_dims is None:
        fail(op, f"expected a tensor type with known shape, got {tensor}")
    return tensor.known_dims


def known_dtype(op: AllocTensorOp | StorageTensorOp, tensor: TensorType) -> Attribute:
    """The element type of a tensor that is made; an error at the op if it is not known."""
    if tensor.dtype is None:
        fail(op, f"expected a tensor type with known dtype, got {tensor}")
    return tensor.dtype


class ConvertAllocTensor(RewritePattern):
    """A tensor with memory of its own."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: AllocTensorOp, converter: Converter) -> None:
        result = op.result.type
        dtype = known_dtype(op, result)
        if op.shape is None:
            dims = _checked_sizes(converter, op, result)
            converter.set(op.result, converter.result(vm_memory.NewTensorOp(dims, dtype)))
            return
        shape = converter.get(op.shape)
        if isinstance(shape.type, VMShapeType) and shape.type.rank is not None:
            dims = [converter.result(ShapeDimOp(shape, axis)) for axis in range(shape.type.rank)]
            made, known = vm_memory.NewTensorOp(dims, dtype), TensorType((None,) * len(dims), dtype)
        else:
            element = converter.result(DtypeOp(dtype))
            made, known = vm_calls.CallPackedOp(NEW_TENSOR_OF_SHAPE, [element, shape], OBJECT), ObjectType()
        converter.set(op.result, converter.typed(converter.result(made), result, "alloc_tensor", known))


class ConvertAllocStorage(RewritePattern):
    """An arena, after the checks of what its size is made of; an error at an op that would pass it on."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: AllocStorageOp, converter: Converter) -> None:
        for use in op.result.uses:
            if not isinstance(use.operation, StorageTensorOp | KillOp):
                message = f"operand #{use.index} is a storage, which cannot leave its call"
                fail(use.operation, message, f"put a tensor into it with '{StorageTensorOp.name}', and pass that on")
        for each in guards_ahead(op, converter.sizes):
            check(converter, each)
        converter.set(op.result, converter.result(vm_memory.AllocStorageOp(converter.sizes.capacity(op.size.data))))


class ConvertStorageTensor(RewritePattern):
    """A tensor in an arena, or with memory of its own if somebody may keep it: the arena ends with the call."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: StorageTensorOp, converter: Converter) -> None:
        result = op.result.type
        dims, dtype = _checked_sizes(converter, op, result), known_dtype(op, result)
        if leaves(op.result):
            converter.set(op.result, converter.result(vm_memory.NewTensorOp(dims, dtype)))
            return
        offset = converter.size(op.offset.data)
        converter.set(
            op.result, converter.result(vm_memory.AllocTensorOp(converter.get(op.storage), offset, dims, dtype))
        )


class ConvertCallKernel(RewritePattern):
    """A call of a PrimFunc."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: CallKernelOp, converter: Converter) -> None:
        sizes = converter.sizes.values([size.data for size in op.sizes])
        converter.emit(vm_calls.CallKernelOp(op.callee, sizes, converter.get_all(op.arguments)))


class ConvertCheckApart(RewritePattern):
    """A check of the machine."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: CheckApartOp, converter: Converter) -> None:
        converter.emit(vm_checks.CheckApartOp(converter.get(op.first), converter.get(op.second), op.message))


class ConvertKill(RewritePattern):
    """The end of a value."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: KillOp, converter: Converter) -> None:
        converter.emit(vm_memory.KillOp(converter.get(op.value)))


def _checked_sizes(converter: Converter, op: AllocTensorOp | StorageTensorOp, tensor: TensorType) -> Sequence[SSAValue]:
    """The sizes of a tensor, after the checks of them: what a negative size is made of is told before it is used."""
    dims = known_dims(op, tensor)
    for each in guards_of_sizes(op.result):
        check(converter, each)
    return converter.sizes.values(dims)


class ConvertView(RewritePattern):
    """All elements in one dimension, or with more or fewer dimensions of 1."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: FlattenOp | ExpandDimsOp | SqueezeOp, converter: Converter) -> None:
        _view(converter, op)


class ConvertReshape(RewritePattern):
    """The dimensions of the type if it has them, else those of the shape."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: ReshapeOp, converter: Converter) -> None:
        if op.result.type.known_dims is not None:
            _view(converter, op)
            return
        shape = converter.get(op.shape)
        if not isinstance(shape.type, ShapeType) or shape.type.rank is None:
            fail(op, f"expected a shape of known rank, got {op.shape.type}", "refine it with 'relax.match_cast'")
        dims = [converter.result(ShapeDimOp(shape, axis)) for axis in range(shape.type.rank)]
        converter.set(op.result, converter.result(ViewOp(converter.get(op.x), dims)))


def _view(converter: Converter, op: FlattenOp | ExpandDimsOp | SqueezeOp | ReshapeOp) -> None:
    dims = op.result.type.known_dims
    if dims is None:
        fail(op, f"expected known dimensions, got {op.result.type}", "run 'bind-unknown-dims' first")
    converter.set(op.result, converter.result(ViewOp(converter.get(op.x), converter.sizes.values(dims))))
