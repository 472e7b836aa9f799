"""The passes: where each lives, and what the compiler knows of it before it is loaded.

Generated from the classes of passes by `make docs`; see `lowering.registry.Pass`.
"""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """What the class of a pass says of itself."""

    where: str
    """`module:Class`."""
    requires: tuple[str, ...] = ()
    folds: bool = False
    removes: tuple[str, ...] = ()


INDEX: dict[str, Entry] = {
    "adjust-matmul-order": Entry(
        "lowering.relax.rewrites.rewrite_matmul:AdjustMatmulOrderPass", requires=("relax.matmul",)
    ),
    "allocate-registers": Entry("lowering.relax_to_vm.allocate_registers:AllocateRegistersPass"),
    "annotate-op-pattern": Entry("lowering.relax.fusion.fuse_ops:AnnotateOpPatternPass"),
    "apply-schedule": Entry("lowering.tir.apply_schedule:ApplySchedulePass"),
    "bind-params": Entry("lowering.relax.functions.bind_params:BindParamsPass"),
    "bind-symbolic-vars": Entry("lowering.relax.functions.bind_params:BindSymbolicVarsPass"),
    "bind-unknown-dims": Entry("lowering.relax.unknown_types:BindUnknownDimsPass"),
    "channels-last": Entry(
        "lowering.relax.layout.channels_last:ChannelsLastPass",
        requires=("relax.nn.conv1d", "relax.nn.conv2d", "relax.nn.conv3d"),
    ),
    "check-accesses": Entry("lowering.tir.check_accesses:CheckAccessesPass"),
    "combine-parallel-matmul": Entry("lowering.relax.rewrites.rewrite_matmul:CombineParallelMatmulPass"),
    "compact-buffers": Entry("lowering.tir.buffers:CompactBuffersPass"),
    "convert-conv-to-matmul": Entry(
        "lowering.relax.rewrites.rewrite_convolution:ConvertConvToMatmulPass",
        requires=("relax.nn.conv1d", "relax.nn.conv2d", "relax.nn.conv3d"),
    ),
    "convert-conv1d-to-conv2d": Entry(
        "lowering.relax.layout.convert_layout:ConvertConv1dToConv2dPass", requires=("relax.nn.conv1d",)
    ),
    "convert-layout": Entry(
        "lowering.relax.layout.convert_layout:ConvertLayoutPass", requires=("relax.nn.conv2d", "relax.nn.conv3d")
    ),
    "convert-relax-to-vm": Entry(
        "lowering.relax_to_vm.convert_relax_to_vm:ConvertRelaxToVMPass", removes=("relax.func",)
    ),
    "convert-tir-to-llvm": Entry(
        "lowering.tir_to_llvm.convert_tir_to_llvm:ConvertTIRToLLVMPass", removes=("tir.prim_func",)
    ),
    "convert-to-dataflow": Entry("lowering.relax.convert_dataflow:ConvertToDataflowPass"),
    "convert-vm-to-llvm": Entry("lowering.vm_to_llvm.convert_vm_to_llvm:ConvertVmToLLVMPass", removes=("vm.func",)),
    "copy-constants": Entry("lowering.relax.memory.use_inplace_calls:CopyConstantsPass", requires=("relax.constant",)),
    "cut-constants": Entry(
        "lowering.distributed.lower_distributed:CutConstantsPass",
        requires=("relax.dist.redistribute_replica_to_shard",),
    ),
    "dead-code-elimination": Entry("lowering.relax.redundant_ops:DeadCodeEliminationPass"),
    "defer-unknown-types": Entry("lowering.relax.unknown_types:DeferUnknownTypesPass"),
    "eliminate-common-subexpr": Entry("lowering.relax.redundant_ops:EliminateCommonSubexprPass"),
    "expand-conv-transpose": Entry(
        "lowering.relax.rewrites.rewrite_convolution:ExpandConvTransposePass",
        requires=("relax.nn.conv1d_transpose", "relax.nn.conv2d_transpose", "relax.nn.conv3d_transpose"),
    ),
    "expand-matmul-of-sum": Entry("lowering.relax.rewrites.rewrite_matmul:ExpandMatmulOfSumPass"),
    "expand-recurrent-layers": Entry(
        "lowering.relax_to_tir.recurrent:ExpandRecurrentLayersPass",
        requires=("relax.nn.rnn", "relax.nn.gru", "relax.nn.lstm", "relax.nn.recurrence"),
    ),
    "expand-tuple-arguments": Entry("lowering.relax.functions.parameters:ExpandTupleArgumentsPass"),
    "expose-prim-funcs": Entry("lowering.relax.functions.expose_prim_funcs:ExposePrimFuncsPass"),
    "flatten-buffers": Entry("lowering.tir.buffers:FlattenBuffersPass"),
    "fold-batch-norm": Entry(
        "lowering.relax.rewrites.fold_batch_norm:FoldBatchNormPass",
        requires=("relax.nn.batch_norm", "relax.matmul", "relax.nn.conv1d", "relax.nn.conv2d", "relax.nn.conv3d"),
    ),
    "fold-constants": Entry(
        "lowering.relax.rewrites.fold_constants:FoldConstantsPass", requires=("relax.guard",), folds=True
    ),
    "fold-requantization": Entry(
        "lowering.relax.rewrites.fold_requantization:FoldRequantizationPass", requires=("relax.round",)
    ),
    "fold-shape-computations": Entry(
        "lowering.relax.rewrites.fold_shape_computations:FoldShapeComputationsPass",
        requires=(
            "relax.arange",
            "relax.broadcast_to",
            "relax.concat",
            "relax.dynamic_strided_slice",
            "relax.expand_dims",
            "relax.flatten",
            "relax.flip",
            "relax.full",
            "relax.full_like",
            "relax.gather_elements",
            "relax.gather_nd",
            "relax.guard",
            "relax.match_cast",
            "relax.max",
            "relax.min",
            "relax.ones",
            "relax.ones_like",
            "relax.permute_dims",
            "relax.prod",
            "relax.repeat",
            "relax.reshape",
            "relax.shape_get",
            "relax.shape_of",
            "relax.shape_to_tensor",
            "relax.size",
            "relax.split",
            "relax.squeeze",
            "relax.stack",
            "relax.strided_slice",
            "relax.sum",
            "relax.take",
            "relax.tensor_to_shape",
            "relax.tile",
            "relax.tuple_get",
            "relax.zeros",
            "relax.zeros_like",
        ),
        folds=True,
    ),
    "fuse-ops": Entry("lowering.relax.fusion.fuse_ops:FuseOpsPass"),
    "fuse-ops-by-pattern": Entry("lowering.byoc.run_codegen:FuseOpsByPatternPass"),
    "fuse-tir": Entry(
        "lowering.relax.fusion.fuse_tir:FuseTIRPass", requires=("relax.fused",), removes=("relax.fused",)
    ),
    "hoist-branch-results": Entry(
        "lowering.relax.memory.lower_call_tir:HoistBranchResultsPass", requires=("relax.if",)
    ),
    "hoist-guards": Entry("lowering.tir.hoist_guards:HoistGuardsPass"),
    "infer-struct-info": Entry("lowering.relax.infer_struct_info:InferStructInfoPass"),
    "inline-functions": Entry("lowering.relax.functions.inline_functions:InlineFunctionsPass"),
    "insert-guards": Entry("lowering.relax.insert_guards:InsertGuardsPass"),
    "insert-kills": Entry("lowering.relax.memory.kills:InsertKillsPass"),
    "lambda-lift": Entry("lowering.relax.functions.lambda_lift:LambdaLiftPass", removes=("relax.closure",)),
    "legalize-ops": Entry("lowering.relax_to_tir.legalize_ops:LegalizeOpsPass"),
    "lift-transform-params": Entry("lowering.relax.functions.lift_transform_params:LiftTransformParamsPass"),
    "lower-blocks": Entry(
        "lowering.tir.lower_blocks:LowerBlocksPass", removes=("tir.block", "tir.init", "tir.reads", "tir.writes")
    ),
    "lower-call-tir": Entry(
        "lowering.relax.memory.lower_call_tir:LowerCallTIRPass",
        removes=("relax.call_tir", "relax.call_tir_inplace", "relax.call_dps_packed"),
    ),
    "lower-distributed": Entry("lowering.distributed.lower_distributed:LowerDistributedPass"),
    "lower-init-blocks": Entry("lowering.tir.lower_blocks:LowerInitBlocksPass"),
    "lower-shapes": Entry("lowering.relax.lower_shapes:LowerShapesPass"),
    "merge-collectives": Entry(
        "lowering.distributed.collectives:MergeCollectivesPass", requires=("relax.ccl.allreduce",)
    ),
    "merge-composites": Entry("lowering.byoc.run_codegen:MergeCompositesPass"),
    "optimize-graph": Entry("lowering.pipelines:OptimizeGraphPass"),
    "overlap-collectives": Entry(
        "lowering.distributed.collectives:OverlapCollectivesPass",
        requires=("relax.ccl.allreduce", "relax.ccl.allgather", "relax.ccl.reduce_scatter"),
    ),
    "pack-weights": Entry("lowering.relax.layout.pack_weights:PackWeightsPass", requires=("relax.constant",)),
    "plan-memory": Entry("lowering.relax.memory.plan_memory:PlanMemoryPass"),
    "poison-memory": Entry("lowering.relax.memory.plan_memory:PoisonMemoryPass"),
    "propagate-quantization": Entry(
        "lowering.relax.rewrites.simplify_quantization:PropagateQuantizationPass", requires=("relax.astype",)
    ),
    "propagate-sharding": Entry("lowering.distributed.propagate_sharding:PropagateShardingPass"),
    "quantize-weights": Entry(
        "lowering.relax.rewrites.quantize_weights:QuantizeWeightsPass", requires=("relax.matmul", "relax.take")
    ),
    "relax-to-llvm": Entry("lowering.pipelines:RelaxToLLVMPass"),
    "relax-to-llvm-plain": Entry("lowering.pipelines:RelaxToLLVMPlainPass"),
    "relax-to-vm": Entry("lowering.pipelines:RelaxToVMPass"),
    "relax-to-vm-plain": Entry("lowering.pipelines:RelaxToVMPlainPass"),
    "remove-kills": Entry("lowering.relax.memory.kills:RemoveKillsPass", requires=("relax.kill",)),
    "remove-unused-outputs": Entry("lowering.relax.functions.parameters:RemoveUnusedOutputsPass"),
    "remove-unused-parameters": Entry("lowering.relax.functions.parameters:RemoveUnusedParametersPass"),
    "reorder-take-after-matmul": Entry("lowering.relax.rewrites.rewrite_matmul:ReorderTakeAfterMatmulPass"),
    "rewrite-attention": Entry(
        "lowering.relax.rewrites.rewrite_layers:RewriteAttentionPass",
        requires=("relax.nn.softmax", "relax.nn.attention", "relax.nn.attention_bias"),
    ),
    "rewrite-normalization": Entry(
        "lowering.relax.rewrites.rewrite_layers:RewriteNormalizationPass", requires=("relax.mean", "relax.exp")
    ),
    "run-codegen": Entry("lowering.byoc.run_codegen:RunCodegenPass"),
    "schedule-cpu": Entry("lowering.kernels.schedule_cpu:ScheduleCPUPass"),
    "schedule-tuned": Entry("lowering.tune.tuner:ScheduleTunedPass"),
    "simplify-arithmetic": Entry("lowering.relax.rewrites.simplify_arithmetic:SimplifyArithmeticPass"),
    "simplify-match-cast": Entry("lowering.relax.simplify_match_cast:SimplifyMatchCastPass"),
    "simplify-permute-dims": Entry(
        "lowering.relax.rewrites.simplify_shape_ops:SimplifyPermuteDimsPass", requires=("relax.permute_dims",)
    ),
    "simplify-quantization": Entry(
        "lowering.relax.rewrites.simplify_quantization:SimplifyQuantizationPass", requires=("relax.astype",)
    ),
    "simplify-reshapes": Entry(
        "lowering.relax.rewrites.simplify_shape_ops:SimplifyReshapesPass",
        requires=("relax.reshape", "relax.flatten", "relax.expand_dims", "relax.squeeze"),
    ),
    "split-stages": Entry("lowering.distributed.split_stages:SplitStagesPass"),
    "tir-to-flat": Entry("lowering.pipelines:TIRToFlatPass"),
    "tir-to-llvm": Entry("lowering.pipelines:TIRToLLVMPass"),
    "to-mixed-precision": Entry("lowering.relax.rewrites.to_mixed_precision:ToMixedPrecisionPass"),
    "to-non-dataflow": Entry(
        "lowering.relax.convert_dataflow:ToNonDataflowPass", removes=("relax.dataflow", "relax.output")
    ),
    "topological-sort": Entry("lowering.relax.convert_dataflow:TopologicalSortPass"),
    "unroll": Entry("lowering.tir.vectorize:UnrollPass"),
    "update-param-struct-info": Entry("lowering.relax.functions.bind_params:UpdateParamStructInfoPass"),
    "use-byte-tables": Entry(
        "lowering.relax.rewrites.simplify_quantization:UseByteTablesPass", requires=("relax.astype",)
    ),
    "use-inplace-calls": Entry("lowering.relax.memory.use_inplace_calls:UseInplaceCallsPass"),
    "use-winograd": Entry("lowering.relax_to_tir.winograd:UseWinogradPass", requires=("relax.nn.conv2d",)),
    "vectorize": Entry("lowering.tir.vectorize:VectorizePass"),
    "verify-dominance": Entry("lowering.verify:VerifyDominancePass"),
    "verify-stage": Entry("lowering.stages:VerifyStagePass"),
    "write-parts-in-place": Entry("lowering.relax.memory.write_parts_in_place:WritePartsInPlacePass"),
}
