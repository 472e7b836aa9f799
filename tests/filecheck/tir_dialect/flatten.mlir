// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP

// A view of all elements has one dimension, whatever the buffer has.
// CHECK-LABEL: tir.prim_func @flat
tir.prim_func @flat[%n, %m](%X: !tir.buffer<[n, m], f32>, %S: !tir.buffer<[], i8>) {
  // CHECK: %F = tir.flatten %X
  // CHECK-NEXT: %x = tir.load %F[%n]
  // CHECK-NEXT: %G = tir.flatten %S {note}
  // CHECK-NEXT: %s = tir.load %G[%c0]
  %c0 = arith.constant 0 : index
  %F = tir.flatten %X
  %x = tir.load %F[%n]
  %G = tir.flatten %S {note}
  %s = tir.load %G[%c0]
}
