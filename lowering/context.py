"""Contexts of our dialects, xDSL's and those of extensions, which import what a text has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from typing_extensions import override
from xdsl.context import Context
from xdsl.ir import Attribute, Operation, TypeAttribute
from xdsl.universe import XDSL_UNIVERSE

from lowering.registry import dialect_factories, installed_dialects
from relax_dialect.loading import ATTRIBUTES, attribute_class, op_classes

FoundT = TypeVar("FoundT")


def make_context() -> Context:
    """A context that knows our dialects and xDSL's, and those of installed extensions; a dialect is imported when its
    first op or type is met.

    Of the relax dialect, which has most ops, only the modules of the ops that are met are imported.
    """
    ctx = CompilerContext()
    for name, factory in (XDSL_UNIVERSE.all_dialects | dialect_factories()).items():
        ctx.register_dialect(name, factory)
    return ctx


class CompilerContext(Context):
    """A context that loads single ops and types of the relax dialect until somebody wants the whole dialect, and looks
    among installed extensions for what it does not know.

    xDSL loads dialects as a whole, which takes longer here than to parse a small program.
    """

    @override
    def clone(self) -> Context:
        return CompilerContext(
            self.allow_unregistered,
            self._loaded_dialects.copy(),
            self._loaded_ops.copy(),
            self._loaded_attrs.copy(),
            self._loaded_types.copy(),
            self._registered_dialects.copy(),
        )

    @override
    def load_registered_dialect(self, name: str) -> None:
        if name == "relax":
            self._load_relax(op_classes(), ATTRIBUTES)
            self._loaded_dialects[name] = self._registered_dialects[name]()
        else:
            super().load_registered_dialect(name)

    @override
    def get_optional_op(self, name: str, *, dialect_stack: Sequence[str] = ()) -> type[Operation] | None:
        if (known := self._loaded_ops.get(name)) is not None:  # for nearly every op of a text
            return known
        names = (name, *(f"{dialect}.{name}" for dialect in dialect_stack))
        self._load_relax([each for each in names if self._may_be_relax(each) and each in op_classes()], ())
        return self._known(lambda: super(CompilerContext, self).get_optional_op(name, dialect_stack=dialect_stack))

    @override
    def get_optional_type(self, name: str) -> type[TypeAttribute] | None:
        self._load_relax((), [name] if name in ATTRIBUTES else ())
        return self._known(lambda: super(CompilerContext, self).get_optional_type(name))

    @override
    def get_optional_attr(self, name: str) -> type[Attribute] | None:
        self._load_relax((), [name] if name in ATTRIBUTES else ())
        return self._known(lambda: super(CompilerContext, self).get_optional_attr(name))

    def _may_be_relax(self, name: str) -> bool:
        """Whether an op may be of the relax dialect, or of none that the context knows: an extension may have it."""
        dialect = name.partition(".")[0]
        return dialect == "relax" or dialect not in self._registered_dialects

    def _load_relax(self, ops: Iterable[str], attributes: Iterable[str]) -> None:
        """Loads those of these ops, attributes and types that have not been loaded."""
        for name in ops:
            if name not in self._loaded_ops:
                self.load_op(op_classes()[name])
        for name in attributes:
            if name not in self._loaded_attrs and name not in self._loaded_types:
                self.load_attr_or_type(attribute_class(name))

    def _known(self, find: Callable[[], FoundT | None]) -> FoundT | None:
        """What is found, after a look at what is installed if need be; what is not registered comes last."""
        allowed, self.allow_unregistered = self.allow_unregistered, False
        try:
            found = find()
            if found is None and self._extended():
                found = find()
        finally:
            self.allow_unregistered = allowed
        return find() if found is None and allowed else found

    def _extended(self) -> bool:
        """Whether there are dialects that the context has not known until now."""
        new = {name: make for name, make in installed_dialects().items() if name not in self._registered_dialects}
        for name, factory in new.items():
            self.register_dialect(name, factory)
        return bool(new)
