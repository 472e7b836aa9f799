"""The `Relax` dialect object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from inspect import isclass

from xdsl.dialect_interfaces.constant_materialization import ConstantMaterializationInterface
from xdsl.ir import Attribute, Dialect, Operation

from relax_dialect.families import FAMILIES
from relax_dialect.ops.guard import RelationAttr
from relax_dialect.ops.materialize import materialize_constant
from relax_dialect.struct_info.base import PartialShapeAttr
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.types import ObjectType, PrimType, ShapeType, TensorType, TupleType

_ATTRIBUTES: list[type[Attribute]] = [
    FuncType,
    ObjectType,
    PartialShapeAttr,
    PrimType,
    RelationAttr,
    ShapeType,
    TensorType,
    TupleType,
]


def family_ops(family: str) -> Iterator[type[Operation]]:
    """The ops that a module of `relax_dialect.ops` defines, in the order of their definition."""
    module = import_module(f"relax_dialect.ops.{family}")
    members: Iterable[object] = vars(module).values()
    for member in members:
        if isclass(member) and issubclass(member, Operation) and _is_defined_in(member, module.__name__):
            yield member


def _is_defined_in(op: type[Operation], module: str) -> bool:
    """Whether the module defines the op itself, rather than importing it or defining a base of ops."""
    return op.__module__ == module and "name" in op.__dict__


class _Constants(ConstantMaterializationInterface):
    """Makes the op of a value that folding found."""

    def materialize_constant(self, value: Attribute, type: Attribute) -> Operation | None:
        return materialize_constant(value, type)


Relax = Dialect("relax", [op for family in FAMILIES for op in family_ops(family)], _ATTRIBUTES, [_Constants()])
