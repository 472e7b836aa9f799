// RUN: RELAX_INVALID

// CHECK: 'tir.convert' op expected one of extf, {{.*}}, bitcast, got widen
tir.prim_func @convert_c1(%a: f32) {
  %x = vector.broadcast %a : f32 to vector<4xf32>
  %y = tir.convert widen %x : vector<4xf32> to vector<4xf64>
}

// -----

// CHECK: expected vector<4xf32>, the type of the operand, got vector<8xf32>
tir.prim_func @type(%a: f32) {
  %x = vector.broadcast %a : f32 to vector<4xf32>
  %y = tir.convert extf %x : vector<8xf32> to vector<8xf64>
}

// -----

// CHECK: 'tir.convert' op expected vectors with one dimension of one length, got vector<4xf32> and vector<8xf64>
tir.prim_func @convert_c2(%a: f32) {
  %x = vector.broadcast %a : f32 to vector<4xf32>
  %y = tir.convert extf %x : vector<4xf32> to vector<8xf64>
}

// -----

// CHECK: 'tir.convert' op extf does not convert vector<4xf64> to vector<4xf32>
tir.prim_func @convert_c3(%a: f64) {
  %x = vector.broadcast %a : f64 to vector<4xf64>
  %y = tir.convert extf %x : vector<4xf64> to vector<4xf32>
}

// -----

// CHECK: 'tir.convert' op sitofp does not convert vector<4xindex> to vector<4xf32>
tir.prim_func @convert_c3_index(%a: index) {
  %x = vector.broadcast %a : index to vector<4xindex>
  %y = tir.convert sitofp %x : vector<4xindex> to vector<4xf32>
}
