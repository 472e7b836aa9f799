"""What each stage of the pipeline may contain: whitelists as data, read by `verify-stage`.

A module is a list of functions; a stage says which kinds of functions there are and which ops each may hold. The order
is that of the pipeline; a pass is from one stage to the same or a later one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class OpSet:
    """A set of op names: some by name, and all of some dialects but those excepted."""

    names: frozenset[str]
    dialects: frozenset[str]
    excepted: frozenset[str]

    def __contains__(self, name: str) -> bool:
        return name in self.names or (name.partition(".")[0] in self.dialects and name not in self.excepted)


def ops(text: str, but: str = "") -> OpSet:
    """Names separated by blanks; `dialect.*` is all of a dialect, less those in `but`."""
    names = text.split()
    return OpSet(
        frozenset(name for name in names if not name.endswith(".*")),
        frozenset(name.removesuffix(".*") for name in names if name.endswith(".*")),
        frozenset(but.split()),
    )


@dataclass(frozen=True)
class Stage:
    """One stage."""

    meaning: str
    """What is true of a module at this stage, in one line."""
    functions: Mapping[str, tuple[OpSet, ...]]
    """The ops that may be at module level, and what may be inside each."""
    types: frozenset[str]
    """The dialects whose types values may have, beside builtin ones."""


TIR = ops("tir.* arith.* math.*")
"""PrimFuncs with blocks: what frontends, TE and schedules work on."""

TIR_FLAT = ops("tir.* arith.* math.* vector.* scf.* cf.*", but="tir.block tir.init tir.reads tir.writes")
"""PrimFuncs without blocks: loops, and loads and stores with final indices."""

EXPLICIT_MEMORY = ops(
    "relax.alloc_tensor relax.alloc_storage relax.storage_tensor relax.call_kernel relax.check_apart relax.kill "
    "relax.check_args"
)
"""What lowering puts in; not written by frontends."""

RELAX = ops("relax.*", but=" ".join(sorted(EXPLICIT_MEMORY.names)))
"""The graph level: every expression and operator."""

RELAX_CORE = ops(
    """
    relax.return relax.if relax.while relax.for relax.yield relax.make_closure relax.extern_func
    relax.call relax.call_closure relax.call_packed relax.call_pure_packed relax.assert relax.print
    relax.match_cast relax.guard relax.shape relax.shape_of relax.shape_get relax.size
    relax.tensor_to_shape relax.shape_to_tensor relax.flatten relax.expand_dims relax.squeeze relax.reshape
    relax.constant relax.prim relax.string relax.dtype relax.null relax.tuple relax.tuple_get
    """
)
"""The language, and operators that only look at memory in another way: what the virtual machine has a form for."""

RELAX_CALLS = ops(
    "relax.dataflow relax.output relax.fused relax.closure relax.call_tir relax.call_tir_inplace relax.call_dps_packed"
)
"""Dataflow regions, groups, closures, and calls whose results are allocated by the compiler."""

ALLOCATION = ops("relax.alloc_tensor relax.call_kernel relax.check_apart")
"""Explicit destinations."""

LLVM = ops("llvm.* llvm_ext.*")

STAGES: Mapping[str, Stage] = {
    "relax": Stage(
        "graphs of operators, and PrimFuncs",
        {"relax.func": (RELAX,), "tir.prim_func": (TIR,)},
        frozenset({"relax", "tir"}),
    ),
    "relax-legal": Stage(
        "every operator is a call of a PrimFunc or of a packed function",
        {"relax.func": (RELAX_CORE, RELAX_CALLS), "tir.prim_func": (TIR,)},
        frozenset({"relax", "tir"}),
    ),
    "relax-dps": Stage(
        "destinations are allocated, and calls write into them; no dataflow regions",
        {"relax.func": (RELAX_CORE, ALLOCATION), "tir.prim_func": (TIR, TIR_FLAT)},
        frozenset({"relax", "tir"}),
    ),
    "relax-memory": Stage(
        "tensors have their place in an arena, and values their end of life",
        {"relax.func": (RELAX_CORE, EXPLICIT_MEMORY), "tir.prim_func": (TIR, TIR_FLAT)},
        frozenset({"relax", "tir"}),
    ),
    "vm": Stage(
        "functions are control flow over registers that calls the run-time library and kernels",
        {"vm.func": (ops("vm.*"),), "vm.constant": (), "tir.prim_func": (TIR, TIR_FLAT)},
        frozenset({"vm", "tir"}),
    ),
    "tir": Stage("PrimFuncs with blocks", {"tir.prim_func": (TIR,)}, frozenset({"tir"})),
    "tir-flat": Stage(
        "PrimFuncs without blocks, with final indices",
        {"tir.prim_func": (TIR_FLAT,)},
        frozenset({"tir", "vector"}),
    ),
    "llvm": Stage(
        "LLVM functions only, and the constants that they get when they are loaded",
        {"llvm.func": (LLVM,), "llvm.mlir.global": (LLVM,), "vm.constant": ()},
        frozenset({"llvm"}),
    ),
}
"""The stages by name, in the order of the pipeline."""


def or_later(name: str) -> Stage:
    """What the stage `name` or one after it allows."""
    names = tuple(STAGES)
    later = [STAGES[each] for each in names[names.index(name) :]]
    functions: dict[str, tuple[OpSet, ...]] = {}
    for stage in later:
        for function, allowed in stage.functions.items():
            functions[function] = (*functions.get(function, ()), *allowed)
    return Stage(STAGES[name].meaning, functions, frozenset[str]().union(*(stage.types for stage in later)))
