"""Deferred functions at run time: each is compiled once for every combination of types that it is called with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from threading import RLock
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from lowering.compiler.build import build
from lowering.diagnostics import InvalidModule
from lowering.parsing import parse_module
from lowering.relax.deferred.options import Options
from lowering.relax.deferred.specialize import (
    Key,
    for_kinds,
    for_values,
    kind_key,
    needs_values,
    run_time_error,
    value_key,
)
from lowering.verify.module import verify_module
from relax_dialect.ops.structure import FuncOp
from vm_dialect import VirtualMachine

MAX_KEPT = 256
"""Compiled functions that one deferred function keeps; the oldest goes first."""


class DeferredFunction:
    """A function whose parameters have types that are not wholly known."""

    def __init__(self, text: str):
        """Reads and verifies the text; raises what a module that is read raises."""
        self._options = Options.of(text)
        module = parse_module(text, "<deferred>")
        verify_module(module)
        self._template = next(op for op in module.ops if isinstance(op, FuncOp))
        self._compiled: dict[Key, Callable[..., Any]] = {}
        self._dependent: set[Key] = set()
        """Kinds of arguments for which ranks follow from their shapes."""
        self._lock = RLock()

    def __call__(self, arguments: Sequence[Any]) -> Any:
        """Calls it; `TypeError` or `ValueError` if an op cannot take the arguments."""
        key: Key = tuple(map(kind_key, arguments))
        if key in self._dependent:
            key = tuple(map(value_key, arguments))
        function = self._compiled.get(key)
        if function is None:
            with self._lock:
                function = self._compiled.get(key) or self._compile(arguments, key)
        return function(*arguments)

    def _compile(self, arguments: Sequence[Any], key: Key) -> Callable[..., Any]:
        func = for_kinds(self._template, arguments)
        if needs_values(func):
            self._dependent.add(tuple(map(kind_key, arguments)))
            func, key = for_values(self._template, arguments), tuple(map(value_key, arguments))
        function = _machine_code(func, self._options)
        while len(self._compiled) >= MAX_KEPT:
            del self._compiled[next(iter(self._compiled))]
        self._compiled[key] = function
        return function


def _machine_code(func: FuncOp, options: Options) -> Callable[..., Any]:
    module = func.parent_op()
    if not isinstance(module, ModuleOp):
        raise ValueError("a deferred function has to be in a module")
    try:
        built = build(module, target=options.target, opt_level=options.opt_level)
        return VirtualMachine(built)[func.sym_name.data]
    except InvalidModule as error:
        raise run_time_error(error) from error


_finding = RLock()


@lru_cache(maxsize=4096)
def deferred_function(text: str) -> DeferredFunction:
    """The function that a text is."""
    return DeferredFunction(text)


def run_deferred(text: str, *arguments: Any) -> Any:
    """Calls the function that a text is, compiled for the arguments."""
    with _finding:  # threads that miss in the cache at once would get a function each, and compile twice
        function = deferred_function(text)
    return function(arguments)
