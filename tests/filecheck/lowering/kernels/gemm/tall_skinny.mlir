// RUN: relax-opt %s -p "legalize-ops,schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s

// 32 columns of B fit the first-level cache: nothing is packed, and a tile of 2 x 32 has all columns. The rows of A that
// come next are prefetched while K is summed up.

// CHECK-LABEL: tir.prim_func @matmul(
// CHECK-NOT:     %packed_columns
// CHECK:         tir.for (%position)
// CHECK:           %sums = tir.alloc_buffer : !tir.buffer<[2, 32], f32, scope = "local", align = 64>
// CHECK:           tir.prefetch %x_1[{{.*}}] level 1
// CHECK:           tir.prefetch %matmul_1[{{.*}}] level 1
// CHECK:           tir.for (%r)
// CHECK-COUNT-4:     tir.load %y_1[{{.*}}] : vector<8xf32>
// CHECK-NOT:         tir.load %y_1
// CHECK-COUNT-8:     math.fma
// CHECK-NOT:         math.fma
// CHECK:           tir.store {{.*}}, %tile

relax.func @tall(%x: !relax.tensor<[4096, 512], f32>, %y: !relax.tensor<[512, 32], f32>) -> !relax.tensor<[4096, 32], f32> {
  %0 = relax.matmul %x, %y
  relax.return %0
}
