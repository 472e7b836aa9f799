// RUN: relax-opt %s -p "legalize-ops,schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s

// Three columns that do not lie along K are copied, each to contiguous memory; then pairs of rows of A are multiplied
// with them element by element. The fourth column of a tile is the third again.

// CHECK-LABEL: tir.prim_func @matmul(
// CHECK:         %copies = tir.alloc_buffer : !tir.buffer<[3640], f32, align = 64>
// CHECK:         tir.for (%j)
// CHECK:           tir.for (%r)
// CHECK:             tir.load %y_1
// CHECK:             tir.store {{.*}}, %copies
// CHECK:         tir.call unchecked @relax.routine.columns.f32.2x4
// CHECK-NOT:     tir.call

// A step loads four vectors of columns and two of rows; the next rows are prefetched to the second-level cache.

// CHECK:       tir.prim_func private @relax.routine.columns.f32.2x4
// CHECK:         tir.for (%tile) in (%lower to %upper)
// CHECK:           %sums = tir.alloc_buffer : !tir.buffer<[8, 8], f32, scope = "local", align = 64>
// CHECK:           tir.for (%chunk)
// CHECK:             tir.for (%v)
// CHECK:               tir.prefetch %matrix[{{.*}}] level 2
// CHECK-COUNT-4:       tir.load %copies[{{.*}}] : vector<8xf32>
// CHECK:               tir.load %matrix[{{.*}}] : vector<8xf32>
// CHECK-COUNT-4:       math.fma
// CHECK:               tir.load %matrix[{{.*}}] : vector<8xf32>
// CHECK-COUNT-4:       math.fma
// CHECK-NOT:           math.fma
// CHECK:             %totals

// The rest of K is masked; three of four lanes are stored for each row.

// CHECK:           vector.create_mask
// CHECK:           tir.load %matrix[{{.*}}] mask
// CHECK:           vector.shuffle
// CHECK:           vector.shuffle {{.*}} [0, 1] :
// CHECK-NEXT:      tir.store {{.*}}, %output
// CHECK:           vector.shuffle {{.*}} [2] :

relax.func @few_columns(%x: !relax.tensor<[4096, 512], f32>, %y: !relax.tensor<[512, 3], f32>) -> !relax.tensor<[4096, 3], f32> {
  %0 = relax.matmul %x, %y
  relax.return %0
}
