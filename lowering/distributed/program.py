"""Sharded programs from Python: `ShardedProgram(module, {"x": 4})`, in a script that `mpiexec -n 4` starts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from lowering.cache.module_digest import ModuleDigest
from lowering.compiler.build import Mode, build
from lowering.compiler.weight_files import attach_arrays
from lowering.distributed.cut_constants import CutConstantsPass
from lowering.distributed.shard import shard
from lowering.distributed.tiles import Distribution
from relax_dialect.interpreter.runtime_values import Value, from_python, to_ffi
from vm_dialect import VirtualMachine

if TYPE_CHECKING:
    from vm_dialect.mpi import MPIGroup


class ShardedProgram:
    """A function that all workers of a mesh run together; each has made the same object.

    Every worker calls it with the arguments of the whole, of which it takes its tiles, and gets the result of the
    whole. `arguments` and `call_local` are for those that have their tiles already, as weights should.
    """

    def __init__(
        self,
        module: ModuleOp,
        mesh: Mapping[str, int],
        entry: str = "main",
        *,
        mode: Mode = "native",
        opt_level: int = 3,
        timeout: float | None = None,
        check: bool = True,
        weights: Mapping[str, Any] | None = None,
    ):
        """`timeout` is how many seconds workers wait for each other; with `check` they compare what they exchange.
        `weights` are the constants that the module refers to by name, arrays of which a worker keeps its tiles: those
        that are mapped from files (`np.memmap`) are read only there.

        `ModuleNotFoundError` without the extra `mpi`; `ValueError` if MPI has not started as many processes, or the
        mesh is not the program's; `RuntimeError` if workers have different programs.
        """
        self.group = start(mesh, timeout, check)
        self.group.agree(f"the program {ModuleDigest(module).digest.hex()}")
        module = module.clone()
        if weights is not None:
            attach_arrays(module, weights)
        self.module = shard(module, mesh)
        CutConstantsPass(self.rank).apply(Context(), self.module)
        self.distribution = Distribution.of(self.module, entry)
        if dict(self.distribution.mesh) != dict(mesh):
            raise ValueError(f"the program is for the mesh {dict(self.distribution.mesh)}, got {dict(mesh)}")
        executable = build(self.module, mode=mode, opt_level=opt_level)
        self._function = VirtualMachine(executable)[entry]

    @property
    def rank(self) -> int:
        """The number of this worker."""
        return self.group.index

    def arguments(self, *whole: Any) -> list[Value]:
        """The arguments of this worker, for those of the whole."""
        return self.distribution.arguments(list(map(from_python, whole)), self.rank)

    def call_local(self, arguments: Sequence[Value]) -> Value:
        """The worker's part of the result."""
        return from_python(self._function(*map(to_ffi, arguments)))

    def __call__(self, *whole: Any) -> Value:
        """The result of the whole, on every worker: tensors as NumPy arrays."""
        mine = self.call_local(self.arguments(*whole))
        if not self.distribution.shares_result:
            return mine
        return self.distribution.whole(self.group.comm.allgather(mine))


def start(mesh: Mapping[str, int], timeout: float | None = None, check: bool = True) -> MPIGroup:
    """Makes this process a worker; kernels use the processors of the machine that its workers share equally."""
    try:
        from vm_dialect.mpi import join_mpi
    except ImportError as error:
        raise ModuleNotFoundError(f"several workers need MPI: pip install 'xdsl-relax[mpi]' ({error})") from error
    os.environ.setdefault("RELAX_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // prod(mesh.values()))))
    return join_mpi(mesh, timeout, check)
