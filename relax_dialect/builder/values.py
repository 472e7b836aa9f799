"""Values that are known when the program is built, and refinements of values."""

from __future__ import annotations

from typing import Any

from relax_dialect.builder.calls import CallEmitter
from relax_dialect.builder.convert import as_prim, as_tensor, as_value, constant
from relax_dialect.builder.errors import BuilderError
from relax_dialect.builder.expr import Expr, Operand, Value
from relax_dialect.builder.types import DTypeLike, InfoLike, SymbolBounds, as_dtype, as_struct_info, new_symbols
from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import DimLike


class ValueEmitter(CallEmitter):
    """An emitter of constants, prim values and casts."""

    def emit(self, value: Operand, name: str | None = None) -> Expr:
        """A value with operators, called `name` in text; an op that is in no block yet is emitted."""
        expr = self.expr(as_tensor(self, value, None))
        return expr if name is None else expr.named(name)

    def const(self, data: Any, dtype: DTypeLike | None = None, name: str | None = None) -> Expr:
        """A constant tensor: of a number, nested lists, or an array of any DLPack library.

        One with a `name`, or with many elements, becomes a weight: it is not copied, and text shows its name only.
        """
        return self.expr(constant(self, data, dtype, name).result)

    def weight(self, name: str, info: InfoLike) -> Expr:
        """A constant tensor that is kept outside of the module, by name; its shape and dtype have to be known."""
        declared = as_struct_info(info)
        if not isinstance(declared, TensorType):
            raise BuilderError(f"the weight {name} expected the type of a tensor, got {declared}")
        op = ConstantOp(name, declared)
        op.verify_()
        return self.expr(self.insert(op).result)

    def prim(self, value: DimLike | float, dtype: DTypeLike | None = None) -> Expr:
        """A prim value: a dimension, a number or a truth value."""
        return self.expr(as_prim(self, value, None if dtype is None else as_dtype(dtype)))

    def symbol(self, name: str) -> Expr:
        """The value of a symbol that is visible here, its witness."""
        witness = self.symbols.get(name)
        if witness is None:
            raise BuilderError(f"the symbol {name} is not bound in {self.frame.what}")
        return self.expr(witness)

    def match_cast(
        self, value: Value, info: InfoLike, name: str | None = None, *, bounds: SymbolBounds | None = None
    ) -> Expr:
        """Checks that a value has a type and refines it; symbols of the type that are not visible yet are bound."""
        declared = as_struct_info(info)
        op = MatchCastOp(as_value(self, value), declared, new_symbols([declared], self.symbols, bounds))
        op.verify_()
        result = self.expr(self.insert(op).result)
        return result if name is None else result.named(name)
