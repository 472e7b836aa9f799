"""Types that are checked and symbols that are bound: the entry of a function and `match_cast`."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import RewritePattern

from lowering.relax_to_vm.checks import TypeChecks
from lowering.relax_to_vm.converter import Converter
from lowering.rewriting import op_rewrite_pattern
from relax_dialect.ops.binding import CheckArgsOp, MatchCastOp
from relax_dialect.struct_info.base import as_struct_infos
from relax_dialect.struct_info.match import match_types
from relax_dialect.struct_info.types import ObjectType
from tir_dialect.dims import symbol
from vm_dialect import messages


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
