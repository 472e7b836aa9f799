"""`BlockBuilder`: programs from Python; and `emit_te`: a function on tensor expressions becomes a PrimFunc and a call
of it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation, OpResult, SSAValue

from relax_dialect.builder.calls import AnyFunc, CallEmitter, FunctionTable
from relax_dialect.builder.emitter import (
    BuilderError,
    InfoLike,
    Operand,
    SymbolBounds,
    Value,
    as_prim,
    as_struct_info,
    as_tensor,
    as_value,
    new_symbols,
)
from relax_dialect.builder.expr import Expr
from relax_dialect.builder.scopes import (
    Carried,
    ClosureScope,
    DataflowScope,
    ForScope,
    FuncAttribute,
    FunctionScope,
    IfScope,
    ScopedEmitter,
    WhileScope,
    pack,
)
from relax_dialect.ops.callees import explicit_symbols
from relax_dialect.ops.control_flow import YieldOp
from relax_dialect.ops.shapes import TupleGetOp
from relax_dialect.struct_info.symbols import fresh_name
from relax_dialect.struct_info.types import FuncType, PrimType, ShapeType, TensorType, TupleType
from tir_dialect import te
from tir_dialect.dims import Dim, DimLike, symbol


@dataclass
class KernelSymbols:
    """The dimensions of a kernel's parameters: symbols keep their names, and so do expressions over symbols that stand
    alone in some dimension; any other dimension gets a symbol of its own, as the kernel could not solve it.
    """

    alone: frozenset[str]
    taken: set[str]
    renamed: dict[Dim, str] = field(default_factory=dict[Dim, str])

    @staticmethod
    def of(dims: Iterable[Dim], scope: Iterable[str]) -> KernelSymbols:
        """The symbols of a kernel whose parameters have these dimensions; `scope` are the caller's symbols."""
        known = list(dims)
        alone = frozenset(name for dim in known if (name := dim.as_symbol) is not None)
        return KernelSymbols(alone, {*scope, *(name for dim in known for name in dim.symbols)})

    def inside(self, dim: Dim) -> Dim:
        """A dimension of a parameter in the kernel's symbols."""
        if dim.symbols <= self.alone:
            return dim
        if dim not in self.renamed:
            self.renamed[dim] = fresh_name(f"d{len(self.renamed)}", self.taken)
            self.taken.add(self.renamed[dim])
        return symbol(self.renamed[dim])

    def outside(self, dim: Dim) -> Dim:
        """A dimension of the kernel in the caller's symbols."""
        return dim.substitute({name: outer for outer, name in self.renamed.items()})


class KernelArguments:
    """What a function on tensor expressions is called with, and what its PrimFunc is."""

    def __init__(self, builder: CallEmitter, arguments: Iterable[Any]):
        self._builder = builder
        found = dict.fromkeys(_tensors(arguments))
        self._known = {value: self._with_known_dims(value) for value in found}
        dims = [dim for value in self._known.values() for dim in _dims(value)]
        self.symbols = KernelSymbols.of(dims, builder.symbols)
        self.values: list[SSAValue] = []
        self.parameters: list[te.Tensor | te.Expr] = []
        self._made: dict[SSAValue, te.Tensor | te.Expr] = {}

    def convert(self, argument: Any, name: str) -> Any:
        """An argument as the function takes it; `name` is that of a parameter without one."""
        if isinstance(argument, list | tuple):
            parts = cast("Sequence[Any]", argument)
            converted = [self.convert(part, f"{name}{index}") for index, part in enumerate(parts)]
            return converted if isinstance(argument, list) else tuple(converted)
        if not isinstance(argument, Expr):
            return argument
        info = argument.type
        if isinstance(info, TensorType):
            value = self._known[argument.value]
            info = value.type
            if not isinstance(info, TensorType) or info.dtype is None:
                raise BuilderError(f"emit_te: argument {name} expected a tensor of known dtype, got {info}")
            shape = [self.symbols.inside(dim) for dim in _dims(value)]
            return self._parameter(value, lambda: te.placeholder(shape, str(info.dtype), name))
        if isinstance(info, PrimType):
            return info.value if info.value is not None else self._scalar(argument.value, name)
        if isinstance(info, ShapeType) and info.known_dims is not None:
            return info.known_dims
        if isinstance(info, TupleType):
            return tuple(self.convert(field, f"{name}{index}") for index, field in enumerate(argument))
        raise BuilderError(f"emit_te: argument {name} expected a tensor, prim, known shape or tuple, got {info}")

    def _scalar(self, value: SSAValue, name: str) -> te.Expr:
        dtype = str(cast("PrimType", value.type).dtype)
        return self._parameter(value, lambda: te.scalar(name, dtype))

    def _parameter(self, value: SSAValue, make: Callable[[], Any]) -> Any:
        if value not in self._made:
            self._made[value] = make()
            self.values.append(value)
            self.parameters.append(self._made[value])
        return self._made[value]

    def _with_known_dims(self, value: SSAValue) -> SSAValue:
        """The tensor with names for the dimensions of which nothing is known."""
        info = value.type
        if isinstance(info, TensorType) and info.dims is None:
            raise BuilderError(f"emit_te: expected a tensor of known rank, got {info}: use match_cast first")
        return self._builder.with_named_dims(value)


def emit_te(
    builder: CallEmitter,
    function: Callable[..., Any],
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
    name: str | None,
) -> Expr | tuple[Expr, ...]:
    """Emits a call of the PrimFunc that `function` describes; see `BlockBuilder.emit_te`."""
    flat = [_fields(builder, argument) for argument in arguments]
    kernel = KernelArguments(builder, [*flat, *keywords.values()])
    # Names for the parameters of a kernel: those of the function, as far as it has them.
    count = len(flat)
    own = [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    names = [own[index] if index < len(own) else f"A{index}" for index in range(count)]
    positional = [kernel.convert(argument, each) for argument, each in zip(flat, names, strict=True)]
    named = {key: kernel.convert(argument, key) for key, argument in keywords.items()}
    outputs = function(*positional, **named)
    # The tensors that a function gave.
    given = cast("Sequence[object]", outputs) if isinstance(outputs, list | tuple) else [outputs]
    tensors = [each for each in given if isinstance(each, te.Tensor)]
    if not tensors or len(tensors) != len(given):
        raise BuilderError(f"emit_te: expected the function to give a te.Tensor or several, got {outputs!r}")
    func = te.create_prim_func([*kernel.parameters, *tensors], name or _name(function))
    out = [TensorType([kernel.symbols.outside(dim) for dim in each.shape], each.dtype) for each in tensors]
    tir_vars = [kernel.symbols.outside(symbol(each)) for each in explicit_symbols(func)]
    results = builder.call_tir(func, builder.exprs(kernel.values), list(out), tir_vars=tir_vars)
    return results[0] if isinstance(outputs, te.Tensor) else results


def _fields(builder: CallEmitter, argument: Any) -> Any:
    """Tuples of the program as sequences of their fields."""
    if isinstance(argument, Expr) and isinstance(argument.type, TupleType):
        fields = range(len(argument.type.fields))
        parts = [builder.insert(TupleGetOp(argument.value, index)).result for index in fields]
        return tuple(_fields(builder, part) for part in builder.exprs(parts))
    return argument


def _tensors(arguments: Iterable[Any]) -> Iterator[SSAValue]:
    for argument in arguments:
        if isinstance(argument, Expr) and isinstance(argument.type, TensorType):
            yield argument.value
        elif isinstance(argument, list | tuple):
            yield from _tensors(cast("Sequence[Any]", argument))


def _dims(value: SSAValue) -> tuple[Dim, ...]:
    return (value.type.known_dims or ()) if isinstance(value.type, TensorType) else ()


def _name(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", "")
    return name if name.isidentifier() else "te"


Params: TypeAlias = Mapping[str, InfoLike]
"""Names and types of parameters, in order."""

CarriedValue: TypeAlias = "Operand | tuple[Operand, InfoLike]"
"""The first value that a loop carries, and its type if that says less: `(zeros, tensor(("m",)))`."""


class BlockBuilder(ScopedEmitter):
    """Builds a module from Python, function by function.

    ::

        bb = BlockBuilder()
        with bb.function("main", {"x": ("n", 4), "w": (4, "m")}) as (x, w):
            with bb.dataflow():
                y = op.nn.relu(x @ w + 1.0)
                out = bb.emit_output(y)
            bb.emit_func_output(out)
        module = bb.get()

    Functions in `op` and operators on values emit at once, at the end of the innermost open scope; result types are
    inferred. Symbols in the types of parameters are bound by the call; so are those that are new in `match_cast`.
    Every op is checked when it is emitted: `VerifyException` says what is wrong with it, `BuilderError` that it does
    not belong there. API and names follow TVM's `BlockBuilder` where they mean the same.
    """

    def __init__(self, module: ModuleOp | None = None, *, locations: bool = False):
        """Adds to `module`, or to a new one; with `locations`, ops know the line of Python that asked for them."""
        super().__init__(ModuleOp([]) if module is None else module, locations=locations)

    def __repr__(self) -> str:
        symbols = (op.get_attr_or_prop("sym_name") for op in self.functions.module.ops)
        names = [f"@{symbol.data}" for symbol in symbols if isinstance(symbol, StringAttr)]
        return f"<BlockBuilder of {', '.join(names) or 'no functions yet'}>"

    # Functions

    def function(
        self,
        name: str,
        params: Params | None = None,
        *,
        ret: InfoLike | None = None,
        attrs: Mapping[str, FuncAttribute] | None = None,
        private: bool = False,
        pure: bool = True,
        force_pure: bool = False,
        bounds: SymbolBounds | None = None,
        result_names: Sequence[str] | None = None,
    ) -> FunctionScope:
        """A function of the module: `with bb.function("main", {"x": ("n", 4)}) as (x,): ...`.

        Its symbols are those of the parameters, in order of occurrence, with `bounds`. The result type is that of the
        result, unless `ret` gives it; a function that is called before its end needs it. Parameters may have any names;
        `result_names` are those of the result, or of the fields of a tuple. `BuilderError` if the name is taken.
        """
        if not isinstance(cast("object", params), Mapping | None):
            raise TypeError(f'params expected types by name, such as {{"x": ("n", 4)}}, got {type(params).__name__}')
        types = {param: as_struct_info(info) for param, info in (params or {}).items()}
        return FunctionScope(
            self,
            name,
            types,
            None if ret is None else as_struct_info(ret),
            new_symbols(types.values(), (), bounds),
            pure=pure,
            private=private,
            force_pure=force_pure,
            attrs=attrs or {},
            result_names=result_names,
        )

    def declare(
        self, name: str, params: Params, ret: InfoLike, *, pure: bool = True, bounds: SymbolBounds | None = None
    ) -> FuncType:
        """Announces a function that is built later, so that it can be called before: mutual recursion."""
        types = [as_struct_info(info) for info in params.values()]
        info = FuncType(types, as_struct_info(ret), pure=pure, symbols=new_symbols(types, (), bounds))
        self.functions.declare(name, info)
        return info

    def closure(
        self,
        params: Params | None = None,
        *,
        ret: InfoLike | None = None,
        pure: bool = True,
        recursive: str | None = None,
        bounds: SymbolBounds | None = None,
    ) -> ClosureScope:
        """A nested function: `with bb.closure({"y": ("m",)}) as f: (y,) = f.params ...`; after it, `f.value`.

        It captures what it uses of its surroundings; symbols of the parameters that are visible there are captured
        too, the others are bound by its call. With `recursive`, a name, it can call `f.itself`, and needs `ret`.
        """
        types = {param: as_struct_info(info) for param, info in (params or {}).items()}
        result = None if ret is None else as_struct_info(ret)
        symbols = new_symbols(types.values(), self.symbols, bounds)
        return ClosureScope(self, types, result, symbols, pure=pure, itself=recursive)

    def emit_func_output(self, output: Value | Sequence[Value]) -> None:
        """Ends the innermost function or closure with its result; several values become a tuple."""
        scope = self.open_callables[-1] if self.open_callables else None
        if scope is None or self.frame is not scope.frame:
            raise BuilderError("emit_func_output belongs to the end of a function, after its inner scopes have ended")
        self.require_open()
        scope.emit_return(pack(self, output))

    # Scopes inside of functions

    def dataflow(self) -> DataflowScope:
        """A dataflow region: only what `emit_output` names is visible after it."""
        return DataflowScope(self)

    def current_block_is_dataflow(self) -> bool:
        """Whether the next op comes into a dataflow region."""
        return bool(self.open_dataflows) and self.frame.block is self.open_dataflows[-1].block

    def emit_output(self, value: Operand, name: str | None = None) -> Expr:
        """Makes a value of the dataflow region visible after it.

        The expression stands for the value inside and for the region's result after it. A symbol that was bound in the
        region stays visible if its witness is an output too: `bb.emit_output(bb.symbol("m"))`.
        """
        if not self.current_block_is_dataflow():
            raise BuilderError("emit_output belongs into a dataflow region")
        return self.open_dataflows[-1].output(as_tensor(self, value, None), name)

    def if_(self, condition: Value, out: InfoLike | list[InfoLike] | None = None) -> IfScope:
        """A branch; result types are the joins of what is yielded, unless `out` gives them."""
        types = None if out is None else [as_struct_info(info) for info in (out if isinstance(out, list) else [out])]
        return IfScope(self, as_value(self, condition), types)

    def for_(
        self,
        lower: Value | DimLike,
        upper: Value | DimLike,
        carried: Mapping[str, CarriedValue] | None = None,
        *,
        step: Value | DimLike | None = None,
        counter: str = "i",
        symbol: str | None = None,
        bounds: SymbolBounds | None = None,
    ) -> ForScope:
        """A loop over `lower`, `lower + step`, ... below `upper`, or above it with a negative step, which carries
        values from iteration to iteration.

        Symbols of the carried types that are not visible outside are bound anew in each iteration. With `symbol`, the
        counter is a symbol of the body as well.
        """
        first, last = as_prim(self, lower), as_prim(self, upper)
        by = None if step is None else as_prim(self, step)
        hidden = () if symbol is None else (symbol,)
        return ForScope(self, first, last, by, self._carried(carried or {}, bounds, hidden), counter, symbol)

    def while_(self, carried: Mapping[str, CarriedValue], *, bounds: SymbolBounds | None = None) -> WhileScope:
        """A loop that runs as long as its condition holds; see `WhileScope`."""
        return WhileScope(self, self._carried(carried, bounds))

    def _carried(
        self, given: Mapping[str, CarriedValue], bounds: SymbolBounds | None, hidden: Sequence[str] = ()
    ) -> Carried:
        pairs = [value if isinstance(value, tuple) else (value, None) for value in given.values()]
        inits = [as_tensor(self, value, None) for value, _ in pairs]
        types = [
            self.expr(init).type if info is None else as_struct_info(info)
            for init, (_, info) in zip(inits, pairs, strict=True)
        ]
        symbols = new_symbols(types, (*self.symbols, *hidden), bounds)
        return Carried(tuple(given), tuple(types), tuple(inits), symbols)

    def yield_(self, *values: Operand) -> None:
        """Ends a part of a branch or loop with its values."""
        self.insert(YieldOp(*(as_tensor(self, value, None) for value in values)))

    def emit_te(
        self, function: Callable[..., Any], *arguments: Any, name_hint: str | None = None, **keywords: Any
    ) -> Expr | tuple[Expr, ...]:
        """Calls the PrimFunc that computes what a function on tensor expressions describes.

        `function` gets a `te.Tensor` for each tensor, dimensions for prim values and shapes that are known, a scalar
        parameter for other prim values, tuples for tuples, and all else as it is. Equal PrimFuncs are added once. A
        dimension of which nothing is known gets a fresh symbol by a `match_cast`. The result is a tuple if `function`
        gives several tensors. `BuilderError` for a tensor of unknown rank or dtype.
        """
        return emit_te(self, function, arguments, keywords, name_hint)

    # The module

    def add_func(self, func: AnyFunc, name: str | None = None) -> str:
        """Adds a function and gives its name; one that is there already, up to names, is not added again."""
        return self.functions.add(func, name)

    def update_func(self, name: str, func: AnyFunc) -> None:
        """Puts a function instead of the one called `name`."""
        self.functions.update(name, func)

    def lookup(self, name: str) -> AnyFunc | None:
        """The function of that name, once it is complete."""
        return self.functions.find(name)

    def lookup_binding(self, value: Value) -> Operation | None:
        """The op whose result a value is; `None` for parameters."""
        bare = as_value(self, value)
        return bare.op if isinstance(bare, OpResult) else None

    def get_unique_name(self, base: str) -> str:
        """A name that no function of the module has: `base`, `base_1`, ..."""
        return self.functions.unique_name(base)

    def get(self) -> ModuleOp:
        """The module so far, verified: a copy, so that building can go on. `BuilderError` inside of a function."""
        return self._verified().clone()

    def finalize(self) -> ModuleOp:
        """The module, verified; the builder is then empty."""
        module = self._verified()
        self.functions = FunctionTable(ModuleOp([]))
        return module

    def _verified(self) -> ModuleOp:
        if self.open_callables:
            raise BuilderError(f"{self.open_callables[-1].frame.what} is still open")
        self.functions.module.verify()
        return self.functions.module
