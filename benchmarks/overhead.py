"""What a call costs beside the work: one tiny operator, each further one in a chain, import and compile time.

Peer: the virtual machine of TVM, if `apache-tvm` is installed.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import tvm_ffi
from xdsl.context import Context

from benchmarks.timing import Row, print_table, time_in_turns
from lowering import build
from lowering.parsing import parse_module
from lowering.pipelines import RelaxToVMPlainPass
from vm_dialect import VirtualMachine

LENGTH = 200
EXAMPLES = Path(__file__).parents[1] / "examples"


def chain_text(length: int) -> str:
    """A function of `length` additions on a tensor of unknown size."""
    lines = ["relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {"]
    value = "%x"
    for index in range(length):
        lines.append(f"  %v{index} = relax.add {value}, %x")
        value = f"%v{index}"
    return "\n".join([*lines, f"  relax.return {value}", "}"])


def ours(length: int) -> Callable[[], object]:
    """Our call of a chain, in which each operator stays a kernel of its own, as TVM's do."""
    module = parse_module(chain_text(length))
    RelaxToVMPlainPass().apply(Context(), module)
    function = VirtualMachine(build(module))["main"]
    x = tvm_ffi.from_dlpack(np.ones(4, np.float32))
    return lambda: function(x)


def tvm(length: int) -> Callable[[], object] | None:
    """TVM's call of the same chain; `None` if it is not installed."""
    try:
        from tvm import compile, cpu, relax, runtime, tirx
    except ImportError:
        return None
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([tirx.Var("n", "int64")], "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            value = x
            for _ in range(length):
                value = builder.emit(relax.op.add(value, x))
            output = builder.emit_output(value)
        builder.emit_func_output(output)
    function = relax.VirtualMachine(compile(builder.get(), target="llvm"), cpu())["main"]
    tensor = runtime.tensor(np.ones(4, np.float32))
    return lambda: function(tensor)


def call_rows() -> list[Row]:
    """One operator, and what each further one adds."""
    times: list[tuple[float, dict[str, float]]] = []
    for length in (1, LENGTH):
        calls = {"ours": ours(length)}
        if (peer := tvm(length)) is not None:
            calls["TVM"] = peer
        measured = time_in_turns(calls)
        times.append((measured.pop("ours"), measured))
    (one, one_peers), (many, many_peers) = times
    per_op = {name: (many_peers[name] - one_peers[name]) / (LENGTH - 1) for name in one_peers}
    return [
        Row("call of one operator, from Python", one, one_peers),
        Row(f"each further operator of {LENGTH}", (many - one) / (LENGTH - 1), per_op),
    ]


def start_rows() -> list[Row]:
    """Import, and compilation without and with the cache."""
    statement = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
    modules = "relax_dialect, tir_dialect, vm_dialect, lowering"
    loaded = "lowering.compiler.build, vm_dialect.machine"
    program = parse_module((EXAMPLES / "user_facing.mlir").read_text())
    build(program)  # imports and warms up
    return [
        Row("import of the packages", _python(statement.format(modules)), {}),
        Row("import of the whole compiler and machine", _python(statement.format(loaded)), {}),
        Row("build of examples/user_facing.mlir", _seconds(lambda: build(program, cache=False)), {}),
        Row("the same from the cache", _seconds(lambda: build(program)), {}),
    ]


def _python(code: str) -> float:
    """The number that a fresh interpreter prints, without PyTorch, which tvm-ffi would import if it is installed."""
    code = f"import sys; sys.modules['torch'] = None; {code}"
    return min(float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(3))


def _seconds(call: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(3):
        begin = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begin)
    return best


def main() -> None:
    """Prints both tables."""
    print_table("Calls", call_rows())
    print_table("Start", start_rows())


if __name__ == "__main__":
    main()
