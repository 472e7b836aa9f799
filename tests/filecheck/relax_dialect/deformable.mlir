// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// The window and the result say how many offsets there are.
// CHECK-LABEL: relax.func @moved[
// CHECK-NEXT:      %0 = relax.nn.deform_conv2d %x, %w, %o, %m padding = [1, 1, 1, 1] groups = 2 offset_groups = 2
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "moved"
// TYPES: "relax.nn.deform_conv2d"{{.*}} -> !relax.tensor<[n, 6, 5, 6], f32>
relax.func @moved[%n](%x: !relax.tensor<[n, 4, 5, 6], f32>, %w: !relax.tensor<[6, 2, 3, 3], f32>, %o: !relax.tensor<[n, 36, 5, 6], f32>, %m: !relax.tensor<[n, 18, 5, 6], f32>) -> !relax.object {
  %0 = relax.nn.deform_conv2d %x, %w, %o, %m padding = [1, 1, 1, 1] groups = 2 offset_groups = 2
  relax.return %x
}

// The image has the size that is given.
// CHECK-LABEL: relax.func @folded[
// CHECK-NEXT:      %0 = relax.nn.col2im %x, %s window = [2, 1]
// CHECK-NEXT:      %t = relax.shape [6, 6]
// CHECK-NEXT:      %1 = relax.nn.col2im %y, %t window = [3, 3] strides = [2, 2] padding = [0, 0, 1, 1] dilation = [2, 2]
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "folded"
// TYPES: "relax.nn.col2im"{{.*}} -> !relax.tensor<[n, 3 * c, 5, m], f32>
// TYPES: "relax.nn.col2im"{{.*}} -> !relax.tensor<[n, 1, 6, 6], i32>
relax.func @folded[%n, %c, %m](%x: !relax.tensor<[n, 6*c, 4*m], f32>, %s: !relax.shape<[5, m]>, %y: !relax.tensor<[n, 9, 4], i32>) -> !relax.object {
  %0 = relax.nn.col2im %x, %s window = [2, 1]
  %t = relax.shape [6, 6]
  %1 = relax.nn.col2im %y, %t window = [3, 3] strides = [2, 2] padding = [0, 0, 1, 1] dilation = [2, 2]
  relax.return %x
}
