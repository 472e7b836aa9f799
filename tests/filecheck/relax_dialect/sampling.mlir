// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// The grid gives the spatial dimensions of the result.
// CHECK-LABEL: relax.func @samples[
// CHECK-NEXT:      %0 = relax.image.grid_sample %x, %g
// CHECK-NEXT:      %1 = relax.image.grid_sample %y, %v method = "cubic" padding_mode = "reflection" cubic_alpha = -0.5 align_corners
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "samples"
// TYPES: "relax.image.grid_sample"{{.*}} -> !relax.tensor<[n, c, k, l], f32>
// TYPES: "relax.image.grid_sample"{{.*}} -> !relax.tensor<[n, c, k, l, m], f16>
relax.func @samples[%n, %c, %h, %w, %k, %l, %d, %m](%x: !relax.tensor<[n, c, h, w], f32>, %g: !relax.tensor<[n, k, l, 2], f32>, %y: !relax.tensor<[n, c, d, h, w], f16>, %v: !relax.tensor<[n, k, l, m, 3], f32>) -> !relax.object {
  %0 = relax.image.grid_sample %x, %g
  %1 = relax.image.grid_sample %y, %v method = "cubic" padding_mode = "reflection" align_corners cubic_alpha = -0.5
  relax.return %x
}

// A row of the matrix for each dimension of the size.
// CHECK-LABEL: relax.func @grids[
// CHECK-NEXT:      %0 = relax.image.affine_grid %x, %s
// CHECK-NEXT:      %1 = relax.image.affine_grid %t, %q align_corners
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "grids"
// TYPES: "relax.image.affine_grid"{{.*}} -> !relax.tensor<[n, h, w, 2], f32>
// TYPES: "relax.image.affine_grid"{{.*}} -> !relax.tensor<[n, d, h, w, 3], f32>
relax.func @grids[%n, %h, %w, %d](%x: !relax.tensor<[n, 2, 3], f32>, %t: !relax.tensor<[n, 3, 4], f32>, %s: !relax.shape<[h, w]>, %q: !relax.shape<[d, h, w]>) -> !relax.object {
  %0 = relax.image.affine_grid %x, %s
  %1 = relax.image.affine_grid %t, %q align_corners
  relax.return %x
}
