"""Writes the generated pages of the documentation, the stub of the operators and the index of passes.

`--check` only says whether they are up to date.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from index_of_converters import converter_index
from index_of_ops import op_index
from index_of_passes import pass_index
from kernels_page import with_primitives
from operator_stub import stub_text
from operators_page import operators_page
from passes_page import passes_page
from tensorir_page import tensorir_page
from tir_page import tir_page
from torch_page import with_operators
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import PassPipeline

from lowering import build
from lowering.context import make_context
from lowering.parsing import parse_module
from lowering.registry import pass_factories

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Stage:
    """A step of the walkthrough: some passes, and what they are for."""

    title: str
    text: str
    passes: str
    shown: str
    """The op at module level that is worth looking at after the passes."""


STAGES = (
    Stage(
        "The program",
        "A PrimFunc `tirexp` in destination-passing style, and a relax function that calls it and flattens the "
        "result. `n` and `m` are symbols: the function's leading block arguments witness them, so they may be used "
        "wherever those dominate.",
        "",
        "",
    ),
    Stage(
        "Operators become calls of kernels: `legalize-ops`",
        "An operator becomes a `relax.call_tir` of a PrimFunc made from its tensor expression. Here the only operator "
        "is `relax.flatten`, which is a view of memory and stays.",
        "bind-unknown-dims,insert-guards,legalize-ops",
        "relax.func",
    ),
    Stage(
        "The dataflow region is inlined: `to-non-dataflow`",
        "From here on ops have side effects, which are not allowed in a dataflow region.",
        "to-non-dataflow",
        "relax.func",
    ),
    Stage(
        "Memory becomes explicit: `lower-call-tir`, `plan-memory`, `insert-kills`",
        "`call_tir` becomes an allocation and a call in destination-passing style (challenge C0 of the MVP page). The "
        "memory planner places tensors that do not escape in one arena; the only tensor here escapes as the result.",
        "lower-call-tir,plan-memory,insert-kills",
        "relax.func",
    ),
    Stage(
        "Shapes become explicit: `lower-shapes`",
        "The shapes in the signature become checks that bind `n` and `m` (challenge C1). The MVP page keeps sizes in a "
        "heap; we keep them in registers, where the verifier's dominance check covers them and LLVM sees plain "
        "integers.",
        "lower-shapes",
        "relax.func",
    ),
    Stage(
        "The virtual machine: `convert-relax-to-vm`",
        "Every op but the terminators is one `call` instruction. `m * n`, which the MVP page computes by a "
        "generated shape function, is one integer operation.",
        "convert-relax-to-vm,dce",
        "vm.func",
    ),
)


def run_passes(module: ModuleOp, passes: str, context: Context) -> None:
    """Applies a pipeline that is written as for `relax-opt -p`."""
    from xdsl.transforms import get_all_passes

    available = get_all_passes() | pass_factories()
    PassPipeline.parse_spec(available, passes).apply(context, module)
    module.verify()


def walkthrough() -> str:
    """The page that follows the running example of the MVP page through all stages."""
    source = (ROOT / "examples" / "mvp.mlir").read_text()
    context = make_context()
    module = parse_module(source, "mvp.mlir", context)
    program = "".join(line for line in source.splitlines(keepends=True) if not line.startswith("//")).strip()
    parts = ["# One program, stage by stage", INTRODUCTION]
    done: list[str] = []
    for number, stage in enumerate(STAGES):
        parts += [f"## {number}. {stage.title}", stage.text]
        if not stage.passes:
            parts.append(_code(program))
            continue
        run_passes(module, stage.passes, context)
        done.append(stage.passes)
        parts.append(f"```\nrelax-opt examples/mvp.mlir -p {','.join(done)}\n```")
        parts.append(_code("\n".join(str(op) for op in module.ops if op.name == stage.shown)))
    executable = build(parse_module(source, "mvp.mlir"), mode="bytecode")
    parts += [f"## {len(STAGES)}. Bytecode", BYTECODE, f"```\n{executable.as_text().strip()}\n```"]
    parts += [f"## {len(STAGES) + 1}. Native code", NATIVE]
    return "\n\n".join(parts) + "\n"


def _code(text: str) -> str:
    return f"```mlir\n{text}\n```"


INTRODUCTION = """The running example of the Relax compilation MVP on its way to machine code. Of what each command
prints, the function that the stage is about is shown; the kernel `tirexp` is left out, since these stages do not
change it. This page is generated by `make docs` and checked by the tests."""

BYTECODE = """`allocate-registers` assigns a register to every value; the VM has four instructions.
`relax-run --mode bytecode` runs this."""

NATIVE = """`convert-vm-to-llvm` makes an LLVM function of the same `vm.func`: sizes are integers in machine registers,
the kernel is called directly with data pointers and sizes, and only values that leave the function are objects.
`convert-tir-to-llvm` does the same for the PrimFunc. Look at it with

```
relax-translate examples/mvp.mlir --emit llvmir
relax-run examples/mvp.mlir --entry myfunc --random "f32[3,4]"
```"""

INDEXES = {
    "relax_dialect/index.py": op_index,
    "relax_dialect/frontend/index.py": converter_index,
    "lowering/index.py": pass_index,
}
"""The modules that say where ops, converters and passes are; each may be needed to make the next."""

PAGES = {
    "docs/tutorials/walkthrough.md": walkthrough,
    "docs/tutorials/kernels.md": lambda: with_primitives((ROOT / "docs/tutorials/kernels.md").read_text()),
    "docs/reference/operators.md": operators_page,
    "docs/reference/passes.md": passes_page,
    "docs/reference/tensorir.md": tensorir_page,
    "docs/reference/tir.md": tir_page,
    "docs/howto/torch.md": lambda: with_operators((ROOT / "docs/howto/torch.md").read_text()),
    "relax_dialect/builder/op.pyi": stub_text,
}
"""What is made of the classes that the indexes name, by its place in the repository."""


def main(arguments: list[str]) -> int:
    """Writes the pages, or compares them; 1 if one is out of date."""
    stale: dict[str, str] = {}
    for name, make in INDEXES.items():
        stale |= _stale({name: make})
        if stale and "--check" not in arguments:
            # The modules that are loaded have read the old index.
            _write(stale)
            os.execv(sys.executable, sys.orig_argv)
    stale |= _stale(PAGES)
    if "--check" in arguments:
        for name in stale:
            print(f"{name} is out of date: run make docs", file=sys.stderr)
        return 1 if stale else 0
    _write(stale)
    return 0


def _stale(files: Mapping[str, Callable[[], str]]) -> dict[str, str]:
    """The files that are out of date, with their new texts."""
    texts = {name: make() for name, make in files.items()}
    return {name: text for name, text in texts.items() if not _is_current(ROOT / name, text)}


def _write(files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (ROOT / name).write_text(text)
        print(f"wrote {name}", flush=True)


def _is_current(path: Path, text: str) -> bool:
    return path.exists() and path.read_text() == text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
