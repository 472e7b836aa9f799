"""Random statements without control flow: operators, casts, tuples, calls of kernels.

Floats stay in [-1, 1] and are only combined by functions without jumps, so that modes of execution that round in other
ways give nearly equal results. Integers and truth values are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relax_dialect.builder import Expr, op
from relax_dialect.builder.emitter import as_dtype
from relax_dialect.struct_info.types import ObjectType, TensorType
from tests.strategies.relax_functions import COPY, SAME, fill_and_copy, halve, two_results
from tests.strategies.relax_values import Item, Spec, Tensor, Tuple, Values
from tir_dialect import te

UNARY: dict[str, tuple[Callable[[Expr], Expr], ...]] = {
    "f32": (op.negative, op.abs, op.tanh, op.nn.relu, op.sigmoid, op.sin, lambda x: op.exp(x) * 0.25),
    "i64": (op.negative, op.abs, op.bitwise_not, lambda x: x // 3, lambda x: x % 5),
    "i1": (op.logical_not,),
}
BINARY: dict[str, tuple[Callable[[Expr, Expr], Expr], ...]] = {
    "f32": (op.multiply, op.maximum, op.minimum, lambda x, y: (x + y) * 0.5, lambda x, y: (x - y) * 0.5),
    "i64": (op.add, op.subtract, op.multiply, op.maximum, op.minimum, op.bitwise_and, op.bitwise_or, op.bitwise_xor),
    "i1": (op.logical_and, op.logical_or, op.logical_xor),
}
COMPARISONS: tuple[Callable[[Expr, Expr], Expr], ...] = (op.less, op.equal, op.greater_equal, op.not_equal)
KERNELS: dict[str, tuple[Callable[[Any, Any], Any], ...]] = {
    "f32": (lambda x, y: te.maximum(x, y * 0.5), lambda x, y: (x - y) * 0.5),
    "i64": (lambda x, y: x + y, lambda x, y: te.minimum(x, y) - 1),
    "i1": (te.logical_and, te.logical_or),
}


class Statements(Values):
    """Statements that may stand in a dataflow region; each makes a value visible."""

    def unary(self) -> Item:
        """A function of every element."""
        x = self.tensor()
        return self.add(Tensor(self.source.choice(UNARY[x.dtype])(self.with_dtype(x)), x.dtype, x.shape))

    def with_dtype(self, x: Tensor) -> Expr:
        """The value of `x` with a type that says its dtype, as a number takes the dtype of what it meets."""
        info = x.expr.type
        if not isinstance(info, TensorType) or info.dtype is not None:
            return x.expr
        return self.bb.match_cast(x.expr, info.with_dtype(as_dtype(x.dtype)))

    def binary(self) -> Item:
        """A function of the elements of two tensors that broadcast."""
        x = self.tensor()
        y = self.partner(x)
        return self.add(
            Tensor(self.source.choice(BINARY[x.dtype])(self.with_dtype(x), y.expr), x.dtype, broadcast(x, y))
        )

    def compare(self) -> Item:
        """A truth value per element."""
        x = self.tensor("i64")
        y = self.partner(x) if self.tensors("i64") else x
        return self.add(Tensor(self.source.choice(COMPARISONS)(x.expr, y.expr), "i1", broadcast(x, y)))

    def convert(self) -> Item:
        """Truth values as numbers."""
        x = self.tensor("i1")
        dtype = self.source.choice(("f32", "i64"))
        return self.add(Tensor(x.expr.astype(dtype), dtype, x.shape))

    def where(self) -> Item:
        """Elements of one tensor or the other; the condition has the shape of one of them, or none."""
        x = self.tensor()
        y = self.partner(x)
        shape = broadcast(x, y)
        condition = self.of(Spec("i1", self.source.choice(((), shape))))
        return self.add(Tensor(op.where(condition.expr, x.expr, y.expr), x.dtype, shape))

    def matmul(self) -> Item:
        """A matrix product; the factor is new if no tensor fits."""
        x = self.tensor("f32")
        if not 1 <= len(x.shape) <= 3:
            return self.unary()
        y = self.of(Spec("f32", (x.shape[-1], self.source.integer(1, 3))))
        scaled = (self.with_dtype(x) @ y.expr) * (1 / max(1, x.shape[-1]))
        return self.add(Tensor(scaled, "f32", (*x.shape[:-1], y.shape[-1])))

    def reduce(self) -> Item:
        """A sum, or the greatest element, along some axis or all."""
        x = self.source.choice([each for each in self.tensors() if each.dtype != "i1"] or [self.tensor("f32")])
        axes = None if not x.shape or self.source.flag() else [self.source.integer(0, len(x.shape) - 1)]
        keepdims = self.source.flag()
        count = max(1, int(np.prod([x.shape[axis] for axis in axes or range(len(x.shape))])))
        if self.source.flag() and 0 not in x.shape:
            expr = op.max(x.expr, axes, keepdims=keepdims)
        else:
            expr = op.sum(self.with_dtype(x), axes, keepdims=keepdims)
            expr = expr * (1 / count) if x.dtype == "f32" else expr
        shape = np.zeros(x.shape).sum(None if axes is None else tuple(axes), keepdims=keepdims).shape
        return self.add(Tensor(expr, x.dtype, shape))

    # Elements in other positions

    def move(self) -> Item:
        """The same elements under another shape."""
        x = self.tensor()
        rank = len(x.shape)
        kind = self.source.choice(("flatten", "transpose", "expand", "reshape", "squeeze"))
        if kind == "flatten":
            return self.add(Tensor(op.flatten(x.expr), x.dtype, (int(np.prod(x.shape)),)))
        if kind == "transpose":
            return self.add(Tensor(op.permute_dims(x.expr), x.dtype, x.shape[::-1]))
        if kind == "reshape":
            shape = x.shape[::-1]
            return self.add(Tensor(op.reshape(x.expr, [self.dim(size) for size in shape]), x.dtype, shape))
        if kind == "squeeze" and 1 in x.shape:
            axis = x.shape.index(1)
            return self.add(Tensor(op.squeeze(x.expr, [axis]), x.dtype, (*x.shape[:axis], *x.shape[axis + 1 :])))
        axis = self.source.integer(0, rank)
        return self.add(Tensor(op.expand_dims(x.expr, [axis]), x.dtype, (*x.shape[:axis], 1, *x.shape[axis:])))

    def join(self) -> Item:
        """Two tensors one after the other, or on each other."""
        x = self.tensor()
        y = self.of(Spec(x.dtype, x.shape))
        axis = self.source.integer(0, max(0, len(x.shape) - 1))
        if not x.shape or self.source.flag():
            return self.add(Tensor(op.stack([x.expr, y.expr], axis), x.dtype, np.stack([zeros(x)] * 2, axis).shape))
        return self.add(Tensor(op.concat([x.expr, y.expr], axis), x.dtype, np.concatenate([zeros(x)] * 2, axis).shape))

    def cut(self) -> Item:
        """Some of the elements along the first axis."""
        x = self.tensor()
        if not x.shape:
            return self.unary()
        index = slice(self.source.integer(0, 2), self.source.choice((None, -1)), self.source.integer(1, 2))
        return self.add(Tensor(x.expr[index], x.dtype, zeros(x)[index].shape))

    def scan(self) -> Item:
        """Running sums, or the elements in order, along some axis: nothing that is fused with others."""
        x = self.tensor("f32")
        if not x.shape:
            return self.unary()
        axis = self.source.integer(0, len(x.shape) - 1)
        if self.source.flag():
            return self.add(Tensor(op.sort(x.expr, axis=axis), "f32", x.shape))
        summed = op.cumsum(self.with_dtype(x), axis=axis) * (1 / max(1, x.shape[axis]))
        return self.add(Tensor(summed, "f32", x.shape))

    def scatter(self) -> Item:
        """A tensor with a slice replaced by something that is computed; all sizes are known."""
        x = self.tensor()
        if not x.shape:
            return self.unary()
        axis = self.source.integer(0, len(x.shape) - 1)
        size = x.shape[axis]
        start = self.source.integer(0, min(1, size))
        end = self.source.integer(start, size)
        base = self.bb.match_cast(x.expr, TensorType(list(x.shape), as_dtype(x.dtype)))
        if self.source.flag():
            base = self.source.choice(UNARY[x.dtype])(base)
        index = (*[slice(None)] * axis, slice(start, end))
        part = self.source.choice((op.sort, lambda y, axis: op.flip(y, axis=axis), lambda y, axis: y))(
            self.source.choice(UNARY[x.dtype])(base[index]), axis=axis
        )
        return self.add(Tensor(op.slice_scatter(base, part, start, end, 1, axis), x.dtype, x.shape))

    def fill(self) -> Item:
        """A tensor of dimensions that are known here."""
        return self.add(self.filled(Spec(self.source.choice(("f32", "i64", "i1")), self.small_shape())))

    def expand(self) -> Item:
        """A tensor repeated along a new axis."""
        x = self.tensor()
        shape = (self.source.integer(0, 2), *x.shape)
        return self.add(Tensor(op.broadcast_to(x.expr, [self.dim(size) for size in shape]), x.dtype, shape))

    def distinct(self) -> Item:
        """The distinct values of a tensor whose elements are known; only the run time knows how many."""
        known = [tensor for tensor in self.tensors("i64") if tensor.data is not None]
        if not known:
            return self.unary()
        x = self.source.choice(known)
        (values,) = op.unique(x.expr)
        return self.add(Tensor(values, "i64", np.unique(x.data).shape))

    def small_shape(self) -> tuple[int, ...]:
        """A shape of rank 0 to 2: of sizes that symbols have, or others."""
        sizes = [2, 0, 1, 3, *(self.sizes[name] for name in self.bb.symbols if name in self.sizes)]
        return tuple(self.source.choice(sizes) for _ in range(self.source.integer(0, 2)))

    # Types

    def cast(self) -> Item:
        """A tensor of which more or less is said: constants, symbols that are visible or new, or nothing."""
        x = self.tensor()
        if self.source.flag():
            unknown = self.bb.match_cast(x.expr, self.source.choice((TensorType(), ObjectType())))
            return self.add(Tensor(self.bb.match_cast(unknown, self.type_of(x)), x.dtype, x.shape))
        return self.add(Tensor(self.bb.match_cast(x.expr, self.type_of(x)), x.dtype, x.shape))

    def forget(self) -> Item:
        """A tensor of which the rank, the dtype, or both are not known from here on."""
        x = self.tensor()
        ranked = TensorType([None] * len(x.shape))
        less = self.source.choice((TensorType(), TensorType(None, as_dtype(x.dtype)), ranked))
        unknown = self.bb.call_pure_packed(SAME, x.expr, out=less)
        return self.add(Tensor(unknown, x.dtype, x.shape))

    def type_of(self, x: Tensor | Spec, *, binds: bool = True) -> TensorType:
        """What may be said of a tensor: each dimension in some words, not at all, or by a symbol that is then bound."""
        dims: list[int | str | None] = []
        for size in x.shape:
            kind = self.source.integer(0, 2 if binds else 1)
            dims.append(self.dim(size) if kind == 0 else None if kind == 1 else self.new_symbol(size))
        return TensorType(dims, as_dtype(x.dtype))

    def group(self) -> Item:
        """A tuple of values, perhaps of tuples."""
        fields: list[Item] = [self.tensor() for _ in self.source.repeats(2)]
        if self.tuples() and self.source.flag():
            fields.append(self.source.choice(self.tuples()))
        return self.add(Tuple(op.tuple(*(field.expr for field in fields)), tuple(fields)))

    def field(self) -> Item:
        """A field of a tuple."""
        if not self.tuples():
            self.group()
        tuple_ = self.source.choice(self.tuples())
        index = self.source.integer(0, len(tuple_.fields) - 1)
        field = tuple_.fields[index]
        expr = tuple_.expr[index]
        made = Tensor(expr, field.dtype, field.shape) if isinstance(field, Tensor) else Tuple(expr, field.fields)
        return self.add(made)

    def kernel(self) -> Item:
        """A call of a PrimFunc made of a tensor expression."""
        x = self.tensor()
        y = self.of(Spec(x.dtype, x.shape))
        body = self.source.choice(KERNELS[x.dtype])

        def elementwise(x: te.Tensor, y: te.Tensor) -> te.Tensor:
            return te.compute(x.shape, lambda *i: body(x[i], y[i]), "kernel")

        made = self.bb.emit_te(elementwise, self._with_rank(x), self._with_rank(y))
        assert isinstance(made, Expr)
        return self.add(Tensor(made, x.dtype, x.shape))

    def two_results(self) -> Item:
        """Results that one block of a PrimFunc stores, of vectors that may die there."""
        x = self.tensor("f32")
        made = op.cumsum(op.flatten(self.with_dtype(x))) * (1 / max(1, int(np.prod(x.shape))))
        length = self.new_symbol(int(np.prod(x.shape)))
        a = self.bb.match_cast(made, (length,)) * 0.5
        b = self.source.choice((op.sort, op.tanh))(a)
        info = TensorType([length], as_dtype("f32"))
        results = self.bb.call_tir(two_results(), [a, b], [info, info])
        for result in results:
            item = self.add(Tensor(result, "f32", (int(np.prod(x.shape)),)))
        return item

    def part(self) -> Item:
        """A PrimFunc that fills its result and then copies something that is computed into a part of it."""
        x = self.tensor("f32")
        value = op.mean(self.with_dtype(x)) if 0 not in x.shape else self.filled(Spec("f32", ())).expr
        square = self.source.choice((op.tanh, op.sort))(op.broadcast_to(value, [2, 2]))
        return self.add(
            Tensor(self.bb.call_tir(fill_and_copy(), [square], TensorType([2, 5], as_dtype("f32"))), "f32", (2, 5))
        )

    def _with_rank(self, x: Tensor) -> Expr:
        """The value of `x` with a type that says its rank and dtype."""
        info = x.expr.type
        if isinstance(info, TensorType) and info.dims is not None and info.dtype is not None:
            return x.expr
        return self.bb.match_cast(x.expr, TensorType([None] * len(x.shape), as_dtype(x.dtype)))

    def packed(self) -> Item:
        """A packed function: one that gives its argument back, or one that writes a copy into its destination."""
        x = self.tensor()
        shape = x.expr.shape
        if self.source.flag() and shape is not None and None not in shape:
            copy = self.bb.call_dps_packed(COPY, [x.expr], TensorType(shape, as_dtype(x.dtype)))
            return self.add(Tensor(copy, x.dtype, x.shape))
        return self.add(
            Tensor(self.bb.call_pure_packed(SAME, x.expr, out=self.type_of(x, binds=False)), x.dtype, x.shape)
        )

    def in_place(self) -> Item:
        """A PrimFunc that writes its result into a tensor that nobody else sees."""
        x = self.tensor("f32")
        length = int(np.prod(x.shape))
        fresh = op.flatten(self.source.choice(UNARY["f32"])(self.with_dtype(x)))
        if fresh.shape is None or None in fresh.shape:
            fresh = self.bb.match_cast(fresh, (self.new_symbol(length),))
        (made,) = self.bb.call_tir_inplace(halve(), [fresh], [0], [fresh.type])
        return self.add(Tensor(made, "f32", (length,)))


def zeros(x: Tensor) -> np.ndarray:
    """An array of the tensor's shape."""
    return np.zeros(x.shape)


def broadcast(x: Tensor, y: Tensor) -> tuple[int, ...]:
    """The shape to which both broadcast."""
    return np.broadcast_shapes(x.shape, y.shape)
