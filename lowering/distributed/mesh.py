"""The mesh of a function: found in its types, and given other sizes by the options of passes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.arg_spec import ArgSpec

from lowering.diagnostics import fail
from lowering.registry import Pass
from lowering.relax.call_graph import CallGraph
from lowering.relax.convert_dataflow import ToNonDataflowPass
from relax_dialect.ops.distributed import PlacementOp
from relax_dialect.ops.fields import dims
from relax_dialect.ops.structure import FuncOp
from relax_dialect.struct_info.sharding import MeshAxis, Replicate, ShardingAttr
from relax_dialect.struct_info.types import FuncType, StructInfo, TensorType, TupleType
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


@dataclass(frozen=True)
class MeshPass(Pass):
    """A pass that rewrites each function that has shardings, or calls one, on a mesh whose sizes options may change."""

    mesh: Mapping[str, int] = field(default_factory=dict[str, int])
    """Sizes of axes."""

    @override
    @classmethod
    def from_spec(cls, spec: ArgSpec) -> Self:
        """Every option is an axis; raises `ValueError` for a size that is no number of workers."""
        return cls(mesh_option(cls.name, spec.parameters))

    @override
    def spec(self, *, include_default: bool = False) -> ArgSpec:
        return ArgSpec(self.name, {name: (size,) for name, size in self.mesh.items()})

    @override
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Callees come before their callers."""
        ToNonDataflowPass().apply(ctx, op)
        functions = {func.sym_name.data: func for func in op.ops if isinstance(func, FuncOp)}
        meshes = {name: mesh for name, func in functions.items() if (mesh := mesh_of(func)) is not None}
        graph = CallGraph.of(op)
        components = graph.components()
        shared = {name: sorted(graph.reachable([name]) & meshes.keys()) for name in functions}
        names = [name for name in functions if shared[name]]
        for name in names:
            for callee in shared[name]:
                if meshes[callee].mesh != meshes[shared[name][0]].mesh:
                    fail(
                        functions[name], f"@{shared[name][0]} and @{callee} have different meshes, and are called here"
                    )
        for name in sorted(names, key=components.__getitem__):
            func = functions[name]
            self.rewrite(func, on_mesh(func, meshes[shared[name][0]], self.mesh), names)

    @abstractmethod
    def rewrite(self, func: FuncOp, mesh: ShardingAttr, shared: Collection[str]) -> None:
        """Rewrites a function with shardings on a mesh, one of the functions `shared` that have some or call such."""
