"""The functions of the module that is being read, and calls of them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NoReturn, Protocol, TypeVar

from relax_dialect.builder.block_builder import BlockBuilder
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.tvmscript.text.meshes import Mesh
from relax_dialect.frontend.tvmscript.text.names import suggestion
from relax_dialect.frontend.tvmscript.text.recovery import Findings
from relax_dialect.ops.memory import CallKernelOp
from relax_dialect.struct_info.base import StructInfo
from relax_dialect.struct_info.refine import refine
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.types import BufferType

T = TypeVar("T")


class Caller(Protocol):
    """The reader of the relax function in which a call stands."""

    builder: BlockBuilder

    def fail(self, node: ast.AST, message: str) -> NoReturn:
        """Raises the error at a node."""
        ...

    def emit(self, node: ast.AST, make: Callable[[], T]) -> T:
        """What `make` builds, with errors at a node."""
        ...

    def to_dim(self, node: ast.AST, value: object) -> Dim:
        """A value as a dimension."""
        ...

    def refine(self, node: ast.AST, value: Expr, info: StructInfo) -> Expr:
        """The value with a type that says at least `info`."""
        ...


class PrimFunction(Protocol):
    """A PrimFunc of the text: the op, and which of the text's parameters became symbols of it."""

    @property
    def op(self) -> PrimFuncOp:
        """The function."""
        ...

    @property
    def symbol_params(self) -> Sequence[str]:
        """The parameters that became symbols, in order."""
        ...

    def symbol_at(self, index: int) -> str | None:
        """The symbol that the parameter at a place of the text became."""
        ...

    @property
    def result(self) -> BufferType | None:
        """Where the function writes what it returns: its last parameter, which the text has not."""
        ...

    def is_unused(self, index: int) -> bool:
        """Whether the function has no parameter for that of the text at a place, since it does not use it."""
        ...


def call_kernel(caller: Caller, node: ast.AST, func: PrimFunction, arguments: Sequence[Expr]) -> None:
    """Calls a PrimFunc as lowered texts do: with its results among the arguments."""
    sizes: dict[str, Dim] = {}
    values: list[Expr] = []
    for index, argument in enumerate(arguments):
        name = func.symbol_at(index)
        if name is not None:
            sizes[name] = caller.to_dim(node, argument)
        elif not func.is_unused(index):
            values.append(argument)
    given = dict(sizes)
    for index, (param, value) in enumerate(zip(func.op.params, values, strict=False)):
        if isinstance(param.type, BufferType):
            dims = [dim.substitute(given) if dim.symbols <= given.keys() else None for dim in param.type.shape]
            value = values[index] = caller.refine(node, value, refine(TensorType(dims, None), value.type))
        info = value.type
        known = info.known_dims if isinstance(info, TensorType) else None
        if isinstance(param.type, BufferType) and known is not None:
            pairs = zip(param.type.shape, known, strict=False)
            sizes |= {dim.as_symbol: size for dim, size in pairs if dim.as_symbol is not None}
    name = func.op.sym_name.data
    if missing := [each for each in func.op.symbol_names if each not in sizes]:
        caller.fail(node, f"the dimension {missing[0]} of {name} follows from no argument's shape")
    dims = [sizes[each] for each in func.op.symbol_names]
    caller.emit(node, lambda: caller.builder.insert(CallKernelOp(name, [value.value for value in values], dims)))


class RelaxFunction(Protocol):
    """A relax function of the text."""

    def build(self, caller: Caller | None, node: ast.AST) -> None:
        """Builds the function if that has not been done and its result type is needed or unknown."""
        ...


class Program:
    """What is known of the module's functions by name."""

    def __init__(self, builder: BlockBuilder, modules: frozenset[str]):
        self._builder = builder
        self._modules = modules
        self.relax: dict[str, RelaxFunction] = {}
        self.prim: dict[str, PrimFunction] = {}
        self.type_params: Mapping[int, str] = {}
        self.writers: Collection[str] = ()
        """The relax functions of which the only effect is that they write memory."""
        self.findings = Findings()
        """What is wrong in the text."""
        self._rotations: dict[tuple[str, int], str] = {}
        self.meshes: Mapping[str, Sequence[Mesh]] = {}
        """The meshes of workers that the module has, by name."""
        self.plain: Mapping[str, ast.FunctionDef | ast.Lambda] = {}
        """Functions without a decorator, which are read where they are applied: index maps, tensor expressions."""

    def __contains__(self, name: object) -> bool:
        return name in self.relax or name in self.prim

    def is_module(self, name: str) -> bool:
        """Whether a name stands for the module itself."""
        return name in self._modules

    def suggestion(self, name: str) -> str:
        """`; did you mean f`, or nothing."""
        return suggestion(name, [*self.relax, *self.prim])

    def prim_func(self, name: str) -> PrimFunction | None:
        """The PrimFunc of that name."""
        return self.prim.get(name)

    def kernel(self, name: str) -> PrimFunction | None:
        """The PrimFunc that a relax function calls; what relax calls is no private function of the compiled code."""
        func = self.prim.get(name)
        if func is not None:
            func.op.sym_visibility = None
        return func

    def kernel_names(self) -> list[str]:
        """The PrimFuncs that give nothing back, so that a call of them writes what it is given."""
        return [name for name, func in self.prim.items() if func.result is None]

    def call(self, caller: Caller, node: ast.AST, name: str, arguments: Sequence[Expr]) -> Expr | None:
        """Calls a relax function, or a PrimFunc with the tensors that it writes, which gives nothing."""
        if (func := self.kernel(name)) is not None:
            if (result := func.result) is not None:
                out = TensorType(result.shape, result.dtype)
                return caller.emit(node, lambda: self._builder.call_tir(name, arguments, out))
            call_kernel(caller, node, func, arguments)
            return None
        self._require_relax(caller, node, name, "call it by R.call_tir")
        return caller.emit(node, lambda: self._builder.call(name, *arguments))

    def closure(self, caller: Caller, node: ast.AST, name: str, captured: Sequence[Expr]) -> Expr:
        """A relax function as a value, its last parameters bound."""
        self._require_relax(caller, node, name, "a PrimFunc is no value")
        return caller.emit(node, lambda: self._builder.make_closure(self._rotated(name, len(captured)), *captured))

    def _rotated(self, name: str, count: int) -> str:
        """A function with the last parameters of another first: ours are bound from the front, TVM's from the back."""
        callee = self._builder.functions.value_type(name)
        types = list(callee.params)
        rest = len(types) - count
        if count == 0 or rest <= 0:
            return name
        if (name, count) not in self._rotations:
            params = {f"p{at % len(types)}": types[at % len(types)] for at in range(rest, rest + len(types))}
            made = self._builder.get_unique_name(f"{name}_of_last")
            with self._builder.function(made, params, ret=callee.ret, private=True, pure=callee.pure) as function:
                values = function.params[count:] + function.params[:count]
                self._builder.emit_func_output(self._builder.call(name, *values))
            self._rotations[name, count] = made
        return self._rotations[name, count]

    def function_value(self, caller: Caller, node: ast.AST, name: str) -> Expr:
        """A relax function as a value."""
        return self.closure(caller, node, name, ())

    def _require_relax(self, caller: Caller, node: ast.AST, name: str, advice: str) -> None:
        function = self.relax.get(name)
        if function is None:
            caller.fail(node, f"{name} is a PrimFunc; {advice}")
        function.build(caller, node)
