"""From a model to results by the one package."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
import tvm_ffi
from onnx import TensorProto, helper

import xdsl_relax as xr
from xdsl_relax.session import ValueInfo

TEN, ONE = np.full((2, 3), 10, np.float32), np.full((2, 3), 1, np.float32)

TEXT = """
relax.func @main[%n](%x.2: !relax.tensor<[n, 3], f32>, %k: !relax.tensor<[], i64>)
    attributes {arg_names = ["x.2", "x.1"], result_names = ["out:0", "out:1"]} {
  %0 = relax.exp %x.2
  %1 = relax.tuple(%0, %k)
  relax.return %1
}
"""


def subtraction() -> onnx.ModelProto:
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3]) for name in ("token_1", "token_0")]
    output = helper.make_tensor_value_info("out", TensorProto.FLOAT, ["n", 3])
    graph = helper.make_graph([helper.make_node("Sub", ["token_1", "token_0"], ["out"])], "graph", inputs, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="module")
def model() -> xr.Model:
    return xr.compile(subtraction())


def test_arrays_in_arrays_out(model: xr.Model):
    for result in (model(TEN, ONE), model(token_0=ONE, token_1=TEN), model({"token_0": ONE, "token_1": TEN})):
        assert type(result) is np.ndarray
        np.testing.assert_array_equal(result, TEN - ONE)


def test_tensors_in_tensors_out(model: xr.Model):
    given = [tvm_ffi.from_dlpack(array.copy()) for array in (TEN, ONE)]
    result = model(*given)
    assert isinstance(result, tvm_ffi.Tensor)
    np.testing.assert_array_equal(result, TEN - ONE)


def test_a_session_is_that_of_onnx_runtime(model: xr.Model):
    session = xr.Session(model)
    assert session.get_inputs() == [
        ValueInfo("token_1", ["n", 3], "tensor(float)"),
        ValueInfo("token_0", ["n", 3], "tensor(float)"),
    ]
    assert session.get_outputs() == [ValueInfo("out", ["n", 3], "tensor(float)")]
    for names in (None, ["out"]):
        (result,) = session.run(names, {"token_0": ONE, "token_1": TEN})
        np.testing.assert_array_equal(result, TEN - ONE)
    with pytest.raises(KeyError, match="no output 'x', the outputs are out"):
        session.run(["x"], {"token_0": ONE, "token_1": TEN})
    with pytest.raises(TypeError, match="main: no parameter 'token' is left, expected one of token_1, token_0"):
        session.run(None, {"token": ONE})


def test_a_session_takes_what_programs_for_onnx_runtime_give(model: xr.Model):
    options = SimpleNamespace(intra_op_num_threads=1)
    session = xr.Session(subtraction(), options, providers=["CUDAExecutionProvider", ("CPUExecutionProvider", {})])
    (result,) = session.run(None, {"token_0": ONE, "token_1": TEN}, None)
    np.testing.assert_array_equal(result, TEN - ONE)
    assert session.get_providers() == ["CPUExecutionProvider"]
    for wrong, error, message in (
        (
            lambda: xr.Session(model, providers=["CUDAExecutionProvider"]),
            ValueError,
            "sessions run on the CPU, with the provider CPUExecutionProvider, got CUDAExecutionProvider",
        ),
        (
            lambda: xr.Session(model, num_threads=1),
            TypeError,
            "Session() takes no num_threads for a model that is compiled already",
        ),
        (
            lambda: session.run(None, [TEN, ONE]),
            TypeError,
            "run expected inputs by name, such as {'x': x}, got list",
        ),
        (
            lambda: session.run("out:0", {"token_0": ONE, "token_1": TEN}),
            TypeError,
            "run expected a list of output names, such as ['out:0'], got 'out:0'",
        ),
    ):
        with pytest.raises(error) as caught:
            wrong()
        assert str(caught.value) == message


def test_options_without_an_effect_are_refused(model: xr.Model):
    with pytest.raises(TypeError, match=r"^load\(\) takes dynamic and shapes for ONNX models only$"):
        xr.load(TEXT, dynamic=True, shapes={"x": [1]})
    with pytest.raises(TypeError, match=r"^load\(\) takes args for modules of PyTorch only$"):
        xr.compile(TEXT, (TEN,))
    for options, message in (
        ({"taget": "x86-64-v3"}, "compile() got an unexpected keyword argument 'taget'; did you mean target?"),
        (
            {"target": "x86-64-v3", "instrument": True},
            "compile() takes no target and no instrument for an executable, which is compiled already",
        ),
        ({"trust": True}, "compile() takes no weights and no trust for an executable that is loaded already"),
    ):
        with pytest.raises(TypeError) as caught:
            xr.compile(model.executable, **options)
        assert str(caught.value) == message


@pytest.mark.parametrize("mode", ["native", "bytecode"])
def test_several_results_have_names(mode: str):
    model = xr.compile(TEXT, mode=mode)
    results = model(**{"x.1": np.array(7), "x.2": np.zeros((1, 3), np.float32)})
    assert list(results.as_dict()) == ["out:0", "out:1"]
    assert results["out:1"] == results[1] == 7
    np.testing.assert_array_equal(results["out:0"], np.ones((1, 3)))
    assert [each.shape for each in xr.Session(model).get_outputs()] == [["n", 3], []]
    with pytest.raises(KeyError, match="no result 'out', the results are out:0, out:1"):
        results["out"]
    inner = model.machine["main"](np.zeros((1, 3), np.float32), np.array(7))
    assert inner.keys() == ("out:0", "out:1")
    assert inner["out:1"].item() == inner.as_dict()["out:1"].item() == 7
    with pytest.raises(KeyError, match="no result 'out', the results are out:0, out:1"):
        inner["out"]


def test_interpret_takes_the_same_arguments():
    results = xr.interpret(TEXT, {"x.1": np.array(7), "x.2": np.zeros((1, 3), np.float32)})
    assert (results["out:1"], results.names) == (7, ("out:0", "out:1"))
    np.testing.assert_array_equal(xr.interpret(subtraction(), token_0=ONE, token_1=TEN), TEN - ONE)
    with pytest.raises(TypeError, match="main: no parameter 'x' is left"):
        xr.interpret(TEXT, x=1)


def test_everything_that_is_loaded(tmp_path: Path):
    onnx.save(subtraction(), tmp_path / "m.onnx")
    (tmp_path / "m.mlir").write_text(TEXT)
    (tmp_path / "m.py").write_text("@R.function\ndef main(x: R.Tensor((2, 3), 'float32')):\n    return R.exp(x)\n")
    for source in (tmp_path / "m.onnx", str(tmp_path / "m.onnx"), subtraction(), subtraction().SerializeToString()):
        assert "relax.subtract" in str(xr.load(source))
    for source in (tmp_path / "m.mlir", TEXT, xr.parse(TEXT)):
        assert "relax.exp" in str(xr.load(source))
    for source in (tmp_path / "m.py", (tmp_path / "m.py").read_text()):
        assert "relax.exp" in str(xr.load(source))
    assert "[[a, 3]" not in str(xr.load(tmp_path / "m.onnx", shapes={"token_0": ["a", 3], "token_1": ["a", 3]}))


def test_what_cannot_be_loaded_is_said(tmp_path: Path):
    (tmp_path / "m.txt").write_text("")
    for source, error, message in (
        (tmp_path / "m.txt", ValueError, "expected a file that ends in one of .mlir, .onnx, .pt2, .py, .gguf, got "),
        ("nowhere.mlir", FileNotFoundError, "No such file"),
        ("nowhere.onnx", FileNotFoundError, "No such file or directory: 'nowhere.onnx'"),
        ("m.rvm", ValueError, "m.rvm is an executable, which is compiled: compile(path) or Session(path) loads it"),
        ("model.pb", ValueError, "model.pb, which does not exist"),
        ("some/model", ValueError, "some/model, which does not exist"),
        (str(tmp_path), ValueError, f"{tmp_path}, a folder"),
        (tmp_path, ValueError, f"{tmp_path}, a folder"),
        (3, TypeError, "load expected a path, a text, or a model of ONNX or PyTorch, got int"),
    ):
        with pytest.raises(error) as caught:
            xr.load(source)
        assert message in str(caught.value)
    with pytest.raises(ValueError, match=r"^parse expected the text of a module, got a path: load\('a.mlir'\) reads"):
        xr.parse("a.mlir")
    with pytest.raises(TypeError, match=r"^parse expected a text, got bytes; load takes models and files$"):
        xr.parse(b"relax.func")


class Column:
    """What pandas and imaging libraries have: an array that NumPy can ask for."""

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        return TEN


@pytest.mark.parametrize("mode", ["native", "bytecode"])
def test_whatever_numpy_takes_for_an_array_or_a_mapping_is_an_argument(mode: str, tmp_path: Path):
    model = xr.compile(subtraction(), mode=mode)
    np.testing.assert_array_equal(model(Column(), ONE), TEN - ONE)
    np.savez(tmp_path / "inputs.npz", token_0=ONE, token_1=TEN)
    np.testing.assert_array_equal(model(np.load(tmp_path / "inputs.npz")), TEN - ONE)
    np.testing.assert_array_equal(xr.interpret(subtraction(), Column(), ONE), TEN - ONE)
    np.testing.assert_array_equal(xr.interpret(subtraction(), np.load(tmp_path / "inputs.npz")), TEN - ONE)


def test_models_are_saved_and_loaded(model: xr.Model, tmp_path: Path):
    for name in ("m.rvm", "m.so"):
        with pytest.raises(FileNotFoundError, match=r"No such file or directory: '.*none"):
            model.save(tmp_path / "none" / name)
    model.save(tmp_path / "m.rvm")
    again = xr.compile(tmp_path / "m.rvm")
    assert repr(again) == repr(model) == "<Model main(token_1: f32[n, 3], token_0: f32[n, 3]) -> f32[n, 3], native>"
    np.testing.assert_array_equal(again(token_0=ONE, token_1=TEN), TEN - ONE)
    assert xr.Session(tmp_path / "m.rvm").get_inputs() == xr.Session(model).get_inputs()
    with pytest.raises(ValueError, match=r"save expected a path that ends in \.rvm or \.so"):
        model.save(tmp_path / "m")


def test_the_function_that_is_meant():
    two = "relax.func @f(%x: !relax.object) { relax.return %x }\nrelax.func @g(%x: !relax.object) { relax.return %x }"
    with pytest.raises(ValueError, match=r"^the module has several functions, say which: entry='f' or 'g'$"):
        xr.compile(two)
    model = xr.compile(two, entry="g")
    assert (model(3), model["f"](4)) == (3, 4)
    with pytest.raises(KeyError, match="no function h, the executable has: f, g"):
        model["h"]


def test_libraries_keep_names_and_types(tmp_path: Path):
    compiled = xr.compile(TEXT)
    compiled.save(tmp_path / "m.so")
    library = xr.compile(tmp_path / "m.so")
    assert repr(library) == "<Model main(x.2: f32[n, 3], x.1: i64[]) -> (f32[n, 3], i64[]), library>"
    assert repr(library.machine) == "<Library main(x.2: f32[n, 3], x.1: i64[]) -> (f32[n, 3], i64[])>"
    results = library(**{"x.1": np.array(7), "x.2": np.zeros((1, 3), np.float32)})
    assert results.names == ("out:0", "out:1")
    assert results["out:1"] == 7
    assert xr.Session(tmp_path / "m.so").get_inputs() == xr.Session(compiled).get_inputs()
    assert xr.Session(library).get_outputs() == xr.Session(compiled).get_outputs()
    with pytest.raises(ValueError, match="this one is a shared library: copy the file"):
        library.save(tmp_path / "again.so")


def test_a_model_tells_where_its_time_goes():
    text = "relax.func @main(%x: !relax.tensor<[2], f32>) {\n  %0 = relax.exp %x\n  relax.return %0\n}"
    model = xr.compile(text, instrument=True)
    for profile in (model.profile(np.ones(2, np.float32)), model.profile(x=np.ones(2, np.float32))):
        assert [row.site.callee for row in profile.rows] == ["exp"]
        assert profile.peaks is not None
    with pytest.raises(ValueError, match="build it with instrument=True"):
        xr.compile(text).profile(np.ones(2, np.float32))
