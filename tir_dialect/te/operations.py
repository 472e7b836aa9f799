"""What makes a tensor, `tensor.op`, by the names that TVM has for its parts."""

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
    """A computation, or the place of an argument."""

    name: str
    outputs: tuple[Tensor, ...] = field(init=False)
    """The tensors that it makes."""

    @property
    def num_outputs(self) -> int:
        """How many tensors it makes."""
        return len(self.outputs)

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """The tensors that it uses and does not make, in order of first use."""
        from tir_dialect.te.graph import inputs_of

        return inputs_of(cast("Source", self))

    @property
    def attrs(self) -> Mapping[str, Note]:
        """What was said about it when it was made."""
        return {}

    def output(self, index: int) -> Tensor:
        """One of its tensors."""
        return self.outputs[index]

    def output_dtype(self, index: int) -> ElementType:
        """The dtype of one of its tensors."""
        return self.outputs[index].dtype

    def output_shape(self, index: int) -> tuple[Dim, ...]:
        """The shape of one of its tensors."""
        return self.outputs[index].shape


@dataclass(frozen=True)
class Placeholder(Operation):
    """The place of an argument: it makes one tensor, of nothing."""

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
