"""Ops after their symbols were replaced, and the symbols of a kernel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from lowering.locations import inherit_location
from relax_dialect.inference import InfersResultTypes
from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.scope import prover_at
from relax_dialect.struct_info.match import Verdict, is_subtype
from relax_dialect.struct_info.types import as_struct_infos
from tir_dialect.dims import Dim, symbol


def settle(ops: Iterable[Operation]) -> None:
    """Makes ops whose symbols were replaced valid again; raises `VerifyException` if one can never succeed now.

    Where inference, knowing more, chooses another of two dimensions that are equal at run time only, a
    `relax.match_cast` leads back to the type that the uses expect.
    """
    for op in [inner for each in ops for inner in each.walk()]:
        try:
            op.verify_()
        except VerifyException:
            if not isinstance(op, InfersResultTypes):
                raise
            prover = prover_at(op)
            inferred = op.infer_result_types(op.operand_types, op.properties, prover)
            for result, info, old in zip(op.results, inferred, as_struct_infos(op.result_types), strict=True):
                if is_subtype(info, old, prover) is Verdict.RUNTIME:
                    new = Rewriter.replace_value_with_new_type(result, info)
                    cast = MatchCastOp(new, old)
                    cast.result.name_hint = new.name_hint
                    inherit_location(op, cast)
                    Rewriter.insert_op(cast, InsertPoint.after(op))
                    _replace_uses_but_one(new, cast)
            op.verify_()


def _replace_uses_but_one(value: SSAValue, cast: MatchCastOp) -> None:
    value.replace_uses_with_if(cast.result, lambda use: use.operation is not cast)


@dataclass
class KernelDims:
    """Maps dimensions of the caller to dimensions of one kernel.

    A symbol that is a dimension of a buffer by itself keeps its name; so does every expression over such symbols. Any
    other dimension of a buffer, such as the only dimension `m * n` of a flattened tensor, gets a symbol of its own:
    inside the kernel it does not matter how the caller came by the size. Dimensions that are no buffer's, such as the
    positions of a slice, stay as they are; the caller gives the values of their symbols.
    """

    _known: set[str] = field(default_factory=set[str])
    _renamed: dict[Dim, Dim] = field(default_factory=dict[Dim, Dim])

    @staticmethod
    def of(shapes: Iterable[Sequence[Dim]], others: Sequence[Dim] = ()) -> KernelDims:
        """The dimensions of a kernel whose buffers have these shapes, and that uses `others` too."""
        dims = list(dict.fromkeys(dim for shape in shapes for dim in shape))
        result = KernelDims({name for dim in dims if (name := dim.as_symbol) is not None})
        taken = {name for dim in (*dims, *others) for name in dim.symbols}
        for dim in dims:
            if not dim.symbols <= result._known:
                name = next(name for i in range(len(taken) + 1) if (name := f"d{i}") not in taken)
                taken.add(name)
                result._renamed[dim] = symbol(name)
        return result

    def shape(self, dims: Sequence[Dim]) -> tuple[Dim, ...]:
        """The shape of a buffer in the kernel's symbols."""
        return tuple(self._renamed.get(dim, dim) for dim in dims)

    def original(self, dim: Dim) -> Dim:
        """The caller's dimension for one in the kernel's symbols."""
        names = {new.as_symbol: old for old, new in self._renamed.items()}
        return dim.substitute({name: old for name, old in names.items() if name is not None})

    def symbols(self, shapes: Iterable[Sequence[Dim]], others: Sequence[Dim] = ()) -> tuple[str, ...]:
        """The kernel's symbols in an order that does not depend on their names."""
        used = [*(self.shape(dims) for dims in shapes), others]
        return tuple(dict.fromkeys(name for dims in used for dim in dims for name in sorted(dim.symbols)))
