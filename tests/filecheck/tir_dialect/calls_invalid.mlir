// RUN: RELAX_INVALID

// CHECK: 'tir.call' op @missing is not a 'tir.prim_func'
tir.prim_func @call_c1[%n](%X: !tir.buffer<[n], f32>) {
  tir.call @missing(%X)
}

// -----

// CHECK: 'tir.call' op @f expected 1 sizes and 1 arguments, got 0 and 1
tir.prim_func @call_c2[%n](%X: !tir.buffer<[n], f32>) {
  tir.call @f(%X)
}
tir.prim_func @f[%n](%X: !tir.buffer<[n], f32>) {
}

// -----

// CHECK: 'tir.call' op @f argument #0 expected type !tir.buffer<[m + 1], f32>, got !tir.buffer<[n], f32>
tir.prim_func @call_c3[%n](%X: !tir.buffer<[n], f32>) {
  tir.call @f[%n](%X)
}
tir.prim_func @f[%m](%X: !tir.buffer<[m + 1], f32>) {
}

// -----

// CHECK: 'tir.call' op @f argument #0 expected type !tir.buffer<[n], f32>, got !tir.buffer<[n], f64>
tir.prim_func @call_c3[%n](%X: !tir.buffer<[n], f64>) {
  tir.call @f[%n](%X)
}
tir.prim_func @f[%n](%X: !tir.buffer<[n], f32>) {
}

// -----

// CHECK: 'tir.call' op @f argument #0 expected type !tir.buffer<[n], f32, align = 64>, got !tir.buffer<[n], f32>
tir.prim_func @call_c3[%n](%X: !tir.buffer<[n], f32>) {
  tir.call @f[%n](%X)
}
tir.prim_func @f[%n](%X: !tir.buffer<[n], f32, align = 64>) {
}

// -----

// CHECK: 'tir.call' op unchecked calls are for routines, whose names begin with relax.routine., got @f
tir.prim_func @call_c4(%X: !tir.buffer<[2], f32>) {
  tir.call unchecked @f(%X)
}
tir.prim_func private @f(%X: !tir.buffer<[2], f32>) {
}

// -----

// CHECK: 'tir.call_extern' op argument #0 expected a buffer or a scalar, got vector<2xf32>
tir.prim_func @call_extern_c1[%n](%X: !tir.buffer<[2], f32>) {
  %c0 = arith.constant 0 : index
  %x = tir.load %X[%c0] : vector<2xf32>
  tir.call_extern "f"(%x)
}

// -----

// CHECK: 'tir.call_extern' op expected a scalar result, got !tir.buffer<[2], f32>
tir.prim_func @call_extern_c2[%n]() {
  %r = tir.call_extern "f"() : !tir.buffer<[2], f32>
}

// -----

// CHECK: 'tir.call_packed' op argument #0 expected a buffer or a scalar, got vector<2xf32>
tir.prim_func @call_packed_c1[%n](%X: !tir.buffer<[2], f32>) {
  %c0 = arith.constant 0 : index
  %x = tir.load %X[%c0] : vector<2xf32>
  tir.call_packed "f"(%x)
}

// -----

// CHECK: 'tir.call_packed' op expected a scalar result, got ui8
tir.prim_func @call_packed_c2[%n]() {
  %r = tir.call_packed "f"() : ui8
}
