"""Names of the dialects and passes and where they live; nothing is imported until one is asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import cast

from xdsl.ir import Dialect
from xdsl.passes import ModulePass

# name -> "module:Dialect"
DIALECTS: dict[str, str] = {
    "relax": "relax_dialect.dialect:Relax",
    "tir": "tir_dialect.dialect:TIR",
    "vm": "vm_dialect.dialect:VM",
    "llvm_ext": "lowering.tir_to_llvm.llvm_ext:LLVM_EXT",
}

# name -> "module:Class". `canonicalize`, `cse` and `dce` are xDSL's own and follow the effects and patterns on our ops.
PASSES: dict[str, str] = {
    "inline-functions": "lowering.relax.functions.inline_functions:InlineFunctionsPass",
    "bind-symbolic-vars": "lowering.relax.functions.bind_symbolic_vars:BindSymbolicVarsPass",
    "bind-params": "lowering.relax.functions.bind_params:BindParamsPass",
    "rewrite-attention": "lowering.relax.rewrites.rewrite_attention:RewriteAttentionPass",
    "rewrite-normalization": "lowering.relax.rewrites.rewrite_normalization:RewriteNormalizationPass",
    "expand-conv-transpose": "lowering.relax.rewrites.expand_conv_transpose:ExpandConvTransposePass",
    "expand-recurrent-layers": "lowering.relax.rewrites.expand_recurrent_layers:ExpandRecurrentLayersPass",
    "simplify-arithmetic": "lowering.relax.rewrites.simplify_arithmetic:SimplifyArithmeticPass",
    "fold-batch-norm": "lowering.relax.rewrites.fold_batch_norm:FoldBatchNormPass",
    "channels-last": "lowering.relax.layout.channels_last:ChannelsLastPass",
    "convert-layout": "lowering.relax.layout.convert_layout:ConvertLayoutPass",
    "volumes-in-blocks": "lowering.relax.layout.volumes_in_blocks:VolumesInBlocksPass",
    "lines-as-pictures": "lowering.relax.layout.lines_as_pictures:LinesAsPicturesPass",
    "simplify-permute-dims": "lowering.relax.rewrites.simplify_permute_dims:SimplifyPermuteDimsPass",
    "simplify-reshapes": "lowering.relax.rewrites.simplify_reshapes:SimplifyReshapesPass",
    "fold-constants": "lowering.relax.rewrites.fold_constants:FoldConstantsPass",
    "fold-shape-computations": "lowering.relax.rewrites.fold_shape_computations:FoldShapeComputationsPass",
    "expose-prim-funcs": "lowering.relax.functions.expose_prim_funcs:ExposePrimFuncsPass",
    "adjust-matmul-order": "lowering.relax.rewrites.adjust_matmul_order:AdjustMatmulOrderPass",
    "expand-matmul-of-sum": "lowering.relax.rewrites.expand_matmul_of_sum:ExpandMatmulOfSumPass",
    "reorder-take-after-matmul": "lowering.relax.rewrites.reorder_take_after_matmul:ReorderTakeAfterMatmulPass",
    "combine-parallel-matmul": "lowering.relax.rewrites.combine_parallel_matmul:CombineParallelMatmulPass",
    "to-mixed-precision": "lowering.relax.rewrites.to_mixed_precision:ToMixedPrecisionPass",
    "lambda-lift": "lowering.relax.functions.lambda_lift:LambdaLiftPass",
    "annotate-op-pattern": "lowering.relax.fusion.annotate_op_pattern:AnnotateOpPatternPass",
    "fuse-ops": "lowering.relax.fusion.fuse_ops:FuseOpsPass",
    "fuse-tir": "lowering.relax.fusion.fuse_tir:FuseTIRPass",
    "pack-weights": "lowering.relax.layout.pack_weights:PackWeightsPass",
    "to-non-dataflow": "lowering.relax.to_non_dataflow:ToNonDataflowPass",
    "copy-constants": "lowering.relax.memory.copy_constants:CopyConstantsPass",
    "bind-unknown-dims": "lowering.relax.shapes.bind_unknown_dims:BindUnknownDimsPass",
    "defer-unknown-types": "lowering.relax.deferred.defer_unknown_types:DeferUnknownTypesPass",
    "convert-to-dataflow": "lowering.relax.convert_to_dataflow:ConvertToDataflowPass",
    "topological-sort": "lowering.relax.topological_sort:TopologicalSortPass",
    "dead-code-elimination": "lowering.relax.dead_code_elimination:DeadCodeEliminationPass",
    "expand-tuple-arguments": "lowering.relax.functions.expand_tuple_arguments:ExpandTupleArgumentsPass",
    "remove-unused-parameters": "lowering.relax.functions.remove_unused_parameters:RemoveUnusedParametersPass",
    "remove-unused-outputs": "lowering.relax.functions.remove_unused_outputs:RemoveUnusedOutputsPass",
    "simplify-match-cast": "lowering.relax.simplify_match_cast:SimplifyMatchCastPass",
    "eliminate-common-subexpr": "lowering.relax.eliminate_common_subexpr:EliminateCommonSubexprPass",
    "lift-transform-params": "lowering.relax.functions.lift_transform_params:LiftTransformParamsPass",
    "update-param-struct-info": "lowering.relax.functions.update_param_struct_info:UpdateParamStructInfoPass",
    "infer-struct-info": "lowering.relax.infer_struct_info:InferStructInfoPass",
    "fuse-ops-by-pattern": "lowering.byoc.fuse_ops_by_pattern:FuseOpsByPatternPass",
    "merge-composites": "lowering.byoc.merge_composites:MergeCompositesPass",
    "run-codegen": "lowering.byoc.run_codegen:RunCodegenPass",
    "insert-guards": "lowering.relax.shapes.insert_guards:InsertGuardsPass",
    "check-accesses": "lowering.tir.check_accesses:CheckAccessesPass",
    "legalize-ops": "lowering.relax_to_tir.legalize_ops:LegalizeOpsPass",
    "lower-call-tir": "lowering.relax.memory.lower_call_tir:LowerCallTIRPass",
    "hoist-branch-results": "lowering.relax.memory.hoist_branch_results:HoistBranchResultsPass",
    "write-parts-in-place": "lowering.relax.memory.write_parts_in_place:WritePartsInPlacePass",
    "use-inplace-calls": "lowering.relax.memory.use_inplace_calls:UseInplaceCallsPass",
    "plan-memory": "lowering.relax.memory.plan_memory:PlanMemoryPass",
    "poison-memory": "lowering.relax.memory.poison_memory:PoisonMemoryPass",
    "remove-kills": "lowering.relax.memory.remove_kills:RemoveKillsPass",
    "insert-kills": "lowering.relax.memory.insert_kills:InsertKillsPass",
    "lower-shapes": "lowering.relax.shapes.lower_shapes:LowerShapesPass",
    "convert-relax-to-vm": "lowering.relax_to_vm.convert_relax_to_vm:ConvertRelaxToVMPass",
    "allocate-registers": "lowering.relax_to_vm.allocate_registers:AllocateRegistersPass",
    "convert-vm-to-llvm": "lowering.vm_to_llvm.convert_vm_to_llvm:ConvertVmToLLVMPass",
    "lower-init-blocks": "lowering.tir.lower_init_blocks:LowerInitBlocksPass",
    "hoist-guards": "lowering.tir.hoist_guards:HoistGuardsPass",
    "apply-schedule": "lowering.tir.apply_schedule:ApplySchedulePass",
    "schedule-cpu": "lowering.kernels.schedule_cpu:ScheduleCPUPass",
    "schedule-tuned": "lowering.tune.schedule_tuned:ScheduleTunedPass",
    "lower-blocks": "lowering.tir.lower_blocks:LowerBlocksPass",
    "compact-buffers": "lowering.tir.compact_buffers:CompactBuffersPass",
    "flatten-buffers": "lowering.tir.flatten_buffers:FlattenBuffersPass",
    "vectorize": "lowering.tir.vectorize:VectorizePass",
    "unroll": "lowering.tir.unroll:UnrollPass",
    "convert-tir-to-llvm": "lowering.tir_to_llvm.convert_tir_to_llvm:ConvertTIRToLLVMPass",
    "optimize-graph": "lowering.pipelines:OptimizeGraphPass",
    "relax-to-llvm-plain": "lowering.pipelines:RelaxToLLVMPlainPass",
    "relax-to-vm-plain": "lowering.pipelines:RelaxToVMPlainPass",
    "relax-to-vm": "lowering.pipelines:RelaxToVMPass",
    "tir-to-flat": "lowering.pipelines:TIRToFlatPass",
    "tir-to-llvm": "lowering.pipelines:TIRToLLVMPass",
    "relax-to-llvm": "lowering.pipelines:RelaxToLLVMPass",
    "verify-dominance": "lowering.verify.verify_dominance:VerifyDominancePass",
    "verify-stage": "lowering.verify.verify_stage:VerifyStagePass",
}


def load_dialect(name: str) -> Dialect:
    """The dialect `name`; `KeyError` if it is not one of ours."""
    return cast(Dialect, _load(DIALECTS[name]))


def load_pass(name: str) -> type[ModulePass]:
    """The class of the pass `name`; `KeyError` if there is none."""
    return cast(type[ModulePass], _load(PASSES[name]))


def dialect_factories() -> dict[str, Callable[[], Dialect]]:
    """One factory per dialect, as xDSL's `Universe` and `Context` want them."""
    return {name: partial(load_dialect, name) for name in DIALECTS}


def pass_factories() -> dict[str, Callable[[], type[ModulePass]]]:
    """One factory per registered pass, as xDSL's `Universe` wants them."""
    return {name: partial(load_pass, name) for name in PASSES}


def _load(where: str) -> object:
    module, _, attribute = where.partition(":")
    return getattr(import_module(module), attribute)
