"""The base of operators: pure functions of tensors with inferred results and one uniform text."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import traits_def

from relax_dialect.inference import InfersResultTypes
from relax_dialect.ops.directives import Fields, InferredTypes, Operands
from relax_dialect.scalars import Scalar
from relax_dialect.scope import prover_at
from relax_dialect.struct_info.types import StructInfo
from relax_dialect.traits import Checked


class Operator(InfersResultTypes, ABC):
    """An operator: `relax.name %x, %y axis = 1 : T`, the result types only where they are not the inferred ones.

    Every operator has this format: its operands, then its properties by name (`fields` says how), then its attributes.

    Operators have no effects; what they demand of their operands and cannot be proved is checked at run time.
    """

    traits = traits_def(Checked())

    assembly_format = "custom<Operands>() custom<Fields>() attr-dict custom<InferredTypes>(type(results))"
    custom_directives = (Operands, Fields, InferredTypes)

    def __init__(
        self,
        operands: Sequence[SSAValue | Operation],
        properties: Mapping[str, Attribute | None] | None = None,
        result_types: Sequence[StructInfo] | None = None,
    ):
        """Without result types they are inferred; `VerifyException` if the operands are wrong."""
        values = [SSAValue.get(operand) for operand in operands]
        given = {name: value for name, value in (properties or {}).items() if value is not None}
        if result_types is None:
            result_types = self.infer_result_types([value.type for value in values], given)
        # The operands are one flat list here, so the grouping that IRDL's constructor does has nothing to do.
        Operation.__init__(self, operands=values, result_types=result_types, properties=given)

    def with_operands(self, operands: Sequence[SSAValue], **properties: Attribute | None) -> Self:
        """The same operator on other operands, with some of its properties changed, or left out by `None`, and the
        types that follow; it is in no block.

        Raises `VerifyException` if the operands are wrong.
        """
        given = {name: value for name, value in {**self.properties, **properties}.items() if value is not None}
        types = self.infer_result_types([operand.type for operand in operands], given, prover_at(self))
        made = type(self).create(
            operands=operands, result_types=types, properties=given, attributes=dict(self.attributes)
        )
        made.location = self.location
        return made


class ElementwiseOp(Operator, ABC):
    """Applies a scalar function to every element of its operands, which are broadcast to one shape."""

    SCALAR: ClassVar[Scalar]
