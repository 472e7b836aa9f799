"""Types from text, and random types with a reference meaning: the type at given values of the symbols."""

from collections.abc import Mapping
from functools import cache

from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, f16, f32, i64
from xdsl.parser import Parser

from relax_dialect.dialect import Relax
from relax_dialect.struct_info.symbols import free_symbols, substitute
from relax_dialect.struct_info.types import (
    FuncType,
    ObjectType,
    PrimType,
    ShapeType,
    StructInfo,
    TensorType,
    TupleType,
    parse_struct_info,
)
from tir_dialect.dialect import TIR
from tir_dialect.dims import Dim, constant, symbol

SYMBOLS = ("k", "m", "n")


@cache
def context() -> Context:
    """A context with the dialects of relax programs."""
    context = Context()
    for dialect in (Builtin, Relax, TIR):
        context.load_dialect(dialect)
    return context


@cache
def info(text: str) -> StructInfo:
    """The type written `!relax.<text>`."""
    parser = Parser(context(), f"!relax.{text}")
    return parse_struct_info(parser)


def func(text: str) -> FuncType:
    """The function type written `!relax.func<text>`."""
    parsed = info(f"func<{text}>")
    assert isinstance(parsed, FuncType)
    return parsed


def at(subject: StructInfo, values: Mapping[str, int]) -> StructInfo:
    """`subject` with numbers for its symbols."""
    return substitute(subject, {name: constant(value) for name, value in values.items()})


def dims(symbols: tuple[str, ...] = SYMBOLS) -> st.SearchStrategy[Dim]:
    """Linear dimensions over `symbols`, and constants."""
    linear = st.builds(
        lambda name, factor, offset: factor * symbol(name) + offset,
        st.sampled_from(symbols),
        st.integers(1, 3),
        st.integers(0, 2),
    )
    return linear | st.integers(0, 4).map(constant)


def shapes(max_rank: int = 3) -> st.SearchStrategy[tuple[Dim | None, ...] | None]:
    """Shapes of which anything from nothing to everything is known."""
    known = st.lists(st.none() | dims(), max_size=max_rank).map(tuple)
    return st.none() | known


def infos(functions: bool = True) -> st.SearchStrategy[StructInfo]:
    """Types of every kind."""
    leaves = st.one_of(
        st.just(ObjectType()),
        st.builds(TensorType, shapes(), st.sampled_from((f32, f16, None)), st.sampled_from((None, "cpu"))),
        st.builds(ShapeType, shapes()),
        st.builds(lambda value: PrimType(i64, value), st.none() | dims()),
        st.just(PrimType(f32)),
    )

    def extend(inner: st.SearchStrategy[StructInfo]) -> st.SearchStrategy[StructInfo]:
        tuples = st.lists(inner, max_size=3).map(TupleType)
        signatures = st.builds(
            lambda params, ret, pure: FuncType(params, ret, pure=pure),
            st.none() | st.lists(inner, max_size=2),
            inner,
            st.booleans(),
        )
        return tuples | signatures if functions else tuples

    return st.recursive(leaves, extend, max_leaves=5)


def valuations() -> st.SearchStrategy[dict[str, int]]:
    """Numbers for all symbols."""
    return st.fixed_dictionaries({name: st.integers(0, 4) for name in SYMBOLS})


def uses_only(subject: StructInfo, scope: set[str]) -> bool:
    """Whether every free symbol is in `scope`."""
    return free_symbols(subject) <= scope
