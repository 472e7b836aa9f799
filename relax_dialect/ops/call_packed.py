"""Calls of packed functions: functions of the run-time registry, which the compiler cannot look into."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    opt_result_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)

from relax_dialect.ops.call_tir import DestinationPassing
from relax_dialect.ops.directives import OptionalType, PackedName, TensorResults, TypeOrObject
from relax_dialect.struct_info.base import StructInfo
from relax_dialect.struct_info.types import ObjectType, TensorType
from relax_dialect.traits import Checked, EffectsOfImpurity, MayBeImpure
from tir_dialect.ops.assembly_format import op_definition


def _symbol(name: str | StringAttr) -> StringAttr:
    return StringAttr(name) if isinstance(name, str) else name


@op_definition
class CallPackedOp(IRDLOperation, MayBeImpure):
    """Calls a packed function, which may do anything, also change the tensors that it is given.

    ```mlir
    relax.call_packed "custom_print"(%x)
    %0 = relax.call_packed "custom_add"(%x, %y) : !relax.tensor<[m, k], f32>
    ```

    The function is looked up by name when the module is loaded. Without a result type the result is dropped; with
    one, the result is checked to be of it at run time.
    """

    name = "relax.call_packed"

    symbol = prop_def(StringAttr)
    arguments = var_operand_def(StructInfo)
    result = opt_result_def(StructInfo)

    traits = traits_def(EffectsOfImpurity())

    assembly_format = "custom<PackedName>($symbol) `(` $arguments `)` attr-dict custom<OptionalType>(type($result))"
    custom_directives = (PackedName, OptionalType)

    def __init__(self, symbol: str | StringAttr, arguments: Sequence[SSAValue], result_type: StructInfo | None = None):
        super().__init__(operands=[arguments], properties={"symbol": _symbol(symbol)}, result_types=[result_type])

    @property
    def impurity(self) -> str:
        return f'calls the packed function "{self.symbol.data}", which may have any effect'


@op_definition
class CallPurePackedOp(IRDLOperation):
    """Calls a packed function of which the program promises that it is pure.

    ```mlir
    %0 = relax.call_pure_packed "my_shape"(%s) : !relax.shape<*>
    ```

    The result is checked to be of the declared type at run time.
    """

    name = "relax.call_pure_packed"

    symbol = prop_def(StringAttr)
    arguments = var_operand_def(StructInfo)
    result = result_def(StructInfo)

    traits = traits_def(Checked())

    assembly_format = "custom<PackedName>($symbol) `(` $arguments `)` attr-dict custom<TypeOrObject>(type($result))"
    custom_directives = (PackedName, TypeOrObject)

    def __init__(self, symbol: str | StringAttr, arguments: Sequence[SSAValue], result_type: StructInfo | None = None):
        super().__init__(
            operands=[arguments], properties={"symbol": _symbol(symbol)}, result_types=[result_type or ObjectType()]
        )


@op_definition
class CallDPSPackedOp(DestinationPassing):
    """Calls a packed function in destination passing style: it writes tensors that are made for it, and does nothing
    else.

    ```mlir
    %0 = relax.call_dps_packed "custom_tile"(%x) : !relax.tensor<[m, 2 * k], f32>
    %1 = relax.call_dps_packed "f"(%x) shape(%s) : !relax.tensor<[_], f32>
    ```

    C1: dtype and dimensions of each result are known, or its shape is an operand.
    C2: there are no shape operands, or one for each result.
    """

    name = "relax.call_dps_packed"

    symbol = prop_def(StringAttr)

    traits = traits_def(Checked())

    assembly_format = (
        "custom<PackedName>($symbol) `(` $arguments `)` (`shape` `(` $shapes^ `)`)? attr-dict "
        "custom<TensorResults>(type($res))"
    )
    custom_directives = (PackedName, TensorResults)

    def __init__(
        self,
        symbol: str | StringAttr,
        arguments: Sequence[SSAValue],
        result_types: Sequence[TensorType],
        *,
        shapes: Sequence[SSAValue] = (),
    ):
        super().__init__(
            operands=[arguments, shapes], properties={"symbol": _symbol(symbol)}, result_types=[result_types]
        )

    def verify_(self) -> None:
        self.verify_results()  # C1, C2
