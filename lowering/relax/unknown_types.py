"""What becomes of types that are not known.

`bind-unknown-dims`: an unknown dimension gets a symbol, so that kernels can be made for it. `defer-unknown-types`: ops
on values of unknown rank or dtype are compiled when the values are known. The first line of their text says it, as a
comment, unless it is what `build` does by default.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.printer import Printer
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from lowering.diagnostics import fail
from lowering.locations import inherit_location
from lowering.relax.infer_struct_info import ResultTypes
from lowering.relax.lower_shapes import FreshSymbols, bind_call
from lowering.stages import RELAX_CALLS, RELAX_CORE
from relax_dialect.inference import InfersResultTypes
from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.call_tir import CallPurePackedOp, DestinationPassing
from relax_dialect.ops.gather import ScatterNDOp
from relax_dialect.ops.manipulation import ExpandDimsOp, FlattenOp, ReshapeOp, SqueezeOp
from relax_dialect.ops.rearranging import MapIndicesOp
from relax_dialect.ops.shapes import ShapeGetOp, ShapeOfOp, ShapeToTensorOp, SizeOp, TupleGetOp, TupleOp
from relax_dialect.ops.structure import FuncOp, ReturnOp
from relax_dialect.ops.values import OpaqueValue, PrimOp, StringOp
from relax_dialect.scope import BindsBlockSymbols, symbols_used
from relax_dialect.struct_info.symbols import iter_bare_symbols, iter_symbols
from relax_dialect.struct_info.types import FuncType, ObjectType, ShapeType, TensorType, TupleType, as_struct_infos
from tir_dialect.dims import symbol
from tir_dialect.target import Target
from tir_dialect.types import SymbolAttr
from vm_dialect.ops.calls import CallPackedOp
from vm_dialect.ops.values import StrOp


class BindUnknownDimsPass(ModulePass):
    """Binds every unknown dimension of a value of known rank to a new symbol, where an operator uses the value.

    Before:

    ```mlir
    %y = relax.unique %x : !relax.tensor<[_], f32>
    %z = relax.exp %y : !relax.tensor<[_], f32>
    ```

    After:

    ```mlir
    %y = relax.unique %x : !relax.tensor<[_], f32>
    %y_1, %s0 = relax.match_cast %y : !relax.tensor<[s0], f32> binds [s0]
    %z = relax.exp %y_1 : !relax.tensor<[s0], f32>
    ```

    Results are inferred anew on the way, so that what becomes known is known to all later ops. A value of unknown rank
    is left alone, unless a PrimFunc takes it: then its buffer says the rank and dtype. Idempotent.
    """

    name = "bind-unknown-dims"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Visits every function in program order."""
        for func in op.ops:
            if isinstance(func, FuncOp):
                _bind_block(func.body.block, FreshSymbols(func), ResultTypes())


def _bind_block(block: Block, symbols: FreshSymbols, types: ResultTypes) -> None:
    for argument in block.args:
        _bind(argument, InsertPoint.at_start(block), None, symbols)
    for op in list(block.ops):
        for inner in (inner for region in op.regions for inner in region.blocks):
            _bind_block(inner, symbols, types)
        try:
            if isinstance(op, DestinationPassing):
                bind_call(op, symbols)
            types.infer(op)
        except (VerifyException, ValueError) as error:
            fail(op, str(error))
        for result in op.results:
            _bind(result, InsertPoint.after(op), op, symbols)


def _bind(value: SSAValue, insert_point: InsertPoint, source: Operation | None, symbols: FreshSymbols) -> None:
    info = value.type
    if not isinstance(info, TensorType | ShapeType) or info.dims is None or info.known_dims is not None:
        return
    if not any(isinstance(use.operation, InfersResultTypes) for use in value.uses):
        return
    names = iter(symbols.take(sum(dim is None for dim in info.dims)))
    dims = [symbol(next(names)) if dim is None else dim for dim in info.dims]
    new = [dim.as_symbol for dim, old in zip(dims, info.dims, strict=True) if old is None]
    refined = info.with_shape(dims) if isinstance(info, TensorType) else ShapeType(dims)
    cast = MatchCastOp(value, refined, [name for name in new if name is not None])
    cast.result.name_hint = value.name_hint
    if source is not None:
        inherit_location(source, cast)
    Rewriter.insert_op(cast, insert_point)
    value.replace_uses_with_if(
        cast.result, lambda use: use.operation is not cast and not use.operation.has_trait(IsTerminator)
    )


RUN = "vm.builtin.run_deferred"
"""The function that is called with the text of a deferred function and its arguments."""

_HEAD = "// built with "


@dataclass(frozen=True)
class Options:
    """What `build` is given."""

    target: Target | None = None
    """The host unless it is named."""
    opt_level: int = 3

    @staticmethod
    def of(text: str) -> Options:
        """Those that a text names. Code for a machine of another kind than ours is made for ours."""
        if not text.startswith(_HEAD):
            return Options()
        level, _, machine = text.partition("\n")[0].removeprefix(_HEAD).partition(" ")
        target = Target.parse(machine)
        return Options(target if target.arch == Target.host().arch else None, int(level.removeprefix("O")))


def set_options(module: ModuleOp, target: Target, opt_level: int) -> None:
    """Writes into the texts of deferred functions how the program is built."""
    if target == Target.host() and opt_level == Options.opt_level:
        return
    settings = " ".join(f"{name}={value}" for name, value in target.settings().items())
    head = f"{_HEAD}O{opt_level} host {settings}\n"
    for op in module.walk():
        text = op.operands[0].owner if isinstance(op, CallPackedOp) and op.function.data == RUN else None
        if isinstance(text, StrOp) and not text.value.data.startswith(_HEAD):
            text.properties["value"] = StringAttr(head + text.value.data)


_VIEWS = (ExpandDimsOp, FlattenOp, ReshapeOp, SqueezeOp, SizeOp)
"""Ops that have a form in the machine if the rank is known."""

_COMPANIONS = (ShapeGetOp, ShapeOfOp, ShapeToTensorOp, TupleGetOp, TupleOp)
"""Ops that need not be deferred, but may be, so that what follows them can be in the same group."""


def is_unknown(info: Attribute) -> bool:
    """Whether the rank or the dtype of a value is not known."""
    if isinstance(info, TensorType):
        return info.dims is None or info.dtype is None
    if isinstance(info, TupleType):
        return any(map(is_unknown, info.fields))
    return isinstance(info, ShapeType) and info.dims is None


def is_static(info: Attribute) -> bool:
    """Whether everything is known about a value that inference may look at."""
    if isinstance(info, TensorType | ShapeType):
        dims = info.known_dims
        known = dims is not None and all(dim.constant_value is not None for dim in dims)
        return known and not is_unknown(info)
    return not isinstance(info, TupleType) or all(map(is_static, info.fields))


def is_operator(op: Operation) -> bool:
    """Whether an op is computed by a kernel, or is a view of its operand."""
    if isinstance(op, _VIEWS):
        return True
    return isinstance(op, InfersResultTypes) and op.name not in RELAX_CORE and op.name not in RELAX_CALLS


def is_deferred(op: Operation) -> bool:
    """Whether an op can only be compiled when its operands are there."""
    if not is_operator(op):
        return False
    return any(map(is_unknown, (*op.operand_types, *op.result_types))) or _needs_number(op)


def _needs_number(op: Operation) -> bool:
    """Whether the kernel of an op is made for a number where there is a dimension."""
    if isinstance(op, MapIndicesOp):
        return op.result.type.known_dims is None
    if not isinstance(op, ScatterNDOp):
        return False
    info: Attribute = op.indices.type
    dims = info.dims if isinstance(info, TensorType) else None
    return not dims or dims[-1] is None or dims[-1].constant_value is None


def groups(block: Block) -> Iterator[list[Operation]]:
    """The deferred ops of a block, in order; ops of one group can be moved to where the last of them stands."""
    group: list[Operation] = []
    made: set[SSAValue] = set()
    for op in list(block.ops):
        joins = bool(group) and isinstance(op, _COMPANIONS) and not made.isdisjoint(op.operands)
        if joins or is_deferred(op):
            group.append(op)
            made.update(op.results)
        elif group and any(not made.isdisjoint(inner.operands) for inner in op.walk()):
            yield group
            group, made = [], set()
    if group:
        yield group


def is_literal(value: SSAValue) -> bool:
    """Whether a value is written in the program: it goes into a group, where inference can see it."""
    return isa(value.owner, OpaqueValue) or (isinstance(value.owner, Operation) and value.owner.name in _LITERALS)


_LITERALS = frozenset({"relax.prim", "relax.shape"})


@dataclass(frozen=True)
class Group:
    """Ops that are compiled together."""

    ops: Sequence[Operation]
    literals: Sequence[Operation]
    """Ops outside that are copied."""
    inputs: Sequence[SSAValue]
    outputs: Sequence[SSAValue]

    @staticmethod
    def of(ops: Sequence[Operation]) -> Group:
        """What goes into the ops and what of them is used outside."""
        members = set(ops)
        operands = dict.fromkeys(value for op in ops for value in op.operands if value.owner not in members)
        literals = [value.owner for value in operands if is_literal(value)]
        inputs = [value for value in operands if not is_literal(value)]
        results = [result for op in ops for result in op.results]
        outputs = [result for result in results if any(use.operation not in members for use in result.uses)]
        return Group(ops, [op for op in literals if isinstance(op, Operation)], inputs, outputs or results[-1:])

    def symbols(self) -> list[str]:
        """The symbols of the function."""
        used = {name for value in self.inputs for name in iter_symbols(value.type)}
        for op in (*self.literals, *self.ops):
            used |= symbols_used(op)
        return sorted(used)


def defer(ops: Sequence[Operation], function: str) -> None:
    """Replaces ops of a block by a call that compiles them; `function` is what errors begin with."""
    group, last = Group.of(ops), ops[-1]
    symbols = group.symbols()
    told = {name for value in group.inputs for name in iter_bare_symbols(value.type)}
    numbers = [PrimOp(symbol(name)) for name in symbols if name not in told]
    inputs = [*(number.result for number in numbers), *group.inputs]
    # The functions of a module with the locations of their ops.
    module = _outline(group, inputs, symbols, function)
    stream = StringIO()
    printer = Printer(stream, print_debuginfo=True)
    for op in module.ops:
        printer.print_op(op)
        printer.print_string("\n")
    text = StringOp(stream.getvalue())
    types = as_struct_infos(value.type for value in group.outputs)
    call = CallPurePackedOp(RUN, [text.result, *inputs], types[0] if len(types) == 1 else TupleType(types))
    fields = [] if len(types) == 1 else [TupleGetOp(call.result, index) for index in range(len(types))]
    new = [*numbers, text, call, *fields]
    inherit_location(last, new)
    Rewriter.insert_op(new, InsertPoint.after(last))
    for old, result in zip(group.outputs, [field.result for field in fields] or [call.result], strict=True):
        result.name_hint = old.name_hint
        old.replace_all_uses_with(result)
    for op in (*reversed(ops), *group.literals):
        if op in ops or not any(result.uses for result in op.results):
            Rewriter.erase_op(op)


def _outline(group: Group, inputs: Sequence[SSAValue], symbols: Sequence[str], name: str) -> ModuleOp:
    """The function of a group, in a module of its own."""
    params = as_struct_infos(value.type for value in inputs)
    # The bounds of the symbols around an op.
    op = group.ops[0]
    bounds: dict[str, SymbolAttr] = {}
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, BindsBlockSymbols):
            bounds = {bound.symbol.data: bound for bound in parent.symbols} | bounds
        parent = parent.parent_op()
    signature = FuncType(params, ObjectType(), symbols=[bounds.get(each) or SymbolAttr(each) for each in symbols])
    func = FuncOp(name, signature)
    values: dict[SSAValue, SSAValue] = {}
    for value, param in zip(inputs, func.params, strict=True):
        param.name_hint = value.name_hint
        values[value] = param
    for op in (*group.literals, *group.ops):
        func.body.block.add_op(op.clone(values))
    outputs = [values[output] for output in group.outputs]
    if len(outputs) > 1:
        func.body.block.add_op(pack := TupleOp(*outputs))
        outputs = [pack.result]
    func.body.block.add_op(ReturnOp(outputs[0]))
    inherit_location(group.ops[-1], func)
    return ModuleOp([func])


class DeferUnknownTypesPass(ModulePass):
    """Outlines operators on values of unknown rank or dtype, as text that is compiled when it is called.

    Before:

    ```mlir
    %y = relax.exp %x : !relax.tensor<*, f32>
    %z = relax.add %y, %w : !relax.tensor<*, f32>
    ```

    After:

    ```mlir
    %0 = relax.string "relax.func @main(%x: ..., %w: ...) -> !relax.object { ... }"
    %z = relax.call_pure_packed "vm.builtin.run_deferred"(%0, %x, %w) : !relax.tensor<*, f32>
    ```

    At run time the function is compiled once for each combination of ranks and dtypes, or of shapes if its ranks follow
    from these only. Operators that follow each other are in one function. What is known stays as it is. Refuses an op
    whose result has an unknown rank though everything is known about its operands. Idempotent.
    """

    name = "defer-unknown-types"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Visits every function in program order."""
        for func in op.ops:
            if isinstance(func, FuncOp):
                _defer_in(func.body.block, func.sym_name.data)


def _defer_in(block: Block, function: str) -> None:
    for op in block.ops:
        for inner in (inner for region in op.regions for inner in region.blocks):
            _defer_in(inner, function)
    for group in list(groups(block)):
        for op in group:
            if all(map(is_static, op.operand_types)):
                got = ", ".join(map(str, op.result_types))
                hint = "refine the result with 'relax.match_cast' of a packed function, or another operator"
                fail(op, f"expected a rank and dtype that follow from the operands, got {got}", hint)
        defer(group, function)
