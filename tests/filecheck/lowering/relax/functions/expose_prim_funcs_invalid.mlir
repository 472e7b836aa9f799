// RUN: relax-opt %s -p expose-prim-funcs --verify-diagnostics --split-input-file | filecheck %s

// Tensors have no gaps; what a kernel read between or behind their elements would be somebody else's.
// CHECK: 'tir.prim_func' op is called with tensors, but parameter #0 expected a plain layout, got !tir.buffer<[2], f32, strides = [4], offset = 2>
// CHECK: hint: take all of the memory as the parameter, and use the part by 'tir.view' or 'tir.match_buffer'
tir.prim_func @strided(%A: !tir.buffer<[2], f32, strides = [4], offset = 2>, %B: !tir.buffer<[2], f32>) {
}

// -----

// A stride cannot be that of two tensors that differ.
// CHECK: 'tir.prim_func' op is called with tensors, but parameter #1 expected a plain layout, got !tir.buffer<[n], f32, strides = [m]>
tir.prim_func @differing[%n, %m, %s](%A: !tir.buffer<[n, m], f32, strides = [s, 1]>, %B: !tir.buffer<[n], f32, strides = [s]>) {
}

// -----

// A kernel that another one calls with parts of its memory stays as it is.
// CHECK: 'tir.prim_func' op is called with tensors, but parameter #0 expected a plain layout, got !tir.buffer<[n], f32, strides = [s]>
tir.prim_func @zero[%n, %s](%A: !tir.buffer<[n], f32, strides = [s]>) {
}
tir.prim_func @column[%n](%A: !tir.buffer<[n, 4], f32>) {
  %c0 = arith.constant 0 : index
  %column = tir.view %A at %c0 : !tir.buffer<[n], f32, strides = [4]>
  %c4 = arith.constant 4 : index
  tir.call @zero[%n, %c4](%column)
}
