// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP

// The indices of a hint may lead out of the buffer.
// CHECK-LABEL: tir.prim_func @prefetch
tir.prim_func @prefetch[%n](%X: !tir.buffer<[n, 4], f32>, %S: !tir.buffer<[], f32>) {
  // CHECK: tir.prefetch %X[%n, %c9] level 1
  // CHECK-NEXT: tir.prefetch %S[] level 3 {note}
  %c9 = arith.constant 9 : index
  tir.prefetch %X[%n, %c9] level 1
  tir.prefetch %S[] level 3 {note}
}
