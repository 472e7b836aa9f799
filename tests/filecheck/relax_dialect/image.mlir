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
