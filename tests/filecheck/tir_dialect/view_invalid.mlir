// RUN: RELAX_INVALID

// CHECK: 'tir.view' op expected a buffer without gaps, got !tir.buffer<[n, m], f32, strides = [2 * m, 1]>
tir.prim_func @view_c1[%n, %m](%X: !tir.buffer<[n, m], f32, strides = [2 * m, 1]>) {
  %V = tir.view %X : !tir.buffer<[n], f32>
}

// -----

// CHECK: 'tir.view' op expected a view without an offset, got !tir.buffer<[2], f32, offset = 2>
tir.prim_func @view_c1(%X: !tir.buffer<[4], f32>) {
  %V = tir.view %X : !tir.buffer<[2], f32, offset = 2>
}

// -----

// CHECK: 'tir.view' op expected one scope, got !tir.buffer<[4], f32> and !tir.buffer<[4], i32, scope = "local">
tir.prim_func @view_c2(%X: !tir.buffer<[4], f32>) {
  %V = tir.view %X : !tir.buffer<[4], i32, scope = "local">
}

// -----

// CHECK: 'tir.view' op expected a view that is not larger than !tir.buffer<[4], f32>, got !tir.buffer<[3], f64>
tir.prim_func @view_c3(%X: !tir.buffer<[4], f32>) {
  %V = tir.view %X : !tir.buffer<[3], f64>
}

// -----

// CHECK: 'tir.view' op expected a view that is not larger than !tir.buffer<[4], f32>, got !tir.buffer<[2, 2], f32, strides = [3, 1]>
tir.prim_func @view_c3(%X: !tir.buffer<[4], f32>) {
  %V = tir.view %X : !tir.buffer<[2, 2], f32, strides = [3, 1]>
}
