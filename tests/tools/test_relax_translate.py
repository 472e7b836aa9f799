import re
import subprocess
from pathlib import Path

import pytest

from lowering.llvm.binding import llvm
from vm_dialect import Executable
from xdsl_relax.cli.relax_opt import main as optimize
from xdsl_relax.cli.relax_run import main as run
from xdsl_relax.cli.relax_translate import main

PROGRAM = """
relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.exp %x
  relax.return %0
}
"""

PRODUCT = """
relax.func @main[%n](%x: !relax.tensor<[n, 64], f32>) -> !relax.tensor<[n, 100], f32> {
  %w = relax.constant dense<0.5> : tensor<64x100xf32>
  %0 = relax.matmul %x, %w
  relax.return %0
}
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "p.mlir"
    path.write_text(PROGRAM)
    return str(path)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("llvmir", "@__tvm_ffi_main"),
        ("asm", "__tvm_ffi_main:"),
        ("listing", "@main(x):"),
    ],
)
def test_text(program: str, kind: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main([program, "--emit", kind]) == 0
    shown = capsys.readouterr().out
    assert expected in shown
    assert main([program, "--emit", kind, "-o", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out").read_text() == shown
    assert capsys.readouterr().out == ""


def test_every_stage_can_be_translated(program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Before kernels are scheduled, it does not matter where the translation starts."""
    outcomes: list[str] = []
    for pipeline in ("", "legalize-ops", "relax-to-vm", "relax-to-vm,lower-blocks", "relax-to-llvm"):
        path = tmp_path / "stage.mlir"
        assert optimize([program, "-p", pipeline, "-o", str(path), "--print-debuginfo"]) == 0
        assert main([str(path), "--emit", "asm", "--target", "x86-64-v3"]) == 0
        outcomes.append(capsys.readouterr().out)
    assert len(set(outcomes[:3])) == 1
    assert all("exp:" in outcome for outcome in outcomes)


def test_prim_funcs_as_tvmscript_and_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    text = (
        "tir.prim_func @fill[%n](%A: !tir.buffer<[n], f32>, %x: f32) { tir.for (%i) in (%n) { tir.store %x, %A[%i] } }"
    )
    kernel, script = tmp_path / "kernel.mlir", tmp_path / "kernel.py"
    kernel.write_text(text)
    assert main([str(kernel), "--emit", "tvmscript", "-o", str(script)]) == 0
    assert "        for i in range(n):\n            A[i] = x\n" in script.read_text()
    assert main([str(script), "--import-tvmscript"]) == 0
    back = capsys.readouterr().out
    assert optimize([str(kernel)]) == 0
    assert back.strip() == capsys.readouterr().out.strip()


def test_bytecode_is_an_executable(program: str, tmp_path: Path):
    path = tmp_path / "p.rvm"
    assert main([program, "--emit", "bytecode", "-o", str(path)]) == 0
    assert Executable.load(path).entries == ("main",)


def test_object(program: str, tmp_path: Path):
    path = tmp_path / "p.o"
    assert main([program, "--emit", "object", "-o", str(path)]) == 0
    assert path.read_bytes()[:4] == b"\x7fELF"


def test_the_target_decides_the_code(program: str, capsys: pytest.CaptureFixture[str]):
    texts: list[str] = []
    for target in ("x86-64", "x86-64-v4", "neoverse-n1"):
        assert main([program, "--emit", "asm", "--target", target]) == 0
        texts.append(capsys.readouterr().out)
    assert "zmm" not in texts[0]
    assert len(set(texts)) == 3


PROCESSORS = {
    "x86-64": ("x86_64", "xmm", 62),
    "znver3": ("x86_64", "ymm", 62),
    "znver4": ("x86_64", "zmm", 62),
    "sapphirerapids": ("x86_64", "zmm", 62),
    "cortex-a76": ("aarch64", ".4s", 183),
}
"""Of each named processor the architecture, a register that only it has of those above, and the number in ELF files."""


def test_code_uses_the_extensions_of_the_target(program: str, capsys: pytest.CaptureFixture[str]):
    """As builds do: an exponential is scaled by an instruction of AVX-512."""
    for target in ("x86-64-v4", "x86-64-v3"):
        assert main([program, "--emit", "asm", "--target", target]) == 0
        assert ("vscalefps" in capsys.readouterr().out) == (target == "x86-64-v4")


@pytest.mark.parametrize("target", PROCESSORS)
def test_every_form_for_named_processors(target: str, program: str, tmp_path: Path):
    """LLVM's verifier accepts the IR, the assembly is vector code, the object is of the architecture."""
    arch, register, machine = PROCESSORS[target]
    for kind in ("llvmir", "asm", "object"):
        assert main([program, "--emit", kind, "--target", target, "-o", str(tmp_path / kind)]) == 0
    module = llvm().parse_assembly((tmp_path / "llvmir").read_text(), llvm().create_context())
    module.verify()
    assert module.triple.startswith(arch)
    assert re.search(r"<\d+ x float>", str(module))
    assert register in (tmp_path / "asm").read_text()
    header = (tmp_path / "object").read_bytes()[:20]
    assert (header[:4], int.from_bytes(header[18:20], "little")) == (b"\x7fELF", machine)


def test_constants_are_packed_for_the_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """And not for this machine: a constant is called by a digest of its elements."""
    path = tmp_path / "p.mlir"
    path.write_text(PRODUCT)
    names: set[str] = set()
    for target in ("x86-64-v3", "x86-64-v4"):
        assert main([str(path), "--emit", "llvmir", "-O", "1", "--target", target]) == 0
        names.update(re.findall("const_[0-9a-f]+", capsys.readouterr().out))
    assert len(names) == 2


def test_without_optimisation_each_operator_is_a_kernel(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "p.mlir"
    path.write_text(
        """
        relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
          %0 = relax.exp %x
          %1 = relax.negative %0
          relax.return %1
        }
        """
    )
    for level, fused in (("0", False), ("1", True)):
        assert main([str(path), "--emit", "llvmir", "-O", level, "--target", "x86-64-v3"]) == 0
        kernels = re.findall(r"define \w* ?i32 @(\w+)\(i64", capsys.readouterr().out)
        assert any("exp_negative" in name for name in kernels) is fused, kernels


def test_llvm_dialect_to_llvm_ir(program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "l.mlir"
    assert optimize([program, "-p", "relax-to-llvm", "-o", str(path)]) == 0
    assert main([str(path), "--mlir-to-llvmir"]) == 0
    assert "define i32 @exp(i64" in capsys.readouterr().out
    assert main([program, "--mlir-to-llvmir"]) == 1
    assert "relax-translate: error: 'relax.func' op cannot stand in an LLVM module" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--emit", "object"], "expected -o FILE for object, which is not text"),
        (["--emit", "bytecode"], "expected -o FILE for bytecode, which is not text"),
        (["--emit", "library"], "expected -o FILE for library, which is not text"),
        (["--emit", "asm", "--target", "abacus"], 'unknown target "abacus"'),
    ],
)
def test_errors(program: str, arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]):
    assert main([program, *arguments]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert expected in err
    assert "Traceback" not in err


def test_a_linker_that_fails(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("CC", "false")
    assert main([program, "--emit", "library", "-o", str(tmp_path / "m.so")]) == 1
    assert capsys.readouterr().err.startswith("relax-translate: error: the linker false failed")


@pytest.mark.parametrize(
    ("arguments", "error", "hint"),
    [
        ([], "expected --emit, an import, or -o FILE", "--help lists the options"),
        (["--emit", "tvmscritp"], "invalid choice: 'tvmscritp'", "did you mean tvmscript?"),
        (["--emit", "asm", "--mlir-to-llvmir"], "not allowed with argument --emit", "--help lists the options"),
        (["-O", "9"], "argument -O: invalid choice: 9", "--help lists the options"),
        (["--emit", "asm", "--targte", "x"], "unrecognized arguments: --targte x", "did you mean --target?"),
    ],
)
def test_usage(program: str, arguments: list[str], error: str, hint: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit, match="2"):
        main([program, *arguments])
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("relax-translate: error: ")
    assert error in first
    assert second == f"hint: {hint}"


def test_the_console_script_is_installed(program: str):
    result = subprocess.run(["relax-translate", program, "--emit", "listing"], capture_output=True, text=True)
    assert result.returncode == 0
    assert "@main(x):" in result.stdout


def test_a_module_as_tvmscript(program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """By its name or by the suffix; it is read again."""
    assert main([program, "--emit", "tvmscript"]) == 0
    text = capsys.readouterr().out
    assert main([program, "-o", str(tmp_path / "m.py")]) == 0
    assert (tmp_path / "m.py").read_text() == text
    assert "@R.function" in text
    assert main(["--import-tvmscript", str(tmp_path / "m.py")]) == 0
    assert "relax.func @main" in capsys.readouterr().out
    (tmp_path / "r.mlir").write_text(PROGRAM.replace("relax.exp", "relax.reciprocal"))
    assert main([str(tmp_path / "r.mlir"), "--emit", "tvmscript"]) == 1
    assert "'relax.reciprocal' cannot be written as TVMScript: TVM 0.27 has no such" in capsys.readouterr().err


MADE = {
    "so": ["relax-run"],
    "rvm": ["relax-run"],
    "o": "ELF",
    "ll": "define i32 @__tvm_ffi_main",
    "s": "__tvm_ffi_main:",
    "mlir": "relax.func @main",
}


def test_the_suffix_says_what_to_make(program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Of a text and of an ONNX model alike; what can be run is run."""
    from onnx import helper, save

    x, y = (helper.make_tensor_value_info(name, 1, ["n"]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Exp", ["x"], ["y"])], "g", [x], [y])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), tmp_path / "m.onnx")
    for source in (program, str(tmp_path / "m.onnx")):
        for suffix, expected in MADE.items():
            path = tmp_path / f"m.{suffix}"
            assert main([source, "-o", str(path)]) == 0, capsys.readouterr().err
            if isinstance(expected, str):
                assert expected.encode() in path.read_bytes()
            else:
                assert run([str(path), "--random", "x=f32[3]"]) == 0, capsys.readouterr().err
                assert re.search(r"@main  loaded in .*\n  input 0 x  f32\[3\]", capsys.readouterr().out)


def test_executables_are_native_unless_the_mode_says_otherwise(
    program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "m.rvm"
    for mode in ("native", "bytecode"):
        assert main([program, "-o", str(path), "--mode", mode]) == 0
        assert Executable.load(path).metadata.mode == mode
    assert main([program, "-o", str(tmp_path / "m.so"), "--mode", "bytecode"]) == 1
    assert "--mode is for executables (.rvm), not for library" in capsys.readouterr().err


def test_libraries_have_no_other_mode(program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "m.so").write_text("no library")
    assert run([str(tmp_path / "m.so")]) == 1
    assert "m.so: file too short" in capsys.readouterr().err
    assert run([str(tmp_path / "m.so"), "--mode", "bytecode"]) == 1
    assert "which is machine code; leave out --mode bytecode" in capsys.readouterr().err
    assert run([str(tmp_path / "none.so")]) == 1
    assert "none.so" in capsys.readouterr().err


def test_several_targets_and_weights_beside(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "p.mlir").write_text(PRODUCT)
    program, targets = str(tmp_path / "p.mlir"), ["--target", "x86-64-v2", "--target", "host"]
    for path in (tmp_path / "m.rvm", tmp_path / "m.so"):
        assert main([program, "-o", str(path), "--weights-beside", *targets]) == 0, capsys.readouterr().err
        assert Path(f"{path}.weights").stat().st_size > 64 * 100 * 4
        assert run([str(path), "--random", "f32[3,64]"]) == 0, capsys.readouterr().err
    assert main([program, "-o", str(tmp_path / "m.s"), *targets]) == 1
    assert "expected one --target" in capsys.readouterr().err
    assert main([program, "-o", str(tmp_path / "m.s"), "--weights-beside"]) == 1
    assert "--weights-beside is for libraries and executables, not for asm" in capsys.readouterr().err
