"""Tensors, scalars and opaque values that are known when the program is compiled, and numbers as attributes of a
dtype.
"""

from __future__ import annotations

from abc import ABC
from math import isfinite
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation, prop_def, result_def, traits_def
from xdsl.irdl.declarative_assembly_format import AttributeVariable, ParsingState, PrintingState
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import ConstantLike, Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from relax_dialect.inference import Inference, InfersResultTypes
from relax_dialect.ops.directives import FollowingType, InferredTypes
from relax_dialect.ops.fields import format_number, parse_number
from relax_dialect.ops.shapes import ShapeOp
from relax_dialect.struct_info.types import ObjectType, PrimType, ShapeType, TensorType
from relax_dialect.traits import Evaluated
from tir_dialect.dims import Dim, DimLike
from tir_dialect.dtypes import from_numpy, is_bool, is_dtype, is_unsigned, range_in_i64, rounded
from tir_dialect.ops.assembly_format import Directive, Text, TypeProperty, op_definition
from tir_dialect.types import DimAttr, parse_dim_expr
from tir_dialect.weights import Elements, WeightAttr, elements_of, sources_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

I64_RANGE = (-(2**63), 2**63 - 1)
"""What an integer of the run time may be: tvm-ffi has no others."""


def integer_range(dtype: Attribute) -> tuple[int, int]:
    """The least and the greatest scalar of an integer dtype; of `ui64` those that a signed integer of 64 bits holds."""
    if is_bool(dtype):
        return (0, 1)
    low, high = range_in_i64(dtype) or I64_RANGE
    return (low, I64_RANGE[1] if high is None else high)


def number_attr(number: float, dtype: Attribute) -> IntegerAttr | FloatAttr:
    """The number with a dtype, a float rounded to it; `ValueError` if the dtype has no such number."""
    if isinstance(dtype, AnyFloat):
        if not is_float_of(number, dtype):
            raise ValueError(f"the number {number} is too large for {dtype}")
        return FloatAttr(rounded(number, dtype), dtype)
    if not isa(dtype, IntegerType) or isinstance(number, float):
        raise ValueError(f"the number {number} is no {dtype}")
    if is_dtype(dtype) and (limits := outside(number, dtype)) is not None:
        raise ValueError(limits)
    return IntegerAttr(int(number), dtype)  # A subclass of int would be what a program returns.


def is_float_of(number: float, dtype: AnyFloat) -> bool:
    """Whether a number, rounded to a floating-point dtype, is finite if it was."""
    try:
        return isfinite(rounded(number, dtype)) or not isfinite(number)
    except OverflowError:
        return False


def outside(number: int, dtype: Attribute) -> str | None:
    """What is wrong with a scalar of an integer dtype, or `None`."""
    low, high = integer_range(dtype)
    return None if low <= number <= high else f"expected {dtype} in the range {low} to {high}, got {number}"


def _constant_meant(value: Attribute, given: str) -> str:
    """What to say of an attribute of another kind where a constant has its elements; `given` is its text."""
    written = f"expected dense<...> or the name of a tensor, got {given}"
    if isa(value, IntegerAttr | FloatAttr):
        return f"{written}; did you mean dense<{given.partition(':')[0].strip()}> : tensor<{value.type}>?"
    if isa(value, ArrayAttr[IntegerAttr | FloatAttr]) and value.data:
        dtype = "f32" if any(isinstance(each, FloatAttr) for each in value) else "i64"
        return f"{written}; did you mean dense<{given}> : tensor<{len(value)}x{dtype}>?"
    return written


class ConstantValue(Directive):
    """The elements of a tensor, or its name: `dense<1.0> : tensor<2xf32>`, `"conv1.weight"`."""

    value: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        name = parser.parse_optional_str_literal()
        if name is not None:
            self.value.set(state, WeightAttr(name))
            return
        position = parser.pos
        value = parser.parse_attribute()
        self.value.set(state, value)
        if not isinstance(value, DenseIntOrFPElementsAttr):
            given = parser.lexer.input.content[position : parser.pos].strip()
            parser.raise_error(_constant_meant(value, given), position, position + len(given))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        value = cast("Attribute", self.value.get(op))
        if isinstance(value, WeightAttr):
            printer.print_string_literal(value.data.name)
        else:
            printer.print_attribute(value)


@op_definition
class ConstantOp(InfersResultTypes):
    """A tensor that is known when the program is compiled: its elements, or the name under which it is kept outside.

    ```mlir
    %0 = relax.constant dense<[1.0, 2.0]> : tensor<2xf32>
    %1 = relax.constant "conv1.weight" : !relax.tensor<[64, 3, 7, 7], f32>
    ```

    Weights are kept by name, in a file or in memory: large tensors do not belong into text.

    C1: the elements have a dtype of the dtype table.
    C2: a tensor kept by name has known dtype and constant dimensions.
    """

    name = "relax.constant"

    value = prop_def(DenseIntOrFPElementsAttr | WeightAttr)
    result = result_def(TensorType)

    traits = traits_def(ConstantLike(), Evaluated())

    assembly_format = "custom<ConstantValue>($value) attr-dict custom<InferredTypes>(type($result))"
    custom_directives = (ConstantValue, InferredTypes)

    def __init__(self, value: DenseIntOrFPElementsAttr | WeightAttr | str, result_type: TensorType | None = None):
        """A tensor of which only the name is here needs a result type; of elements it is inferred."""
        value = WeightAttr(value) if isinstance(value, str) else value
        results = self.infer_result_types((), {"value": value}) if result_type is None else (result_type,)
        super().__init__(properties={"value": value}, result_types=results)

    @property
    def weight_name(self) -> str | None:
        """The name under which the tensor is kept, or `None` if its elements are in the text."""
        return self.value.data.name if isinstance(self.value, WeightAttr) else None

    @property
    def array(self) -> NDArray[Any] | None:
        """The elements, not to be changed; `None` if they are not in this process."""
        return elements_of(self.value)

    @property
    def sources(self) -> Elements | None:
        """As `array`, but does not wait for elements that are being computed."""
        return sources_of(self.value)

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        value = inference.require("value", Attribute)
        if isinstance(value, WeightAttr) and (elements := value.data.elements) is not None:
            return (TensorType(elements.shape, from_numpy(elements.dtype)),)
        if not isa(value, DenseIntOrFPElementsAttr):
            return (TensorType(None, None),)
        if not is_dtype(value.get_element_type()):
            inference.fail(f"expected elements of a supported dtype, got {value.get_element_type()}")  # C1
        return (TensorType(value.get_shape(), value.get_element_type()),)

    def types_follow(self) -> bool:
        return self.weight_name is None and super().types_follow()

    def verify_(self) -> None:
        if self.weight_name is None or self.sources is not None:
            super().verify_()
            return
        dims = self.result.type.known_dims
        if dims is None or self.result.type.dtype is None or not all(dim.is_constant for dim in dims):
            raise VerifyException(
                f"'relax.constant' op kept by name expected known dtype and constant dimensions, got {self.result.type}"
            )  # C2


class Scalar(Directive):
    """A number: `4 * n` if it is a dimension, else after its dtype, `f32 0.5`."""

    value: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        value = _parse_scalar(parser)
        if isa(value, IntegerAttr) and value.type == i64:
            value = DimAttr(value.value.data)
        self.value.set(state, value)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        value = self.value.get(op)
        if isinstance(value, DimAttr):
            printer.print_string(str(value.data))
        elif isa(value, IntegerAttr | FloatAttr):
            printer.print_attribute(value.type)
            number = value.value.data
            literal = format_number(number) if isinstance(number, float) else str(number)
            printer.print_string(f" {str(bool(number)).lower() if value.type == i1 else literal}")


@op_definition
class PrimOp(InfersResultTypes):
    """A scalar: a dimension, a number or a truth value.

    ```mlir
    %0 = relax.prim 4 * n
    %1 = relax.prim f32 0.5
    %2 = relax.prim i1 true
    ```

    An `i64` is a dimension, which its type then shows; of any other dtype, the dtype comes first. `true` and `false`
    are of `i1` without saying so.

    C1: the dtype is in the dtype table.
    C2: an integer is in the range of its dtype, and of `i64`: numbers of the run time have 64 bits and a sign.
    """

    name = "relax.prim"

    value = prop_def(DimAttr | IntegerAttr | FloatAttr)
    result = result_def(PrimType)

    traits = traits_def(ConstantLike(), Pure())

    assembly_format = "custom<Scalar>($value) attr-dict custom<FollowingType>(type($result))"
    custom_directives = (Scalar, FollowingType)

    def __init__(self, value: DimLike | DimAttr | IntegerAttr | FloatAttr):
        """Any `i64` is kept as a dimension."""
        if isa(value, IntegerAttr) and value.type == i64:
            value = value.value.data
        scalar = DimAttr(value) if isinstance(value, Dim | int | str) else value
        properties = {"value": scalar}
        super().__init__(properties=properties, result_types=self.infer_result_types((), properties))

    @classmethod
    def infer(cls, inference: Inference) -> tuple[PrimType]:
        value = inference.require("value", Attribute)
        if isinstance(value, DimAttr):
            number = value.data.constant_value
            if number is not None and (wrong := outside(number, i64)) is not None:
                inference.fail(wrong)  # C2
            return (PrimType(i64, value.data),)
        if not isa(value, IntegerAttr | FloatAttr) or not is_dtype(value.type):
            inference.fail(f"expected a scalar of a supported dtype, got {value}")  # C1
        if is_unsigned(value.type) and (wrong := outside(int(value.value.data), value.type)) is not None:
            inference.fail(wrong)  # C2
        return (PrimType(value.type),)


def _parse_scalar(parser: Parser) -> DimAttr | IntegerAttr | FloatAttr:
    position = parser.pos
    dtype = parser.parse_optional_type()
    if dtype is None and (value := parser.parse_optional_boolean()) is not None:
        return number_attr(int(value), i1)
    if dtype is None:
        return DimAttr(parse_dim_expr(parser))
    if not isa(dtype, AnyFloat | IntegerType):
        parser.raise_error(f"expected an element type, got {dtype}", position, parser.pos)
    position = parser.pos
    number = parse_number(parser) if isinstance(dtype, AnyFloat) else parser.parse_integer()
    try:
        return number_attr(number, dtype)
    except ValueError as error:
        parser.raise_error(str(error), position, position + 1)


class OpaqueValue(InfersResultTypes, ABC):
    """A value that operators and packed functions take, and of which the type system knows nothing else."""

    @classmethod
    def infer(cls, inference: Inference) -> tuple[ObjectType]:
        return (ObjectType(),)


@op_definition
class StringOp(OpaqueValue):
    """A string.

    ```mlir
    %0 = relax.string "nearest"
    ```
    """

    name = "relax.string"

    value = prop_def(StringAttr)
    result = result_def(ObjectType)

    traits = traits_def(ConstantLike(), Pure())

    assembly_format = "custom<Text>($value) attr-dict custom<InferredTypes>(type($result))"
    custom_directives = (Text, InferredTypes)

    def __init__(self, value: str | StringAttr):
        super().__init__(
            properties={"value": StringAttr(value) if isinstance(value, str) else value}, result_types=[ObjectType()]
        )


@op_definition
class DTypeOp(OpaqueValue):
    """An element type as a value.

    ```mlir
    %0 = relax.dtype f32
    ```

    C1: the element type is in the dtype table.
    """

    name = "relax.dtype"

    value = prop_def(Attribute)
    result = result_def(ObjectType)

    traits = traits_def(ConstantLike(), Pure())

    assembly_format = "custom<TypeProperty>($value) attr-dict custom<InferredTypes>(type($result))"
    custom_directives = (TypeProperty, InferredTypes)

    def __init__(self, value: Attribute):
        super().__init__(properties={"value": value}, result_types=[ObjectType()])

    @classmethod
    def infer(cls, inference: Inference) -> tuple[ObjectType]:
        inference.dtype("value")  # C1
        return super().infer(inference)


@op_definition
class NullOp(OpaqueValue):
    """The null object: `None` of a packed function.

    ```mlir
    %0 = relax.null
    ```
    """

    name = "relax.null"

    result = result_def(ObjectType)

    traits = traits_def(ConstantLike(), Pure())

    assembly_format = "attr-dict custom<InferredTypes>(type($result))"
    custom_directives = (InferredTypes,)

    def __init__(self) -> None:
        super().__init__(result_types=[ObjectType()])


def materialize_constant(value: Attribute, info: Attribute) -> Operation | None:
    """An op whose result is `value` and has the type `info`; `None` if there is none.

    Dimensions become prims, lists of them shapes, and dense elements tensors.
    """
    op: Operation | None = None
    if isinstance(value, DimAttr) and isinstance(info, PrimType):
        op = PrimOp(value)
    elif isa(value, ArrayAttr[DimAttr]) and isinstance(info, ShapeType):
        op = ShapeOp([dim.data for dim in value])
    elif isa(value, DenseIntOrFPElementsAttr) and isinstance(info, TensorType):
        op = ConstantOp(value)
    return op if op is not None and op.results[0].type == info else None
