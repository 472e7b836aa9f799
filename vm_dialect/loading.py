"""Where compiled code comes from: the hook through which machine code of an executable becomes functions.

This package does not know how to link machine code. A loader does; the package `lowering` provides the default one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Self, TypeAlias

import tvm_ffi

from vm_dialect.arguments import Signature, with_names
from vm_dialect.callee import Callee, have_names, suggest_conversion
from vm_dialect.executable import Executable
from vm_dialect.executable.model import FunctionInfo
from vm_dialect.process import ThreadLimit


class NativeFunction(Callee, tvm_ffi.Function):
    """A native function of an executable, to be called from Python; arguments may be given by name."""

    @classmethod
    def of(cls, function: tvm_ffi.Function, info: FunctionInfo, signature: Signature | None = None) -> Self:
        """The function with what callers are told of it; it replaces `function`, which is empty then."""
        made = cls.__new__(cls)
        made.__move_handle_from__(function)
        made.describe(info, signature)
        return made

    def __call__(self, /, *arguments: Any, **named: Any) -> Any:
        """Calls the function with values, tensors of any DLPack library, or sequences of them.

        Arguments by name are keywords, or one dictionary. A tuple is a `Results` if the model names its results.
        """
        if named or have_names(arguments):
            arguments = self.in_order(arguments, named)
        try:
            result = self._run(arguments)
        except TypeError as error:
            suggest_conversion(error)
            raise
        return with_names(result, self.result_names) if self.result_names else result

    def _run(self, arguments: Sequence[Any]) -> Any:
        try:
            return _CALL(self, *arguments)
        except (BufferError, TypeError, ValueError) as error:
            if not self.arguments.were_refused(arguments, error):
                raise
        return _CALL(self, *self.arguments.converted(arguments))


_CALL = tvm_ffi.Function.__call__


class LimitedFunction(NativeFunction):
    """A native function whose loops have so many threads at most."""

    limit: ThreadLimit

    @classmethod
    def under(
        cls, limit: ThreadLimit, function: tvm_ffi.Function, info: FunctionInfo, signature: Signature | None
    ) -> Self:
        """The function under a limit; it replaces `function`, which is empty then."""
        made = cls.of(function, info, signature)
        made.limit = limit
        return made

    def _run(self, arguments: Sequence[Any]) -> Any:
        return self.limit.call(super()._run, arguments)


@dataclass(frozen=True)
class LoadedCode:
    """Compiled functions, ready to be called; they keep their code alive."""

    functions: Mapping[str, tvm_ffi.Function] = field(default_factory=dict[str, tvm_ffi.Function])
    """Native functions of the executable by name."""
    kernels: Mapping[str, Callable[..., Any]] = field(default_factory=dict[str, Callable[..., Any]])
    """Kernels by name, called with sizes, tensors and scalars."""
    sites: Sequence[tuple[str, str, str]] = ()
    """Of each call that `OBSERVE` hears of: the function it is in, what it calls, and what it was made from."""
    limit_threads: Callable[[int], int] | None = None
    """Limits the threads of loops that the calling thread begins, 0 for no limit, and gives the limit before; `None` if
    the loader cannot."""


Loader: TypeAlias = Callable[[Executable, Mapping[str, tvm_ffi.Function]], LoadedCode]
"""Loads the native objects of an executable; packed functions come from the mapping before the tvm-ffi registry.

`RuntimeError` if there is no object for this machine, `ValueError` for a packed function that is nowhere.
"""

_PROVIDER = "lowering.vm_to_llvm.loading"
"""The module with `load_executable`, the default loader, if it is installed."""


def default_loader() -> Loader:
    """The loader of the package `lowering`; `RuntimeError` if that is not installed."""
    try:
        return import_module(_PROVIDER).load_executable
    except ImportError as error:
        raise RuntimeError(
            "the executable holds compiled code, which needs a loader: install the package 'lowering' or pass loader="
        ) from error
