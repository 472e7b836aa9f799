// RUN: relax-opt %s -p "vectorize{lanes=8}" | filecheck %s
// RUN: relax-opt %s -p "vectorize{lanes=8},vectorize{lanes=8}" | filecheck %s

// A loop of unknown length becomes turns of 8 lanes and a serial rest.
// CHECK-LABEL: tir.prim_func @any
// CHECK:       %[[L:.*]] = arith.constant 8 : index
// CHECK:       %[[TURNS:.*]] = arith.floordivsi %{{.*}}, %[[L]] : index
// CHECK:       tir.for (%[[O:.*]]) in (%[[TURNS]]) {
// CHECK-NEXT:    tir.for vectorized (%lane) in (%[[L]]) {
// CHECK:           %[[I:.*]] = arith.addi %{{.*}}, %lane : index
// CHECK:           tir.load %X[%[[I]]]
// CHECK:       tir.for (%[[R:.*]]) in (%{{.*}} to %n) {
// CHECK-NEXT:    tir.load %X[%[[R]]]
tir.prim_func @any[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
  tir.for vectorized (%i) in (%n) {
    %x = tir.load %X[%i]
    tir.store %x, %Y[%i]
  }
}

// A loop of constant length stays.
// CHECK-LABEL: tir.prim_func @constant
// CHECK:       tir.for vectorized (%{{.*}}) in (%c5) {
// CHECK-NOT:   arith.floordivsi
tir.prim_func @constant(%X: !tir.buffer<[5], f32>) {
  %c5 = arith.constant 5 : index
  tir.for vectorized (%i) in (%c5) {
    %x = tir.load %X[%i]
    tir.store %x, %X[%i]
  }
}
