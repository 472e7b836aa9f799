"""What LLVM does with code of which kind."""

import os

import pytest

from lowering.llvm.binding import CodegenError, refusing_unknown_names
from lowering.llvm.compiler import CompileOptions, emit_assembly, emit_llvm_ir
from tir_dialect.codegen_hints import PLAIN_ADDRESSES, REPEATED_WORK
from tir_dialect.target import Target

UNROLLED = """
define void @f(ptr %x, i64 %n) {
entry:
  %some = icmp slt i64 0, %n
  br i1 %some, label %body, label %exit
body:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %p = getelementptr inbounds <8 x float>, ptr %x, i64 %i
  %v = load <8 x float>, ptr %p, align 4
  %w = fadd <8 x float> %v, %v
  store <8 x float> %w, ptr %p, align 4
  %next = add nsw i64 %i, 1
  %more = icmp ne i64 %next, %n
  br i1 %more, label %body, label %exit, !llvm.loop !0
exit:
  ret void
}
!0 = distinct !{!0, !1}
!1 = !{!"llvm.loop.unroll.count", i32 2}
"""


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("znver3 features=+avx2,+bar", r"'\+bar' is not a recognized feature"),
        ("x86-64-v3 cpu=foo", "'foo' is not a recognized processor"),
        ("neoverse-n1 features=+avx2", r"'\+avx2' is not a recognized feature"),
    ],
)
def test_names_that_llvm_would_ignore(target: str, name: str, capfd: pytest.CaptureFixture[str]):
    with pytest.raises(CodegenError, match=name):
        emit_assembly(UNROLLED, Target.parse(target))
    assert capfd.readouterr().err == ""


def test_what_else_is_said_meanwhile_passes(capfd: pytest.CaptureFixture[str]):
    assert refusing_unknown_names(lambda: os.write(2, b"something else\n")) == 15
    assert capfd.readouterr().err == "something else\n"


def test_code_with_vectors_is_unrolled_as_often_as_its_hint_says():
    text = emit_llvm_ir(UNROLLED, Target.parse("x86-64-v3"), CompileOptions(3))
    # two turns at once, and the one that may be left
    assert text.count("fadd <8 x float>") == 3


STRIDED = """
define void @f(ptr noalias %x, ptr noalias %y, i64 %n) {
entry:
  br label %body
body:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %place = mul nsw i64 %i, 12
  %p = getelementptr inbounds <8 x float>, ptr %x, i64 %place
  %v = load <8 x float>, ptr %p, align 4
  %q = getelementptr inbounds <8 x float>, ptr %y, i64 %i
  store <8 x float> %v, ptr %q, align 4
  %next = add nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %body, label %exit, !llvm.loop !0
exit:
  ret void
}
!0 = distinct !{!0, !1}
!1 = !{!"HINT"}
"""


def test_plain_addresses_are_a_matter_of_one_module():
    target = Target.parse("x86-64-v3")
    usual, plain = (STRIDED.replace("HINT", hint) for hint in ("llvm.loop.unroll.disable", PLAIN_ADDRESSES))
    before, computed, after = (emit_assembly(text, target, CompileOptions(3)) for text in (usual, plain, usual))
    assert before == after
    assert ("shl" in before, "shl" in computed) == (False, True)
    assert "shl" in emit_assembly(usual + "\n" * 100_000, target, CompileOptions(3)), "long code is left as it is"


INVARIANT = """
define void @f(ptr noalias %x, ptr noalias %y, i64 %n) {
entry:
  %place = alloca i64, align 8
  store i64 0, ptr %place, align 8
  br label %body
body:
  %i = load i64, ptr %place, align 8
  %v = load <8 x float>, ptr %x, align 4
  %twice = fadd <8 x float> %v, %v
  %none = add i64 %i, 0
  %q = getelementptr inbounds <8 x float>, ptr %y, i64 %none
  store <8 x float> %twice, ptr %q, align 4
  %next = add nsw i64 %i, 1
  store i64 %next, ptr %place, align 8
  %more = icmp slt i64 %next, %n
  br i1 %more, label %body, label %exit, !llvm.loop !0
exit:
  ret void
}
!0 = distinct !{!0, !1}
!1 = !{!"HINT"}
"""


def test_only_where_loops_repeat_work_is_more_than_single_instructions_simplified():
    target = Target.parse("x86-64-v3")
    whole, brief = (
        emit_llvm_ir(INVARIANT.replace("HINT", hint), target, CompileOptions(3))
        for hint in (REPEATED_WORK, "llvm.loop.unroll.disable")
    )
    for text in (whole, brief):
        assert "alloca" not in text
        assert "add i64 %i, 0" not in text
    in_front = [text.partition("body:")[0] for text in (whole, brief)]
    assert ["fadd" in each for each in in_front] == [True, False]
