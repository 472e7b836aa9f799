"""Regions of straight-line code: dataflow regions, without effects and control flow, and groups of ops that become one
kernel or one call of a library.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Block, OpResult, Region, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, region_def, traits_def, var_operand_def, var_result_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsTerminator, Pure, RecursivelySpeculatable, RecursiveMemoryEffect, ReturnLike
from xdsl.utils.exceptions import VerifyException

from relax_dialect.ops.control_flow import YieldOp, yielded
from relax_dialect.scope import BindsResultSymbols, symbols_witnessed
from relax_dialect.struct_info.symbols import erase_symbols
from relax_dialect.struct_info.types import PrimType, StructInfo, as_struct_infos
from relax_dialect.syntax import parse_body, print_body
from relax_dialect.traits import EndsInYield, HoldsDataflow, Violation, Violations, dataflow_violations, impurity_of
from tir_dialect.ops.assembly_format import op_definition


@irdl_op_definition
class DataflowOp(IRDLOperation, BindsResultSymbols):
    """A region of pure ops without control flow; only what `relax.output` names is visible outside.

    ```mlir
    %gv = relax.dataflow {
      %lv0 = relax.exp %x
      %lv1 = relax.add %lv0, %x
      relax.output %lv1
    }
    ```

    C1: every op in the region is pure.
    C2: no op in the region is control flow, and dataflow regions do not nest.
    C3: a closure in the region captures no value of the region.
    C4: the results have the types of the outputs, in which a dimension is unknown if it uses a symbol that is bound in
    the region and whose witness is not an output itself.
    """

    name = "relax.dataflow"

    body = region_def("single_block")
    res = var_result_def(StructInfo)

    traits = traits_def(RecursiveMemoryEffect(), RecursivelySpeculatable(), HoldsDataflow())

    def __init__(self, body: Region | Sequence[Block] | Block):
        """`body` ends in `relax.output`, from which the result types follow."""
        region = body if isinstance(body, Region) else Region(body)
        super().__init__(regions=[region], result_types=[visible_types(region.block)])

    @property
    def output(self) -> OutputOp:
        """The terminator; raises `ValueError` while the region has none."""
        terminator = self.body.block.last_op
        if not isinstance(terminator, OutputOp):
            raise ValueError("'relax.dataflow' op has no 'relax.output' yet")
        return terminator

    @property
    def result_witnesses(self) -> dict[str, OpResult]:
        return {
            info.symbol: result
            for info, result in zip(self.result_types, self.results, strict=True)
            if isinstance(info, PrimType) and info.symbol in _bound_in(self.body.block)
        }

    @classmethod
    def parse(cls, parser: Parser) -> DataflowOp:
        body, attributes = parse_body(parser, OutputOp)
        op = cls(body)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        print_body(printer, self, self.body)

    def verify_(self) -> None:
        Violations.check(self._violations())

    def _violations(self) -> Iterator[Violation]:
        yield from dataflow_violations(self.body.block)  # C1, C2, C3
        expected = visible_types(self.body.block)
        if expected != tuple(self.result_types):
            wanted, got = (", ".join(map(str, types)) for types in (expected, self.result_types))
            message = f"'relax.dataflow' op expected results ({wanted}) as its output names, got ({got})"
            yield Violation(self, message)  # C4


def _bound_in(block: Block) -> set[str]:
    """The symbols that the ops of a block bind."""
    return {name for op in block.ops for name in symbols_witnessed(op)}


def visible_types(block: Block) -> tuple[StructInfo, ...]:
    """The types of the block's outputs, without the symbols that leave the region with no witness."""
    terminator = block.last_op
    outputs = as_struct_infos(terminator.operand_types if isinstance(terminator, OutputOp) else ())
    passed_on = {info.symbol for info in outputs if isinstance(info, PrimType)}
    lost = _bound_in(block) - passed_on
    return tuple(erase_symbols(info, lost) for info in outputs)


@op_definition
class OutputOp(IRDLOperation):
    """Names the values of a dataflow region that are visible outside.

    ```mlir
    relax.output %lv0, %lv1
    ```
    """

    name = "relax.output"

    values = var_operand_def(StructInfo)

    traits = traits_def(IsTerminator(), ReturnLike(), HasParent(DataflowOp), Pure())

    assembly_format = "$values attr-dict"

    def __init__(self, *values: SSAValue):
        super().__init__(operands=[values])


def fused_types(body: Region) -> tuple[StructInfo, ...]:
    """The types that the region of a group yields, without the symbols that are bound in it."""
    bound = {name for op in body.block.ops for name in symbols_witnessed(op)}
    return tuple(erase_symbols(info, bound) for info in as_struct_infos(value.type for value in yielded(body)))


@irdl_op_definition
class FusedOp(IRDLOperation):
    """Ops that are computed as one: values that the region does not yield are nowhere else, and need no memory.

    ```mlir
    %y = relax.fused {
      %0 = relax.call_tir @matmul(%x, %w) : !relax.tensor<[n, 8], f32>
      %1 = relax.call_tir @add(%0, %b) : !relax.tensor<[n, 8], f32>
      relax.yield %1
    }
    ```

    The region uses values from outside as they are. What the group is for may be said by attributes.

    C1: every op in the region is pure and has no regions of its own.
    C2: the results have the types that the region yields, in which dimensions are unknown that are bound inside.
    """

    name = "relax.fused"

    body = region_def("single_block")
    res = var_result_def(StructInfo)

    traits = traits_def(EndsInYield(), RecursiveMemoryEffect(), RecursivelySpeculatable())

    def __init__(self, body: Region | Sequence[Block] | Block):
        """`body` ends in `relax.yield`, from which the result types follow."""
        region = body if isinstance(body, Region) else Region(body)
        super().__init__(regions=[region], result_types=[fused_types(region)])

    @classmethod
    def parse(cls, parser: Parser) -> FusedOp:
        body, attributes = parse_body(parser, YieldOp)
        op = cls(body)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        print_body(printer, self, self.body)

    def verify_(self) -> None:
        for op in self.body.block.ops:
            if op.regions:
                raise VerifyException(f"'relax.fused' op holds '{op.name}', which has regions")  # C1
            if (reason := impurity_of(op)) is not None:
                raise VerifyException(f"'relax.fused' op holds '{op.name}', which is impure: it {reason}")  # C1
        expected = fused_types(self.body)
        if expected != tuple(self.result_types):
            raise VerifyException(
                f"'relax.fused' op expected results ({', '.join(map(str, expected))}) as it yields, "
                f"got ({', '.join(map(str, self.result_types))})"
            )  # C2
