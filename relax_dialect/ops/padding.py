"""Padding."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, StringAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import operand_def, prop_def, result_def

from relax_dialect.inference import DEFAULT_PROVER, ONE, ZERO, Inference
from relax_dialect.ops.fields import ExactNumber, exact_number, integers, number
from relax_dialect.ops.operator import Operator
from relax_dialect.struct_info.types import TensorType
from tir_dialect.ops.assembly_format import op_definition

PAD_MODES = ("constant", "reflect", "replicate", "circular")


@op_definition
class PadOp(Operator):
    """More elements before and after each dimension: `pad_width` has two numbers per dimension, before and after.

    ```mlir
    %0 = relax.nn.pad %x pad_width = [0, 0, 1, 2] pad_value = 0.5
    %1 = relax.nn.pad %x pad_width = [0, 0, 1, 1] mode = "reflect"
    ```

    The new elements are `pad_value` (`constant`), mirrored without the edge (`reflect`), the edge (`replicate`), or
    those at the other end (`circular`). A negative number takes elements away, before others are mirrored or repeated.

    C1: there are two numbers per dimension.
    C2: the mode is one of the four.
    C3: no dimension becomes negative; nor does one that is mirrored or repeated where elements are taken away.
    C4: a dimension that is mirrored or repeated has an element left.
    """

    name = "relax.nn.pad"

    pad_width = prop_def(DenseArrayBase.constr(i64))
    mode = prop_def(StringAttr, default_value=StringAttr("constant"))
    pad_value = prop_def(ExactNumber, default_value=number(0.0))
    x = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(
        self, x: SSAValue | Operation, pad_width: Sequence[int], mode: str = "constant", pad_value: float = 0.0
    ):
        properties = {"pad_width": integers(pad_width), "mode": StringAttr(mode), "pad_value": exact_number(pad_value)}
        super().__init__([x], properties)

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x, widths, mode = inference.tensor(0), inference.integers("pad_width"), inference.string("mode")
        if len(widths) % 2 or (x.rank is not None and len(widths) != 2 * x.rank):
            expected = "an even number of" if x.rank is None else str(2 * x.rank)
            inference.fail(f"expected {expected} pad widths, got {len(widths)}")  # C1
        if mode not in PAD_MODES:
            inference.fail(f"mode expected one of {', '.join(PAD_MODES)}, got {mode}")  # C2
        pairs = list(zip(widths[::2], widths[1::2], strict=True))
        if x.dims is None:
            return (x.with_shape((None,) * len(pairs)),)
        shape = [None if dim is None else dim + sum(pair) for dim, pair in zip(x.dims, pairs, strict=True)]
        for old, pair in zip(x.dims, pairs, strict=True):
            cut = sum(pair) if mode == "constant" else sum(min(width, 0) for width in pair)
            left = None if old is None else old + min(cut, 0)
            if cut < 0:
                inference.require_at_most(ZERO, left, "a dimension that does not become negative")  # C3
            if max(pair) > 0 and mode != "constant" and ZERO not in shape:
                inference.require_at_most(ONE, left, "a dimension with an element to repeat")  # C4
        return (x.with_shape([None if dim is None else DEFAULT_PROVER.simplify(dim) for dim in shape]),)
