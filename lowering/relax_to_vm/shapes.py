"""Shape values and tuples."""

from __future__ import annotations

from functools import reduce

from xdsl.dialects.builtin import i64
from xdsl.pattern_rewriter import RewritePattern

from lowering.diagnostics import fail
from lowering.relax_to_vm.converter import Converter
from lowering.rewriting import op_rewrite_pattern
from relax_dialect.ops import shapes as relax
from relax_dialect.struct_info.types import TensorType as RelaxTensorType
from tir_dialect.dims import constant
from vm_dialect.ops import calls as vm_calls
from vm_dialect.ops import shapes as vm
from vm_dialect.ops import values as vm_tuples
from vm_dialect.ops.shapes import TensorDimOp
from vm_dialect.types import OBJECT, TensorType

SHAPE_TO_TENSOR = "vm.builtin.shape_to_tensor"
TENSOR_TO_SHAPE = "vm.builtin.shape_from_tensor"


class ConvertShape(RewritePattern):
    """A shape of known dimensions."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: relax.ShapeOp, converter: Converter) -> None:
        sizes = converter.sizes.values([dim.data for dim in op.values])
        converter.set(op.result, converter.result(vm.MakeShapeOp(sizes)))


class ConvertShapeOf(RewritePattern):
    """The shape of a tensor; made of its dimensions if they are known."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: relax.ShapeOfOp, converter: Converter) -> None:
        info = op.result.type
        if info.known_dims is not None:
            converter.set(op.result, converter.result(vm.MakeShapeOp(converter.sizes.values(info.known_dims))))
        else:
            converter.set(op.result, converter.result(vm.ShapeOfOp(converter.get(op.x))))


class ConvertShapeGet(RewritePattern):
    """One dimension."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: relax.ShapeGetOp, converter: Converter) -> None:
        value = op.result.type.value
        if value is not None:
            converter.set(op.result, converter.size(value))
        else:
            converter.set(op.result, converter.result(vm.ShapeDimOp(converter.get(op.shape), op.index.value.data)))


class ConvertSize(RewritePattern):
    """The number of elements."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: relax.SizeOp, converter: Converter) -> None:
        value = op.result.type.value
        if value is not None:
            converter.set(op.result, converter.size(value))
            return
        tensor = converter.get(op.x)
        if not isinstance(tensor.type, TensorType) or tensor.type.rank is None:
            fail(op, f"expected a tensor of known rank, got {op.x.type}", "refine it with 'relax.match_cast'")
        dims = [converter.result(TensorDimOp(tensor, axis)) for axis in range(tensor.type.rank)]
        one = converter.size(constant(1))
        converter.set(op.result, reduce(lambda a, b: converter.sizes.apply("mul", a, b), dims, one))


class ConvertShapeToTensor(RewritePattern):
    """The dimensions as a tensor."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: relax.ShapeToTensorOp, converter: Converter) -> None:
        tensor = vm_calls.CallPackedOp(SHAPE_TO_TENSOR, [converter.get(op.shape)], OBJECT)
        converter.set(op.result, converter.typed(converter.result(tensor), op.result.type, "shape_to_tensor"))


class ConvertTensorToShape(RewritePattern):
    """The elements as dimensions: loads, if their number is known."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: relax.TensorToShapeOp, converter: Converter) -> None:
        info = op.x.type
        length = info.known_dims[0].constant_value if isinstance(info, RelaxTensorType) and info.known_dims else None
        if length is not None and converter.get(op.x).type == TensorType(1, i64):
            elements = [converter.result(vm.ReadIntOp(converter.get(op.x), index)) for index in range(length)]
            converter.set(op.result, converter.result(vm.MakeShapeOp(elements)))
            return
        value = vm_calls.CallPackedOp(TENSOR_TO_SHAPE, [converter.get(op.x)], OBJECT)
        converter.set(op.result, converter.typed(converter.result(value), op.result.type, "tensor_to_shape"))


class ConvertTuple(RewritePattern):
    """A tuple."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: relax.TupleOp, converter: Converter) -> None:
        converter.set(op.result, converter.result(vm_tuples.MakeTupleOp(converter.get_all(op.fields))))


class ConvertTupleGet(RewritePattern):
    """A field; its kind is asked for again, because a tuple does not say what is in it."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: relax.TupleGetOp, converter: Converter) -> None:
        index = op.index.value.data
        register = converter.result(vm_tuples.TupleGetOp(converter.get(op.tuple), index))
        converter.set(op.result, converter.typed(register, op.result.type, f"field {index} of a tuple"))
