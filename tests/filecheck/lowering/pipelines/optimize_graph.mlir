// RUN: relax-opt %s -p optimize-graph | filecheck %s

// Shapes that tensors hold become shapes, then operators on constants become constants.
// CHECK-LABEL: relax.func @main
// CHECK-NEXT:    %u = relax.shape [n, 4]
// CHECK-NEXT:    %0 = relax.reshape %x, %u
// CHECK-NEXT:    %six = relax.constant dense<6.000000e+00> : tensor<f32>
// CHECK-NEXT:    %1 = relax.multiply %0, %six
// CHECK-NEXT:    relax.return %1
relax.func @main[%n](%x: !relax.tensor<[4, n], f32>) -> !relax.tensor<[n, 4], f32> {
  %s = relax.shape_of %x
  %t = relax.shape_to_tensor %s
  %f = relax.flip %t axis = 0
  %u = relax.tensor_to_shape %f
  %0 = relax.reshape %x, %u : !relax.tensor<[_, _], f32>
  %two = relax.constant dense<2.0> : tensor<f32>
  %three = relax.constant dense<3.0> : tensor<f32>
  %six = relax.multiply %two, %three
  %1 = relax.multiply %0, %six
  relax.return %1
}
