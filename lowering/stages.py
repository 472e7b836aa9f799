"""What each stage of the pipeline may contain: whitelists as data, read by `verify-stage`.

A module is a list of functions; a stage says which kinds of functions there are and which ops each may hold. The order
is that of the pipeline; a pass is from one stage to the same or a later one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from lowering.diagnostics import Finding, refuse
from lowering.index import INDEX
from tir_dialect.extensions import is_extension
from tir_dialect.fast_ops import walked


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


@dataclass(frozen=True)
class VerifyStagePass(ModulePass):
    """Rejects a module that contains ops or types which a stage of the pipeline does not allow; changes nothing.

    ```mlir
    // verify-stage{stage=relax-legal}
    %1 = relax.exp %0      // error: 'relax.exp' op is not legal in stage relax-legal
    ```

    The stages and their ops are in `lowering/stages.py`. Reports every illegal op, function and type at once,
    each with the pass that would remove it.
    """

    name = "verify-stage"

    stage: str
    """One of the stages: relax, relax-legal, relax-dps, relax-memory, vm, tir, tir-flat, llvm."""

    or_later: bool = False
    """Whether what a later stage allows is legal too; a pipeline may begin anywhere on the way."""

    def __post_init__(self) -> None:
        if self.stage not in STAGES:
            raise ValueError(f"expected one of the stages {', '.join(STAGES)}, got {self.stage}")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        stage = or_later(self.stage) if self.or_later else STAGES[self.stage]
        refuse(stage_findings(op, self.stage, stage))


def stage_findings(module: ModuleOp, name: str, stage: Stage) -> Iterator[Finding]:
    """What `stage`, called `name`, does not allow in `module`."""
    for function in module.ops:
        if isinstance(function, ModuleOp):
            yield from stage_findings(function, name, stage)
        elif (allowed := stage.functions.get(function.name)) is None:
            kinds = ", ".join(f"'{kind}'" for kind in stage.functions)
            yield _illegal(function, name, f"whose functions are {kinds}")
        else:
            yield from _body_findings(function, name, stage, allowed)


def _body_findings(function: Operation, name: str, stage: Stage, allowed: Sequence[OpSet]) -> Iterator[Finding]:
    @cache
    def is_legal(op_name: str) -> bool:
        return any(op_name in legal for legal in allowed)

    @cache
    def is_legal_type(type_name: str) -> bool:
        dialect, dot, _ = type_name.partition(".")
        return not dot or dialect in stage.types

    for op in walked(function):
        if op is not function and not is_legal(op.name):
            yield _illegal(op, name, f"where {stage.meaning}")
            continue
        inner = [arg for region in op.regions for block in region.blocks for arg in block.args]
        for value in (*op.results, *inner):
            if not is_legal_type(value.type.name):
                yield Finding.at(op, f"has a value of type {value.type}, which is not legal in stage {name}")
                break


def _illegal(op: Operation, stage: str, why: str) -> Finding:
    removers = [name for name, entry in INDEX.items() if op.name in entry.removes]
    remover = next(iter(removers), "legalize-ops" if op.name.startswith("relax.") else None)
    hint = f"'{remover}' removes it; run it before" if remover is not None else None
    if is_extension(type(op).__module__):
        hint = "an extension registers its kernel by legalizes, or what it is made of by rewrites, for legalize-ops"
    return Finding.at(op, f"is not legal in stage {stage}, {why}", hint)
