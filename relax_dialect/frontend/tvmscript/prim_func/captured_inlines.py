"""Functions of the surroundings under `T.inline`, `T.macro` or `R.macro`, as those of the text."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from relax_dialect.frontend.tvmscript.prim_func.inline import Inline
from relax_dialect.frontend.tvmscript.text.captured import captured_names
from relax_dialect.frontend.tvmscript.text.names import Aliases
from relax_dialect.frontend.tvmscript.text.placeholder import Macro
from relax_dialect.frontend.tvmscript.text.scope import Scope
from relax_dialect.frontend.tvmscript.text.source import read_object

_Known = dict[Macro, Inline]


def with_inlines(names: Mapping[str, object], aliases: Aliases, known: _Known | None = None) -> dict[str, object]:
    """Names with what they stand for: decorated functions as the body that is read for a call of them.

    They see the names of where they stand, and the functions that they call are such ones, too.
    """
    found = {} if known is None else known
    return {name: _inline(each, aliases, found) if isinstance(each, Macro) else each for name, each in names.items()}


def _inline(macro: Macro, aliases: Aliases, known: _Known) -> Inline:
    if (found := known.get(macro)) is not None:
        return found
    tree, name = read_object(macro.function, macro.frame), macro.function.__name__
    node = next((each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == name), None)
    if node is None:
        raise tree.source.error_at(1, 1, f"expected the definition of {name}")
    scope = Scope(source=tree.source)
    known[macro] = made = Inline(node, scope if macro.hygienic else None, macro.of_relax, tree.source)
    for each, value in with_inlines(captured_names(tree, aliases), aliases, known).items():
        scope.bind(each, value)
    return made


def reachable(names: Mapping[str, object]) -> Iterator[tuple[str, Inline]]:
    """The functions among names, and those that they see, each once."""
    seen: set[Inline] = set()
    pending = list(names.items())
    while pending:
        name, value = pending.pop()
        if isinstance(value, Inline) and value not in seen:
            seen.add(value)
            yield name, value
            if value.source is not None and value.scope is not None:
                pending += ((each, value.scope.find(each)) for each in value.scope.names())
