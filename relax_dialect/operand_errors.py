"""What kind of error it is at run time if an operator cannot take its operands: one answer for all modes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from relax_dialect.interfaces import InfersResultTypes
from relax_dialect.struct_info.types import ShapeType, TensorType


def operand_error_class(
    op: type[InfersResultTypes], operand_types: Sequence[Attribute], properties: Mapping[str, Attribute]
) -> type[ValueError | TypeError]:
    """The class of an error of `op.infer` for these operands: `TypeError` if no dimensions would make them fit, since
    ranks or dtypes are wrong, else `ValueError`.
    """
    try:
        op.infer_result_types([without_dims(info) for info in operand_types], properties)
    except VerifyException:
        return TypeError
    return ValueError


def without_dims(info: Attribute) -> Attribute:
    """The type of a tensor or shape with unknown dimensions; any other type as it is."""
    if isinstance(info, TensorType) and info.dims is not None:
        return TensorType((None,) * len(info.dims), info.dtype, info.device)
    if isinstance(info, ShapeType) and info.dims is not None:
        return ShapeType((None,) * len(info.dims))
    return info
