"""What the functions of one llvm module share: declarations of outside functions, and text constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    ArrayAttr,
    DictionaryAttr,
    LocationAttr,
    ModuleOp,
    StringAttr,
    UnitAttr,
    i8,
)
from xdsl.ir import Attribute, Operation, Region

from lowering.llvm.builder.function_builder import EXTERNAL, INTERNAL, function_op

VOID = llvm.LLVMVoidType()
_NO_UNWIND = StringAttr("nounwind")
_PLAIN: Mapping[str, Attribute] = {"passthrough": ArrayAttr([_NO_UNWIND])}
_PURE: Mapping[str, Attribute] = {
    "passthrough": ArrayAttr([_NO_UNWIND, StringAttr("willreturn"), StringAttr("memory(none)")])
}
_ALLOCATION: Mapping[str, Attribute] = {
    "passthrough": ArrayAttr([_NO_UNWIND, StringAttr("willreturn"), StringAttr("memory(inaccessiblemem: readwrite)")]),
    "res_attrs": ArrayAttr([DictionaryAttr({"llvm.noalias": UnitAttr()})]),
}


class ModuleBuilder:
    """An llvm module in the making."""

    def __init__(self, vector_bits: int = 128, extensions: frozenset[str] = frozenset()) -> None:
        """`vector_bits`: of registers, 256 where x86 has AVX2 and 512 with AVX-512; `extensions`: what else it has.

        LLVM stops the process at an instruction that a machine lacks, while it splits wide vectors for any.
        """
        self.vector_bits = vector_bits
        self.avx512 = vector_bits >= 512 and "avx512dq" in extensions
        self.extensions = extensions
        self.ops: list[Operation] = []
        self.defined: set[str] = set()
        self._declared: dict[str, llvm.LLVMFunctionType] = {}
        self._texts: dict[str, str] = {}

    def finish(self) -> ModuleOp:
        """The module: text constants and declarations first."""
        return ModuleOp([*self._heads(), *self.ops])

    def _heads(self) -> list[Operation]:
        heads: list[Operation] = []
        for text, name in self._texts.items():
            size = len(text.encode())
            type_ = llvm.LLVMArrayType(size, i8)
            heads.append(
                llvm.GlobalOp(
                    type_, name, "private", constant=True, value=StringAttr(text), unnamed_addr=2, alignment=1
                )
            )
        return heads

    def text(self, text: str) -> str:
        """The symbol of a constant that holds `text` and a zero byte; equal texts share it."""
        return self._texts.setdefault(text + "\0", f"text.{len(self._texts)}")

    def declare(
        self,
        name: str,
        parameters: Sequence[Attribute],
        result: Attribute | None,
        pure: bool = False,
        allocates: bool = False,
    ) -> llvm.LLVMFunctionType:
        """Declares an outside function once.

        A `pure` one only computes; one that `allocates` touches no memory that others see, and gives memory of its own.

        Raises `ValueError` if it is declared already with another type.
        """
        known = self._declared.get(name)
        if known is None:
            known = self._declared[name] = llvm.LLVMFunctionType(parameters, result)
            properties = _PURE if pure else _ALLOCATION if allocates else _PLAIN
            self.ops.append(function_op(name, known, EXTERNAL, properties))
        elif known.inputs.data != tuple(parameters) or known.output != (VOID if result is None else result):
            used = llvm.LLVMFunctionType(parameters, result)
            raise ValueError(f'function "{name}" is used as {known} and as {used}')
        return known

    def declare_variadic(self, name: str, type_: llvm.LLVMFunctionType) -> None:
        """Declares an outside function with a variable number of arguments once."""
        if self._declared.setdefault(name, type_) is type_ and name not in self.defined:
            self.defined.add(name)
            self.ops.append(function_op(name, type_, EXTERNAL, {}))

    def define(
        self,
        name: str,
        parameters: Sequence[Attribute],
        result: Attribute | None,
        body: Region,
        *,
        internal: bool,
        properties: Mapping[str, Attribute],
        location: LocationAttr = UNKNOWN_LOC,
    ) -> None:
        """Adds a function with a body."""
        self.defined.add(name)
        linkage = INTERNAL if internal else EXTERNAL
        type_ = llvm.LLVMFunctionType(parameters, result)
        self.ops.append(function_op(name, type_, linkage, properties, body, location))
