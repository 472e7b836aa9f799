from io import StringIO

import pytest
from xdsl.context import Context
from xdsl.ir import Dialect
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError

from tir_dialect.dims import floordiv, symbol, to_dim
from tir_dialect.types import DimAttr, parse_dim_expr, parse_dim_list, parse_optional_dim_list, print_dim_list

n, m = symbol("n"), symbol("m")


def parser_of(text: str) -> Parser:
    ctx = Context()
    ctx.load_dialect(Dialect("tir", [], [DimAttr]))
    return Parser(ctx, text, "in.mlir")


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("n", "n"),
        ("4", "4"),
        ("-4", "-4"),
        ("n-1", "n - 1"),
        ("n - -1", "n + 1"),
        ("4 * -1 * n", "-4 * n"),
        ("1+4*n", "4 * n + 1"),
        ("n*4", "4 * n"),
        ("2 * n * m", "2 * m * n"),
        ("(n + 1) * (n - 1)", "n * n - 1"),
        ("floordiv(n, 2)", "floordiv(n, 2)"),
        ("mod(n + m, 8)", "mod(m + n, 8)"),
        ("ceildiv(n, 4)", "floordiv(n + 3, 4)"),
        ("min(n, m, n)", "min(m, n)"),
        ("max(n, 1)", "max(n, 1)"),
        ("broadcast(n, m)", "broadcast(m, n)"),
        ("0x10", "16"),
        ("n.1 + n$2 + _a", "_a + n$2 + n.1"),
    ],
)
def test_attribute_round_trip(text: str, printed: str):
    attribute = parser_of(f"#tir.dim<{text}>").parse_attribute()
    assert str(attribute) == f"#tir.dim<{printed}>"
    assert parser_of(str(attribute)).parse_attribute() == attribute
    assert attribute == DimAttr(text.replace("0x10", "16"))


def test_equal_dimensions_are_equal_attributes():
    assert DimAttr(n * 4) == DimAttr("4 * n") == DimAttr((8 * n) // 2)
    assert hash(DimAttr(n * 4)) == hash(DimAttr("4 * n"))
    assert DimAttr(n) != DimAttr(m)
    assert DimAttr.get(n).data is n
    assert DimAttr(3).data is to_dim(3)


@pytest.mark.parametrize(
    ("text", "marker", "message"),
    [
        ("4 *>", "        ^", "expected a dimension: an integer, a symbol, a function or '('"),
        ("n + %x", "            ^^", "expected a dimension"),
        ("floordiv(n)", "         ^^^^^^^^^^^", "'floordiv' expected 2 arguments, got 1"),
        ("mod(n, 1 - 1)", "         ^^^^^^^^^^^^^", "modulo of n by zero"),
        ("n + broadcast(2, 3)", "             ^^^^^^^^^^^^^^^", "extents 2 and 3 do not broadcast"),
        ("min * 2", "             ^", "expected '(' in dimension"),
        ("(n + 1", "               ^", "expected ')' in dimension"),
        ("_", "         ^", "'_' cannot name a symbol"),
        ("n m", "           ^", "'>' expected"),
        ("(" * 200 + "n", "^", "dimension is nested deeper than 100 levels"),
    ],
)
def test_errors_point_at_the_token(text: str, marker: str, message: str):
    with pytest.raises(ParseError) as caught:
        parser_of(f"#tir.dim<{text}>").parse_attribute()
    assert message in str(caught.value)
    assert marker in str(caught.value)


@pytest.mark.parametrize(("text", "dims"), [("[]", ()), ("[n]", (n,)), ("[n, 4 * m, 7]", (n, 4 * m, to_dim(7)))])
def test_lists(text: str, dims: tuple[object, ...]):
    parsed = parse_dim_list(parser_of(text))
    assert parsed == dims
    assert parse_optional_dim_list(parser_of(text)) == dims
    output = StringIO()
    print_dim_list(Printer(output), parsed)
    assert output.getvalue() == text


def test_optional_list_leaves_other_tokens():
    parser = parser_of("n")
    assert parse_optional_dim_list(parser) is None
    assert parse_dim_expr(parser) is n


def test_bare_expression_stops_at_what_follows():
    parser = parser_of("floordiv(n, 2) + m -> f32")
    assert parse_dim_expr(parser) is floordiv(n, 2) + m
    parser.parse_punctuation("->")
