// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP

// The indices may lead out of the buffer.
// CHECK-LABEL: tir.prim_func @misalignment
tir.prim_func @misalignment[%n](%X: !tir.buffer<[n, 4], f32>, %S: !tir.buffer<[], f64>) {
  // CHECK: %e = tir.misalignment %X[%n, %c9] of 16
  // CHECK-NEXT: tir.misalignment %S[] of 1 {note}
  %c9 = arith.constant 9 : index
  %e = tir.misalignment %X[%n, %c9] of 16
  %f = tir.misalignment %S[] of 1 {note}
}
