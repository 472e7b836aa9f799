"""`pack-weights`: constants that only matrix products read are stored in the order in which these read them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.passes import Pass, pass_target
from lowering.relax.layout.weight_panels import PanelLayout, in_panels, panel_parameters, with_panels
from relax_dialect.ops.call_tir import CallTIROp
from relax_dialect.ops.prim_func import find_prim_func
from relax_dialect.ops.values import ConstantOp
from relax_dialect.struct_info.symbols import fresh_name
from relax_dialect.symbols import called_functions, symbol_name
from tir_dialect.elements import TensorAttr
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target

MOST_COPIED_BYTES = 1 << 20
"""A constant that others read too is packed, and kept twice, only if it has no more bytes."""


@dataclass(frozen=True)
class PackWeightsPass(Pass):
    """Packs constant right operands of matrix products into panels at compile time.

    Before, for a machine whose tiles have 32 columns:

    ```mlir
    tir.prim_func @matmul[%m](%A: !tir.buffer<[m, 64], f32>, %B: !tir.buffer<[64, 100], f32>, ...) {
      ... tir.load %B[%r, %j]
    }
    %w = relax.constant "w" : !relax.tensor<[64, 100], f32>
    %y = relax.call_tir @matmul(%x, %w) : !relax.tensor<[m, 100], f32>
    ```

    After:

    ```mlir
    tir.prim_func @matmul_panels[%m](%A: !tir.buffer<[m, 64], f32>, %B: !tir.buffer<[4, 64, 32], f32>, ...) {
      ... tir.load %B[%j floordiv 32, %r, %j mod 32]
    }
    %w = relax.constant "w.panels32" : !relax.tensor<[4, 64, 32], f32>
    %y = relax.call_tir @matmul_panels(%x, %w) : !relax.tensor<[m, 100], f32>
    ```

    The last panel is filled up with zeros. `schedule-cpu` reads panels where they are, so that nothing is packed when
    the program runs. Equal variants of a PrimFunc are made once, and a PrimFunc that is called no more goes.

    Left alone: constants whose elements are not in this process; those that others read too and that have more than a
    MiB; those that would become half as large again; factors that are not contiguous along one column and one reduced
    axis, or that a PrimFunc reads more than once. Idempotent, as what lies in panels is no such factor any more.
    """

    name = "pack-weights"
    requires = ("relax.constant",)

    target: str = ""
    """The machine; this one if it is not named."""

    def for_target(self, target: Target) -> PackWeightsPass:
        size = f"vector-bits={target.vector_bits} vector-registers={target.vector_registers}"
        return PackWeightsPass(f"host {size} cpu={target.cpu} features={target.features}")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites all calls of PrimFuncs with constants."""
        packing = _Packing(op, pass_target(self.target))
        for each in packing.calls:
            packing.rewrite(each)
        packing.clean()


Argument = tuple[CallTIROp, int]


@dataclass
class _Packing:
    """One run over a module."""

    module: ModuleOp
    target: Target
    calls: list[CallTIROp] = field(default_factory=list[CallTIROp])
    """Those with constants that may be packed."""
    _layouts: dict[PrimFuncOp, dict[int, PanelLayout]] = field(default_factory=dict[PrimFuncOp, dict[int, PanelLayout]])
    _variants: dict[tuple[PrimFuncOp, tuple[int, ...]], str] = field(
        default_factory=dict[tuple[PrimFuncOp, tuple[int, ...]], str]
    )
    _packed: dict[tuple[object, PanelLayout], TensorAttr] = field(
        default_factory=dict[tuple[object, PanelLayout], TensorAttr]
    )
    _made: dict[tuple[ConstantOp, PanelLayout], ConstantOp] = field(
        default_factory=dict[tuple[ConstantOp, PanelLayout], ConstantOp]
    )
    _replaced: dict[str, None] = field(default_factory=dict[str, None])
    _names: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        self._names.update(name for op in self.module.ops if (name := symbol_name(op)) is not None)
        self.calls += [op for op in self.module.walk() if isinstance(op, CallTIROp) and any(_constants(op))]
        self._alone = self._find_alone()

    def rewrite(self, call: CallTIROp) -> None:
        """The call of a variant, if there are constants for it."""
        func = find_prim_func(call, call.callee)
        layouts = {} if func is None else self._layouts_of(func)
        chosen = {number: constant for number, constant in _constants(call) if self._suits(number, constant, layouts)}
        if func is None or not chosen:
            return
        for number, constant in chosen.items():
            call.operands[number] = self._constant(constant, layouts[number]).result
            if not constant.result.uses:
                Rewriter.erase_op(constant)
        self._replaced[func.sym_name.data] = None
        call.callee = SymbolRefAttr(self._variant(func, tuple(chosen)))

    def _layouts_of(self, func: PrimFuncOp) -> dict[int, PanelLayout]:
        if func not in self._layouts:
            self._layouts[func] = panel_parameters(func, self.target)
        return self._layouts[func]

    def _suits(self, number: int, constant: ConstantOp, layouts: dict[int, PanelLayout]) -> bool:
        array = constant.array if number in layouts else None
        return array is not None and (constant in self._alone or array.nbytes <= MOST_COPIED_BYTES)

    def _find_alone(self) -> set[ConstantOp]:
        """The constants that nothing but products reads, all with one layout."""
        users: dict[object, list[tuple[ConstantOp, PanelLayout | None]]] = {}
        for op in self.module.walk():
            if isinstance(op, ConstantOp):
                found = [self._layout(use.operation, use.index) for use in op.result.uses]
                users.setdefault(op.value, []).extend((op, layout) for layout in found)
        groups = [group for group in users.values() if len({layout for _, layout in group}) == 1]
        return {op for group in groups for op, layout in group if layout is not None}

    def _layout(self, user: Operation, index: int) -> PanelLayout | None:
        func = find_prim_func(user, user.callee) if isinstance(user, CallTIROp) else None
        return None if func is None else self._layouts_of(func).get(index)

    def _constant(self, old: ConstantOp, layout: PanelLayout) -> ConstantOp:
        """A constant in panels, instead of the original."""
        if (old, layout) not in self._made:
            key = (old.value, layout)
            if key not in self._packed:
                self._packed[key] = in_panels(old.value, layout)
            new = self._made[old, layout] = ConstantOp(self._packed[key])
            new.location, new.result.name_hint = old.location, old.result.name_hint
            Rewriter.insert_op(new, InsertPoint.after(old))
        return self._made[old, layout]

    def _variant(self, func: PrimFuncOp, numbers: tuple[int, ...]) -> str:
        key = (func, numbers)
        if key not in self._variants:
            name = fresh_name(f"{func.sym_name.data}_panels", self._names)
            self._names.add(name)
            self._variants[key] = name
            made = with_panels(func, name, {number: self._layouts[func][number] for number in numbers})
            Rewriter.insert_op(made, InsertPoint.after(func))
        return self._variants[key]

    def clean(self) -> None:
        """Erases the PrimFuncs that have been replaced everywhere."""
        used = {name for op in self.module.walk() for name in called_functions(op)}
        for op in list(self.module.ops):
            if isinstance(op, PrimFuncOp) and op.sym_name.data in self._replaced and op.sym_name.data not in used:
                Rewriter.erase_op(op)


def _constants(call: CallTIROp) -> Iterator[tuple[int, ConstantOp]]:
    """The arguments of a call that are constants, by number."""
    for number, value in enumerate(call.arguments):
        if isinstance(value.owner, ConstantOp):
            yield number, value.owner
