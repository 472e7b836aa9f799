"""The text of functions and modules: statements line by line, and the regions that blocks read and write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, UnitAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tir_dialect.analysis.regions import Region, block_regions
from tir_dialect.ops.arithmetic import DEFAULT_ERROR, AssertOp
from tir_dialect.ops.assembly_format import note_of
from tir_dialect.ops.blocks import BlockOp, DeclarationOp, InitOp, MatchBufferOp, ReadsOp, RegionOp, WritesOp
from tir_dialect.ops.calls import CallOp, ForeignCallOp
from tir_dialect.ops.control_flow import ConditionOp, ForOp, IfOp, WhileOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import AllocBufferOp, StoreOp, buffer_type
from tir_dialect.tvmscript.expressions import Expressions, is_expression, reads_memory
from tir_dialect.tvmscript.text import (
    INDEX,
    Line,
    Names,
    Suite,
    Text,
    dim_text,
    dtype_text,
    function_texts,
    refuse,
    rendered,
    symbol_text,
    tuple_of,
)
from tir_dialect.types import BufferType, IteratorKind, LoopKind


def declared_regions(expressions: Expressions, op: BlockOp) -> list[str]:
    """What a block declares; or touches, where memory of a loop inside would count for TVM."""
    lines: list[str] = []
    for kind, function in ((ReadsOp, "reads"), (WritesOp, "writes")):
        regions = [region_text(expressions, each) for each in op.body.block.ops if isinstance(each, kind)]
        lines += [f"T.{function}({', '.join(regions)})"] if regions else []
    inside = (inner for inner in op.walk() if isinstance(inner, AllocBufferOp))
    if lines or all(inner.parent_op() is op for inner in inside):
        return lines
    found = block_regions(op)
    known = expressions.names
    names = {name: known[each.value].text for name, each in found.space.variables.items() if each.value in known}
    return [
        f"T.{function}({', '.join(_box(expressions, region, names) for region in regions)})"
        for function, regions in (("reads", found.reads), ("writes", found.writes))
    ]


def _box(expressions: Expressions, region: Region, names: Mapping[str, str]) -> str:
    parts = [
        [dim_text(dim.substitute(names)).text for dim in (axis.lower, axis.lower + axis.extent)] for axis in region.axes
    ]
    return f"{expressions.buffer(region.buffer)}[{', '.join(map(':'.join, parts)) or '()'}]"


def region_text(expressions: Expressions, op: RegionOp) -> str:
    """A region of a buffer: an index, or a range, per dimension."""
    parts: list[str] = []
    for axis in op.axes:
        low = expressions.of(axis.lower).text
        parts.append(low if axis.upper is None else f"{low}:{expressions.of(axis.upper).text}")
    return f"{expressions.buffer(op.buffer)}[{', '.join(parts) or '()'}]"


LONGEST = 48
"""An expression of more characters that is used twice gets a name."""


@dataclass
class Statements:
    """Writes the statements of one function."""

    names: Names
    expressions: Expressions = field(default_factory=Expressions)

    def of(self, block: Block, *, in_block: bool) -> list[Line]:
        """The statements of a block of ops; `in_block` is so directly in a function or a `tir.block`."""
        lines: list[Line] = []
        for op in block.ops:
            lines += self._of_op(op, in_block=in_block)
        return lines

    def name(self, value: SSAValue, otherwise: str, dtype: str = INDEX) -> str:
        """Gives a value a name."""
        name = self.names.fresh(value.name_hint, otherwise)
        self.expressions.names[value] = Text(name, dtype)
        return name

    def _of_op(self, op: Operation, *, in_block: bool) -> list[Line]:
        match op:
            case StoreOp():
                return [self._store(op)]
            case AllocBufferOp():
                return [self._allocation(op, in_block=in_block)]
            case MatchBufferOp():
                return [self._view(op, in_block=in_block)]
            case ForOp():
                return [self._loop(op)]
            case BlockOp():
                return [self._block(op)]
            case IfOp() if not op.outputs:
                return self._branch(op)
            case WhileOp():
                return [self._while(op)]
            case AssertOp():
                return [self._assertion(op)]
            case ForeignCallOp() if op.pure is None or op.result is None:
                return self._effect(op)
            case _ if is_expression(op):
                return self._value(op)
            case _:
                raise refuse(op, _REASONS.get(op.name, "TVM has nothing like it"))

    def _assertion(self, op: AssertOp) -> str:
        kind = DEFAULT_ERROR if op.error is None else op.error.data
        return f"assert {self.expressions.of(op.condition).text}, ({json.dumps(kind)}, [{json.dumps(op.message.data)}])"

    def _store(self, op: StoreOp) -> str:
        dtype = dtype_text(buffer_type(op.buffer).dtype)
        value = self.expressions.of(op.value).of_dtype(dtype if op.lanes is None else f"{dtype}x{op.lanes}").text
        name = self.expressions.buffer(op.buffer)
        if op.mask is not None:
            mask = self.expressions.of(op.mask).text
            return f"T.masked_store({name}, {value}, {self.expressions.index_text(op)}, {mask})"
        return f"{name}[{self.expressions.index_text(op)}] = {value}"

    def _allocation(self, op: AllocBufferOp, *, in_block: bool) -> str:
        type = buffer_type(op.buffer)
        notes = _notes(op.annotations)
        name = self.name(op.buffer, "buffer", "handle")
        return f"{name} = T.{'sblock_' if in_block and not notes else ''}alloc_buffer({buffer_arguments(type)}{notes})"

    def _view(self, op: MatchBufferOp, *, in_block: bool) -> str:
        if not in_block or not isinstance(op.parent_op(), BlockOp):
            raise refuse(op, "T.match_buffer stands at the top of a block")
        source = region_text(self.expressions, op)
        name = self.name(op.view, "view", "handle")
        return f"{name} = T.match_buffer({source}, {buffer_arguments(op.view_type)}, offset_factor=1)"

    def _loop(self, op: ForOp) -> Suite:
        lower = None if op.lower is None else self.expressions.index(op.lower)
        upper = self.expressions.index(op.upper)
        variable = self.name(op.induction_var, "i")
        body = self.of(op.body.block, in_block=False)
        self.names.release([variable])
        bounds = upper if lower is None else f"{lower}, {upper}"
        notes = _notes(op.annotations)
        tag = "" if op.thread_tag is None else f', thread="{op.thread_tag.data}"'
        plain = op.kind.data is LoopKind.SERIAL and not notes
        kind = "range" if plain else f"T.{_KINDS[op.kind.data]}"
        grid = (variable, upper) if plain and lower is None else None
        return Suite(f"for {variable} in {kind}({bounds}{tag}{notes}):", body, grid)

    def _branch(self, op: IfOp) -> list[Line]:
        then, otherwise = (self.of(region.block, in_block=False) for region in (op.then_body, op.else_body))
        condition = self.expressions.of(op.condition).text
        return [Suite(f"if {condition}:", then), *([Suite("else:", otherwise)] if otherwise else [])]

    def _while(self, op: WhileOp) -> Suite:
        *before, last = op.before.block.ops
        if not isinstance(last, ConditionOp) or not all(map(is_expression, before)):
            raise refuse(op, "its condition has statements")
        return Suite(f"while {self.expressions.of(last.condition).text}:", self.of(op.body.block, in_block=False))

    def _effect(self, op: ForeignCallOp) -> list[Line]:
        text = self.expressions.foreign(op)
        if op.result is None:
            return [text.text]
        return [self._named(op.result, text)]

    def _value(self, op: Operation) -> list[Line]:
        """Names for the results that are not written out where they are used."""
        return [
            self._named(result, self.expressions.of_op(op, result))
            for result in op.results
            if self._needs_name(op, result)
        ]

    def _named(self, value: SSAValue, text: Text) -> str:
        return f"{self.name(value, 'value', text.dtype)}: T.let[T.{text.dtype}] = {text.text}"

    def _needs_name(self, op: Operation, result: SSAValue) -> bool:
        """Whether a value is used more than once and long, or read before and used after something that may write."""
        uses = list(result.uses)
        if not uses or is_in_expression(op):
            return False
        if reads_memory(op) or self._reads(op):
            return len(uses) > 1 or not _follows(op, uses[0].operation)
        return len(uses) > 1 and len(self.expressions.of_op(op, result).text) > LONGEST

    def _reads(self, op: Operation) -> bool:
        """Whether an op is written with operands that read memory."""
        return any(
            isinstance(operand.owner, Operation)
            and operand not in self.expressions.names
            and (reads_memory(operand.owner) or self._reads(operand.owner))
            for operand in op.operands
        )

    def _block(self, op: BlockOp) -> Suite:
        if op.init is not None and any(each.kind is IteratorKind.SCAN for each in op.iterators):
            raise refuse(op, "TVM runs an init wherever the reduce iterators are 0, whatever scan iterators are")
        condition = None if op.condition is None else self.expressions.of(op.condition).text
        head = [self._iterator(op, number) for number in range(len(op.iterators))]
        lines: list[Line] = [*head, *([] if condition is None else [f"T.where({condition})"])]
        body = list(op.body.block.ops)
        lines += declared_regions(self.expressions, op)
        if op.annotations is not None:
            lines.append(f"T.sblock_attr({_note(op.annotations)!r})")
        for inner in body:
            if isinstance(inner, InitOp):
                lines.append(Suite("with T.init():", self.of(inner.body.block, in_block=False)))
            elif not isinstance(inner, DeclarationOp):
                lines += self._of_op(inner, in_block=True)
        self.names.release(self.expressions.names[each.value].text for each in op.iterators)
        return Suite(f'with T.sblock("{op.block_name.data}"):', lines)

    def _iterator(self, op: BlockOp, number: int) -> str:
        iterator = op.iterators[number]
        extent, binding = (self.expressions.index(value) for value in (iterator.extent, iterator.binding))
        return f"{self.name(iterator.value, 'v')} = T.axis.{_AXES[iterator.kind]}({extent}, {binding})"


_REASONS = {
    IfOp.name: "it has results and statements; store the results in a buffer",
    CallOp.name: "it calls another function; inline that",
}
_KINDS = {
    LoopKind.SERIAL: "serial",
    LoopKind.PARALLEL: "parallel",
    LoopKind.VECTORIZED: "vectorized",
    LoopKind.UNROLLED: "unroll",
    LoopKind.THREAD_BINDING: "thread_binding",
}
_AXES = {
    IteratorKind.SPATIAL: "spatial",
    IteratorKind.REDUCE: "reduce",
    IteratorKind.SCAN: "scan",
    IteratorKind.OPAQUE: "opaque",
}


def _notes(annotations: DictionaryAttr | None) -> str:
    """The last argument, if there are annotations."""
    return "" if annotations is None else f", annotations={_note(annotations)!r}"


def _note(attribute: Attribute) -> object:
    """The value of an annotation; one without a value is there or not."""
    match attribute:
        case UnitAttr():
            return True
        case DictionaryAttr():
            return {key: _note(each) for key, each in attribute.data.items()}
        case _:
            return note_of(attribute)


def buffer_arguments(type: BufferType) -> str:
    """What says of which shape, dtype and layout a buffer is."""
    parts = [tuple_of([dim_text(dim).text for dim in type.shape]) if type.rank else "()", f'"{dtype_text(type.dtype)}"']
    if not type.has_default_strides:
        parts.append(f"strides={tuple_of([dim_text(stride).text for stride in type.strides])}")
    if type.offset.terms:
        parts.append(f"elem_offset={dim_text(type.offset).text}")
    if type != BufferType(type.shape, type.dtype, strides=type.strides, offset=type.offset, scope=type.scope):
        parts.append(f"align={type.align}")
    if type.scope != "global":
        parts.append(f'scope="{type.scope}"')
    return ", ".join(parts)


def is_in_expression(op: Operation) -> bool:
    """Whether an op is inside of a choice or the condition of a loop, where no statement can stand."""
    outer, region = op.parent_op(), op.parent_region()
    if isinstance(outer, WhileOp):
        return region is outer.before
    return isinstance(outer, IfOp) and bool(outer.outputs)


def _follows(op: Operation, user: Operation) -> bool:
    """Whether between an op and its user, in one block, there are expressions alone."""
    current = op.next_op
    while current is not None and current is not user:
        if not is_expression(current) and not isinstance(current, DeclarationOp):
            return False
        current = current.next_op
    return current is user


HEAD = (
    "from __future__ import annotations",
    "",
    "from typing import TypeVar",
    "",
)


def as_tvmscript(op: PrimFuncOp | ModuleOp) -> str:
    """A PrimFunc, or a module of PrimFuncs, as TVMScript: Python text in the syntax of TVM 0.27.

    ```python
    n = TypeVar("n")


    @T.prim_func(s_tir=True)
    def double(A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32")):
        T.func_attr({"tirx.noalias": True})
        for i in range(n):
            with T.sblock("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi] * T.float32(2.0)
    ```

    TVM reads the text, and so does `relax_dialect.frontend.tvmscript`. A symbol that is no extent of a buffer becomes
    a parameter. Bounds of symbols, which TVM's PrimFuncs have not, are left out. Integer division by
    0 and conversions out of range are defined here, and are not there.

    Raises `ScriptError`, a ValueError, for what TVM has no text for; TypeError for what is neither function nor module.
    """
    if not isinstance(cast("object", op), PrimFuncOp | ModuleOp):
        raise TypeError(f"as_tvmscript expected a tir.prim_func or a module of them, got {type(op).__name__}")
    funcs = [op] if isinstance(op, PrimFuncOp) else _prim_funcs(op)
    names = {name for func in funcs for name in extents(func)}
    called = function_texts(
        [func.sym_name.data for func in funcs], (name for func in funcs for name in func.symbol_names)
    )
    module = [] if isinstance(op, PrimFuncOp) else ["from tvm.script import ir as I"]
    symbols = [f'{name} = TypeVar("{name}")' for name in sorted(map(symbol_text, names))]
    head = [*HEAD, *module, "from tvm.script import tirx as T", "", *symbols, "", ""]
    texts = [function_lines(func, called[func.sym_name.data]) for func in funcs]
    if isinstance(op, PrimFuncOp):
        return "\n".join([*head, *rendered(texts[0])]) + "\n"
    body: list[Line] = []
    for lines in texts:
        body += [*lines, ""]
    text = rendered(["@I.ir_module", Suite("class Module:", body[:-1])])
    return "\n".join([*head, *(line.rstrip() for line in text)]) + "\n"


def _prim_funcs(module: ModuleOp) -> list[PrimFuncOp]:
    funcs: list[PrimFuncOp] = []
    for op in module.ops:
        if not isinstance(op, PrimFuncOp):
            raise refuse(op, "expected a module of PrimFuncs alone")
        funcs.append(op)
    return funcs


def extents(func: PrimFuncOp) -> set[str]:
    """The symbols that a buffer has as an extent: callers need not say what they are."""
    types = [param.type for param in func.params]
    dims = (dim for type in types if isinstance(type, BufferType) for dim in type.shape)
    return {name for dim in dims if (name := dim.as_symbol) is not None}


def function_lines(func: PrimFuncOp, called: str) -> list[Line]:
    """The lines of one function, called so in the text, whose extents are names of the module."""
    found = extents(func)
    symbols = dict(zip(func.symbol_names, func.symbol_args, strict=True))
    writer = Statements(Names([called, *map(symbol_text, symbols)]))
    writer.expressions.is_symbolic = bool(symbols)
    for name, argument in symbols.items():
        writer.expressions.names[argument] = Text(symbol_text(name), INDEX)
    # those that shapes are made of stand before the buffers, and the others after
    used = frozenset[str]().union(*(param.type.symbols for param in func.params if isinstance(param.type, BufferType)))
    sizes = {name: f"{symbol_text(name)}: T.int64" for name in symbols if name not in found}
    parameters = [text for name, text in sizes.items() if name in used]
    parameters += [_parameter(writer, param) for param in func.params]
    parameters += [text for name, text in sizes.items() if name not in used]
    alias = f'T.func_attr({{"tirx.noalias": {func.may_alias is None}}})'
    head = f"def {called}({', '.join(parameters)}):"
    private = "private=True, " if func.is_private else ""
    return [f"@T.prim_func({private}s_tir=True)", Suite(head, [alias, *writer.of(func.body.block, in_block=True)])]


def _parameter(writer: Statements, param: SSAValue) -> str:
    if isinstance(param.type, BufferType):
        return f"{writer.name(param, 'buffer', 'handle')}: T.Buffer({buffer_arguments(param.type)})"
    dtype = dtype_text(param.type)
    return f"{writer.name(param, 'scalar', dtype)}: T.{dtype}"
