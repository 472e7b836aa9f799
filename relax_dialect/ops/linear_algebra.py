"""Linear algebra, and scaled dot-product attention."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import I64, Float64Type, FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def, var_operand_def

from relax_dialect.inference import Inference
from relax_dialect.ops.fields import integer, number
from relax_dialect.ops.layouts import Layout, layout, require_layout, require_rank
from relax_dialect.ops.operator import Operator
from relax_dialect.scalars import Domain
from relax_dialect.struct_info.types import Shape, TensorType
from tir_dialect.dims import Dim, maximum
from tir_dialect.dtypes import is_bool
from tir_dialect.ops.assembly_format import op_definition


@op_definition
class MatmulOp(Operator):
    """The matrix product, batched over leading dimensions that broadcast, as NumPy's `matmul`.

    ```mlir
    %0 = relax.matmul %x, %y
    %1 = relax.matmul %x, %y out_dtype = f32
    ```

    A vector on the left is a row, on the right a column, and its dimension is not in the result. With `out_dtype`
    products are summed in that dtype. Mirrors TVM `relax.matmul`.

    C1: the dtypes are equal, or integers and there is an `out_dtype`.
    C2: neither operand is a scalar.
    C3: the contracted dimensions are equal.
    C4: the leading dimensions broadcast.
    """

    name = "relax.matmul"

    out_dtype = opt_prop_def(Attribute)
    x = operand_def(TensorType)
    y = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, y: SSAValue | Operation, out_dtype: Attribute | None = None):
        super().__init__([x, y], {"out_dtype": out_dtype})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        dtype = inference.product_dtype()  # C1
        shape = _matmul_shape(inference, inference.tensor(0).dims, inference.tensor(1).dims)
        return (TensorType(shape, dtype, inference.common_device()),)


def _matmul_shape(inference: Inference, x: Shape, y: Shape) -> Shape:
    if (x is not None and len(x) == 0) or (y is not None and len(y) == 0):
        inference.fail("expected operands of rank 1 or more, got a scalar")  # C2
    if x is None or y is None:
        return None
    row, inner = x[-2:-1], x[-1]
    column = y[-1:] if len(y) > 1 else ()
    inference.require_equal(inner, y[-2] if len(y) > 1 else y[0], "equal contracted dimensions")  # C3
    batch = inference.broadcast_shapes(x[:-2], y[:-2])  # C4
    return (*(batch or ()), *row, *column)


@op_definition
class OuterOp(Operator):
    """The products of every element of one vector with every element of another.

    ```mlir
    %0 = relax.outer %x, %y
    ```

    C1: the dtypes are equal.
    C2: both operands have rank 1.
    """

    name = "relax.outer"

    x = operand_def(TensorType)
    y = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, y: SSAValue | Operation):
        super().__init__([x, y])

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        dtype = inference.common_dtype((0, 1))  # C1
        (rows,), (columns,) = (require_rank(inference, index, 1) for index in (0, 1))  # C2
        return (TensorType((rows, columns), dtype, inference.common_device()),)


@op_definition
class EinsumOp(Operator):
    """Products of elements with equal subscripts, summed over the subscripts that are not in the result.

    ```mlir
    %0 = relax.einsum %x, %y subscripts = "bij,bjk->bik"
    ```

    A subscript is a letter. Without `->`, the result has the subscripts that occur once, in alphabetical order. Mirrors
    NumPy's `einsum` but for ellipses, which a program writes as letters.

    C1: the dtypes are equal.
    C2: there is one group of letters per operand, and the result's letters are theirs, each once.
    C3: operands have as many dimensions as letters.
    C4: dimensions of one operand with equal letters are equal.
    C5: dimensions of different operands with equal letters broadcast.
    """

    name = "relax.einsum"

    subscripts = prop_def(StringAttr)
    inputs = var_operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, inputs: Sequence[SSAValue | Operation], subscripts: str):
        super().__init__(inputs, {"subscripts": StringAttr(subscripts)})

    @property
    def letters(self) -> tuple[list[str], str]:
        """The letters of each operand and of the result."""
        return parse_subscripts(Inference(type(self), self.operand_types, self.properties), self.subscripts.data)

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        groups, output = parse_subscripts(inference, inference.string("subscripts"))  # C2
        indices = range(len(inference.operand_types))
        dtype = inference.common_dtype(indices)  # C1
        dims: dict[str, Dim | None] = {}
        for index, letters in enumerate(groups):
            own: dict[str, Dim | None] = {}
            for letter, dim in zip(letters, require_rank(inference, index, len(letters)), strict=True):  # C3
                own[letter] = inference.require_equal(own.get(letter), dim, f"equal dimensions {letter}")  # C4
            for letter, dim in own.items():
                dims[letter] = inference.broadcast_dim(dims[letter], dim) if letter in dims else dim  # C5
        return (TensorType([dims[letter] for letter in output], dtype, inference.common_device()),)


def parse_subscripts(inference: Inference, text: str) -> tuple[list[str], str]:
    """The letters of each operand and of the result; fails if they make no sense."""
    inputs, arrow, output = text.replace(" ", "").partition("->")
    groups = inputs.split(",")
    letters = "".join(groups)
    if not arrow:
        output = "".join(sorted(letter for letter in set(letters) if letters.count(letter) == 1))
    wrong = not (letters + output).isalpha() and letters + output != ""
    if wrong or len(groups) != len(inference.operand_types) or not set(output) <= set(letters):
        count = len(inference.operand_types)
        inference.fail(f"subscripts expected letters for {count} operands and a result over them, got {text}")
    if len(set(output)) != len(output):
        inference.fail(f"subscripts expected each letter of the result once, got {output}")
    return groups, output


CAUSAL_MASKS = ("TopLeft", "BottomRight")
LAYOUT = "BSHD"
"""Batch, sequence, head, feature."""
LAYOUTS = ("q_layout", "k_layout", "v_layout", "out_layout")


class AttentionBase(Operator, ABC):
    """`softmax(q @ transpose(k) * scale + bias) @ v` for every batch and head.

    Operands have the dimensions batch, sequence, head, feature, or these in the order of a layout, such as `BHSD`.
    Where there are fewer heads of keys and values, each serves as many consecutive heads of queries. The scale is `1 /
    sqrt(features)` if nothing is said. With a `softcap` the products become `softcap * tanh(product * scale / softcap)`
    before the bias. A causal mask lets a query see the keys up to its own position, counted from the start (`TopLeft`)
    or from the end (`BottomRight`) of both sequences; with `window_size` only the last so many of them. A key without
    weight, such as one that is not seen, does not count, even if its value is infinite or NaN. `sinks` are at most one
    operand: for each head of queries a score that takes part in the softmax and has no value. Mirrors TVM
    `relax.nn.attention`, which has no layouts, softcap or sinks.

    C1: the dtypes are equal and floating-point.
    C2: queries, keys and values have rank 4.
    C3: batches are equal; keys and values have equal lengths and heads; queries and keys have equal features.
    C4: the heads of queries are a multiple of those of keys.
    C5: the causal mask is `TopLeft` or `BottomRight`.
    C6: a window size is at least 1 and comes with a causal mask.
    C7: layouts are permutations of `BSHD`.
    C8: a softcap is positive.
    C9: sinks have the dtype of the queries and the dimension of their heads.
    """

    SINKS: ClassVar[int]
    """The number of operands before the sinks."""

    scale = opt_prop_def(FloatAttr[Float64Type])
    softcap = opt_prop_def(FloatAttr[Float64Type])
    causal_mask = opt_prop_def(StringAttr)
    window_size = opt_prop_def(IntegerAttr[I64])
    q_layout = opt_prop_def(StringAttr)
    k_layout = opt_prop_def(StringAttr)
    v_layout = opt_prop_def(StringAttr)
    out_layout = opt_prop_def(StringAttr)

    @property
    def layouts(self) -> tuple[Layout, Layout, Layout, Layout]:
        """The layouts of queries, keys, values and result, also when they are the default."""
        q, k, v, out = (LAYOUT if each is None else each.data for each in self._given_layouts)
        return Layout(q), Layout(k), Layout(v), Layout(out)

    @property
    def sink(self) -> SSAValue | None:
        """For each head of queries a score that has no value."""
        return next(iter(self.operands[self.SINKS :]), None)

    @property
    def _given_layouts(self) -> tuple[StringAttr | None, ...]:
        return self.q_layout, self.k_layout, self.v_layout, self.out_layout

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        inference.common_dtype(range(3))  # C1
        inference.require_domain(0, Domain.FLOAT)  # C1
        q, k, v = cls.shapes(inference)  # C2, C7
        batch = inference.common_dim((q[0], k[0], v[0]), "equal batches")  # C3
        inference.require_equal(k[1], v[1], "keys and values of equal lengths")  # C3
        inference.require_equal(k[2], v[2], "keys and values with equal heads")  # C3
        inference.require_equal(q[3], k[3], "queries and keys with equal features")  # C3
        _require_heads(inference, q[2], k[2])  # C4
        _require_mask(inference)  # C5, C6
        cap = inference.get("softcap", FloatAttr)
        if cap is not None and not cap.value.data > 0:
            inference.fail(f"expected a softcap greater than 0, got {cap.value.data}")  # C8
        cls._require_sinks(inference, q[2])  # C9
        dims = dict(zip(LAYOUT, (batch, q[1], q[2], v[3]), strict=True))
        return (inference.tensor(0).with_shape(layout(inference, "out_layout", LAYOUT).arrange(dims)),)  # C7

    @classmethod
    def shapes(cls, inference: Inference) -> list[tuple[Dim | None, ...]]:
        """The dimensions of queries, keys and values: batch, sequence, head, feature."""
        found: list[tuple[Dim | None, ...]] = []
        for index, name in enumerate(LAYOUTS[:3]):
            order = layout(inference, name, LAYOUT)  # C7
            found.append(order.pick(require_layout(inference, index, order), LAYOUT))  # C2
        return found

    @classmethod
    def _require_sinks(cls, inference: Inference, heads: Dim | None) -> None:
        count = len(inference.operand_types)
        if count > cls.SINKS + 1:
            inference.fail(f"expected at most {cls.SINKS + 1} operands, got {count}")
        if count > cls.SINKS:
            inference.common_dtype((0, cls.SINKS))
            (sinks,) = require_rank(inference, cls.SINKS, 1)
            inference.require_equal(sinks, heads, f"operand #{cls.SINKS} with a sink for each head of queries")


def _require_heads(inference: Inference, queries: Dim | None, keys: Dim | None) -> None:
    if queries is None or keys is None:
        return
    if keys.constant_value:
        inference.require_divisible(queries, keys.constant_value, f"heads of queries in multiples of {keys}")
    else:
        whole = keys * heads_of_queries(queries, keys)
        inference.require_equal(queries, whole, "heads of queries in multiples of those of keys")


def heads_of_queries(queries: Dim, keys: Dim) -> Dim:
    """How many heads of queries each head of keys and values serves; 0 without any of either."""
    if keys.constant_value == 0 or (queries % keys).constant_value != 0:
        return queries // maximum(keys, 1)
    return queries // keys


def _require_mask(inference: Inference) -> None:
    mask, size = inference.optional_string("causal_mask"), inference.optional_integer("window_size")
    if mask is not None and mask not in CAUSAL_MASKS:
        inference.fail(f"causal_mask expected one of {', '.join(CAUSAL_MASKS)}, got {mask}")
    if size is not None and (size < 1 or mask is None):
        inference.fail(f"expected a window size of at least 1 with a causal mask, got {size}")


def _properties(
    scale: float | None,
    softcap: float | None,
    causal_mask: str | None,
    window_size: int | None,
    layouts: Sequence[str | None],
) -> dict[str, Attribute | None]:
    texts = {"causal_mask": causal_mask, **dict(zip(LAYOUTS, layouts, strict=True))}
    return {
        "scale": None if scale is None else number(scale),
        "softcap": None if softcap is None else number(softcap),
        "window_size": None if window_size is None else integer(window_size),
        **{name: None if text is None else StringAttr(text) for name, text in texts.items()},
    }


@op_definition
class AttentionOp(AttentionBase):
    """Attention without bias.

    ```mlir
    %0 = relax.nn.attention %q, %k, %v scale = 0.125 causal_mask = "TopLeft"
    %1 = relax.nn.attention %q, %k, %v, %sinks softcap = 30.0
    ```
    """

    name = "relax.nn.attention"

    q = operand_def(TensorType)
    k = operand_def(TensorType)
    v = operand_def(TensorType)
    sinks = var_operand_def(TensorType)
    result = result_def(TensorType)
    SINKS: ClassVar[int] = 3

    def __init__(
        self,
        q: SSAValue | Operation,
        k: SSAValue | Operation,
        v: SSAValue | Operation,
        sinks: Sequence[SSAValue | Operation] = (),
        *,
        scale: float | None = None,
        softcap: float | None = None,
        causal_mask: str | None = None,
        window_size: int | None = None,
        q_layout: str | None = None,
        k_layout: str | None = None,
        v_layout: str | None = None,
        out_layout: str | None = None,
    ):
        layouts = (q_layout, k_layout, v_layout, out_layout)
        super().__init__([q, k, v, *sinks], _properties(scale, softcap, causal_mask, window_size, layouts))


@op_definition
class AttentionBiasOp(AttentionBase):
    """Attention with a bias, whose dimensions broadcast to batch, head, query and key.

    A bias of bool says which keys are seen. The others are left out, as by a causal mask, or have the score
    `masked_score`. A bias of minus infinity is the score itself. With only such scores, and no sink, a query gives no
    number.

    ```mlir
    %0 = relax.nn.attention_bias %q, %k, %v, %bias
    %1 = relax.nn.attention_bias %q, %k, %v, %mask masked_score = -1.000000e+09
    ```

    C1: the bias broadcasts to batch, heads, length of queries and length of keys.
    C2: the bias has the dtype of the queries, or is of bool.
    C3: a score for what is masked comes with a bias of bool.
    """

    name = "relax.nn.attention_bias"

    q = operand_def(TensorType)
    k = operand_def(TensorType)
    v = operand_def(TensorType)
    bias = operand_def(TensorType)
    sinks = var_operand_def(TensorType)
    masked_score = opt_prop_def(FloatAttr[Float64Type])
    result = result_def(TensorType)
    SINKS: ClassVar[int] = 4

    def __init__(
        self,
        q: SSAValue | Operation,
        k: SSAValue | Operation,
        v: SSAValue | Operation,
        bias: SSAValue | Operation,
        sinks: Sequence[SSAValue | Operation] = (),
        *,
        scale: float | None = None,
        softcap: float | None = None,
        causal_mask: str | None = None,
        window_size: int | None = None,
        masked_score: float | None = None,
        q_layout: str | None = None,
        k_layout: str | None = None,
        v_layout: str | None = None,
        out_layout: str | None = None,
    ):
        layouts = (q_layout, k_layout, v_layout, out_layout)
        properties = _properties(scale, softcap, causal_mask, window_size, layouts)
        properties["masked_score"] = None if masked_score is None else number(masked_score)
        super().__init__([q, k, v, bias, *sinks], properties)

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        (result,) = super().infer(inference)
        bias, (q, k, _) = inference.tensor(3), cls.shapes(inference)
        if bias.dtype is None or not is_bool(bias.dtype):
            inference.common_dtype((0, 3))  # C2
        if inference.get("masked_score", FloatAttr) is not None and bias.dtype is not None and not is_bool(bias.dtype):
            inference.fail(f"a masked score expected a bias of bool, got {bias.dtype}")  # C3
        if bias.dims is not None:
            if len(bias.dims) > 4:
                inference.fail(f"operand #3 expected rank 4 or less, got {bias}")  # C1
            target = (q[0], q[2], q[1], k[1])
            for old, new in zip(reversed(bias.dims), reversed(target), strict=False):
                inference.require_expands(old, new)  # C1
        return (result,)
