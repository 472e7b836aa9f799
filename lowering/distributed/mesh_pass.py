"""Passes on sharded functions, whose options are the sizes of mesh axes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Self

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.arg_spec import ArgSpec

from lowering.diagnostics import fail
from lowering.distributed.mesh import mesh_of, mesh_option, on_mesh
from lowering.registry import Pass
from lowering.relax.call_graph import CallGraph
from lowering.relax.convert_dataflow import ToNonDataflowPass
from relax_dialect.ops.structure import FuncOp
from relax_dialect.struct_info.sharding import ShardingAttr


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
