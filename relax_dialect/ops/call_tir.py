"""Cross-level calls: of PrimFuncs, whose results get memory and the types that the caller names, and of packed
functions, which the compiler cannot look into.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, FlatSymbolRefAttrConstr, StringAttr, SymbolRefAttr, i64
from xdsl.ir import SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    opt_result_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.utils.exceptions import VerifyException

from relax_dialect.external import IMPURITY, VERIFIERS
from relax_dialect.ops.callees import verify_prim_func_call
from relax_dialect.ops.directives import NamedDims, OptionalType, PackedName, TensorResults, TypeOrObject
from relax_dialect.struct_info.types import ObjectType, ShapeType, StructInfo, TensorType
from relax_dialect.traits import Checked, EffectsOfImpurity, MayBeImpure
from tir_dialect.dims import Dim, DimLike
from tir_dialect.ops.assembly_format import Symbol, op_definition
from tir_dialect.types import DimAttr


class DestinationPassing(IRDLOperation):
    """What the calls have in common that allocate their results and pass them to the callee."""

    arguments = var_operand_def(StructInfo)
    shapes = var_operand_def(ShapeType)
    res = var_result_def(TensorType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def verify_results(self) -> None:
        """Raises `VerifyException` unless memory for every result can be made."""
        if len(self.shapes) not in (0, len(self.res)):
            raise VerifyException(
                f"'{self.name}' op expected 0 or {len(self.res)} shapes, one per result, got {len(self.shapes)}"
            )  # C2
        for index, result in enumerate(self.res):
            info = result.type
            if info.dtype is None or (not self.shapes and info.known_dims is None):
                raise VerifyException(
                    f"'{self.name}' op result #{index} expected known dtype and dimensions to allocate memory, "
                    f"got {info}; give an unknown shape by 'shape(%s)'"
                )  # C1


def callee_attr(callee: str | SymbolRefAttr) -> SymbolRefAttr:
    """The reference to a function given by name."""
    return SymbolRefAttr(callee) if isinstance(callee, str) else callee


@op_definition
class CallTIROp(DestinationPassing):
    """Calls a PrimFunc with the arguments and new tensors of the result types.

    ```mlir
    %0 = relax.call_tir @matmul(%x, %y) : !relax.tensor<[m, k], f32>
    %1, %2 = relax.call_tir @split(%x) tir_vars [2 * n] : !relax.tensor<[n], f32>, !relax.tensor<[m], f32>
    %3 = relax.call_tir @f(%x) shape(%s) : !relax.tensor<[_], f32>
    ```

    Tensors go to buffers, prim values to scalars. The symbols of the PrimFunc are bound from the shapes of its buffers;
    `tir_vars` are the values of those that no buffer determines, in the order of its symbol list, or of all, which are
    compared with what buffers determine. Where the shape of a result is no expression of known symbols, it is an
    operand.

    C1: dtype and dimensions of each result are known, or its shape is an operand.
    C2: there are no shape operands, or one for each result.
    C3: the callee is a PrimFunc of the module, and arguments and results can be its buffers and scalars.
    """

    name = "relax.call_tir"

    callee = prop_def(FlatSymbolRefAttrConstr)
    tir_vars = prop_def(ArrayAttr[DimAttr])

    traits = traits_def(Checked())

    assembly_format = (
        "custom<Symbol>($callee) `(` $arguments `)` (`shape` `(` $shapes^ `)`)? custom<NamedDims>($tir_vars) "
        "attr-dict custom<TensorResults>(type($res))"
    )
    custom_directives = (Symbol, NamedDims, TensorResults)

    def __init__(
        self,
        callee: str | SymbolRefAttr,
        arguments: Sequence[SSAValue],
        result_types: Sequence[TensorType],
        *,
        shapes: Sequence[SSAValue] = (),
        tir_vars: Sequence[DimLike] = (),
    ):
        super().__init__(
            operands=[arguments, shapes],
            properties={
                "callee": callee_attr(callee),
                "tir_vars": ArrayAttr([DimAttr(dim) for dim in tir_vars]),
            },
            result_types=[result_types],
        )

    @property
    def tir_dims(self) -> tuple[Dim, ...]:
        """The values of symbols of the callee, those of `given_symbols`."""
        return tuple(attribute.data for attribute in self.tir_vars)

    def verify_(self) -> None:
        self.verify_results()  # C1, C2
        verify_prim_func_call(self, self.callee, self.arguments.types, self.res.types, self.tir_dims)  # C3


@op_definition
class CallTIRInplaceOp(DestinationPassing, MayBeImpure):
    """Calls a PrimFunc that writes some of its results into arguments.

    ```mlir
    %0 = relax.call_tir_inplace @add_to(%x, %y) inplace [0] : !relax.tensor<[n], f32>
    ```

    `inplace` has one number per result: the argument whose memory it takes, or -1 for new memory. The op is pure only
    if nobody can see an argument change: its memory was made by an operator or a call like this in the same function,
    and it is used nowhere else, under no other type either.

    C1: dtype and dimensions of each result are known, or its shape is an operand.
    C2: there are no shape operands, or one for each result.
    C3: the callee is a PrimFunc of the module, and arguments and results can be its buffers and scalars.
    C4: `inplace` has one number per result, each -1 or the index of a tensor argument, none twice.
    C5: a result has the type of the argument that it is written into.
    C6: no result is written into a constant.
    C7: no argument that a result is written into is another argument too, unless the callee says `may_alias`.
    """

    name = "relax.call_tir_inplace"

    callee = prop_def(FlatSymbolRefAttrConstr)
    inplace = prop_def(DenseArrayBase.constr(i64))
    tir_vars = prop_def(ArrayAttr[DimAttr])

    traits = traits_def(EffectsOfImpurity())

    assembly_format = (
        "custom<Symbol>($callee) `(` $arguments `)` `inplace` $inplace (`shape` `(` $shapes^ `)`)? "
        "custom<NamedDims>($tir_vars) attr-dict custom<TensorResults>(type($res))"
    )
    custom_directives = (Symbol, NamedDims, TensorResults)

    def __init__(
        self,
        callee: str | SymbolRefAttr,
        arguments: Sequence[SSAValue],
        inplace: Sequence[int],
        result_types: Sequence[TensorType],
        *,
        shapes: Sequence[SSAValue] = (),
        tir_vars: Sequence[DimLike] = (),
    ):
        super().__init__(
            operands=[arguments, shapes],
            properties={
                "callee": callee_attr(callee),
                "inplace": DenseArrayBase.from_list(i64, inplace),
                "tir_vars": ArrayAttr([DimAttr(dim) for dim in tir_vars]),
            },
            result_types=[result_types],
        )

    @property
    def targets(self) -> tuple[int, ...]:
        """For each result the index of the argument whose memory it takes, or -1."""
        return tuple(self.inplace.get_values())

    @property
    def tir_dims(self) -> tuple[Dim, ...]:
        """The values of symbols of the callee, those of `given_symbols`."""
        return tuple(attribute.data for attribute in self.tir_vars)

    @property
    def impurity(self) -> str | None:
        return IMPURITY.of(self.name)(self)

    def verify_(self) -> None:
        self.verify_results()  # C1, C2
        self._verify_targets()
        VERIFIERS.of(self.name)(self)  # C6, C7
        fresh = [info for target, info in zip(self.targets, self.res.types, strict=True) if target < 0]
        verify_prim_func_call(self, self.callee, self.arguments.types, fresh, self.tir_dims)  # C3

    def _verify_targets(self) -> None:
        targets = self.targets
        used = [target for target in targets if target >= 0]
        tensors = [index for index, info in enumerate(self.arguments.types) if isinstance(info, TensorType)]
        if len(targets) != len(self.res) or len(set(used)) != len(used) or not {-1, *tensors}.issuperset(targets):
            raise VerifyException(
                f"'relax.call_tir_inplace' op expected for each of {len(self.res)} results -1 or another tensor "
                f"argument, got [{', '.join(map(str, targets))}]"
            )  # C4
        for target, result in zip(targets, self.res, strict=True):
            if target >= 0 and self.arguments[target].type != result.type:
                raise VerifyException(
                    f"'relax.call_tir_inplace' op result #{result.index} expected {self.arguments[target].type} as "
                    f"argument #{target} has, got {result.type}"
                )  # C5


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
