"""Types that are checked, symbols that are bound, and checks of dimensions, each before the first use of what it is
about.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import RewritePattern

from lowering.relax_to_vm.checks import TypeChecks
from lowering.relax_to_vm.converter import Converter
from lowering.relax_to_vm.sizes import Sizes
from lowering.rewriting import op_rewrite_pattern
from relax_dialect.analysis.effects import may_be_observed
from relax_dialect.ops.binding import CheckArgsOp, GuardOp, MatchCastOp, Relation
from relax_dialect.ops.memory import AllocStorageOp, AllocTensorOp, CallKernelOp, KillOp, StorageTensorOp
from relax_dialect.struct_info.base import as_struct_infos
from relax_dialect.struct_info.match import match_types
from relax_dialect.struct_info.types import ObjectType
from tir_dialect.dims import constant, symbol
from vm_dialect import messages
from vm_dialect.ops.checks import AssertOp


class ConvertCheckArgs(RewritePattern):
    """The entry check of a function."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: CheckArgsOp, converter: Converter) -> None:
        declared = as_struct_infos(value.type for value in op.values)
        captured = op.captured_count
        descriptions = messages.describe_parameters([name.data for name in op.arg_names], captured)
        values = converter.get_all(op.arguments)
        checks = TypeChecks(converter.emit, converter.sizes, op.function.data, declared, descriptions, values, captured)
        registers = checks.run(match_types(declared, [ObjectType()] * len(declared), op.symbols.data))
        for value, register in zip(op.values, registers, strict=True):
            converter.set(value, register)
        _set_witnesses(converter, op.result_witnesses)


class ConvertMatchCast(RewritePattern):
    """Checks that are left of a cast; the value stays what it is."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: MatchCastOp, converter: Converter) -> None:
        (declared,) = as_struct_infos((op.result.type,))
        description = converter.at(op.subject)
        values = [converter.get(op.value)]
        checks = TypeChecks(converter.emit, converter.sizes, converter.function, [declared], [description], values)
        converter.set(op.result, checks.run(op.match())[0])
        _set_witnesses(converter, op.result_witnesses)


def _set_witnesses(converter: Converter, witnesses: Mapping[str, SSAValue]) -> None:
    for name, witness in witnesses.items():
        converter.set(witness, converter.size(symbol(name)))


class ConvertGuard(RewritePattern):
    """A check of two dimensions, unless it is made already; the value stays what it is."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: GuardOp, converter: Converter) -> None:
        check(converter, op)
        converter.set(op.result, converter.get(op.value))


def check(converter: Converter, op: GuardOp) -> None:
    """Makes the check of a guard at the insertion point, if it is not made yet."""
    if op not in converter.checked:
        converter.checked.add(op)
        with converter.converting(op):
            _emit(converter, op)


def _emit(converter: Converter, op: GuardOp) -> None:
    sizes = converter.sizes
    lhs, rhs = sizes.value(op.lhs.data), sizes.value(op.rhs.data)
    condition = sizes.apply("le" if op.relation.data is Relation.AT_MOST else "eq", lhs, rhs)
    if op.relation.data is Relation.BROADCAST:
        one = sizes.value(constant(1))
        for side in (lhs, rhs):
            condition = sizes.apply("or", condition, sizes.apply("eq", side, one))
    where = converter.at(f"{converter.function}: {op.message.data}")
    facts, dims = op.check.facts
    converter.emit(AssertOp(condition, f"{where}: {facts}", [sizes.value(dim) for dim in dims]))


def guards_of_sizes(value: SSAValue) -> Iterator[GuardOp]:
    """The guards that sizes of a tensor are not negative, which is made with them."""
    for use in value.uses:
        if isinstance(op := use.operation, GuardOp):
            if _is_of_sizes(op):
                yield op
            yield from guards_of_sizes(op.result)


def _is_of_sizes(op: GuardOp) -> bool:
    value = op.value
    while isinstance(value.owner, GuardOp):
        value = value.owner.value
    made = value.owner
    if not isinstance(made, AllocTensorOp | StorageTensorOp) or made.result.type.known_dims is None:
        return False
    is_at_least_0 = op.relation.data is Relation.AT_MOST and op.lhs.data is constant(0)
    return is_at_least_0 and op.rhs.data in made.result.type.known_dims


def guards_ahead(storage: AllocStorageOp, sizes: Sizes) -> Iterator[GuardOp]:
    """The guards that can be checked before an arena is made: with dimensions that are known there, and nothing in
    between that anybody could observe. What has no size because of them would make the size of the arena wrong.
    """
    op = storage.next_op
    while op is not None and _is_unobserved(op):
        if isinstance(op, GuardOp) and sizes.knows(op.lhs.data) and sizes.knows(op.rhs.data):
            yield op
        op = op.next_op


def _is_unobserved(op: Operation) -> bool:
    return isinstance(op, _MEMORY) or not may_be_observed(op)


_MEMORY = (AllocStorageOp, AllocTensorOp, CallKernelOp, GuardOp, KillOp, StorageTensorOp)
