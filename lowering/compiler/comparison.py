"""Where a program computes something else than it means: the first value of a function, and the first pass.

What a program means is what the interpreter of the graph level computes. Functions are called with inputs of the user,
several times; so are packed functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from lowering.compiler.validation import (
    Array,
    Build,
    Call,
    Failure,
    difference,
    machine,
    outcome,
    outcomes_differ,
    runner,
)
from lowering.locations import described
from lowering.pipelines import RelaxToLLVMPass, for_target
from lowering.relax.convert_dataflow import ToNonDataflowPass
from relax_dialect.ops.shapes import TupleOp
from relax_dialect.ops.structure import FuncOp, ReturnOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.struct_info.types import FuncType, PrimType, ShapeType, TensorType, TupleType
from tir_dialect.target import Target


@dataclass(frozen=True)
class Checked:
    """A value that both have computed."""

    name: str
    """`%lv0 = relax.exp` with its position in the source."""
    kind: str
    error: float | None
    """The greatest difference of two elements; `None` for what has none."""
    wrong: str | None
    """How they differ, in words, if they do by more than another order of sums makes them."""

    def __str__(self) -> str:
        error = "" if self.error is None else f"  greatest difference {self.error:.3g}"
        return f"{'ok   ' if self.wrong is None else 'WRONG'} {self.name}  {self.kind}{error}"


@dataclass(frozen=True)
class Check:
    """Native code against the interpreter."""

    values: Sequence[Checked]
    """Those that the function computes, in order, as far as they can be compared."""
    result: str | None
    """How the results differ, if they do."""
    first: Checked | None
    """The first wrong value."""

    def as_text(self) -> str:
        """A line for each value, and what is wrong."""
        lines = [str(value) for value in self.values]
        if self.first is not None:
            lines.append(f"the first value that differs is {self.first.name}: {self.first.wrong}")
        elif self.result is not None:
            lines.append(f"the result differs, and each value alone is right: {self.result}")
        else:
            lines.append(f"the results agree, and {len(self.values)} values on the way")
        return "\n".join(lines)


def check(module: ModuleOp, entry: str, arguments: Sequence[object], build: Build, weights: Mapping[str, Any]) -> Check:
    """Compares what a function computes natively with what it means: the result, and each value at the top of it.

    All values are results of one program, which is compiled otherwise than the function alone: fewer of its operators
    become one kernel. If the result is wrong and none of the values is, the program is cut off after each value until
    one is found. `KeyError` if the module has no such function.
    """
    call = Call(entry, {}, tuple(arguments))
    compare = _Comparison(call, build, weights)
    result = compare(module)[0]
    values = _values_of(_function(_flat(module), entry).body.block)
    checked = list(compare.each(_returning(module, entry, range(len(values))), values))
    first = next((value for value in checked if value.wrong is not None), None)
    if first is None and result is not None:
        first = _first_wrong_prefix(module, entry, values, compare)
    return Check(checked, result, first)


class _Comparison:
    """Runs programs in both ways on the same inputs."""

    def __init__(self, call: Call, build: Build, weights: Mapping[str, Any]):
        self._call = call
        self._build = build
        self._weights = weights

    def __call__(self, module: ModuleOp) -> tuple[str | None, object, object]:
        """How the outcomes differ, and both."""
        meant = outcome(runner(module, self._build, self._weights), self._call)
        if isinstance(meant, Failure):
            raise ValueError(f"the interpreter cannot run {self._call}: {meant.message}")
        found = outcome(machine(self._build(module, "native", self._weights)), self._call)
        return outcomes_differ(found, meant), found, meant

    def each(self, module: ModuleOp, values: Sequence[SSAValue]) -> Iterator[Checked]:
        """Compares the fields of the tuple that a program gives."""
        wrong, found, meant = self(module)
        if isinstance(found, Failure):
            raise ValueError(f"a program that gives all values cannot run: {wrong}")
        pairs = (cast("tuple[tuple[object, ...], object]", each)[0] for each in (found, meant))
        for value, got, wanted in zip(values, *pairs, strict=True):
            error = None
            if isinstance(got, np.ndarray) and isinstance(wanted, np.ndarray):
                error = _greatest_difference(cast("Array", got), cast("Array", wanted))
            owner = value.owner
            assert isinstance(owner, Operation)
            hint = value.name_hint or f"result of {owner.name}"
            where = described(owner.location)
            yield (
                Checked(
                    f"%{hint} = {owner.name}" + (f" at {where}" if where else ""),
                    str(value.type),
                    error,
                    difference(got, wanted, "it"),
                )
            )


def _greatest_difference(found: Array, meant: Array) -> float | None:
    if found.shape != meant.shape or not found.size:
        return None
    with np.errstate(all="ignore"):
        apart = np.abs(found.astype(np.float64) - meant.astype(np.float64))
        return float(np.nanmax(np.where(found == meant, 0, apart), initial=0))


def _first_wrong_prefix(
    module: ModuleOp, entry: str, values: Sequence[SSAValue], compare: _Comparison
) -> Checked | None:
    """The first value that is wrong in the program that ends with it, by halving: what follows a wrong one is wrong."""
    right, wrong, found = -1, len(values), None
    while wrong - right > 1:
        middle = (right + wrong) // 2
        (checked,) = compare.each(_returning(module, entry, [middle]), [values[middle]])
        if checked.wrong is None:
            right = middle
        else:
            wrong, found = middle, checked
    return found


# Programs that give values on the way.


def _function(module: ModuleOp, entry: str) -> FuncOp:
    found = [op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == entry]
    if not found:
        raise KeyError(f"no relax function {entry} in the module")
    return found[0]


def _flat(module: ModuleOp) -> ModuleOp:
    copy = module.clone()
    ToNonDataflowPass().apply(Context(), copy)
    return copy


def _values_of(block: Block) -> list[SSAValue]:
    """The values that can be compared, and are not constants."""
    kinds = (TensorType, ShapeType, PrimType, TupleType)
    return [
        result
        for op in block.ops
        if not isinstance(op, ConstantOp)
        for result in op.results
        if isinstance(result.type, kinds)
    ]


def _returning(module: ModuleOp, entry: str, indices: Sequence[int]) -> ModuleOp:
    """A program whose function gives a tuple of some of its values and ends after the last."""
    copy = _flat(module)
    func = _function(copy, entry)
    block = func.body.block
    values = _values_of(block)
    chosen = [values[index] for index in indices]
    last = max((list(block.ops).index(cast("Operation", value.owner)) for value in chosen), default=-1)
    for op in reversed(list(block.ops)[last + 1 :]):
        op.detach()
        op.erase()
    fields = TupleOp(*chosen)
    block.add_ops([fields, ReturnOp(fields.result)])
    kind = func.function_type
    func.function_type = FuncType(kind.params, None, pure=kind.pure, symbols=kind.symbols)
    func.result_names = None
    return copy


# Passes


@dataclass(frozen=True)
class Bisection:
    """Which pass of a pipeline changes what a program computes."""

    name: str | None
    """The pass, `the compilation to machine code`, or `None` if the result is right."""
    number: int
    """Its position in the pipeline, from 1; 0 if it is no pass."""
    wrong: str | None
    """How the result differs after it."""
    runs: int
    """How often the program was run."""
    skipped: Sequence[str] = ()
    """Passes after which it could not be run, beside the one that is named: it may be one of these instead."""

    def as_text(self) -> str:
        """The answer in one line, or two."""
        if self.name is None:
            return f"no pass changes the result, and native code gives it, too ({self.runs} runs)"
        which = f"pass '{self.name}' (number {self.number})" if self.number else self.name
        text = f"{which} is the first that changes the result: {self.wrong} ({self.runs} runs)"
        if self.skipped:
            text += f"\nafter {', '.join(self.skipped)} the program cannot be run, so it may be one of these instead"
        return text


def bisect(
    module: ModuleOp,
    entry: str,
    arguments: Sequence[object],
    build: Build,
    weights: Mapping[str, Any],
    passes: Sequence[ModulePass] | None = None,
) -> Bisection:
    """The first pass on the way to native code after which a function computes something else than it means.

    Passes are those of `relax-to-llvm` for this machine, unless they are given. The program is run after as many of
    them as halving needs: interpreted, on the levels of graphs and loops, and natively after that. `ValueError` if the
    interpreter cannot run it.
    """
    call = Call(entry, {}, tuple(arguments))
    meant = outcome(runner(module, build, weights), call)
    if isinstance(meant, Failure):
        raise ValueError(f"the interpreter cannot run {call}: {meant.message}")
    host = Target.host()
    steps = [for_target(each, host) for each in RelaxToLLVMPass.passes()] if passes is None else list(passes)
    search = _Search(steps, module, lambda stage: _differs(stage, call, meant, build, weights))
    found = search.first()
    if found is not None:
        position, wrong = found
        skipped = [steps[index - 1].name for index in search.cannot_run(position)]
        return Bisection(steps[position - 1].name, position, wrong, search.runs, skipped)
    wrong = outcomes_differ(outcome(machine(build(module, "native", weights)), call), meant)
    name = None if wrong is None else "the compilation to machine code"
    return Bisection(name, 0, wrong, search.runs + 1)


def _differs(
    stage: ModuleOp, call: Call, meant: object, build: Build, weights: Mapping[str, Any]
) -> tuple[bool, str | None]:
    """Whether the program can be run, and how its outcome differs."""
    try:
        found = outcome(runner(stage, build, weights), call)
    except Exception as error:  # of any kind: the stages in between are no programs for everybody
        return False, str(error)
    if isinstance(found, Failure) and found.cannot_run:
        return False, found.message
    return True, outcomes_differ(found, meant)


class _Search:
    """Halving over the number of passes that have been applied. What is wrong once stays wrong."""

    def __init__(
        self, passes: Sequence[ModulePass], module: ModuleOp, differs: Callable[[ModuleOp], tuple[bool, str | None]]
    ):
        self._passes = passes
        self._stages: dict[int, ModuleOp] = {0: module}
        self._differs = differs
        self._known: dict[int, tuple[bool, str | None]] = {0: (True, None)}
        self.runs = 0

    def first(self) -> tuple[int, str] | None:
        """After how many passes the result is wrong first, and how; `None` if it never is."""
        last = self._last_that_runs(len(self._passes), 0)
        wrong = self._at(last)[1]
        if wrong is None:
            return None
        right = 0
        while last - right > 1:
            middle = self._last_that_runs((right + last) // 2, right)
            if middle == right:  # nothing runs in between
                middle = next((at for at in range((right + last) // 2 + 1, last) if self._at(at)[0]), right)
                if middle == right:
                    break
            if (text := self._at(middle)[1]) is None:
                right = middle
            else:
                last, wrong = middle, text
        return last, wrong

    def cannot_run(self, position: int) -> list[int]:
        """Those before a position after which the program could not be run, back to one after which it could."""
        found: list[int] = []
        while (position := position - 1) > 0 and not self._at(position)[0]:
            found.append(position)
        return found[::-1]

    def _last_that_runs(self, position: int, lowest: int) -> int:
        while position > lowest and not self._at(position)[0]:
            position -= 1
        return position

    def _at(self, position: int) -> tuple[bool, str | None]:
        if position not in self._known:
            self.runs += 1
            # The module after so many passes.
            start = max(known for known in self._stages if known <= position)
            stage = self._stages[start].clone()
            for each in self._passes[start:position]:
                each.apply(Context(), stage)
            self._stages[position] = stage
            self._known[position] = self._differs(stage)
        return self._known[position]
