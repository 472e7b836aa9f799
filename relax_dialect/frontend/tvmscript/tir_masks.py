"""`A.vload(begin, predicate=mask)` and `A.vstore(begin, value, mask)`: rows of which not all elements are there.

There are no masked accesses in the dialect. They are read as a loop over the lanes, between the buffer and a row in
memory of its own; lanes that are not there are 0.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import TYPE_CHECKING

from relax_dialect.frontend.tvmscript.arguments import Arguments
from relax_dialect.frontend.tvmscript.source import parse_expression
from relax_dialect.frontend.tvmscript.tir_buffers import alloc
from relax_dialect.frontend.tvmscript.tir_values import Axis, Buffer, Region, Vector
from relax_dialect.frontend.tvmscript.tir_vectors import as_vector, store_vector
from tir_dialect.dims import constant
from tir_dialect.types import BufferType

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.tir_statements import TirStatementReader

_LANE, _ROW = "lane of a row", "row of lanes"
"""Names that no text can have."""


def is_masked(node: ast.Call) -> bool:
    """Whether a call is a store of a row, or a load with a predicate."""
    if not isinstance(node.func, ast.Attribute):
        return False
    has_mask = any(keyword.arg == "predicate" for keyword in node.keywords)
    return node.func.attr == "vstore" or (node.func.attr == "vload" and has_mask)


def read_masked(reader: TirStatementReader, node: ast.Call) -> Vector | None:
    """The row that is loaded, or nothing for a store."""
    if not isinstance(node.func, ast.Attribute) or not isinstance(buffer := reader.value(node.func.value), Buffer):
        reader.fail(node.func, "expected a method of a buffer")
    stores = node.func.attr == "vstore"
    given = Arguments(reader.source, node, node.func.attr, f"begin {'value' if stores else 'dtype'} predicate")
    places, lanes = _places(reader, given)
    element = ast.Subscript(node.func.value, ast.Tuple(places, ast.Load()), ast.Load())
    row = alloc(reader, node, BufferType([lanes], buffer.type.dtype, scope="local"), "row")
    region = Region(row, (Axis(constant(0), constant(lanes)),))
    if stores:
        store_vector(reader, node, region, reader.value(given.require("value")))
    copied = (element, _name(_ROW)) if stores else (_name(_ROW), element)
    loop = _loop(reader, given.get("predicate"), lanes, *copied)
    with reader.scope.inner():
        reader.scope.bind(_ROW, row)
        reader.body([_placed(loop, node)])
    return None if stores else as_vector(reader, node, region)


def _name(name: str) -> ast.expr:
    """A name; that of the row stands for its element at the lane."""
    found = ast.Name(name, ast.Load())
    return ast.Subscript(found, ast.Name(_LANE, ast.Load()), ast.Load()) if name == _ROW else found


def _places(reader: TirStatementReader, given: Arguments) -> tuple[list[ast.expr], int]:
    """The indices of the element at the lane, and how many lanes there are."""
    begin, dtype = given.require("begin"), given.get("dtype")
    found: list[ast.expr] = []
    lanes = 0
    for place in begin.elts if isinstance(begin, ast.List | ast.Tuple) else [begin]:
        if isinstance(place, ast.Call) and reader.aliases.name_in("tir", place.func) in ("Ramp", "ramp"):
            ramp = Arguments(reader.source, place, "T.Ramp", "base stride lanes span")
            lanes = reader.integer(ramp.require("lanes"))
            parts = {"base": ramp.require("base"), "stride": ramp.require("stride"), "lane": _name(_LANE)}
            place = _filled("base + stride * lane", parts)
        found.append(place)
    if not lanes and dtype is not None and (text := reader.text(dtype).partition("x")[2]).isdigit():
        lanes = int(text)
        found[-1] = _filled("base + lane", {"base": found[-1], "lane": _name(_LANE)})
    if lanes <= 0:
        reader.fail(begin, "expected a place with T.Ramp, or a dtype with lanes, as float32x4")
    return found, lanes


def _loop(
    reader: TirStatementReader, mask: ast.expr | None, lanes: int, target: ast.expr, source: ast.expr
) -> ast.stmt:
    """Copies the lanes that the mask has; a row that is loaded has 0 in the others."""
    body: list[ast.stmt] = [ast.Assign([target], source)]
    if mask is not None:
        is_row = isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and target.value.id == _ROW
        others: list[ast.stmt] = [ast.Assign([target], ast.Constant(0))] if is_row else []
        body = [ast.If(_condition(reader, mask), body, others)]
    count = ast.Call(ast.Name("range", ast.Load()), [ast.Constant(lanes)], [])
    return ast.For(ast.Name(_LANE, ast.Store()), count, body, [])


def _condition(reader: TirStatementReader, mask: ast.expr) -> ast.expr:
    """Whether the mask has the lane."""
    kind = reader.aliases.name_in("tir", mask.func) if isinstance(mask, ast.Call) else None
    if kind in ("Broadcast", "broadcast") and isinstance(mask, ast.Call):
        return Arguments(reader.source, mask, "T.Broadcast", "value lanes span").require("value")
    if kind == "get_active_lane_mask" and isinstance(mask, ast.Call):
        active = Arguments(reader.source, mask, "T.get_active_lane_mask", "dtype base limit")
        parts = {"base": active.require("base"), "limit": active.require("limit"), "lane": _name(_LANE)}
        return _filled("base + lane < limit", parts)
    reader.fail(mask, "expected T.Broadcast or T.get_active_lane_mask as predicate; else write T.vectorized with an if")


class _Filled(ast.NodeTransformer):
    def __init__(self, parts: Mapping[str, ast.expr]):
        self._parts = parts

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._parts.get(node.id, node)


def _filled(text: str, parts: Mapping[str, ast.expr]) -> ast.expr:
    """An expression with others in the place of its names."""
    made: ast.expr = _Filled(parts).visit(parse_expression(text))
    return made


def _placed(statement: ast.stmt, node: ast.AST) -> ast.stmt:
    """What has been made, at the place of the call."""
    for each in ast.walk(statement):
        ast.copy_location(each, node)
    return statement
