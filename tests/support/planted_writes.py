"""Writes that are planted between the ops of programs: what a pass makes of one has to compute what it did before.

A rewrite that reads an operand where its new op stands, later or earlier than the op that it replaces, is wrong as soon
as somebody writes into that memory in between. So the programs that passes match, those of their own FileCheck tests,
get a write of a value between two of their ops, for each value and each point between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from math import prod
from pathlib import Path
from typing import TypeGuard, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp, i8
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import DiagnosticException

from lowering.compiler.validation import Array, Draw, symbol_values
from lowering.context import make_context
from lowering.relax.convert_dataflow import ToNonDataflowPass
from lowering.verify import verify_module
from relax_dialect.analysis.aliases import holds_memory, views
from relax_dialect.interpreter import run
from relax_dialect.ops.shapes import TupleOp
from relax_dialect.ops.structure import ClosureOp, FuncOp, ReturnOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.struct_info.types import FuncType, TensorType
from tests.support.corpus import ROOT, texts, valid_module
from tests.support.programs import as_arguments, as_plain, run_pipeline
from tests.support.write_forms import FORMS, NoSuchWrite
from tir_dialect.ops.vectors import ui8

_RUN = re.compile(r"RUN: relax-opt %s(.*)")
_PIPELINE = re.compile(r"""-p\s+(?:'([^']*)'|"((?:[^"\\]|\\.)*)"|(\S+))""")
SIZES = 3, 5, 2, 4
MOST_ELEMENTS = 1 << 17
MOST_STEPS = 20
"""So few that a loop which doubles what it carries, and which a write keeps from ending, takes little memory."""


@dataclass(frozen=True)
class Subject:
    """A function of a test program without dataflow regions, and the passes that the test runs."""

    name: str
    module: ModuleOp
    function: str
    pipeline: str


def subjects(folder: str, but: Sequence[str] = ()) -> Iterator[Subject]:
    """The public functions of the programs in a folder of `tests/filecheck`, or of files whose paths begin so, and not
    as others.
    """
    for name, text in texts():
        path = name.removeprefix("tests/filecheck/")
        if not path.startswith(folder) or path.startswith(tuple(but)):
            continue
        pipeline = pipeline_of(ROOT / name.partition("#")[0])
        module = valid_module(name, text) if pipeline else None
        if module is None or pipeline is None:
            continue
        ToNonDataflowPass().apply(make_context(), module)
        if any(map(_is_large, module.walk())):
            continue
        for op in module.ops:
            if isinstance(op, FuncOp) and not op.is_private:
                yield Subject(name, module, op.sym_name.data, pipeline)


def _is_large(op: Operation) -> bool:
    """Whether a result has more elements than the interpreter computes with in no time."""
    infos = [info for info in op.result_types if isinstance(info, TensorType)]
    return any(prod(dim.constant_value or 1 for dim in info.known_dims or ()) > MOST_ELEMENTS for info in infos)


def pipeline_of(file: Path) -> str | None:
    """The passes that the first command of a FileCheck test runs; `None` if it runs none."""
    found = _PIPELINE.search(next(iter(_RUN.findall(file.read_text())), ""))
    if found is None:
        return None
    return next(group for group in found.groups() if group is not None).replace('\\"', '"')


@dataclass(frozen=True)
class PlantedWrite:
    """Where a write is planted: after an op of a function, counted in the order of a walk, of a value."""

    op: int
    """The op after which it stands."""
    maker: int | None
    """The op that makes the value; `None` for a parameter."""
    index: int
    """Which result, or parameter, it is."""

    def value(self, func: FuncOp, ops: list[Operation]) -> SSAValue:
        """The value in a function."""
        return func.params[self.index] if self.maker is None else ops[self.maker].results[self.index]


def visible_writes(func: FuncOp) -> Iterator[PlantedWrite]:
    """After which ops of a function a write of which value may be seen: after it was made or read."""
    ops = list(func.body.walk())
    order = {op: number for number, op in enumerate(ops)}
    values = [(None, index, value) for index, value in enumerate(func.params)]
    values += [(order[op], index, value) for op in ops for index, value in enumerate(op.results)]
    for maker, index, value in values:
        if not holds_memory(value) or not isinstance(value.type, TensorType):
            continue
        readers = {order[use.operation] for each in views(value) for use in each.uses}
        for number, op in enumerate(ops):
            if op.next_op is None or _is_in_closure(op) or not readers:
                continue
            if (maker is None or _dominates(ops[maker], op)) and (maker == number or min(readers) <= number):
                yield PlantedWrite(number, maker, index)


def _is_in_closure(op: Operation) -> bool:
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, FuncOp):
        if isinstance(parent, ClosureOp):
            return True
        parent = parent.parent_op()
    return False


def _dominates(maker: Operation, op: Operation) -> bool:
    """Whether an op, or one around it, is a later one in the block of `maker`, or that one itself."""
    around: Operation | None = op
    while around is not None and around.parent is not maker.parent:
        around = around.parent_op()
    return around is maker or (around is not None and maker.is_before_in_block(around))


def planted(subject: Subject, point: PlantedWrite | None, form: str = "packed") -> ModuleOp | None:
    """The program with a write of a form; `None` if it is none, as where a pure function calls this."""
    module = subject.module.clone()
    func = function_of(module, subject.function)
    if point is not None:
        ops = list(func.body.walk())
        value, before = point.value(func, ops), ops[point.op]
        try:
            written = FORMS[form](value, module)
        except NoSuchWrite:
            return None
        late = set(ops[point.op + 1 :])
        Rewriter.insert_op(written.ops, InsertPoint.after(before))
        start = InsertPoint.at_start(func.body.block) if point.maker is None else InsertPoint.after(ops[point.maker])
        Rewriter.insert_op(written.early, start)
        if written.name is not None:
            last = written.ops[-1]
            value.replace_uses_with_if(
                written.name, lambda use: use.operation in late and _dominates(last, use.operation)
            )
        info = func.function_type
        func.properties["function_type"] = FuncType(info.params, info.ret, pure=False, symbols=info.symbols)
    try:
        verify_module(module)
    except DiagnosticException:
        return None
    return module


def returned_too(subject: Subject, maker: int) -> Subject | None:
    """The program whose function returns what an op makes, besides its own result; `None` if it does, or cannot."""
    module = subject.module.clone()
    func = function_of(module, subject.function)
    op, end = list(func.body.walk())[maker], func.body.block.last_op
    if op.parent is not func.body.block or not isinstance(end, ReturnOp) or len(op.results) != 1:
        return None
    value, info = op.results[0], func.function_type
    if not isinstance(value.type, TensorType) or value in end.operands:
        return None
    both = TupleOp(end.value, value)
    Rewriter.replace_op(end, [both, ReturnOp(both.result)])
    func.properties["function_type"] = FuncType(info.params, both.result.type, pure=info.pure, symbols=info.symbols)
    try:
        verify_module(module)
    except DiagnosticException:
        return None
    return replace(subject, module=module)


def function_of(module: ModuleOp, name: str) -> FuncOp:
    """The function of a name."""
    return next(op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == name)


@dataclass(frozen=True)
class Outcome:
    """What a call gives, what its arguments are afterwards, and which tensors of both share memory."""

    tensors: list[Array]
    shared: frozenset[tuple[int, int]]


def outcome(module: ModuleOp, name: str) -> Outcome:
    """Calls a function in the interpreter on arguments that are drawn; raises what it raises."""
    info = function_of(module, name).function_type
    symbols = symbol_values(info.symbols, SIZES)
    random = np.random.default_rng(0)
    draw, draw_bytes = (Draw(random, symbols, SIZES[0], integers) for integers in ((-1, 4), (-128, 256)))
    arguments = tuple((draw_bytes if _is_of_bytes(each) else draw).value(each) for each in info.params)
    weights = {str(op.weight_name): draw.value(op.result.type) for op in module.walk() if _is_elsewhere(op)}
    with np.errstate(all="ignore"):
        result = as_plain(run(module, name, as_arguments(arguments), weights=weights, max_steps=MOST_STEPS))
    tensors = [*_tensors(result), *_tensors(arguments)]
    pairs = combinations(enumerate(tensors), 2)
    return Outcome(tensors, frozenset((i, j) for (i, one), (j, two) in pairs if np.shares_memory(one, two)))


def _is_of_bytes(info: Attribute) -> bool:
    """Whether a type is one of quantised values: few of them would all be rounded to one."""
    return isinstance(info, TensorType) and info.dtype in (i8, ui8)


def _is_elsewhere(op: Operation) -> TypeGuard[ConstantOp]:
    return isinstance(op, ConstantOp) and op.array is None


def _tensors(value: object) -> Iterator[Array]:
    """The numeric tensors in a value."""
    if isinstance(value, tuple):
        for each in cast("tuple[object, ...]", value):
            yield from _tensors(each)
    elif isinstance(value, np.ndarray) and cast("Array", value).dtype.kind not in "OU":
        yield cast("Array", value)


def fault(subject: Subject, point: PlantedWrite | None, form: str = "packed") -> str | None:
    """What a pass changes in a program with a write, in words; `NotRun` if there is nothing to compare."""
    module = planted(subject, point, form)
    if module is None:
        raise NotRun("no valid program")
    try:
        before = outcome(module, subject.function)
    except Exception as error:  # a program that cannot be run has no values to compare
        raise NotRun(f"{type(error).__name__}: {error}") from error
    try:
        run_pipeline(module, subject.pipeline)
    except DiagnosticException as error:
        raise NotRun(f"refused: {error}") from error
    try:
        after = outcome(module, subject.function)
    except Exception as error:
        # What has no interpretation, such as library calls, and weights that a pass has moved out of the program.
        if isinstance(error, NotImplementedError) or "the elements of weight" in str(error):
            raise NotRun(str(error)) from error
        return f"fails: {type(error).__name__}: {error}"
    return difference(after, before)


class NotRun(Exception):
    """A program that cannot be drawn, fails, or is lowered to what the interpreter does not run."""


SHARE = "tensors share memory"


def difference(after: Outcome, before: Outcome) -> str | None:
    """The first difference of two outcomes, in words: a write makes large ones, while passes may round."""
    if len(after.tensors) != len(before.tensors):
        return f"{len(after.tensors)} tensors, were {len(before.tensors)}"
    for number, (now, was) in enumerate(zip(after.tensors, before.tensors, strict=True)):
        if (now.dtype, now.shape) != (was.dtype, was.shape) or not _is_near(now, was):
            return f"tensor {number} is {now.dtype} {now.reshape(-1)[:4]}, was {was.dtype} {was.reshape(-1)[:4]}"
    new = after.shared - before.shared
    return f"{SHARE}: {sorted(new)}" if new else None


def _is_near(now: Array, was: Array) -> bool:
    """Whether elements are the same but for rounding, which may be to the next integer of 8 bits."""
    scale = np.abs(was[np.isfinite(was)].astype(np.float64)).max(initial=0)
    most = max(2e-2 * scale, 1.0 if was.dtype.itemsize == 1 else 0.0)
    return np.allclose(now.astype(np.float64), was.astype(np.float64), rtol=0, atol=most, equal_nan=True)


@dataclass
class Sweep:
    """What came of the programs with a write."""

    faults: list[str] = field(default_factory=list[str])
    compared: int = 0

    def add(
        self, subject: Subject, wanted: Iterable[PlantedWrite] | None = None, forms: Iterable[str] = ("packed",)
    ) -> None:
        """Plants some writes in a function, or all that may be seen, one at a time and in some forms."""
        try:
            if fault(subject, None) is not None:
                return  # the test program itself has other values afterwards, as where it reads what nobody has written
        except NotRun:
            return
        points = visible_writes(function_of(subject.module, subject.function)) if wanted is None else wanted
        for point, form in product(points, forms):
            try:
                found = fault(subject, point, form)
            except NotRun:
                continue
            self.compared += 1
            if found is not None:
                self.faults.append(
                    f"{subject.name} @{subject.function} after {subject.pipeline}: {point} {form}: {found}"
                )

    def add_returned(self, subject: Subject, maker: int) -> None:
        """Looks at which tensors share memory where a function returns what an op makes, too."""
        both = returned_too(subject, maker)
        if both is None:
            return
        try:
            found = fault(both, None)
        except NotRun:
            return
        self.compared += 1
        if found is not None and found.startswith(SHARE):
            self.faults.append(f"{subject.name} @{subject.function} after {subject.pipeline}: op {maker}: {found}")
