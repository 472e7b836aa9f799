// RUN: relax-opt %s -p "legalize-ops,schedule-cpu{target=\"x86-64-v3 cores=1\"}" | filecheck %s

// Two columns remain after 32 panels of 16. A panel for them would take as long as one of 8 columns: they are multiplied
// first, as small N, and no panel is narrower than 16.

// CHECK-LABEL: tir.prim_func @matmul(
// CHECK:         %copies = tir.alloc_buffer
// CHECK:         tir.call unchecked @relax.routine.columns.f32.4x2
// CHECK:         tir.for (%panel)
// CHECK:           tir.call unchecked @relax.routine.tile.f32.6x16
// CHECK-NOT:     @relax.routine.tile.f32.6x8
// CHECK:       tir.prim_func private @relax.routine.columns.f32.4x2

relax.func @two_more(%x: !relax.tensor<[512, 512], f32>, %y: !relax.tensor<[512, 514], f32>) -> !relax.tensor<[512, 514], f32> {
  %0 = relax.matmul %x, %y
  relax.return %0
}
