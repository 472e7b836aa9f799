// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP

// Elements: the types of buffer and value are not repeated.
// CHECK-LABEL: tir.prim_func @elements
tir.prim_func @elements[%n](%X: !tir.buffer<[n, 4], ui8>, %S: !tir.buffer<[], f32>) {
  %c0 = arith.constant 0 : index
  tir.for (%i) in (%n) {
    // CHECK: %x = tir.load %X[%i, %c0]
    // CHECK-NEXT: tir.store %x, %X[%i, %c0] {note}
    %x = tir.load %X[%i, %c0]
    tir.store %x, %X[%i, %c0] {note}
  }
  // CHECK: %s = tir.load %S[] {note}
  // CHECK-NEXT: tir.store %s, %S[]
  %s = tir.load %S[] {note}
  tir.store %s, %S[]
}

// Vectors from consecutive elements, with and without a mask, and by indices.
// CHECK-LABEL: tir.prim_func @vectors
tir.prim_func @vectors[%n](%X: !tir.buffer<[n, 16], f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %mask = vector.create_mask %n : vector<8xi1>
  %lanes = tir.ramp %c0 by %c1 : vector<8xindex>
  tir.for (%i) in (%n) {
    // CHECK: %v = tir.load %X[%i, %c0] : vector<8xf32>
    // CHECK-NEXT: %w = tir.load %X[%i, %c0] mask %mask : vector<8xf32>
    // CHECK-NEXT: %g = tir.load %X[%i, %lanes]
    // CHECK-NEXT: %h = tir.load %X[%i, %lanes] mask %mask
    %v = tir.load %X[%i, %c0] : vector<8xf32>
    %w = tir.load %X[%i, %c0] mask %mask : vector<8xf32>
    %g = tir.load %X[%i, %lanes]
    %h = tir.load %X[%i, %lanes] mask %mask
    // CHECK-NEXT: tir.store %v, %X[%i, %c0]
    // CHECK-NEXT: tir.store %w, %X[%i, %c0] mask %mask
    // CHECK-NEXT: tir.store %g, %X[%i, %lanes]
    // CHECK-NEXT: tir.store %h, %X[%i, %lanes] mask %mask
    tir.store %v, %X[%i, %c0]
    tir.store %w, %X[%i, %c0] mask %mask
    tir.store %g, %X[%i, %lanes]
    tir.store %h, %X[%i, %lanes] mask %mask
  }
}

// CHECK-LABEL: tir.prim_func @allocation
tir.prim_func @allocation[%n]() {
  // CHECK: %T = tir.alloc_buffer annotations {tile = 4 : i64} {note} : !tir.buffer<[n, 4], f32, scope = "local", align = 64>
  %T = tir.alloc_buffer annotations {tile = 4 : i64} {note} : !tir.buffer<[n, 4], f32, scope = "local", align = 64>
}
