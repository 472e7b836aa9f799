"""The pipelines as data. Read from top to bottom they are the compiler; each is a pass of its own too."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterator
from typing import ClassVar

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass, PassPipeline

from lowering.debug import Debug, debug_level, show
from lowering.index import INDEX
from lowering.pass_context import PassContext
from lowering.registry import Pass, available_passes, steps_before
from tir_dialect.fast_ops import walked
from tir_dialect.target import Target


class PipelinePass(ModulePass, ABC):
    """A pass that is a list of passes. `relax-opt` shows, times and verifies each of them."""

    steps: ClassVar[tuple[str, ...]]
    """The passes, with options, as they are written for `relax-opt -p`."""

    @classmethod
    def passes(cls) -> tuple[ModulePass, ...]:
        """The passes, with pipelines among them taken apart."""
        return tuple(inner for step in cls.all_steps() for each in _parsed(step) for inner in expand(each))

    @classmethod
    def all_steps(cls) -> Iterator[str]:
        """The steps, with those that extensions have put before them."""
        for step in cls.steps:
            yield from steps_before(step.partition("{")[0])
            yield step

    @override
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        self.run(ctx, op)

    @classmethod
    def run(
        cls,
        ctx: Context,
        op: ModuleOp,
        target: Target | None = None,
        *,
        after: Callable[[str], object] = lambda name: None,
    ) -> None:
        """Applies the passes, for a machine if one is given; else those that depend on one take this one.

        Passes that the `PassContext` around disables, or that have nothing to do, are left out before their code is
        loaded. `after` gets the name of each pass that is done.
        """
        contents, context = Contents(op), PassContext.entered()
        for step in cls.all_steps():
            name = step.partition("{")[0]
            if (context is not None and name in context.disabled) or not contents.concern(name):
                continue
            for each in _parsed(step):
                if isinstance(each, PipelinePass):
                    each.run(ctx, op, target, after=after)
                    continue
                if context is not None:
                    context.before(each.name, op)
                (each if target is None else for_target(each, target)).apply(ctx, op)
                if debug_level() >= Debug.STAGES:
                    show(Debug.STAGES, f"IR after {each.name}", str(op))
                if context is not None:
                    if context.verify:
                        # Not at the top: the pipelines of kernels are loaded without graphs, and builds verify once.
                        from lowering.verify import verify_module

                        verify_module(op)
                    context.after(each.name, op)
                after(each.name)
            contents.forget()


def _parsed(step: str) -> tuple[ModulePass, ...]:
    """The pass of a step, with its options."""
    return PassPipeline.parse_spec(available_passes(), step).passes


def for_target(each: ModulePass, target: Target) -> ModulePass:
    """The same pass for a machine, if what it does depends on one."""
    return each.for_target(target) if isinstance(each, Pass) else each


class Contents:
    """The ops of a module, by which a pipeline tells what a pass has nothing to do with."""

    def __init__(self, module: ModuleOp):
        self._module = module
        self._names: frozenset[str] | None = None

    def concern(self, name: str) -> bool:
        """Whether the module has an op that the pass `name` is about."""
        entry = INDEX.get(name)
        if entry is None or not entry.requires:
            return True
        if self._names is None:
            self._names = frozenset(op.name for op in walked(self._module))
        has_any = not self._names.isdisjoint(entry.requires)
        return has_any or (entry.folds and any(map(_has_known_operands, walked(self._module))))

    def forget(self) -> None:
        """The module has changed."""
        self._names = None


def _has_known_operands(op: Operation) -> bool:
    """Whether an op is an operator on constants, or on values whose types may say what they are."""
    # Not at the top: the pipelines of kernels see no operators.
    from relax_dialect.ops.operator import Operator
    from relax_dialect.ops.values import ConstantOp
    from relax_dialect.struct_info.types import PrimType, ShapeType

    return isinstance(op, Operator) and all(
        isinstance(value.owner, ConstantOp) or isinstance(value.type, ShapeType | PrimType) for value in op.operands
    )


def expand(each: ModulePass) -> tuple[ModulePass, ...]:
    """The passes of a pipeline, or the pass itself."""
    return each.passes() if isinstance(each, PipelinePass) else (each,)


class OptimizeGraphPass(PipelinePass):
    """Optimises graphs: graph to graph.

    ```mlir
    %0 = relax.permute_dims %weight
    %1 = relax.matmul %x, %0
    // becomes
    %1 = relax.matmul %x, %weight_transposed
    ```
    """

    name = "optimize-graph"

    steps = (
        # What is known when the program is compiled: first shapes, which let more operators have static operands.
        "fold-shape-computations",
        "adjust-matmul-order",
        "expand-conv-transpose",
        "expand-recurrent-layers",
        # Before the folding of weights, whose order it changes.
        "channels-last",
        "fold-constants",
        "fold-batch-norm",
        "convert-conv-to-matmul",
        "convert-conv1d-to-conv2d",
        "simplify-arithmetic",
        # Before quotients become multiples, which use a value twice.
        "propagate-quantization",
        "simplify-quantization",
        # Before attention, which has a softmax in it.
        "rewrite-normalization",
        "rewrite-attention",
        # Fewer changes of order and shape, and what is elementwise next to what it can be fused with.
        "simplify-permute-dims",
        # Channels in blocks from one convolution to the next.
        "convert-layout",
        "simplify-reshapes",
        # Only now: other passes look through what is elementwise.
        "use-byte-tables",
        # After that, which knows the quotients by their form.
        "fold-requantization",
        # Only now: what patterns recognise is used once.
        "eliminate-common-subexpr",
    )


_KERNELS_TO_LLVM = (
    # Loops that suit the machine.
    "schedule-cpu",
    "tir-to-flat",
    "convert-tir-to-llvm",
)

_TO_FUNCTIONS = (
    # Passes share the memory of values, so they say where values end.
    "remove-kills",
    # Closures become functions, so that no later pass meets a nested one.
    "lambda-lift",
    # What is written into is no constant for what follows.
    "copy-constants",
)

_TO_CHECKED = (
    # A caller may write into what it gets. Constants have been folded.
    "copy-constants",
    # Everything that is not known at compile time gets a name and a check.
    "bind-unknown-dims",
    "defer-unknown-types",
    "insert-guards",
    # Only now: what operators become keeps to its buffers.
    "check-accesses",
)

_TO_KERNELS = (
    # Operators become calls of PrimFuncs.
    "legalize-ops",
    "verify-stage{stage=relax-legal or-later=true}",
)

_TO_MEMORY = (
    # Memory: made, placed, ended.
    "to-non-dataflow",
    "lower-call-tir",
    "verify-stage{stage=relax-dps or-later=true}",
)

_FROM_MEMORY = (
    "plan-memory",
    "insert-kills",
    "verify-stage{stage=relax-memory or-later=true}",
    # Shapes: checked at the entry, then plain integers.
    "lower-shapes",
    "convert-relax-to-vm",
    "dce",
    "verify-stage{stage=vm or-later=true}",
)


class RelaxToVMPass(PipelinePass):
    """Lowers graphs to VM functions; PrimFuncs stay.

    ```mlir
    relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> { ... }
    // becomes
    vm.func @main(%x: !vm.object) -> !vm.tensor<1, f32> { ... }
    ```
    """

    name = "relax-to-vm"

    steps = (
        *_TO_FUNCTIONS,
        "optimize-graph",
        *_TO_CHECKED,
        # Convolutions on blocks with fewer multiplications.
        "use-winograd",
        *_TO_KERNELS,
        # Kernels that can be computed together become one.
        "fuse-ops",
        "fuse-tir",
        # Constants in the order in which products read them.
        "pack-weights",
        *_TO_MEMORY,
        "hoist-branch-results",
        "write-parts-in-place",
        "use-inplace-calls",
        *_FROM_MEMORY,
    )


class RelaxToVMPlainPass(PipelinePass):
    """Like `relax-to-vm` without optimisation: every operator is a kernel of its own.

    ```mlir
    relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> { ... }
    // becomes
    vm.func @main(%x: !vm.object) -> !vm.tensor<1, f32> { ... }
    ```
    """

    name = "relax-to-vm-plain"

    steps = (
        *_TO_FUNCTIONS,
        *_TO_CHECKED,
        *_TO_KERNELS,
        # None is made here, but a program may have groups.
        "fuse-tir",
        *_TO_MEMORY,
        *_FROM_MEMORY,
    )


class TIRToFlatPass(PipelinePass):
    """Lowers blocks of PrimFuncs to loops, loads and stores.

    ```mlir
    tir.block "exp" (%vi = spatial %i in %n) { ... tir.store %y, %Y[%vi] }
    // becomes
    tir.store %y, %Y[%i]
    ```
    """

    name = "tir-to-flat"

    steps = (
        # First values before the loops of a reduction, not after a branch inside of them.
        "lower-init-blocks",
        # Whole tiles in registers and full vectors.
        "hoist-guards",
        "lower-blocks",
        # Indices are expressions of loop variables now.
        "compact-buffers",
    )


class TIRToLLVMPass(PipelinePass):
    """Lowers PrimFuncs to LLVM functions of the native ABI, which keep to their buffers; other functions stay.

    ```mlir
    tir.prim_func @exp[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) { ... }
    // becomes
    llvm.func @exp(%n: i64, %X: !llvm.ptr, %Y: !llvm.ptr) -> i32 { ... }
    ```
    """

    name = "tir-to-llvm"

    steps = ("check-accesses", *_KERNELS_TO_LLVM)


_VM_TO_LLVM = (
    # Kernels first: their definitions tell the machine's functions how to call them. They have been checked.
    *_KERNELS_TO_LLVM,
    "convert-vm-to-llvm",
    "verify-stage{stage=llvm}",
)


class RelaxToLLVMPass(PipelinePass):
    """Lowers graphs to one LLVM module: tvm-ffi entries, VM functions, kernels.

    ```mlir
    relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> { ... }
    // becomes
    llvm.func @__tvm_ffi_main(%self: !llvm.ptr, %args: !llvm.ptr, %count: i32, %ret: !llvm.ptr) -> i32 { ... }
    ```

    Works from any stage on the way; what is LLVM already stays.
    """

    name = "relax-to-llvm"

    steps = ("relax-to-vm", *_VM_TO_LLVM)


class RelaxToLLVMPlainPass(PipelinePass):
    """Like `relax-to-llvm` without optimisation of the graph: every operator is a kernel of its own.

    ```mlir
    relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> { ... }
    // becomes
    llvm.func @__tvm_ffi_main(%self: !llvm.ptr, %args: !llvm.ptr, %count: i32, %ret: !llvm.ptr) -> i32 { ... }
    ```
    """

    name = "relax-to-llvm-plain"

    steps = ("relax-to-vm-plain", *_VM_TO_LLVM)
