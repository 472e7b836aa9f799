"""Sharded programs from Python: `ShardedProgram(module, {"x": 4})`, in a script that `mpiexec -n 4` starts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from lowering.cache.module_digest import ModuleDigest
from lowering.compiler.build import Mode, build
from lowering.compiler.weight_files import attach_arrays, load_weights
from lowering.distributed.cut_constants import CutConstantsPass
from lowering.distributed.shard import shard
from lowering.distributed.split_stages import SplitStagesPass
from lowering.distributed.tiles import Distribution, Stage
from relax_dialect.interpreter.runtime_values import Value, from_python, is_tensor, to_ffi
from relax_dialect.scope import find_function
from vm_dialect import VirtualMachine

if TYPE_CHECKING:
    from vm_dialect.mpi import MPIGroup


AXIS = "p"
"""The axis of a mesh along which workers have stages."""


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
        weights: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    ):
        """`timeout` is how many seconds workers wait for each other; with `check` they compare what they exchange.
        `weights` are the constants that the module refers to by name, as arrays or in a file (.safetensors). A worker
        keeps its tiles, and of what is mapped from files, as weights of ONNX and GGUF are, too, it reads only these.

        `ModuleNotFoundError` without the extra `mpi`; `ValueError` if MPI has not started as many processes, or the
        mesh is not the program's; `RuntimeError` if workers have different programs.
        """
        self.group = start(mesh, timeout, check)
        self.group.agree(f"the program {ModuleDigest(module, sampled=True).digest.hex()}")
        module = module.clone()
        if isinstance(weights, Mapping):
            attach_arrays(module, weights)
        elif weights is not None:
            load_weights(module, os.fspath(weights), mapped=True)
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
        self.group.enter()
        return _result(self._function, arguments)

    def __call__(self, *whole: Any) -> Value:
        """The result of the whole, on every worker: tensors as NumPy arrays."""
        mine = self.call_local(self.arguments(*whole))
        if not self.distribution.shares_result:
            return mine
        return self.distribution.whole(self.group.comm.allgather(mine))


class PipelinedProgram:
    """A function whose stages run on different workers; each has made the same object, and keeps its stage only.

    `module` has ops with stages (`lowering.distributed.plans.assign_stages`), as many as there are processes.
    """

    def __init__(
        self,
        module: ModuleOp,
        stages: int,
        entry: str = "main",
        *,
        mode: Mode = "native",
        opt_level: int = 3,
        timeout: float | None = None,
        check: bool = True,
    ):
        """As for `ShardedProgram`; `ValueError` if the program has another number of stages."""
        self.group = start({AXIS: stages}, timeout, check)
        self.group.agree(f"the program {ModuleDigest(module, sampled=True).digest.hex()}")
        self.stages = stages
        module = module.clone()
        SplitStagesPass(AXIS).apply(Context(), module)
        names = [f"{entry}_stage{index}" for index in range(stages + 1)]
        found = [name for name in names if find_function(module, name) is not None]
        if len(found) != stages:
            raise ValueError(f"expected @{entry} to have {stages} stages, as many as workers")
        own = found[self.group.index]
        for name in found:
            if name != own and (other := find_function(module, name)) is not None:
                other.detach()
        self.stage = Stage.of(module, own)
        self._function = VirtualMachine(build(module, mode=mode, opt_level=opt_level))[own]

    def __call__(self, *whole: Any) -> Value:
        """The result of the whole, on every worker."""
        return self.stream([whole])[0]

    def stream(self, calls: Iterable[Sequence[Any]]) -> list[Value]:
        """The results of several calls, on every worker: a stage goes on with the next one meanwhile."""
        results: list[Value] = []
        self.group.enter()
        for whole in calls:
            mine = self.stage.arguments(list(map(from_python, whole)), self.group.index)
            results.append(_result(self._function, mine))
        return self.group.comm.bcast(results, root=self.stages - 1)


def _result(function: Callable[..., Any], arguments: Sequence[Value]) -> Value:
    """What a function of a virtual machine gives. It takes arrays as they are, in less time than tensors of them."""
    return from_python(function(*(each if is_tensor(each) else to_ffi(each) for each in arguments)))


def start(mesh: Mapping[str, int], timeout: float | None = None, check: bool = True) -> MPIGroup:
    """Makes this process a worker; kernels use the processors of the machine that its workers share equally."""
    try:
        from vm_dialect.mpi import join_mpi
    except ImportError as error:
        raise ModuleNotFoundError(f"several workers need MPI: pip install 'xdsl-relax[mpi]' ({error})") from error
    os.environ.setdefault("RELAX_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // prod(mesh.values()))))
    return join_mpi(mesh, timeout, check)
