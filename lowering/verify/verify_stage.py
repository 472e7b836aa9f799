"""The pass `verify-stage`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from lowering.diagnostics import Finding, refuse
from lowering.index import INDEX
from lowering.verify.stages import STAGES, OpSet, Stage, or_later


@dataclass(frozen=True)
class VerifyStagePass(ModulePass):
    """Rejects a module that contains ops or types which a stage of the pipeline does not allow; changes nothing.

    ```mlir
    // verify-stage{stage=relax-legal}
    %1 = relax.exp %0      // error: 'relax.exp' op is not legal in stage relax-legal
    ```

    The stages and their ops are in `lowering/verify/stages.py`. Reports every illegal op, function and type at once,
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
        return _is_legal_type(type_name, stage)

    for op in function.walk():
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
    return Finding.at(op, f"is not legal in stage {stage}, {why}", hint)


def _is_legal_type(name: str, stage: Stage) -> bool:
    dialect, dot, _ = name.partition(".")
    return not dot or dialect in stage.types
