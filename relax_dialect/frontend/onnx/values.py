"""What the names of a graph stand for: tensors of ONNX's element types, quantised tensors, and sequences; and what is
wrong with a model, as errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias, cast

import numpy as np
import onnx
from numpy.typing import NDArray
from typing_extensions import override
from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute

from relax_dialect.builder import BlockBuilder, op
from relax_dialect.builder.expr import Expr
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, constant
from tir_dialect.dtypes import ElementType, from_numpy, numpy_dtype, range_in_i64
from tir_dialect.weights import MOST_IN_TEXT, converted


@dataclass(frozen=True)
class UnsupportedNode:
    """A node that cannot be imported."""

    name: str
    """The node's name, or that of its first output if it has none."""

    op_type: str
    """The operator, with its domain unless that is the default one."""

    reason: str

    def __str__(self) -> str:
        return f"{self.op_type} ({self.name}): {self.reason}"


class OnnxImportError(ImportError):
    """A model that cannot be imported: it is malformed, or has nodes that do not fit or are not supported.

    `nodes` are these, all that were found; it is empty if something else is wrong.
    """

    def __init__(self, message: str, nodes: Sequence[UnsupportedNode] = ()):
        super().__init__(message)
        self.nodes = tuple(nodes)

    @classmethod
    def unsupported(cls, nodes: Sequence[UnsupportedNode]) -> OnnxImportError:
        """The error that lists nodes."""
        what = "a node" if len(nodes) == 1 else f"{len(nodes)} nodes"
        return cls("\n  ".join([f"the model has {what} that cannot be imported:", *map(str, nodes)]), nodes)


class Refusal(Exception):
    """Why the node at hand cannot be imported; the importer adds which one it is."""


class UnknownRank(Refusal):
    """A result that may have one rank or another."""


class NeedsControlFlow(Exception):
    """The graph has branches or loops, so that it cannot be one dataflow region."""


class UseFunction(Exception):
    """A converter leaves a node to the body that the standard gives its operator."""


@cache
def element_type(elem_type: int) -> ElementType:
    """The dtype with a number of `TensorProto.DataType`; `Refusal` if there is none for it."""
    import numpy as np

    names = onnx.TensorProto.DataType
    if elem_type not in names.values() or elem_type == onnx.TensorProto.UNDEFINED:
        raise Refusal(f"the element type {elem_type} does not exist")
    try:
        return from_numpy(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(elem_type)))
    except (KeyError, TypeError, ValueError):
        raise Refusal(f"elements of type {names.Name(elem_type).lower()} are not supported") from None


def onnx_type(dtype: Attribute) -> int:
    """The number of a dtype in `TensorProto.DataType`."""
    return onnx.helper.np_dtype_to_tensor_dtype(to_numpy(dtype))


def to_numpy(dtype: Attribute) -> Any:
    """NumPy's dtype."""
    return numpy_dtype(dtype)


def integer_limits(dtype: Attribute) -> tuple[int, int]:
    """The least and the greatest number of an integer dtype below 64 bits."""
    low, high = range_in_i64(dtype) or (0, None)
    if high is None:
        raise Refusal(f"quantised numbers of {dtype} are not supported; the dtype has to have less than 64 bits")
    return low, high


Array: TypeAlias = NDArray[Any]
"""Elements that are known while importing: of NumPy's dtype, or objects if some are symbolic dimensions."""

MAX_EVALUATED = 4096
"""Up to so many elements are computed while importing: shapes and what is made of them, not weights."""


class Value:
    """A tensor of the graph: a value of the program, or elements that are known while importing.

    Elements become a constant, or an op that makes a tensor of dimensions, when they are first used as a value.
    """

    def __init__(
        self, expr: Expr | None, known: Array | None = None, dtype: Attribute | None = None, name: str | None = None
    ):
        self._expr = expr
        self._name = name
        self.known = None if known is None else plain(known, dtype)
        self._dtype = dtype

    @classmethod
    def of(cls, known: Array, dtype: Attribute | None = None, name: str | None = None) -> Value:
        """A tensor whose elements are known; symbolic ones need the dtype. Large ones become a weight of that name."""
        return cls(None, np.asarray(known), dtype, name if known.size > MOST_IN_TEXT else None)

    @property
    def dtype(self) -> Attribute:
        """The element type."""
        if self._dtype is not None:
            return self._dtype
        if self.known is not None:
            return from_numpy(self.known.dtype)
        info = self._info
        if info.dtype is None:
            raise Refusal("the element type of an operand is not known")
        return info.dtype

    @property
    def _info(self) -> TensorType:
        if self._expr is None or not isinstance(self._expr.type, TensorType):
            raise Refusal("an operand is no tensor")
        return self._expr.type

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The dimensions."""
        from tir_dialect.dims import constant

        if self.known is not None:
            return tuple(constant(int(dim)) for dim in self.known.shape)
        dims = self._info.known_dims
        if dims is None:
            raise Refusal("the shape of an operand is not known")
        return dims

    def expr(self, bb: BlockBuilder) -> Expr:
        """The value of the program."""
        if self._expr is None or (self.known is not None and not bb.is_visible(self._expr.value)):
            assert_known = cast("Array", self.known)
            if assert_known.dtype != object:
                self._expr = bb.const(assert_known, self.dtype, self._name)
            else:
                made = op.shape_to_tensor(cast("Sequence[Any]", assert_known.reshape(-1).tolist()))
                if assert_known.ndim != 1:
                    made = op.reshape(made, assert_known.shape)
                self._expr = made if str(self.dtype) == "i64" else op.astype(made, self.dtype)
        return self._expr

    @property
    def elements(self) -> Array | None:
        """The elements, if they are known and few enough to compute with."""
        return self.known if self.known is not None and self.known.size <= MAX_EVALUATED else None


class Dequantized(Value):
    """Numbers for which integers stand. What multiplies them may multiply integers; else they are made when used."""

    def __init__(self, operands: Sequence[Value | None], axis: int, make: Callable[[], Expr]):
        """`operands` are the integers, the scale and the zero point, which lie along `axis` if they are several."""
        super().__init__(None, dtype=f32)
        self.operands = (*operands, None)[:3]
        self.axis = axis
        self._make = make
        self._made: Expr | None = None

    @property
    def shape(self) -> tuple[Dim, ...]:
        """That of the integers."""
        integers = self.operands[0]
        return () if integers is None else integers.shape

    def expr(self, bb: BlockBuilder) -> Expr:
        """The numbers, made where they are wanted."""
        if self._made is None or not bb.is_visible(self._made.value):
            self._made = self._make()
        return self._made


COMPUTED = (
    "the operator does not compute with strings here; export what follows it (onnx.utils.extract_model) and compute it "
    "before"
)
"""Why a node of strings is refused, and what can be done."""

OTHER = "\0other"
"""Stands in a list for all strings that are not in it. No string of a model: it has a NUL."""


class Strings(Value):
    """Strings, of which a program has the indices in a list that is known while importing, as `i64`."""

    def __init__(self, at: Expr, vocabulary: tuple[str, ...]):
        super().__init__(at)
        self.at = at
        self.vocabulary = vocabulary

    @property
    @override
    def dtype(self) -> Attribute:
        raise Refusal(COMPUTED)

    @override
    def expr(self, bb: BlockBuilder) -> Expr:
        raise Refusal(COMPUTED)


class Texts(Strings):
    """Strings, of which a program has the indices in an array that only it knows, an object of the host."""

    def __init__(self, at: Expr, texts: Expr):
        super().__init__(at, ())
        self.texts = texts


def as_strings(array: Array, bb: BlockBuilder) -> Strings | None:
    """A constant array of strings; `None` for other arrays."""
    if array.dtype != object or any(not isinstance(each, str) for each in array.reshape(-1).tolist()):
        return None
    names = list(dict.fromkeys(array.reshape(-1).tolist()))
    positions = np.array([names.index(each) for each in array.reshape(-1).tolist()], np.int64)
    return Strings(bb.const(positions.reshape(array.shape)), tuple(names))


class ClassMap(Value):
    """For each sample a map from labels to numbers: a matrix, and what its columns stand for."""

    def __init__(self, scores: Expr, labels: tuple[str, ...]):
        super().__init__(scores)
        self.labels = labels


def plain(known: Array, dtype: Attribute | None) -> Array:
    """Elements as numbers of NumPy's dtype, unless some are symbolic."""
    if known.dtype != object:
        return known if dtype is None else converted(known, dtype)
    numbers = [_number(each) for each in known.reshape(-1).tolist()]
    if any(isinstance(each, Dim) for each in numbers):
        made = np.empty(len(numbers), object)
        made[:] = numbers
        return made.reshape(known.shape)
    return np.array(numbers, to_numpy(dtype) if dtype is not None else np.int64).reshape(known.shape)


def _number(element: Any) -> Any:
    if isinstance(element, Dim) and element.constant_value is not None:
        return element.constant_value
    return element


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


class Absent(Value):
    """An optional value that is not there, which is known while importing."""

    def __init__(self):
        super().__init__(None)

    @property
    @override
    def dtype(self) -> Attribute:
        raise Refusal(_ABSENT)

    @property
    @override
    def shape(self) -> tuple[Dim, ...]:
        raise Refusal(_ABSENT)

    @override
    def expr(self, bb: BlockBuilder) -> Expr:
        raise Refusal(_ABSENT)


class Perhaps(Value):
    """An optional value of which only the program knows whether it is there."""

    def __init__(self, value: Value, there: Expr):
        super().__init__(None)
        self.value = value
        self.there = there
        """A boolean scalar."""

    @property
    @override
    def dtype(self) -> Attribute:
        raise Refusal(_PERHAPS)

    @property
    @override
    def shape(self) -> tuple[Dim, ...]:
        raise Refusal(_PERHAPS)

    @override
    def expr(self, bb: BlockBuilder) -> Expr:
        raise Refusal(_PERHAPS)


_PERHAPS = "an optional value that may not be there is used otherwise than by OptionalHasElement and OptionalGetElement"

_ABSENT = "an optional value that is not there is used; only whether it is there can be asked while importing"


def like(model: Value | None, value: Expr) -> Value:
    """A value of the program as what another one is: a tensor, or a sequence."""
    return TensorList.of_stack(value) if isinstance(model, TensorList) else Value(value)
