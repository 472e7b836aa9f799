"""Arithmetic that xDSL's `arith` lacks: remainders of floats, floating-point ops with relaxed semantics, which take
fewer instructions, and conversion of vectors.

They serve softmax and other row-wise reductions: a NaN in a row makes the whole row NaN in any case, and a common
factor of the exponentials and their sum cancels in the quotient.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType, UnionType
from typing import TypeAlias, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, Float32Type, Float64Type, IndexType, IntegerType, StringAttr, VectorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from tir_dialect.ops.assembly_format import SameType, TypeOf, Word, op_definition
from tir_dialect.ops.memory import lanes_of, number_type


class BinaryOp(IRDLOperation):
    """An op on two numbers, or on two vectors of numbers element by element: `%r = tir.name %x, %y : type`."""

    lhs = operand_def()
    rhs = operand_def()
    result = result_def()

    traits = traits_def(Pure())

    assembly_format = "$lhs `,` $rhs attr-dict `:` custom<TypeOf>(ref($rhs)) custom<SameType>(type($result), ref($lhs))"
    custom_directives = (TypeOf, SameType)

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation):
        super().__init__(operands=[lhs, rhs], result_types=[SSAValue.get(lhs).type])

    def verify_types(self, kinds: UnionType, named: str) -> None:
        """VerifyException if operands and result are not of one type, numbers of these kinds or vectors of them."""
        same = self.lhs.type == self.rhs.type == self.result.type
        if not same or not isinstance(number_type(self.result.type), kinds):
            raise VerifyException(
                f"'{self.name}' op expected {named} or vectors of one type, got {self.lhs.type} and {self.rhs.type}"
            )


@op_definition
class FmodOp(BinaryOp):
    """The remainder of the division rounded towards zero, exact, with the sign of the dividend: C's `fmod`.

    ```mlir
    %r = tir.fmod %x, %y : f32
    ```

    It is NaN if the dividend is infinite or the divisor is zero, and the dividend if only the divisor is infinite.

    C1: operands and result are `f32` or `f64`, or vectors of these with one fixed dimension, of one type.
    """

    name = "tir.fmod"

    def verify_(self) -> None:
        self.verify_types(Float32Type | Float64Type, "f32 or f64")  # C1


SCALE = 2.0**64
"""The factor of `tir.scaled_exp`."""


@op_definition
class GreaterOp(BinaryOp):
    """The first operand if it is greater than the second one, else the second: x86's `maxps`.

    ```mlir
    %top = tir.greater %x, %old : f32
    ```

    If either operand is NaN, or both are zeros of any sign, the result is the second operand.

    C1: operands and result are floats, or vectors of floats with one fixed dimension, of one type.
    """

    name = "tir.greater"

    def verify_(self) -> None:
        self.verify_types(AnyFloat, "floats")  # C1


@op_definition
class ScaledExpOp(IRDLOperation):
    """`e**x * 2**64` for `x <= 0`: a normal number, so that no lane needs the special case for subnormal results.

    ```mlir
    %y = tir.scaled_exp %x : f32
    ```

    An `x` below -104, for which `e**x` is 0 in `f32`, counts as -104. For positive `x` the result is undefined.

    C1: operand and result are `f32`, or vectors of it with one fixed dimension, of one type.
    """

    name = "tir.scaled_exp"

    operand = operand_def()
    result = result_def()

    traits = traits_def(Pure())

    assembly_format = (
        "$operand attr-dict `:` custom<TypeOf>(ref($operand)) custom<SameType>(type($result), ref($operand))"
    )
    custom_directives = (TypeOf, SameType)

    def __init__(self, operand: SSAValue | Operation):
        super().__init__(operands=[operand], result_types=[SSAValue.get(operand).type])

    def verify_(self) -> None:
        if self.operand.type != self.result.type or not isinstance(number_type(self.result.type), Float32Type):
            raise VerifyException(f"'tir.scaled_exp' op expected f32 or a vector of it, got {self.operand.type}")  # C1


CONVERSIONS: Mapping[str, type[Operation]] = MappingProxyType(
    {
        "extf": arith.ExtFOp,
        "truncf": arith.TruncFOp,
        "sitofp": arith.SIToFPOp,
        "uitofp": arith.UIToFPOp,
        "fptosi": arith.FPToSIOp,
        "fptoui": arith.FPToUIOp,
        "extsi": arith.ExtSIOp,
        "extui": arith.ExtUIOp,
        "trunci": arith.TruncIOp,
        "index_cast": arith.IndexCastOp,
        "bitcast": arith.BitcastOp,
    }
)
"""What `tir.convert` does with each lane: the op of `arith` of that name."""

KIND_OF: Mapping[type[Operation], str] = MappingProxyType({op: name for name, op in CONVERSIONS.items()})
"""The kind of `tir.convert` that stands for an op on scalars."""

_BITS = 64
"""The width of `index`."""


@op_definition
class ConvertOp(IRDLOperation):
    """Converts each lane of a vector, as the `arith` op of that name converts a scalar.

    ```mlir
    %f = tir.convert sitofp %v : vector<8xi32> to vector<8xf32>
    ```

    C1: the kind is one of `extf`, `truncf`, `sitofp`, `uitofp`, `fptosi`, `fptoui`, `extsi`, `extui`, `trunci`,
    `index_cast` and `bitcast`.
    C2: operand and result are vectors with one fixed dimension and as many lanes.
    C3: the kind converts such elements.
    """

    name = "tir.convert"

    kind = prop_def(StringAttr)
    operand = operand_def(VectorType)
    result = result_def(VectorType)

    traits = traits_def(Pure())

    assembly_format = "custom<Word>($kind) $operand attr-dict `:` custom<TypeOf>(ref($operand)) `to` type($result)"
    custom_directives = (Word, TypeOf)

    def __init__(self, kind: str, operand: SSAValue | Operation, result_type: Attribute):
        super().__init__(operands=[operand], properties={"kind": StringAttr(kind)}, result_types=[result_type])

    @property
    def scalar_op(self) -> type[Operation]:
        """The op that converts one lane."""
        return CONVERSIONS[self.kind.data]

    def verify_(self) -> None:
        kind, source, target = self.kind.data, self.operand.type, self.result.type
        if kind not in CONVERSIONS:
            raise VerifyException(f"'tir.convert' op expected one of {', '.join(CONVERSIONS)}, got {kind}")  # C1
        lanes = lanes_of(source)
        if lanes is None or lanes != lanes_of(target):
            raise VerifyException(
                f"'tir.convert' op expected vectors with one dimension of one length, got {source} and {target}"
            )  # C2
        if not _converts(kind, _element(source), _element(target)):
            raise VerifyException(f"'tir.convert' op {kind} does not convert {source} to {target}")  # C3


_Number: TypeAlias = AnyFloat | IntegerType | IndexType


def _element(type: Attribute) -> _Number | None:
    """The type of the lanes of a vector of numbers."""
    element = type.element_type if isa(type, VectorType) else type
    return cast("_Number", element) if isinstance(element, AnyFloat | IntegerType | IndexType) else None


def _converts(kind: str, source: _Number | None, target: _Number | None) -> bool:
    """Whether elements are of the types that a conversion takes and gives."""
    if source is None or target is None:
        return False
    from_float, to_float = isinstance(source, AnyFloat), isinstance(target, AnyFloat)
    indices = isinstance(source, IndexType) + isinstance(target, IndexType)
    if kind == "index_cast":
        return indices == 1 and not from_float and not to_float
    if kind == "bitcast":
        return _width(source) == _width(target)
    if indices:
        return False
    if kind in ("sitofp", "uitofp", "fptosi", "fptoui"):
        return from_float != to_float and to_float == kind.endswith("fp")
    narrow, wide = (source, target) if kind.startswith("ext") else (target, source)
    return from_float == to_float == kind.endswith("f") and _width(narrow) < _width(wide)


def _width(type: _Number) -> int:
    return _BITS if isinstance(type, IndexType) else type.bitwidth
