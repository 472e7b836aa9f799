"""What is said of mistakes in types and in the first lines of functions."""

from __future__ import annotations

import pytest
from xdsl.utils.exceptions import ParseError

from lowering.parsing import parse_module

HEADS = {
    "relax.func @f(x: !relax.object) {": (15, 1, "names of values begin with %: %x"),
    "relax.func f(%x: !relax.object) {": (12, 1, "names of functions begin with @: @f"),
    "relax.func impure @f(%x: !relax.object) {": (
        12,
        6,
        "'impure' stands before the body: relax.func @f() -> !relax.object impure {",
    ),
    "func @f(%x: !relax.object) {": (1, 4, "unknown operation 'func'; did you mean 'relax.func'"),
    "relax.func @f(%x: !relax.tensor<4x?xf32>) {": (
        33,
        1,
        "expected a shape in brackets: !relax.tensor<[4, _], f32>",
    ),
    "relax.func @f(%x: !relax.tensor<4, f32>) {": (33, 1, "expected a shape in brackets: !relax.tensor<[4, n], f32>"),
    "relax.func @f(%x: !relax.tensor<(4, n), f32>) {": (
        33,
        1,
        "expected a shape in brackets: !relax.tensor<[4, n], f32>",
    ),
    "relax.func @f(%x: !tensor<[4], f32>) {": (19, 7, "unknown type '!tensor'; did you mean !relax.tensor?"),
    "relax.func @f(%x: !relax.tensr<[4], f32>) {": (19, 12, "unknown type '!relax.tensr'; did you mean !relax.tensor?"),
    "relax.func @f(%x: !bf16) {": (19, 5, "unknown type '!bf16'"),
    'relax.func @f(%x: !relax.tensor<[4], "float32">) {': (38, 9, "types stand without quotes: f32"),
    "relax.func @f(%x: tensor<4x4xf32>) {": (
        19,
        1,
        "expected a relax type, got tensor<4x4xf32>; did you mean !relax.tensor<[4, 4], f32>?",
    ),
    "relax.func @f(%x: relax.tensor<[4], f32>) {": (19, 12, "types of dialects begin with !: !relax.tensor"),
    "relax.func @f(%x: !relax.tensor<[4], fp16>) {": (38, 4, "unknown type 'fp16'; did you mean f16?"),
    "relax.func @f(%x: !relax.tensor<[4], flot32>) {": (38, 6, "unsupported dtype 'flot32'; did you mean f32?"),
    "relax.func @f(%x: !relax.object) -> (!relax.object, !relax.object) {": (
        68,
        1,
        "'relax.func' op expected '->', got '{'; several results are one tuple: "
        "-> !relax.tuple<!relax.tensor<[n], f32>, !relax.shape>",
    ),
    "relax.func @f(%x: !relax.tensor<[-1, 4], f32>) {": (34, 1, "expected a size of at least 0, or _ for any, got -1"),
    "relax.func @f[%n](%x: !relax.tensor<[n / 2], f32>) {": (
        40,
        1,
        "expected ']' in a shape, got '/'; a quotient is floordiv(n, 2) or ceildiv(n, 2)",
    ),
    "relax.func @f(%x: !relax.tensor<[4] f32>) {": (
        37,
        3,
        "Expected ',' between the shape and the dtype: !relax.tensor<[4, n], f32>",
    ),
    "relax.func @f[%n](%x: !relax.tensor<[%n], f32>) {": (38, 2, "symbols stand without % in types: n"),
    "relax.func @f(%x: !relax.tensor<[4.0], f32>) {": (
        34,
        3,
        "expected a dimension: an integer, a symbol, a function or '(', got '4.0'",
    ),
    "relax.func @f(%x: !relax.tensor<[4, f32>) {": (40, 1, "expected ']' in a shape before the dtype f32"),
    "relax.func @f(%x: !relax.tensor<[4], f32) {": (41, 1, "expected '>' at the end of a type, got ')'"),
    "relax.func @f(%x: !relax.object %y: !relax.object) {": (
        33,
        2,
        "'relax.func' op expected ',' or ')', got '%y'; it is written relax.func @main[%n in [1, 2048], %k]"
        "(%x: !relax.tensor<[n, k], f32>) -> !relax.tensor<[n * k], f32> {",
    ),
    "relax.func @f(%x: !relax.object) : !relax.object {": (
        34,
        1,
        "expected '{' or '->', got ':'; the type of the result is written -> !relax.tensor<[n], f32>",
    ),
}
"""Wrong first lines of functions, and what is said: a column, how many characters from there, and a message."""


@pytest.mark.parametrize("head", HEADS)
def test_message_of_a_wrong_head(head: str):
    column, width, message = HEADS[head]
    with pytest.raises(ParseError) as caught:
        parse_module(f"{head}\n  relax.return %x\n}}")
    indent = " " * (column - 1)
    assert str(caught.value) == f"<text>:1:{column}\n{head}\n{indent}{'^' * width}\n{indent}{message}\n"


def test_message_of_a_quotient_that_begins_a_comment():
    with pytest.raises(ParseError) as caught:
        parse_module("relax.func @f[%n](%x: !relax.tensor<[n // 2], f32>) {\n  relax.return %x\n}")
    assert str(caught.value) == (
        "<text>:2:3\n  relax.return %x\n  ^^^^^^^^^^^^\n"
        "  expected ']' in a shape; // begins a comment, and a quotient is floordiv(n, 2) or ceildiv(n, 2)\n"
    )
