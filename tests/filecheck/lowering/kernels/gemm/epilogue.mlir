// RUN: relax-opt %s -p "legalize-ops,annotate-op-pattern,fuse-ops,fuse-tir,schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s

// Bias and activation are computed in the epilogue of a GEMM, of sums in registers: only the last K block goes to the
// output, others to memory for sums. There is no second pass over the output.

// CHECK-LABEL: tir.prim_func @fused_matmul_add_nn_relu(
// CHECK-SAME:    %b: !tir.buffer<[512], f32>
// CHECK:         tir.for (%k_block, %section)
// CHECK:           tir.for (%panel)
// CHECK:             tir.for (%strip)
// CHECK:               %tile = tir.alloc_buffer : !tir.buffer<[6, 16], f32, align = 64>
// CHECK:               tir.for (%i)
// CHECK:                 [[SUM:%[0-9]+]] = arith.addf {{.*}} : vector<8xf32>
// CHECK:                 [[NEXT:%[0-9]+]] = arith.addf {{.*}} : vector<8xf32>

// Both vectors of a row take turns, so that neither waits for the ops of the other.

// CHECK-NEXT:            tir.if
// CHECK-NEXT:              [[BIAS:%[0-9]+]] = tir.load %b_1[{{.*}}] : vector<8xf32>
// CHECK-NEXT:              [[NEXT_BIAS:%[0-9]+]] = tir.load %b_1[{{.*}}] : vector<8xf32>
// CHECK-NEXT:              [[BIASED:%[a-z0-9_]+]] = arith.addf [[SUM]], [[BIAS]] : vector<8xf32>
// CHECK-NEXT:              [[NEXT_BIASED:%[a-z0-9_]+]] = arith.addf [[NEXT]], [[NEXT_BIAS]] : vector<8xf32>
// CHECK:                   [[RELU:%[0-9]+]] = arith.maximumf [[BIASED]]
// CHECK:                   [[NEXT_RELU:%[0-9]+]] = arith.maximumf [[NEXT_BIASED]]
// CHECK:                   tir.store [[RELU]], %T_1
// CHECK-NEXT:              tir.store [[NEXT_RELU]], %T_1
// CHECK-NEXT:            } else {
// CHECK-NEXT:              tir.store [[SUM]]
// CHECK-NEXT:              tir.store [[NEXT]]

// 512 columns fill all lanes, so that there are no masks.

// CHECK-NOT:             vector.create_mask
// CHECK-NOT:     tir.for vectorized

// A long epilogue does so for two rows at a time, four vectors here.

// CHECK-LABEL: tir.prim_func @fused_matmul_add_sigmoid_multiply_add_etc(
// CHECK:               tir.for (%pair)
// CHECK-COUNT-4:         tir.load %tile[{{.*}}] : vector<8xf32>
// CHECK-COUNT-4:         tir.store {{.*}}, %T_1
// CHECK:               tir.for (%i) in ({{.*}} to {{.*}})
// CHECK-COUNT-2:         tir.load %tile[{{.*}}] : vector<8xf32>

relax.func @biased(%x: !relax.tensor<[512, 512], f32>, %y: !relax.tensor<[512, 512], f32>, %b: !relax.tensor<[512], f32>) -> !relax.tensor<[512, 512], f32> {
  %2 = relax.dataflow {
    %0 = relax.matmul %x, %y
    %1 = relax.add %0, %b
    %2 = relax.nn.relu %1
    relax.output %2
  }
  relax.return %2
}

relax.func @gated(%x: !relax.tensor<[96, 64], f32>, %y: !relax.tensor<[64, 512], f32>, %b: !relax.tensor<[512], f32>, %z: !relax.tensor<[96, 512], f32>) -> !relax.tensor<[96, 512], f32> {
  %6 = relax.dataflow {
    %0 = relax.matmul %x, %y
    %1 = relax.add %0, %b
    %2 = relax.sigmoid %1
    %3 = relax.multiply %2, %z
    %4 = relax.add %3, %b
    %5 = relax.multiply %4, %z
    %6 = relax.round %5
    relax.output %6
  }
  relax.return %6
}
