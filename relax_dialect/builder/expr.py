"""`Expr`: a value of the program that is being built, with Python's operators.

Tensors have those of the dialect; prim values have arithmetic on dimensions.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from xdsl.ir import Attribute, Operation, SSAValue

from relax_dialect.builder.emitter import BuilderError, DTypeLike, Emitter, as_dtype
from relax_dialect.builder.indexing import get_item
from relax_dialect.builder.values import Operand, TypedValue, as_tensor
from relax_dialect.loading import operator_classes
from relax_dialect.ops.calls import CallClosureOp
from relax_dialect.ops.datatype import AstypeOp
from relax_dialect.ops.values import PrimOp
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.types import PrimType, ShapeType, TensorType, TupleType
from tir_dialect.attributes import as_name_hint
from tir_dialect.dims import Dim, constant, floordiv, mod

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from relax_dialect.builder.emitter import Emitter

    Array: TypeAlias = NDArray[np.generic]


class Expr(TypedValue):
    """A value with operators; each emits an op where the builder stands.

    Tensors: `+ - * / // % ** @ & | ^ ~ << >>`, `divmod`, `abs`, `round`, `math.floor`, `math.ceil`, `math.trunc`,
    comparisons, indexing as in NumPy, `astype`. Prim values of known
    value: `+ - * // %`. Tuples and shapes: indexing, iteration, `len`. Functions: calls.
    """

    __slots__ = ()

    __array_ufunc__ = None
    """NumPy leaves operators between its arrays and expressions to this class."""

    def rebind(self, value: SSAValue) -> None:
        """Makes the expression stand for another value: that of an output, once its region has ended."""
        self._value = value

    def named(self, name: str) -> Expr:
        """The same value, which is called `name` in text."""
        self._value.name_hint = as_name_hint(name)
        return self

    def astype(self, dtype: DTypeLike) -> Expr:
        """Every element converted to a dtype."""
        return Expr(self.builder, self.builder.insert(AstypeOp(self.value, as_dtype(dtype))).result)

    def __call__(self, *arguments: Operand) -> Expr:
        if not isinstance(self.type, FuncType):
            raise TypeError(f"expected a function to call, got {self.type}")
        values = [as_tensor(self.builder, argument, None) for argument in arguments]
        return Expr(self.builder, self.builder.insert(CallClosureOp(self.value, values)).result)

    def __getitem__(self, index: Any) -> Expr:
        return Expr(self.builder, get_item(self, index))

    def __len__(self) -> int:
        info = self.type
        if isinstance(info, TupleType):
            return len(info.fields)
        length = info.dims if isinstance(info, TensorType | ShapeType) else None
        if isinstance(info, ShapeType) and length is not None:
            return len(length)
        raise TypeError(f"expected a tuple or a shape of known length, got {info}")

    def __iter__(self) -> Iterator[Expr]:
        return (self[index] for index in range(len(self)))

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        raise TypeError(
            "a value has no truth value while the program is built: use if_ or op.where, and & | ~ instead of and, or, "
            "not and chained comparisons"
        )

    def __repr__(self) -> str:
        return f"Expr(%{self._value.name_hint or '?'}: {self._value.type})"

    # Operators

    def __add__(self, other: Operand) -> Expr:
        return binary("add", self, other)

    def __radd__(self, other: Operand) -> Expr:
        return binary("add", other, self)

    def __sub__(self, other: Operand) -> Expr:
        return binary("subtract", self, other)

    def __rsub__(self, other: Operand) -> Expr:
        return binary("subtract", other, self)

    def __mul__(self, other: Operand) -> Expr:
        return binary("multiply", self, other)

    def __rmul__(self, other: Operand) -> Expr:
        return binary("multiply", other, self)

    def __truediv__(self, other: Operand) -> Expr:
        return binary("divide", self, other)

    def __rtruediv__(self, other: Operand) -> Expr:
        return binary("divide", other, self)

    def __floordiv__(self, other: Operand) -> Expr:
        return binary("floor_divide", self, other)

    def __rfloordiv__(self, other: Operand) -> Expr:
        return binary("floor_divide", other, self)

    def __mod__(self, other: Operand) -> Expr:
        return binary("floor_mod", self, other)

    def __rmod__(self, other: Operand) -> Expr:
        return binary("floor_mod", other, self)

    def __divmod__(self, other: Operand) -> tuple[Expr, Expr]:
        return self // other, self % other

    def __rdivmod__(self, other: Operand) -> tuple[Expr, Expr]:
        return other // self, other % self

    def __pow__(self, other: Operand) -> Expr:
        return binary("power", self, other)

    def __rpow__(self, other: Operand) -> Expr:
        return binary("power", other, self)

    def __matmul__(self, other: Operand) -> Expr:
        return binary("matmul", self, other)

    def __rmatmul__(self, other: Operand) -> Expr:
        return binary("matmul", other, self)

    def __and__(self, other: Operand) -> Expr:
        return binary("bitwise_and", self, other)

    def __rand__(self, other: Operand) -> Expr:
        return binary("bitwise_and", other, self)

    def __or__(self, other: Operand) -> Expr:
        return binary("bitwise_or", self, other)

    def __ror__(self, other: Operand) -> Expr:
        return binary("bitwise_or", other, self)

    def __xor__(self, other: Operand) -> Expr:
        return binary("bitwise_xor", self, other)

    def __rxor__(self, other: Operand) -> Expr:
        return binary("bitwise_xor", other, self)

    def __lshift__(self, other: Operand) -> Expr:
        return binary("left_shift", self, other)

    def __rlshift__(self, other: Operand) -> Expr:
        return binary("left_shift", other, self)

    def __rshift__(self, other: Operand) -> Expr:
        return binary("right_shift", self, other)

    def __rrshift__(self, other: Operand) -> Expr:
        return binary("right_shift", other, self)

    def __lt__(self, other: Operand) -> Expr:
        return binary("less", self, other)

    def __le__(self, other: Operand) -> Expr:
        return binary("less_equal", self, other)

    def __gt__(self, other: Operand) -> Expr:
        return binary("greater", self, other)

    def __ge__(self, other: Operand) -> Expr:
        return binary("greater_equal", self, other)

    def __eq__(self, other: object) -> Any:
        return binary("equal", self, other)

    def __ne__(self, other: object) -> Any:
        return binary("not_equal", self, other)

    def __neg__(self) -> Expr:
        return unary("negative", self)

    def __pos__(self) -> Expr:
        return self

    def __abs__(self) -> Expr:
        return unary("abs", self)

    def __round__(self, digits: int | None = None) -> Expr:
        if digits is not None:
            raise TypeError("round takes no digits here: multiply, round and divide")
        return unary("round", self)

    def __floor__(self) -> Expr:
        return unary("floor", self)

    def __ceil__(self) -> Expr:
        return unary("ceil", self)

    def __trunc__(self) -> Expr:
        return unary("trunc", self)

    def __invert__(self) -> Expr:
        return unary("bitwise_not", self)


_DIM_OPERATORS: dict[str, Callable[[Dim, Dim], Dim]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "floor_divide": floordiv,
    "floor_mod": mod,
}


def binary(name: str, left: Any, right: Any) -> Expr:
    """`relax.<name>` of two operands, at least one of them an expression."""
    builder = next(side.builder for side in (left, right) if isinstance(side, Expr))
    if _is_prim(left) or _is_prim(right):
        return _prim_arithmetic(builder, name, left, right)
    dtype = _dtype(left) or _dtype(right)
    return _apply(builder, name, as_tensor(builder, left, dtype), as_tensor(builder, right, dtype))


def unary(name: str, operand: Expr) -> Expr:
    """`relax.<name>` of a tensor; of a prim value the negation."""
    if _is_prim(operand) and name == "negative":
        return _prim_arithmetic(operand.builder, "subtract", 0, operand)
    return _apply(operand.builder, name, operand.value)


def _apply(builder: Emitter, name: str, *operands: SSAValue) -> Expr:
    return Expr(builder, builder.insert(operator_classes()[f"relax.{name}"](*operands)).results[0])


def _prim_arithmetic(builder: Emitter, name: str, left: Operand, right: Operand) -> Expr:
    """Arithmetic on values that types show, which a type then shows again."""
    compute = _DIM_OPERATORS.get(name)
    if compute is None:
        raise TypeError(f"prim values have no operator {name}: make tensors of them, with op.full")
    return Expr(builder, builder.insert(PrimOp(compute(_dim(left), _dim(right)))).result)


def _is_prim(operand: object) -> bool:
    return isinstance(_type(operand), PrimType)


def _dim(operand: object) -> Dim:
    if isinstance(operand, Dim):
        return operand
    if isinstance(operand, int) and not isinstance(operand, bool):
        return constant(operand)
    info = _type(operand)
    if not isinstance(info, PrimType) or info.value is None:
        got = f"the number {operand}" if info is None else str(info)
        raise BuilderError(f"arithmetic on prim values expected integers whose value is known, got {got}")
    return info.value


def _dtype(operand: object) -> Attribute | None:
    """The dtype of a side that is a tensor."""
    info = _type(operand)
    return info.dtype if isinstance(info, TensorType) else None


def _type(operand: object) -> Attribute | None:
    """The type of a side that is a value."""
    if isinstance(operand, Expr):
        return operand.value.type
    if isinstance(operand, Operation):
        return operand.results[0].type if len(operand.results) == 1 else None
    return cast("SSAValue", operand).type if isinstance(operand, SSAValue) else None
