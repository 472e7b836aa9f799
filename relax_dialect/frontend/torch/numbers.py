"""Numbers that depend on sizes, as scalar tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from xdsl.dialects.builtin import f64

from relax_dialect.builder import BlockBuilder, op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.torch.program import Refusal
from relax_dialect.frontend.torch.symbols import of_expression
from tir_dialect.dims import Dim

_COMPARISONS: Mapping[str, Callable[..., Expr]] = {
    "Equality": op.equal,
    "Unequality": op.not_equal,
    "StrictLessThan": op.less,
    "LessThan": op.less_equal,
    "StrictGreaterThan": op.greater,
    "GreaterThan": op.greater_equal,
}
_CONNECTIVES: Mapping[str, Callable[..., Expr]] = {
    "And": op.logical_and,
    "Or": op.logical_or,
}
_ARITHMETIC: Mapping[str, Callable[[list[Expr]], Expr]] = {
    "Add": lambda args: reduce(op.add, args),
    "Mul": lambda args: reduce(op.multiply, args),
    "Pow": lambda args: op.power(*args),
    "FloatPow": lambda args: op.power(*args),
    "IntTrueDiv": lambda args: op.divide(*args),
    "FloatTrueDiv": lambda args: op.divide(*args),
    "OpaqueUnaryFn_sqrt": lambda args: op.sqrt(*args),
    "OpaqueUnaryFn_log": lambda args: op.log(*args),
    "OpaqueUnaryFn_exp": lambda args: op.exp(*args),
    "ToFloat": lambda args: args[0],
}
"""Functions of floating-point numbers, by the name of the class in SymPy or PyTorch."""


@dataclass(frozen=True)
class Numbers:
    """Makes scalars of numbers, where a builder stands."""

    bb: BlockBuilder
    floats: Mapping[str, Expr]
    """The symbols that stand for floating-point numbers which are data."""

    def scalar(self, value: Any) -> Expr:
        """A symbolic number: an `i64`, an `f64` or an `i1`. `Refusal` if it is made of other functions."""
        expression = value.node.expr
        match type(value).__name__:
            case "SymBool":
                return self._truth(expression)
            case "SymInt":
                return self.size(of_expression(expression))
            case _:
                return self._float(expression)

    def size(self, dim: Dim) -> Expr:
        """A dimension as a scalar of `i64`."""
        return op.reshape(op.shape_to_tensor([dim]), [])

    def _truth(self, expression: Any) -> Expr:
        kind = type(expression).__name__
        if kind in _COMPARISONS:
            return _COMPARISONS[kind](*map(self._float, expression.args))
        if kind in _CONNECTIVES:
            return reduce(_CONNECTIVES[kind], map(self._truth, expression.args))
        if kind == "Not":
            return op.logical_not(self._truth(expression.args[0]))
        raise Refusal(f"the condition {expression} cannot be computed at run time")

    def _float(self, expression: Any) -> Expr:
        kind = type(expression).__name__
        if expression.is_Symbol and str(expression) in self.floats:
            return self.floats[str(expression)]
        if expression.is_Number:
            return self.bb.const(float(expression), f64)
        if expression.is_integer:
            return op.astype(self.size(of_expression(expression)), f64)
        if kind not in _ARITHMETIC:
            raise Refusal(f"the number {expression} cannot be computed at run time")
        return _ARITHMETIC[kind]([self._float(each) for each in expression.args])
