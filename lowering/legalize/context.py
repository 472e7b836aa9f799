"""What a legalisation sees of an op, and how it hands over the kernel that computes it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar, cast

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.diagnostics import fail
from lowering.legalize.kernel_dims import KernelDims
from lowering.locations import inherit_location
from relax_dialect.ops.call_tir import CallTIROp
from relax_dialect.ops.prim_func import explicit_symbols
from relax_dialect.struct_info.symbols import fresh_name
from relax_dialect.struct_info.types import TensorType
from relax_dialect.symbols import symbol_name
from tir_dialect import te
from tir_dialect.dims import Dim, symbol
from tir_dialect.ops.function import PrimFuncOp

OpT = TypeVar("OpT", bound=Operation)
Outputs: TypeAlias = "te.Tensor | Sequence[te.Tensor]"
Rule: TypeAlias = "Callable[[Kernel, OpT], Outputs]"
Rewrite: TypeAlias = "Callable[[OpT], Sequence[SSAValue] | None]"

KERNELS: dict[type[Operation], Rule[Operation]] = {}
"""Ops that become one kernel."""

REWRITES: dict[type[Operation], Rewrite[Operation]] = {}
"""Ops that become other ops, or stay what they are."""


def legalizes(op_type: type[OpT]) -> Callable[[Rule[OpT]], Rule[OpT]]:
    """Registers the tensor expression of an op."""

    def register(rule: Rule[OpT]) -> Rule[OpT]:
        KERNELS[op_type] = cast("Rule[Operation]", rule)
        return rule

    return register


def rewrites(op_type: type[OpT]) -> Callable[[Rewrite[OpT]], Rewrite[OpT]]:
    """Registers how an op becomes others: new ops stand in front of it, the values replace its results; `None` leaves
    it.
    """

    def register(rule: Rewrite[OpT]) -> Rewrite[OpT]:
        REWRITES[op_type] = cast("Rewrite[Operation]", rule)
        return rule

    return register


@dataclass
class Kernels:
    """The PrimFuncs of a module that legalisation has made; equal kernels are made once."""

    module: ModuleOp
    _made: dict[Hashable, PrimFuncOp] = field(default_factory=dict[Hashable, PrimFuncOp])
    _names: set[str] = field(default_factory=set[str])
    _last: PrimFuncOp | None = None

    def __post_init__(self) -> None:
        self._names.update(name for op in self.module.ops if (name := symbol_name(op)) is not None)

    def get(self, key: Hashable, name: str, make: Callable[[str], PrimFuncOp]) -> PrimFuncOp:
        """The kernel with this key; `make` is called with its name if it is new."""
        found = self._made.get(key)
        if found is None:
            unique = fresh_name(name, self._names)
            self._names.add(unique)
            found = self._made[key] = make(unique)
            block = self.module.body.block
            place = InsertPoint.at_start(block) if self._last is None else InsertPoint.after(self._last)
            Rewriter.insert_op(found, place)
            self._last = found
        return found


class Kernel:
    """The op that is legalised, with its tensors as placeholders."""

    def __init__(self, op: Operation):
        """Fails at the op if a shape or dtype is not known."""
        self._op = op
        self._operands = [value for value in dict.fromkeys(op.operands) if isinstance(value.type, TensorType)]
        self._results = [value for value in op.results if isinstance(value.type, TensorType)]
        shapes = [self._known(value) for value in (*self._operands, *self._results)]
        self._shapes = dict(zip((*self._operands, *self._results), shapes, strict=True))
        self._dims = KernelDims.of(shapes)
        self._placeholders: dict[SSAValue, te.Tensor] = {}

    def tensor(self, value: SSAValue) -> te.Tensor:
        """The placeholder of a tensor operand."""
        found = self._placeholders.get(value)
        if found is None:
            index = self._operands.index(value)
            dtype = self._dtype(value)
            found = te.placeholder(self.shape(value), str(dtype), value.name_hint or f"X{index}")
            self._placeholders[value] = found
        return found

    def shape(self, value: SSAValue) -> tuple[Dim, ...]:
        """The shape of a tensor operand or result in the kernel's symbols."""
        return self._dims.shape(self._shapes[value])

    def dtype(self, value: SSAValue) -> Attribute:
        """The element type of a tensor operand or result."""
        return self._dtype(value)

    @property
    def key(self) -> Hashable:
        """Equal for ops that have the same kernel."""
        values = (*self._operands, *self._results)
        places = tuple(self._operands.index(v) if v in self._shapes else -1 for v in self._op.operands)
        dtypes = tuple(self._dtype(value) for value in values)
        properties = tuple(sorted(self._op.properties.items(), key=lambda item: item[0]))
        return (type(self._op), properties, places, dtypes, self._dims.key(self._shapes[v] for v in values))

    def build(self, outputs: Outputs, name: str) -> PrimFuncOp:
        """The PrimFunc over all tensor operands and the outputs."""
        tensors = [outputs] if isinstance(outputs, te.Tensor) else list(outputs)
        func = te.create_prim_func([*(self.tensor(value) for value in self._operands), *tensors], name=name)
        inherit_location(self._op, func)
        return func

    def call(self, func: PrimFuncOp) -> CallTIROp:
        """The call that takes the op's place."""
        tir_vars = [symbol(name) for name in explicit_symbols(func)]
        results = [value.type for value in self._results if isinstance(value.type, TensorType)]
        return CallTIROp(SymbolRefAttr(func.sym_name.data), self._operands, results, tir_vars=tir_vars)

    def _known(self, value: SSAValue) -> tuple[Dim, ...]:
        info = value.type
        if not isinstance(info, TensorType) or info.known_dims is None or info.dtype is None:
            fail(
                self._op,
                f"expected known dtypes and dimensions to make a kernel, got {info}",
                "run 'bind-unknown-dims' first, or refine the value with 'relax.match_cast'",
            )
        return info.known_dims

    def _dtype(self, value: SSAValue) -> Attribute:
        info = value.type
        if not isinstance(info, TensorType) or info.dtype is None:
            fail(self._op, f"expected a tensor of known dtype, got {info}")
        return info.dtype
