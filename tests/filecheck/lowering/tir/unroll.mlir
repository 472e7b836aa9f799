// RUN: relax-opt %s -p unroll | filecheck %s

// One copy of the body for each iteration, with its number. Bounds that nothing else uses are erased.
// CHECK-LABEL: tir.prim_func @short
// CHECK-NEXT:  %[[I0:.*]] = arith.constant 1 : index
// CHECK-NEXT:  %[[X0:.*]] = tir.load %X[%[[I0]]]
// CHECK-NEXT:  tir.store %[[X0]], %Y[%[[I0]]]
// CHECK-NEXT:  %[[I1:.*]] = arith.constant 2 : index
// CHECK-NEXT:  %[[X1:.*]] = tir.load %X[%[[I1]]]
// CHECK-NEXT:  tir.store %[[X1]], %Y[%[[I1]]]
// CHECK-NOT:   tir.for
tir.prim_func @short(%X: !tir.buffer<[3], f32>, %Y: !tir.buffer<[3], f32>) {
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  tir.for unrolled (%i) in (%one to %three) {
    %x = tir.load %X[%i]
    tir.store %x, %Y[%i]
  }
}

// Nests are unrolled from the inside; loops of other kinds and of unknown length stay.
// CHECK-LABEL:   tir.prim_func @nest
// CHECK-COUNT-4: tir.store
// CHECK:         tir.for (%{{.*}}) in (%two)
// CHECK:         tir.for unrolled (%{{.*}}) in (%n)
tir.prim_func @nest[%n](%X: !tir.buffer<[2, 2], f32>, %Y: !tir.buffer<[n], f32>) {
  %two = arith.constant 2 : index
  tir.for unrolled (%i, %j) in (%two, %two) {
    %x = tir.load %X[%i, %j]
    tir.store %x, %X[%j, %i]
  }
  tir.for (%i) in (%two) {
    %x = tir.load %X[%i, %i]
    tir.store %x, %X[%i, %i]
  }
  tir.for unrolled (%i) in (%n) {
    %y = tir.load %Y[%i]
    tir.store %y, %Y[%i]
  }
}
