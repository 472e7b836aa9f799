"""Names that are assigned more than once are memory, as in TVM; other names and `T.let` are values."""

import numpy as np
import pytest

from relax_dialect.frontend.tvmscript import TVMScriptError, parse
from tests.support.programs import run_in_turn

TEXT = """

@T.prim_func
def kernel(A: T.Buffer((8,), "float32"), B: T.Buffer((9,), "float32")):
    x = A[0]
    n: T.int32 = 0
    y: T.float32
    row = T.Broadcast(T.float32(1), 4)
    for i in range(1, 8):
        x = x + A[i]
        if A[i] > 3.0:
            n += 1
        let: T.let = x + 1.0
        if i % 4 == 0:
            row = row + A[i - 4 : i]
    B[0] = x
    B[1] = T.Cast("float32", n)
    k = 0
    while A[k] > 0.0:
        k = k + 1
    B[2] = A[k]
    y = 0.0
    y += 2.5
    B[3] = y
    a, b = A[1], A[2]
    a, b = b, a
    B[4] = a - b
    c = T.alloc_local((1,), "float32")
    c = 3.0
    memory: T.float32[2]
    memory[1] = c[0]
    B[5] = memory[1]
    B[6:8] = T.vectorhigh("float32x2", row)
    T.buffer_store(B, 7.0, [8])
    T.static_assert(8 % 4 == 0, "a multiple of four")

@R.function
def f(x: R.Tensor((8,), "float32")):
    return R.call_tir(kernel, (x,), out_ty=R.Tensor((9,), "float32"))
"""


def test_names_that_change():
    x = np.array([3, -1, 4, 1.5, -5, 9, 2, 6], np.float32)
    found = run_in_turn(parse(TEXT), "f", [x])
    expected = [x.sum(), 3, -1, 2.5, 5, 3, *(1 + x[2:4]), 7]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


REFUSED = {
    "T.static_assert(1 == 2, 'one is not two')": "one is not two",
    "T.buffer_store(3, 1.0, [0])": "expected a buffer to store to",
    "T.masked_store(A, T.Broadcast(1.0, 4))": "a buffer, a value, the place and a mask",
}


@pytest.mark.parametrize("body", REFUSED)
def test_refused(body: str):
    with pytest.raises(TVMScriptError, match=REFUSED[body]):
        parse(f"@T.prim_func\ndef f(A: T.Buffer((8,), 'float32')):\n    {body}")


ANNOTATED = """@T.prim_func
def f(A: T.Buffer((8,), "float32"), P: T.Buffer((8,), "int32")):
    x: {} = {}
    A[0] = T.cast(x, "float32")
"""
WRONG_ANNOTATIONS = {
    ("T.int32", '"a"'): ('expected a value of i32, got "a"', 18),
    ("T.int32", "1.5"): ("expected a value of i32, got 1.5; T.cast converts it", 18),
    ("T.int32", "A[0]"): ("expected a value of i32, got one of f32; T.cast converts it", 18),
    ("T.let[T.int32]", "A[0]"): ("expected a value of i32, got one of f32", 25),
    ("T.float32", "None"): ("expected a value of f32, got None", 20),
    ("T.float32", "(1, 2)"): ("expected a value of f32, got a tuple", 20),
    ("T.float32", "A"): ("expected a value of f32, got !tir.buffer<[8], f32>", 20),
    ("T.float32x4", "A[0]"): ("expected a value of 4 lanes of f32, got one of f32", 22),
    ("T.float32", "A[0:4]"): ("expected a value of f32, got 4 lanes of f32", 20),
    ("T.bool", "2"): ("expected a value of i1, got 2", 17),
    ("T.int8", "1000"): ("1000 does not fit dtype i8", 17),
    ('T.Buffer((8,), "float32")', "A[0]"): ("expected !tir.buffer<[8], f32>, got one of f32", 36),
    ('T.Buffer((4,), "float32")', "A"): ("expected !tir.buffer<[4], f32>, got !tir.buffer<[8], f32>", 36),
    ("T.handle", "A[0]"): ("expected a handle, got one of f32", 19),
    ("int", "1"): ("expected a dtype such as T.int32, T.let, T.Buffer", 8),
    ("something", "1"): ("expected a dtype such as T.int32, T.let, T.Buffer", 8),
    ('"int33"', "1"): ("int33", 8),
}


@pytest.mark.parametrize("pair", WRONG_ANNOTATIONS)
def test_wrong_annotations(pair: tuple[str, str]):
    message, column = WRONG_ANNOTATIONS[pair]
    with pytest.raises(TVMScriptError) as caught:
        parse(ANNOTATED.format(*pair))
    assert message in str(caught.value)
    assert (caught.value.line, caught.value.column) == (3, column)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        ("T.int64", "P[0]"),
        ("T.float64", "A[0]"),
        ("T.float32", "1"),
        ("T.bool", "P[0] < 1"),
        ("T.let", "A[0]"),
        ('"int8"', "3"),
    ],
)
def test_annotations_that_hold(annotation: str, value: str):
    parse(ANNOTATED.format(annotation, value))


@pytest.mark.parametrize("kind", ['R.Prim("int64")', 'R.Tensor((), "int64")', "T.int64", "R.Shape"])
def test_a_string_is_no_number(kind: str):
    text = f"@R.function\ndef f(x: R.Tensor((2,), 'float32')):\n    y: {kind} = \"a\"\n    return x\n"
    with pytest.raises(TVMScriptError, match=r'expected a value of type .*, got "a"') as caught:
        parse(text)
    assert (caught.value.line, caught.value.column) == (3, 11 + len(kind))
