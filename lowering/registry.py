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
    "llvm_ext": "lowering.to_llvm.llvm_ext:LLVM_EXT",
}

# name -> "module:Class". `canonicalize`, `cse` and `dce` are xDSL's own and follow the effects and patterns on our ops.
PASSES: dict[str, str] = {
    "inline-functions": "lowering.graph.functions.inline_functions:InlineFunctionsPass",
    "bind-symbolic-vars": "lowering.graph.functions.bind_symbolic_vars:BindSymbolicVarsPass",
    "bind-params": "lowering.graph.functions.bind_params:BindParamsPass",
    "rewrite-attention": "lowering.graph.rewrites.rewrite_attention:RewriteAttentionPass",
    "rewrite-normalization": "lowering.graph.rewrites.rewrite_normalization:RewriteNormalizationPass",
    "expand-conv-transpose": "lowering.graph.rewrites.expand_conv_transpose:ExpandConvTransposePass",
    "expand-recurrent-layers": "lowering.graph.rewrites.expand_recurrent_layers:ExpandRecurrentLayersPass",
    "simplify-arithmetic": "lowering.graph.rewrites.simplify_arithmetic:SimplifyArithmeticPass",
    "fold-batch-norm": "lowering.graph.rewrites.fold_batch_norm:FoldBatchNormPass",
    "channels-last": "lowering.graph.layouts.channels_last:ChannelsLastPass",
    "convert-layout": "lowering.graph.layouts.convert_layout:ConvertLayoutPass",
    "volumes-in-blocks": "lowering.graph.layouts.volumes_in_blocks:VolumesInBlocksPass",
    "lines-as-pictures": "lowering.graph.layouts.lines_as_pictures:LinesAsPicturesPass",
    "simplify-permute-dims": "lowering.graph.rewrites.simplify_permute_dims:SimplifyPermuteDimsPass",
    "simplify-reshapes": "lowering.graph.rewrites.simplify_reshapes:SimplifyReshapesPass",
    "fold-constants": "lowering.graph.rewrites.fold_constants:FoldConstantsPass",
    "fold-shape-computations": "lowering.graph.rewrites.fold_shape_computations:FoldShapeComputationsPass",
    "expose-prim-funcs": "lowering.graph.functions.expose_prim_funcs:ExposePrimFuncsPass",
    "adjust-matmul-order": "lowering.graph.rewrites.adjust_matmul_order:AdjustMatmulOrderPass",
    "expand-matmul-of-sum": "lowering.graph.rewrites.expand_matmul_of_sum:ExpandMatmulOfSumPass",
    "reorder-take-after-matmul": "lowering.graph.rewrites.reorder_take_after_matmul:ReorderTakeAfterMatmulPass",
    "combine-parallel-matmul": "lowering.graph.rewrites.combine_parallel_matmul:CombineParallelMatmulPass",
    "to-mixed-precision": "lowering.graph.rewrites.to_mixed_precision:ToMixedPrecisionPass",
    "lambda-lift": "lowering.graph.functions.lambda_lift:LambdaLiftPass",
    "annotate-op-pattern": "lowering.graph.fusion.annotate_op_pattern:AnnotateOpPatternPass",
    "fuse-ops": "lowering.graph.fusion.fuse_ops:FuseOpsPass",
    "fuse-tir": "lowering.graph.fusion.fuse_tir:FuseTIRPass",
    "pack-weights": "lowering.graph.layouts.pack_weights:PackWeightsPass",
    "to-non-dataflow": "lowering.graph.to_non_dataflow:ToNonDataflowPass",
    "copy-constants": "lowering.memory.copy_constants:CopyConstantsPass",
    "bind-unknown-dims": "lowering.shapes.bind_unknown_dims:BindUnknownDimsPass",
    "defer-unknown-types": "lowering.deferred.defer_unknown_types:DeferUnknownTypesPass",
    "convert-to-dataflow": "lowering.graph.convert_to_dataflow:ConvertToDataflowPass",
    "topological-sort": "lowering.graph.topological_sort:TopologicalSortPass",
    "dead-code-elimination": "lowering.graph.dead_code_elimination:DeadCodeEliminationPass",
    "expand-tuple-arguments": "lowering.graph.functions.expand_tuple_arguments:ExpandTupleArgumentsPass",
    "remove-unused-parameters": "lowering.graph.functions.remove_unused_parameters:RemoveUnusedParametersPass",
    "remove-unused-outputs": "lowering.graph.functions.remove_unused_outputs:RemoveUnusedOutputsPass",
    "simplify-match-cast": "lowering.graph.simplify_match_cast:SimplifyMatchCastPass",
    "eliminate-common-subexpr": "lowering.graph.eliminate_common_subexpr:EliminateCommonSubexprPass",
    "lift-transform-params": "lowering.graph.functions.lift_transform_params:LiftTransformParamsPass",
    "update-param-struct-info": "lowering.graph.functions.update_param_struct_info:UpdateParamStructInfoPass",
    "infer-struct-info": "lowering.graph.infer_struct_info:InferStructInfoPass",
    "fuse-ops-by-pattern": "lowering.byoc.fuse_ops_by_pattern:FuseOpsByPatternPass",
    "merge-composites": "lowering.byoc.merge_composites:MergeCompositesPass",
    "run-codegen": "lowering.byoc.run_codegen:RunCodegenPass",
    "insert-guards": "lowering.shapes.insert_guards:InsertGuardsPass",
    "check-accesses": "lowering.tir.check_accesses:CheckAccessesPass",
    "legalize-ops": "lowering.legalize.legalize_ops:LegalizeOpsPass",
    "lower-call-tir": "lowering.memory.lower_call_tir:LowerCallTIRPass",
    "hoist-branch-results": "lowering.memory.hoist_branch_results:HoistBranchResultsPass",
    "write-parts-in-place": "lowering.memory.write_parts_in_place:WritePartsInPlacePass",
    "use-inplace-calls": "lowering.memory.use_inplace_calls:UseInplaceCallsPass",
    "plan-memory": "lowering.memory.plan_memory:PlanMemoryPass",
    "poison-memory": "lowering.memory.poison_memory:PoisonMemoryPass",
    "remove-kills": "lowering.memory.remove_kills:RemoveKillsPass",
    "insert-kills": "lowering.memory.insert_kills:InsertKillsPass",
    "lower-shapes": "lowering.shapes.lower_shapes:LowerShapesPass",
    "convert-relax-to-vm": "lowering.to_vm.convert_relax_to_vm:ConvertRelaxToVMPass",
    "allocate-registers": "lowering.to_vm.allocate_registers:AllocateRegistersPass",
    "convert-vm-to-llvm": "lowering.native.convert_vm_to_llvm:ConvertVmToLLVMPass",
    "lower-init-blocks": "lowering.tir.lower_init_blocks:LowerInitBlocksPass",
    "hoist-guards": "lowering.tir.hoist_guards:HoistGuardsPass",
    "apply-schedule": "lowering.schedule.apply_schedule:ApplySchedulePass",
    "schedule-cpu": "lowering.schedule.schedule_cpu:ScheduleCPUPass",
    "schedule-tuned": "lowering.tune.schedule_tuned:ScheduleTunedPass",
    "lower-blocks": "lowering.tir.lower_blocks:LowerBlocksPass",
    "compact-buffers": "lowering.tir.compact_buffers:CompactBuffersPass",
    "flatten-buffers": "lowering.tir.flatten_buffers:FlattenBuffersPass",
    "vectorize": "lowering.tir.vectorize:VectorizePass",
    "unroll": "lowering.tir.unroll:UnrollPass",
    "convert-tir-to-llvm": "lowering.to_llvm.convert_tir_to_llvm:ConvertTIRToLLVMPass",
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
