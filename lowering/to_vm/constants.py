"""The constant tensors of a module."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, TensorType
from xdsl.ir import Attribute

from relax_dialect.struct_info.symbols import fresh_name
from vm_dialect.ops.constants import ConstantSymbolOp


@dataclass
class Constants:
    """Symbols of constant tensors, one for each distinct value; those kept outside are distinguished by name."""

    taken: set[str]
    """Names that the module has already."""
    _made: dict[tuple[str | None, Attribute, Attribute | None], ConstantSymbolOp] = field(
        default_factory=dict[tuple[str | None, Attribute, Attribute | None], ConstantSymbolOp]
    )

    def get(self, name: str, tensor_type: TensorType, value: DenseIntOrFPElementsAttr | None) -> ConstantSymbolOp:
        """The symbol of a tensor; without a value it is the tensor that is kept under `name`."""
        key = (name if value is None else None, tensor_type, value)
        found = self._made.get(key)
        if found is None:
            unique = name if value is None and name not in self.taken else fresh_name(name, self.taken)
            self.taken.add(unique)
            found = self._made[key] = ConstantSymbolOp(unique, tensor_type, value)
        return found

    def __iter__(self) -> Iterator[ConstantSymbolOp]:
        """The symbols in the order in which they were first used."""
        return iter(self._made.values())
