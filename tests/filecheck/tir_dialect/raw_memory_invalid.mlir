// RUN: RELAX_INVALID

// CHECK: 'tir.memory_at' op expected a buffer without an offset, got !tir.buffer<[2], f32, offset = 2>
tir.prim_func @memory_at_c1(%p: i64) may_alias {
  %A = tir.memory_at %p : !tir.buffer<[2], f32, offset = 2>
}

// -----

// CHECK: 'tir.memory_at' op expected that @memory_at_c2 says may_alias, as addresses may be equal
tir.prim_func @memory_at_c2(%p: i64) {
  %A = tir.memory_at %p : !tir.buffer<[2], f32>
}

// -----

// CHECK: 'tir.address_of' op expected 2 indices, got 1
tir.prim_func @address_of_c1(%X: !tir.buffer<[2, 2], f32>) {
  %c0 = arith.constant 0 : index
  %p = tir.address_of %X[%c0]
}

// -----

// CHECK: 'tir.call_boxed' op expected a number of values, got -1
tir.prim_func @call_boxed_c1(%p: i64) {
  tir.call_boxed "f"(%p, -1)
}
