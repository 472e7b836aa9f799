"""Programs that several processes of MPI run together: `mpiexec -n 4 relax-run model.mlir --mesh 4 ...`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Generator
from concurrent.futures import Executor
from contextlib import contextmanager
from importlib import import_module

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException

from lowering.distributed.mesh import mesh_of
from lowering.distributed.program import ShardedProgram
from lowering.verify import verify_module
from relax_dialect.ops.structure import FuncOp
from relax_dialect.scope import find_function
from xdsl_relax.cli.diagnostics import ToolError
from xdsl_relax.cli.programs import BuildOptions, Program, entry_of, read_module
from xdsl_relax.cli.values import signature_of


def mesh_sizes(text: str, module: ModuleOp, entry: str) -> dict[str, int]:
    """The mesh that `4` or `x=2,y=2` says; the only axis of the program's mesh need not be named."""
    func = find_function(module, entry)
    mesh = mesh_of(func) if isinstance(func, FuncOp) else None
    if mesh is None:
        raise ToolError(f"--mesh is for functions whose tensors workers share, and @{entry} has no sharding")
    found: dict[str, int] = {}
    for part in text.split(","):
        name, equals, size = part.rpartition("=")
        if not size.isdecimal() or int(size) < 1 or bool(equals) != bool(name) or name in found:
            raise ToolError(f"--mesh expected a number of workers, or x=2,y=2, got {text}")
        found[name] = int(size)
    names = [axis.name for axis in mesh.mesh]
    if list(found) == [""] and len(names) == 1:
        return {names[0]: found[""]}
    if sorted(found) != sorted(names):
        raise ToolError(f"--mesh expected sizes for the axes {', '.join(names)}, got {text}")
    return {name: found[name] for name in names}


def load_sharded(path: str, given: str | None, options: BuildOptions, mesh: str, timeout: float | None) -> Program:
    """A function of a module, which this process runs with the others; only rank 0 prints from here on."""
    if options.mode == "interpret":
        raise ToolError("--mesh runs compiled programs; leave out --mode interpret")
    started = time.perf_counter()
    module = read_module(path, None, options.shapes)
    verify_module(module)
    entry = entry_of(module, given)
    sizes = mesh_sizes(mesh, module, entry)
    try:
        program = ShardedProgram(
            module,
            sizes,
            entry,
            mode="native" if options.mode == "native" else "bytecode",
            opt_level=options.opt_level,
            timeout=timeout,
            weights=options.weights,
        )
    except (ModuleNotFoundError, ValueError) as error:
        raise ToolError(str(error)) from error
    print_on_rank_0(program.rank)
    workers = f"{program.group.size} worker{'s' if program.group.size > 1 else ''}"
    origin = f"{options.mode}, {workers}, built in {1000 * (time.perf_counter() - started):.1f} ms"
    return Program(program, origin, entry=entry, signature=signature_of(module, entry))


def mesh_of_model(text: str) -> dict[str, int]:
    """The mesh of one axis that `2` or `x=2` says; `ToolError` for anything else."""
    name, _, size = text.rpartition("=")
    if not size.isdecimal() or int(size) < 1 or "," in text:
        raise ToolError(f"--mesh of a language model expected a number of workers, got {text}")
    return {name or "x": int(size)}


def rank_of_process() -> int:
    """The number of this process among those that mpiexec has started."""
    from mpi4py import MPI

    return MPI.COMM_WORLD.rank


def print_on_rank_0(rank: int) -> None:
    """From now on other ranks print nothing to the standard output."""
    if rank:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def run_together(run: Callable[[], None]) -> None:
    """Runs what each worker runs; an error ends the workers that wait for this one, too."""
    require_mpi()
    try:
        run()
    except Exception as error:
        from vm_dialect.mpi import MPI, abort

        if MPI.COMM_WORLD.size == 1:
            raise
        abort(str(error) if isinstance(error, DiagnosticException) else f"{type(error).__name__}: {error}")


@contextmanager
def pool_of_ranks() -> Generator[Executor]:
    """On rank 0, the other ranks that MPI has started, which `serve`; of one rank, a thread."""
    from mpi4py import MPI
    from mpi4py.futures import MPICommExecutor

    with MPICommExecutor(MPI.COMM_WORLD, root=0) as pool:
        assert isinstance(pool, Executor), "rank 0 has the pool"
        yield pool


def require_mpi() -> None:
    """Loads MPI; `ToolError` if it is not installed, or has no library."""
    try:
        import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        reason = str(error).partition("\n")[0]
        raise ToolError(f"several workers need MPI: pip install 'xdsl-relax[mpi]' ({reason})") from error


def serve() -> bool:
    """Does what rank 0 asks for until it has ended its pool; whether this is another rank. `ToolError` without MPI."""
    require_mpi()
    from mpi4py import MPI
    from mpi4py.futures import MPICommExecutor

    if MPI.COMM_WORLD.rank == 0:
        return False
    with MPICommExecutor(MPI.COMM_WORLD, root=0):
        return True
