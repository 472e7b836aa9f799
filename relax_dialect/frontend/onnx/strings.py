"""Strings of which only the program knows the elements: arrays that packed functions of the host compute with.

A program has such an array as an opaque object, and a tensor of indices into it: what moves elements moves indices.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import i1, i64
from xdsl.ir import Attribute

from relax_dialect.builder import BlockBuilder, op
from relax_dialect.frontend.onnx.node import GraphScope, Node, Result, converts
from relax_dialect.frontend.onnx.values import OTHER, Refusal, Strings, Texts, Value
from relax_dialect.struct_info.types import ObjectType, TensorType
from tir_dialect.dims import Dim, broadcast, symbol
from vm_dialect.texts import PREFIX, compiled

if TYPE_CHECKING:
    from relax_dialect.builder.expr import Expr


def _called(bb: BlockBuilder, name: str, *arguments: Any, out: TensorType | ObjectType | None = None) -> Expr:
    """What a packed function on strings gives: an array of strings unless said."""
    return bb.call_pure_packed(f"{PREFIX}{name}", *arguments, out=ObjectType() if out is None else out)


def _options(**given: Any) -> Expr:
    return op.string(json.dumps(given))


def texts_of(graph: GraphScope, array: Expr, dims: Sequence[Dim | None]) -> Texts:
    """An array of strings as a value; dimensions that are not known become symbols."""
    bb, kind = graph.bb, TensorType([None] * len(dims), i64)
    at = _called(bb, "indices", array, op.string(str(len(dims))), out=kind)
    return Texts(bb.match_cast(at, TensorType([_fresh_dim(bb) if dim is None else dim for dim in dims], i64)), array)


def _fresh_dim(bb: BlockBuilder) -> Dim:
    name = bb.fresh_symbol("d")
    bb.frame.taken.add(name)
    return symbol(name)


def as_texts(bb: BlockBuilder, value: Value) -> Texts:
    """Strings as an array of the host."""
    if isinstance(value, Texts):
        return value
    if not isinstance(value, Strings):
        raise Refusal("expected strings, got numbers")
    if OTHER in value.vocabulary:
        raise Refusal("only the positions of these strings in a list are known")
    return Texts(value.at, _called(bb, "constant", op.string(json.dumps(value.vocabulary))))


def known_positions(bb: BlockBuilder, value: Texts, names: Sequence[str]) -> Strings:
    """Strings as their positions in a list that is known while importing; others are `OTHER`."""
    kind = TensorType(value.shape, i64)
    return Strings(
        _called(bb, "positions", value.texts, value.at, op.string(json.dumps(names)), out=kind), (*names, OTHER)
    )


def joined(bb: BlockBuilder, values: Sequence[Texts]) -> tuple[list[Expr], Expr]:
    """The indices of several values in one array, and the array."""
    array, found = values[0].texts, [values[0].at]
    for value in values[1:]:
        before = _called(bb, "size", array, out=TensorType((), i64))
        found.append(op.add(value.at, before))
        array = _called(bb, "join", array, value.texts)
    return found, array


def codes(bb: BlockBuilder, values: Sequence[Texts]) -> list[Expr]:
    """For each value a tensor of integers, which are equal where the strings are."""
    indices, array = joined(bb, values)
    table = bb.match_cast(_called(bb, "codes", array, out=TensorType([None], i64)), TensorType([_fresh_dim(bb)], i64))
    return [op.take(table, each, 0) for each in indices]


def result(bb: BlockBuilder, value: Texts) -> Expr:
    """The array of strings that a value is."""
    return _called(bb, "take", value.texts, value.at)


def _operands(node: Node, count: int = 1) -> list[Expr]:
    """The arrays and the indices of operands of strings."""
    values = [as_texts(node.bb, node.value(index)) for index in range(count)]
    return [each for value in values for each in (value.texts, value.at)]


def _mapped(node: Node, name: str, dtype: Attribute, *options: Expr) -> Expr:
    """A number for each string."""
    return _called(node.bb, name, *_operands(node), *options, out=TensorType(node.value(0).shape, dtype))


@converts("StringConcat")
def string_concat(node: Node) -> Result:
    """Strings one after the other."""
    first, second = (as_texts(node.bb, node.value(index)) for index in range(2))
    made = _called(node.bb, "concat", first.texts, first.at, second.texts, second.at)
    short, long = sorted((first.shape, second.shape), key=len)
    missing = len(long) - len(short)
    dims = [*long[:missing], *(broadcast(a, b) for a, b in zip(short, long[missing:], strict=True))]
    return texts_of(node.graph, made, dims)


@converts("RegexFullMatch")
def regex_full_match(node: Node) -> Result:
    """Whether an expression matches the whole of each string."""
    pattern = node.text("pattern")
    compiled(pattern)  # refuses what is none
    return _mapped(node, "full_match", i1, op.string(pattern))


@converts("StringSplit")
def string_split(node: Node) -> Result:
    """The parts of each string, and how many there are."""
    most = node.attributes.get("maxsplit")
    options = _options(delimiter=node.text("delimiter"), maxsplit=None if most is None else int(most))
    parts = _called(node.bb, "split", *_operands(node), options)
    return [
        texts_of(node.graph, parts, (*node.value(0).shape, None)),
        _mapped(node, "split_counts", i64, options),
    ]


@converts("StringNormalizer")
def string_normalizer(node: Node) -> Result:
    """Strings without some, in lower or upper case."""
    case, rank = node.text("case_change_action", "NONE"), len(node.value(0).shape)
    if case not in ("LOWER", "UPPER", "NONE") or rank not in (1, 2):
        raise Refusal(f"case_change_action {case} of strings of rank {rank} is not defined")
    options = _options(
        case=case, sensitive=bool(node.integer("is_case_sensitive")), stopwords=list(node.strings("stopwords"))
    )
    return texts_of(node.graph, _called(node.bb, "normalize", *_operands(node), options), (None,) * rank)


@converts("Tokenizer", domain="com.microsoft")
def tokenizer(node: Node) -> Result:
    """The tokens of each string."""
    separators, expression = node.strings("separators"), node.text("tokenexp")
    if bool(separators) is bool(expression):
        raise Refusal("either separators or an expression of tokens has to be given")
    for pattern in (*separators, expression):
        compiled(pattern)
    options = _options(
        expression=expression,
        separators=list(separators),
        least=node.integer("mincharnum", 1),
        mark=bool(node.integer("mark")),
        pad=node.text("pad_value"),
    )
    return texts_of(node.graph, _called(node.bb, "tokenize", *_operands(node), options), (*node.value(0).shape, None))
