// RUN: RELAX_INVALID

// CHECK: 'tir.flatten' op expected a buffer without gaps, got !tir.buffer<[n, m], f32, strides = [2 * m, 1]>
tir.prim_func @flatten_c1[%n, %m](%X: !tir.buffer<[n, m], f32, strides = [2 * m, 1]>) {
  %F = tir.flatten %X
}

// -----

// CHECK: 'tir.flatten' op expected a view of type !tir.buffer<[m * n], f32>, got !tir.buffer<[n], f32>
tir.prim_func @flatten_c2[%n, %m](%X: !tir.buffer<[n, m], f32>) {
  %F = "tir.flatten"(%X) : (!tir.buffer<[n, m], f32>) -> !tir.buffer<[n], f32>
}
