"""The operation that defines a tensor, `tensor.op`, with the attributes of TVM's `te.Operation`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from tir_dialect.dims import Dim
from tir_dialect.dtypes import ElementType
from tir_dialect.ops.annotations import Note

if TYPE_CHECKING:
    from tir_dialect.te.graph import Source
    from tir_dialect.te.tensor import Tensor


@dataclass(frozen=True, eq=False)
class Operation:
    """A computation or a placeholder."""

    name: str
    outputs: tuple[Tensor, ...] = field(init=False)
    """The tensors that it defines."""

    @property
    def num_outputs(self) -> int:
        """The number of its outputs."""
        return len(self.outputs)

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """Its inputs, in order of first use."""
        from tir_dialect.te.graph import inputs_of

        return inputs_of(cast("Source", self))

    @property
    def attrs(self) -> Mapping[str, Note]:
        """The `attrs` that it was created with."""
        return {}

    def output(self, index: int) -> Tensor:
        """The output with this index."""
        return self.outputs[index]

    def output_dtype(self, index: int) -> ElementType:
        """The dtype of the output with this index."""
        return self.outputs[index].dtype

    def output_shape(self, index: int) -> tuple[Dim, ...]:
        """The shape of the output with this index."""
        return self.outputs[index].shape


@dataclass(frozen=True)
class Placeholder(Operation):
    """The operation of a placeholder: no inputs, one output."""

    tensor: Tensor

    def __post_init__(self) -> None:
        object.__setattr__(self, "outputs", (self.tensor,))

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """None."""
        return ()

    @property
    def shape(self) -> tuple[Dim, ...]:
        """That of its tensor."""
        return self.tensor.shape

    @property
    def dtype(self) -> ElementType:
        """That of its tensor."""
        return self.tensor.dtype
