// RUN: RELAX_INVALID

// CHECK: 'tir.prefetch' op expected 2 indices, got 1
tir.prim_func @prefetch_c1[%n](%X: !tir.buffer<[n, n], f32>) {
  tir.prefetch %X[%n] level 1
}

// -----

// CHECK: 'tir.prefetch' op expected level 1, 2 or 3, got 4
tir.prim_func @prefetch_c2[%n](%X: !tir.buffer<[n], f32>) {
  tir.prefetch %X[%n] level 4
}
