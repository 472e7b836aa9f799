// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// Spatial dimensions shrink by the window; symbolic ones stay expressions.
// CHECK-LABEL: relax.func @convolutions[
// CHECK-NEXT:      %0 = relax.nn.conv2d %x, %w
// CHECK-NEXT:      %1 = relax.nn.conv2d %x, %w strides = [2, 2] padding = [1, 1, 1, 1]
// CHECK-NEXT:      %2 = relax.nn.conv2d %x, %w dilation = [2, 3] out_dtype = f64
// CHECK-NEXT:      %3 = relax.nn.conv2d %y, %d groups = 16
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "convolutions"
// TYPES: "relax.nn.conv2d"{{.*}} -> !relax.tensor<[n, 16, 30, h - 2], f32>
// TYPES: "relax.nn.conv2d"{{.*}} -> !relax.tensor<[n, 16, 16, floordiv(h + 1, 2)], f32>
// TYPES: "relax.nn.conv2d"{{.*}} -> !relax.tensor<[n, 16, 28, h - 6], f64>
// TYPES: "relax.nn.conv2d"{{.*}} -> !relax.tensor<[n, 16, 6, 6], f32>
relax.func @convolutions[%n, %h](%x: !relax.tensor<[n, 3, 32, h], f32>, %w: !relax.tensor<[16, 3, 3, 3], f32>, %d: !relax.tensor<[16, 1, 3, 3], f32>, %y: !relax.tensor<[n, 16, 8, 8], f32>) -> !relax.object {
  %0 = relax.nn.conv2d %x, %w
  %1 = relax.nn.conv2d %x, %w strides = [2, 2] padding = [1, 1, 1, 1]
  %2 = relax.nn.conv2d %x, %w dilation = [2, 3] out_dtype = f64
  %3 = relax.nn.conv2d %y, %d groups = 16
  relax.return %x
}

// Layouts say which dimension is which.
// CHECK-LABEL: relax.func @layouts[
// CHECK-NEXT:      %0 = relax.nn.conv2d %x, %w data_layout = "NHWC" kernel_layout = "HWIO"
// CHECK-NEXT:      %1 = relax.nn.conv2d %x, %w data_layout = "NHWC" kernel_layout = "HWIO" out_layout = "NCHW"
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "layouts"
// TYPES: "relax.nn.conv2d"{{.*}} -> !relax.tensor<[n, 6, 7, 16], f32>
// TYPES: "relax.nn.conv2d"{{.*}} -> !relax.tensor<[n, 16, 6, 7], f32>
relax.func @layouts[%n](%x: !relax.tensor<[n, 8, 9, 4], f32>, %w: !relax.tensor<[3, 3, 4, 16], f32>) -> !relax.object {
  %0 = relax.nn.conv2d %x, %w data_layout = "NHWC" kernel_layout = "HWIO"
  %1 = relax.nn.conv2d %x, %w data_layout = "NHWC" kernel_layout = "HWIO" out_layout = "NCHW"
  relax.return %x
}

// Channels may be cut into blocks: of data, of kernels, of results, of filters for each channel.
// CHECK-LABEL: relax.func @blocks[
// CHECK-NEXT:      %0 = relax.nn.conv2d %x, %f kernel_layout = "OIHW16o" out_layout = "NCHW16c"
// CHECK-NEXT:      %1 = relax.nn.conv2d %0, %w data_layout = "NCHW16c" kernel_layout = "OIHW16i16o"
// CHECK-NEXT:      %2 = relax.nn.conv2d %1, %d groups = 32 data_layout = "NCHW16c" kernel_layout = "OIHW16o"
// CHECK-NEXT:      %3 = relax.nn.conv2d %2, %w data_layout = "NCHW16c" kernel_layout = "OIHW16i16o" out_layout = "NHWC"
// CHECK-NEXT:      relax.return %3
// TYPES-LABEL: sym_name = "blocks"
// TYPES: "relax.nn.conv2d"{{.*}} -> !relax.tensor<[n, 2, h, 9, 16], f32>
// TYPES: "relax.nn.conv2d"{{.*}} -> !relax.tensor<[n, 2, h - 2, 7, 16], f32>
// TYPES: "relax.nn.conv2d"{{.*}} -> !relax.tensor<[n, 2, h - 4, 5, 16], f32>
// TYPES: "relax.nn.conv2d"{{.*}} -> !relax.tensor<[n, h - 6, 3, 32], f32>
relax.func @blocks[%n, %h](%x: !relax.tensor<[n, 3, h, 9], f32>, %f: !relax.tensor<[2, 3, 1, 1, 16], f32>, %w: !relax.tensor<[2, 2, 3, 3, 16, 16], f32>, %d: !relax.tensor<[2, 1, 3, 3, 16], f32>) -> !relax.object {
  %0 = relax.nn.conv2d %x, %f kernel_layout = "OIHW16o" out_layout = "NCHW16c"
  %1 = relax.nn.conv2d %0, %w data_layout = "NCHW16c" kernel_layout = "OIHW16i16o"
  %2 = relax.nn.conv2d %1, %d data_layout = "NCHW16c" kernel_layout = "OIHW16o" groups = 32
  %3 = relax.nn.conv2d %2, %w data_layout = "NCHW16c" kernel_layout = "OIHW16i16o" out_layout = "NHWC"
  relax.return %3
}

// CHECK-LABEL: relax.func @ranks[
// CHECK-NEXT:      %0 = relax.nn.conv1d %x, %v padding = [2, 2]
// CHECK-NEXT:      %1 = relax.nn.conv3d %y, %w strides = [1, 2, 3]
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "ranks"
// TYPES: "relax.nn.conv1d"{{.*}} -> !relax.tensor<[n, 8, 10], f32>
// TYPES: "relax.nn.conv3d"{{.*}} -> !relax.tensor<[n, 8, 5, 3, 2], f32>
relax.func @ranks[%n](%x: !relax.tensor<[n, 3, 10], f32>, %v: !relax.tensor<[8, 3, 5], f32>, %y: !relax.tensor<[n, 3, 6, 7, 8], f32>, %w: !relax.tensor<[8, 3, 2, 3, 4], f32>) -> !relax.object {
  %0 = relax.nn.conv1d %x, %v padding = [2, 2]
  %1 = relax.nn.conv3d %y, %w strides = [1, 2, 3]
  relax.return %x
}

// CHECK-LABEL: relax.func @transposed[
// CHECK-NEXT:      %0 = relax.nn.conv1d_transpose %a, %u strides = [2]
// CHECK-NEXT:      %1 = relax.nn.conv2d_transpose %b, %v output_padding = [1, 1] strides = [2, 2] padding = [1, 1, 1, 1] groups = 2
// CHECK-NEXT:      %2 = relax.nn.conv3d_transpose %c, %w
// CHECK-NEXT:      relax.return %a
// TYPES-LABEL: sym_name = "transposed"
// TYPES: "relax.nn.conv1d_transpose"{{.*}} -> !relax.tensor<[n, 8, 21], f32>
// TYPES: "relax.nn.conv2d_transpose"{{.*}} -> !relax.tensor<[n, 4, 14, 2 * h], f32>
// TYPES: "relax.nn.conv3d_transpose"{{.*}} -> !relax.tensor<[n, 1, 6, 6, 6], f32>
relax.func @transposed[%n, %h](%a: !relax.tensor<[n, 4, 10], f32>, %u: !relax.tensor<[4, 8, 3], f32>, %b: !relax.tensor<[n, 4, 7, h], f32>, %v: !relax.tensor<[4, 2, 3, 3], f32>, %c: !relax.tensor<[n, 4, 5, 5, 5], f32>, %w: !relax.tensor<[4, 1, 2, 2, 2], f32>) -> !relax.object {
  %0 = relax.nn.conv1d_transpose %a, %u strides = [2]
  %1 = relax.nn.conv2d_transpose %b, %v strides = [2, 2] padding = [1, 1, 1, 1] groups = 2 output_padding = [1, 1]
  %2 = relax.nn.conv3d_transpose %c, %w
  relax.return %a
}

// Of unknown dimensions the rank is known.
// CHECK-LABEL: relax.func @unknown(
// CHECK-NEXT:      %0 = relax.nn.conv2d %x, %w
// CHECK-NEXT:      relax.return %0
// TYPES-LABEL: sym_name = "unknown"
// TYPES: "relax.nn.conv2d"{{.*}} -> !relax.tensor<[_, _, _, _], f32>
relax.func @unknown(%x: !relax.tensor<*, f32>, %w: !relax.tensor<[_, _, 3, 3], f32>) -> !relax.object {
  %0 = relax.nn.conv2d %x, %w
  relax.return %0
}

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
