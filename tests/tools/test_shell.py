"""What all tools have in common: kinds of files, standard input, help, completion."""

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

import xdsl_relax as xr
from lowering.registry import PASSES
from xdsl_relax.cli.relax_opt import main as optimize
from xdsl_relax.cli.relax_run import main as run
from xdsl_relax.cli.relax_translate import main as translate
from xdsl_relax.file_kinds import KINDS, Holds

TOOLS: dict[str, Callable[..., int]] = {"relax-opt": optimize, "relax-run": run, "relax-translate": translate}

TEXT = """
relax.func @double[%batch](%x: !relax.tensor<[batch, 2], f32>, %y: !relax.tensor<[batch], f32>)
    -> !relax.tensor<[batch, 2], f32> attributes {result_names = ["z"]} {
  %0 = relax.add %x, %x
  relax.return %0
}
"""

SCRIPT = """
@R.function
def double(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
    gv = R.add(x, x)
    return gv
"""


def _onnx() -> bytes:
    x, y = (helper.make_tensor_value_info(name, 1, ["n"]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    return model.SerializeToString()


def _executable() -> bytes:
    return xr.build(xr.parse(TEXT), mode="bytecode").to_bytes()


CONTENTS: dict[str, Callable[[], bytes]] = {
    ".mlir": TEXT.encode,
    ".py": SCRIPT.encode,
    ".onnx": _onnx,
    ".rvm": _executable,
}


def _stdin(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "p.mlir"
    path.write_text(TEXT)
    return str(path)


@pytest.mark.parametrize("suffix", CONTENTS)
def test_standard_input_is_of_any_kind(
    suffix: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
):
    """`-` is standard input in all tools; what it holds tells its kind."""
    data = CONTENTS[suffix]()
    _stdin(monkeypatch, data)
    assert run(["-", "--random", "--mode", "bytecode", "--print"]) == 0
    assert "input 0 x  f32[4" in capfd.readouterr().out
    expected = int(KINDS[suffix].holds is not Holds.MODULE)
    for tool, arguments in (
        (optimize, ["-"]),
        (optimize, []),
        (translate, ["-", "--emit", "listing"]),
        (translate, ["-", "--emit", "bytecode", "-o", str(tmp_path / "m.rvm")]),
    ):
        _stdin(monkeypatch, data)
        assert tool(arguments) == expected, capfd.readouterr().err
        out, err = capfd.readouterr()
        if expected:
            assert "expected a module, got an executable, which is compiled: relax-run runs it" in err
        elif "-o" not in arguments:
            assert "relax.add" in out or "relax.func" in out or "call" in out


def test_executables_go_through_pipes(
    program: str, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
):
    assert translate([program, "--emit", "bytecode", "-o", "-"]) == 0
    _stdin(monkeypatch, capfdbinary.readouterr().out)
    assert run(["-", "--random", "--dim", "batch=3"]) == 0
    assert b"z  f32[3, 2]" in capfdbinary.readouterr().out
    assert translate([program, "--emit", "library", "-o", "-"]) == 1
    assert b"a library is written by a linker: give -o a file" in capfdbinary.readouterr().err


@pytest.mark.parametrize("tool", TOOLS)
def test_all_tools_know_all_kinds(tool: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """One table: none of its kinds is unknown to a tool, and another one is to all."""
    arguments = {"relax-translate": ["--emit", "listing"]}.get(tool, [])
    for suffix in KINDS:
        assert TOOLS[tool]([str(tmp_path / f"none{suffix}"), *arguments]) == 1
        assert "expected a file that ends in" not in capsys.readouterr().err
    assert TOOLS[tool]([str(tmp_path / "none.txt"), *arguments]) == 1
    kinds = ".mlir, .onnx, .pt2, .py, .gguf" + (", .rvm, .so" if tool == "relax-run" else "")
    assert f"expected a file that ends in one of {kinds}, got" in capsys.readouterr().err


ADD = "relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {\n  relax.return %x\n}\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--random", "--timeout", "3"], "--timeout says how long the workers of --mesh wait"),
        (["--random", "--temperature", "1", "--max-tokens", "3"], "options of language models (.gguf) are given for"),
        (["--serve", "8000"], "add.mlir: --serve"),
        (["--check"], "@main takes arguments (x), and none are given\nhint: --random makes up arguments"),
        (["--debug"], "@main takes arguments (x), and none are given\nhint: --random makes up arguments"),
        (["--random", "--flame-graph", "."], "cannot write .: it is a folder"),
        (["--random", "--dim", "n=100000000000000"], "no value can be made up for x of @main: Unable to allocate"),
        (["--mesh", "2", "--random"], "several workers need MPI: pip install 'xdsl-relax[mpi]'"),
    ],
)
def test_what_cannot_be_done_is_said_before_the_program_runs(
    options: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", None)
    (tmp_path / "add.mlir").write_text(ADD)
    assert run([str(tmp_path / "add.mlir"), *options]) == 1
    said = capsys.readouterr()
    assert message in said.err
    assert not said.out


def test_a_language_model_takes_no_arrays(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run([str(tmp_path / "m.gguf"), "--prompt", "x", "--random", "--profile"]) == 1
    assert "is a language model, which goes with none of --input/--random/--value, --profile" in capsys.readouterr().err


def test_one_option_for_each_target(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        run(["m.mlir", "--target", "x86-64-v2,x86-64-v3"])
    wanted = "expected one target, got x86-64-v2,x86-64-v3: --target x86-64-v2 --target x86-64-v3"
    assert wanted in capsys.readouterr().err


@pytest.mark.parametrize("target", ["riscv-asm", "wat"])
def test_what_another_target_cannot_write_is_named(target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "add.mlir").write_text(ADD)
    assert TOOLS["relax-opt"]([str(tmp_path / "add.mlir"), "-t", target]) == 1
    said = capsys.readouterr().err
    assert f"-t {target} writes modules of its own dialects, and cannot write relax.func\n" in said
    assert "hint: relax-translate writes assembly" in said


def test_signatures_of_programs(program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Of a module, which is not built, of an executable and of a library alike, but for the bounds of symbols."""
    bounded = TEXT.replace("[%batch]", "[%batch in [1, 8]]")
    (tmp_path / "b.mlir").write_text(bounded)
    line = "@double(x: f32[batch, 2], y: f32[batch]) -> f32[batch, 2]"
    model = xr.compile(bounded)
    model.save(str(tmp_path / "b.rvm"))
    model.save(str(tmp_path / "b.so"))
    for name in ("b.mlir", "b.rvm", "b.so"):
        assert run([str(tmp_path / name), "--signature"]) == 0
        where = ", where 1 <= batch <= 8" if name == "b.mlir" else ""
        assert capsys.readouterr().out == f"{line}{where}; results: z\n"
    assert run([str(tmp_path / "b.mlir"), "--random", "--dim", "batch=9"]) == 1
    assert "--dim batch=9: @double expected at most 8" in capsys.readouterr().err
    assert run([program, "--random", "--dim", "n=9"]) == 1
    assert "--dim n: @double has no such symbol, it has batch" in capsys.readouterr().err
    assert run([program, "--random", "--dim", "batch=2,n=9"]) == 1
    assert "--dim n: @double has no such symbol, it has batch" in capsys.readouterr().err
    assert run([program, "--dim", "batch=9"]) == 1
    assert "--dim is for arrays that are made up: add --random" in capsys.readouterr().err


@pytest.mark.parametrize("mode", ["interpret", "bytecode", "native"])
def test_arguments_are_made_up(mode: str, program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Those that are given keep their values, by name or in order."""
    np.save(tmp_path / "y.npy", np.ones(3, np.float32))
    given = ["--input", f"y={tmp_path / 'y.npy'}", "--random", "--dim", "batch=3"]
    assert run([program, *given, "--mode", mode, "--print", "--output", str(tmp_path / "o.npz")]) == 0
    out = capsys.readouterr().out
    assert "input 0 x  f32[3, 2]" in out
    assert "(made up)" in out
    assert "input 1 y  f32[3]  min 1" in out
    (z,) = np.load(tmp_path / "o.npz").values()
    printed = re.search(r"  z  f32\[3, 2\].*\n(\[\[.*?\]\])", out, re.DOTALL)
    assert printed is not None
    np.testing.assert_allclose(np.array(json.loads(printed[1])), z, rtol=1e-6)


def test_tuples_and_numbers_are_made_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "p.mlir").write_text("""
relax.func @f[%n](%t: !relax.tuple<!relax.tensor<[n], i64>, !relax.tensor<[n + 1], f32>>, %k: !relax.prim<i64, n>,
    %s: !relax.shape<[n, 2]>) -> !relax.tensor<[n + 1], f32> {
  %0 = relax.tuple_get %t[1]
  relax.return %0
}
relax.func private @g(%f: !relax.object) -> !relax.object {
  relax.return %f
}
""")
    for mode in ("interpret", "native"):
        assert run([str(tmp_path / "p.mlir"), "--random", "--mode", mode]) == 0, capsys.readouterr().err
        assert "output  f32[5]" in capsys.readouterr().out


def test_values_that_cannot_be_made_up_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "p.mlir").write_text("relax.func @g(%f: !relax.object) -> !relax.object {\n  relax.return %f\n}\n")
    assert run([str(tmp_path / "p.mlir"), "--random"]) == 1
    assert "no value can be made up for f: object of @g: give one, --input f=.." in capsys.readouterr().err


def test_archives_hold_arguments_and_results(program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    x, y = np.arange(6, dtype=np.float32).reshape(3, 2), np.zeros(3, np.float32)
    np.savez(tmp_path / "named.npz", y=y, x=x)
    np.savez(tmp_path / "plain.npz", x, y)
    named, plain, out = (str(tmp_path / name) for name in ("named.npz", "plain.npz", "o.npz"))
    for inputs in ([named], [plain], [f"y={named}:y", f"x={plain}:arr_0"]):
        assert run([program, "--input", *inputs, "-o", out, "--mode", "interpret"]) == 0, capsys.readouterr().err
        np.testing.assert_array_equal(np.load(out)["z"], 2 * x)
    assert run([program, "--input", f"{named}:q", "--mode", "interpret"]) == 1
    assert "named.npz has no array q, it has y, x" in capsys.readouterr().err
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04nothing")
    assert run([program, "--input", str(tmp_path / "broken.npz")]) == 1
    assert "broken.npz: File is not a zip file" in capsys.readouterr().err
    assert run([program, "--input", named, "-o", "o.txt", "--mode", "interpret"]) == 1
    assert "expected --output to end in .npz or .npy, got o.txt" in capsys.readouterr().err


def test_archives_keep_narrow_elements(tmp_path: Path):
    import ml_dtypes

    from xdsl_relax.cli.values import NamedValue, read_archive, read_array, write_output

    half, byte = np.ones(3, ml_dtypes.bfloat16), np.ones(2, ml_dtypes.float8_e4m3fn)
    path = str(tmp_path / "n.npz")
    write_output([NamedValue("half", half)], path)
    (value,) = read_archive(path)
    assert value.parameter == "half"
    assert value.value.dtype == ml_dtypes.bfloat16
    write_output([NamedValue("byte", byte)], path)
    assert read_array(f"{path}:byte:f8E4M3FN").dtype == byte.dtype


def test_the_only_function_is_meant(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Or `main` among several."""
    other = TEXT.replace("@double", "@other")
    for text, entry in ((TEXT, "@double"), (TEXT + other.replace("@other", "@main"), "@main")):
        (tmp_path / "p.mlir").write_text(text)
        assert run([str(tmp_path / "p.mlir"), "--random", "--mode", "interpret"]) == 0
        assert capsys.readouterr().out.startswith(entry)
    (tmp_path / "p.mlir").write_text(TEXT + other)
    for mode in ("interpret", "native"):
        assert run([str(tmp_path / "p.mlir"), "--random", "--mode", mode]) == 1
        assert "several functions, say which: --entry double or other" in capsys.readouterr().err


@pytest.mark.parametrize("tool", TOOLS)
def test_the_version_is_ours(tool: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit, match="0"):
        TOOLS[tool](["--version"])
    assert re.fullmatch(r"xdsl-relax \d\S* \(xdsl 0\.74\S*, llvmlite \S+\)\n", capsys.readouterr().out)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_misspelt_option_is_named(tool: str, program: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit, match="2"):
        TOOLS[tool]([program, "--wieghts", "w"])
    error, hint = capsys.readouterr().err.splitlines()
    assert error.startswith(f"{tool}: error: unrecognized arguments: --wieghts")
    assert hint.startswith("hint: did you mean --weights")


SLIPS = {
    "relax-opt P --dce": ("relax-opt: error: unrecognized arguments: --dce\nhint: passes are named by -p: -p dce\n"),
    "relax-run P x.npy": (
        "relax-run: error: unrecognized arguments: x.npy\n"
        "hint: files with arguments are named by --input: --input x.npy\n"
    ),
    "relax-run P --mode interpret": (
        "relax-run: error: @double takes arguments (x, y), and none are given\n"
        "hint: --random makes up arguments, --input FILE.npy reads one, --value 3 is one\n"
    ),
    "relax-run P --random --output y.txt": ("relax-run: error: expected --output to end in .npz or .npy, got y.txt\n"),
    "relax-run P --random --trace nowhere/t.json": (
        "relax-run: error: cannot write nowhere/t.json: there is no folder nowhere\n"
    ),
}
"""Command lines, P for a program, and what is said."""


@pytest.mark.parametrize("line", SLIPS)
def test_a_wrong_command_line_is_told_what_to_write(line: str, program: str, capsys: pytest.CaptureFixture[str]):
    tool, *words = line.replace(" P", f" {program}").split()
    try:
        status = TOOLS[tool](words)
    except SystemExit as error:
        status = error.code
    assert status
    assert capsys.readouterr().err == SLIPS[line]


def test_packed_functions_that_are_missing_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "missing.mlir"
    path.write_text(
        "relax.func @main(%x: !relax.tensor<[2], f32>) -> !relax.object impure {\n"
        '  %0 = relax.call_packed "nobody.registers"(%x) : !relax.object\n  relax.return %0\n}\n'
    )
    assert run([str(path), "--mode", "bytecode", "--random"]) == 1
    error = capsys.readouterr().err
    assert (
        'function "nobody.registers" is not registered: use tvm_ffi.register_global_func("nobody.registers")' in error
    )
    assert error.endswith("\nhint: --load FILE.py runs a file that does so\n")


def test_blanks_stand_around_passes(program: str, capsys: pytest.CaptureFixture[str]):
    assert optimize([program, "-p", "dce , fuse-ops"]) == 0
    assert xr.run_passes(xr.parse(TEXT), " dce, fuse-ops").ops


def test_help_can_be_searched(capsys: pytest.CaptureFixture[str]):
    """A line for each pass: ours first, with what it does."""
    with pytest.raises(SystemExit, match="0"):
        optimize(["--help"])
    page = capsys.readouterr().out
    assert optimize(["--list-passes"]) == 0
    listing = capsys.readouterr().out
    assert page.rstrip().endswith(listing.rstrip())
    ours, others = listing.split("passes of xDSL:\n")
    names = [line.split()[0] for line in ours.splitlines()[1:] if line]
    assert names == sorted(PASSES)
    assert re.search(r"^  legalize-ops +Replaces every operator by a `relax.call_tir`", ours, re.MULTILINE)
    assert "  canonicalize\n" in others


def test_dialects_are_listed(capsys: pytest.CaptureFixture[str]):
    assert optimize(["--show-dialects"]) == 0
    ours, others = capsys.readouterr().out.split("dialects of xDSL:\n")
    assert [line.split()[0] for line in ours.splitlines()[1:] if line] == ["relax", "tir", "vm", "llvm_ext"]
    assert "  scf\n" in others


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("relax-opt m.mlir -p legalize-ops,fuse-", {"legalize-ops,fuse-ops", "legalize-ops,fuse-tir"}),
        ("relax-run --sig", {"--signature"}),
        ("relax-translate --emit tvm", {"tvmscript"}),
    ],
)
def test_shells_complete(line: str, expected: set[str], tmp_path: Path):
    found = tmp_path / "found"
    environment = {
        **os.environ,
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(found),
        "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    subprocess.run([line.split()[0]], env=environment, check=True, capture_output=True)
    assert expected <= {word.strip() for word in found.read_text().splitlines()}
