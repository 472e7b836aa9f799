"""External models, as in MLIR: implementations of what an op declares that stand apart from the op.

An analysis imports the ops that it looks into. An op whose verifier, effects or patterns need the analysis names the
module in an index; the module attaches the implementation when it is loaded, which is when it is needed first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Generic, TypeVar

ModelT = TypeVar("ModelT")


class ExternalModels(Generic[ModelT]):
    """The implementations of one interface, by the names of ops or traits."""

    def __init__(self, index: Mapping[str, str]):
        """`index` has the module of each implementation."""
        self._index = index
        self._models: dict[str, ModelT] = {}

    def attach(self, *names: str) -> Callable[[ModelT], ModelT]:
        """Registers an implementation for ops or traits of these names, which are in the index."""

        def register(model: ModelT) -> ModelT:
            self._models.update(dict.fromkeys(names, model))
            return model

        return register

    def of(self, name: str) -> ModelT:
        """The implementation for an op or trait."""
        found = self._models.get(name)
        if found is None:
            import_module(self._index[name])
            found = self._models[name]
        return found

    def names(self) -> tuple[str, ...]:
        """The names of the index."""
        return tuple(self._index)
