"""Inference of all types of a function in one walk; loops to a fixpoint."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from xdsl.ir import Block, Operation
from xdsl.utils.exceptions import VerifyException

from lowering.diagnostics import Finding
from lowering.relax.result_types import ResultTypes
from relax_dialect.ops.control_flow import visible_yields
from relax_dialect.ops.loop_header import LoopOp, final_types
from relax_dialect.ops.loops import ForOp
from relax_dialect.ops.structure import ClosureOp, FuncOp, ReturnOp
from relax_dialect.scope import symbols_witnessed
from relax_dialect.struct_info.base import StructInfo, as_struct_infos
from relax_dialect.struct_info.erase import erase_symbols
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.join import join
from relax_dialect.struct_info.match import Mismatch
from relax_dialect.struct_info.refine import refine
from relax_dialect.struct_info.types import ObjectType, TupleType

MOST_NESTED = 4
"""How many levels of tuples and functions are inferred of the result of a recursive function, if none are declared."""


class StructInfoInference:
    """Sets the types of results, carried values and function values to what can be inferred."""

    def __init__(self, recursive: Collection[str] = ()) -> None:
        """`recursive` are the functions that call each other or themselves, directly or not."""
        self._recursive = recursive
        self.findings: list[Finding] = []
        """What can never be right in the function that was inferred last."""
        self._types = ResultTypes()

    def function(self, func: FuncOp) -> bool:
        """Infers everything in a function; whether its result type has changed. `findings` are then those of it."""
        self.findings.clear()
        old = func.function_type
        self._block(func.body.block)
        ret = _returned(func, self._types.declared(func, 0, old.ret), func.sym_name.data in self._recursive)
        func.function_type = with_result(old, ret)
        return func.function_type != old

    def _block(self, block: Block) -> None:
        for op in block.ops:
            try:
                self._visit(op)
            except (VerifyException, Mismatch, ValueError) as error:
                self.findings.append(Finding.at(op, str(error)))

    def _visit(self, op: Operation) -> None:
        if isinstance(op, LoopOp):
            self._loop(op)
        elif isinstance(op, ClosureOp):
            self._closure(op)
        else:
            for region in op.regions:
                for block in region.blocks:
                    self._block(block)
            self._types.infer(op)

    def _closure(self, op: ClosureOp) -> None:
        """A recursive closure is walked again for as long as its result becomes more precise."""
        declared = self._types.declared(op, 0, op.function_type)
        known = declared if isinstance(declared, FuncType) else op.function_type
        while True:
            if op.itself is not None:
                self._types.set_types([op.itself], [known])
            self._block(op.body.block)
            ret = _returned(op, known.ret, op.itself is not None)
            if ret == known.ret:
                break
            known = with_result(known, ret)
        self._types.set_types([op.result], [known])

    def _loop(self, op: LoopOp) -> None:
        """The carried values have what first values and yielded values have in common.

        It is assumed at first that a loop carries what it begins with; in each round facts are given up that the body
        does not keep. If the body cannot be right under an assumption, nothing is assumed but what is declared.
        """
        declared = [self._types.declared(op, index, info) for index, info in enumerate(_carried_types(op))]
        firsts = as_struct_infos(value.type for value in op.inits)
        assumed = [
            refine(info, erase_symbols(known, _own_symbols(op))) for info, known in zip(declared, firsts, strict=True)
        ]
        before = len(self.findings)
        while True:
            kept = self._iteration(op, declared, assumed)
            if len(self.findings) > before and assumed != declared:
                del self.findings[before:]
                assumed = declared
            elif kept == assumed:
                break
            else:
                assumed = kept
        hidden = _own_symbols(op)[len(op.symbols) :]
        self._types.set_types(op.res, final_types(op.regions[0].block, op.leading, op.symbol_names, hidden))
        op.verify_()

    def _iteration(self, op: LoopOp, declared: Sequence[StructInfo], assumed: Sequence[StructInfo]) -> list[StructInfo]:
        """What is left of the assumed types of the carried values after an iteration."""
        for region in op.regions:
            self._types.set_types(op.carried(region.block), assumed)
            self._block(region.block)
        yields = [erase_symbols(info, _own_symbols(op)) for info in visible_yields(op.regions[-1])]
        return [join(was, refine(info, known)) for was, info, known in zip(assumed, declared, yields, strict=True)]


def _returned(func: FuncOp | ClosureOp, declared: StructInfo, is_recursive: bool) -> StructInfo:
    """The declared result, refined by what the body returns as far as that can be said outside.

    A recursive function may return something around its own result, so that each round would say more.
    """
    block = func.body.block
    terminator = block.last_op
    if not isinstance(terminator, ReturnOp):
        return declared
    (info,) = as_struct_infos([terminator.value.type])
    inner = {name for op in block.ops for name in symbols_witnessed(op)}
    known = erase_symbols(info, inner)
    return refine(declared, _outermost(known, MOST_NESTED) if is_recursive else known)


def _outermost(info: StructInfo, levels: int) -> StructInfo:
    """What a type says of the outer levels of tuples and results of functions; what is inside is an object."""
    if isinstance(info, TupleType) and info.fields:
        return TupleType(_outermost(field, levels - 1) for field in info.fields) if levels else ObjectType()
    if isinstance(info, FuncType):
        return with_result(info, _outermost(info.ret, levels - 1)) if levels else ObjectType()
    return info


def _carried_types(op: LoopOp) -> tuple[StructInfo, ...]:
    return as_struct_infos(argument.type for argument in op.carried(op.regions[0].block))


def _own_symbols(op: LoopOp) -> tuple[str, ...]:
    """The symbols that each iteration binds anew; that of the counter comes last."""
    counter = op.counter_symbol if isinstance(op, ForOp) else None
    return op.symbol_names if counter is None else (*op.symbol_names, counter.data)


def with_result(func: FuncType, ret: StructInfo) -> FuncType:
    """A function type with another result; what is not known about its parameters stays unknown."""
    params = None if func.opaque else func.params
    return FuncType(params, ret, pure=func.pure, symbols=func.symbols, derive=func.derive)
