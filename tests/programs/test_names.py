"""Names of parameters, as a model has them: errors say them, and calls with keywords and saved programs know them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from lowering import build
from lowering.parsing import parse_module
from relax_dialect import BlockBuilder
from relax_dialect.builder import op
from relax_dialect.frontend.onnx import import_model
from relax_dialect.frontend.tvmscript import parse
from relax_dialect.interpreter import run
from vm_dialect import Executable, VirtualMachine
from vm_dialect.tensors import to_numpy

TEN, ONE = np.full(2, 10, np.float32), np.full(2, 1, np.float32)

NAMES = [
    ("token_1", "token_0"),  # xDSL takes numbers off names
    ("x_1", "x"),
    ("x", "x_1"),
    ("x.2", "x.1"),
    ("a:0", "a/0"),  # one identifier, two names
    ("_1", "_2"),
    ("1", "0"),
    ("größe", "入力"),
    ("x{}", "x{word}"),  # marks of templates
    ("%d", "%s"),
    ('quoted"', "back\\slash"),
    ("n", "self"),  # a symbol, and what Python calls the function
]


def difference(first: str, second: str) -> onnx.ModelProto:
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in (first, second)]
    output = helper.make_tensor_value_info("out:0", TensorProto.FLOAT, ["n"])
    graph = helper.make_graph([helper.make_node("Sub", [first, second], ["out:0"])], "graph", inputs, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def as_text(name: str) -> str:
    """As templates have it."""
    return name.replace("{", "(").replace("}", ")")


@pytest.mark.parametrize("mode", ["bytecode", "native"])
@pytest.mark.parametrize("names", NAMES, ids=" ".join)
def test_each_input_has_its_name(names: tuple[str, str], mode: str, tmp_path: Path):
    first, second = names
    module = parse_module(str(import_model(difference(*names))))
    build(module, mode=mode).save(tmp_path / "program.rvm")
    main = VirtualMachine(Executable.load(tmp_path / "program.rvm"))["main"]
    for result in (main(**{second: ONE, first: TEN}), main(TEN, **{second: ONE})):
        np.testing.assert_array_equal(to_numpy(result), [9, 9])
    places = f"argument #1 ({as_text(second)}) dimension 0: expected n = 2 (from argument #0 ({as_text(first)})"
    with pytest.raises(ValueError, match=re.escape(places[:-1])):
        main(TEN, np.ones(3, np.float32))
    with pytest.raises(TypeError) as count:
        main(TEN)
    assert str(count.value) == f"main: expected 2 arguments ({as_text(first)}, {as_text(second)}), got 1"
    with pytest.raises(TypeError) as missing:
        main(**{second: ONE})
    assert str(missing.value).endswith(f": {first} is missing")
    with pytest.raises(TypeError) as unknown:
        main(TEN, **{first: ONE})
    assert str(unknown.value) == f"main: no parameter '{first}' is left, expected one of {second}"


def test_the_interpreter_says_the_names_too():
    module = import_model(difference("token_1", "token_0"))
    with pytest.raises(ValueError, match=r"argument #1 \(token_0\) dimension 0: expected n = 2"):
        run(module, "main", [TEN, np.ones(3, np.float32)])


def test_names_of_inputs_and_results_are_in_the_text():
    text = str(import_model(difference("x_2", "x_1")))
    assert 'attributes {arg_names = ["x_2", "x_1"], result_names = ["out:0"]}' in text


def test_names_of_python_arguments():
    bb = BlockBuilder()
    with bb.function("main", {"a_2": ("n",), "a_1": ("n",)}) as (x, y):
        bb.emit_func_output(op.subtract(x, y))
    main = VirtualMachine(build(bb.get()))["main"]
    np.testing.assert_array_equal(to_numpy(main(a_1=ONE, a_2=TEN)), [9, 9])


def test_names_of_tvmscript():
    script = """
@R.function
def main(a_2: R.Tensor(("n",), "float32"), a_1: R.Tensor(("n",), "float32")):
    return R.subtract(a_2, a_1)
"""
    main = VirtualMachine(build(parse(script)))["main"]
    np.testing.assert_array_equal(to_numpy(main(a_1=ONE, a_2=TEN)), [9, 9])


def test_names_of_text():
    text = """
relax.func @main[%n](%a_2: !relax.tensor<[n], f32>, %a_1: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.subtract %a_2, %a_1
  relax.return %0
}
"""
    main = VirtualMachine(build(parse_module(text), mode="bytecode"))["main"]
    np.testing.assert_array_equal(to_numpy(main(a_1=ONE, a_2=TEN)), [9, 9])
