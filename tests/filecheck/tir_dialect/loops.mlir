// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP

// A perfect nest of loops of one kind is one line, with or without lower bounds.
// CHECK-LABEL: tir.prim_func @nests
tir.prim_func @nests[%n, %m](%X: !tir.buffer<[n, m], f32>, %s: f32) {
  %c1 = arith.constant 1 : index
  // CHECK: tir.for (%i, %j) in (%n, %c1 to %m) {
  // CHECK-NEXT: tir.store
  tir.for (%i) in (%n) {
    tir.for (%j) in (%c1 to %m) {
      tir.store %s, %X[%i, %j]
    }
  }
  // Another kind starts a line of its own.
  // CHECK: tir.for parallel (%i_1, %k) in (%n, %c1) {
  // CHECK-NEXT: tir.for vectorized (%j_1) in (%m) {
  tir.for parallel (%i, %k) in (%n, %c1) {
    tir.for vectorized (%j) in (%m) {
      tir.store %s, %X[%i, %j]
    }
  }
  // So does a bound that depends on the outer variable.
  // CHECK: tir.for (%i_2) in (%n) {
  // CHECK-NEXT: tir.for (%j_2) in (%i_2) {
  tir.for (%i) in (%n) {
    tir.for (%j) in (%i) {
    }
  }
  // And what stands next to the inner loop.
  // CHECK: tir.for unrolled (%i_3) in (%n) {
  // CHECK-NEXT: tir.for unrolled (%j_3) in (%m) {
  tir.for unrolled (%i) in (%n) {
    tir.for unrolled (%j) in (%m) {
    }
    tir.for unrolled (%j) in (%m) {
    }
  }
}

// Annotations and attributes belong to one loop each.
// CHECK-LABEL: tir.prim_func @annotations
tir.prim_func @annotations[%n, %m](%X: !tir.buffer<[n, m], f32>) {
  // CHECK: tir.for (%i) in (%n) annotations {factor = 4 : i64} attributes {note} {
  // CHECK-NEXT: tir.for (%j) in (%m) annotations {x} {
  // CHECK-NEXT: tir.for (%k) in (%m) {
  tir.for (%i) in (%n) annotations {factor = 4 : i64} attributes {note} {
    tir.for (%j) in (%m) annotations {x} {
      tir.for (%k) in (%m) {
      }
    }
  }
}

// CHECK-LABEL: tir.prim_func @threads
tir.prim_func @threads[%n, %m](%X: !tir.buffer<[n, m], f32>) {
  // CHECK: tir.for thread_binding "blockIdx.x" (%i) in (%n) {
  // CHECK-NEXT: tir.for thread_binding "threadIdx.x" (%j) in (%m) {
  tir.for thread_binding "blockIdx.x" (%i) in (%n) {
    tir.for thread_binding "threadIdx.x" (%j) in (%m) {
    }
  }
}

// A bound that is a number is a constant before the nest.
// CHECK-LABEL: tir.prim_func @numbers
// CHECK-NEXT: %0 = arith.constant 64 : index
// CHECK-NEXT: %1 = arith.constant 1 : index
// CHECK-NEXT: %2 = arith.constant 8 : index
// CHECK-NEXT: %3 = arith.constant 4 : index
// CHECK-NEXT: tir.for (%i, %j) in (%0, %1 to %2) {
// CHECK-NEXT:   tir.for vectorized (%k) in (%3) {
// CHECK-NEXT:   }
// CHECK-NEXT:   tir.store %s, %X[%i, %j]
tir.prim_func @numbers(%X: !tir.buffer<[64, 8], f32>, %s: f32) {
  tir.for (%i, %j) in (64, 1 to 8) {
    tir.for vectorized (%k) in (4) {
    }
    tir.store %s, %X[%i, %j]
  }
}
