"""What is decided before any code is emitted. Of a function: which values are objects, which of them it owns, and how
native code represents values. Of the module: signatures, tail calls, and which functions need the stack guard.

An interval says between which numbers the result of `vm.int` lies: sums and products of most sizes need no check for
64 bits.

A result of unknown type is checked after the call. So that the frame of a caller that calls a function value at its end
can be released before it, the checks are a function of their own, which takes the numbers that they use and the result.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import NoMemoryEffect, Pure

from lowering.diagnostics import Finding, refuse
from lowering.vm_to_llvm.abi import Kernel
from vm_dialect.integers import GREATEST, LEAST, saturated
from vm_dialect.messages import MOST_BYTES
from vm_dialect.ops.base import ConstantOp, MayRaise
from vm_dialect.ops.calls import CallClosureOp, CallKernelOp, CallOp, MakeClosureOp
from vm_dialect.ops.checks import CheckApartOp, CheckOp
from vm_dialect.ops.memory import AllocTensorOp, KillOp, ReadCondOp, ShapeOfOp, TensorDimOp, ViewOp
from vm_dialect.ops.structure import FuncOp, GotoOp, IfOp, ReturnOp
from vm_dialect.ops.values import IntKind
from vm_dialect.types import F64, I1, I64, OBJECT, StorageType

_LOCAL_USERS = (CallKernelOp, CheckApartOp, TensorDimOp, ShapeOfOp, ReadCondOp, KillOp)
"""Ops that look at a tensor and keep nothing of it."""


@dataclass
class FunctionPlan:
    """Facts about one function."""

    order: list[Block]
    """The reachable blocks, dominators first."""

    cyclic: set[Block]
    """Blocks that may run more than once in a call."""

    borrowed: set[SSAValue] = field(default_factory=set[SSAValue])
    """Objects that somebody else holds for the whole call: parameters, constants, and what checks make of them."""

    unboxed: set[SSAValue] = field(default_factory=set[SSAValue])
    """Tensors that are a data pointer and sizes, never an object."""

    kept: list[SSAValue] = field(default_factory=list[SSAValue])
    """Objects that the frame holds: each needs a slot."""

    pinned: set[SSAValue] = field(default_factory=set[SSAValue])
    """Objects on whose memory an unboxed view stands: they live until the function ends."""


def plan_function(func: FuncOp) -> FunctionPlan:
    """Plans one function.

    Raises `InvalidModule` with every op that lets a tensor out of its storage, or a storage out of its function.
    """
    # Every block that the entry reaches, each after its dominators.
    entry = func.body.blocks[0]
    seen, finished = {entry}, list[Block]()
    stack = [(entry, iter(_successors(entry)))]
    while stack:
        block, successors = stack[-1]
        following = next((successor for successor in successors if successor not in seen), None)
        if following is None:
            finished.append(block)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(_successors(following))))
    order = finished[::-1]
    plan = FunctionPlan(order, _cyclic_blocks(order))
    # Tensors in storages and all views of them.
    in_storage: set[SSAValue] = set()
    for block in order:
        for op in block.ops:
            if isinstance(op, AllocTensorOp) or (isinstance(op, ViewOp) and op.tensor in in_storage):
                in_storage.add(op.results[0])
    refuse(_escapes(order, in_storage))
    plan.unboxed |= in_storage
    _plan_views(plan)
    found: set[SSAValue] = set(order[0].args)
    for block in order:
        for op in block.ops:
            if isinstance(op, ConstantOp) or (isinstance(op, CheckOp) and op.value in found):
                found.update(op.results)
    plan.borrowed |= found
    plan.kept += _kept_objects(plan)
    return plan


def is_number(value: SSAValue) -> bool:
    """Whether a value is kept in a register."""
    return value.type in (I64, I1, F64)


def branch_edges(op: Operation | None) -> Iterator[tuple[Block, Sequence[SSAValue]]]:
    """The blocks that a terminator goes to, with what their arguments receive."""
    if isinstance(op, GotoOp):
        yield op.target, op.arguments
    elif isinstance(op, IfOp):
        yield op.then_block, op.then_arguments
        yield op.else_block, op.else_arguments


def _successors(block: Block) -> list[Block]:
    return [target for target, _ in branch_edges(block.last_op)]


def _cyclic_blocks(order: Sequence[Block]) -> set[Block]:
    """For each edge that goes back in `order`, the blocks between its ends; on an irreducible graph perhaps more."""
    position = {block: index for index, block in enumerate(order)}
    predecessors: dict[Block, list[Block]] = {block: [] for block in order}
    for block in order:
        for target in _successors(block):
            predecessors[target].append(block)
    cyclic: set[Block] = set()
    for latch in order:
        for header in _successors(latch):
            if position[header] <= position[latch]:
                # The blocks from which `latch` is reached without passing `header`.
                found, pending = {header, latch}, [latch]
                while pending:
                    block = pending.pop()
                    new = (
                        [source for source in predecessors[block] if source not in found] if block is not header else []
                    )
                    found.update(new)
                    pending += new
                cyclic |= found
    return cyclic


def _escapes(order: Iterable[Block], in_storage: set[SSAValue]) -> Iterator[Finding]:
    """Uses that would let a tensor live longer than its storage, and storages that come from elsewhere."""
    for block in order:
        if any(isinstance(argument.type, StorageType) for argument in block.args) and (func := block.parent_op()):
            hint = "make the storage with 'vm.alloc_storage' where tensors are placed in it"
            yield Finding.at(func, "has a storage among its block arguments, which native code cannot pass on", hint)
        for op in block.ops:
            if isinstance(op, (*_LOCAL_USERS, ViewOp)):
                continue
            for index, operand in enumerate(op.operands):
                if operand in in_storage:
                    yield Finding.at(
                        op,
                        f"operand #{index} is a tensor in a storage, which native code cannot let out of its call",
                        "make the tensor with 'vm.new_tensor', which may leave the call",
                    )


def _plan_views(plan: FunctionPlan) -> None:
    """A view that nobody keeps needs no object; views of views are decided first."""

    def is_local(op: Operation) -> bool:
        return isinstance(op, _LOCAL_USERS) or (isinstance(op, ViewOp) and op.result in plan.unboxed)

    for block in reversed(plan.order):
        for op in reversed(list(block.ops)):
            if not isinstance(op, ViewOp) or op.result in plan.unboxed:
                continue
            if all(is_local(use.operation) for use in op.result.uses):
                plan.unboxed.add(op.result)
                plan.pinned.add(op.tensor)


def _kept_objects(plan: FunctionPlan) -> Iterator[SSAValue]:
    elsewhere = plan.borrowed | plan.unboxed
    for block in plan.order:
        for value in (*block.args, *(result for op in block.ops for result in op.results)):
            if value not in elsewhere and not is_number(value) and not isinstance(value.type, StorageType):
                yield value


@dataclass(frozen=True)
class Interval:
    """All numbers from `least` to `most`."""

    least: int
    most: int

    @property
    def fits(self) -> bool:
        """Whether 64 bits hold all of them."""
        return self.least >= LEAST and self.most <= GREATEST

    @property
    def held(self) -> Interval:
        """The same, of numbers that end at what 64 bits hold."""
        return self if self.fits else Interval(saturated(self.least), saturated(self.most))


ANY_INTEGER = Interval(LEAST, GREATEST)
SIZE_OF_TENSOR = Interval(0, MOST_BYTES)
"""An axis of a tensor, which has been checked or made: other axes of length 0 count as 1."""


def result_interval(kind: IntKind, lhs: Interval, rhs: Interval) -> Interval:
    """Of the exact result, which 64 bits may not hold."""
    match kind:
        case IntKind.ADD | IntKind.ADD_SAT:
            return Interval(lhs.least + rhs.least, lhs.most + rhs.most)
        case IntKind.SUB:
            return Interval(lhs.least - rhs.most, lhs.most - rhs.least)
        case IntKind.MUL | IntKind.MUL_SAT:
            corners = [a * b for a, b in product((lhs.least, lhs.most), (rhs.least, rhs.most))]
            return Interval(min(corners), max(corners))
        case IntKind.MIN:
            return Interval(min(lhs.least, rhs.least), min(lhs.most, rhs.most))
        case IntKind.MAX:
            return Interval(max(lhs.least, rhs.least), max(lhs.most, rhs.most))
        case IntKind.BROADCAST:
            return Interval(min(lhs.least, rhs.least), max(lhs.most, rhs.most))
        case IntKind.FLOORDIV if rhs.least > 0:
            corners = [a // b for a, b in product((lhs.least, lhs.most), (rhs.least, rhs.most))]
            return Interval(min(corners), max(corners))
        case IntKind.MOD if rhs.least > 0:
            return Interval(0, rhs.most - 1)
        case _:
            return ANY_INTEGER


@dataclass(frozen=True)
class Number:
    """An `i64`, `i1` or `f64` in a register."""

    ssa: SSAValue

    interval: Interval = ANY_INTEGER
    """Where an `i64` lies."""


@dataclass(frozen=True)
class Boxed:
    """A tvm-ffi value in memory."""

    address: SSAValue
    """Of the `TVMFFIAny` that holds it: a slot of the frame, an argument or a constant."""

    owned: bool
    """Whether it is a slot of the frame, which a kill empties."""

    tensor: SSAValue | None = None
    """Address of its `DLTensor`; None if it is not known to be a tensor."""

    data: SSAValue | None = None
    """Address of its first element, if it is a tensor."""


@dataclass(frozen=True)
class Unboxed:
    """A tensor that never was an object: one in an arena, or a view that does not leave its function."""

    data: SSAValue
    """Address of the first element."""

    sizes: tuple[SSAValue, ...]


@dataclass(frozen=True)
class Storage:
    """An arena."""

    block: SSAValue
    """Its address."""

    size: SSAValue
    """Its bytes."""


Value: TypeAlias = Number | Boxed | Unboxed | Storage


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
