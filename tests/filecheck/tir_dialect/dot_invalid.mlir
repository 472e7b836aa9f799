// RUN: RELAX_INVALID

// CHECK: 'tir.dot' op expected two of i8 and ui8, or i16 or bf16 twice, got ui8 and bf16
tir.prim_func @dot_c1(%a: i32) {
  %x = vector.broadcast %a : i32 to vector<4xi32>
  %s = tir.dot ui8 %x, bf16 %x, %x : vector<4xi32>
}

// -----

// CHECK: 'tir.dot' op expected two of i8 and ui8, or i16 or bf16 twice, got i16 and bf16
tir.prim_func @dot_c1_words(%a: i32) {
  %x = vector.broadcast %a : i32 to vector<4xi32>
  %s = tir.dot i16 %x, bf16 %x, %x : vector<4xi32>
}

// -----

// CHECK: 'tir.dot' op expected a vector of f32 as sum, got vector<4xi32>
tir.prim_func @dot_c2(%a: i32) {
  %x = vector.broadcast %a : i32 to vector<4xi32>
  %s = tir.dot bf16 %x, bf16 %x, %x : vector<4xi32>
}

// -----

// CHECK: 'tir.dot' op expected words of type vector<4xi32>, got vector<8xi32> and vector<4xi32>
tir.prim_func @dot_c3(%a: i32) {
  %x = vector.broadcast %a : i32 to vector<4xi32>
  %y = vector.broadcast %a : i32 to vector<8xi32>
  %s = tir.dot i8 %y, i8 %x, %x : vector<4xi32>
}

// -----

// CHECK: expected vector<4xi32>, the type of the sum, got vector<8xi32>
tir.prim_func @type(%a: i32) {
  %x = vector.broadcast %a : i32 to vector<4xi32>
  %s = tir.dot i8 %x, i8 %x, %x : vector<8xi32>
}

// -----

// CHECK: 'tir.dot' op expected ui8 and i8 for saturating sums, got i8 and i8
tir.prim_func @dot_c4(%a: i32) {
  %x = vector.broadcast %a : i32 to vector<4xi32>
  %s = tir.dot saturating i8 %x, i8 %x, %x : vector<4xi32>
}
