// RUN: RELAX_INVALID

// CHECK: 'relax.map_indices' op index_map expected 2 indices, got (d0) -> (d0)
relax.func @map_indices_c1[%n, %m](%x: !relax.tensor<[n, m], f32>) -> !relax.object {
  %0 = relax.map_indices %x index_map = affine_map<(d0) -> (d0)>
  relax.return %x
}

// -----

// CHECK: 'relax.map_indices' op index_map expected no symbols, got (d0)[s0] -> ((d0 + s0))
relax.func @map_indices_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.map_indices %x index_map = affine_map<(d0)[s0] -> (d0 + s0)>
  relax.return %x
}

// -----

// CHECK: 'relax.map_indices' op expected an index_map that sends no two elements to one place, got (d0, d1) -> (((d0 * 8) + d1))
relax.func @map_indices_c2[%n](%x: !relax.tensor<[n, 9], f32>) -> !relax.object {
  %0 = relax.map_indices %x index_map = affine_map<(d0, d1) -> (d0 * 8 + d1)>
  relax.return %x
}

// -----

// CHECK: 'relax.map_indices' op expected an index_map whose indices are at least 0 and bounded, got (d0) -> ((d0 + -1))
relax.func @map_indices_c3[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.map_indices %x index_map = affine_map<(d0) -> (d0 - 1)>
  relax.return %x
}
