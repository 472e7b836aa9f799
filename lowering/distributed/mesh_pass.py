"""Passes on sharded functions, whose options are the sizes of mesh axes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.arg_spec import ArgSpec

from lowering.distributed.mesh import mesh_of, mesh_option, on_mesh
from lowering.passes import Pass
from lowering.relax.to_non_dataflow import ToNonDataflowPass
from relax_dialect.ops.structure import FuncOp
from relax_dialect.struct_info.sharding import ShardingAttr


@dataclass(frozen=True)
class MeshPass(Pass):
    """A pass that rewrites each function that has shardings, on a mesh whose sizes options may change."""

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
        ToNonDataflowPass().apply(ctx, op)
        for func in [inner for inner in op.ops if isinstance(inner, FuncOp)]:
            mesh = mesh_of(func)
            if mesh is not None:
                self.rewrite(func, on_mesh(func, mesh, self.mesh))

    @abstractmethod
    def rewrite(self, func: FuncOp, mesh: ShardingAttr) -> None:
        """Rewrites a function with shardings on a mesh."""
