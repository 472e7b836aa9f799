// RUN: relax-opt %s -p "legalize-ops,schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s

// Attention of one row, as in decoding: keys and values are read in place, once. Scores are dot products of four keys at a
// time; the values are multiplied in panels of 16, with a mask after the last whole one.

// CHECK-LABEL: tir.prim_func @nn_attention(
// CHECK:         %scores = tir.alloc_buffer : !tir.buffer<[1, 136], f32, align = 64>
// CHECK-NOT:     %packed_columns
// CHECK:         %sums_1 = tir.alloc_buffer : !tir.buffer<[4, 8], f32, scope = "local", align = 64>
// CHECK:         tir.for (%v_2)
// CHECK-COUNT-4:   math.fma
// CHECK-NOT:       math.fma
// CHECK:         vector.shuffle
// CHECK:         tir.store {{.*}}, %scores[{{.*}}] mask
// CHECK:         tir.for (%row)
// CHECK:           arith.maximumf
// CHECK:           math.exp
// CHECK:         tir.for (%panel)
// CHECK:           tir.if
// CHECK:             tir.for (%r)
// CHECK-COUNT-2:       math.fma
// CHECK:           } else {
// CHECK:             tir.load %v_1[{{.*}}] mask
// CHECK:           arith.divf {{.*}} : vector<8xf32>
// CHECK:           tir.store {{.*}}, %attention_1[{{.*}}] mask

relax.func @one(%q: !relax.tensor<[1, 1, 8, 64], f32>, %k: !relax.tensor<[1, 128, 8, 64], f32>, %v: !relax.tensor<[1, 128, 8, 64], f32>) -> !relax.tensor<[1, 1, 8, 64], f32> {
  %0 = relax.nn.attention %q, %k, %v
  relax.return %0
}
