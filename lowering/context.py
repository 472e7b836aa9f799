"""Contexts of our dialects and xDSL's, which import what a text has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from typing_extensions import override
from xdsl.context import Context
from xdsl.ir import Attribute, Operation, TypeAttribute
from xdsl.universe import XDSL_UNIVERSE

from lowering.registry import dialect_factories
from relax_dialect.loading import ATTRIBUTES, attribute_class, op_classes


def make_context() -> Context:
    """A context that knows our dialects and xDSL's; a dialect is imported when its first op or type is met.

    Of the relax dialect, which has most ops, only the modules of the ops that are met are imported.
    """
    ctx = _OpByOpContext()
    for name, factory in (XDSL_UNIVERSE.all_dialects | dialect_factories()).items():
        ctx.register_dialect(name, factory)
    return ctx


class _OpByOpContext(Context):
    """A context that loads single ops and types of the relax dialect until somebody wants the whole dialect.

    xDSL loads dialects as a whole, which takes longer here than to parse a small program.
    """

    @override
    def clone(self) -> Context:
        return _OpByOpContext(
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
        known = op_classes()
        self._load_relax(
            [each for each in (name, *(f"{dialect}.{name}" for dialect in dialect_stack)) if each in known], ()
        )
        return super().get_optional_op(name, dialect_stack=dialect_stack)

    @override
    def get_optional_type(self, name: str) -> type[TypeAttribute] | None:
        self._load_relax((), [name] if name in ATTRIBUTES else ())
        return super().get_optional_type(name)

    @override
    def get_optional_attr(self, name: str) -> type[Attribute] | None:
        self._load_relax((), [name] if name in ATTRIBUTES else ())
        return super().get_optional_attr(name)

    def _load_relax(self, ops: Iterable[str], attributes: Iterable[str]) -> None:
        """Loads those of these ops, attributes and types that have not been loaded."""
        for name in ops:
            if name not in self._loaded_ops:
                self.load_op(op_classes()[name])
        for name in attributes:
            if name not in self._loaded_attrs and name not in self._loaded_types:
                self.load_attr_or_type(attribute_class(name))
