// RUN: relax-opt %s -p expose-prim-funcs --verify-diagnostics --split-input-file | filecheck %s

// Tensors have no gaps; what a kernel read between or behind their elements would be somebody else's.
// CHECK: 'tir.prim_func' op is called with tensors, but parameter #0 expected a plain layout, got !tir.buffer<[2], f32, strides = [4], offset = 2>
// CHECK: hint: take all of the memory as the parameter, and use the part by 'tir.view' or 'tir.match_buffer'
tir.prim_func @strided(%A: !tir.buffer<[2], f32, strides = [4], offset = 2>, %B: !tir.buffer<[2], f32>) {
}
