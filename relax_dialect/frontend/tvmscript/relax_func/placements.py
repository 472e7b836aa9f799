"""How workers share the tensors of a text: `R.DTensor(shape, dtype, "mesh[0]", "S[0], R")`.

A `R.DTensor` is the tensor as a whole; that it is shared is kept by `relax.dist.annotate_sharding` on its value.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.ir import OpResult

from relax_dialect.builder.expr import Expr
from relax_dialect.builder.operator_functions import function_of, operator_classes
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.meshes import DTENSOR, Mesh, is_dtensor, read_mesh
from relax_dialect.ops.distributed import LocalViewOp, PlacementOp

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.relax_func.expressions import ExpressionReader


@dataclass(frozen=True)
class Sharding:
    """A mesh of workers and a placement on it."""

    mesh: Mesh
    placement: str

    def emit(self, reader: ExpressionReader, node: ast.AST, op: str, value: Expr) -> Expr:
        """What `relax.dist.<op>` gives of a value."""
        make = function_of(operator_classes()[f"relax.dist.{op}"])
        return reader.emit(node, lambda: make(value, self.mesh.shape, self.placement))


def sharding_in(reader: ExpressionReader, node: ast.expr | None) -> Sharding | None:
    """What an annotation says of the workers, if it is an `R.DTensor`."""
    node = reader.meant(node) if isinstance(node, ast.Name) else node
    if not isinstance(node, ast.Call) or not is_dtensor(reader.types.kind(node.func)):
        return None
    given = Arguments(reader.source, node, "R.DTensor", DTENSOR)
    return sharding_of(reader, given.get("device_mesh"), given.get("placement"))


def sharding_of(reader: ExpressionReader, mesh: ast.expr | None, placement: ast.expr | None) -> Sharding:
    """A mesh, by its name `"mesh[0]"` or written out, and a placement; without them, one worker has all."""
    return Sharding(
        Mesh((), ()) if mesh is None else named_mesh(reader, mesh), "" if placement is None else reader.text(placement)
    )


def named_mesh(reader: ExpressionReader, node: ast.expr) -> Mesh:
    """The mesh that `"mesh[0]"` names among the module's, or that a call makes."""
    if isinstance(node, ast.Call) and (found := read_mesh(reader, node)) is not None:
        return found
    text, known = reader.text(node), reader.program.meshes
    match = re.fullmatch(r"(\w+)\[(\d+)\]", text)
    meshes = known.get(match[1], ()) if match else ()
    if match is None or int(match[2]) >= len(meshes):
        names = ", ".join(_names(known)) or "none"
        reader.fail(node, f'expected a mesh of I.module_global_infos, got "{text}"; it has {names}')
    return meshes[int(match[2])]


def _names(meshes: Mapping[str, Sequence[Mesh]]) -> list[str]:
    return [f"{name}[{index}]" for name, each in meshes.items() for index in range(len(each))]


def placed(reader: ExpressionReader, node: ast.AST, value: object, sharding: Sharding | None) -> object:
    """A value with its sharding said, unless it is already."""
    if sharding is None or not isinstance(value, Expr) or sharding_of_value(value) == sharding:
        return value
    return sharding.emit(reader, node, "annotate_sharding", value)


def sharding_of_value(value: Expr) -> Sharding | None:
    """How a value is shared, if the op that makes it says so."""
    op = value.value.owner if isinstance(value.value, OpResult) else None
    if not isinstance(op, PlacementOp) or isinstance(op, LocalViewOp):
        return None
    return Sharding(Mesh(tuple(op.mesh.get_values()), ()), op.placement.data)
