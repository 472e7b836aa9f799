"""The functions of the module that is being built: names, signatures, and each function only once."""

from __future__ import annotations

from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp, StringAttr

from relax_dialect.builder.errors import BuilderError
from relax_dialect.ops.prim_func import prim_func_type
from relax_dialect.ops.structure import FuncOp
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.symbols import fresh_name
from relax_dialect.symbols import symbol_name
from tir_dialect.analysis.fingerprint import Fingerprint, prim_func_fingerprint
from tir_dialect.ops.function import PrimFuncOp

AnyFunc: TypeAlias = FuncOp | PrimFuncOp


class FunctionTable:
    """The functions of a module by name, with those that are announced or open and not in the module yet."""

    def __init__(self, module: ModuleOp):
        self.module = module
        self._functions: dict[str, AnyFunc] = {}
        self._types: dict[str, FuncType | None] = {}
        self._names: set[str] = set()
        self._declared: set[str] = set()
        self._fingerprints: dict[str, str] = {}
        """The name of a function by what it is."""
        self._new: list[str] = []
        """Functions that are not among `_fingerprints` yet: most programs never ask."""
        for op in module.ops:
            if (name := symbol_name(op)) is not None:
                self._names.add(name)
            if isinstance(op, FuncOp | PrimFuncOp):
                self._enter(op)

    # Names and look-up

    def unique_name(self, base: str) -> str:
        """A name that no function has: `base`, `base_1`, ..."""
        return fresh_name(base, self._names)

    def find(self, name: str) -> AnyFunc | None:
        """The function of that name, if it is in the module."""
        return self._functions.get(name)

    def type_of(self, name: str) -> FuncType:
        """What is known of a relax function, which may be open or announced; `BuilderError` if that is too little."""
        if name not in self._types:
            found = self._functions.get(name)
            what = "not defined: declare it before it is called" if found is None else f"a '{found.name}'"
            raise BuilderError(f"expected the relax function @{name}, but it is {what}")
        known = self._types[name]
        if known is None:
            raise BuilderError(f"@{name} is called before its end, so its result type has to be given: ret=...")
        return known

    def value_type(self, name: str) -> FuncType:
        """The type of a relax function or PrimFunc as a value; `BuilderError` if there is none, or too little known."""
        found = self._functions.get(name)
        return prim_func_type(found) if isinstance(found, PrimFuncOp) else self.type_of(name)

    # Change

    def declare(self, name: str, info: FuncType) -> None:
        """Announces a relax function that is defined later; `BuilderError` if the name is taken."""
        self._reserve(name)
        self._declared.add(name)
        self._types[name] = info

    def open(self, name: str, info: FuncType | None) -> None:
        """Reserves the name of a relax function that is being built; its type is known if its result's is.

        `BuilderError` if the name is taken, or was declared with another type.
        """
        if name not in self._declared:
            self._reserve(name)
            self._types[name] = info
            return
        declared = self._types[name]
        if info is not None and info != declared:
            raise BuilderError(f"@{name} was declared as {declared}, got {info}")
        self._declared.discard(name)

    def _reserve(self, name: str) -> None:
        if name in self._names:
            raise BuilderError(f"there is a function @{name} already; choose another name or use get_unique_name")
        self._names.add(name)

    def forget(self, name: str) -> None:
        """Gives a reserved name back, as the function did not come to its end."""
        self._names.discard(name)
        self._types.pop(name, None)

    def define(self, func: AnyFunc) -> None:
        """Appends a function under its name."""
        self.module.body.block.add_op(func)
        self._enter(func)

    def add(self, func: AnyFunc, name: str | None = None) -> str:
        """Adds a function and gives its name; one that is there already, but for names, is not added again.

        A name that is taken gets a number.
        """
        func = func.clone() if func.parent is not None else func
        func.verify()
        while self._new:
            self._fingerprints.setdefault(_fingerprint(self._functions[self._new[0]]), self._new.pop(0))
        if (known := self._fingerprints.get(_fingerprint(func))) is not None:
            return known
        unique = self.unique_name(name or func.sym_name.data)
        func.sym_name = StringAttr(unique)
        self.define(func)
        return unique

    def update(self, name: str, func: AnyFunc) -> None:
        """Puts a function in the place of another; `BuilderError` if there is none of that name."""
        old = self._functions.get(name)
        if old is None:
            raise BuilderError(f"there is no function @{name} to be updated")
        func = func.clone() if func.parent is not None else func
        func.sym_name = StringAttr(name)
        self._fingerprints = {key: other for key, other in self._fingerprints.items() if other != name}
        self._types.pop(name, None)
        self.module.body.block.insert_op_after(func, old)
        old.detach()
        old.erase()
        self._enter(func)

    def _enter(self, func: AnyFunc) -> None:
        name = func.sym_name.data
        self._names.add(name)
        self._functions[name] = func
        if isinstance(func, FuncOp):
            self._types[name] = func.function_type
        self._new.append(name)


def _fingerprint(func: AnyFunc) -> str:
    return prim_func_fingerprint(func) if isinstance(func, PrimFuncOp) else Fingerprint()(func, ("sym_name",))
