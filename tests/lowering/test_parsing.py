from cProfile import Profile

import pytest
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FileLineColLoc, StringAttr, VectorType, f16, f32, f64
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from lowering.context import make_context
from lowering.locations import source_position
from lowering.parsing import LocatedParser, parse_module
from relax_dialect.ops.structure import FuncOp

TEXT = """\
// a comment
func.func @f(%a: i32) -> i32 {
  %b = arith.addi %a,
         %a : i32   %c = arith.muli %b, %b : i32
  func.return %c : i32 loc("there":7:8)
}
"""


def test_every_op_knows_where_it_was_written():
    module = parse_module(TEXT, "f.mlir")
    found = {op.name: str(source_position(op.location)) for op in module.walk() if op is not module}
    assert found == {
        "func.func": "f.mlir:2:1",
        "arith.addi": "f.mlir:3:3",
        "arith.muli": "f.mlir:4:21",
        "func.return": "there:7:8",
    }


def test_lines_are_counted_from_the_offset_of_a_chunk():
    module = LocatedParser(make_context(), TEXT, "f.mlir", line_offset=10).parse_module()
    assert module.body.block.first_op is not None
    assert isinstance(location := module.body.block.first_op.location, FileLineColLoc)
    assert location.line.data == 12


def test_what_is_rejected_while_it_is_built_is_an_error_at_its_op():
    with pytest.raises(ParseError) as caught:
        parse_module('\n  "test.op"() {a = dense<[1, 2]> : tensor<3xi32>} : () -> ()', "f.mlir")
    assert str(caught.value.span.get_location()).startswith("f.mlir:2:")


@pytest.mark.parametrize("form", ["%x = {}", "{}", '%x = "{}"'])
def test_an_unknown_op_is_pointed_at_with_advice(form: str):
    text = form.format("arith.adi")
    with pytest.raises(ParseError) as caught:
        parse_module(f"%a = arith.constant 1 : i32\n{text} %a, %a : i32", "f.mlir")
    assert caught.value.msg.startswith("unknown operation 'arith.adi'; did you mean ")
    assert "'arith.addi'" in caught.value.msg
    assert caught.value.span.text == "arith.adi"


def test_a_string_that_is_not_closed_is_an_error_at_once():
    with pytest.raises(ParseError, match="before closing string literal"):
        parse_module(f'"test.op"() {{a = "{"x" * 10_000}}} : () -> ()')


def test_a_string_that_is_not_closed_is_an_error_at_once_in_a_text_that_is_read_ahead():
    """Names of functions below are looked for in all of the text."""
    text = f"""relax.func @main(%x: !relax.object) -> !relax.object {{
      %0 = relax.call @f(%x)
      "{"an open string " * 100}
      relax.return %0
    }}
    relax.func @f(%x: !relax.object) -> !relax.object {{
      relax.return %x
    }}"""
    with pytest.raises(ParseError, match="before closing string literal"):
        parse_module(text)


def functions_that_call_the_next(count: int) -> str:
    """None says its result."""
    inner = [
        f"""relax.func @f{each}[%n](%x: !relax.tensor<[n], f32>) {{
          %0 = relax.call @f{each + 1}(%x)
          relax.return %0
        }}"""
        for each in range(count)
    ]
    last = f"relax.func @f{count}[%n](%x: !relax.tensor<[n], f32>) {{ %0 = relax.exp %x relax.return %0 }}"
    return "\n".join([*inner, last])


def test_many_functions_may_call_each_the_next():
    module = parse_module(functions_that_call_the_next(300))
    functions = [op for op in module.ops if isinstance(op, FuncOp)]
    assert len(functions) == 301
    assert {str(each.function_type.ret) for each in functions} == {"!relax.tensor<[n], f32>"}


def test_functions_that_are_read_ahead_are_read_once_more_only():
    """Python functions that are called grow as the text does."""

    def calls(count: int) -> int:
        text, profile = functions_that_call_the_next(count), Profile()
        profile.runcall(parse_module, text)
        return sum(entry.callcount for entry in profile.getstats())

    calls(1)
    assert calls(40) < 4.4 * calls(10)


@pytest.mark.parametrize("name", ['"a b"', '"a\\22b"', '"\\C3\\A9"', '"é"'])
def test_a_function_below_may_have_any_name(name: str):
    text = f"""relax.func @main(%x: !relax.tensor<[2], f32>) {{
      %0 = relax.call @{name}(%x)
      relax.return %0
    }}
    relax.func @{name}(%x: !relax.tensor<[2], f32>) {{
      relax.return %x
    }}"""
    main, _ = parse_module(text).ops
    assert isinstance(main, FuncOp)
    assert str(main.function_type.ret) == "!relax.tensor<[2], f32>"


def test_a_product_of_many_sums_is_refused():
    factors = [f"(a{each} + b{each})" for each in range(40)]
    symbols = ", ".join(f"%a{each}, %b{each}" for each in range(40))
    with pytest.raises(ParseError, match="has too many terms, the limit is 4096"):
        parse_module(f"relax.func @main[{symbols}](%x: !relax.tensor<[{' * '.join(factors)}], f32>) {{ }}")


@pytest.mark.parametrize("text", ["", "a b", 'a \\"b\\" \\\\ \\n \\41', "é"])
def test_strings_are_read_as_before(text: str):
    source = f'"test.op"() {{a = "{text}"}} : () -> ()'
    assert str(parse_module(source)) == str(Parser(make_context(), source).parse_module())


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
@pytest.mark.parametrize("number", [12582912.0, -3.0, float("inf"), float("-inf")])
def test_dense_floats_are_read_as_they_are_printed(kind: str, number: float):
    if kind == "f16" and number == 12582912.0:
        number = 60000.0
    types = {"f16": f16, "f32": f32, "f64": f64}
    attribute = DenseIntOrFPElementsAttr.from_list(VectorType(types[kind], [2]), [number])
    module = parse_module(f'"test.op"() {{x = {attribute}}} : () -> ()')
    assert module.body.block.first_op is not None
    assert module.body.block.first_op.attributes["x"] == attribute


@pytest.mark.parametrize("text", ["é", 'a "quoted" é\n', "日本"])
def test_strings_are_read_as_they_are_printed(text: str):
    module = parse_module(f'"test.op"() {{a = {StringAttr(text)}}} : () -> ()')
    assert module.body.block.first_op is not None
    assert module.body.block.first_op.attributes["a"] == StringAttr(text)
    assert str(parse_module(str(module))) == str(module)


def test_values_named_by_numbers_can_be_copied():
    module = parse_module('%_1 = "test.op"() : () -> i32  %_2, %_3 = "test.op"(%_1) : (i32) -> (i32, i32)')
    assert str(module.clone()) == str(module)


@pytest.mark.parametrize("text", ["", "// nothing but a comment\n", '"builtin.module"() ({}) : () -> ()'])
def test_a_text_without_ops_is_a_module(text: str):
    assert not parse_module(text).ops.first


def test_wrong_numbers_of_names_are_reported_together():
    """Each with its position, the number of results and the names; what follows from them is not said."""
    text = """\
relax.func @f(%x: !relax.tensor<[4], f32>) -> !relax.object {
  %a, %b = relax.exp %x
  %c = relax.match_cast %x : !relax.tensor<[m], f32> binds [m]
  %d:3 = "relax.exp"(%x) : (!relax.tensor<[4], f32>) -> !relax.tensor<[4], f32>
  %e = relax.add %b, %x
  relax.return %c
}
"""
    with pytest.raises(ParseError) as caught:
        parse_module(text, "f.mlir")
    found = str(caught.value)
    assert "f.mlir:2:3" in found.splitlines()[0]
    for message in (
        "'relax.exp' op has 1 result, expected as many names, got 2: %a, %b",
        "'relax.match_cast' op has 2 results, expected as many names, got 1: %c",
        "'relax.exp' op has 1 result, expected as many names, got 3: %d:3",
    ):
        assert message in found
    assert found.count("expected as many names") == 3
    assert "relax.add" not in found.replace("%e = relax.add %b, %x", "")
