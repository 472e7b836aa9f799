"""The `Relax` dialect object."""

from __future__ import annotations

from xdsl.dialect_interfaces.constant_materialization import ConstantMaterializationInterface
from xdsl.ir import Attribute, Dialect, Operation

from relax_dialect.loading import FAMILIES, family_ops
from relax_dialect.ops.guard import RelationAttr
from relax_dialect.ops.materialize import materialize_constant
from relax_dialect.struct_info.base import PartialShapeAttr
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.sharding import ShardingAttr
from relax_dialect.struct_info.types import ObjectType, PrimType, ShapeType, TensorType, TupleType

_ATTRIBUTES: list[type[Attribute]] = [
    FuncType,
    ObjectType,
    PartialShapeAttr,
    PrimType,
    RelationAttr,
    ShapeType,
    ShardingAttr,
    TensorType,
    TupleType,
]


class _Constants(ConstantMaterializationInterface):
    """Makes the op of a value that folding found."""

    def materialize_constant(self, value: Attribute, type: Attribute) -> Operation | None:
        return materialize_constant(value, type)


Relax = Dialect("relax", [op for family in FAMILIES for op in family_ops(family)], _ATTRIBUTES, [_Constants()])
