// RUN: RELAX_INVALID

// CHECK: 'tir.match_buffer' op expected 2 dimensions, got 1 starts, 0 ends and 1 flags
tir.prim_func @match_buffer_c1[%n](%X: !tir.buffer<[n, n], f32>) {
  %c0 = arith.constant 0 : index
  %V = tir.match_buffer %X[%c0] : !tir.buffer<[], f32>
}

// -----

// CHECK: 'tir.match_buffer' op expected 1 dimensions of f32 in scope "global", got 0 of f32 in "global"
tir.prim_func @match_buffer_c2[%n](%X: !tir.buffer<[n], f32>) {
  %c0 = arith.constant 0 : index
  %V = tir.match_buffer %X[%c0 to %n] : !tir.buffer<[], f32>
}

// -----

// CHECK: 'tir.match_buffer' op expected strides [m] and offset 0, got [1] and 0
tir.prim_func @match_buffer_c3[%n, %m](%X: !tir.buffer<[n, m], f32>) {
  %c0 = arith.constant 0 : index
  %V = tir.match_buffer %X[%c0 to %n, %c0] : !tir.buffer<[n], f32>
}

// -----

// CHECK: 'tir.reads' op expected 1 dimensions, got 2 starts, 0 ends and 2 flags
tir.prim_func @reads_c1[%n](%X: !tir.buffer<[n], f32>) {
  tir.block "b" {
    tir.reads %X[%n, %n]
  }
}

// -----

// CHECK: 'tir.reads' expects parent op 'tir.block'
tir.prim_func @reads_c2[%n](%X: !tir.buffer<[n], f32>) {
  tir.reads %X[%n]
}

// -----

// CHECK: 'tir.writes' op expected 1 dimensions, got 0 starts, 0 ends and 0 flags
tir.prim_func @writes_c1[%n](%X: !tir.buffer<[n], f32>) {
  tir.block "b" {
    tir.writes %X[]
  }
}

// -----

// CHECK: 'tir.writes' expects parent op 'tir.block'
tir.prim_func @writes_c2[%n](%X: !tir.buffer<[n], f32>) {
  tir.writes %X[%n]
}

// -----

// CHECK: 'tir.match_buffer' op expected 8 elements in dimension 1 of %X, got 16
tir.prim_func @match_buffer_c4[%n](%X: !tir.buffer<[n, 8 * n + 8], f32>) {
  %c8 = arith.constant 8 : index
  tir.for (%i) in (%n) {
    %begin = arith.muli %i, %c8 : index
    %end = arith.addi %begin, %c8 : index
    %V = tir.match_buffer %X[%i, %begin to %end] : !tir.buffer<[16], f32>
  }
}
