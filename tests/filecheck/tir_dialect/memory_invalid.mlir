// RUN: RELAX_INVALID

// CHECK: 'tir.load' op expected 2 indices, got 1
tir.prim_func @load_c1[%n](%X: !tir.buffer<[n, n], f32>) {
  tir.for (%i) in (%n) {
    %x = tir.load %X[%i]
  }
}

// -----

// CHECK: 'tir.load' op expected a value of type f32, got f64
tir.prim_func @load_c2[%n](%X: !tir.buffer<[4], f32>) {
  %c0 = arith.constant 0 : index
  %x = "tir.load"(%X, %c0) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (!tir.buffer<[4], f32>, index) -> f64
}

// -----

// CHECK: 'tir.load' op expected type vector<4xf32>, got vector<4xf64>
tir.prim_func @load_c2[%n](%X: !tir.buffer<[4], f32>) {
  %c0 = arith.constant 0 : index
  %x = tir.load %X[%c0] : vector<4xf64>
}

// -----

// CHECK: 'tir.load' op index 0 expected index, got i64
tir.prim_func @load_c3[%n](%X: !tir.buffer<[4], f32>, %i: i64) {
  %x = tir.load %X[%i]
}

// -----

// CHECK: 'tir.load' op of f32 expected no mask, got vector<4xi1>
tir.prim_func @load_c4[%n](%X: !tir.buffer<[4], f32>) {
  %c0 = arith.constant 0 : index
  %mask = vector.create_mask %n : vector<4xi1>
  %x = tir.load %X[%c0] mask %mask
}

// -----

// CHECK: 'tir.load' op of vector<8xf32> expected a mask of type vector<8xi1>, got vector<4xi1>
tir.prim_func @load_c4[%n](%X: !tir.buffer<[8], f32>) {
  %c0 = arith.constant 0 : index
  %mask = vector.create_mask %n : vector<4xi1>
  %x = tir.load %X[%c0] mask %mask : vector<8xf32>
}

// -----

// CHECK: 'tir.load' op of vector<8xf32> expected a buffer with a dimension
tir.prim_func @load_c5(%X: !tir.buffer<[], f32>) {
  %x = tir.load %X[] : vector<8xf32>
}

// -----

// CHECK: 'tir.store' op expected 1 index, got 0
tir.prim_func @store_c1(%X: !tir.buffer<[4], f32>, %s: f32) {
  tir.store %s, %X[]
}

// -----

// CHECK: 'tir.store' op expected a value of type i8, got i32
tir.prim_func @store_c2(%X: !tir.buffer<[4], ui8>, %s: i32) {
  %c0 = arith.constant 0 : index
  tir.store %s, %X[%c0]
}

// -----

// CHECK: 'tir.store' op index 0 expected index, got vector<4xindex>
tir.prim_func @store_c3(%X: !tir.buffer<[4], f32>, %s: f32) {
  %c0 = arith.constant 0 : index
  %v = tir.ramp %c0 by %c0 : vector<4xindex>
  tir.store %s, %X[%v]
}

// -----

// CHECK: 'tir.store' op of f32 expected no mask, got i1
tir.prim_func @store_c4(%X: !tir.buffer<[4], f32>, %s: f32, %m: i1) {
  %c0 = arith.constant 0 : index
  tir.store %s, %X[%c0] mask %m
}

// -----

// CHECK: 'tir.store' op of vector<4xf32> expected a buffer with a dimension
tir.prim_func @store_c5(%X: !tir.buffer<[], f32>, %Y: !tir.buffer<[4], f32>) {
  %c0 = arith.constant 0 : index
  %v = tir.load %Y[%c0] : vector<4xf32>
  tir.store %v, %X[]
}

// -----

// CHECK: value %Y is not defined
tir.prim_func @f(%X: !tir.buffer<[], f32>) {
  %v = tir.load %Y[]
}

// -----

// CHECK: expected a buffer, got a value of type f32
tir.prim_func @f(%x: f32) {
  %v = tir.load %x[]
}

// -----

// CHECK: expected a buffer type, got f32
tir.prim_func @f(%x: f32) {
  %v = tir.alloc_buffer : f32
}
