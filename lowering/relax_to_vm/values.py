"""Constants, scalars, opaque values, shape values and tuples; explicit memory; and ops executed for their effect.

And operators that give a tensor's memory another shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.dialects.builtin import TensorType as BuiltinTensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.pattern_rewriter import RewritePattern
from xdsl.utils.hints import isa

from lowering.diagnostics import fail
from lowering.relax_to_vm.control_flow import condition
from lowering.relax_to_vm.converter import Converter, check, guards_ahead, guards_of_sizes
from lowering.rewriting import op_rewrite_pattern
from relax_dialect.analysis.aliases import leaves
from relax_dialect.ops import shapes as relax_shapes
from relax_dialect.ops import values as relax_values
from relax_dialect.ops.effects import AssertOp, PrintOp
from relax_dialect.ops.manipulation import ExpandDimsOp, FlattenOp, ReshapeOp, SqueezeOp
from relax_dialect.ops.memory import AllocStorageOp, AllocTensorOp, CallKernelOp, CheckApartOp, KillOp, StorageTensorOp
from relax_dialect.struct_info.types import ObjectType
from relax_dialect.struct_info.types import TensorType as RelaxTensorType
from tir_dialect.dims import Dim, constant
from tir_dialect.dtypes import is_bool, is_float
from tir_dialect.types import DimAttr
from vm_dialect.ops import calls as vm_calls
from vm_dialect.ops import checks as vm_checks
from vm_dialect.ops import memory as vm_memory
from vm_dialect.ops import structure
from vm_dialect.ops import values as vm_values
from vm_dialect.ops.memory import ShapeDimOp, TensorDimOp, ViewOp
from vm_dialect.ops.values import DtypeOp, StrOp
from vm_dialect.types import I64, OBJECT, ShapeType, TensorType
from vm_dialect.types import ShapeType as VMShapeType


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
        converter.set(op.result, converter.result(vm_memory.MakeShapeOp(sizes)))


class ConvertShapeOf(RewritePattern):
    """The shape of a tensor; made of its dimensions if they are known."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: relax_shapes.ShapeOfOp, converter: Converter) -> None:
        info = op.result.type
        if info.known_dims is not None:
            converter.set(op.result, converter.result(vm_memory.MakeShapeOp(converter.sizes.values(info.known_dims))))
        else:
            converter.set(op.result, converter.result(vm_memory.ShapeOfOp(converter.get(op.x))))


class ConvertShapeGet(RewritePattern):
    """One dimension."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: relax_shapes.ShapeGetOp, converter: Converter) -> None:
        value = op.result.type.value
        if value is not None:
            converter.set(op.result, converter.size(value))
        else:
            converter.set(
                op.result, converter.result(vm_memory.ShapeDimOp(converter.get(op.shape), op.index.value.data))
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
            elements = [converter.result(vm_memory.ReadIntOp(converter.get(op.x), index)) for index in range(length)]
            converter.set(op.result, converter.result(vm_memory.MakeShapeOp(elements)))
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


NEW_TENSOR_OF_SHAPE = "vm.builtin.new_tensor_of_shape"


def known_dims(op: AllocTensorOp | StorageTensorOp, tensor: RelaxTensorType) -> tuple[Dim, ...]:
    """The dimensions of a tensor that is made; an error at the op if one is not known."""
    if tensor.known_dims is None:
        fail(op, f"expected a tensor type with known shape, got {tensor}")
    return tensor.known_dims


def known_dtype(op: AllocTensorOp | StorageTensorOp, tensor: RelaxTensorType) -> Attribute:
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
            made, known = vm_memory.NewTensorOp(dims, dtype), RelaxTensorType((None,) * len(dims), dtype)
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


def _checked_sizes(
    converter: Converter, op: AllocTensorOp | StorageTensorOp, tensor: RelaxTensorType
) -> Sequence[SSAValue]:
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
