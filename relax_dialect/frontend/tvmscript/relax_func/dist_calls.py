"""`R.dist.*`: tensors that workers share, and PrimFuncs that are called on the parts of one worker."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from relax_dialect.builder.expr import Expr
from relax_dialect.builder.operator_functions import function_of, operator_classes
from relax_dialect.frontend.tvmscript.relax_func.placements import (
    Sharding,
    placed,
    sharding_in,
    sharding_of,
    sharding_of_value,
)
from relax_dialect.frontend.tvmscript.relax_func.tir_calls import DestinationCall, call_kernel_into
from relax_dialect.frontend.tvmscript.relax_func.values import constant
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.evaluator import items_of
from relax_dialect.ops.distributed import LocalViewOp
from relax_dialect.struct_info.types import TensorType

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.relax_func.expressions import ExpressionReader


def _redistributed(reader: ExpressionReader, node: ast.Call, name: str) -> Expr:
    given = Arguments(reader.source, node, f"R.dist.{name}", "value device_mesh placement", {"input": "value"})
    value = reader.read(given.require("value"))
    sharding = sharding_of(reader, given.require("device_mesh"), given.require("placement"))
    return sharding.emit(reader, node, name, value)


def _replica_to_shard(reader: ExpressionReader, node: ast.Call) -> object:
    """The worker's part of a tensor; of an `R.DTensor`, which is the whole, another placement."""
    given = Arguments(reader.source, node, "R.dist.redistribute_replica_to_shard", "input num_workers axis")
    value = reader.read(given.require("input"))
    workers, axis = (reader.integer(given.require(name)) for name in ("num_workers", "axis"))
    sharding = sharding_of_value(value)
    if sharding is None:
        make = function_of(operator_classes()["relax.dist.redistribute_replica_to_shard"])
        return reader.emit(node, lambda: make(value, workers, axis))
    if sharding.mesh.shape != (workers,):
        reader.fail(node, f"expected a mesh of {workers} workers along one axis, got {sharding.mesh.shape}")
    return Sharding(sharding.mesh, f"S[{axis}]").emit(reader, node, "redistribute", value)


def _const(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.dist.const(1.0, R.DTensor((), "float32", "mesh[0]", "R, R"))`."""
    given = Arguments(reader.source, node, "R.dist.const", "value ty")
    declared = reader.types.read(given.require("ty"))
    dtype = declared.dtype if isinstance(declared, TensorType) else None
    value = constant(reader, given.require("value"), dtype)
    return placed(reader, node, reader.refine(node, value, declared), sharding_in(reader, given.require("ty")))


# Calls of PrimFuncs


def _call_tir(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.dist.call_tir(f, args, out_ty)`: on tensors as a whole."""
    call = DestinationCall(reader, node, "R.dist.call_tir")
    shardings = _shardings(reader, call)
    return _each(call_kernel_into(call), lambda value, at: placed(reader, node, value, shardings[at]))


def _call_tir_local_view(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.dist.call_tir_local_view(f, args, out_ty)`: on the worker's parts, which give parts of the results."""
    call = DestinationCall(reader, node, "R.dist.call_tir_local_view")
    shardings = _shardings(reader, call)
    call.arguments = [_local(reader, node, each) for each in call.arguments]
    call.out = [_local_type(reader, node, *pair) for pair in zip(call.out, shardings, strict=True)]

    def whole(value: Expr, at: int) -> object:
        sharding = shardings[at]
        return value if sharding is None else sharding.emit(reader, node, "global_view", value)

    return _each(call_kernel_into(call), whole)


def _shardings(reader: ExpressionReader, call: DestinationCall) -> Sequence[Sharding | None]:
    node = call.given.require("out")
    nodes = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
    return [sharding_in(reader, each) for each in nodes]


def _local(reader: ExpressionReader, node: ast.AST, value: object) -> object:
    if not isinstance(value, Expr) or (sharding := sharding_of_value(value)) is None:
        return value
    return sharding.emit(reader, node, "local_view", value)


def _local_type(reader: ExpressionReader, node: ast.AST, info: TensorType, sharding: Sharding | None) -> TensorType:
    if sharding is None:
        return info
    properties = LocalViewOp.placement_properties(sharding.mesh.shape, sharding.placement)
    (found,) = reader.emit(node, lambda: LocalViewOp.infer_result_types([info], properties))
    return found if isinstance(found, TensorType) else info


def _each(result: object, make: Callable[[Expr, int], object]) -> object:
    """What `make` gives of a result, or of each of several."""
    if isinstance(result, Expr):
        return make(result, 0)
    return tuple(make(each, at) for at, each in enumerate(items_of(result) or ()) if isinstance(each, Expr))


DIST_FORMS: Mapping[str, Callable[[ExpressionReader, ast.Call], object]] = {
    "dist.annotate_sharding": lambda reader, node: _redistributed(reader, node, "annotate_sharding"),
    "dist.redistribute": lambda reader, node: _redistributed(reader, node, "redistribute"),
    "dist.redistribute_replica_to_shard": _replica_to_shard,
    "dist.const": _const,
    "dist.call_tir": _call_tir,
    "dist.call_tir_local_view": _call_tir_local_view,
}
