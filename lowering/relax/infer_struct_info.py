"""`infer-struct-info`: result types are what can be inferred from operands, in one walk, loops to a fixpoint."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import singledispatchmethod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from lowering.diagnostics import Finding, refuse
from lowering.relax.call_graph import CallGraph
from relax_dialect.inference import InfersResultTypes
from relax_dialect.ops.binding import GuardOp, MatchCastOp
from relax_dialect.ops.call_tir import CallTIRInplaceOp, DestinationPassing
from relax_dialect.ops.callees import function_value_type
from relax_dialect.ops.calls import CallOp, MakeClosureOp
from relax_dialect.ops.control_flow import ForOp, IfOp, join_yields, visible_yields
from relax_dialect.ops.dataflow import DataflowOp, FusedOp, fused_types, visible_types
from relax_dialect.ops.signature import LoopOp, final_types
from relax_dialect.ops.structure import ClosureOp, FuncOp, ReturnOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.scope import called_functions, prover_at, symbols_witnessed
from relax_dialect.struct_info.join import join, refine
from relax_dialect.struct_info.match import Mismatch, Verdict, is_subtype, partial_application
from relax_dialect.struct_info.symbols import erase_symbols, free_symbols
from relax_dialect.struct_info.types import (
    FuncType,
    ObjectType,
    ShapeType,
    StructInfo,
    TensorType,
    TupleType,
    as_struct_infos,
)


class ResultTypes:
    """Sets the results of ops to the types that can be inferred.

    A type that the program declares, as of a `relax.match_cast`, only gets what it leaves open. As an op may be visited
    several times, what was declared at first is remembered.
    """

    def __init__(self) -> None:
        self._declared: dict[tuple[Operation, int], StructInfo] = {}

    def declared(self, op: Operation, index: int, info: StructInfo) -> StructInfo:
        """What was declared at position `index` of `op` when it was first asked for; `info` is what is there now."""
        return self._declared.setdefault((op, index), info)

    def set_types(self, values: Iterable[SSAValue], types: Iterable[StructInfo]) -> None:
        """Gives each value its type."""
        for value, info in zip(tuple(values), types, strict=True):
            if value.type != info:
                Rewriter.replace_value_with_new_type(value, info)

    @singledispatchmethod
    def infer(self, op: Operation) -> None:
        """Sets the types of the results; those of loops and closures are left alone.

        Raises `VerifyException`, `Mismatch` or `ValueError` if the op can never be right.
        """
        if not op.regions:
            op.verify_()

    def _settle(self, op: Operation, inferred: Sequence[StructInfo]) -> None:
        """Results that say what is inferred; what they declare in other words stays, if it follows."""
        prover = prover_at(op)
        types = [
            refine(declared, info) if is_subtype(info, declared, prover) is Verdict.YES else info
            for declared, info in zip(as_struct_infos(op.result_types), inferred, strict=True)
        ]
        self.set_types(op.results, types)

    @infer.register
    def _(self, op: InfersResultTypes) -> None:
        if isinstance(op, ConstantOp) and op.weight_name is not None:
            return
        inferred = op.infer_result_types(op.operand_types, op.properties, prover_at(op))
        if len(inferred) == len(op.results):
            self._settle(op, inferred)

    @infer.register
    def _(self, op: CallOp) -> None:
        if (outcome := op.outcome()) is not None:
            self._settle(op, [outcome.ret])

    @infer.register
    def _(self, op: MakeClosureOp) -> None:
        if (func := function_value_type(op, op.callee)) is not None:
            captured = as_struct_infos(op.operand_types)
            self._settle(op, [partial_application(func, captured, prover_at(op))])

    @infer.register
    def _(self, op: MatchCastOp) -> None:
        (known,) = as_struct_infos([op.value.type])
        self.set_types([op.result], [refine(self.declared(op, 0, op.result.type), known)])
        op.verify_()

    @infer.register
    def _(self, op: GuardOp) -> None:
        self.set_types([op.result], as_struct_infos([op.value.type]))

    @infer.register
    def _(self, op: DestinationPassing) -> None:
        # What is declared, with dimensions that the operand with the shape says; in place, the argument's
        # type.
        types = [self.declared(op, index, info) for index, info in enumerate(op.res.types)]
        for index, info in enumerate(op.shapes.types):
            if isinstance(info, ShapeType):
                types[index] = refine(types[index], TensorType(info.shape))
        if isinstance(op, CallTIRInplaceOp):
            for index, target in enumerate(op.targets):
                if target >= 0:
                    (types[index],) = as_struct_infos([op.arguments[target].type])
        self.set_types(op.res, types)
        op.verify_()

    @infer.register
    def _(self, op: DataflowOp) -> None:
        self.set_types(op.results, visible_types(op.body.block))

    @infer.register
    def _(self, op: FusedOp) -> None:
        self.set_types(op.res, fused_types(op.body))

    @infer.register
    def _(self, op: IfOp) -> None:
        joined = join_yields(op.then_region, op.else_region)
        if len(joined) == len(op.res):
            # Types that name a symbol which only the op's own results witness say more than any join.
            own = set(op.result_witnesses)
            declared = as_struct_infos(op.res.types)
            pairs = zip(declared, joined, strict=True)
            self.set_types(op.res, [refine(old, new) if free_symbols(old) & own else new for old, new in pairs])
        op.verify_()


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
            # A recursive closure is walked again for as long as its result becomes more precise.
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
        else:
            for region in op.regions:
                for block in region.blocks:
                    self._block(block)
            self._types.infer(op)

    def _loop(self, op: LoopOp) -> None:
        """The carried values have what first values and yielded values have in common.

        It is assumed at first that a loop carries what it begins with; in each round facts are given up that the body
        does not keep. If the body cannot be right under an assumption, nothing is assumed but what is declared.
        """
        declared = [
            self._types.declared(op, index, info)
            for index, info in enumerate(as_struct_infos(argument.type for argument in op.carried(op.regions[0].block)))
        ]
        firsts = as_struct_infos(value.type for value in op.inits)
        assumed = [
            refine(info, erase_symbols(known, _own_symbols(op))) for info, known in zip(declared, firsts, strict=True)
        ]
        before = len(self.findings)
        while True:
            # What is left of the assumed types of the carried values after an iteration.
            for region in op.regions:
                self._types.set_types(op.carried(region.block), assumed)
                self._block(region.block)
            yields = [erase_symbols(info, _own_symbols(op)) for info in visible_yields(op.regions[-1])]
            kept = [join(was, refine(info, known)) for was, info, known in zip(assumed, declared, yields, strict=True)]
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


def _own_symbols(op: LoopOp) -> tuple[str, ...]:
    """The symbols that each iteration binds anew; that of the counter comes last."""
    counter = op.counter_symbol if isinstance(op, ForOp) else None
    return op.symbol_names if counter is None else (*op.symbol_names, counter.data)


def with_result(func: FuncType, ret: StructInfo) -> FuncType:
    """A function type with another result; what is not known about its parameters stays unknown."""
    params = None if func.opaque else func.params
    return FuncType(params, ret, pure=func.pure, symbols=func.symbols, derive=func.derive)


class InferStructInfoPass(ModulePass):
    """Infers the types of all values anew, after a rewrite has refined some of them.

    Before:

    ```mlir
    relax.func private @f[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<*, f32> { ... relax.return %x }
    ...
    %y = relax.call @f(%z) : !relax.tensor<*, f32>     // %z : !relax.tensor<[4], f32>
    %e = relax.exp %y : !relax.tensor<*, f32>
    ```

    After:

    ```mlir
    relax.func private @f[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> { ... relax.return %x }
    ...
    %y = relax.call @f(%z) : !relax.tensor<[4], f32>
    %e = relax.exp %y
    ```

    * Results of operators, tuples, dataflow regions, branches and function values follow from what they are made of;
      of a call they are what the callee returns for these arguments.
    * Types that a program declares (results of functions and closures, of `match_cast` and `call_tir` with a shape)
      get what they leave open, and keep what they say: it is checked at run time.
    * Loops carry what their first and yielded values have in common.
    * Callees come before callers; functions that call each other are inferred until nothing changes. What they return
      is inferred to a depth of four tuples, since a function may return a tuple around its own result.

    Parameters keep their types. Nothing is moved or removed, and no check is lost. Refuses ops that can never be right,
    all at once, each at its position. Idempotent.
    """

    name = "infer-struct-info"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Infers every function."""
        functions = {func.sym_name.data: func for func in op.ops if isinstance(func, FuncOp)}
        calls = {name: _callees(func, functions) for name, func in functions.items()}
        inference = StructInfoInference(CallGraph.of(op).recursive())
        pending, findings = deque(_callees_first(calls)), dict[str, tuple[Finding, ...]]()
        while pending:
            name = pending.popleft()
            changed = inference.function(functions[name])
            findings[name] = tuple(inference.findings)
            if changed:
                pending.extend(user for user in findings if name in calls[user] and user not in pending)
        refuse(found for name in functions for found in findings[name])


def _callees(func: FuncOp, functions: Mapping[str, FuncOp]) -> tuple[str, ...]:
    names = (name for op in func.walk() for name in called_functions(op))
    return tuple(dict.fromkeys(name for name in names if name in functions))


def _callees_first(calls: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """The functions in postorder of the call graph."""
    entered: set[str] = set()
    for root in calls:
        stack = [(root, iter(calls[root]))] if root not in entered else []
        entered.add(root)
        while stack:
            name, callees = stack[-1]
            callee = next((each for each in callees if each not in entered), None)
            if callee is None:
                stack.pop()
                yield name
            else:
                entered.add(callee)
                stack.append((callee, iter(calls[callee])))
