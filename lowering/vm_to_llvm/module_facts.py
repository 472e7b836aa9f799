"""Module-level analysis: signatures, tail calls, and which functions need the stack guard.

A result of unknown type is checked after the call. So that the frame of a caller that calls a function value at its end
can be released before it, the checks are a function of their own, which takes the numbers that they use and the result.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import NoMemoryEffect, Pure

from lowering.vm_to_llvm.abi import Kernel
from lowering.vm_to_llvm.plan import is_number
from vm_dialect.ops.base import MayRaise
from vm_dialect.ops.calls import CallClosureOp, CallOp, MakeClosureOp
from vm_dialect.ops.checks import CheckOp
from vm_dialect.ops.memory import KillOp
from vm_dialect.ops.structure import FuncOp, ReturnOp
from vm_dialect.types import OBJECT


@dataclass(frozen=True)
class Rest:
    """What a function does with the result of its last call."""

    check: FuncOp | None
    """Returns the result if that is as expected; `None` if anything is."""

    captured: Sequence[SSAValue]
    """The first arguments of `check`, all of them numbers; the last one is the result."""


def rests_of_calls(func: FuncOp) -> dict[CallClosureOp, Rest]:
    """The calls of function values after which a function only checks their result and returns it."""
    found: dict[CallClosureOp, Rest] = {}
    for op in func.walk():
        if isinstance(op, CallClosureOp) and (following := _checks_and_return(op)) is not None:
            # What is used besides the result, each once.
            call = op
            own = {call.result, *(result for op in following for result in op.results)}
            captured = list(dict.fromkeys(operand for op in following for operand in op.operands if operand not in own))
            if all(map(is_number, captured)):
                check = _check_function(f"{func.sym_name.data}.result{len(found)}", func, op, following, captured)
                found[op] = Rest(check, captured)
    return found


def _checks_and_return(call: CallClosureOp) -> list[Operation] | None:
    """The ops that look at the result, and the return of it; the end of the frame is the end of other values."""
    following: list[Operation] = []
    same: set[SSAValue | None] = {call.result}
    op = call.next_op
    while op is not None and not isinstance(op, ReturnOp):
        if not isinstance(op, KillOp):
            if not any(op.has_trait(trait) for trait in (MayRaise, Pure, NoMemoryEffect)):
                return None
            following.append(op)
        if isinstance(op, CheckOp) and op.value in same:
            same.add(op.results[0])
        op = op.next_op
    return [*following, op] if op is not None and op.value in same else None


def _check_function(
    name: str, func: FuncOp, call: CallClosureOp, following: Sequence[Operation], captured: Sequence[SSAValue]
) -> FuncOp | None:
    if call.result is None or len(following) == 1:
        return None
    inputs = [*(value.type for value in captured), OBJECT]
    function = FuncOp(name, (inputs, func.function_type.outputs.data), visibility="private")
    function.location = call.location
    values: dict[SSAValue, SSAValue] = dict(zip((*captured, call.result), function.body.block.args, strict=True))
    for op in following:
        copy = op.clone(values)
        copy.location = op.location
        function.body.block.add_op(copy)
    return function


@dataclass(frozen=True)
class ModuleFacts:
    """Facts about the functions of a module and their calls."""

    parameters: Mapping[str, Sequence[Attribute]]
    """Parameter types of each `vm.func`."""

    kernels: Mapping[str, Kernel]
    """The kernels that the module knows, by name."""

    tail_calls: frozenset[CallOp]
    """Calls in tail position that close a cycle: they reuse the caller's stack frame."""

    by_value: frozenset[str]
    """Functions that make such calls or are called so. They take objects by value, since the frame that held them is
    gone, and all arguments in an array of whoever made the first call of a chain: as arguments on the stack, LLVM 22
    loses them in tail calls.
    """

    array_length: int
    """The length of that array."""

    deferred: Mapping[CallClosureOp, Rest]
    """Calls of function values in tail position that may close a cycle: they are left to the caller of the function."""

    deferring: frozenset[str]
    """Functions that such a call ends, also through calls in tail position; who calls them finishes what they left."""

    guarded: frozenset[str]
    """Functions that may be inside themselves: through calls that are no tail calls, or through closures."""

    def is_last(self, op: Operation) -> bool:
        """Whether nothing is left to do in the function when `op` runs."""
        return op in self.tail_calls or op in self.deferred


_ANY_CLOSURE = ""
"""Stands for the function behind a function value, among names of functions."""


def module_facts(module: ModuleOp, kernels: Mapping[str, Kernel]) -> ModuleFacts:
    """Looks at every call of a module once."""
    functions = [op for op in module.ops if isinstance(op, FuncOp)]
    calls = {func.sym_name.data: [op for op in func.walk() if isinstance(op, CallOp)] for func in functions}
    tails = {name: [call for call in found if is_in_tail_position(call)] for name, found in calls.items()}
    rests = {func.sym_name.data: rests_of_calls(func) for func in functions}
    edges = {name: [*map(_callee, found), *([_ANY_CLOSURE] if rests[name] else [])] for name, found in tails.items()}
    component = _components({**edges, _ANY_CLOSURE: list(closure_targets(functions))})
    tail_calls = {
        call: name for name, found in tails.items() for call in found if _in_cycle(name, _callee(call), component)
    }
    deferring = [name for name in calls if _in_cycle(name, _ANY_CLOSURE, component)]
    by_value = frozenset(end for call, name in tail_calls.items() for end in (name, _callee(call)))
    parameters = {func.sym_name.data: func.function_type.inputs.data for func in functions}
    return ModuleFacts(
        parameters=parameters,
        kernels=kernels,
        tail_calls=frozenset(tail_calls),
        by_value=by_value,
        array_length=max((len(parameters[name]) for name in by_value if name in parameters), default=0),
        deferred={call: rest for name in deferring for call, rest in rests[name].items()},
        deferring=frozenset(deferring),
        guarded=_guarded(calls, tail_calls)
        | {func.sym_name.data for func in functions if any(isinstance(op, CallClosureOp) for op in func.walk())},
    )


def _guarded(calls: Mapping[str, Sequence[CallOp]], tail_calls: Collection[CallOp]) -> frozenset[str]:
    """Functions that may be inside themselves through a call by name."""
    component = _components({name: [_callee(call) for call in found] for name, found in calls.items()})
    return frozenset(
        name
        for name, found in calls.items()
        for call in found
        if call not in tail_calls and _in_cycle(name, _callee(call), component)
    )


def closure_targets(functions: Iterable[FuncOp]) -> dict[str, set[int]]:
    """The functions that function values are made of, in order, with the numbers of arguments that these capture."""
    targets: dict[str, set[int]] = {}
    for op in (op for func in functions for op in func.walk() if isinstance(op, MakeClosureOp)):
        targets.setdefault(op.callee.root_reference.data, set()).add(len(op.captured))
    return targets


def is_in_tail_position(call: CallOp) -> bool:
    """Whether the function returns the call's result, or both have none, right after it."""
    following = call.next_op
    return isinstance(following, ReturnOp) and following.value is call.result


def _callee(call: CallOp) -> str:
    return call.callee.root_reference.data


def _in_cycle(caller: str, callee: str, component: Mapping[str, int]) -> bool:
    return callee in component and component[caller] == component[callee]


def _components(edges: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """The strongly connected component of each node: Tarjan's algorithm, without recursion."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    component: dict[str, int] = {}
    path: list[str] = []
    for root in edges:
        if root in index:
            continue
        work = [(root, iter(edges[root]))]
        index[root] = low[root] = len(index)
        path.append(root)
        while work:
            node, successors = work[-1]
            following = next((name for name in successors if name in edges and name not in component), None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    while component.get(node) is None:
                        component[path.pop()] = index[node]
            elif following in index:
                low[node] = min(low[node], index[following])
            else:
                index[following] = low[following] = len(index)
                path.append(following)
                work.append((following, iter(edges[following])))
    return component
