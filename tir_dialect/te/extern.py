"""`te.extern`: tensors computed by statements, for what no expression per element can describe;
`te.extern_primfunc`: by an existing PrimFunc.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import signature
from typing import TypeAlias, cast, overload

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, SSAValue

from tir_dialect.analysis.regions import written_buffers
from tir_dialect.dims import Dim, constant
from tir_dialect.ops.assembly_format import Note, note_of
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.te import nodes
from tir_dialect.te.coerce import adopt, as_condition, as_expr, as_index
from tir_dialect.te.compute import (
    Attr,
    ExtentLike,
    ShapeLike,
    annotations_of,
    current_tag,
    to_element_type,
    to_extent,
    to_shape,
)
from tir_dialect.te.expr import INDEX, Expr, Operand
from tir_dialect.te.nodes import IterKind, IterVar, Operation, Tensor, Var, post_order
from tir_dialect.te.operators import DTypeLike
from tir_dialect.te.statements import (
    Alloc,
    Argument,
    Block,
    Body,
    Call,
    For,
    If,
    Init,
    Let,
    LoopKind,
    Statement,
    Store,
    While,
    arguments,
)
from tir_dialect.types import BufferType


@dataclass(frozen=True, eq=False)
class Extern(Operation):
    """Statements that fill `outputs` from `inputs`."""

    inputs: tuple[Tensor, ...]
    annotations: Mapping[str, Attribute] = field(default_factory=dict[str, Attribute])
    """Annotations of the block."""
    tag: str = ""
    """A label by which passes find it."""
    body: Body = field(init=False)

    @property
    def attrs(self) -> Mapping[str, Note]:
        """The annotations, as TVM calls them."""
        return {key: note_of(value) for key, value in self.annotations.items()}


class ExternBuilder:
    """Records the statements of an extern body in program order.

    An expression is evaluated where it is used: a load sees all stores before that statement. `let` binds a value.
    Loops, branches and blocks are context managers; the variables that they bind are valid inside.
    """

    def __init__(self, name: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor]):
        self._name = name
        self._readable = {*inputs, *outputs}
        self._writable = set(outputs)
        self._variables: set[Expr] = set()
        self._body: list[Statement] = []
        self._block_body: list[Statement] | None = None

    def store(self, tensor: Tensor, indices: Operand | tuple[Operand, ...], value: Operand) -> None:
        """`tensor[indices] = value`, of the tensor's dtype. Inputs are read-only."""
        if tensor not in self._writable:
            raise ValueError(
                f'te: extern "{self._name}" stores to "{tensor.name}", which is no output and not allocated'
            )
        target = as_expr(f'extern "{self._name}"', tensor[indices])
        stored = value if isinstance(value, Expr) else adopt(value, tensor.dtype)
        if stored.dtype != tensor.dtype:
            raise TypeError(
                f'te: extern "{self._name}" stores {stored.dtype} to "{tensor.name}" of {tensor.dtype}, use te.cast'
            )
        self._add(Store(tensor, target.operands, stored), *target.operands, stored)

    def let(self, value: Operand, name: str = "v") -> Expr:
        """Binds the current value of an expression: it is evaluated here, once."""
        expr = as_expr("let", value)
        var = Var(name, expr.dtype)
        self._add(Let(var, expr), expr)
        self._variables.add(var)
        return var

    def alloc(self, shape: ShapeLike, dtype: DTypeLike, name: str = "tmp", scope: str = "local") -> Tensor:
        """An uninitialised buffer for the enclosing region; one of shape `()` is a mutable scalar."""
        tensor = Tensor(name, to_shape(name, shape), to_element_type(name, dtype))
        self._add(Alloc(tensor, scope))
        self._readable.add(tensor)
        self._writable.add(tensor)
        return tensor

    @contextmanager
    def for_range(self, lo: Operand, hi: Operand, name: str = "i", kind: LoopKind = "serial") -> Generator[Expr]:
        """A loop over `lo <= v < hi`; yields the variable."""
        low, high = (as_index(f'te: extern "{self._name}"', bound) for bound in (lo, hi))
        var = Var(name, INDEX)
        with self._region(var) as body:
            yield var
        self._add(For(var, low, high, kind, tuple(body)), low, high)

    @contextmanager
    def while_(self, condition: Operand) -> Generator[None]:
        """A loop that runs while `condition` holds; the condition is evaluated before each iteration."""
        holds = as_condition("while_", condition)
        with self._region() as body:
            yield
        self._add(While(holds, tuple(body)), holds)

    @contextmanager
    def if_(self, condition: Operand) -> Generator[None]:
        """The statements executed if `condition` holds; `else_` may follow."""
        holds = as_condition("if_", condition)
        with self._region() as body:
            yield
        self._add(If(holds, tuple(body), ()), holds)

    @contextmanager
    def else_(self) -> Generator[None]:
        """The statements executed if the condition of the preceding `if_` does not hold."""
        branch = self._body[-1] if self._body else None
        if not isinstance(branch, If) or branch.otherwise:
            raise ValueError(f'te: extern "{self._name}" has an else_ that does not follow an if_')
        with self._region() as body:
            yield
        self._body[-1] = If(branch.condition, branch.then, tuple(body))

    @contextmanager
    def block(self, name: str, *axes: tuple[IterKind, ExtentLike, str]) -> Generator[tuple[Expr, ...]]:
        """A named block with a loop for each axis `(kind, extent, name)`; yields the block's iterators.

        Kinds are `"spatial"` (any order, in parallel), `"reduce"`, `"scan"` (in order) and `"opaque"`.
        """
        iterators = tuple(IterVar(axis, constant(0), to_extent(name, extent), kind) for kind, extent, axis in axes)
        with self._region(*iterators) as body:
            self._block_body = body
            yield iterators
        self._add(Block(name, iterators, tuple(body)))

    @contextmanager
    def init(self) -> Generator[None]:
        """The statements of the enclosing block that start its reduction; they stand first in it."""
        if self._body or self._body is not self._block_body:
            raise ValueError(f'te: extern "{self._name}" has an init that is not the first statement of a block')
        with self._region() as body:
            yield
        self._add(Init(tuple(body)))

    def call_extern(self, symbol: str, *args: Argument) -> None:
        """Calls a C function for its side effects; a tensor is passed as the address of its data."""
        self.call(Call(symbol, arguments(args), packed=False))

    def call_packed(self, symbol: str, *args: Argument) -> None:
        """Calls a packed function of the tvm-ffi registry for its side effects; a tensor is passed as a tensor."""
        self.call(Call(symbol, arguments(args), packed=True))

    def call(self, statement: Call) -> None:
        """Appends a call made by `te.call_extern` or `te.call_packed`."""
        for arg in statement.args:
            if isinstance(arg, Tensor):
                self._check_known(arg)
        self._add(statement, *(arg for arg in statement.args if isinstance(arg, Expr)))

    def _add(self, statement: Statement, *used: Expr) -> None:
        exprs = list(post_order(used))
        if any(isinstance(expr, nodes.Reduce) for expr in exprs):
            raise ValueError(f'te: extern "{self._name}" contains a reduction, write it as a loop or a compute')
        for expr in exprs:
            if isinstance(expr, Var) and not isinstance(expr, nodes.Param) and expr not in self._variables:
                raise ValueError(f'te: extern "{self._name}" uses "{expr.name}" outside of the region that binds it')
            if isinstance(expr, nodes.Load):
                self._check_known(expr.tensor)
        self._body.append(statement)

    def _check_known(self, tensor: Tensor) -> None:
        if tensor not in self._readable:
            raise ValueError(f'te: extern "{self._name}" uses "{tensor.name}", which is not among its inputs')

    @contextmanager
    def _region(self, *bound: Expr) -> Generator[list[Statement]]:
        outer = self._body, set(self._variables), set(self._readable), set(self._writable)
        self._body = body = []
        self._variables.update(bound)
        yield body
        self._body, self._variables, self._readable, self._writable = outer

    def finish(self) -> Body:
        """The statements recorded."""
        return tuple(self._body)


Statements: TypeAlias = "Callable[[ExternBuilder, tuple[Tensor, ...], tuple[Tensor, ...]], None]"
Calls: TypeAlias = "Callable[[tuple[Tensor, ...], tuple[Tensor, ...]], Call | Sequence[Call]]"


@overload
def extern(
    outputs: Sequence[tuple[ShapeLike, DTypeLike]] | Sequence[ShapeLike],
    inputs: Sequence[Tensor],
    fcompute: Statements,
    name: str = ...,
    dtype: DTypeLike | Sequence[DTypeLike] | None = ...,
    tag: str = ...,
    attrs: Mapping[str, Attr] | None = ...,
) -> tuple[Tensor, ...]: ...
@overload
def extern(
    outputs: Sequence[tuple[ShapeLike, DTypeLike]] | Sequence[ShapeLike],
    inputs: Sequence[Tensor],
    fcompute: Calls,
    name: str = ...,
    dtype: DTypeLike | Sequence[DTypeLike] | None = ...,
    tag: str = ...,
    attrs: Mapping[str, Attr] | None = ...,
) -> Tensor | tuple[Tensor, ...]: ...
def extern(
    outputs: Sequence[tuple[ShapeLike, DTypeLike]] | Sequence[ShapeLike],
    inputs: Sequence[Tensor],
    fcompute: Statements | Calls,
    name: str = "extern",
    dtype: DTypeLike | Sequence[DTypeLike] | None = None,
    tag: str = "",
    attrs: Mapping[str, Attr] | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """Tensors of the given shapes and dtypes, filled by the statements of `fcompute(builder, inputs, outputs)`.

    `outputs` is a list of pairs of shape and dtype, or with `dtype` (one, or a list of one each) a list of shapes, or
    one shape as a tuple. The result is a tuple of tensors. `tag` and `attrs` are those of `compute`.

    With two parameters, `fcompute(inputs, outputs)` returns the calls that fill the outputs, as in TVM:
    `te.call_packed("sort", ins[0], outs[0])`. The default dtype is then that of the inputs, and for one output the
    result is the tensor itself.

    ::

        def cumulative(b, ins, outs):
            (x,), (y,) = ins, outs
            with b.block("cumsum", ("scan", n, "i")) as (i,):
                b.store(y, i, te.if_then_else(i > 0, y[i - 1], 0) + x[i])

        (Y,) = te.extern([((n,), "f32")], [X], cumulative, name="cumsum")

    Raises ValueError if a statement uses a tensor or variable that is not available there, and TypeError for outputs
    without dtypes, and for a function with other parameters, or another result than calls.
    """
    source = Extern(name, tuple(inputs), annotations_of(name, attrs), current_tag(tag))
    gives_calls = _gives_calls(name, fcompute)
    if gives_calls and dtype is None and not _are_pairs(outputs):
        kinds = {tensor.dtype for tensor in inputs}
        if len(kinds) != 1:
            raise TypeError(f'te: extern "{name}" needs a dtype, its inputs have {len(kinds)} of them')
        dtype = kinds.pop()
    # Shape and dtype of each output.
    if dtype is not None:
        shapes = cast("Sequence[ShapeLike]", outputs if isinstance(outputs, list) else [outputs])
        dtypes = list(dtype) if isinstance(dtype, list | tuple) else [dtype] * len(shapes)
        if len(dtypes) != len(shapes):
            raise TypeError(f'te: extern "{name}" has {len(shapes)} shapes, got {len(dtypes)} dtypes')
        kinds = list(zip(shapes, cast("list[DTypeLike]", dtypes), strict=True))
    else:
        for pair in cast("Sequence[object]", outputs):
            if not isinstance(pair, tuple) or len(cast("tuple[object, ...]", pair)) != 2:
                raise TypeError(f'te: outputs of extern "{name}" are pairs of shape and dtype, or shapes with dtype=')
        kinds = list(cast("Sequence[tuple[ShapeLike, DTypeLike]]", outputs))
    names = [name] if len(kinds) == 1 else [f"{name}_v{i}" for i in range(len(kinds))]
    made = tuple(
        Tensor(each, to_shape(each, shape), to_element_type(each, kind), source, i)
        for i, (each, (shape, kind)) in enumerate(zip(names, kinds, strict=True))
    )
    object.__setattr__(source, "outputs", made)
    builder = ExternBuilder(name, source.inputs, made)
    if gives_calls:
        for call in _calls(name, cast("Calls", fcompute)(source.inputs, made)):
            builder.call(call)
    else:
        cast("Statements", fcompute)(builder, source.inputs, made)
    object.__setattr__(source, "body", builder.finish())
    return made[0] if gives_calls and len(made) == 1 else made


def _gives_calls(name: str, fcompute: object) -> bool:
    """Whether a function takes inputs and outputs, and no builder before them; TypeError if it takes neither."""
    takes = signature(fcompute) if callable(fcompute) else None
    try:
        if takes is not None and len(takes.parameters) != 2:
            takes.bind("builder", "inputs", "outputs")
    except TypeError:
        takes = None
    if takes is None:
        raise TypeError(
            f'te: extern "{name}" expected a function of builder, inputs and outputs, or of inputs and outputs'
        )
    return len(takes.parameters) == 2


def _calls(name: str, given: object) -> Sequence[Call]:
    calls = cast("Sequence[object]", given) if isinstance(given, Sequence) else (given,)
    found = [call for call in calls if isinstance(call, Call)]
    if len(found) != len(calls):
        raise TypeError(f'te: extern "{name}" expected te.call_packed or te.call_extern from its function, got {given}')
    return found


def _are_pairs(outputs: Sequence[object]) -> bool:
    """Whether all outputs are pairs of shape and dtype."""
    pairs = [cast("tuple[object, ...]", each) for each in outputs if isinstance(each, tuple)]
    return len(pairs) == len(outputs) and all(len(pair) == 2 and isinstance(pair[0], tuple | list) for pair in pairs)


@dataclass(frozen=True, eq=False)
class Inlined(Operation):
    """An inlined function body, with tensors in place of its parameters and dimensions in place of its symbols."""

    func: PrimFuncOp
    symbols: Mapping[str, Dim]
    inputs: tuple[Tensor, ...]
    arguments: tuple[Tensor, ...] = field(init=False)
    """One per parameter of the function."""


def extern_primfunc(inputs: Sequence[Tensor], primfunc: PrimFuncOp | ModuleOp) -> Tensor | tuple[Tensor, ...]:
    """The tensors that a PrimFunc, or a module of one, computes from tensors for the buffers that it does not write.

    Its loops and blocks become part of the function that is made, with their names, and can be scheduled there. The
    values of its symbols follow from the shapes of the inputs.

    Raises ValueError where shapes or dtypes do not fit, and for a function with scalars or without outputs; TypeError
    for what is no function.
    """
    if isinstance(primfunc, PrimFuncOp):
        func = primfunc
    else:
        if not isinstance(cast("object", primfunc), ModuleOp):
            raise TypeError(f"te: extern_primfunc expected a tir.prim_func or a module, got {type(primfunc).__name__}")
        funcs = [op for op in primfunc.body.block.ops if isinstance(op, PrimFuncOp)]
        if len(funcs) != 1:
            raise ValueError(f"te: extern_primfunc expected a module of one function, got {len(funcs)}")
        func = funcs[0]
    name = func.sym_name.data
    if len(func.buffer_params) != len(func.params):
        raise ValueError(f'te: "{name}" has parameters that are no buffers, expected buffers only')
    written = written_buffers(func)
    expected = [param for param in func.buffer_params if param not in written]
    if len(expected) != len(inputs) or len(expected) == len(func.params):
        made = len(func.params) - len(expected)
        raise ValueError(f'te: "{name}" reads {len(expected)} buffers and writes {made}, got {len(inputs)} inputs')
    symbols = _symbols(func, expected, inputs)
    source = Inlined(name, func, symbols, tuple(inputs))
    outputs: list[Tensor] = []
    arguments: list[Tensor] = []
    given = iter(inputs)
    for param in func.buffer_params:
        if param in written:
            kind = param.type.substitute(symbols)
            outputs.append(Tensor(param.name_hint or name, kind.shape, kind.element_type, source, len(outputs)))
        arguments.append(outputs[-1] if param in written else next(given))
    object.__setattr__(source, "arguments", tuple(arguments))
    object.__setattr__(source, "outputs", tuple(outputs))
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _symbols(func: PrimFuncOp, params: Sequence[SSAValue[BufferType]], inputs: Sequence[Tensor]) -> dict[str, Dim]:
    """The values of the function's symbols, solved from the shapes of the inputs."""
    found: dict[str, Dim] = {}
    for param, tensor in zip(params, inputs, strict=True):
        for dim, extent in zip(param.type.shape, tensor.shape, strict=False):
            if dim.as_symbol is not None:
                found.setdefault(dim.as_symbol, extent)
    name = func.sym_name.data
    if missing := [symbol for symbol in func.symbol_names if symbol not in found]:
        raise ValueError(f'te: the shapes of the inputs of "{name}" do not say what "{missing[0]}" is')
    for param, tensor in zip(params, inputs, strict=True):
        kind = BufferType(tensor.shape, tensor.dtype, scope=param.type.scope, align=param.type.align)
        if not param.type.has_default_strides or param.type.offset != constant(0):
            raise ValueError(f'te: parameter "{param.name_hint}" of "{name}" has a layout of its own')
        wanted = param.type.substitute(found)
        if kind != wanted:
            raise ValueError(f'te: parameter "{param.name_hint}" of "{name}" expected {wanted}, got {tensor}')
    return found
