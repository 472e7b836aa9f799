"""Text of types, what they refuse, and substitution of symbols."""

import pytest
from hypothesis import given
from xdsl.dialects.builtin import f32, i8, i64
from xdsl.utils.exceptions import ParseError, VerifyException

from relax_dialect.struct_info.symbols import free_symbols, fresh_name, iter_bare_symbols, substitute
from relax_dialect.struct_info.types import FuncType, ObjectType, PartialShapeAttr, PrimType, TensorType
from tests.support.struct_info import func, info, infos, valuations
from tir_dialect.dims import symbol, to_dim
from tir_dialect.types import SymbolAttr

TEXTS = (
    "object",
    "tensor<[n, 4 * m], f32>",
    "tensor<[n, _], f32>",
    "tensor<[], i1>",
    "tensor<*, _>",
    'tensor<[n], bf16, "cuda:0">',
    "shape<[n, 1]>",
    "shape<[_, _]>",
    "shape<[]>",
    "shape<*>",
    "prim<i64, n + 1>",
    "prim<i64>",
    "prim<f32>",
    "tuple<>",
    "tuple<!relax.tuple<!relax.object>, !relax.prim<i1>>",
    "func<() -> !relax.object, pure>",
    "func<[n in [1, 2048], k](!relax.tensor<[n, k], f32>) -> !relax.tensor<[n], f32>, impure>",
    "func<* -> !relax.object, impure>",
    'func<* derive "name" -> !relax.object, pure>',
)


@pytest.mark.parametrize("text", TEXTS)
def test_text_is_canonical(text: str):
    assert str(info(text)) == f"!relax.{text}"


@given(infos())
def test_text_parses_back(subject: object):
    assert info(str(subject).removeprefix("!relax.")) == subject


def test_purity_may_be_left_out():
    assert func("() -> !relax.object").pure
    assert not func("*").pure
    assert func("*").ret == ObjectType()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tensor<[n], i3>", "expected an element type, got i3"),
        ("tensor<[n], !relax.object>", "expected an element type"),
        ("prim<f32, n>", "carries a value only for i64, got f32"),
        ("tuple<f32>", "expected a relax type, got f32"),
        ("tensor<[n + ], f32>", "expected a dimension"),
        ("func<[n, n]() -> !relax.object>", "binds a symbol twice"),
        ("func<[n in [3, 2]]() -> !relax.object>", "empty or negative bounds"),
    ],
)
def test_text_is_refused(text: str, message: str):
    with pytest.raises((ParseError, VerifyException), match=message):
        info(text)


def test_opaque_functions_have_no_signature():
    with pytest.raises(VerifyException, match="opaque"):
        FuncType(None, symbols=["n"])
    with pytest.raises(VerifyException, match="both parameters and a derive function"):  # well-formedness 17
        FuncType([], derive="f")


def test_python_spelling():
    tensor = TensorType(("n", 4, None, "2 * n"), f32)
    assert tensor == info("tensor<[n, 4, _, 2 * n], f32>")
    assert (tensor.rank, tensor.dtype, tensor.device, tensor.known_dims) == (4, f32, None, None)
    assert TensorType((2, "n"), i8).known_dims == (to_dim(2), to_dim("n"))
    assert TensorType().dims is None
    assert PrimType(i64, "n").symbol == "n"
    assert PrimType(i64, "n + 1").symbol is None
    assert PartialShapeAttr.of(None).data is None


def test_free_symbols_are_those_that_no_function_binds():
    subject = info(
        "tuple<!relax.func<[n](!relax.tensor<[n, m], f32>) -> !relax.prim<i64, k>, pure>, !relax.shape<[n]>>"
    )
    assert free_symbols(subject) == {"m", "k", "n"}
    assert free_symbols(func("[n](!relax.tensor<[n], f32>) -> !relax.object")) == set()


def test_bare_symbols_are_those_that_a_match_binds_first():
    subject = info("tuple<!relax.tensor<[n, 2 * m, _], f32>, !relax.prim<i64, k>, !relax.shape<[m + 1]>>")
    assert list(iter_bare_symbols(subject)) == ["n", "k"]


def test_substitution_is_simultaneous():
    swapped = substitute(info("tensor<[n, m], f32>"), {"n": symbol("m"), "m": symbol("n")})
    assert swapped == info("tensor<[m, n], f32>")


def test_substitution_renames_bound_symbols_out_of_the_way():
    subject = func("[n, n_1](!relax.tensor<[n, m, n_1], f32>) -> !relax.tensor<[n], f32>")
    renamed = substitute(subject, {"m": symbol("n"), "n": symbol("never")})
    assert renamed == func("[n_2, n_1](!relax.tensor<[n_2, n, n_1], f32>) -> !relax.tensor<[n_2], f32>")


def test_substitution_keeps_bounds():
    subject = FuncType([TensorType(("n", "m"), f32)], symbols=[SymbolAttr("n", 1, 8)])
    assert [bound.interval for bound in substitute(subject, {"m": symbol("n")}).symbols] == [(1, 8)]


@given(infos(), valuations())
def test_substitution_of_everything_leaves_no_symbol(subject: ObjectType, values: dict[str, int]):
    assert free_symbols(substitute(subject, {name: to_dim(value) for name, value in values.items()})) == set()


def test_fresh_name():
    assert fresh_name("n", {"m"}) == "n"
    assert fresh_name("n", {"n", "n_1"}) == "n_2"
