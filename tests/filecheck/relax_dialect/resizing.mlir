// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

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
