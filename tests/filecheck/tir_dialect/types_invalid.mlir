// RUN: RELAX_INVALID

// CHECK: 'tir.buffer' has unsupported dtype i7
tir.prim_func @buffer_c1(%A: !tir.buffer<[4], i7>) {
}

// -----

// CHECK: 'tir.buffer' expected 2 strides, got 1
tir.prim_func @buffer_c2(%A: !tir.buffer<[4, 4], f32, strides = [1]>) {
}

// -----

// CHECK: 'tir.buffer' alignment expected a power of two of at least 4, got 2
tir.prim_func @buffer_c3(%A: !tir.buffer<[4], f32, align = 2>) {
}

// -----

// CHECK: 'tir.buffer' alignment expected a power of two of at least 1, got 24
tir.prim_func @buffer_c3(%A: !tir.buffer<[4], i8, align = 24>) {
}

// -----

// CHECK: 'tir.buffer' dimension 1 is negative: -4
tir.prim_func @buffer_c4(%A: !tir.buffer<[4, -4], f32>) {
}

// -----

// CHECK: in buffer type
tir.prim_func @unknown_key(%A: !tir.buffer<[4], f32, layout = 3>) {
}
