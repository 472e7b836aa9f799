"""`@T.jit`: PrimFuncs with parameters that are known when the text is read, `*, N: T.constexpr`."""

from __future__ import annotations

import ast
import copy

from relax_dialect.frontend.tvmscript.text.names import Aliases
from relax_dialect.frontend.tvmscript.text.static import StaticReader


def specialized(reader: StaticReader, node: ast.FunctionDef) -> ast.FunctionDef:
    """The function without these parameters: what surrounds the text gives their values, else their defaults."""
    args = node.args
    known = [_is_known(reader.aliases, each) for each in args.kwonlyargs]
    defaults: dict[str, ast.expr] = {}
    for each, value, is_known in zip(args.kwonlyargs, args.kw_defaults, known, strict=True):
        if not is_known or each.arg in reader.scope:
            continue
        if value is None:
            reader.fail(
                each, f"{each.arg} is known when the text is read: give it, as parse(text, {{'{each.arg}': 4}}) does"
            )
        defaults[each.arg] = value
    made = copy.deepcopy(node)
    made.args.kwonlyargs = [each for each, is_known in zip(made.args.kwonlyargs, known, strict=True) if not is_known]
    made.args.kw_defaults = [value for value, is_known in zip(args.kw_defaults, known, strict=True) if not is_known]
    return _Defaults(defaults).visit(made) if defaults else made


def _is_known(aliases: Aliases, parameter: ast.arg) -> bool:
    return parameter.annotation is not None and aliases.name_in("tir", parameter.annotation) == "constexpr"


class _Defaults(ast.NodeTransformer):
    """Puts default values in the place of names."""

    def __init__(self, values: dict[str, ast.expr]):
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A name, or what stands for it."""
        value = self._values.get(node.id)
        return node if value is None else ast.copy_location(copy.copy(value), node)
