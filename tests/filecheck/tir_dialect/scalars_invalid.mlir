// RUN: RELAX_INVALID

// CHECK: 'tir.ramp' op expected a vector of index with one dimension, got vector<2x4xindex>
tir.prim_func @ramp_c1[%n]() {
  %r = "tir.ramp"(%n, %n) : (index, index) -> vector<2x4xindex>
}

// -----

// CHECK: expected a vector of index with one dimension, got vector<4xf32>
tir.prim_func @ramp_c1[%n]() {
  %r = tir.ramp %n by %n : vector<4xf32>
}

// -----

// CHECK: 'tir.assert' op expected an error of ValueError, TypeError, RuntimeError, IndexError, KeyError, AssertionError, MemoryError, got OSError
tir.prim_func @assert_c1(%ok: i1) {
  tir.assert %ok, "no" raises "OSError"
}
