// RUN: relax-opt %s -p "legalize-ops,schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s

// GEMV: chunks of rows of the matrix, each with accumulators that are aligned like the matrix; then they are added up.

// CHECK-LABEL: tir.prim_func @matmul(
// CHECK:         %sums = tir.alloc_buffer : !tir.buffer<[16, 4128], f32, align = 64>
// CHECK:         tir.misalignment %y_1[{{.*}}] of 8
// CHECK:         tir.for (%task)
// CHECK:           tir.for (%part)
// CHECK:             tir.call unchecked @relax.routine.vector.f32.8
// CHECK:         tir.for (%part_{{[0-9]+}})
// CHECK:           arith.addf

// GEMM with small M: rows of B are read along their whole length, four side by side, for groups of up to four rows of A.

// CHECK-LABEL: tir.prim_func @matmul_1(
// CHECK:         tir.for (%task)
// CHECK-NOT:       tir.for
// CHECK:           tir.call unchecked @relax.routine.rows.f32.4x32

// CHECK:       tir.prim_func private @relax.routine.vector.f32.8
// CHECK:         tir.for (%block_{{[0-9]+}})
// CHECK:           tir.for (%iteration)
// CHECK:             tir.for (%group)
// CHECK-COUNT-28:      math.fma
// CHECK:           tir.for (%line) in ({{.*}} to %upper)

// CHECK:       tir.prim_func private @relax.routine.rows.f32.4x32
// CHECK:         tir.for (%iteration)
// CHECK:           tir.for (%group)
// CHECK:             tir.for (%v)
// CHECK-COUNT-16:      math.fma
// CHECK:           tir.for (%group_{{[0-9]+}})
// CHECK:             tir.for (%v_{{[0-9]+}})
// CHECK-COUNT-12:      math.fma

relax.func @one_row(%x: !relax.tensor<[1, 512], f32>, %y: !relax.tensor<[512, 4096], f32>) -> !relax.tensor<[1, 4096], f32> {
  %0 = relax.matmul %x, %y
  relax.return %0
}
relax.func @few_rows(%x: !relax.tensor<[4, 512], f32>, %y: !relax.tensor<[512, 4096], f32>) -> !relax.tensor<[4, 4096], f32> {
  %0 = relax.matmul %x, %y
  relax.return %0
}
