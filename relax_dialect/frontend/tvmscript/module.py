"""From a text to a module: the class, its functions, what is declared around them, and the order of building."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr

from relax_dialect.builder.block_builder import BlockBuilder
from relax_dialect.frontend.tvmscript.functions import reachable, read_inline, specialized, with_inlines
from relax_dialect.frontend.tvmscript.prim_func.function import PrimFunctionReader
from relax_dialect.frontend.tvmscript.program import (
    BUILD_ERRORS,
    Program,
    at_ops,
    build_error,
    callees_first,
    effects,
    mentioned,
    mentions,
    name_counts,
)
from relax_dialect.frontend.tvmscript.relax_func.function import RelaxFunctionReader
from relax_dialect.frontend.tvmscript.scopes import (
    Deferred,
    Scope,
    captured_names,
    declarations,
    vscale_of,
    with_fixed_lanes,
)
from relax_dialect.frontend.tvmscript.source import Aliases, Source, Tree, TVMScriptError, read_object, read_text
from relax_dialect.frontend.tvmscript.static import StaticReader
from relax_dialect.frontend.tvmscript.types import (
    DEVICES,
    Mesh,
    as_attributes,
    decorator_options,
    mesh_attribute,
    read_dictionary,
    read_global_infos,
)
from relax_dialect.ops.structure import FuncOp
from relax_dialect.traits import Violations
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target

_KINDS = {
    ("ir", "ir_module"): "module",
    ("relax", "function"): "function",
    ("relax", "func"): "function",
    ("tir", "prim_func"): "prim_func",
    ("tir", "func"): "prim_func",
    ("tir", "jit"): "template",
}

_REFUSED = {
    ("ir", "pyfunc"): "Python functions would have to be executed; register them as packed functions",
    ("relax", "rewriter"): "R.rewriter describes a pass, not a program",
}

_BARE = {"ir_module": "module", "prim_func": "prim_func"}


@dataclass
class Function:
    """A function of the text, with what its decorator says."""

    node: ast.FunctionDef
    kind: str
    options: dict[str, bool]


@dataclass
class Contents:
    """What a text has: functions by name, the names of the module, attributes."""

    functions: dict[str, Function] = field(default_factory=dict[str, Function])
    modules: list[ast.ClassDef] = field(default_factory=list[ast.ClassDef])
    attributes: dict[str, object] = field(default_factory=dict[str, object])
    inlined: dict[str, ast.FunctionDef] = field(default_factory=dict[str, ast.FunctionDef])
    meshes: dict[str, list[Mesh]] = field(default_factory=dict[str, list[Mesh]])
    plain: dict[str, ast.FunctionDef | ast.Lambda] = field(default_factory=dict[str, ast.FunctionDef | ast.Lambda])


class ModuleReader:
    """Reads one text."""

    def __init__(self, tree: Tree):
        self._tree = tree
        self._source: Source = tree.source
        self._aliases = Aliases()
        self._constants = Scope(with_inlines(captured_names(tree, self._aliases), self._aliases))
        self._static = StaticReader(self._source, self._aliases, self._constants)
        self._contents = Contents()
        self._failed: set[str] = set()
        """Functions whose heads are wrong."""

    def read(self) -> ModuleOp:
        """The module; `TVMScriptError` for a text that has none, or a wrong one."""
        self._collect(self._tree.body)
        if not self._contents.functions and not self._contents.modules:
            raise self._source.error_at(1, 1, "expected @I.ir_module, @R.function or @T.prim_func, found none of them")
        builder = BlockBuilder()
        names = frozenset(module.name for module in self._contents.modules)
        program = Program(builder, names)
        program.type_params = self._tree.type_params
        program.plain = self._contents.plain
        program.meshes = self._contents.meshes
        self._read_prim_funcs(program, builder)
        self._read_functions(program, builder)
        program.findings.raise_all()
        attributes = as_attributes(self._source, self._node(), self._contents.attributes)
        try:
            module = builder.finalize()
        except Violations as error:
            raise at_ops(self._source, self._node(), error.violations) from error
        except BUILD_ERRORS as error:
            raise build_error(self._source, self._node(), builder.functions.module, error) from error
        module.attributes |= attributes
        # Puts the functions into the order of the text; those that were added come last.
        order = {name: index for index, name in enumerate(self._contents.functions)}
        block = module.body.block
        functions = [op for op in block.ops if isinstance(op, FuncOp | PrimFuncOp)]
        for op in functions:
            op.detach()
        for op in sorted(functions, key=lambda op: order.get(op.sym_name.data, len(order))):
            block.add_op(op)
        return module

    # Collecting

    def _collect(self, statements: Sequence[ast.stmt], *, inside: bool = False) -> None:
        for statement in statements:
            match statement:
                case ast.Import() | ast.ImportFrom():
                    self._aliases.read(statement)
                case ast.ClassDef():
                    self._class(statement)
                case ast.FunctionDef():
                    self._function(statement, inside=inside)
                case ast.Assign(targets=[target]):
                    self._constant(target, statement.value)
                case ast.AnnAssign(value=ast.expr() as value):
                    self._constant(statement.target, value)
                case ast.Expr(value=ast.Call() as call):
                    name = self._aliases.name_in("ir", call.func)
                    if name == "module_attrs":
                        self._contents.attributes |= read_dictionary(self._static, call, "I.module_attrs", "attrs")
                    elif name == "module_global_infos":
                        meshes, devices = read_global_infos(self._static, call)
                        self._contents.meshes |= meshes
                        self._contents.attributes |= {"device_meshes": mesh_attribute(meshes)} if meshes else {}
                        self._constants.bind(DEVICES, devices)
                case _:
                    # the rest of a file is Python around the program, which is not run
                    continue

    def _kind(self, decorator: ast.expr) -> str | None:
        head = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(head, ast.Name) and head.id in _BARE:
            return _BARE[head.id]
        found = self._aliases.resolve(head)
        if found in _REFUSED:
            self._source.fail(decorator, _REFUSED[found])
        return None if found is None else _KINDS.get(found)

    def _class(self, node: ast.ClassDef) -> None:
        if not any(self._kind(decorator) == "module" for decorator in node.decorator_list):
            return
        if self._contents.modules:
            first = self._contents.modules[0]
            self._source.fail(node, f"expected one module in a text, got {first.name} and {node.name}")
        self._contents.modules.append(node)
        self._constants.hide(node.name)
        self._collect(node.body, inside=True)
        plain = [each for each in node.body if isinstance(each, ast.FunctionDef) and not each.decorator_list]
        if plain and not self._contents.functions:
            self._undecorated(plain[0])

    def _undecorated(self, node: ast.FunctionDef) -> NoReturn:
        self._source.fail(node, f"{node.name} has no decorator: write @R.function or @T.prim_func above it")

    def _has_types_of_tvm(self, node: ast.FunctionDef) -> bool:
        """Whether a parameter or the result is annotated with a type such as `R.Tensor` or `T.Buffer`."""
        annotations = [each.annotation for each in [*node.args.posonlyargs, *node.args.args]] + [node.returns]
        heads = [each.func if isinstance(each, ast.Call) else each for each in annotations if each is not None]
        return any(self._aliases.resolve(head) is not None for head in heads)

    def _function(self, node: ast.FunctionDef, *, inside: bool) -> None:
        if not node.decorator_list:
            if inside and self._has_types_of_tvm(node):
                self._undecorated(node)
            self._contents.plain[node.name] = node
        if (inline := read_inline(self._static, node)) is not None:
            self._constants.bind(node.name, inline)
            self._contents.inlined[node.name] = node
            return
        for decorator in node.decorator_list:
            kind = self._kind(decorator)
            if kind == "template":
                node, kind = specialized(self._static, node), "prim_func"
            if kind in ("function", "prim_func"):
                if node.name in self._contents.functions:
                    self._source.fail(node, f"the module has a function {node.name} already")
                self._constants.hide(node.name)
                options = decorator_options(self._source, self._aliases, decorator)
                self._contents.functions[node.name] = Function(node, kind, options)
                return

    def _constant(self, target: ast.expr, value: ast.expr) -> None:
        """A number or dimension that functions may use; all else is Python around the program."""
        if found := declarations(self._aliases, target, value):
            for each, name, _ in found:
                self._static.declare(each, name)
        elif isinstance(target, ast.Name) and isinstance(value, ast.Lambda):
            self._contents.plain[target.id] = value
        elif isinstance(target, ast.Name):
            try:
                self._constants.bind(target.id, self._static.value(value))
            except TVMScriptError:
                if target.id not in name_counts([ast.Expr(value)]):
                    self._constants.bind(target.id, Deferred(value))

    # Building

    def _read_prim_funcs(self, program: Program, builder: BlockBuilder) -> None:
        """Heads first, so that functions may call those below; then bodies; then what they are together."""
        readers: list[PrimFunctionReader] = []
        for name, function in self._contents.functions.items():
            if function.kind == "prim_func":
                with program.findings.collected():
                    reader = PrimFunctionReader(self._source, self._aliases, self._constants, program, function.node)
                    func = reader.prepare(private=function.options.get("private", False))
                    filename, line, column = self._source.location(function.node)
                    func.location = FileLineColLoc(StringAttr(filename), IntAttr(line), IntAttr(column))
                    builder.functions.define(func)
                    program.prim[name] = reader
                    readers.append(reader)
                if name not in program.prim:
                    self._failed.add(name)
        complete: list[PrimFunctionReader] = []
        for reader in readers:
            if not mentions(reader.node, self._failed):
                with program.findings.collected():
                    reader.read_body()
                    complete.append(reader)
        for reader in complete:
            with program.findings.collected():
                reader.finish()

    def _read_functions(self, program: Program, builder: BlockBuilder) -> None:
        nodes = {name: each.node for name, each in self._contents.functions.items() if each.kind == "function"}
        around = {name: self._constants.find(name) for name in self._constants.names()}
        inlined = {name: each.node for name, each in reachable(around)} | self._contents.inlined
        found = effects(self._aliases, nodes | inlined, program.kernel_names())
        declared = {name for name, each in self._contents.functions.items() if "pure" in each.options}
        program.writers = {*found.writers} - declared
        for name, node in nodes.items():
            options = self._contents.functions[name].options
            pure = options.get("pure", name not in found.impure)
            reader = RelaxFunctionReader(self._source, self._aliases, self._constants, builder, program, node)
            with program.findings.collected():
                reader.prepare(pure=pure, private=options.get("private", False))
                program.relax[name] = reader
            if name not in program.relax:
                self._failed.add(name)
        untyped = {name for name in program.relax if nodes[name].returns is None}
        called = {name: [each for each in mentioned(nodes[name]) if each in untyped] for name in program.relax}
        for name in callees_first(called):
            reader = program.relax[name]
            if not mentions(nodes[name], self._failed) and isinstance(reader, RelaxFunctionReader):
                with program.findings.collected():
                    reader.build_body()

    def _node(self) -> ast.AST:
        first = next(iter(self._contents.functions.values()), None)
        return self._contents.modules[0] if self._contents.modules else first.node if first else ast.Module([], [])


def read(
    source: str | Callable[..., object] | type,
    filename: str | None = None,
    frame: Mapping[str, object] | None = None,
    target: Target | str | None = None,
) -> ModuleOp:
    """The module of a text or of a decorated object; `frame` has names that are visible where that stands.

    The target says how long vectors are that the text leaves to the machine.
    """
    text = isinstance(source, str)
    tree = read_text(source, filename or "<tvmscript>", frame) if text else read_object(source, frame)
    machine = Target.parse(target) if isinstance(target, str) else target
    vscale = vscale_of(None if machine is None else machine.vector_bits)
    try:
        return ModuleReader(replace(tree, body=with_fixed_lanes(tree.body, vscale), vscale=vscale)).read()
    except RecursionError:
        raise tree.source.error_at(1, 1, "the text is nested too deeply") from None
