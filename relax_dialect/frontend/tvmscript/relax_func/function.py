"""One relax function of a text: its head is read first, its body when it is needed."""

from __future__ import annotations

import ast

from relax_dialect.builder.block_builder import BlockBuilder
from relax_dialect.frontend.tvmscript.relax_func.macros import MacroReader
from relax_dialect.frontend.tvmscript.text.errors import Source
from relax_dialect.frontend.tvmscript.text.names import Aliases
from relax_dialect.frontend.tvmscript.text.program import Caller, Program
from relax_dialect.frontend.tvmscript.text.scope import Scope
from relax_dialect.frontend.tvmscript.text.signature import Signature, read_signature, type_param_names


class RelaxFunctionReader:
    """A function between its head and its op in the module."""

    def __init__(
        self,
        source: Source,
        aliases: Aliases,
        constants: Scope,
        builder: BlockBuilder,
        program: Program,
        node: ast.FunctionDef,
    ):
        self._node = node
        self._builder = builder
        outermost = {name: constants.find(name) for name in constants.names()}
        self._reader = MacroReader(source, aliases, Scope(outermost), builder, program)
        self._signature = Signature({}, None)
        self._pure = True
        self._private = False
        self._state = "new"

    def prepare(self, *, pure: bool, private: bool) -> None:
        """Reads the head, and announces the function if its result type is known from it."""
        node, reader = self._node, self._reader
        self._private = private
        names = type_param_names(reader.program.type_params.get(node.lineno, ""))
        self._signature = signature = read_signature(reader, node, names)
        self._pure = pure = pure or signature.force_pure
        if (ret := signature.ret) is not None:
            bounds = signature.bounds
            declare = self._builder.declare
            reader.emit(node, lambda: declare(node.name, signature.params, ret, pure=pure, bounds=bounds))

    def build(self, caller: Caller | None, node: ast.AST) -> None:
        """Builds the function unless a call can do with its head."""
        if self._signature.ret is not None or self._state == "done":
            return
        if self._state == "open":
            (caller or self._reader).fail(
                node, f"{self._node.name} is called before its end, so its result needs a type: -> R.Tensor(...)"
            )
        self.build_body()

    def build_body(self) -> None:
        """Builds the function, once."""
        if self._state != "new":
            return
        self._state = "open"
        node, reader, signature = self._node, self._reader, self._signature
        reader.pure_subject = f"'relax.func' op @{node.name}" if self._pure and not signature.force_pure else None
        with reader.errors_at(node):
            scope = self._builder.function(
                node.name,
                signature.params,
                ret=signature.ret,
                attrs=signature.attributes,
                private=self._private,
                pure=self._pure,
                force_pure=signature.force_pure,
                bounds=signature.bounds,
            )
            filename, line, column = reader.source.location(node)
            with self._builder.at(f"{filename}:{line}:{column}"), scope as function:
                reader.finish(node, list(signature.params), function.params, signature.ret)
        self._state = "done"
