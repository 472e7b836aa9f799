// RUN: RELAX_INVALID

// CHECK: 'tir.zero_tile' op expected a register of accumulators, 0 to 3, got 4
tir.prim_func @zero_tile_c1() {
  tir.zero_tile 4
}

// -----

// CHECK: 'tir.load_tile' op expected an index for each of at least 2 dimensions, got 1 for 2
tir.prim_func @load_tile_c1[%n](%A: !tir.buffer<[16, 16], i32>) {
  tir.load_tile 4, %A[%n]
}

// -----

// CHECK: 'tir.load_tile' op expected elements of i32 or f32, got i8
tir.prim_func @load_tile_c2[%n](%A: !tir.buffer<[16, 64], i8>) {
  tir.load_tile 4, %A[%n, %n]
}

// -----

// CHECK: 'tir.load_tile' op expected register 4 or 5 or 6 or 7, got 3
tir.prim_func @load_tile_c3[%n](%A: !tir.buffer<[16, 16], i32>) {
  tir.load_tile 3, %A[%n, %n]
}

// -----

// CHECK: 'tir.store_tile' op expected an index for each of at least 2 dimensions, got 1 for 1
tir.prim_func @store_tile_c1[%n](%A: !tir.buffer<[16], i32>) {
  tir.store_tile 0, %A[%n]
}

// -----

// CHECK: 'tir.store_tile' op expected elements of i32 or f32, got f64
tir.prim_func @store_tile_c2[%n](%A: !tir.buffer<[16, 16], f64>) {
  tir.store_tile 0, %A[%n, %n]
}

// -----

// CHECK: 'tir.store_tile' op expected a register of accumulators, 0 to 3, got 4
tir.prim_func @store_tile_c3[%n](%A: !tir.buffer<[16, 16], f32>) {
  tir.store_tile 4, %A[%n, %n]
}

// -----

// CHECK: 'tir.dot_tiles' op expected two of i8 and ui8, or bf16 twice, got bf16 and i8
tir.prim_func @dot_tiles_c1() {
  tir.dot_tiles 0, bf16 4, i8 6
}

// -----

// CHECK: 'tir.dot_tiles' op expected a register of accumulators, 0 to 3, got 5
tir.prim_func @dot_tiles_c2_accumulators() {
  tir.dot_tiles 5, i8 4, i8 6
}

// -----

// CHECK: 'tir.dot_tiles' op expected register 4 or 5, got 6
tir.prim_func @dot_tiles_c2_rows() {
  tir.dot_tiles 0, i8 6, i8 6
}

// -----

// CHECK: 'tir.dot_tiles' op expected register 6 or 7, got 5
tir.prim_func @dot_tiles_c2_columns() {
  tir.dot_tiles 0, i8 5, i8 5
}

// -----

// CHECK: 'tir.zero_tile' op expected 'tir.configure_tiles' before it, on the same thread
tir.prim_func @zero_tile_c2() {
  tir.zero_tile 0
}

// -----

// CHECK: 'tir.load_tile' op expected 'tir.configure_tiles' before it, on the same thread
tir.prim_func @load_tile_c4[%n](%A: !tir.buffer<[16, 16], i32>) {
  tir.configure_tiles %n
  tir.for parallel (%i) in (%n) {
    tir.load_tile 4, %A[%n, %n]
  }
}

// -----

// CHECK: 'tir.store_tile' op expected 'tir.configure_tiles' before it, on the same thread
tir.prim_func @store_tile_c4[%n](%A: !tir.buffer<[16, 16], i32>) {
  tir.configure_tiles %n
  tir.release_tiles
  tir.store_tile 0, %A[%n, %n]
}

// -----

// CHECK: 'tir.dot_tiles' op expected 'tir.configure_tiles' before it, on the same thread
tir.prim_func @dot_tiles_c3() {
  tir.dot_tiles 0, i8 4, i8 6
}
