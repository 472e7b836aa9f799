"""The call graph of a module: reachable functions, recursive ones; and calls that may be rewritten, and are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from lowering.locations import inherit_location
from relax_dialect.ops.calls import CallOp, MakeClosureOp
from relax_dialect.ops.shapes import TupleGetOp, TupleOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.scope import symbol_name
from relax_dialect.struct_info.types import StructInfo, TupleType
from tir_dialect.fast_ops import referenced_functions


@dataclass(frozen=True)
class CallGraph:
    """The functions of a module by name, whatever their dialect, and the names that each refers to, itself included."""

    functions: Mapping[str, Operation]
    references: Mapping[str, frozenset[str]]

    @staticmethod
    def of(module: ModuleOp) -> CallGraph:
        """The graph of the module as it is now; it does not follow changes."""
        functions = {name: op for op in module.ops if (name := symbol_name(op)) is not None}
        references = {
            name: frozenset(used for op in func.walk() for used in referenced_functions(op) if used in functions)
            for name, func in functions.items()
        }
        return CallGraph(functions, references)

    def reachable(self, roots: Iterable[str]) -> set[str]:
        """The roots and all that they refer to, directly or through others."""
        pending, found = list(roots), set[str]()
        while pending:
            name = pending.pop()
            if name not in found:
                found.add(name)
                pending += self.references[name]
        return found

    def components(self) -> dict[str, int]:
        """A number for each function; two have the same one if each refers to the other, directly or through others.

        Callees have smaller numbers than callers of other components (Tarjan's algorithm without recursion).
        """
        return _Components(self.references).run()

    def recursive(self) -> set[str]:
        """The functions that refer to themselves, directly or through others."""
        components = self.components()
        sizes = Counter(components.values())
        return {name for name in self.functions if name in self.references[name] or sizes[components[name]] > 1}


class _Components:
    """The state of one search for strongly connected components."""

    def __init__(self, edges: Mapping[str, frozenset[str]]):
        self.edges = edges
        self.index: dict[str, int] = {}
        self.low: dict[str, int] = {}
        self.open: dict[str, None] = {}
        self.component: dict[str, int] = {}
        self.closed = 0

    def run(self) -> dict[str, int]:
        for root in self.edges:
            if root not in self.index:
                self._visit(root)
        return self.component

    def _visit(self, root: str) -> None:
        path = [(root, self._enter(root))]
        while path:
            name, targets = path[-1]
            target = next(targets, None)
            if target is None:
                path.pop()
                if path:
                    caller = path[-1][0]
                    self.low[caller] = min(self.low[caller], self.low[name])
                if self.low[name] == self.index[name]:
                    member = None
                    while member != name:
                        member, _ = self.open.popitem()
                        self.component[member] = self.closed
                    self.closed += 1
            elif target not in self.index:
                path.append((target, self._enter(target)))
            elif target in self.open:
                self.low[name] = min(self.low[name], self.index[target])

    def _enter(self, name: str) -> Iterator[str]:
        self.index[name] = self.low[name] = len(self.index)
        self.open[name] = None
        return iter(sorted(self.edges[name]))


CallSite: TypeAlias = CallOp | MakeClosureOp
"""An op that gives a function of the module its arguments, or the first of them."""


def call_sites(module: ModuleOp) -> dict[FuncOp, list[CallSite]]:
    """The private functions that only calls and `relax.make_closure` name, with these ops in program order.

    Only of these every use is known, so only their signatures may change.
    """
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp) and op.is_private}
    sites: dict[str, list[CallSite]] = {name: [] for name in functions}
    for op in module.walk():
        for name in referenced_functions(op):
            if name in sites:
                if isinstance(op, CallOp | MakeClosureOp):
                    sites[name].append(op)
                else:
                    del sites[name]
    return {functions[name]: found for name, found in sites.items()}


def called_by_name(module: ModuleOp) -> dict[FuncOp, list[CallOp]]:
    """The functions of `call_sites` that are never taken as values, with their calls."""
    return {func: sites for func, sites in call_sites(module).items() if isa(sites, list[CallOp])}


def given_values(site: CallSite) -> Sequence[SSAValue]:
    """What a call or a function value gives to the first parameters: all of them, or those that it captures."""
    return site.arguments if isinstance(site, CallOp) else site.captured


def replace_values(site: CallSite, values: Sequence[SSAValue]) -> None:
    """Puts an op that gives the function other values, and has a result of the same type, instead of `site`."""
    if isinstance(site, CallOp):
        new = CallOp(site.callee, values, site.result.type, pure=site.impure is None)
    else:
        new = MakeClosureOp(site.callee, values, site.result.type)
    _replace(site, new)


def replace_result(call: CallOp, result_type: StructInfo) -> CallOp:
    """Puts a call with another result type instead of `call`; the uses move to the new result as they are."""
    new = CallOp(call.callee, call.arguments, result_type, pure=call.impure is None)
    _replace(call, new)
    return new


def _replace(old: CallSite, new: CallSite) -> None:
    new.attributes |= old.attributes
    new.result.name_hint = old.result.name_hint
    inherit_location(old, new)
    Rewriter.replace_op(old, new)


def field_of(value: SSAValue, index: int, user: Operation) -> SSAValue:
    """Field `index` of a tuple: the value that it was made of, or a `relax.tuple_get` before `user`."""
    if isinstance(value.owner, TupleOp) and value.owner.fields[index].type == _field_types(value)[index]:
        return value.owner.fields[index]
    op = TupleGetOp(value, index)
    op.result.name_hint = value.name_hint
    inherit_location(user, op)
    Rewriter.insert_op(op, InsertPoint.before(user))
    return op.result


def tuple_of(fields: Sequence[SSAValue], user: Operation) -> SSAValue:
    """A tuple of the fields, made before `user`."""
    op = TupleOp(*fields)
    inherit_location(user, op)
    Rewriter.insert_op(op, InsertPoint.before(user))
    return op.result


def _field_types(value: SSAValue) -> tuple[StructInfo, ...]:
    return value.type.fields if isinstance(value.type, TupleType) else ()
