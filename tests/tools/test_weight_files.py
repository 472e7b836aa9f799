"""A module as text and a file of weights: out of a model, through passes, and back into a run."""

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from lowering.compiler.weight_files import WeightFileError, load_weights, save_weights
from lowering.parsing import parse_module
from relax_dialect.builder import BlockBuilder
from tests.support.narrow import NARROW
from tir_dialect.dtypes import numpy_dtype, parse_dtype
from xdsl_relax.cli.relax_opt import main as optimize
from xdsl_relax.cli.relax_run import main as run
from xdsl_relax.cli.relax_translate import main as translate

NARROW_DTYPES = [numpy_dtype(parse_dtype(name)) for name in NARROW]
WEIGHT = np.random.default_rng(5).standard_normal((300, 300), dtype=np.float32)


@pytest.fixture
def model(tmp_path: Path) -> str:
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 300])  # noqa: E731
    node = helper.make_node("MatMul", ["x", "fc"], ["y"])
    graph = helper.make_graph([node], "g", [value("x")], [value("y")], [numpy_helper.from_array(WEIGHT, "fc")])
    onnx.save(helper.make_model(graph), tmp_path / "m.onnx")
    return str(tmp_path / "m.onnx")


@pytest.fixture
def text(model: str, tmp_path: Path) -> tuple[str, str]:
    """The files of the imported text and of its weights."""
    module, weights = str(tmp_path / "m.mlir"), str(tmp_path / "m.safetensors")
    assert translate([model, "--import-onnx", "-o", module, "--save-weights", weights]) == 0
    return module, weights


@pytest.mark.parametrize("mode", ["native", "interpret"])
def test_text_and_weights_are_the_model(mode: str, text: tuple[str, str], tmp_path: Path):
    module, weights = text
    x = np.eye(3, 300, dtype=np.float32)
    np.save(tmp_path / "x.npy", x)
    arguments = ["--input", str(tmp_path / "x.npy"), "--mode", mode, "--output-dir", str(tmp_path / "out")]
    assert run([module, "--weights", weights, *arguments]) == 0
    (written,) = (tmp_path / "out").iterdir()
    np.testing.assert_allclose(np.load(written), WEIGHT[:3], rtol=1e-6)


def test_passes_write_the_weights_that_they_make(model: str, text: tuple[str, str], tmp_path: Path):
    module, weights = text
    packed = [str(tmp_path / "v.mlir"), str(tmp_path / "v.safetensors")]
    for source in ([model], [module, "--weights", weights]):
        assert optimize([*source, "-p", "relax-to-vm", "-o", packed[0], "--save-weights", packed[1]]) == 0
        assert "fc.panels" in Path(packed[0]).read_text()
        assert run([packed[0], "--weights", packed[1], "--random", "f32[2,300]"]) == 0


def test_what_does_not_fit_is_refused(text: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    module, weights = text
    asked = Path(module).read_text()
    with pytest.raises(WeightFileError, match="has no weight 'other'"):
        load_weights(parse_module(asked.replace('"fc"', '"other"')), weights)
    with pytest.raises(WeightFileError, match=r"'fc' expected .*<\[20, 80\], f32>, got .*<\[300, 300\], f32>"):
        load_weights(parse_module('%0 = relax.constant "fc" : !relax.tensor<[20, 80], f32>'), weights)
    (tmp_path / "broken").write_bytes(b"\x10\0\0\0\0\0\0\0no header")
    for path in (tmp_path / "broken", tmp_path / "absent"):
        with pytest.raises(WeightFileError, match="cannot read weights from"):
            load_weights(parse_module(asked), path)
    assert optimize([module, "--save-weights", str(tmp_path / "w")]) == 1
    assert "the elements of weight 'fc' are not here" in capsys.readouterr().err
    assert run([module, "--random", "f32[2,300]"]) == 1
    assert "--weights" in capsys.readouterr().err


def test_a_text_without_elements_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "m.mlir").write_text("%k = relax.constant dense<0.5> : tensor<64x64xf32>\n%y = relax.exp %k\n")
    assert optimize([str(tmp_path / "m.mlir")]) == 0
    assert "note" not in capsys.readouterr().err
    (tmp_path / "m.mlir").write_text(
        "relax.func @main() -> !relax.object {\n  %k = relax.constant dense<0.5> : tensor<64x64xf32>\n"
        "  %y = relax.exp %k\n  relax.return %y\n}"
    )
    assert optimize([str(tmp_path / "m.mlir"), "-p", "fold-constants"]) == 0
    assert "note: the text only names 1 large constant; --save-weights FILE" in capsys.readouterr().err
    weights = str(tmp_path / "w.safetensors")
    assert optimize([str(tmp_path / "m.mlir"), "-p", "fold-constants", "--save-weights", weights]) == 0
    assert "note" not in capsys.readouterr().err


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.int8, np.bool_, *NARROW_DTYPES])
def test_dtypes_are_kept(dtype: type, tmp_path: Path):
    weight = (np.arange(2000) % 4).reshape(40, 50).astype(dtype)
    bb = BlockBuilder()
    with bb.function("main", {}):
        bb.emit_func_output(bb.const(weight, name="w"))
    module = bb.get()
    assert save_weights(module, tmp_path / "w") == 1
    read = parse_module(str(module))
    load_weights(read, tmp_path / "w")
    assert save_weights(read, tmp_path / "again") == 1
    assert (tmp_path / "w").read_bytes() == (tmp_path / "again").read_bytes()


def test_dtypes_that_there_are_not(tmp_path: Path):
    header = b'{"w":{"dtype":"F4","shape":[2,2],"data_offsets":[0,2]}}'
    (tmp_path / "w").write_bytes(len(header).to_bytes(8, "little") + header + b"\0\0")
    module = parse_module('%0 = relax.constant "w" : !relax.tensor<[2, 2], f4E2M1FN>')
    with pytest.raises(WeightFileError, match="'w' has the dtype F4, which is not read from a file"):
        load_weights(module, tmp_path / "w")
