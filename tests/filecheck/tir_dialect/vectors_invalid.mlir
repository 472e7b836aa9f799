// RUN: RELAX_INVALID

// CHECK: 'tir.compare' op expected two vectors of numbers of one type with one fixed dimension, got vector<4xf32> and vector<8xf32>
tir.prim_func @compare_c1(%a: f32) {
  %x = vector.broadcast %a : f32 to vector<4xf32>
  %y = vector.broadcast %a : f32 to vector<8xf32>
  %m = tir.compare olt %x, %y : vector<8xf32>
}

// -----

// CHECK: expected vector<4xf32>, the type of the operand, got vector<8xf32>
tir.prim_func @type(%a: f32) {
  %x = vector.broadcast %a : f32 to vector<4xf32>
  %m = tir.compare olt %x, %x : vector<8xf32>
}

// -----

// CHECK: 'tir.compare' op expected one of false, oeq, {{.*}}, got slt
tir.prim_func @compare_c2(%a: f32) {
  %x = vector.broadcast %a : f32 to vector<4xf32>
  %m = tir.compare slt %x, %x : vector<4xf32>
}

// -----

// CHECK: 'tir.compare' op expected a result of type vector<4xi1>, got vector<8xi1>
tir.prim_func @compare_c3(%a: f32) {
  %x = vector.broadcast %a : f32 to vector<4xf32>
  %m = "tir.compare"(%x, %x) <{predicate = "olt"}> : (vector<4xf32>, vector<4xf32>) -> vector<8xi1>
}

// -----

// CHECK: 'tir.select' op expected vectors of type vector<4xf32>, got vector<4xf32> and vector<8xf32>
tir.prim_func @select_c1(%a: f32) {
  %x = vector.broadcast %a : f32 to vector<4xf32>
  %y = vector.broadcast %a : f32 to vector<8xf32>
  %m = tir.compare olt %x, %x : vector<4xf32>
  %r = tir.select %m, %x, %y : vector<8xf32>
}

// -----

// CHECK: 'tir.select' op expected a mask of i1 for vector<8xf32>, got vector<4xi1>
tir.prim_func @select_c2(%a: f32) {
  %x = vector.broadcast %a : f32 to vector<4xf32>
  %y = vector.broadcast %a : f32 to vector<8xf32>
  %m = tir.compare olt %x, %x : vector<4xf32>
  %r = tir.select %m, %y, %y : vector<8xf32>
}

// -----

// CHECK: 'tir.first_lane' op expected a vector of i1 with one fixed dimension, got vector<4xf32>
tir.prim_func @first_lane_c1(%a: f32) {
  %x = vector.broadcast %a : f32 to vector<4xf32>
  %i = tir.first_lane %x : vector<4xf32>
}
