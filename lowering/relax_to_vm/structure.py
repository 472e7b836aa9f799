"""Functions and their return."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Region
from xdsl.pattern_rewriter import RewritePattern

from lowering.locations import inherit_location
from lowering.relax_to_vm.constants import Constants
from lowering.relax_to_vm.converter import Converter
from lowering.relax_to_vm.types import vm_type
from lowering.rewriting import PatternIndex, op_rewrite_pattern
from relax_dialect.ops.structure import FuncOp, ReturnOp
from vm_dialect.ops import structure as vm
from vm_dialect.types import OBJECT


def convert_function(func: FuncOp, constants: Constants, patterns: PatternIndex) -> vm.FuncOp:
    """The function of the machine for a function whose checks are explicit; its constants are added to `constants`."""
    name = func.sym_name.data
    entry = Block(arg_types=[OBJECT] * len(func.params))
    signature = ([OBJECT] * len(func.params), [vm_type(func.function_type.ret)])
    visibility = func.sym_visibility.data if isinstance(func.sym_visibility, StringAttr) else None
    result = vm.FuncOp(
        name,
        signature,
        Region(entry),
        arg_names=func.param_names,
        result_names=func.result_names,
        visibility=visibility,
    )
    inherit_location(func, result)
    converter = Converter(name, entry, constants, patterns)
    for param, argument in zip(func.params, entry.args, strict=True):
        converter.set(param, argument)
    converter.convert_block(func.body.block)
    return result


class ConvertReturn(RewritePattern):
    """The end of the function."""

    @op_rewrite_pattern
    def match_and_rewrite(self, op: ReturnOp, converter: Converter) -> None:
        converter.emit(vm.ReturnOp(converter.get(op.value)))
