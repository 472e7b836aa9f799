"""Sampling of images: TVM has the coordinates of a place in dimension 1, as channels; ours are the last dimension."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from relax_dialect.builder.expr import Expr
from relax_dialect.builder.operator_functions import function_of, operator_classes
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.struct_info.types import TensorType

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.relax_func.expressions import ExpressionReader

Form: TypeAlias = "Callable[[ExpressionReader, ast.Call], object]"

_METHODS = {"bilinear": "linear", "bicubic": "cubic"}
_LAYOUTS = ("NCHW", "NCDHW", "NCW")


def _rank(reader: ExpressionReader, node: ast.AST, value: Expr) -> int:
    rank = value.type.rank if isinstance(value.type, TensorType) else None
    if rank is None:
        reader.fail(node, f"expected a tensor of known rank, got {value.type}")
    return rank


def _permuted(reader: ExpressionReader, node: ast.AST, value: Expr, axes: list[int]) -> Expr:
    return reader.emit(node, lambda: function_of(operator_classes()["relax.permute_dims"])(value, axes))


def _flag(reader: ExpressionReader, given: Arguments, name: str, default: bool) -> bool:
    node = given.get(name)
    return default if node is None else bool(reader.value(node))


def _grid_sample(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.image.grid_sample(x, grid)` with a grid of `(batch, 2, height, width)`."""
    names = "data grid method layout padding_mode align_corners"
    given = Arguments(reader.source, node, "R.image.grid_sample", names)
    if (layout := given.get("layout")) is not None and reader.text(layout) not in _LAYOUTS:
        reader.fail(layout, f"R.image.grid_sample is taken with the layouts {', '.join(_LAYOUTS)} only")
    method = "bilinear" if (text := given.get("method")) is None else reader.text(text)
    padding = "zeros" if (text := given.get("padding_mode")) is None else reader.text(text)
    corners = _flag(reader, given, "align_corners", False)
    data, grid = reader.read(given.require("data")), reader.read(given.require("grid"))
    rank = _rank(reader, node, grid)
    places = _permuted(reader, node, grid, [0, *range(2, rank), 1])
    sample = function_of(operator_classes()["relax.image.grid_sample"])
    options = {"method": _METHODS.get(method, method), "padding_mode": padding, "align_corners": corners}
    return reader.emit(node, lambda: sample(data, places, **options))


def _affine_grid(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.image.affine_grid(theta, size)` gives `(batch, 2, height, width)`."""
    given = Arguments(reader.source, node, "R.image.affine_grid", "data size align_corners", {"target_shape": "size"})
    theta, size_node = reader.read(given.require("data")), given.require("size")
    size = reader.shape(size_node, reader.value(size_node))
    corners = _flag(reader, given, "align_corners", True)
    grid = function_of(operator_classes()["relax.image.affine_grid"])
    places: Expr = reader.emit(node, lambda: grid(theta, size, align_corners=corners))
    rank = _rank(reader, node, places)
    return _permuted(reader, node, places, [0, rank - 1, *range(1, rank - 1)])


IMAGE_FORMS: Mapping[str, Form] = {"image.grid_sample": _grid_sample, "image.affine_grid": _affine_grid}
