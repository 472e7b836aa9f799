"""`Expr`: a value of the program that is being built, with Python's operators."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.ir import Attribute, Operation, SSAValue

from relax_dialect.builder.errors import BuilderError
from relax_dialect.builder.types import DTypeLike
from relax_dialect.struct_info.base import Shape, StructInfo
from relax_dialect.struct_info.types import PrimType, ShapeType, TensorType, TupleType
from tir_dialect.dims import Dim
from tir_dialect.name_hints import as_name_hint

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from relax_dialect.builder.emitter import Emitter

    Array: TypeAlias = NDArray[np.generic]

Number: TypeAlias = int | float | bool

Operand: TypeAlias = "Expr | SSAValue | Operation | Number | Array | Dim"
"""What Python's operators take. A number or an array becomes a constant of the other side's dtype; a dimension goes
with prim values.
"""


class Expr:
    """A value with operators; each emits an op where the builder stands.

    Tensors: `+ - * / // % ** @ & | ^ ~ << >>`, `divmod`, `abs`, `round`, `math.floor`, `math.ceil`, `math.trunc`,
    comparisons, indexing as in NumPy, `astype`. Prim values of known
    value: `+ - * // %`. Tuples and shapes: indexing, iteration, `len`. Functions: calls.
    """

    __slots__ = ("_builder", "_value")

    __array_ufunc__ = None
    """NumPy leaves operators between its arrays and expressions to this class."""

    def __init__(self, builder: Emitter, value: SSAValue):
        self._builder = builder
        self._value = value

    @property
    def builder(self) -> Emitter:
        """The builder of the program that the value belongs to."""
        return self._builder

    @property
    def value(self) -> SSAValue:
        """The bare value."""
        return self._value

    def rebind(self, value: SSAValue) -> None:
        """Makes the expression stand for another value: that of an output, once its region has ended."""
        self._value = value

    # Types

    @property
    def type(self) -> StructInfo:
        """The relax type of the value."""
        info = self._value.type
        if not isinstance(info, StructInfo):
            raise BuilderError(f"expected a value of a relax type, got {info}")
        return info

    @property
    def shape(self) -> Shape:
        """What is known of the dimensions of a tensor or shape: `None` where unknown, or if the rank is."""
        info = self.type
        return info.dims if isinstance(info, TensorType | ShapeType) else self._refuse("a tensor or a shape")

    @property
    def ndim(self) -> int | None:
        """The rank of a tensor or the length of a shape, if it is known."""
        return None if self.shape is None else len(self.shape)

    @property
    def dtype(self) -> Attribute | None:
        """The element type of a tensor, if it is known, or the dtype of a prim value."""
        info = self.type
        return info.dtype if isinstance(info, TensorType | PrimType) else self._refuse("a tensor or a prim value")

    @property
    def dim(self) -> Dim:
        """The value of a prim value as a dimension; `BuilderError` if its type does not say it."""
        info = self.type
        found = info.value if isinstance(info, PrimType) else None
        return self._refuse("a prim value that is known as a dimension") if found is None else found

    def named(self, name: str) -> Expr:
        """The same value, which is called `name` in text."""
        self._value.name_hint = as_name_hint(name)
        return self

    def astype(self, dtype: DTypeLike) -> Expr:
        """Every element converted to a dtype."""
        return _operators().astype(self, dtype)

    def __call__(self, *arguments: Operand) -> Expr:
        return _operators().call_value(self, arguments)

    def __getitem__(self, index: Any) -> Expr:
        return _indexing().get_item(self, index)

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

    def _refuse(self, expected: str) -> Any:
        raise BuilderError(f"expected {expected}, got {self._value.type}")

    # Operators

    def __add__(self, other: Operand) -> Expr:
        return _operators().binary("add", self, other)

    def __radd__(self, other: Operand) -> Expr:
        return _operators().binary("add", other, self)

    def __sub__(self, other: Operand) -> Expr:
        return _operators().binary("subtract", self, other)

    def __rsub__(self, other: Operand) -> Expr:
        return _operators().binary("subtract", other, self)

    def __mul__(self, other: Operand) -> Expr:
        return _operators().binary("multiply", self, other)

    def __rmul__(self, other: Operand) -> Expr:
        return _operators().binary("multiply", other, self)

    def __truediv__(self, other: Operand) -> Expr:
        return _operators().binary("divide", self, other)

    def __rtruediv__(self, other: Operand) -> Expr:
        return _operators().binary("divide", other, self)

    def __floordiv__(self, other: Operand) -> Expr:
        return _operators().binary("floor_divide", self, other)

    def __rfloordiv__(self, other: Operand) -> Expr:
        return _operators().binary("floor_divide", other, self)

    def __mod__(self, other: Operand) -> Expr:
        return _operators().binary("floor_mod", self, other)

    def __rmod__(self, other: Operand) -> Expr:
        return _operators().binary("floor_mod", other, self)

    def __divmod__(self, other: Operand) -> tuple[Expr, Expr]:
        return self // other, self % other

    def __rdivmod__(self, other: Operand) -> tuple[Expr, Expr]:
        return other // self, other % self

    def __pow__(self, other: Operand) -> Expr:
        return _operators().binary("power", self, other)

    def __rpow__(self, other: Operand) -> Expr:
        return _operators().binary("power", other, self)

    def __matmul__(self, other: Operand) -> Expr:
        return _operators().binary("matmul", self, other)

    def __rmatmul__(self, other: Operand) -> Expr:
        return _operators().binary("matmul", other, self)

    def __and__(self, other: Operand) -> Expr:
        return _operators().binary("bitwise_and", self, other)

    def __rand__(self, other: Operand) -> Expr:
        return _operators().binary("bitwise_and", other, self)

    def __or__(self, other: Operand) -> Expr:
        return _operators().binary("bitwise_or", self, other)

    def __ror__(self, other: Operand) -> Expr:
        return _operators().binary("bitwise_or", other, self)

    def __xor__(self, other: Operand) -> Expr:
        return _operators().binary("bitwise_xor", self, other)

    def __rxor__(self, other: Operand) -> Expr:
        return _operators().binary("bitwise_xor", other, self)

    def __lshift__(self, other: Operand) -> Expr:
        return _operators().binary("left_shift", self, other)

    def __rlshift__(self, other: Operand) -> Expr:
        return _operators().binary("left_shift", other, self)

    def __rshift__(self, other: Operand) -> Expr:
        return _operators().binary("right_shift", self, other)

    def __rrshift__(self, other: Operand) -> Expr:
        return _operators().binary("right_shift", other, self)

    def __lt__(self, other: Operand) -> Expr:
        return _operators().binary("less", self, other)

    def __le__(self, other: Operand) -> Expr:
        return _operators().binary("less_equal", self, other)

    def __gt__(self, other: Operand) -> Expr:
        return _operators().binary("greater", self, other)

    def __ge__(self, other: Operand) -> Expr:
        return _operators().binary("greater_equal", self, other)

    def __eq__(self, other: object) -> Any:
        return _operators().binary("equal", self, other)

    def __ne__(self, other: object) -> Any:
        return _operators().binary("not_equal", self, other)

    def __neg__(self) -> Expr:
        return _operators().unary("negative", self)

    def __pos__(self) -> Expr:
        return self

    def __abs__(self) -> Expr:
        return _operators().unary("abs", self)

    def __round__(self, digits: int | None = None) -> Expr:
        if digits is not None:
            raise TypeError("round takes no digits here: multiply, round and divide")
        return _operators().unary("round", self)

    def __floor__(self) -> Expr:
        return _operators().unary("floor", self)

    def __ceil__(self) -> Expr:
        return _operators().unary("ceil", self)

    def __trunc__(self) -> Expr:
        return _operators().unary("trunc", self)

    def __invert__(self) -> Expr:
        return _operators().unary("bitwise_not", self)


def _operators() -> ModuleType:
    from relax_dialect.builder import operators

    return operators


def _indexing() -> ModuleType:
    from relax_dialect.builder import indexing

    return indexing


Value: TypeAlias = Expr | SSAValue | Operation
"""A value, as an expression, bare, or as an op with one result, which is emitted if it is in no block yet."""
