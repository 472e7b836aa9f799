"""The constant tensors of a module."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.dialects.builtin import TensorType

from relax_dialect.struct_info.symbols import fresh_name
from tir_dialect.elements import TensorAttr
from tir_dialect.weights import WeightAttr
from vm_dialect.ops.constants import ConstantSymbolOp


@dataclass
class Constants:
    """Symbols of constant tensors, one for each distinct value."""

    taken: set[str]
    """Names that the module has already."""
    _made: dict[tuple[TensorType, TensorAttr], ConstantSymbolOp] = field(
        default_factory=dict[tuple[TensorType, TensorAttr], ConstantSymbolOp]
    )

    def get(self, tensor_type: TensorType, value: TensorAttr) -> ConstantSymbolOp:
        """The symbol of a tensor; that of a weight has its name, if that is free."""
        key = (tensor_type, value)
        found = self._made.get(key)
        if found is None:
            name = value.data.name if isinstance(value, WeightAttr) else "constant"
            unique = name if isinstance(value, WeightAttr) and name not in self.taken else fresh_name(name, self.taken)
            self.taken.add(unique)
            found = self._made[key] = ConstantSymbolOp(unique, tensor_type, value)
        return found

    def __iter__(self) -> Iterator[ConstantSymbolOp]:
        """The symbols in the order in which they were first used."""
        return iter(self._made.values())
