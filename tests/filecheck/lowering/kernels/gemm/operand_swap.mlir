// RUN: relax-opt %s -p "legalize-ops,schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s

// A is transposed and N is small: the operands are swapped, C' = B' A'. The three columns of B become contiguous rows, the
// GEMM with small M makes three long rows of sums, and these are transposed into the output.

// CHECK-LABEL: tir.prim_func @einsum(
// CHECK:         tir.if
// CHECK:           %swapped = tir.alloc_buffer : !tir.buffer<[912], f32, align = 64>
// CHECK:           tir.for (%task)
// CHECK:             tir.call unchecked @relax.routine.rows.f32.4x32
// CHECK:           tir.for (%task_1)
// CHECK:             tir.call unchecked @relax.routine.transpose.f32.8{{.*}}(%swapped
// CHECK:         } else {
// CHECK:           tir.call unchecked @relax.routine.streamed

// CHECK:       tir.prim_func private @relax.routine.rows.f32.4x32
// CHECK:         tir.load %columns[{{.*}}] : vector<8xf32>

relax.func @transposed_a(%x: !relax.tensor<[512, 300], f32>, %y: !relax.tensor<[512, 3], f32>) -> !relax.tensor<[300, 3], f32> {
  %0 = relax.einsum %x, %y subscripts = "km,kn->mn"
  relax.return %0
}
