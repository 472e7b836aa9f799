"""The arguments of a call in the text, by the names of the parameters."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from relax_dialect.frontend.tvmscript.text.errors import Source
from relax_dialect.frontend.tvmscript.text.names import suggestion


class Arguments:
    """The argument expressions of a call, matched to parameters as Python does it.

    `parameters` are names apart by blanks; one that begins with `*` takes all further positional arguments. `renamed`
    has other names of parameters, as callers may write them, `keywords` parameters that only keywords give.
    """

    def __init__(
        self,
        source: Source,
        node: ast.Call,
        what: str,
        parameters: str | Sequence[str],
        renamed: Mapping[str, str] | None = None,
        keywords: Sequence[str] = (),
    ):
        self._source = source
        self.node = node
        self.what = what
        names = parameters.split() if isinstance(parameters, str) else list(parameters)
        self.rest: list[ast.expr] = []
        self._given: dict[str, ast.expr] = {}
        self._bind_positional(node.args, names)
        known = [*(name for name in names if not name.startswith("*")), *keywords]
        for keyword in node.keywords:
            if keyword.arg is None:
                source.fail(keyword.value, f"{what}: expected keywords one by one, got **")
            self._bind_keyword(keyword, keyword.arg, known, renamed or {})

    def _bind_positional(self, args: Sequence[ast.expr], names: Sequence[str]) -> None:
        place = 0
        for argument in args:
            if isinstance(argument, ast.Starred):
                self._source.fail(argument, f"{self.what}: expected arguments one by one, got *")
            name = names[place] if place < len(names) else None
            if name is None:
                self._source.fail(
                    argument, f"{self.what} expected at most {len(names)} positional arguments, got {len(args)}"
                )
            if name.startswith("*"):
                self.rest.append(argument)
            else:
                self._given[name] = argument
                place += 1

    def _bind_keyword(self, keyword: ast.keyword, name: str, known: Sequence[str], renamed: Mapping[str, str]) -> None:
        target = name if name in known else renamed.get(name, name)
        if target not in known:
            self._source.fail(keyword, f"{self.what} has no argument {name}{suggestion(name, known) or _listed(known)}")
        if target in self._given:
            self._source.fail(keyword.value, f"{self.what} got the argument {name} twice")
        self._given[target] = keyword.value

    def get(self, name: str) -> ast.expr | None:
        """The expression for a parameter; `None` if it was not given."""
        return self._given.get(name)

    def first(self, *names: str) -> ast.expr | None:
        """The expression for the first of several parameters that was given."""
        return next((self._given[name] for name in names if name in self._given), None)

    def require(self, name: str) -> ast.expr:
        """The expression for a parameter; `TVMScriptError` if it was not given."""
        found = self._given.get(name)
        if found is None:
            self._source.fail(self.node, f"{self.what} expected the argument {name}")
        return found


def _listed(names: Sequence[str]) -> str:
    return f"; it has {', '.join(names)}" if names else "; it has none"
