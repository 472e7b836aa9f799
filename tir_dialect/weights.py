"""Constant tensors whose elements are not part of the text: `#tir.weight<"conv1.weight">`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.generic]


@dataclass(frozen=True, eq=False, repr=False)
class Weight:
    """A tensor by name and, if this process has them, its elements: an array that must not be modified.

    Two weights are equal if they have the same name and the same array; a weight parsed from text has no array.
    """

    name: str
    array: Array | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Weight) and self.name == other.name and self.array is other.array

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"Weight({self.name!r})"

    @classmethod
    def of_content(cls, array: Array) -> Weight:
        """A content-addressed weight: its name is a digest of the elements."""
        import hashlib

        import numpy as np

        data = np.ascontiguousarray(array)
        digest = hashlib.blake2b(data.reshape(-1).view(np.uint8).data, digest_size=8)
        digest.update(f"{array.dtype}{array.shape}".encode())
        return cls(f"const_{digest.hexdigest()}", data)


@irdl_attr_definition
class WeightAttr(Data[Weight]):
    """A constant tensor by name: `#tir.weight<"conv1.weight">`.

    Only the name is printed. In memory the attribute references the elements, so that passes neither copy nor lose
    them, and they are freed with the last op that uses them. For a module parsed from text they are passed to `build`.
    """

    name = "tir.weight"

    def __init__(self, weight: Weight | str, array: Array | None = None) -> None:
        super().__init__(Weight(weight, array) if isinstance(weight, str) else weight)

    @property
    def weight_name(self) -> str:
        """The name under which the tensor is kept."""
        return self.data.name

    @property
    def array(self) -> NDArray[Any] | None:
        """The elements, if this process has them."""
        return self.data.array

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Weight:
        """Parses `<"name">`."""
        with parser.in_angle_brackets():
            return Weight(parser.parse_str_literal())

    def print_parameter(self, printer: Printer) -> None:
        """Prints `<"name">`."""
        with printer.in_angle_brackets():
            printer.print_string_literal(self.data.name)
