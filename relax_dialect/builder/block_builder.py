"""`BlockBuilder`: programs from Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation, OpResult

from relax_dialect.builder.calls import AnyFunc, FunctionTable
from relax_dialect.builder.emitter import BuilderError, InfoLike, SymbolBounds, as_struct_info, new_symbols
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
from relax_dialect.builder.values import Operand, Value, as_prim, as_tensor, as_value
from relax_dialect.ops.control_flow import YieldOp
from relax_dialect.struct_info.functions import FuncType
from tir_dialect.dims import DimLike

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
        from relax_dialect.builder.tensor_expressions import emit_te

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
