import io
import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from lowering import build
from lowering.parsing import parse_module
from tir_dialect.target import Target
from xdsl_relax import file_kinds
from xdsl_relax.cli.relax_run import main

PROGRAM = """
relax.func @main[%n](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.exp %x
  %1 = relax.add %0, %y
  relax.return %1
}
relax.func @two[%n](%x: !relax.tensor<[n], f32>) -> !relax.tuple<!relax.tensor<[n], f32>, !relax.tensor<[n], f32>> {
  %0 = relax.negative %x
  %1 = relax.tuple(%x, %0)
  relax.return %1
}
"""
PACKED = """
relax.func @main(%x: !relax.object) -> !relax.object impure {
  %0 = relax.call_packed "test.relax_run.f"(%x) : !relax.object
  relax.return %0
}
"""
MODES = ("interpret", "bytecode", "native")
each_mode = pytest.mark.parametrize("mode", MODES)


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "p.mlir"
    path.write_text(PROGRAM)
    return str(path)


@pytest.fixture
def packed(tmp_path: Path) -> list[str]:
    """A program that calls a packed function, and the arguments to load it."""
    program, path = tmp_path / "packed.mlir", tmp_path / "packed.py"
    program.write_text(PACKED)
    path.write_text(
        "import tvm_ffi\n"
        "def f(x):\n"
        "    if x == 0: raise ZeroDivisionError('no zero')\n"
        "    return 10 // x\n"
        "tvm_ffi.register_global_func('test.relax_run.f', f, override=True)\n"
    )
    return [str(program), "--load", str(path)]


@each_mode
def test_files_in_files_out(program: str, tmp_path: Path, mode: str, capsys: pytest.CaptureFixture[str]):
    x, y = np.float32([0, 1, 2]), np.float32([1, 1, 1])
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    out = tmp_path / "out"
    inputs = [str(tmp_path / "x.npy"), str(tmp_path / "y.npy")]
    assert main([program, "--mode", mode, "--input", *inputs, "--output-dir", str(out)]) == 0
    np.testing.assert_allclose(np.load(out / "output.npy"), np.exp(x) + y, rtol=1e-6, atol=1e-6)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("@main  ")
    assert lines[1] == f"  input 0  f32[3]  min 0  max 2  mean 1  ({inputs[0]})"
    assert lines[3].startswith("  output  f32[3]  min 2  max 8.38906")
    assert lines[-1] == f"  wrote {out / 'output.npy'}"


@each_mode
def test_inputs_of_several_kinds_keep_their_order(program: str, tmp_path: Path, mode: str):
    np.save(tmp_path / "y.npy", np.float32([10, 10]))
    arguments = ["--random", "f32[2]", "--input", str(tmp_path / "y.npy"), "--output-dir", str(tmp_path)]
    assert main([program, "--mode", mode, *arguments]) == 0
    assert (np.load(tmp_path / "output.npy") > 10).all()


@each_mode
def test_several_results(program: str, tmp_path: Path, mode: str, capsys: pytest.CaptureFixture[str]):
    assert main([program, "--mode", mode, "--entry", "two", "--random", "f32[2]", "--output-dir", str(tmp_path)]) == 0
    assert (np.load(tmp_path / "output_0.npy") == -np.load(tmp_path / "output_1.npy")).all()
    assert "output_1  f32[2]" in capsys.readouterr().out


def test_a_warm_up_leaves_nothing_to_compile(program: str, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RELAX_CACHE_DIR", str(tmp_path))
        assert main([program, "--warm-up"]) == 0
        assert re.fullmatch(r"native, built in .* ms\n", capsys.readouterr().out)
        patch.setattr("lowering.compiler.compilation.compile_program", None)
        assert main([program, "--random", "f32[2]", "f32[2]"]) == 0
        assert "output  f32[2]" in capsys.readouterr().out


@pytest.mark.parametrize("other", ["--no-cache", "--profile", "--mode=interpret", "--mesh=2"])
def test_a_warm_up_runs_nothing(program: str, other: str, capsys: pytest.CaptureFixture[str]):
    assert main([program, "--warm-up", other]) == 1
    assert "--warm-up goes with none of --no-cache" in capsys.readouterr().err


KERNEL = """
tir.prim_func @double[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    %x = tir.load %X[%i]
    %y = arith.addf %x, %x : f32
    tir.store %y, %Y[%i]
  }
}
"""


@each_mode
def test_a_kernel_alone(tmp_path: Path, mode: str, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "kernel.mlir"
    path.write_text(KERNEL)
    np.save(tmp_path / "x.npy", np.float32([1, 2]))
    np.save(tmp_path / "y.npy", np.float32([0, 0]))
    inputs = [str(tmp_path / "x.npy"), str(tmp_path / "y.npy")]
    arguments = [str(path), "--entry", "double", "--mode", mode, "--output-dir", str(tmp_path)]
    assert main([*arguments, "--input", *inputs]) == 0
    assert np.load(tmp_path / "argument_1.npy").tolist() == [2, 4]
    assert not (tmp_path / "argument_0.npy").exists()
    assert "  input 1  f32[2]  min 0  max 0" in capsys.readouterr().out
    assert main([*arguments, "--random", "f32[2]", "f32[3]"]) == 1
    assert "expected n = 2 (from argument #0 (X) dimension 0), got 3" in capsys.readouterr().err


def test_random_inputs_are_those_of_the_seed(program: str, tmp_path: Path):
    results: list[list[float]] = []
    for seed in ("1", "1", "2"):
        arguments = ["--entry", "two", "--mode", "interpret", "--random", "f32[4]", "--seed", seed]
        assert main([program, *arguments, "--output-dir", str(tmp_path)]) == 0
        results.append(np.load(tmp_path / "output_0.npy").tolist())
    assert results[0] == results[1] != results[2]


@each_mode
def test_packed_functions_are_loaded(packed: list[str], mode: str, capsys: pytest.CaptureFixture[str]):
    assert main([*packed, "--mode", mode, "--value", "3"]) == 0
    assert "output  int 3" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 +", "functions.py: SyntaxError: invalid syntax"),
        ("import nowhere", "functions.py:1: ModuleNotFoundError: No module named 'nowhere'"),
    ],
)
def test_python_files_with_errors(
    program: str, tmp_path: Path, text: str, expected: str, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "functions.py"
    path.write_text(text)
    assert main([program, "--load", str(path)]) == 1
    err = capsys.readouterr().err
    assert err.startswith(f"relax-run: error: {path.parent}/{expected}")
    assert "Traceback" not in err


@each_mode
def test_an_exception_of_a_packed_function_is_told(packed: list[str], mode: str, capsys: pytest.CaptureFixture[str]):
    assert main([*packed, "--mode", mode, "--value", "0"]) == 1
    assert capsys.readouterr().err.startswith("relax-run: error: ZeroDivisionError: no zero")


@each_mode
def test_a_packed_function_that_nobody_has_registered(tmp_path: Path, mode: str, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "packed.mlir"
    path.write_text(PACKED.replace("test.relax_run.f", "test.relax_run.nowhere"))
    assert main([str(path), "--mode", mode, "--value", "3"]) == 1
    err = capsys.readouterr().err
    assert "test.relax_run.nowhere" in err
    assert "Traceback" not in err


@pytest.mark.sampled(3)
@each_mode
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--random", "f32[2]"], "main: expected 2 arguments (x, y), got 1"),
        (["--random", "f32[2]", "f32[3]"], "main: argument #1 (y) dimension 0: expected n = 2"),
        (["--random", "f32[2]", "f64[2]"], "main: argument #1 (y): expected"),
        (["--random", "f32[2]", "f32[2,2]"], "main: argument #1 (y): expected"),
        (["--random", "f32[2]", "--value", "3"], "main: argument #1 (y): expected"),
        (["--entry", "nothing"], "expected --entry to be one of main, two, got nothing"),
        (["--input", "/nowhere.npy"], "cannot read /nowhere.npy"),
    ],
    ids=["count", "size", "dtype", "rank", "kind", "entry", "file"],
)
def test_errors(program: str, mode: str, arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]):
    assert main([program, "--mode", mode, *arguments]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("relax-run: error: ")
    assert expected in err
    assert "Traceback" not in err


def test_threads_of_the_process(program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("RELAX_NUM_THREADS", "2")
    assert main([program, "--random", "f32[2]", "f32[2]", "--threads", "3"]) == 0
    assert os.environ["RELAX_NUM_THREADS"] == "3"
    assert main([program, "--threads", "257"]) == 1
    assert "--threads: num_threads expected a number from 1 to 256, got 257" in capsys.readouterr().err


def test_where_and_how_threads_wait(program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("RELAX_AFFINITY", "0")
    monkeypatch.setenv("RELAX_WAIT_POLICY", "active")
    assert main([program, "--random", "f32[2]", "f32[2]", "--affinity", "0-1", "--wait-policy", "passive"]) == 0
    assert (os.environ["RELAX_AFFINITY"], os.environ["RELAX_WAIT_POLICY"]) == ("0-1", "passive")
    assert main([program, "--affinity", "3-1"]) == 1
    assert "--affinity: expected processors from 0 to 1023, as in 0,2,4-7, got '3-1'" in capsys.readouterr().err


def test_other_files_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "p.txt").write_text(PROGRAM)
    (tmp_path / "p.rvm").write_bytes(b"not an executable")
    (tmp_path / "p.mlir").write_text("relax.func @main(%x: !relax.object) -> !relax.object { relax.return %y }")
    assert main([str(tmp_path / "p.txt")]) == 1
    assert main([str(tmp_path / "p.rvm")]) == 1
    (tmp_path / "empty.mlir").write_text("")
    assert main([str(tmp_path / "p.mlir")]) == 1
    assert main([str(tmp_path / "empty.mlir")]) == 1
    err = capsys.readouterr().err
    assert "the module has no function that can be run" in err
    assert "expected a file that ends in one of .mlir, .onnx, .pt2, .py, .gguf, .rvm, .so, got" in err
    assert "Traceback" not in err
    assert "p.mlir:1:" in err


@pytest.mark.parametrize("mode", ["bytecode", "native"])
def test_executables_run(tmp_path: Path, mode: str, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "p.rvm"
    build(parse_module(PROGRAM), mode=mode).save(path)
    assert main([str(path), "--entry", "two", "--random", "f32[2]"]) == 0
    assert "@two  loaded in" in capsys.readouterr().out
    assert main([str(path), "--mode", "interpret"]) == 1
    assert "expected a module to interpret" in capsys.readouterr().err


def test_repeat_shows_the_times_of_the_calls(program: str, capsys: pytest.CaptureFixture[str]):
    assert main([program, "--entry", "two", "--random", "f32[2]", "--repeat", "5"]) == 0
    assert "us at best, " in capsys.readouterr().out


def test_profile(program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    arguments = [program, "--random", "f32[2]", "f32[2]", "--profile"]
    for mode in ("native", "bytecode"):
        files = [str(tmp_path / name) for name in ("p.json", "trace.json", "flames.html")]
        options = ["--profile-json", files[0], "--trace", files[1], "--flame-graph", files[2]]
        assert main([*arguments, "--mode", mode, *options]) == 0
        out = capsys.readouterr().out
        assert f"{mode}, built" in out
        assert "fused_exp_add  in main:" in out
        assert "roof: share of what this machine can do" in out
        assert any(row["flops"] == 4 for row in json.loads(Path(files[0]).read_text())["calls"])
        assert json.loads(Path(files[1]).read_text())["traceEvents"]
        assert ">fused_exp_add</div>" in Path(files[2]).read_text()
    assert main([*arguments, "--mode", "interpret"]) == 1
    assert "native code that is built for it, can be profiled" in capsys.readouterr().err


def test_traceback_on_request(program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("RELAX_DEBUG", "1")
    assert main([program, "--mode", "interpret", "--random", "f32[2]", "f32[3]"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_report_of_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "sorted.mlir"
    path.write_text(
        "relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {\n"
        "  %0 = relax.sort %x\n  %1 = relax.cumsum %0 axis = 0\n  relax.return %1\n}\n"
    )
    assert main([str(path), "--random", "f32[3]", "--report-memory"]) == 0
    assert "@main\n  1 tensor in 1 arena: planned 64 * floordiv(n + 15, 16) B, naive" in capsys.readouterr().out


def test_what_cannot_be_reported_is_said_before_the_run(
    program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    taken = tmp_path / "taken"
    taken.write_text("no folder")
    assert main([program, "--entry", "two", "--random", "f32[2]", "--output-dir", str(taken)]) == 1
    printed = capsys.readouterr()
    assert str(taken) in printed.err
    assert not printed.out
    executable = str(tmp_path / "p.rvm")
    build(parse_module(PROGRAM)).save(executable)
    assert main([executable, "--entry", "two", "--random", "f32[2]", "--report-memory"]) == 1
    assert not capsys.readouterr().out


@each_mode
def test_onnx_models_run_in_one_step(tmp_path: Path, mode: str, capsys: pytest.CaptureFixture[str]):
    x = np.float32([[1, -2], [-3, 4]])
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    np.save(tmp_path / "x.npy", x)
    out = tmp_path / "out"
    arguments = [str(tmp_path / "m.onnx"), "--input", str(tmp_path / "x.npy"), "--output-dir", str(out), "--mode", mode]
    assert main(arguments) == 0
    (result,) = out.glob("*.npy")
    np.testing.assert_array_equal(np.load(result), np.maximum(x, 0))


def test_ranks_that_a_model_does_not_say_are_those_of_the_arrays(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Or what `--shape` says."""
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "g", infos[:1], infos[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    path = str(tmp_path / "m.onnx")
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    assert main([path, "--random", "f32[2,3]", "--mode", "interpret", "--report-memory"]) == 0
    assert "f32[2, 3]" in capsys.readouterr().out
    assert main([path, "--random", "f32[2,3]", "--mode", "interpret", "--shape", "x=[n,4]"]) == 1
    assert "expected 4, got 3" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([path, "--shape", "x=n,4"])
    assert "expected a name and a shape like x=[n,4,_], got x=n,4" in capsys.readouterr().err


def test_an_onnx_model_that_cannot_be_imported_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "m.onnx").write_bytes(b"nothing of the kind")
    assert main([str(tmp_path / "m.onnx")]) == 1
    assert "the model is malformed" in capsys.readouterr().err


def test_code_of_another_machine(program: str, capsys: pytest.CaptureFixture[str]):
    other = "aarch64" if Target.host().arch == "x86_64" else "x86-64"
    assert main([program, "--random", "f32[2]", "f32[2]", "--target", other]) == 1
    err = capsys.readouterr().err
    assert err.startswith("relax-run: error: the executable has no compiled code for this machine")


def test_seeds_are_not_negative(program: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main([program, "--random", "f32[2]", "f32[2]", "--seed", "-1"])
    assert "argument --seed: expected a number of at least 0, got -1" in capsys.readouterr().err


def test_shapes_are_for_models(program: str, capsys: pytest.CaptureFixture[str]):
    assert main([program, "--random", "f32[2]", "f32[2]", "--shape", "x=[2]"]) == 1
    assert f"{program}: --shape is for ONNX models; the text says its shapes" in capsys.readouterr().err


def test_executables_of_others_need_trust(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "p.rvm"
    with monkeypatch.context() as patch:
        patch.setenv("RELAX_KEY_FILE", str(tmp_path / "key of another"))
        build(parse_module(PROGRAM)).save(path)
    arguments = [str(path), "--entry", "two", "--random", "f32[2]"]
    assert main(arguments) == 1
    assert "holds machine code, and was not written by this user" in (err := capsys.readouterr().err)
    assert "relax-run --trust" in err
    assert main([*arguments, "--trust"]) == 0


@pytest.mark.parametrize("name", ["x.npy", "p.onnx", "p.pt2", "p.rvm"])
def test_a_pipe_is_not_waited_for(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "p.mlir").write_text(PROGRAM)
    os.mkfifo(path := tmp_path / name)
    program = tmp_path / "p.mlir" if name == "x.npy" else path
    inputs = ["--input", str(path)] if name == "x.npy" else ["--random", "f32[2]"]
    assert main([str(program), "--entry", "two", *inputs]) == 1
    assert "expected a regular file, got a pipe" in capsys.readouterr().err


def test_a_text_without_an_end_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(file_kinds, "MOST_TEXT", 1000)
    (tmp_path / "p.mlir").symlink_to("/dev/zero")
    assert main([str(tmp_path / "p.mlir")]) == 1
    assert "expected a text of at most 1000 characters" in capsys.readouterr().err


NAMED = """
relax.func @main[%n](%token: !relax.tensor<[n], f32>, %token_1: !relax.tensor<[n], f32>, %k: !relax.prim<i64>)
    attributes {arg_names = ["token_1", "token_0", "a=b"], result_names = ["out/0", "out:0"]} {
  %0 = relax.subtract %token, %token_1
  %1 = relax.tuple(%0, %token)
  relax.return %1
}
"""


@each_mode
def test_arguments_and_results_have_the_names_of_the_model(
    tmp_path: Path, mode: str, capsys: pytest.CaptureFixture[str]
):
    program, folder = tmp_path / "p.mlir", tmp_path / "d=1"
    program.write_text(NAMED)
    folder.mkdir()
    np.save(folder / "x.npy", np.float32([10, 20]))
    np.save(folder / "y.npy", np.float32([1, 2]))
    command = [str(program), "--mode", mode, "--output-dir", str(tmp_path / "out"), "--value", "a=b=3"]
    inputs = ["--input", f"token_0={folder / 'y.npy'}", f"token_1={folder / 'x.npy'}"]
    assert main([*command, *inputs]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[1] for line in lines[1:6]] == [
        "input 0 token_1",
        "input 1 token_0",
        "input 2 a=b",
        "out/0",
        "out:0",
    ]
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "out_0.npy"), [9, 18])
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "out_0_1.npy"), [10, 20])
    assert main([*command, "--random", "token_1=f32[2]", "token_0=f32[2]"]) == 0
    capsys.readouterr()
    for wrong, message in (
        (
            ["--random", "token=f32[2]"],
            "main: no parameter 'token' is left, expected one of token_1, token_0, a=b; did you mean token_1?",
        ),
        (
            ["--random", "token_0=f32[2]"],
            "main: expected 3 arguments (token_1, token_0, a=b), got 2: token_1 is missing",
        ),
        (["--value", "a=b=3"], "@main: an argument is given twice"),
        (
            ["--random", "f32[2]", "token_1=f32[2]"],
            "main: no parameter 'token_1' is left, expected one of token_0, a=b",
        ),
    ):
        assert main([*command, *wrong]) == 1
        assert capsys.readouterr().err == f"relax-run: error: {message}\n"


def test_names_and_ranks_of_an_onnx_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Ranks that the model does not say come from the arguments, and shapes are given by the names of the model."""
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("token_1", "token_0")]
    output = helper.make_tensor_value_info("out", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Sub", ["token_1", "token_0"], ["out"])], "g", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    given = ["--random", "token_0=f32[1]", "token_1=f32[3,1]"]
    assert main([str(path), *given]) == 0
    assert "  out  f32[3, 1]  " in capsys.readouterr().out
    assert main([str(path), *given, "--shape", "token_1=[n,1]", "--shape", "token_0=[1]"]) == 0
    assert main([str(path), *given, "--shape", "token=[n,1]"]) == 1
    assert "a shape is given for token, but the inputs are token_1, token_0" in capsys.readouterr().err


def test_bytecode_is_stepped_through(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    arguments = ["--random", "f32[2]", "f32[2]", "--debug"]
    monkeypatch.setattr("sys.stdin", io.StringIO("break main\nstep\nregisters\ncontinue\n"))
    assert main([program, *arguments]) == 0
    out = capsys.readouterr().out
    assert "breakpoint at 0 in main" in out
    assert "f32[2]  min " in out
    assert "the program has returned f32[2]  min " in out
    assert main([program, "--entry", "other", *arguments]) == 1
    assert "no bytecode function other" in capsys.readouterr().err
    (tmp_path / "m.so").touch()
    assert main([str(tmp_path / "m.so"), "--debug"]) == 1
    assert "m.so is a shared library, which is machine code: give the module or its bytecode" in capsys.readouterr().err


def test_sizes_of_arguments_that_are_made_up_are_said_with_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "m.mlir"
    path.write_text("""
    relax.func @main[%n, %m](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[m], f32>) -> !relax.object {
      %0 = relax.add %x, %y
      relax.return %0
    }""")
    call = [str(path), "--mode", "bytecode", "--random"]
    assert main([*call, "--dim", "n=3"]) == 1
    hint = "hint: the sizes of what --random makes up are --dim n=3,m=4, which can be changed"
    assert hint in capsys.readouterr().err.splitlines()
    assert main([*call, "--dim", "n=4"]) == 0
    assert main([*call[:3], "--random", "f32[3]", "f32[4]"]) == 1
    assert "hint: the sizes" not in capsys.readouterr().err


def test_sizes_by_the_names_of_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Which are no symbols; where two have become alike, the symbols are listed."""
    path = tmp_path / "m.mlir"
    path.write_text("""
    relax.func @main[%batch_size, %n_2, %a_b, %a_b_1](%x: !relax.tensor<[batch_size, n_2, a_b, a_b_1], f32>)
        -> !relax.tensor<[batch_size, n_2, a_b, a_b_1], f32> {
      relax.return %x
    }""")
    call = [str(path), "--mode", "interpret", "--random", "--dim"]
    assert main([*call, "batch.size=2,2=3,a_b=5,a_b_1=6"]) == 0
    assert "f32[2, 3, 5, 6]" in capsys.readouterr().out
    assert main([*call, "a-b=2"]) == 1
    assert "--dim a-b: @main has no such symbol, it has batch_size, n_2, a_b, a_b_1" in capsys.readouterr().err


def test_what_is_compiled_is_no_module(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "m.rvm"
    build(parse_module("relax.func @main(%x: !relax.tensor<[2], f32>) { relax.return %x }")).save(path)
    for option in ("--check", "--bisect", "--report-memory"):
        assert main([str(path), "--random", option]) == 1
        message = f"relax-run: error: {option} needs the module, {path} is an executable, which is compiled already\n"
        assert capsys.readouterr().err == message
    assert main([str(path), "--random", "--debug"]) == 1
    message = "no bytecode function main: it is native; mode='bytecode' builds one that can be stepped"
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--signature", "--random"])
def test_a_library_or_nothing_on_standard_input(
    option: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    for data, message in (
        (b"\x7fELF", "a shared library is opened by the system: give its file, not standard input"),
        (b"", "the module has no function that can be run: it is empty, or all of them are private"),
    ):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert main(["-", option]) == 1
        assert capsys.readouterr().err == f"relax-run: error: {message}\n"
