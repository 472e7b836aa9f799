// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// CHECK-LABEL: relax.func @windows[
// CHECK-NEXT:      %0 = relax.nn.max_pool1d %x pool_size = [3]
// CHECK-NEXT:      %1 = relax.nn.max_pool2d %y pool_size = [3, 3] strides = [2, 2] padding = [1, 1, 1, 1]
// CHECK-NEXT:      %2 = relax.nn.max_pool2d %y pool_size = [2, 2] strides = [2, 2] ceil_mode
// CHECK-NEXT:      %3 = relax.nn.max_pool3d %z pool_size = [2, h, n + 1] dilation = [1, 2, 3]
// CHECK-NEXT:      %4 = relax.nn.avg_pool1d %x pool_size = [3] padding = [1, 1] count_include_pad
// CHECK-NEXT:      %5 = relax.nn.avg_pool2d %y pool_size = [2, 2] layout = "NCHW" out_layout = "NHWC"
// CHECK-NEXT:      %6 = relax.nn.avg_pool3d %z pool_size = [1, 2, 3]
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "windows"
// TYPES: "relax.nn.max_pool1d"{{.*}} -> !relax.tensor<[n, 3, 8], f32>
// TYPES: "relax.nn.max_pool2d"{{.*}} -> !relax.tensor<[n, 3, 6, floordiv(h + 1, 2)], f32>
// TYPES: "relax.nn.max_pool2d"{{.*}} -> !relax.tensor<[n, 3, 6, floordiv(h + 1, 2)], f32>
// TYPES: "relax.nn.max_pool3d"{{.*}} -> !relax.tensor<[n, 3, 3, 7 - 2 * h, 6 - 3 * n], f32>
// TYPES: "relax.nn.avg_pool1d"{{.*}} -> !relax.tensor<[n, 3, 10], f32>
// TYPES: "relax.nn.avg_pool2d"{{.*}} -> !relax.tensor<[n, 10, h - 1, 3], f32>
// TYPES: "relax.nn.avg_pool3d"{{.*}} -> !relax.tensor<[n, 3, 4, 4, 4], f32>
relax.func @windows[%n, %h](%x: !relax.tensor<[n, 3, 10], f32>, %y: !relax.tensor<[n, 3, 11, h], f32>, %z: !relax.tensor<[n, 3, 4, 5, 6], f32>) -> !relax.object {
  %0 = relax.nn.max_pool1d %x pool_size = [3]
  %1 = relax.nn.max_pool2d %y pool_size = [3, 3] strides = [2, 2] padding = [1, 1, 1, 1]
  %2 = relax.nn.max_pool2d %y pool_size = [2, 2] strides = [2, 2] ceil_mode
  %3 = relax.nn.max_pool3d %z pool_size = [2, h, n + 1] dilation = [1, 2, 3]
  %4 = relax.nn.avg_pool1d %x pool_size = [3] padding = [1, 1] count_include_pad
  %5 = relax.nn.avg_pool2d %y pool_size = [2, 2] layout = "NCHW" out_layout = "NHWC"
  %6 = relax.nn.avg_pool3d %z pool_size = [1, 2, 3]
  relax.return %x
}

// The last window does not start behind the data.
// CHECK-LABEL: relax.func @ceil_mode(
// CHECK-NEXT:      %0 = relax.nn.max_pool1d %x pool_size = [2] strides = [2] ceil_mode
// CHECK-NEXT:      %1 = relax.nn.max_pool1d %y pool_size = [1] strides = [2] padding = [0, 1] ceil_mode
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "ceil_mode"
// TYPES: "relax.nn.max_pool1d"{{.*}} -> !relax.tensor<[1, 1, 3], f32>
// TYPES: "relax.nn.max_pool1d"{{.*}} -> !relax.tensor<[1, 1, 2], f32>
relax.func @ceil_mode(%x: !relax.tensor<[1, 1, 5], f32>, %y: !relax.tensor<[1, 1, 3], f32>) -> !relax.object {
  %0 = relax.nn.max_pool1d %x pool_size = [2] strides = [2] ceil_mode
  %1 = relax.nn.max_pool1d %y pool_size = [1] strides = [2] padding = [0, 1] ceil_mode
  relax.return %x
}

// CHECK-LABEL: relax.func @adaptive[
// CHECK-NEXT:      %0 = relax.nn.adaptive_avg_pool1d %x output_size = [3]
// CHECK-NEXT:      %1 = relax.nn.adaptive_avg_pool2d %y output_size = [1, 1] layout = "NHWC"
// CHECK-NEXT:      %2 = relax.nn.adaptive_avg_pool3d %z output_size = [1, h, n + 1]
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "adaptive"
// TYPES: "relax.nn.adaptive_avg_pool1d"{{.*}} -> !relax.tensor<[n, 3, 3], f32>
// TYPES: "relax.nn.adaptive_avg_pool2d"{{.*}} -> !relax.tensor<[n, 1, 1, 3], f32>
// TYPES: "relax.nn.adaptive_avg_pool3d"{{.*}} -> !relax.tensor<[_, _, 1, h, n + 1], f32>
relax.func @adaptive[%n, %h](%x: !relax.tensor<[n, 3, 10], f32>, %y: !relax.tensor<[n, h, h, 3], f32>, %z: !relax.tensor<*, f32>) -> !relax.object {
  %0 = relax.nn.adaptive_avg_pool1d %x output_size = [3]
  %1 = relax.nn.adaptive_avg_pool2d %y output_size = [1, 1] layout = "NHWC"
  %2 = relax.nn.adaptive_avg_pool3d %z output_size = [1, h, n + 1]
  relax.return %x
}

// Channels in blocks stay in them unless the layout of the result says something else.
// CHECK-LABEL: relax.func @blocks[
// CHECK-NEXT:      %0 = relax.nn.max_pool2d %x pool_size = [2, 2] layout = "NCHW16c"
// CHECK-NEXT:      %1 = relax.nn.avg_pool2d %x pool_size = [2, 2] layout = "NCHW16c" out_layout = "NHWC8c"
// CHECK-NEXT:      %2 = relax.nn.adaptive_avg_pool2d %x output_size = [1, 1] layout = "NCHW16c" out_layout = "NCHW"
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "blocks"
// TYPES: "relax.nn.max_pool2d"{{.*}} -> !relax.tensor<[n, c, h - 1, 4, 16], f32>
// TYPES: "relax.nn.avg_pool2d"{{.*}} -> !relax.tensor<[n, h - 1, 4, 2 * c, 8], f32>
// TYPES: "relax.nn.adaptive_avg_pool2d"{{.*}} -> !relax.tensor<[n, 16 * c, 1, 1], f32>
relax.func @blocks[%n, %c, %h](%x: !relax.tensor<[n, c, h, 5, 16], f32>) -> !relax.object {
  %0 = relax.nn.max_pool2d %x pool_size = [2, 2] layout = "NCHW16c"
  %1 = relax.nn.avg_pool2d %x pool_size = [2, 2] layout = "NCHW16c" out_layout = "NHWC8c"
  %2 = relax.nn.adaptive_avg_pool2d %x output_size = [1, 1] layout = "NCHW16c" out_layout = "NCHW"
  relax.return %x
}

// The result has the type of the data, also where only the gradient knows the dtype.
// CHECK-LABEL: relax.func @gradients[
// CHECK-NEXT:      %0 = relax.grad.max_pool2d_backward %x, %g pool_size = [2, 2] strides = [2, 2]
// CHECK-NEXT:      %1 = relax.grad.avg_pool2d_backward %x, %g pool_size = [n, 3] strides = [2, 2] padding = [1, 1, 1, 1] ceil_mode count_include_pad
// CHECK-NEXT:      %2 = relax.grad.avg_pool2d_backward %y, %g pool_size = [2, 2] strides = [2, 2] layout = "NHWC" out_layout = "NCHW"
// CHECK-NEXT:      %3 = relax.grad.max_pool2d_backward %z, %g pool_size = [2, 2]
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "gradients"
// TYPES: "relax.grad.max_pool2d_backward"{{.*}} -> !relax.tensor<[n, 3, 6, h], f32>
// TYPES: "relax.grad.avg_pool2d_backward"{{.*}} -> !relax.tensor<[n, 3, 6, h], f32>
// TYPES: "relax.grad.avg_pool2d_backward"{{.*}} -> !relax.tensor<[n, 6, h, _], f32>
// TYPES: "relax.grad.max_pool2d_backward"{{.*}} -> !relax.tensor<[_, _, _, _], f32>
relax.func @gradients[%n, %h, %p](%x: !relax.tensor<[n, 3, 6, h], f32>, %g: !relax.tensor<[n, 3, 3, p], f32>, %y: !relax.tensor<[n, 6, h, _], f32>, %z: !relax.tensor<*, _>) -> !relax.object {
  %0 = relax.grad.max_pool2d_backward %x, %g pool_size = [2, 2] strides = [2, 2]
  %1 = relax.grad.avg_pool2d_backward %x, %g pool_size = [n, 3] strides = [2, 2] padding = [1, 1, 1, 1] ceil_mode count_include_pad
  %2 = relax.grad.avg_pool2d_backward %y, %g pool_size = [2, 2] strides = [2, 2] layout = "NHWC" out_layout = "NCHW"
  %3 = relax.grad.max_pool2d_backward %z, %g pool_size = [2, 2]
  relax.return %x
}
