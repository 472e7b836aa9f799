"""Functions and their return."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Region

from lowering.locations import inherit_location
from lowering.relax_to_vm.constants import Constants
from lowering.relax_to_vm.converter import Converter, converts
from lowering.relax_to_vm.types import vm_type
from relax_dialect.ops.structure import FuncOp, ReturnOp
from vm_dialect.ops import structure as vm
from vm_dialect.types import OBJECT


def convert_function(func: FuncOp, constants: Constants) -> vm.FuncOp:
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
    converter = Converter(name, entry, constants)
    for param, argument in zip(func.params, entry.args, strict=True):
        converter.set(param, argument)
    converter.convert_block(func.body.block)
    return result


@converts(ReturnOp)
def return_(converter: Converter, op: ReturnOp) -> None:
    """The end of the function."""
    converter.emit(vm.ReturnOp(converter.get(op.value)))
