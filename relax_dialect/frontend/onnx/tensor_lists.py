"""Sequences: lists of tensors that are known while importing, or tensors of one shape that a program gathers."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override
from xdsl.ir import Attribute

from relax_dialect.builder import BlockBuilder, op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.errors import Refusal
from relax_dialect.frontend.onnx.values import Value
from tir_dialect.dims import Dim, constant


class TensorList(Value):
    """A sequence: its items, or if only the program knows how many there are, a tensor of them along its first axis."""

    def __init__(self, items: Sequence[Value] | None = None, stack: Expr | None = None, dtype: Attribute | None = None):
        super().__init__(stack, None, dtype if stack is None else stack.dtype)
        self.items = None if items is None else list(items)

    @classmethod
    def of_stack(cls, stack: Expr) -> TensorList:
        """The sequence of the slices of a tensor along its first axis."""
        return cls(None, stack)

    @property
    @override
    def shape(self) -> tuple[Dim, ...]:
        raise Refusal("expected a tensor, got a sequence")

    @property
    def length(self) -> Dim:
        """The number of items."""
        if self.items is not None:
            return constant(len(self.items))
        return super().shape[0]

    @property
    def is_empty(self) -> bool:
        """Whether it is known that there are no items."""
        return self.items is not None and not self.items

    @override
    def expr(self, bb: BlockBuilder) -> Expr:
        """The tensor of all items, which have to have one shape."""
        if self.items is None:
            return super().expr(bb)
        if not self.items:
            raise Refusal("the shape of the items of an empty sequence is not known")
        return op.stack([item.expr(bb) for item in self.items], 0)


def like(model: Value | None, value: Expr) -> Value:
    """A value of the program as what another one is: a tensor, or a sequence."""
    return TensorList.of_stack(value) if isinstance(model, TensorList) else Value(value)
