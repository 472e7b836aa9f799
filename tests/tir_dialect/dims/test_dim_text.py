import pytest

from tir_dialect.dims import DimSyntaxError, Prover, constant, parse_dim, symbol, to_dim


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


TEN = "(a + b + c + d + e + f + g + h + i + j)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (" * ".join([TEN] * 20), "the product of 715 and 10 terms has too many terms, the limit is 4096"),
        (" + ".join(f"s{i}" for i in range(5000)), "dimension has more than 4096 terms"),
        (" * ".join(["n"] * 129), "dimension has a product of more than 128 factors"),
        (" * ".join([str(1 << 62)] * 20), "dimension has a number of more than 1024 bits"),
        (" * ".join(f"(floordiv(a, {i + 2}) + mod(a, {i + 2}))" for i in range(20)), "has too many terms"),
        (
            f"floordiv({' * '.join(['(a + b + c)'] * 40)}, a * b - c)",
            "the quotient of 861 and 2 terms has too many terms",
        ),
        (f"max({', '.join(f'x{i}' for i in range(20_000))})", "has more than 16384 symbols, numbers and functions"),
    ],
)
def test_what_is_too_large_is_refused_at_its_place(text: str, message: str):
    with pytest.raises(DimSyntaxError, match=message) as caught:
        parse_dim(text)
    assert "at column" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        f"floordiv({' * '.join(['(a + b + c)'] * 15)}, {' * '.join(['(a + 2 * b - c)'] * 6)})",
        f"mod({' * '.join(['(a + b + c + d)'] * 8)}, a + b + c + d + 1)",
        f"max({', '.join(f'a{i} + b{i}' for i in range(300))})",
        f"{'max(' * 90}a{''.join(f', b{i} * c{i})' for i in range(90))}",
        f"{'floordiv(mod(' * 45}a{''.join(f' + b * c + {i}, {i + 2}), {i + 3})' for i in range(45))}",
        f"{'floordiv(' * 60}{TEN}{f' * {TEN}, {TEN})' * 60}",
    ],
)
def test_large_expressions_that_are_not_refused(text: str):
    dim = parse_dim(text)
    assert parse_dim(str(dim)) is dim
    assert Prover().equal(dim, dim) is True


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
