"""Conditions on types and properties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, FloatAttr, IntegerAttr, IntegerType, StringAttr, UnitAttr
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.utils.hints import isa

from relax_dialect.scope import prover_at
from relax_dialect.struct_info.types import TensorType
from tir_dialect.attributes import DimAttr
from tir_dialect.dims import DimLike, Prover
from tir_dialect.dtypes import dtype_name


def has_dtype(value: SSAValue, dtype: str) -> bool:
    """Whether `value` is a tensor of that dtype."""
    info = value.type
    return isinstance(info, TensorType) and info.dtype is not None and dtype_name(info.dtype) == dtype


def has_rank(value: SSAValue, rank: int) -> bool:
    """Whether `value` is a tensor of that rank."""
    info = value.type
    return isinstance(info, TensorType) and info.dims is not None and len(info.dims) == rank


def has_shape(value: SSAValue, shape: Sequence[DimLike | None]) -> bool:
    """Whether `value` is a tensor with provably these dimensions."""
    info = value.type
    if not isinstance(info, TensorType) or info.dims is None or len(info.dims) != len(shape):
        return False
    owner = value.owner.first_op if isinstance(value.owner, Block) else value.owner
    prover = Prover() if owner is None else prover_at(owner)
    pairs = zip(info.dims, shape, strict=True)
    return all(want is None or (dim is not None and prover.equal(dim, want) is True) for dim, want in pairs)


def attribute_is(attribute: Attribute | None, wanted: Any) -> bool:
    """Whether a property has the value that Python writes as `wanted`."""
    if attribute is None or wanted is None:
        return attribute is None and wanted is None
    return attribute == wanted if isinstance(wanted, Attribute) else python_value(attribute) == _plain(wanted)


def _plain(wanted: Any) -> Any:
    return tuple(map(_plain, cast("Sequence[Any]", wanted))) if isinstance(wanted, list | tuple) else wanted


def python_value(attribute: Attribute) -> Any:
    """A property as a plain value: a number, text, `True` for what is only present, a tuple of these."""
    match attribute:
        case IntegerAttr():
            return attribute.value.data
        case FloatAttr():
            return attribute.value.data
        case StringAttr():
            return attribute.data
        case UnitAttr():
            return True
        case DimAttr():
            constant = attribute.data.constant_value
            return str(attribute.data) if constant is None else constant
        case _ if isa(attribute, DenseArrayBase[IntegerType]):
            return attribute.get_values()
        case _ if isa(attribute, ArrayAttr[Attribute]):
            return tuple(python_value(each) for each in attribute)
        case _:
            return str(attribute)
