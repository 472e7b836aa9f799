// RUN: relax-opt %s -p convert-conv1d-to-conv2d --split-input-file | filecheck %s
// RUN: relax-opt %s -p convert-conv1d-to-conv2d,convert-conv1d-to-conv2d --split-input-file | filecheck %s
// RUN: relax-opt %s -p optimize-graph --split-input-file | filecheck %s --check-prefix BLOCKS
// RUN: relax-opt %s -p convert-conv1d-to-conv2d --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// A picture with one row, of the same strides, padding and dilation along the line.
// CHECK-LABEL: relax.func @line
// CHECK:         [[X:%.*]] = relax.expand_dims %x axes = [2]
// CHECK-NEXT:    [[W:%.*]] = relax.constant {{.*}}[16, 32, 1, 3]
// CHECK-NEXT:    [[SUMS:%.*]] = relax.nn.conv2d [[X]], [[W]] strides = [1, 2] padding = [0, 3, 0, 1] dilation = [1, 2]
// CHECK-NEXT:    [[Y:%.*]] = relax.squeeze [[SUMS]] axes = [2]
// CHECK-NEXT:    relax.return [[Y]]
// BLOCKS-LABEL: relax.func @line
// BLOCKS:         relax.nn.conv2d {{.*}} data_layout = "NCHW{{[0-9]+}}c"
// LOC: relax.nn.conv2d {{.*}} loc("{{.*}}":[[# @LINE + 3]]:3)
relax.func @line[%n, %l](%x: !relax.tensor<[n, 32, l + 4], f32>) -> !relax.object {
  %w = relax.constant dense<1.0> : tensor<16x32x3xf32>
  %y = relax.nn.conv1d %x, %w strides = [2] padding = [3, 1] dilation = [2]
  relax.return %y
}

// -----

// Weights that are not known, where a stride skips places.
// CHECK-LABEL: relax.func @parameter
// CHECK:         [[W:%.*]] = relax.expand_dims %w axes = [2]
// CHECK:         relax.nn.conv2d {{.*}}, [[W]] strides = [1, 2]
relax.func @parameter[%n, %l](%x: !relax.tensor<[n, 32, l + 4], f32>, %w: !relax.tensor<[16, 32, 3], f32>) -> !relax.object {
  %y = relax.nn.conv1d %x, %w strides = [2]
  relax.return %y
}

// -----

// Few channels, a window of one place, weights that are not known without a stride, groups, another dtype or layout.
// CHECK-LABEL: relax.func @stays
// CHECK-COUNT-6: relax.nn.conv1d
// CHECK-NOT:     relax.nn.conv2d
relax.func @stays[%n, %l](%x: !relax.tensor<[n, 32, l + 4], f32>, %v: !relax.tensor<[32, 32, 3], f32>,
    %h: !relax.tensor<[n, 32, l + 4], f16>, %t: !relax.tensor<[n, l + 4, 32], f32>) -> !relax.object {
  %few = relax.constant dense<1.0> : tensor<8x32x3xf32>
  %one = relax.constant dense<1.0> : tensor<32x32x1xf32>
  %w = relax.constant dense<1.0> : tensor<32x32x3xf32>
  %parts = relax.constant dense<1.0> : tensor<32x16x3xf32>
  %half = relax.constant dense<1.0> : tensor<32x32x3xf16>
  %0 = relax.nn.conv1d %x, %few
  %1 = relax.nn.conv1d %x, %one
  %2 = relax.nn.conv1d %x, %v
  %3 = relax.nn.conv1d %x, %parts groups = 2
  %4 = relax.nn.conv1d %h, %half
  %5 = relax.nn.conv1d %t, %w data_layout = "NWC"
  %6 = relax.tuple(%0, %1, %2, %3, %4, %5)
  relax.return %6
}
