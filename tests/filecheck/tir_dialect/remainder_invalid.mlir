// RUN: RELAX_INVALID

// CHECK: 'tir.fmod' op expected f32 or f64 or vectors of one type, got f32 and f64
tir.prim_func @fmod_c1(%a: f32, %b: f64) {
  %g = tir.fmod %a, %b : f64
}

// -----

// CHECK: 'tir.fmod' op expected f32 or f64 or vectors of one type, got f16 and f16
tir.prim_func @fmod_c1_of_halves(%a: f16) {
  %g = tir.fmod %a, %a : f16
}
