"""The mesh of a function: found in its types, and given other sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from lowering.diagnostics import fail
from relax_dialect.ops.distributed import PlacementOp
from relax_dialect.ops.fields import dims
from relax_dialect.ops.structure import FuncOp
from relax_dialect.struct_info.base import StructInfo
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.sharding import MeshAxis, Replicate, ShardingAttr
from relax_dialect.struct_info.types import TensorType, TupleType
from tir_dialect.dims import constant


def mesh_option(name: str, parameters: Mapping[str, Sequence[object]]) -> dict[str, int]:
    """Options that are the sizes of axes, `x=4 y=2`; `ValueError` for one that is no number of workers."""
    found: dict[str, int] = {}
    for axis, given in parameters.items():
        size = given[0] if len(given) == 1 else None
        if not isinstance(size, int) or size < 1:
            raise ValueError(f"'{name}' expected a number of workers for the axis {axis}, got {size}")
        found[axis] = size
    return found


def mesh_of(func: FuncOp) -> ShardingAttr | None:
    """The mesh of a function's shardings, with all placements replicated; fails if there are two."""
    found: ShardingAttr | None = None
    infos = [(func, info) for info in (*func.function_type.params, func.function_type.ret)]
    infos += [(op, info) for op in func.walk() for info in op.result_types]
    for op, info in infos:
        for sharding in shardings_in(info):
            if found is None:
                found = sharding
            elif found.mesh != sharding.mesh:
                meshes = [", ".join(map(str, each.mesh)) for each in (found, sharding)]
                fail(op, f"expected the mesh [{meshes[0]}] of the function's other tensors, got [{meshes[1]}]")
    return found and found.with_placements([Replicate()] * len(found.mesh))


def shardings_in(info: object) -> Sequence[ShardingAttr]:
    """The shardings in a type, which may be a tuple."""
    if isinstance(info, TensorType) and info.sharding is not None:
        return [info.sharding]
    return [each for one in info.fields for each in shardings_in(one)] if isinstance(info, TupleType) else []


def on_mesh(func: FuncOp, mesh: ShardingAttr, sizes: Mapping[str, int]) -> ShardingAttr:
    """The mesh with other sizes of some axes, which it then has in the whole function; fails if one is no number."""
    for name in sizes.keys() - {axis.name for axis in mesh.mesh}:
        fail(func, f"expected sizes for axes of the mesh [{', '.join(map(str, mesh.mesh))}], got {name}")
    new = _resized(mesh, sizes)
    for axis in new.mesh:
        if axis.size.constant_value is None:
            fail(
                func,
                f"expected a number of workers along axis {axis.name}, got {axis.size}",
                f"give the pass an option: {{{axis.name}=4}}",
            )
    if new != mesh:
        _resize(func, sizes)
    return new


def _resized(sharding: ShardingAttr, sizes: Mapping[str, int]) -> ShardingAttr:
    return ShardingAttr(
        tuple(
            (MeshAxis(axis.name, constant(sizes[axis.name]) if axis.name in sizes else axis.size), placement)
            for axis, placement in sharding.data
        )
    )


def _resize(func: FuncOp, sizes: Mapping[str, int]) -> None:
    """Gives all shardings of a function other sizes."""

    def resized(info: StructInfo) -> StructInfo:
        if isinstance(info, TupleType):
            return TupleType(map(resized, info.fields))
        if isinstance(info, TensorType) and info.sharding is not None:
            return info.with_sharding(_resized(info.sharding, sizes))
        return info

    blocks = [block for op in func.walk() for region in op.regions for block in region.blocks]
    values: list[SSAValue] = [argument for block in blocks for argument in block.args]
    values += [result for op in func.walk() for result in op.results]
    for value in values:
        if isinstance(value.type, TensorType | TupleType):
            Rewriter.replace_value_with_new_type(value, resized(value.type))
    for op in func.walk():
        if isinstance(op, PlacementOp):
            op.mesh = dims(axis.size for axis in _resized(op.sharding, sizes).mesh)
    old = func.function_type
    func.function_type = FuncType(map(resized, old.params), resized(old.ret), pure=old.pure, symbols=old.symbols)
