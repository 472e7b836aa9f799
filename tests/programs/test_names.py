"""Names of parameters, as a model has them: errors say them, and calls with keywords and saved programs know them."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from lowering import build
from lowering.context import make_context
from lowering.parsing import parse_module
from lowering.pipelines import PipelinePass, RelaxToLLVMPass, RelaxToLLVMPlainPass
from lowering.registry import PASSES, load_pass
from lowering.vm_to_llvm.objects import module_info
from relax_dialect import BlockBuilder
from relax_dialect.builder import op
from relax_dialect.frontend.onnx import import_model
from relax_dialect.frontend.tvmscript import parse
from relax_dialect.interpreter import run
from relax_dialect.ops.structure import FuncOp as RelaxFuncOp
from vm_dialect import Executable, VirtualMachine
from vm_dialect.ops.structure import FuncOp as VMFuncOp
from vm_dialect.tensors import to_numpy
from xdsl_relax import interpret

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


@pytest.mark.sampled(4)
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
    assert str(unknown.value) == f"main: no parameter '{first}' is left, expected {second}"


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


PIPELINES = [RelaxToLLVMPass, RelaxToLLVMPlainPass]


@pytest.mark.parametrize("pipeline", PIPELINES, ids=lambda pipeline: pipeline.name)
def test_every_pass_keeps_the_names(pipeline: type[PipelinePass]):
    """Of functions of each level; those of the last one are in the text that describes the module."""
    module, seen = import_model(difference("x.2", "x.1")), []

    def check(name: str) -> None:
        seen.append(name)
        public = [op for op in module.ops if isinstance(op, RelaxFuncOp | VMFuncOp) and op.sym_name.data == "main"]
        for func in public:
            names = func.param_names if isinstance(func, RelaxFuncOp) else func.parameter_names
            assert names == ("x.2", "x.1"), f"after {name}"
            assert [each.data for each in func.result_names or ()] == ["out:0"], f"after {name}"
        if not public:
            info = module_info(module)
            assert info["functions"] == ["main"], f"after {name}"
            assert info["parameters"] == {"main": ["x.2", "x.1"]}, f"after {name}"
            assert info["results"] == {"main": ["out:0"]}, f"after {name}"

    for each in pipeline.passes():  # also those that have nothing to do
        each.apply(make_context(), module)
        check(each.name)
    assert len(seen) > 20
    main = VirtualMachine(build(module))["main"]
    np.testing.assert_array_equal(main.by_name(main({"x.1": ONE, "x.2": TEN}))["out:0"], [9, 9])


def test_names_are_read_at_every_level():
    """What is printed after a prefix of the pipeline is read back with the names."""
    module = import_model(difference("x.2", "x.1"))
    for each in RelaxToLLVMPass.passes():
        each.apply(make_context(), module)
        if each.name in ("legalize-ops", "lower-call-tir", "lower-shapes", "convert-relax-to-vm", "convert-vm-to-llvm"):
            main = VirtualMachine(build(parse_module(str(module))))["main"]
            assert (main.parameters, main.result_names) == (("x.2", "x.1"), ("out:0",)), each.name
            np.testing.assert_array_equal(main(**{"x.1": ONE, "x.2": TEN}), [9, 9])


@pytest.mark.parametrize("mode", ["bytecode", "native"])
def test_a_dictionary_has_all_arguments(mode: str):
    main = VirtualMachine(build(import_model(difference("token_1", "token_0")), mode=mode))["main"]
    np.testing.assert_array_equal(main({"token_0": ONE, "token_1": TEN}), [9, 9])
    with pytest.raises(TypeError, match=r"main: expected 2 arguments \(token_1, token_0\), got 1: token_1 is missing"):
        main({"token_0": ONE})
    for wrong in ("token", "TOKEN_1"):
        with pytest.raises(TypeError) as unknown:
            main({wrong: ONE, "token_0": ONE})
        hint = "expected one of token_1, token_0; did you mean token_1?"
        assert str(unknown.value) == f"main: no parameter '{wrong}' is left, {hint}"


def test_the_interpreter_takes_arguments_by_name():
    module = import_model(difference("token_1", "token_0"))
    np.testing.assert_array_equal(run(module, "main", {"token_0": ONE, "token_1": TEN}), [9, 9])
    with pytest.raises(TypeError) as missing:
        run(module, "main", {"token_0": ONE})
    assert str(missing.value) == "main: expected 2 arguments (token_1, token_0), got 1: token_1 is missing"
    with pytest.raises(TypeError) as unknown:
        run(module, "main", {"token": ONE})
    wrong = "main: no parameter 'token' is left, expected one of token_1, token_0; did you mean token_1?"
    assert str(unknown.value) == wrong


@pytest.mark.parametrize("mode", ["bytecode", "native", "interpreter"])
def test_a_dictionary_of_wrong_names_is_no_value_of_a_tensor(mode: str):
    module = parse_module("relax.func @main(%data: !relax.tensor<[2], f32>) { relax.return %data }")
    main = partial(interpret, module) if mode == "interpreter" else VirtualMachine(build(module, mode=mode))["main"]
    for name in ("dat", 1):
        with pytest.raises(TypeError, match=f"main: no parameter '{name}' is left, expected data$"):
            main({name: ONE})
    with pytest.raises(TypeError, match=r"main: expected 1 argument \(data\), got 0: data is missing"):
        main({})
    np.testing.assert_array_equal(main({"data": ONE}), ONE)


def test_a_dictionary_may_be_the_value_of_the_only_parameter():
    module = parse_module("relax.func @main(%x: !relax.object) { relax.return %x }")
    identity = VirtualMachine(build(module))["main"]
    assert dict(identity({"a": 1}).items()) == {"a": 1}
    assert identity({"x": 1}) == 1
    assert interpret(module, {"x": 1}) == 1


NAMED = """
relax.func @main[%n](%x: !relax.tensor<[n, 4], f32>, %w: !relax.tensor<[4, 4], f32>)
    attributes {arg_names = ["x.2", "x.1"], result_names = ["out:0", "out:1"]} {
  %g, %h = relax.dataflow {
    %0 = relax.matmul %x, %w
    %1 = relax.nn.relu %0
    %2 = relax.add %1, %x
    relax.output %1, %2
  }
  %3 = relax.tuple(%g, %h)
  relax.return %3
}
"""
EARLY = {"convert-relax-to-vm", "insert-kills"}
"""Passes that refuse this module, as others have to run before."""
TO_LLVM = {"relax-to-llvm", "relax-to-llvm-plain"}


def test_passes_outside_of_the_pipelines_keep_the_names():
    """All that need no options, each alone."""
    done = 0
    for name in PASSES.keys() - EARLY - TO_LLVM:
        pass_class = load_pass(name)
        if all(each.default is not MISSING or each.default_factory is not MISSING for each in fields(pass_class)):
            module = parse_module(NAMED)
            pass_class().apply(make_context(), module)
            (func,) = (op for op in module.ops if isinstance(op, RelaxFuncOp | VMFuncOp) and op.sym_name.data == "main")
            names = func.param_names if isinstance(func, RelaxFuncOp) else func.parameter_names
            assert names == ("x.2", "x.1"), name
            assert [each.data for each in func.result_names or ()] == ["out:0", "out:1"], name
            done += 1
    assert done > 60
