"""Shapes that are too large to compute with: an error of the op, in whatever way it is made."""

import pytest
from onnx import TensorProto, helper
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import ParseError, VerifyException

from lowering.parsing import parse_module
from relax_dialect.builder import BlockBuilder, op
from relax_dialect.frontend.onnx import OnnxImportError, import_model
from relax_dialect.frontend.tvmscript import TVMScriptError, parse

TEN = "(a + b + c + d + e + f + g + h + i + j)"


def test_in_the_text():
    text = f"relax.func @main(%x: !relax.tensor<[{' * '.join([TEN] * 20)}], f32>) {{ relax.return %x }}"
    with pytest.raises(ParseError, match="the product of 715 and 10 terms has too many terms") as caught:
        parse_module(text)
    assert caught.value.span.text.startswith("*")


def test_from_the_builder():
    bb = BlockBuilder()
    with bb.function("main", {"x": ("n", "m")}) as (x,):
        with pytest.raises(VerifyException, match=r"'relax.flatten' op has a shape that is too large an expression"):
            _squared(bb, x, 60)
        bb.emit_func_output(x)


def _squared(bb: BlockBuilder, x: SSAValue, times: int) -> SSAValue:
    for _ in range(times):
        flat = bb.emit(op.flatten(x))
        x = bb.emit(op.add(op.expand_dims(flat, [0]), op.expand_dims(flat, [1])))
    return x


@pytest.mark.parametrize(
    "script",
    [
        """
@R.function
def main(x: R.Tensor(("a", "b", "c", "d"), "float32")):
    a = T.int64(); b = T.int64(); c = T.int64(); d = T.int64()
    y = R.zeros(R.shape([SIZE]), "float32")
    return y
""".replace("SIZE", "*".join(["(a + b + c + d)"] * 30)),
        """
@T.prim_func
def f(x: T.handle):
    n = T.int64()
    A = T.match_buffer(x, (n, SIZE), "float32")
    for i in T.serial(n):
        A[i, 0] = T.float32(0)
""".replace("SIZE", "*".join(["(n + 1)"] * 300)),
    ],
)
def test_in_tvmscript(script: str):
    with pytest.raises(TVMScriptError, match=r"<tvmscript>:\d+:\d+: error: (the product of|dimension has a product)"):
        parse(script)


def test_in_a_model():
    nodes, x = [], "x"
    for i in range(20):
        nodes += [
            helper.make_node("Flatten", [x], [f"flat{i}"], axis=0),
            helper.make_node("Transpose", [f"flat{i}"], [f"turned{i}"]),
            helper.make_node("Add", [f"flat{i}", f"turned{i}"], [x := f"x{i + 1}"]),
        ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", "m"])]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info(x, TensorProto.FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    with pytest.raises(OnnxImportError, match=r"Flatten \(flat\d+\): dimension has a product of more than 128 factors"):
        import_model(model)
