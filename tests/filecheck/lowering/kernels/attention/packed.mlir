// RUN: relax-opt %s -p "legalize-ops,schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s

// Attention of many rows: for each head, keys are transposed into panels of 16 by shuffles, values are copied into panels.
// There is memory for the scores of one block of 48 rows, not for all.

// CHECK-LABEL: tir.prim_func @nn_attention(
// CHECK:         %scores = tir.alloc_buffer : !tir.buffer<[48, 136], f32, align = 64>
// CHECK:         %packed_columns = tir.alloc_buffer : !tir.buffer<[8, 64, 16], f32, align = 64>
// CHECK:         %packed_columns_1 = tir.alloc_buffer : !tir.buffer<[4, 128, 16], f32, align = 64>
// CHECK-NOT:     tir.alloc_buffer : !tir.buffer<[1, 8, 128, 128]
// CHECK:         tir.for (%unit)
// CHECK:           tir.for (%panel)
// CHECK:             tir.load %k_1
// CHECK:             vector.shuffle
// CHECK:             tir.store
// CHECK:           tir.for (%panel_1)
// CHECK:             tir.load %v_1

// First GEMM, in tiles of 6 x 16; then along each row of scores maximum, exponentials and their sum; second GEMM, whose
// epilogue divides by the sum.

// CHECK:           tir.for (%panel_2, %strip)
// CHECK-COUNT-12:    math.fma
// CHECK:           tir.for (%row)
// CHECK:             arith.maximumf
// CHECK:             math.exp
// CHECK:             arith.addf
// CHECK:           tir.for (%panel_3, %strip_1)
// CHECK-COUNT-12:    math.fma
// CHECK:             arith.divf {{.*}} : vector<8xf32>
// CHECK:             tir.store {{.*}}, %attention_1

relax.func @many(%q: !relax.tensor<[1, 128, 8, 64], f32>, %k: !relax.tensor<[1, 128, 8, 64], f32>, %v: !relax.tensor<[1, 128, 8, 64], f32>) -> !relax.tensor<[1, 128, 8, 64], f32> {
  %0 = relax.nn.attention %q, %k, %v
  relax.return %0
}
