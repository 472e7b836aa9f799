// RUN: RELAX_INVALID

// CHECK: 'tir.misalignment' op expected 2 indices, got 1
tir.prim_func @misalignment_c1[%n](%X: !tir.buffer<[n, n], f32>) {
  %e = tir.misalignment %X[%n] of 16
}

// -----

// CHECK: 'tir.misalignment' op expected a power of two, got 12
tir.prim_func @misalignment_c2[%n](%X: !tir.buffer<[n], f32>) {
  %e = tir.misalignment %X[%n] of 12
}

// -----

// CHECK: 'tir.misalignment' op expected a power of two, got 0
tir.prim_func @misalignment_c2_zero[%n](%X: !tir.buffer<[n], f32>) {
  %e = tir.misalignment %X[%n] of 0
}
