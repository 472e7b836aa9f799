"""Linear algebra."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def, var_operand_def

from relax_dialect.inference import Inference
from relax_dialect.ops.layouts import require_rank
from relax_dialect.ops.operator import Operator
from relax_dialect.struct_info.base import Shape
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim
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
