"""The `Relax` dialect object."""

from __future__ import annotations

from xdsl.dialect_interfaces.constant_materialization import ConstantMaterializationInterface
from xdsl.ir import Attribute, Dialect, Operation

from relax_dialect.loading import ATTRIBUTES, FAMILIES, attribute_class, family_ops
from relax_dialect.ops.values import materialize_constant


class _Constants(ConstantMaterializationInterface):
    """Makes the op of a value that folding found."""

    def materialize_constant(self, value: Attribute, type: Attribute) -> Operation | None:
        return materialize_constant(value, type)


Relax = Dialect(
    "relax",
    [op for family in FAMILIES for op in family_ops(family)],
    [attribute_class(name) for name in ATTRIBUTES],
    [_Constants()],
)
