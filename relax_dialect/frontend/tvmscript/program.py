"""The module that is being read: its functions, calls of them, what effects they have, and the errors found."""

from __future__ import annotations

import ast
import re
import struct
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn, Protocol, TypeVar

from xdsl.dialects.builtin import FileLineColLoc, ModuleOp
from xdsl.utils.exceptions import VerifyException

from relax_dialect.builder.block_builder import BlockBuilder
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.tvmscript.scopes import Failed, Scope
from relax_dialect.frontend.tvmscript.source import Aliases, DependentError, Source, TVMScriptError, dotted, suggestion
from relax_dialect.frontend.tvmscript.types import Mesh
from relax_dialect.ops.memory import CallKernelOp
from relax_dialect.struct_info.join import refine
from relax_dialect.struct_info.match import Mismatch
from relax_dialect.struct_info.types import StructInfo, TensorType
from relax_dialect.traits import Violation
from tir_dialect.dims import Dim
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.types import BufferType

BUILD_ERRORS = (
    VerifyException,
    Mismatch,
    ValueError,
    TypeError,
    IndexError,
    AttributeError,
    OverflowError,
    struct.error,
)
"""What builder and op classes raise for a program that is wrong."""


class Findings:
    """The errors of a text so far."""

    def __init__(self) -> None:
        self._errors: list[TVMScriptError] = []

    def __len__(self) -> int:
        return len(self._errors)

    def note(self, error: TVMScriptError) -> None:
        """Keeps an error after which nothing is missing."""
        self._errors.append(error)

    @contextmanager
    def collected(self, scope: Scope | None = None, node: ast.stmt | None = None) -> Generator[None]:
        """Keeps an error of the block and goes on after it; names that `node` binds have failed in `scope` then.

        An error after one that was kept inside of the block follows from that.
        """
        before = len(self._errors)
        try:
            yield
        except TVMScriptError as error:
            if len(self._errors) == before and not isinstance(error, DependentError):
                self._errors.append(error)
            if scope is not None and node is not None:
                for name in _bound(node):
                    scope.bind(name, Failed("it was bound wrongly"))

    def raise_all(self) -> None:
        """Raises the errors, if there are any."""
        if self._errors:
            raise TVMScriptError.of_all(self._errors)


def at_ops(source: Source, node: ast.AST, violations: Sequence[Violation]) -> TVMScriptError:
    """The errors of rules that ops break, at their positions in the text; at `node` where an op has none."""
    found: list[TVMScriptError] = []
    for violation in violations:
        position = violation.op.location
        if isinstance(position, FileLineColLoc):
            found.append(source.error_of_file(position.line.data, position.column.data, violation.message))
        else:
            found.append(source.error(node, violation.message))
    return TVMScriptError.of_all(found)


def build_error(source: Source, node: ast.AST, module: ModuleOp, error: Exception) -> TVMScriptError:
    """What building a module has raised, at the op of which the verifier says so; at `node` if it is no such error."""
    message = str(error)
    for op in module.walk():
        try:
            op.verify(verify_nested_ops=False)
        except VerifyException as again:
            if str(again) == message:
                return at_ops(source, node, [Violation(op, message)])
    return source.error(node, message)


def _bound(node: ast.stmt) -> list[str]:
    """The names that a statement binds."""
    found = [each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]
    return [*found, node.name] if isinstance(node, ast.FunctionDef) else found


def mentioned(node: ast.AST) -> list[str]:
    """The names in `node`, alone or after a dot, each once."""
    return list(dict.fromkeys(_names(node)))


def _names(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.Attribute):
            yield each.attr


def mentions(node: ast.AST, names: set[str]) -> bool:
    """Whether a name of these stands anywhere in `node`, alone or after a dot."""
    return not names.isdisjoint(_names(node))


def callees_first(called: Mapping[str, Sequence[str]]) -> list[str]:
    """Functions in an order where each comes after those that it calls, unless they call each other.

    Chains of calls may be of any length.
    """
    order: dict[str, None] = {}
    seen: set[str] = set()
    for root in called:
        pending = [(root, False)]
        while pending:
            name, is_left = pending.pop()
            if is_left:
                order[name] = None
            elif name not in seen:
                seen.add(name)
                pending.append((name, True))
                pending += [(each, False) for each in reversed(called[name])]
    return list(order)


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
        """The symbol that the parameter at a position of the text became."""
        ...

    @property
    def result(self) -> BufferType | None:
        """Where the function writes what it returns: its last parameter, which the text has not."""
        ...

    def is_unused(self, index: int) -> bool:
        """Whether the function has no parameter for that of the text at a position, since it does not use it."""
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
    """What is known about the module's functions by name."""

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


_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


def name_counts(statements: Sequence[ast.stmt]) -> Counter[str]:
    """How often each name occurs, also in strings, where dimensions are written."""
    found: Counter[str] = Counter()
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                found[node.id] += 1
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.update(_IDENTIFIER.findall(node.value))
    return found


def bound_names(statements: Sequence[ast.stmt]) -> list[str]:
    """The names that are bound when the statements have been run, the last one last."""
    found: dict[str, None] = {}
    for name in _bindings(statements):
        found.pop(name, None)
        found[name] = None
    return list(found)


def _bindings(statements: Sequence[ast.stmt]) -> Iterator[str]:
    for statement in statements:
        match statement:
            case ast.Assign():
                for target in statement.targets:
                    yield from _targets(target)
            case ast.AnnAssign() | ast.AugAssign():
                yield from _targets(statement.target)
            case ast.With():
                # The outputs of a dataflow region.
                last = statement.body[-1]
                if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
                    yield from (each.id for each in last.value.args if isinstance(each, ast.Name))
            case ast.If():
                others = bound_names(statement.orelse)
                yield from (name for name in bound_names(statement.body) if name in others)
            case ast.FunctionDef():
                yield statement.name
            case _:
                pass


def _targets(target: ast.expr) -> Iterator[str]:
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def returns(node: ast.If) -> bool:
    """Whether a branch of the `if` ends the function."""
    return any(
        isinstance(last, ast.Return) or (isinstance(last, ast.If) and returns(last))
        for last in (arm[-1] for arm in (node.body, node.orelse) if arm)
    )


def returned_behind(region: ast.With) -> tuple[ast.With, ast.Return] | None:
    """A dataflow region that ends in `return x`, as one that ends in `R.output(x)`, and the return; else `None`."""
    last, opened = region.body[-1], region.items[0].context_expr
    if not isinstance(last, ast.Return) or last.value is None:
        return None
    if not isinstance(opened, ast.Call) or not isinstance(opened.func, ast.Attribute):
        return None
    name = last.value.id if isinstance(last.value, ast.Name) else "returned"
    bound = [] if isinstance(last.value, ast.Name) else [ast.Assign([ast.Name(name, ast.Store())], last.value)]
    output = ast.Call(ast.Attribute(opened.func.value, "output", ast.Load()), [ast.Name(name, ast.Load())], [])
    body = [*region.body[:-1], *bound, ast.Expr(output)]
    for made in (*bound, body[-1]):
        for each in ast.walk(made):
            if not hasattr(each, "lineno"):
                ast.copy_location(each, last)
    after = ast.Return(ast.copy_location(ast.Name(name, ast.Load()), last))
    return ast.copy_location(ast.With(region.items, body), region), ast.copy_location(after, last)


IMPURE_FORMS = frozenset(
    {
        "assert_op",
        "call_builtin_with_ctx",
        "call_packed",
        "call_py_func",
        "invoke_closure",
        "memory.kill_storage",
        "memory.kill_tensor",
        "print",
        "vm.kill_object",
    }
)
"""Calls that make a function impure, beside those that write memory; packed functions do not in a dataflow region."""


class Writes:
    """Which calls of a function write memory that others can see, as far as names show it."""

    def __init__(self, aliases: Aliases, statements: Sequence[ast.stmt], writers: Collection[str]):
        self._aliases = aliases
        self._writers = writers
        self._statements = statements

    @cached_property
    def _loads(self) -> Counter[str]:
        return name_counts(self._statements)

    @cached_property
    def _bound(self) -> set[str]:
        names = (each for statement in self._statements for each in ast.walk(statement) if isinstance(each, ast.Name))
        return {each.id for each in names if isinstance(each.ctx, ast.Store)}

    def seen(self, node: ast.AST) -> bool:
        """Whether a node is a call that writes a parameter, or what is used elsewhere, or memory given to a writer."""
        if not isinstance(node, ast.Call):
            return False
        name = self._aliases.name_in("relax", node.func)
        if name == "call_tir_inplace":
            return any(each not in self._bound or self._loads[each] > 1 for each in _written(node))
        parts = dotted(node.func) if name is None else None
        return name == "call_inplace_packed" or (parts is not None and parts[-1] in self._writers)

    def in_region(self, region: ast.With) -> bool:
        """Whether a dataflow region has such a call, so that it is none: its statements stand for themselves."""
        return any(map(self.seen, ast.walk(region)))


class _Calls(ast.NodeVisitor):
    """Collects what is called, and whether one of the calls has effects by itself."""

    def __init__(self, aliases: Aliases, node: ast.FunctionDef, kernels: Collection[str]):
        self._aliases = aliases
        self._writes = Writes(aliases, node.body, kernels)
        self._in_dataflow = 0
        self.impure = False
        """Whether a call has an effect that is no writing of memory."""
        self.writes = False
        self.callees: set[str] = set()

    def visit_With(self, node: ast.With) -> None:
        call = node.items[0].context_expr
        is_region = isinstance(call, ast.Call) and self._aliases.name_in("relax", call.func) == "dataflow"
        is_region = is_region and not self._writes.in_region(node)
        self._in_dataflow += is_region
        self.generic_visit(node)
        self._in_dataflow -= is_region

    def visit_Call(self, node: ast.Call) -> None:
        name = self._aliases.name_in("relax", node.func)
        if name == "call_inplace_packed":
            self.writes = True
        elif name in IMPURE_FORMS:
            self.impure |= not (self._in_dataflow and name == "call_packed")
        elif name == "vm.call_tir_dyn":
            self.impure |= bool(node.args) and isinstance(node.args[0], ast.Constant)
        elif name == "call_tir_inplace":
            self.writes |= self._writes.seen(node)
        elif name is None and (parts := dotted(node.func)) is not None:
            self.callees.add(parts[-1])
        self.generic_visit(node)


def _written(node: ast.Call) -> list[str]:
    """The names among the arguments that `R.call_tir_inplace(f, (x, y), [0], ...)` writes."""
    keywords = {each.arg: each.value for each in node.keywords}
    args = node.args[1] if len(node.args) > 1 else keywords.get("args")
    positions = node.args[2] if len(node.args) > 2 else keywords.get("inplace_indices")
    given = args.elts if isinstance(args, ast.Tuple | ast.List) else [args]
    indices = positions.elts if isinstance(positions, ast.Tuple | ast.List) else [positions]
    numbers = [each.value for each in indices if isinstance(each, ast.Constant) and isinstance(each.value, int)]
    named = [given[number] for number in numbers if number < len(given)]
    return [each.id for each in named if isinstance(each, ast.Name)]


def impure_calls(aliases: Aliases, node: ast.FunctionDef, kernels: Collection[str]) -> bool:
    """Whether the statements of a function call something that has effects by itself."""
    calls = _Calls(aliases, node, kernels)
    for statement in node.body:
        calls.visit(statement)
    return calls.impure or calls.writes


@dataclass(frozen=True)
class Effects:
    """The functions of a module that have effects, by themselves or through others."""

    impure: Collection[str]
    writers: Collection[str]
    """Those of which the only effect is that they write memory, as TVM lets pure functions do."""


def effects(aliases: Aliases, functions: Mapping[str, ast.FunctionDef], kernels: Collection[str]) -> Effects:
    """What effects functions have; those that declare it are the caller's.

    `kernels` are PrimFuncs, whose call by name writes memory.
    """
    callers: dict[str, list[str]] = {}
    writing: list[str] = []
    others: list[str] = []
    for name, node in functions.items():
        calls = _Calls(aliases, node, kernels)
        for statement in node.body:
            calls.visit(statement)
        if calls.impure or _takes_impure_functions(node, calls.callees):
            others.append(name)
        elif calls.writes or not calls.callees.isdisjoint(kernels):
            writing.append(name)
        for callee in calls.callees & functions.keys():
            callers.setdefault(callee, []).append(name)
    impure = _with_callers(others, callers)
    writers = _with_callers(writing, callers) - impure
    return Effects(impure | writers, writers)


def _with_callers(functions: Sequence[str], callers: Mapping[str, Sequence[str]]) -> set[str]:
    """The functions, and all that call them directly or through others."""
    found: set[str] = set()
    pending = [*functions]
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += callers.get(name, ())
    return found


def _takes_impure_functions(node: ast.FunctionDef, callees: set[str]) -> bool:
    """Whether the function calls a parameter whose type says that it is not pure."""
    for argument in node.args.args:
        if argument.arg in callees and argument.annotation is not None:
            text = ast.unparse(argument.annotation)
            if "purity=False" in text or "None" in text or text.endswith("Callable"):
                return True
    return False
