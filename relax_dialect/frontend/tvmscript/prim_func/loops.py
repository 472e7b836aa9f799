"""Loops of PrimFuncs: `range`, `T.serial` and its kin, `T.grid`."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.ir import Attribute

from relax_dialect.frontend.tvmscript.prim_func.expressions import TirExpressionReader
from relax_dialect.frontend.tvmscript.prim_func.scalar_functions import FUNCTIONS
from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.evaluator import items_of
from relax_dialect.frontend.tvmscript.text.signature import as_attributes
from tir_dialect.dims import Dim, ceildiv, constant
from tir_dialect.name_hints import as_name_hint
from tir_dialect.ops.loops import ForOp
from tir_dialect.te.expr import INDEX
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.types import LoopKind

_KINDS = {
    "serial": LoopKind.SERIAL,
    "parallel": LoopKind.PARALLEL,
    "vectorized": LoopKind.VECTORIZED,
    "unroll": LoopKind.UNROLLED,
    "unrolled": LoopKind.UNROLLED,
    "range": LoopKind.SERIAL,
    "thread_binding": LoopKind.THREAD_BINDING,
}


@dataclass
class Loop:
    """One loop of the text."""

    lower: Scalar | Dim
    upper: Scalar | Dim
    step: Scalar | Dim | int = 1
    kind: LoopKind = LoopKind.SERIAL
    annotations: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    tag: str | None = None
    """The thread of a GPU that a round would be."""

    @property
    def is_plain(self) -> bool:
        """Whether the loop goes through all values from its first one on."""
        return isinstance(self.step, int) and self.step == 1


def read_loops(reader: TirExpressionReader, node: ast.expr) -> list[Loop]:
    """The loops that the iterator of a `for` stands for, outermost first."""
    if isinstance(node, ast.Call):
        node = reader.meant_call(node)
        name = node.func.id if isinstance(node.func, ast.Name) else reader.aliases.name_in("tir", node.func)
        if name == "grid":
            for keyword in node.keywords:
                if keyword.arg != "dtype":
                    reader.fail(keyword.value, "T.grid expected the numbers of rounds, and dtype")
            return [loop for each in node.args for loop in _extents(reader, each)]
        if name in _KINDS:
            return [_loop(reader, node, name)]
    reader.fail(node, "expected range, T.serial, T.parallel, T.vectorized, T.unroll or T.grid")


def place_of(name: str, index: int) -> str:
    """What a loop variable is called that is one of several under `name`."""
    return f"{name}.{index}"


def loop_names(reader: TirExpressionReader, node: ast.expr) -> Sequence[ast.expr]:
    """The loop variables of a list, or of one name for several."""
    if isinstance(node, ast.List | ast.Tuple):
        return [_loop_name(each) for each in node.elts]
    items = items_of(reader.value(node)) if isinstance(node, ast.Name) else None
    if items is None or not isinstance(node, ast.Name):
        return [_loop_name(node)]
    names = [ast.Name(place_of(node.id, index), ast.Load()) for index in range(len(items))]
    return [ast.copy_location(name, node) for name in names]


def _loop_name(node: ast.expr) -> ast.expr:
    """The variable that `i[0]` means, for a name of several."""
    match node:
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int() as index)):
            return ast.copy_location(ast.Name(place_of(name, index), ast.Load()), node)
        case _:
            return node


def _extents(reader: TirExpressionReader, node: ast.expr) -> list[Loop]:
    """One loop for an argument of `T.grid`; of `*A.shape`, one for each dimension."""
    if not isinstance(node, ast.Starred):
        return [_counted(reader, node, reader.value(node))]
    items = items_of(reader.value(node.value))
    if items is None:
        reader.fail(node, "expected a tuple of dimensions after *")
    return [_counted(reader, node, item) for item in items]


def _counted(reader: TirExpressionReader, node: ast.expr, value: object) -> Loop:
    ends = items_of(value)
    if ends is not None and len(ends) == 2:
        return Loop(reader.index(node, ends[0]), reader.index(node, ends[1]))
    return Loop(constant(0), reader.index(node, value))


def _loop(reader: TirExpressionReader, node: ast.Call, name: str) -> Loop:
    what = name if name == "range" else f"T.{name}"
    given = Arguments(
        reader.source, node, what, "start stop third annotations step thread dtype", {"begin": "start", "end": "stop"}
    )
    start, stop, thread = given.get("start"), given.get("stop"), given.get("thread")
    if name == "thread_binding" and thread is None:
        thread = given.get("third") or stop
        stop = None if thread is stop else stop
    if stop is None:
        start, stop = None, start
    if stop is None:
        reader.fail(node, f"{what} expected the end of the range")
    lower = constant(0) if start is None else reader.index(start, reader.value(start))
    loop = Loop(lower, reader.index(stop, reader.value(stop)), kind=_KINDS[name])
    if name == "thread_binding":
        loop.tag = reader.text(thread) if thread is not None else reader.fail(node, f"{what} expected the thread")
    step = given.get("step") if loop.tag is not None else given.first("step", "third")
    if step is not None:
        value = reader.value(step)
        loop.step = value if isinstance(value, int) else reader.index(step, value)
        if isinstance(loop.step, int) and loop.step == 0:
            reader.fail(step, "expected a step that is not 0")
    if (notes := given.get("annotations")) is not None:
        found = reader.value(notes)
        if isinstance(found, dict):
            loop.annotations = as_attributes(reader.source, notes, cast("dict[str, object]", found))
    return loop


def open_loop(reader: TirExpressionReader, node: ast.AST, loop: Loop, name: str) -> Scalar:
    """Appends a loop and goes into it; gives its variable."""
    lower, upper = loop.lower, loop.upper
    start = None if isinstance(lower, Dim) and lower.constant_value == 0 else lower
    if not loop.is_plain:
        upper = _rounds(reader, node, loop)
        start = None
    op = ForOp(
        reader.index_value(node, upper),
        lower=None if start is None else reader.index_value(node, start),
        kind=loop.kind,
        thread_tag=loop.tag,
        annotations=loop.annotations or None,
        name_hint=as_name_hint(name),
    )
    reader.block.add_op(op)
    reader.block = op.body.block
    variable = reader.variable(op.induction_var, INDEX, name)
    if loop.is_plain:
        return variable
    return reader.emit(node, lambda: FUNCTIONS["Add"](lower, FUNCTIONS["Mul"](variable, loop.step)))


def _rounds(reader: TirExpressionReader, node: ast.AST, loop: Loop) -> Scalar | Dim:
    """How often a loop with a step runs, downwards if it is negative; never, if one that is data is negative."""
    lower, upper, step = loop.lower, loop.upper, loop.step
    if isinstance(step, int) and step < 0:
        lower, upper, step = upper, lower, -step
    if isinstance(lower, Dim) and isinstance(upper, Dim) and isinstance(step, int):
        return ceildiv(upper - lower, constant(step))
    return reader.emit(node, lambda: FUNCTIONS["ceildiv"](FUNCTIONS["Sub"](upper, lower), step))
