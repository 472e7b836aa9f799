"""Branches and loops as regions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i1
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, Operation, OpResult, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.pattern_rewriter import RewritePattern
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure, RecursivelySpeculatable, RecursiveMemoryEffect, ReturnLike
from xdsl.utils.exceptions import VerifyException

from relax_dialect.external import PATTERNS
from relax_dialect.ops.syntax import parse_optional_result_types, print_result_types
from relax_dialect.scope import BindsResultSymbols, prover_at, symbols_witnessed
from relax_dialect.struct_info.base import StructInfo, as_struct_infos
from relax_dialect.struct_info.erase import erase_symbols
from relax_dialect.struct_info.join import join
from relax_dialect.struct_info.match import Verdict, is_subtype
from relax_dialect.struct_info.symbols import substitute
from relax_dialect.struct_info.types import PrimType, TensorType
from relax_dialect.traits import ControlFlow, EndsInYield, OnlyReadsTensors
from tir_dialect.dims import Dim
from tir_dialect.ops.assembly_format import op_definition
from tir_dialect.ops.syntax import parse_defined_operand

CONDITION_TYPES = "a scalar tensor of i1 or a prim of i1"


def is_condition(info: Attribute) -> bool:
    """Whether a value of this type may decide: a truth value, as a tensor of rank 0 or as a prim."""
    if isinstance(info, TensorType):
        return info.rank in (0, None) and info.dtype in (i1, None)
    return isinstance(info, PrimType) and info.dtype == i1


def yielded(region: Region) -> tuple[SSAValue, ...]:
    """The values with which a region ends; none while it has no terminator."""
    terminator = region.blocks.first and region.block.last_op
    return tuple(terminator.operands) if isinstance(terminator, YieldOp) else ()


def yielded_types(region: Region) -> tuple[StructInfo, ...]:
    """The types of the values with which a region ends."""
    return as_struct_infos(value.type for value in yielded(region))


def bound_in(region: Region) -> set[str]:
    """The symbols that the ops of a region bind."""
    return {name for op in region.blocks.first.ops for name in symbols_witnessed(op)} if region.blocks.first else set()


def visible_yields(region: Region) -> tuple[StructInfo, ...]:
    """The types with which a region ends, without the symbols that are bound in it."""
    bound = bound_in(region)
    return tuple(erase_symbols(info, bound) for info in yielded_types(region))


def common_symbols(then_region: Region, else_region: Region) -> set[str]:
    """The symbols that both regions bind, each for itself, and yield at the same position."""
    pairs = zip(yielded_types(then_region), yielded_types(else_region), strict=False)
    same = {left.symbol for left, right in pairs if isinstance(left, PrimType) and left == right}
    return {name for name in same & bound_in(then_region) & bound_in(else_region) if name is not None}


@irdl_op_definition
class IfOp(IRDLOperation, BindsResultSymbols, HasCanonicalizationPatternsInterface):
    """Runs one of two regions and has the values with which that region ends.

    ```mlir
    %r = relax.if %c {
      %0 = relax.exp %x
      relax.yield %0
    } else {
      relax.yield %x
    }
    ```

    Result types that are not written are the joins of what the regions yield. A result that is a prim of a new symbol
    witnesses that symbol, so that result types may use it; each region gives the symbol its value. Two regions that
    yield a symbol of the same name at the same position do so without more ado.

    ```mlir
    %r, %k = relax.if %c {
      %0, %m = relax.match_cast %u : !relax.tensor<[m], f32> binds [m]
      relax.yield %0, %m
    } else {
      relax.yield %x, %n
    } : !relax.tensor<[k], f32>, !relax.prim<i64, k>
    ```

    C1: the condition is a truth value: a scalar tensor of `i1` or a prim of `i1`.
    C2: both regions yield as many values as there are results.
    C3: what a region yields is of the result's type, with the values that the region gives to new symbols.
    C4: these values are provably not negative, as no symbol is.
    """

    name = "relax.if"

    condition = operand_def(StructInfo)
    then_region = region_def("single_block")
    else_region = region_def("single_block")
    res = var_result_def(StructInfo)

    # The condition is the only operand.
    traits = traits_def(ControlFlow(), RecursiveMemoryEffect(), RecursivelySpeculatable(), OnlyReadsTensors())

    def __init__(
        self,
        condition: SSAValue | Operation,
        then_region: Region,
        else_region: Region,
        result_types: Sequence[StructInfo] | None = None,
    ):
        """Without result types they are the joins of what the regions yield."""
        if result_types is None:
            result_types = join_yields(then_region, else_region)
        super().__init__(operands=[condition], regions=[then_region, else_region], result_types=[result_types])

    @property
    def result_witnesses(self) -> dict[str, OpResult]:
        prims = {result: info for result in self.res if isinstance(info := result.type, PrimType) and info.symbol}
        if not prims:
            return {}
        inside = bound_in(self.then_region) | bound_in(self.else_region)
        ends = [yielded_types(region) for region in (self.then_region, self.else_region)]
        found: dict[str, OpResult] = {}
        for result, info in prims.items():
            if info.symbol in inside or any(end[result.index : result.index + 1] != (info,) for end in ends):
                found.setdefault(str(info.symbol), result)
        return found

    def values_given_by(self, region: Region) -> dict[str, Dim]:
        """The values that a region gives to the symbols which the results witness."""
        types = yielded_types(region)
        values: dict[str, Dim] = {}
        for name, result in self.result_witnesses.items():
            info = types[result.index] if result.index < len(types) else None
            if isinstance(info, PrimType) and info.value is not None:
                values[name] = info.value
        return values

    def types_seen_by(self, region: Region) -> tuple[StructInfo, ...]:
        """The result types with the values that a region gives to the symbols which the results witness."""
        values = self.values_given_by(region)
        return tuple(substitute(info, values) for info in as_struct_infos(self.result_types))

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return PATTERNS.of(cls.name)()

    @classmethod
    def parse(cls, parser: Parser) -> IfOp:
        condition = parse_defined_operand(parser)
        then_region = parser.parse_region()
        parser.parse_keyword("else")
        else_region = parser.parse_region()
        attributes = parser.parse_optional_attr_dict()
        for region in (then_region, else_region):
            if len(region.blocks) != 1 or not isinstance(region.block.last_op, YieldOp):
                parser.raise_error("expected regions of one block that ends in 'relax.yield'")
        op = cls(condition, then_region, else_region, parse_optional_result_types(parser))
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.condition)
        printer.print_string(" ")
        printer.print_region(self.then_region)
        printer.print_string(" else ")
        printer.print_region(self.else_region)
        printer.print_op_attributes(self.attributes)
        if tuple(self.result_types) != join_yields(self.then_region, self.else_region):
            print_result_types(printer, self.result_types)

    def verify_(self) -> None:
        if not is_condition(self.condition.type):
            got = self.condition.type
            raise VerifyException(f"'relax.if' op condition expected {CONDITION_TYPES}, got {got}")  # C1
        for region, label in ((self.then_region, "then"), (self.else_region, "else")):
            types = yielded_types(region)
            if len(types) != len(self.res):
                raise VerifyException(
                    f"'relax.if' op {label} region expected {len(self.res)} values as the op has results, "
                    f"got {len(types)}"
                )  # C2
            prover = prover_at(self)
            for index, (info, result) in enumerate(zip(types, self.types_seen_by(region), strict=True)):
                if is_subtype(info, result, prover) is not Verdict.YES:
                    raise VerifyException(
                        f"'relax.if' op {label} region value #{index} expected {result}, got {info}"
                    )  # C3
            for name, value in self.values_given_by(region).items():
                if prover.less_equal(0, value) is not True:
                    raise VerifyException(
                        f"'relax.if' op {label} region expected a value for {name} that is provably not negative, "
                        f"got {value}; bind it with 'relax.match_cast' before"
                    )  # C4


def join_yields(then_region: Region, else_region: Region) -> tuple[StructInfo, ...]:
    """The join of what two regions yield, value by value; nothing if they yield different numbers of values."""
    then_types, else_types = yielded_types(then_region), yielded_types(else_region)
    if len(then_types) != len(else_types):
        return ()
    kept = common_symbols(then_region, else_region)
    then_lost, else_lost = bound_in(then_region) - kept, bound_in(else_region) - kept
    pairs = zip(then_types, else_types, strict=True)
    return tuple(join(erase_symbols(left, then_lost), erase_symbols(right, else_lost)) for left, right in pairs)


@op_definition
class YieldOp(IRDLOperation):
    """Ends a region of a branch or a loop with its values.

    ```mlir
    relax.yield %a, %b
    ```
    """

    name = "relax.yield"

    values = var_operand_def(StructInfo)

    traits = traits_def(IsTerminator(), ReturnLike(), Pure())

    assembly_format = "$values attr-dict"

    def __init__(self, *values: SSAValue | Operation):
        super().__init__(operands=[values])

    def verify_(self) -> None:
        parent = self.parent_op()
        if parent is not None and not (parent.has_trait(ControlFlow) or parent.has_trait(EndsInYield)):
            raise VerifyException(
                f"'relax.yield' op expected to end a region of a branch, loop or group, got '{parent.name}'"
            )
