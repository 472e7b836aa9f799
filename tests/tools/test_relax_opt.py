from dataclasses import dataclass
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from lowering.diagnostics import fail
from lowering.registry import PASSES
from xdsl_relax.cli.diagnostics import run_tool
from xdsl_relax.cli.relax_opt import RelaxOptMain, main

TEXT = """\
func.func @f(%a: i32) -> i32 {
  %b = arith.addi %a, %a : i32
  %c = arith.muli %b, %b : i32
  func.return %c : i32
}
"""


@dataclass(frozen=True)
class BreakPass(ModulePass):
    """Fails in one of the ways that a pass may, or leaves behind what must not be."""

    name = "break"

    way: str
    deep: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = next(inner for inner in op.walk() if inner.name == "arith.muli")
        _BREAK[self.way](target)


def _move_up(op: Operation) -> None:
    block = op.parent_block()
    assert block is not None
    first = block.first_op
    assert first is not None
    op.detach()
    block.insert_op_before(op, first)


def _bug(op: Operation) -> None:
    raise KeyError("lost")


_BREAK = {
    "emit": lambda op: op.emit_error("is too large", PassFailedException("is too large")),
    "fail": lambda op: fail(op, "is too large", "make it smaller"),
    "plain": lambda op: _raise(PassFailedException("nothing works")),
    "bug": _bug,
    "dominance": _move_up,
    "verifier": lambda op: op.properties.clear(),
}


def _raise(error: Exception) -> None:
    raise error


class _Main(RelaxOptMain):
    def register_all_passes(self) -> None:
        super().register_all_passes()
        self.register_pass("break", lambda: BreakPass)


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = tmp_path / "f.mlir"
    path.write_text(TEXT)
    return str(path)


def _run(*argv: str) -> int:
    return run_tool("relax-opt", lambda: _Main(args=argv).run(), own_process=False)


def test_prints_the_module(source: str, capsys: pytest.CaptureFixture[str]):
    assert main([source]) == 0
    out, err = capsys.readouterr()
    assert "arith.muli %b, %b" in out
    assert err == ""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-p", "legalise-ops-x"], ["unknown pass 'legalise-ops-x'"]),
        (["-p", "verify-dominanc"], ["unknown pass 'verify-dominanc'", "hint: did you mean 'verify-dominance'"]),
        (["-p", "cse{a=1}"], ["pass 'cse'", "hint: it has no options"]),
        (["-p", "verify-stage"], ['requires argument "stage"', "hint: its options are stage: str"]),
        (["-p", "verify-stage{stage=relaxed}"], ["expected one of the stages relax,", "got relaxed"]),
        (["-p", "schedule-cpu{target=abacus}"], ["pass 'schedule-cpu' failed", 'unknown target "abacus"']),
        (["-p", "vectorize{lanes=0}"], ["pass 'vectorize': lanes expected a positive number, got 0"]),
        (["-p", "convert-tir-to-llvm{vector-bits=13}"], ["vector-bits expected a power of two of at least 64, got 13"]),
        (["-p", 'convert-tir-to-llvm{extensions="avx"}'], ["extensions expected some of fma, avx512dq, ", "got avx"]),
        (["-p", "convert-layout{block=-2}"], ["block expected a number of channels, or 0, got -2"]),
        (["--shape", "x=[3]"], ["--shape is for ONNX models; the text says its shapes"]),
        (["-p", "cse{"], ["Error parsing pass pipeline", "^"]),
    ],
    ids=[
        "unknown",
        "misspelt",
        "extra-option",
        "missing-option",
        "bad-option",
        "machine",
        "no-lanes",
        "bits",
        "extensions",
        "block",
        "shape",
        "syntax",
    ],
)
def test_bad_arguments(source: str, arguments: list[str], expected: list[str], capsys: pytest.CaptureFixture[str]):
    assert main([source, *arguments]) == 1
    err = capsys.readouterr().err
    assert "Traceback" not in err
    for part in expected:
        assert part in err


def test_a_former_name_of_a_pass_is_noted(source: str, capsys: pytest.CaptureFixture[str]):
    assert _run(source, "-p", "lines-as-pictures") == 0
    assert "note: the pass 'lines-as-pictures' is called 'convert-conv1d-to-conv2d' now" in capsys.readouterr().err


def test_missing_file(capsys: pytest.CaptureFixture[str]):
    assert main(["/nowhere/f.mlir"]) == 1
    assert "relax-opt: error: /nowhere/f.mlir: no such file or directory" in capsys.readouterr().err


def test_file_of_another_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "f.rvm"
    path.write_text("")
    assert main([str(path)]) == 1
    expected = f"relax-opt: error: {path}: expected a module, got an executable, which is compiled: relax-run runs it"
    assert expected in capsys.readouterr().err
    assert main([str(tmp_path / "f.txt")]) == 1
    expected = "expected a file that ends in one of .mlir, .onnx, .pt2, .py, .gguf, got "
    assert expected in capsys.readouterr().err


def test_malformed_text_has_place_line_and_caret(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "f.mlir"
    path.write_text("func.func @f() {\n  %a = arith.constant : i32\n}")
    assert main([str(path)]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith(f"{path}:2:23: error: ")
    assert lines[1:3] == ["  %a = arith.constant : i32", " " * 22 + "^"]


def test_text_that_is_not_unicode(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "f.mlir"
    path.write_bytes(b"\xff\xfe")
    assert main([str(path)]) == 1
    expected = "expected text in UTF-8, got the byte 0xff at position 0"
    assert capsys.readouterr().err == f"relax-opt: error: {path}: {expected}\n"


def test_deep_nesting(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "f.mlir"
    depth = 2000
    path.write_text('"test.op"() ({' * depth + '"test.op"() : () -> ()' + "}) : () -> ()" * depth)
    assert main([str(path)]) == 1
    assert "relax-opt: error: the input is nested too deeply" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        ("emit", ["pass 'break' failed", ":3:3: error: 'arith.muli' op is too large (in @f)", "  >   %c = arith.muli"]),
        ("fail", ["pass 'break' failed", ":3:3: error: 'arith.muli' op is too large (in @f)", "hint: make it smaller"]),
        ("plain", ["pass 'break' failed\nnothing works"]),
        (
            "bug",
            [
                "internal error in pass 'break': KeyError: 'lost' (at test_relax_opt.py:",
                " in _bug)",
                "hint: set RELAX_DEBUG=1",
            ],
        ),
        ("dominance", ["pass 'break' made an invalid module", "'arith.muli' op operand #0 (%b) is used before"]),
        ("verifier", ["pass 'break' made an invalid module", ":3:3: error: 'arith.muli' op"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_failing_pass(source: str, way: str, expected: list[str], capsys: pytest.CaptureFixture[str]):
    assert _run(source, "-p", f"cse,break{{way={way}}},canonicalize") == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    for part in expected:
        assert part in err
    assert len(err.splitlines()) < 15


def test_diagnostics_go_to_stdout_when_they_are_expected(source: str, capsys: pytest.CaptureFixture[str]):
    assert _run(source, "-p", "break{way=emit}", "--verify-diagnostics") == 0
    out, err = capsys.readouterr()
    assert "'arith.muli' op is too large" in out
    assert "builtin.module" not in out
    assert err == ""


def test_verification_can_be_left_to_the_end(source: str, capsys: pytest.CaptureFixture[str]):
    assert _run(source, "--no-verify-each", "-p", "break{way=dominance},verify-stage{stage=llvm}") == 1
    assert "pass 'verify-stage' failed" in capsys.readouterr().err
    assert _run(source, "--no-verify-each", "-p", "break{way=dominance},cse") == 1
    assert "pass 'cse' made an invalid module" in capsys.readouterr().err


def test_traceback_of_a_bug_on_request(
    source: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("RELAX_DEBUG", "1")
    assert _run(source, "-p", "break{way=bug}") == 1
    assert "Traceback" in capsys.readouterr().err


def test_debug_level_shows_the_stages_on_stderr(
    source: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("RELAX_DEBUG", "1")
    assert main([source, "-p", "cse,canonicalize"]) == 0
    out, err = capsys.readouterr()
    assert out.count("func.func") == 1
    assert err.count("func.func") == 2
    assert "IR after canonicalize" in err


def test_bad_debug_level(source: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("RELAX_DEBUG", "much")
    assert main([source]) == 1
    assert "RELAX_DEBUG expected a level from 0 to 4, got much" in capsys.readouterr().err


def test_times_go_to_stderr(source: str, capsys: pytest.CaptureFixture[str]):
    assert main([source, "-p", "cse,canonicalize", "--time-passes"]) == 0
    out, err = capsys.readouterr()
    assert "ms" not in out
    assert [line.split()[-1] for line in err.splitlines()] == ["cse", "canonicalize", "(verification)", "total"]


def test_reproducer(source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    reproducer = tmp_path / "repro.mlir"
    failing = "break{way=fail deep=true}"
    assert _run(source, "-p", f"cse,{failing},canonicalize", "--reproducer", str(reproducer)) == 1
    first = capsys.readouterr().err
    assert reproducer.read_text().splitlines()[0] == '// relax-opt -p break{way="fail" deep=true},canonicalize'
    assert _run(str(reproducer), "--run-reproducer") == 1
    # Positions are those of the source, because the reproducer carries them.
    assert capsys.readouterr().err == first


def test_run_reproducer_needs_one(source: str, capsys: pytest.CaptureFixture[str]):
    assert main([source, "--run-reproducer"]) == 1
    assert "a reproducer's first line is '// relax-opt -p <pipeline>'" in capsys.readouterr().err


def test_ir_after_failure(source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "after.mlir"
    assert _run(source, "-p", "break{way=dominance}", "--ir-after-failure", str(path)) == 1
    lines = path.read_text().splitlines()
    assert next(line for line in lines if "arith." in line).strip().startswith('%c = "arith.muli"')
    assert _run(source, "-p", "cse", "--ir-after-failure", str(tmp_path / "none.mlir")) == 0
    assert not (tmp_path / "none.mlir").exists()


def test_places_in_a_split_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "f.mlir"
    path.write_text(f"{TEXT}// -----\n{TEXT}")
    assert _run(str(path), "--split-input-file", "-p", "verify-stage{stage=llvm}", "--verify-diagnostics") == 0
    out = capsys.readouterr().out
    assert f"{path}:1:1: error" in out
    assert f"{path}:7:1: error" in out


def test_every_chunk_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """As by `mlir-opt`: all errors of a split file at their positions, and what is right rewritten."""
    misnamed = TEXT.replace("%b = ", "%b, %other = ").replace("%c = ", "%c, %more = ")
    path, written = tmp_path / "f.mlir", tmp_path / "out.mlir"
    path.write_text("// -----\n".join([misnamed, TEXT, misnamed, "test.nothing\n", TEXT]))
    assert _run(str(path), "--split-input-file", "-o", str(written)) == 1
    errors = [line for line in capsys.readouterr().err.splitlines() if ": error: " in line]
    assert [error.removeprefix(f"{path}:").split(":")[0] for error in errors] == ["2", "3", "14", "15", "19"]
    first, second, third, fourth, fifth = written.read_text().split("// -----\n")
    assert (first, third, fourth) == ("", "", "")
    assert second == fifth
    assert "@f" in second


def test_passes_are_explained(capsys: pytest.CaptureFixture[str]):
    assert main(["--explain-pass"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(PASSES)
    assert main(["--explain-pass", "verify-stage"]) == 0
    out = capsys.readouterr().out
    assert "```mlir" in out
    assert "  or-later: bool, false by default" in out
    assert main(["--explain-pass", "verify-stages"]) == 1
    assert "did you mean 'verify-stage'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("// expected-error @below {{no}}", ['f.mlir:3: error: expected error "no" was not produced']),
        ("// expected-note {{no}}", ['f.mlir:3: error: expected note "no" was not produced']),
        ("// expected-error@+1 {{no}", ["f.mlir:3: no expectation can be read: expected-error@+1 {{no}\n"]),
        ("// expected-eror {{no}}", ["no expectation can be read: expected-eror {{no}}\nhint: one is expected-error@"]),
        ("// expected-remark {{no}}", ["f.mlir:3: expected-remark: the tools say errors and notes, so expect these"]),
        (
            "%d = arith.addi %x, %a : i32  // expected-error @above {{%x}}",
            [
                "f.mlir:7: error: unexpected error: values used but not defined: [%x]",
                'expected error "%x" was not produced',
            ],
        ),
    ],
)
def test_expectations_that_are_not_met(
    comment: str, expected: list[str], source: str, capsys: pytest.CaptureFixture[str]
):
    """`expected-error` of texts is in `tests/filecheck/tools/expected_errors.mlir`."""
    Path(source).write_text(TEXT.replace("  %c =", f"  {comment}\n  %c ="))
    assert main([source, "--verify-diagnostics"]) == 1
    err = capsys.readouterr().err
    assert all(line in err for line in expected), err


@pytest.mark.parametrize("option", ["--mlir-print-ir-before", "--mlir-print-ir-after"])
def test_what_does_not_run_is_not_printed(option: str, source: str, capsys: pytest.CaptureFixture[str]):
    assert main([source, "-p", "cse,canonicalize", f"{option}=dce"]) == 1
    assert capsys.readouterr().err == f"relax-opt: error: {option}=dce: -p has no such pass\n"


def test_faults_of_an_extension_have_their_line(source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "rules.py"
    path.write_text("def rule():\n    return 1 / 0\n\nrule()\n")
    for name, message in ((path, f"{path}:2: ZeroDivisionError: division by zero"), ("no.py", "no.py: no such file")):
        assert main([source, "--load", str(name)]) == 1
        assert capsys.readouterr().err.startswith(f"relax-opt: error: {message}\n")
