"""Types of relax values as types of the virtual machine."""

from __future__ import annotations

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Attribute

from relax_dialect.struct_info.base import StructInfo
from relax_dialect.struct_info.types import PrimType, ShapeType, TensorType
from vm_dialect import types as vm


def vm_type(info: Attribute) -> Attribute:
    """The type of the register that holds a value of this structural information.

    Numbers are unboxed (`i64`, `i1`, `f64`), tensors and shapes keep what is known of rank and dtype, and everything
    else is `!vm.object`.
    """
    match info:
        case TensorType():
            return vm.TensorType(info.rank, info.dtype)
        case ShapeType():
            return vm.ShapeType(info.rank)
        case PrimType():
            return scalar_type(info.dtype)
        case StructInfo():
            return vm.OBJECT
        case _:
            return info


def scalar_type(dtype: Attribute) -> Attribute:
    """The register type of a scalar: every integer is an `i64`, every float an `f64`."""
    if isinstance(dtype, AnyFloat):
        return vm.F64
    if dtype == vm.I1:
        return vm.I1
    return vm.I64
