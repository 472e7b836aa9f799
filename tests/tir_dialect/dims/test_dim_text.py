import pytest

from tir_dialect.dims import DimSyntaxError, constant, parse_dim, symbol, to_dim


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("n", "n"),
        ("0", "0"),
        ("-3", "-3"),
        ("4*n", "4 * n"),
        ("1 + 4 * n", "4 * n + 1"),
        ("2 * n * m", "2 * m * n"),
        ("n - 1", "n - 1"),
        ("1 - n", "1 - n"),
        ("-n", "-n"),
        ("-4 * n", "-4 * n"),
        ("m - 2*n", "m - 2 * n"),
        ("-n - m - 1", "-m - n - 1"),
        ("n*n*n - 3", "n * n * n - 3"),
        ("z + y*x + x*x", "x * x + x * y + z"),
        ("n // 2", "floordiv(n, 2)"),
        ("n % 8", "mod(n, 8)"),
        ("floordiv(n + 1, m)", "floordiv(n + 1, m)"),
        ("mod(n, 8) * floordiv(n, 4)", "floordiv(n, 4) * mod(n, 8)"),
        ("ceildiv(n, 4)", "floordiv(n + 3, 4)"),
        ("ceildiv(n, m)", "-floordiv(-n, m)"),
        ("min(n, m, 4)", "min(m, n, 4)"),
        ("max(n, 1)", "max(n, 1)"),
        ("broadcast(n, m)", "broadcast(m, n)"),
        ("((n))", "n"),
        ("2 * (n + 1) * 3", "6 * n + 6"),
        ("- - n", "n"),
        ("4 * -1", "-4"),
        ("n - -1", "n + 1"),
        (" n\n+\t1 ", "n + 1"),
        ("n * 8 // 4 * m", "2 * m * n"),
        ("7 - 2 - 1", "4"),
        ("-" * 300 + "n", "n"),
        ("minimum + max.1", "max.1 + minimum"),
    ],
)
def test_printing(text: str, printed: str):
    dim = parse_dim(text)
    assert str(dim) == printed
    assert repr(dim) == f"Dim('{printed}')"
    assert parse_dim(printed) is dim


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a dimension: an integer, a symbol, a function or '(', in '' at column 1"),
        ("4 *", "expected a dimension: an integer, a symbol, a function or '(', in '4 *' at column 4"),
        ("(n", "expected ')' in dimension, in '(n' at column 3"),
        ("n m", "unexpected 'm', in 'n m' at column 3"),
        ("f(x)", "unexpected '(', in 'f(x)' at column 2"),
        ("n ? 1", "unexpected character '?', in 'n ? 1' at column 3"),
        ("n / 2", "unexpected character '/', in 'n / 2' at column 3"),
        ("1.5", "unexpected character '.', in '1.5' at column 2"),
        ("n // 0", "division of n by zero, in 'n // 0' at column 3"),
        ("mod(n, 0)", "modulo of n by zero, in 'mod(n, 0)' at column 1"),
        ("broadcast(2, 3)", "extents 2 and 3 do not broadcast, in 'broadcast(2, 3)' at column 1"),
        ("mod(n)", "'mod' expected 2 arguments, got 1, in 'mod(n)' at column 1"),
        ("floordiv(n, 2, 3)", "'floordiv' expected 2 arguments, got 3, in 'floordiv(n, 2, 3)' at column 1"),
        ("min()", "expected a dimension: an integer, a symbol, a function or '(', in 'min()' at column 5"),
        ("min + 1", "expected '(' in dimension, in 'min + 1' at column 5"),
        ("n + 9223372036854775809", "9223372036854775809 is too large for a dimension, which has 64 bits and a sign"),
        ("_", "'_' cannot name a symbol, in '_' at column 1"),
        ("(" * 300 + "n" + ")" * 300, "dimension is nested deeper than 100 levels"),
        ("min(n, " * 300 + "n" + ")" * 300, "dimension is nested deeper than 100 levels"),
    ],
)
def test_errors_show_text_and_column(text: str, message: str):
    with pytest.raises(DimSyntaxError) as caught:
        parse_dim(text)
    assert message in str(caught.value)


def test_to_dim():
    n = symbol("n")
    assert to_dim(n) is n
    assert to_dim("n") is n
    assert to_dim("n * 4") is 4 * n
    assert to_dim(3) is constant(3)
    with pytest.raises(TypeError):
        to_dim(1.5)


def test_long_expressions_parse():
    text = " + ".join(f"s{i} * {i}" for i in range(1, 500))
    assert len(parse_dim(text).terms) == 499
