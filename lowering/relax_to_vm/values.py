"""Constants, scalars, opaque values, shape values and tuples; and ops that are executed for their effect."""

from __future__ import annotations

from functools import reduce

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.dialects.builtin import TensorType as BuiltinTensorType
from xdsl.pattern_rewriter import RewritePattern
from xdsl.utils.hints import isa

from lowering.diagnostics import fail
from lowering.relax_to_vm.control_flow import condition
from lowering.relax_to_vm.converter import Converter
from lowering.rewriting import op_rewrite_pattern
from relax_dialect.ops import shapes as relax_shapes
from relax_dialect.ops import values as relax_values
from relax_dialect.ops.effects import AssertOp, PrintOp
from relax_dialect.struct_info.types import TensorType as RelaxTensorType
from tir_dialect.attributes import DimAttr
from tir_dialect.dims import constant
from tir_dialect.dtypes import is_bool, is_float
from vm_dialect.ops import calls as vm_calls
from vm_dialect.ops import checks as vm_checks
from vm_dialect.ops import shapes as vm_shapes
from vm_dialect.ops import structure
from vm_dialect.ops import values as vm_values
from vm_dialect.ops.shapes import TensorDimOp
from vm_dialect.ops.values import StrOp
from vm_dialect.types import I64, OBJECT, TensorType


class ConvertConstant(RewritePattern):
    """A tensor of the executable; equal ones are kept once."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: relax_values.ConstantOp, converter: Converter) -> None:
        dims, dtype = op.result.type.known_dims, op.result.type.dtype
        if dims is None or dtype is None:
            fail(op, f"expected a tensor type with known shape and dtype, got {op.result.type}")
        tensor_type = BuiltinTensorType(dtype, [dim.constant_term for dim in dims])
        symbol = converter.constants.get(tensor_type, op.value)
        converter.set(op.result, converter.result(vm_values.ConstantTensorOp(symbol.sym_name.data, symbol.vm_type)))


class ConvertPrim(RewritePattern):
    """A number, or a dimension that is computed from what its symbols are."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: relax_values.PrimOp, converter: Converter) -> None:
        if isinstance(op.value, DimAttr):
            converter.set(op.result, converter.size(op.value.data))
            return
        number: bool | int | float = op.value.value.data
        if isa(op.value, IntegerAttr) and is_bool(op.value.type):
            number = bool(number)
        converter.set(
            op.result, converter.result(vm_values.ConstOp(float(number) if is_float(op.value.type) else number))
        )


class ConvertString(RewritePattern):
    """A string."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: relax_values.StringOp, converter: Converter) -> None:
        converter.set(op.result, converter.result(vm_values.StrOp(op.value)))


class ConvertDType(RewritePattern):
    """An element type."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: relax_values.DTypeOp, converter: Converter) -> None:
        converter.set(op.result, converter.result(vm_values.DtypeOp(op.value)))


class ConvertNull(RewritePattern):
    """The null object."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: relax_values.NullOp, converter: Converter) -> None:
        converter.set(op.result, converter.result(vm_values.NullOp()))


SHAPE_TO_TENSOR = "vm.builtin.shape_to_tensor"
TENSOR_TO_SHAPE = "vm.builtin.shape_from_tensor"


class ConvertShape(RewritePattern):
    """A shape of known dimensions."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: relax_shapes.ShapeOp, converter: Converter) -> None:
        sizes = converter.sizes.values([dim.data for dim in op.values])
        converter.set(op.result, converter.result(vm_shapes.MakeShapeOp(sizes)))


class ConvertShapeOf(RewritePattern):
    """The shape of a tensor; made of its dimensions if they are known."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: relax_shapes.ShapeOfOp, converter: Converter) -> None:
        info = op.result.type
        if info.known_dims is not None:
            converter.set(op.result, converter.result(vm_shapes.MakeShapeOp(converter.sizes.values(info.known_dims))))
        else:
            converter.set(op.result, converter.result(vm_shapes.ShapeOfOp(converter.get(op.x))))


class ConvertShapeGet(RewritePattern):
    """One dimension."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: relax_shapes.ShapeGetOp, converter: Converter) -> None:
        value = op.result.type.value
        if value is not None:
            converter.set(op.result, converter.size(value))
        else:
            converter.set(
                op.result, converter.result(vm_shapes.ShapeDimOp(converter.get(op.shape), op.index.value.data))
            )


class ConvertSize(RewritePattern):
    """The number of elements."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: relax_shapes.SizeOp, converter: Converter) -> None:
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
    def match_and_rewrite(self, op: relax_shapes.ShapeToTensorOp, converter: Converter) -> None:
        tensor = vm_calls.CallPackedOp(SHAPE_TO_TENSOR, [converter.get(op.shape)], OBJECT)
        converter.set(op.result, converter.typed(converter.result(tensor), op.result.type, "shape_to_tensor"))


class ConvertTensorToShape(RewritePattern):
    """The elements as dimensions: loads, if their number is known."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: relax_shapes.TensorToShapeOp, converter: Converter) -> None:
        info = op.x.type
        length = info.known_dims[0].constant_value if isinstance(info, RelaxTensorType) and info.known_dims else None
        if length is not None and converter.get(op.x).type == TensorType(1, i64):
            elements = [converter.result(vm_shapes.ReadIntOp(converter.get(op.x), index)) for index in range(length)]
            converter.set(op.result, converter.result(vm_shapes.MakeShapeOp(elements)))
            return
        value = vm_calls.CallPackedOp(TENSOR_TO_SHAPE, [converter.get(op.x)], OBJECT)
        converter.set(op.result, converter.typed(converter.result(value), op.result.type, "tensor_to_shape"))


class ConvertTuple(RewritePattern):
    """A tuple."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: relax_shapes.TupleOp, converter: Converter) -> None:
        converter.set(op.result, converter.result(vm_values.MakeTupleOp(converter.get_all(op.fields))))


class ConvertTupleGet(RewritePattern):
    """A field; its kind is asked for again, because a tuple does not say what is in it."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: relax_shapes.TupleGetOp, converter: Converter) -> None:
        index = op.index.value.data
        register = converter.result(vm_values.TupleGetOp(converter.get(op.tuple), index))
        converter.set(op.result, converter.typed(register, op.result.type, f"field {index} of a tuple"))


PRINT = "vm.builtin.print"
FAIL = "vm.builtin.fail"


class ConvertPrint(RewritePattern):
    """A call of the run-time library."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: PrintOp, converter: Converter) -> None:
        text = converter.result(StrOp(op.format))
        converter.emit(vm_calls.CallPackedOp(PRINT, [text, *converter.get_all(op.values)]))


class ConvertAssert(RewritePattern):
    """A check of the machine if its message shows integers only; else a branch to a call that raises the error."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: AssertOp, converter: Converter) -> None:
        holds, values = condition(converter, op.condition), converter.get_all(op.values)
        message = f"{converter.function}: {op.format.data}"
        # In messages of the machine `{name}` is a mark too.
        if all(value.type == I64 for value in values) and "{name}" not in message:
            converter.emit(vm_checks.AssertOp(holds, message, values))
            return
        failed, done = converter.new_block(), converter.new_block()
        converter.emit(structure.IfOp(holds, done, [], failed, []))
        converter.continue_in(failed)
        text = converter.result(StrOp(message))
        converter.emit(vm_calls.CallPackedOp(FAIL, [text, *values]))
        converter.emit(structure.GotoOp(done, []))
        converter.continue_in(done)
