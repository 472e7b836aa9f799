"""Groups of ops that become one kernel, or one call of a library."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Region
from xdsl.irdl import IRDLOperation, irdl_op_definition, region_def, traits_def, var_result_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import RecursivelySpeculatable, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from relax_dialect.ops.control_flow import YieldOp, yielded
from relax_dialect.ops.syntax import parse_body, print_body
from relax_dialect.scope import symbols_witnessed
from relax_dialect.struct_info.base import StructInfo, as_struct_infos
from relax_dialect.struct_info.erase import erase_symbols
from relax_dialect.traits import EndsInYield, impurity_of


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
