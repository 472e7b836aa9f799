// RUN: RELAX_INVALID

// CHECK: 'tir.greater' op expected floats or vectors of one type, got f32 and f64
tir.prim_func @greater_c1(%a: f32, %b: f64) {
  %g = tir.greater %a, %b : f64
}

// -----

// CHECK: 'tir.greater' op expected floats or vectors of one type, got i32 and i32
tir.prim_func @greater_c1_of_integers(%a: i32) {
  %g = tir.greater %a, %a : i32
}

// -----

// CHECK: 'tir.scaled_exp' op expected f32 or a vector of it, got f64
tir.prim_func @scaled_exp_c1(%a: f64) {
  %e = tir.scaled_exp %a : f64
}
