"""Layouts and shapes that the text describes: index maps as lambdas, lengths that follow from others."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from xdsl.ir.affine import AffineExpr, AffineMap

from relax_dialect.builder.expr import Expr
from relax_dialect.builder.operator_functions import function_of, operator_classes
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.captured import PythonFunction
from relax_dialect.frontend.tvmscript.text.evaluator import items_of
from relax_dialect.frontend.tvmscript.text.static import StaticReader, describe
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Atom, Dim, FloorDivAtom, ModAtom, SymbolAtom, product, symbol

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.relax_func.expressions import ExpressionReader


def _layout_transform(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.layout_transform(x, index_map=lambda i, j: (j, i), pad_value=None)`; separators of axes say nothing here."""
    names = "x index_map pad_value axis_separators input_axis_separators"
    given = Arguments(reader.source, node, "R.layout_transform", names, {"data": "x"})
    x, index_map = reader.read(given.require("x")), read_index_map(reader, given.require("index_map"))
    pad_value = 0.0 if (pad := given.get("pad_value")) is None else _number(reader, pad)
    return reader.emit(node, lambda: function_of(operator_classes()["relax.map_indices"])(x, index_map, pad_value))


def _number(reader: ExpressionReader, node: ast.expr) -> float:
    value = reader.value(node)
    if isinstance(value, Expr):
        value = reader.known(node, value)
    if value is None:
        return 0.0
    if not isinstance(value, bool | int | float):
        reader.fail(node, f"expected a number, got {describe(value)}")
    return value


def read_index_map(reader: ExpressionReader, node: ast.expr) -> AffineMap:
    """The map that a lambda of indices describes, alone or in `T.index_map`, there or by its name."""
    if isinstance(node, ast.Call) and reader.aliases.name_in("tir", node.func) == "index_map":
        node = Arguments(reader.source, node, "T.index_map", "mapping inverse_index_map index_dtype").require("mapping")
    found = _function(reader, node)
    if not isinstance(found, ast.Lambda) or not _has_plain_parameters(found.args):
        reader.fail(node, "expected an index map such as lambda i, j: (j, i)")
    node, indices = found.body, [f"index${place}" for place in range(len(found.args.args))]
    static = StaticReader(reader.source, reader.aliases, reader.scope)
    with reader.scope.inner():
        for parameter, index in zip(found.args.args, indices, strict=True):
            reader.scope.bind(parameter.arg, symbol(index))
        value = static.value(node)
    outputs = [static.to_dim(node, each) for each in items_of(value) or (value,)]
    places = {index: AffineExpr.dimension(place) for place, index in enumerate(indices)}
    return AffineMap(len(indices), 0, tuple(_affine(reader, node, each, places) for each in outputs))


def _function(reader: ExpressionReader, node: ast.expr) -> ast.expr | ast.FunctionDef | None:
    """A lambda, where it stands or by its name."""
    if not isinstance(node, ast.Name):
        return node
    value = reader.scope.find(node.id)
    return value.definition()[0] if isinstance(value, PythonFunction) else reader.program.plain.get(node.id)


def _has_plain_parameters(parameters: ast.arguments) -> bool:
    others = (parameters.vararg, parameters.kwarg, *parameters.kwonlyargs, *parameters.posonlyargs)
    return not any(others) and not parameters.defaults


def _affine(reader: ExpressionReader, node: ast.AST, dim: Dim, places: Mapping[str, AffineExpr]) -> AffineExpr:
    """An expression of indices; products of them, and other divisors than numbers, are no index maps."""
    found = AffineExpr.constant(0)
    for coefficient, monomial in dim.terms:
        match monomial:
            case ():
                found = found + coefficient
            case ((atom, 1),):
                found = found + _atom(reader, node, atom, places) * coefficient
            case _:
                reader.fail(node, f"expected sums, multiples, quotients and remainders of indices, got {dim}")
    return found


def _atom(reader: ExpressionReader, node: ast.AST, atom: Atom, places: Mapping[str, AffineExpr]) -> AffineExpr:
    match atom:
        case SymbolAtom(name=name) if name in places:
            return places[name]
        case FloorDivAtom(denominator=divisor) | ModAtom(denominator=divisor) if divisor.constant_value is not None:
            numerator, number = _affine(reader, node, atom.operands[0], places), divisor.constant_value
            return numerator // number if isinstance(atom, FloorDivAtom) else numerator % number
        case _:
            names = ", ".join(sorted(atom.symbols - places.keys()))
            reader.fail(node, f"expected indices and numbers in an index map, got {names or 'another function'}")


def _reshape(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.reshape(x, (n, -1))`: one length may be -1, which is what is left; 0 is that of the operand."""
    given = Arguments(reader.source, node, "R.reshape", "x shape", {"data": "x", "newshape": "shape"})
    x, shape_node = reader.read(given.require("x")), given.require("shape")
    value = reader.value(shape_node)
    items, known = items_of(value), x.type.known_dims if isinstance(x.type, TensorType) else None
    if items is not None and known is not None:
        value = _filled_in(reader, shape_node, items, known)
    shape = reader.shape(shape_node, value)
    return reader.emit(node, lambda: function_of(operator_classes()["relax.reshape"])(x, shape))


def _filled_in(
    reader: ExpressionReader, node: ast.expr, items: Sequence[object], known: Sequence[Dim]
) -> tuple[object, ...]:
    """A new shape of a tensor with the lengths that 0 and -1 stand for."""
    kept = [
        known[at] if isinstance(each, int) and each == 0 and at < len(known) else each for at, each in enumerate(items)
    ]
    open_places = [at for at, each in enumerate(kept) if isinstance(each, int) and each == -1]
    if len(open_places) == 1:
        (place,) = open_places
        rest = product(reader.to_dim(node, each) for at, each in enumerate(kept) if at != place)
        kept[place] = reader.emit(node, lambda: product(known) // rest)
    return tuple(kept)


LAYOUT_FORMS: Mapping[str, Callable[[ExpressionReader, ast.Call], object]] = {
    "layout_transform": _layout_transform,
    "reshape": _reshape,
}
"""Calls with index maps, or with lengths that follow from others."""
