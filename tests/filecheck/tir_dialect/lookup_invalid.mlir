// RUN: RELAX_INVALID

// CHECK: 'tir.lookup' op expected 16 entries, got 3
tir.prim_func @lookup_c1(%a: i32) {
  %x = vector.broadcast %a : i32 to vector<4xi32>
  %s = tir.lookup %x, [1, 2, 3] : vector<4xi32>
}

// -----

// CHECK: 'tir.lookup' op expected a vector of i8 or i32, got vector<4xi16>
tir.prim_func @lookup_c2(%a: i16) {
  %x = vector.broadcast %a : i16 to vector<4xi16>
  %s = tir.lookup %x, [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12] : vector<4xi16>
}
