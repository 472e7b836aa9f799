// RUN: RELAX_INVALID

// CHECK: 'relax.call_dps_packed' op result #0 expected known dtype and dimensions to allocate memory, got !relax.tensor<[4], _>; give an unknown shape by 'shape(%s)'
relax.func @call_dps_packed_c1(%x: !relax.object) -> !relax.object {
  %0 = relax.call_dps_packed "f"(%x) : !relax.tensor<[4], _>
  relax.return %0
}

// -----

// CHECK: 'relax.call_dps_packed' op result #0 expected known dtype and dimensions to allocate memory, got !relax.tensor<*, f32>; give an unknown shape by 'shape(%s)'
relax.func @call_dps_packed_c1(%x: !relax.object) -> !relax.object {
  %0 = relax.call_dps_packed "f"(%x) : !relax.tensor<*, f32>
  relax.return %0
}

// -----

// CHECK: 'relax.call_dps_packed' op expected 0 or 2 shapes, one per result, got 1
relax.func @call_dps_packed_c2(%x: !relax.object, %s: !relax.shape<*>) -> !relax.object {
  %0, %1 = relax.call_dps_packed "f"(%x) shape(%s) : !relax.tensor<*, f32>, !relax.tensor<*, f32>
  relax.return %0
}

// -----

// CHECK: expected tensor types, got !relax.object
relax.func @call_dps_packed(%x: !relax.object) -> !relax.object {
  %0 = relax.call_dps_packed "f"(%x) : !relax.object
  relax.return %0
}
