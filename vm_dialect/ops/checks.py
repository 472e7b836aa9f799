"""Run-time checks: `vm.check_tensor` and its kin, and `vm.assert`.

A check raises `TypeError` on a wrong kind, rank or dtype and `ValueError` on a wrong value; `vm_dialect.messages` has
the wording. `subject` names what is checked, as in `main: argument #1 (w)`.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from typing_extensions import override
from xdsl.dialects.builtin import IntegerAttr, NoneAttr, StringAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

from vm_dialect.ops.base import Argument, BuiltinOp, DTypeRef, MayRaise, Rank, RankAndDtype, Value, op_definition
from vm_dialect.types import F64, I1, I64, OBJECT, ShapeType, TensorType


class CheckOp(BuiltinOp, ABC):
    """A check of one value; the result is the same value, with the type that the check has established."""

    value = operand_def()
    subject = opt_prop_def(StringAttr)

    traits = traits_def(MayRaise())

    custom_directives = (Value, Rank, RankAndDtype)

    def __init__(
        self,
        value: SSAValue | Operation,
        subject: str | StringAttr | None,
        result_type: Attribute,
        properties: dict[str, Attribute | None] | None = None,
    ):
        super().__init__(
            operands=[value],
            result_types=[result_type],
            properties={"subject": StringAttr(subject) if isinstance(subject, str) else subject, **(properties or {})},
        )

    @property
    def subject_text(self) -> str:
        """What an error names; `value` if nothing is given."""
        return "value" if self.subject is None else self.subject.data

    def bytecode_args(self) -> Sequence[Argument]:
        """The value and the subject."""
        return (self.value, self.subject_text)


@op_definition
class CheckTensorOp(CheckOp):
    """The value is a contiguous tensor on the CPU, aligned to its element size, of this rank and dtype.

    ```mlir
    %t = vm.check_tensor %o rank 2 dtype f32 as "main: argument #1 (w)"
    ```
    """

    name = "vm.check_tensor"
    BUILTIN: ClassVar[str] = "check_tensor"

    result = result_def(TensorType)

    assembly_format = (
        "custom<Value>($value, type($value)) custom<RankAndDtype>(type($result)) (`as` $subject^)? attr-dict"
    )

    def __init__(self, value: SSAValue | Operation, result_type: TensorType, subject: str | StringAttr | None = None):
        super().__init__(value, subject, result_type)

    def bytecode_args(self) -> Sequence[Argument]:
        """The value, rank (-1: any), dtype (null: any) and the subject."""
        tensor = self.result.type
        rank = -1 if tensor.rank is None else tensor.rank
        dtype = None if isinstance(tensor.dtype, NoneAttr) else DTypeRef(str(tensor.dtype))
        return (self.value, rank, dtype, self.subject_text)


@op_definition
class CheckShapeOp(CheckOp):
    """The value is a shape of this rank: `vm.check_shape %o rank 2 as "main: argument #0 (s)"`."""

    name = "vm.check_shape"
    BUILTIN: ClassVar[str] = "check_shape"

    result = result_def(ShapeType)

    assembly_format = "custom<Value>($value, type($value)) custom<Rank>(type($result)) (`as` $subject^)? attr-dict"

    def __init__(self, value: SSAValue | Operation, rank: int | None = None, subject: str | StringAttr | None = None):
        super().__init__(value, subject, ShapeType(rank))

    def bytecode_args(self) -> Sequence[Argument]:
        """The value, rank (-1: any) and the subject."""
        rank = self.result.type.rank
        return (self.value, -1 if rank is None else rank, self.subject_text)


@op_definition
class CheckIntOp(CheckOp):
    """The value is an integer: `vm.check_int %o as "main: argument #0 (n)"`."""

    name = "vm.check_int"
    BUILTIN: ClassVar[str] = "check_int"

    result = result_def(I64)

    assembly_format = "custom<Value>($value, type($value)) (`as` $subject^)? attr-dict"

    def __init__(self, value: SSAValue | Operation, subject: str | StringAttr | None = None):
        super().__init__(value, subject, I64)


@op_definition
class CheckFloatOp(CheckOp):
    """The value is a float, or an integer, which is converted: `vm.check_float %o`."""

    name = "vm.check_float"
    BUILTIN: ClassVar[str] = "check_float"

    result = result_def(F64)

    assembly_format = "custom<Value>($value, type($value)) (`as` $subject^)? attr-dict"

    def __init__(self, value: SSAValue | Operation, subject: str | StringAttr | None = None):
        super().__init__(value, subject, F64)


@op_definition
class CheckBoolOp(CheckOp):
    """The value is a boolean: `vm.check_bool %o`."""

    name = "vm.check_bool"
    BUILTIN: ClassVar[str] = "check_bool"

    result = result_def(I1)

    assembly_format = "custom<Value>($value, type($value)) (`as` $subject^)? attr-dict"

    def __init__(self, value: SSAValue | Operation, subject: str | StringAttr | None = None):
        super().__init__(value, subject, I1)


@op_definition
class CheckTupleOp(CheckOp):
    """The value is a tuple with this many fields: `vm.check_tuple %o size 2`.

    C1: the size is not negative.
    """

    name = "vm.check_tuple"
    BUILTIN: ClassVar[str] = "check_tuple"

    size = prop_def(IntegerAttr.constr(i64))
    result = result_def(OBJECT)

    assembly_format = "custom<Value>($value, type($value)) `size` $size (`as` $subject^)? attr-dict"

    def __init__(self, value: SSAValue | Operation, size: int, subject: str | StringAttr | None = None):
        super().__init__(value, subject, OBJECT, {"size": IntegerAttr(size, i64)})

    @override
    def verify_(self) -> None:
        if self.size.value.data < 0:
            raise VerifyException(f"'vm.check_tuple' op expected a size >= 0, got {self.size.value.data}")  # C1

    def bytecode_args(self) -> Sequence[Argument]:
        """The value, the size and the subject."""
        return (self.value, self.size.value.data, self.subject_text)


@op_definition
class CheckFuncOp(CheckOp):
    """The value is a function: `vm.check_func %o`."""

    name = "vm.check_func"
    BUILTIN: ClassVar[str] = "check_func"

    result = result_def(OBJECT)

    assembly_format = "custom<Value>($value, type($value)) (`as` $subject^)? attr-dict"

    def __init__(self, value: SSAValue | Operation, subject: str | StringAttr | None = None):
        super().__init__(value, subject, OBJECT)


@op_definition
class CheckApartOp(BuiltinOp):
    """Raises `ValueError` with the message if two tensors have memory in common.

    ```mlir
    vm.check_apart %y, %x, "add_to: argument #1 (y): overlaps argument #0 (x): pass a copy"
    ```

    C1: rank and dtype of both are known.
    """

    name = "vm.check_apart"
    BUILTIN: ClassVar[str] = "check_apart"

    first = operand_def(TensorType)
    second = operand_def(TensorType)
    message = prop_def(StringAttr)

    traits = traits_def(MayRaise())

    custom_directives = (Value,)
    assembly_format = (
        "custom<Value>($first, type($first)) `,` custom<Value>($second, type($second)) `,` $message attr-dict"
    )

    def __init__(self, first: SSAValue | Operation, second: SSAValue | Operation, message: str | StringAttr):
        attr = StringAttr(message) if isinstance(message, str) else message
        super().__init__(operands=[first, second], properties={"message": attr})

    @override
    def verify_(self) -> None:
        for kind in self.operand_types:
            if not isinstance(kind, TensorType) or kind.rank is None or kind.element is None:
                raise VerifyException(f"'{self.name}' op expected tensors of known rank and dtype, got {kind}")  # C1

    def bytecode_args(self) -> Sequence[Argument]:
        """The tensors and the message."""
        return (self.first, self.second, self.message.data)


@op_definition
class AssertOp(BuiltinOp):
    """Raises `ValueError` with the message unless the condition holds; each `{}` stands for one integer.

    ```mlir
    vm.assert %ok, "main: argument #1 (w) dimension 0: expected k = {}, got {}"(%k, %d)
    ```

    C1: the message has as many `{}` as there are integers.
    """

    name = "vm.assert"
    BUILTIN: ClassVar[str] = "assert"

    condition = operand_def(I1)
    message = prop_def(StringAttr)
    values = var_operand_def(I64)

    traits = traits_def(MayRaise())

    assembly_format = "$condition `,` $message (`(` $values^ `)`)? attr-dict"

    def __init__(
        self,
        condition: SSAValue | Operation,
        message: str | StringAttr,
        values: Sequence[SSAValue | Operation] = (),
    ):
        attr = StringAttr(message) if isinstance(message, str) else message
        super().__init__(operands=[condition, values], properties={"message": attr})

    @override
    def verify_(self) -> None:
        marks = self.message.data.count("{}")
        if marks != len(self.values):
            raise VerifyException(f"'vm.assert' op message has {marks} marks for {len(self.values)} integers")  # C1

    def bytecode_args(self) -> Sequence[Argument]:
        """The condition, the message and the integers."""
        return (self.condition, self.message.data, *self.values)
