import pytest
from xdsl.dialects import test

from lowering.diagnostics import MAX_SHOWN, Finding, InvalidModule, fail, refuse, render
from lowering.parsing import parse_module

TEXT = """\
func.func @f(%a: i32) -> i32 {
  %b = arith.addi %a, %a : i32
  %c = arith.muli %b, %b : i32
  %d = arith.subi %c, %b : i32
  %e = arith.subi %d, %b : i32
  func.return %e : i32
}
"""


def test_a_report_shows_place_reason_context_and_way_out():
    module = parse_module(TEXT, "f.mlir")
    op = next(op for op in module.walk() if op.name == "arith.muli")
    with pytest.raises(InvalidModule) as caught:
        fail(op, "expected a smaller number, got 7", "take 6")
    assert str(caught.value).splitlines() == [
        "f.mlir:3:3: error: 'arith.muli' op expected a smaller number, got 7 (in @f)",
        "    func.func @f(%a: i32) -> i32 {",
        "      %b = arith.addi %a, %a : i32",
        "  >   %c = arith.muli %b, %b : i32",
        "      %d = arith.subi %c, %b : i32",
        "      %e = arith.subi %d, %b : i32",
        "  hint: take 6",
    ]


def test_the_name_of_the_op_is_not_said_twice():
    op = test.TestOp()
    assert Finding.at(op, "'test.op' op is wrong").message == "'test.op' op is wrong"


def test_an_op_without_a_place_or_function_is_shown_all_the_same():
    assert render((Finding.at(test.TestOp(), "is wrong"),)).splitlines() == [
        "error: 'test.op' op is wrong",
        '  > "test.op"() : () -> ()',
    ]


def test_long_reports_are_cut_and_counted():
    op = test.TestOp()
    report = render([Finding.at(op, "is wrong")] * (MAX_SHOWN + 2))
    assert report.count("is wrong") == MAX_SHOWN
    assert report.endswith("and 2 more errors")


def test_an_op_that_its_printer_cannot_print_is_shown_in_the_generic_form():
    module = parse_module(TEXT, "f.mlir")
    op = next(op for op in module.walk() if op.name == "func.return")
    function = op.parent_op()
    assert function is not None
    del function.properties["function_type"]
    assert '>   "func.return"' in render((Finding.at(op, "is wrong"),))


def test_no_findings_no_error():
    refuse(())
