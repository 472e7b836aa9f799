"""Shape values and tuples: made of parts, taken apart, and got from tensors."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, i64
from xdsl.interfaces import HasFolderInterface
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import operand_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import Pure

from relax_dialect.external import may_be_view
from relax_dialect.inference import Inference, InfersResultTypes
from relax_dialect.ops.directives import Index, InferredTypes
from relax_dialect.ops.fields import dims, integer
from relax_dialect.ops.operator import Operator
from relax_dialect.struct_info.types import PrimType, ShapeType, StructInfo, TensorType, TupleType, as_struct_infos
from relax_dialect.traits import Checked
from tir_dialect.dims import DimLike, constant, product
from tir_dialect.ops.assembly_format import Dims, op_definition
from tir_dialect.types import DimAttr


@op_definition
class ShapeOp(InfersResultTypes):
    """A shape value of dimensions.

    ```mlir
    %0 = relax.shape [n, 4 * m]
    ```
    """

    name = "relax.shape"

    values = prop_def(ArrayAttr[DimAttr])
    result = result_def(ShapeType)

    traits = traits_def(Pure())

    assembly_format = "custom<Dims>($values) attr-dict custom<InferredTypes>(type($result))"
    custom_directives = (Dims, InferredTypes)

    def __init__(self, values: Sequence[DimLike]):
        super().__init__(properties={"values": dims(values)}, result_types=[ShapeType(values)])

    @classmethod
    def infer(cls, inference: Inference) -> tuple[ShapeType]:
        return (ShapeType(inference.dims("values")),)


@op_definition
class ShapeOfOp(Operator, HasFolderInterface):
    """The shape of a tensor.

    ```mlir
    %0 = relax.shape_of %x
    ```
    """

    name = "relax.shape_of"

    x = operand_def(TensorType)
    result = result_def(ShapeType)

    def __init__(self, x: SSAValue | Operation):
        super().__init__([x])

    @classmethod
    def infer(cls, inference: Inference) -> tuple[ShapeType]:
        return (ShapeType(inference.tensor(0).dims),)

    def fold(self) -> tuple[ArrayAttr[DimAttr]] | None:
        """A shape that the type knows: `shape_of %x : shape<[n, 4]>  ->  shape [n, 4]`."""
        known = self.result.type.known_dims
        return None if known is None else (dims(known),)


@op_definition
class ShapeGetOp(InfersResultTypes, HasFolderInterface):
    """One dimension of a shape value.

    ```mlir
    %0 = relax.shape_get %s[1]
    ```

    C1: the index is within the rank, if that is known.
    """

    name = "relax.shape_get"

    shape = operand_def(ShapeType)
    index = prop_def(IntegerAttr)
    result = result_def(PrimType)

    traits = traits_def(Checked())

    assembly_format = "$shape `[` custom<Index>($index) `]` attr-dict custom<InferredTypes>(type($result))"
    custom_directives = (Index, InferredTypes)

    def __init__(self, shape: SSAValue, index: int):
        properties = {"index": integer(index)}
        super().__init__(
            operands=[shape],
            properties=properties,
            result_types=self.infer_result_types([shape.type], properties),
        )

    @classmethod
    def infer(cls, inference: Inference) -> tuple[PrimType]:
        index = inference.integer("index")
        shape = inference.shape(0).dims
        if index < 0 or (shape is not None and index >= len(shape)):
            inference.fail(f"expected an index within {inference.shape(0)}, got {index}")  # C1
        return (PrimType(i64, None if shape is None else shape[index]),)

    def fold(self) -> tuple[DimAttr] | None:
        """A dimension that the type knows: `shape_get %s[0] : prim<i64, n>  ->  prim n`."""
        return fold_dimension(self.result.type)


@op_definition
class TensorToShapeOp(Operator, HasFolderInterface):
    """The elements of a rank-1 integer tensor as a shape value.

    ```mlir
    %0 = relax.tensor_to_shape %x
    ```

    C1: the tensor has rank 1 and dtype `i64`.
    """

    name = "relax.tensor_to_shape"

    x = operand_def(TensorType)
    result = result_def(ShapeType)

    def __init__(self, x: SSAValue | Operation):
        super().__init__([x])

    @classmethod
    def infer(cls, inference: Inference) -> tuple[ShapeType]:
        x = inference.tensor(0)
        if x.rank not in (None, 1) or x.dtype not in (None, i64):
            inference.fail(f"operand #0 expected a tensor of rank 1 and dtype i64, got {x}")  # C1
        length = x.dims[0] if x.dims else None
        count = None if length is None else length.constant_value
        return (ShapeType(None if count is None else (None,) * count),)

    def fold(self) -> tuple[SSAValue] | None:
        """There and back: `tensor_to_shape shape_to_tensor %s  ->  %s` if nothing is forgotten of its type, and nobody
        writes into the tensor.
        """
        maker = self.x.owner
        if not isinstance(maker, ShapeToTensorOp) or not may_be_view(self.result, self.x):
            return None
        return (maker.shape,) if maker.shape.type == self.result.type else None


@op_definition
class ShapeToTensorOp(Operator):
    """The dimensions of a shape value as a rank-1 tensor of `i64`.

    ```mlir
    %0 = relax.shape_to_tensor %s
    ```
    """

    name = "relax.shape_to_tensor"

    shape = operand_def(ShapeType)
    result = result_def(TensorType)

    def __init__(self, shape: SSAValue | Operation):
        super().__init__([shape])

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        rank = inference.shape(0).rank
        return (TensorType((None if rank is None else constant(rank),), i64),)


@op_definition
class SizeOp(Operator, HasFolderInterface):
    """The number of elements of a tensor.

    ```mlir
    %0 = relax.size %x
    ```
    """

    name = "relax.size"

    x = operand_def(TensorType)
    result = result_def(PrimType)

    def __init__(self, x: SSAValue | Operation):
        super().__init__([x])

    @classmethod
    def infer(cls, inference: Inference) -> tuple[PrimType]:
        known = inference.tensor(0).known_dims
        return (PrimType(i64, None if known is None else product(known)),)

    def fold(self) -> tuple[DimAttr] | None:
        """A number of elements that the type knows: `size %x : prim<i64, 4 * n>  ->  prim 4 * n`."""
        return fold_dimension(self.result.type)


@op_definition
class TupleOp(InfersResultTypes, HasFolderInterface):
    """A tuple of values.

    ```mlir
    %0 = relax.tuple(%x, %s)
    ```
    """

    name = "relax.tuple"

    fields = var_operand_def(StructInfo)
    result = result_def(TupleType)

    traits = traits_def(Pure())

    assembly_format = "`(` $fields `)` attr-dict custom<InferredTypes>(type($result))"
    custom_directives = (InferredTypes,)

    def __init__(self, *fields: SSAValue):
        super().__init__(operands=[fields], result_types=self.infer_result_types([value.type for value in fields]))

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TupleType]:
        return (TupleType(as_struct_infos(inference.operand_types)),)

    def fold(self) -> tuple[SSAValue] | None:
        """All fields of one tuple, in order: `tuple(tuple_get %t[0], tuple_get %t[1])  ->  %t`."""
        makers = [field.owner for field in self.fields]
        reads = [maker for maker in makers if isinstance(maker, TupleGetOp)]
        whole = reads[0].tuple if reads and len(reads) == len(makers) else None
        if whole is None or whole.type != self.result.type:
            return None
        in_order = all(read.tuple is whole and read.index.value.data == index for index, read in enumerate(reads))
        return (whole,) if in_order else None


@op_definition
class TupleGetOp(InfersResultTypes, HasFolderInterface):
    """A field of a tuple.

    ```mlir
    %0 = relax.tuple_get %t[1]
    ```

    C1: the index is within the tuple.
    """

    name = "relax.tuple_get"

    tuple = operand_def(TupleType)
    index = prop_def(IntegerAttr)
    result = result_def(StructInfo)

    traits = traits_def(Pure())

    assembly_format = "$tuple `[` custom<Index>($index) `]` attr-dict custom<InferredTypes>(type($result))"
    custom_directives = (Index, InferredTypes)

    def __init__(self, tuple: SSAValue, index: int):
        properties = {"index": integer(index)}
        super().__init__(
            operands=[tuple],
            properties=properties,
            result_types=self.infer_result_types([tuple.type], properties),
        )

    @classmethod
    def infer(cls, inference: Inference) -> Sequence[StructInfo]:
        index, info = inference.integer("index"), inference.operand(0)
        if not isinstance(info, TupleType) or not 0 <= index < len(info.fields):
            wanted = f"an index within the tuple, got {index} of {info}"
            inference.fail(f"expected {wanted if isinstance(info, TupleType) else f'a tuple, got {info}'}")  # C1
        return (info.fields[index],)

    def fold(self) -> tuple[SSAValue] | None:
        """The field of a tuple that is made here: `tuple_get tuple(%x, %y)[1]  ->  %y`."""
        maker = self.tuple.owner
        if not isinstance(maker, TupleOp):
            return None
        field = maker.fields[self.index.value.data]
        return (field,) if field.type == self.result.type else None


def fold_dimension(info: PrimType) -> tuple[DimAttr] | None:
    """The value of a prim if its type shows it, for folding."""
    return None if info.value is None else (DimAttr(info.value),)
