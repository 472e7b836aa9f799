// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// CHECK-LABEL: relax.func @resize[
// CHECK-NEXT:      %s = relax.shape [2 * h, 7]
// CHECK-NEXT:      %0 = relax.image.resize2d %x, %s
// CHECK-NEXT:      %1 = relax.image.resize2d %y, %s method = "nearest_neighbor" coordinates = "asymmetric" rounding = "floor" layout = "NHWC" out_dtype = f32
// CHECK-NEXT:      %2 = relax.image.resize2d %x, %u method = "cubic" coordinates = "tf_crop_and_resize" cubic_alpha = -0.75 cubic_exclude extrapolation_value = 1.0 roi = [0.0, 0.0, 0.5, 1.0]
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "resize"
// TYPES: "relax.shape"{{.*}} -> !relax.shape<[2 * h, 7]>
// TYPES: "relax.image.resize2d"{{.*}} -> !relax.tensor<[n, 3, 2 * h, 7], f32>
// TYPES: "relax.image.resize2d"{{.*}} -> !relax.tensor<[n, 2 * h, 7, 3], f32>
// TYPES: "relax.image.resize2d"{{.*}} -> !relax.tensor<[n, 3, _, _], f32>
relax.func @resize[%n, %h](%x: !relax.tensor<[n, 3, h, h], f32>, %y: !relax.tensor<[n, 4, 5, 3], ui8>, %u: !relax.shape<*>) -> !relax.object {
  %s = relax.shape [2 * h, 7]
  %0 = relax.image.resize2d %x, %s
  %1 = relax.image.resize2d %y, %s method = "nearest_neighbor" coordinates = "asymmetric" rounding = "floor" layout = "NHWC" out_dtype = f32
  %2 = relax.image.resize2d %x, %u method = "cubic" coordinates = "tf_crop_and_resize" cubic_alpha = -0.75 cubic_exclude extrapolation_value = 1.0 roi = [0.0, 0.0, 0.5, 1.0]
  relax.return %x
}

// Only the axis changes.
// CHECK-LABEL: relax.func @resized[
// CHECK-NEXT:      %0 = relax.image.resize1d %x axis = 0 length = 2 * n
// CHECK-NEXT:      %1 = relax.image.resize1d %x length = 5 scale = 0.625 method = "cubic" coordinates = "tf_crop_and_resize" cubic_alpha = -0.5 exclude_outside antialias extrapolation_value = 7.0 roi = [0.1, 0.9]
// CHECK-NEXT:      %2 = relax.image.resize1d %u length = n method = "nearest_neighbor" rounding = "ceil"
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "resized"
// TYPES: "relax.image.resize1d"{{.*}} -> !relax.tensor<[2 * n, m], f32>
// TYPES: "relax.image.resize1d"{{.*}} -> !relax.tensor<[n, 5], f32>
// TYPES: "relax.image.resize1d"{{.*}} -> !relax.tensor<*, f32>
relax.func @resized[%n, %m](%x: !relax.tensor<[n, m], f32>, %u: !relax.tensor<*, f32>) -> !relax.object {
  %0 = relax.image.resize1d %x length = 2 * n axis = 0
  %1 = relax.image.resize1d %x length = 5 method = "cubic" coordinates = "tf_crop_and_resize" roi = [0.1, 0.9] extrapolation_value = 7.0 scale = 0.625 cubic_alpha = -0.5 exclude_outside antialias
  %2 = relax.image.resize1d %u length = n method = "nearest_neighbor" rounding = "ceil"
  relax.return %x
}

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
