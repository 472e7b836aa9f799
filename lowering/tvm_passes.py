"""TVM Relax's passes (0.27), each with what stands for it here, or why nothing does.

An entry says passes of ours in backticks with a word on how, or `-` and a reason.
"""

from __future__ import annotations

from difflib import get_close_matches

_TRAINING = "- training is out of scope"
_DISTRIBUTED = "- a rewrite for GPUs that share memory"
_DEVICES = "- devices other than the CPU are out of scope"
_VERIFIED = "- nothing to do: types and names are checked when ops are made and by the verifier"

TVM: dict[str, str] = {
    "AdjustMatmulOrder": "`adjust-matmul-order`, also with symbolic sizes, where the prover decides",
    "AllocateWorkspace": "- a backend gets its memory from its own library; kernels of ours keep scratch memory inside",
    "AlterOpImpl": "`convert-layout`, `pack-weights`: layouts follow from operators, not from replaced kernels",
    "AnnotateCustomMemoryScope": _DEVICES,
    "AnnotateTIROpPattern": "`annotate-op-pattern`; `fuse-ops` analyses by itself",
    "AppendLoss": _TRAINING,
    "AttachAttrLayoutFreeBuffers": "`pack-weights`, which packs constants without tuning",
    "AttachExternModules": "- a hand-off is a packed function by name; its code is loaded like any library",
    "AttachGlobalSymbol": "- the name of a function is its symbol",
    "BindParams": "`bind-params`",
    "BindSymbolicVars": "`bind-symbolic-vars`",
    "BundleModelParams": "- weights are constants outside of the text, which the importer maps into memory",
    "CallTIRRewrite": "`lower-call-tir`",
    "CanonicalizeBindings": "`canonicalize`, `simplify-match-cast`; there are no bindings that only rename",
    "CombineParallelMatmul": "`combine-parallel-matmul`; not by default, since with packed weights it gains nothing",
    "ComputePrimValue": "`convert-relax-to-vm`: sizes are integers in registers, computed where they are needed",
    "ConvertLayout": "`convert-layout`, into blocks of channels; `channels-last` for integers",
    "ConvertToDataflow": "`convert-to-dataflow`",
    "DataflowUseInplaceCalls": "`use-inplace-calls`, after fusion and for any elementwise kernel",
    "DeadCodeElimination": "`dead-code-elimination`, `dce`",
    "DecomposeOpsForInference": "`fold-batch-norm`; every other operator has a kernel or an instruction",
    "DecomposeOpsForTraining": _TRAINING,
    "DispatchSampling": "`legalize-ops`: sampling is a kernel",
    "DispatchSortScan": "`legalize-ops`: sorting, top-k and sums along an axis are kernels",
    "EliminateCommonSubexpr": "`eliminate-common-subexpr`",
    "ExpandMatmulOfSum": "`expand-matmul-of-sum`",
    "ExpandTupleArguments": "`expand-tuple-arguments`",
    "FastMathTransform": "`convert-tir-to-llvm`: exp, erf, tanh and more, within 2 units in the last place",
    "FoldBatchnormToConv2D": "`fold-batch-norm`, also into matrix products, and past a bias",
    "FoldConstant": "`fold-constants`, `fold-shape-computations`",
    "FoldVDeviceScopeChange": _DEVICES,
    "FuseOps": "`fuse-ops`",
    "FuseOpsByPattern": "`fuse-ops-by-pattern`",
    "FuseTIR": "`fuse-tir`",
    "FuseTransposeMatmul": "`fuse-ops`: products read their operands in any order of dimensions",
    "Gradient": _TRAINING,
    "IPCAllReduceRewrite": _DISTRIBUTED,
    "InlinePrivateFunctions": "`inline-functions`",
    "KillAfterLastUse": "`insert-kills`, of arenas and of what has memory of its own",
    "LambdaLift": "`lambda-lift`",
    "LazyGetInput": "- weights are no inputs; they are mapped into memory and read when a kernel touches them",
    "LazySetOutput": "- as `LazyGetInput`",
    "LazyTransformParams": "- as `LazyGetInput`; what only weights decide is computed by `fold-constants`",
    "LegalizeOps": "`legalize-ops`",
    "LegalizeRedistribute": "`lower-distributed`",
    "LiftTransformParams": "`lift-transform-params`",
    "LowerAllocTensor": "`plan-memory`; what stays a `relax.alloc_tensor` is one instruction",
    "LowerDistIR": "`lower-distributed`",
    "LowerGPUIPCAllocStorage": _DEVICES,
    "LowerGlobalViewToLocalView": "`lower-distributed`",
    "LowerRuntimeBuiltin": "`convert-relax-to-vm`",
    "MergeCompositeFunctions": "`merge-composites`",
    "MetaScheduleApplyDatabase": "`schedule-tuned`, and `build`: from the file that `relax-run --tune` writes",
    "MetaScheduleTuneIRMod": "- `relax-run --tune`",
    "MetaScheduleTuneTIR": "- `relax-run --tune`",
    "Normalize": _VERIFIED,
    "NormalizeGlobalVar": _VERIFIED,
    "OptimizeLayoutTransform": "`convert-layout`: layouts are chosen for a graph as a whole, so few changes remain",
    "PropagateSharding": "`propagate-sharding`",
    "RealizeVDevice": _DEVICES,
    "RemovePurityChecking": "`lower-call-tir` marks what it lowers `force_pure`",
    "RemoveRedundantReshape": "`simplify-reshapes`, which also lets elementwise operators pass",
    "RemoveUnusedOutputs": "`remove-unused-outputs`",
    "RemoveUnusedParameters": "`remove-unused-parameters`",
    "ReorderPermuteDimsAfterConcat": "`simplify-permute-dims`",
    "ReorderTakeAfterMatmul": "`reorder-take-after-matmul`",
    "RewriteCUDAGraph": _DEVICES,
    "RewriteDataflowReshape": "- a `relax.reshape` is a view at every level; it never becomes a kernel",
    "RunCodegen": "`run-codegen`",
    "SetupTrainer": _TRAINING,
    "SpecializePrimFuncBasedOnCallSite": _DEVICES,
    "SplitCallTIRByPattern": "`fuse-ops-by-pattern`, which finds what a library does before it is a kernel",
    "SplitLayoutRewritePreproc": "`pack-weights`",
    "StaticPlanBlockMemory": "`plan-memory`, one arena over all blocks; upper bounds are those of the symbols",
    "ToMixedPrecision": "`to-mixed-precision`",
    "ToNonDataflow": "`to-non-dataflow`",
    "TopologicalSort": "`topological-sort`",
    "UpdateParamType": "`update-param-struct-info`",
    "UpdateVDevice": _DEVICES,
    "VMShapeLower": "`lower-shapes`, `convert-relax-to-vm`",
}
"""Every pass of `relax.transform`, and those of its backends that have a name."""


def advice(name: str) -> str | None:
    """What to do instead of a pass of TVM, in a line; `None` for a name that is none of these."""
    if (text := TVM.get(name)) is None:
        close = get_close_matches(name, TVM, n=1, cutoff=0.75) if name[:1].isupper() else []
        return None if not close else f"did you mean TVM's {close[0]}? {advice(close[0])}"
    return f"nothing stands for it, {text[2:]}" if text.startswith("- ") else f"here it is {text.replace('`', '')}"
