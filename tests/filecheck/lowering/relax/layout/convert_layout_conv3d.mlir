// RUN: relax-opt %s -p "convert-layout{block=16}" --split-input-file | filecheck %s
// RUN: relax-opt %s -p "convert-layout{block=16},convert-layout{block=16}" --split-input-file | filecheck %s
// RUN: relax-opt %s -p optimize-graph --split-input-file | filecheck %s --check-prefix GRAPH
// RUN: relax-opt %s -p "convert-layout{block=16}" --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// The same strides, padding and dilation, on channels in blocks.
// CHECK-LABEL: relax.func @volume
// CHECK-DAG:     [[W:%.*]] = relax.constant {{.*}}[1, 2, 3, 1, 2, 16, 16]
// CHECK-DAG:     [[X:%.*]] = relax.layout_transform %x source = "NCDHW" target = "NCDHW16c"
// CHECK:         [[SUMS:%.*]] = relax.nn.conv3d [[X]], [[W]] strides = [1, 2, 1] padding = [1, 0, 1, 1, 0, 0] dilation = [1, 2, 1]
// CHECK-SAME:      data_layout = "NCDHW16c" kernel_layout = "OIDHW16i16o"
// CHECK-NEXT:    [[Y:%.*]] = relax.layout_transform [[SUMS]] source = "NCDHW16c" target = "NCDHW"
// CHECK-NEXT:    relax.return [[Y]]
// GRAPH-LABEL: relax.func @volume
// GRAPH:         relax.nn.conv3d {{.*}} data_layout = "NCDHW{{[0-9]+}}c"
// LOC: relax.nn.conv3d {{.*}} loc("{{.*}}":[[# @LINE + 4]]:3)
relax.func @volume[%n, %d, %h](%x: !relax.tensor<[n, 32, d + 4, h + 4, 8], f32>) -> !relax.object {
  %w = relax.constant dense<1.0> : tensor<16x32x3x1x2xf32>

  %y = relax.nn.conv3d %x, %w strides = [1, 2, 1] padding = [1, 0, 1, 1, 0, 0] dilation = [1, 2, 1]
  relax.return %y
}

// -----

// Weights that are not known are rearranged in each call.
// CHECK-LABEL: relax.func @parameter
// CHECK:         [[W:%.*]] = relax.layout_transform %w source = "OIDHW" target = "OIDHW16i16o"
// CHECK:         relax.nn.conv3d {{.*}}, [[W]] data_layout = "NCDHW16c"
relax.func @parameter[%n, %d](%x: !relax.tensor<[n, 16, d + 4, 5, 5], f32>, %w: !relax.tensor<[16, 16, 3, 3, 3], f32>) -> !relax.object {
  %y = relax.nn.conv3d %x, %w
  relax.return %y
}

// -----

// Blocks that are not full, a window of one place, groups, another dtype or layout.
// CHECK-LABEL: relax.func @stays
// CHECK-NOT:     relax.layout_transform
// CHECK-COUNT-5: relax.nn.conv3d
// CHECK-NOT:     relax.layout_transform
relax.func @stays[%n, %d](%x: !relax.tensor<[n, 32, d + 4, 5, 5], f32>, %h: !relax.tensor<[n, 32, d + 4, 5, 5], f16>, %t: !relax.tensor<[n, d + 4, 5, 5, 32], f32>) -> !relax.object {
  %few = relax.constant dense<1.0> : tensor<8x32x3x3x3xf32>
  %one = relax.constant dense<1.0> : tensor<32x32x1x1x1xf32>
  %w = relax.constant dense<1.0> : tensor<32x32x3x3x3xf32>
  %parts = relax.constant dense<1.0> : tensor<32x16x3x3x3xf32>
  %half = relax.constant dense<1.0> : tensor<32x32x3x3x3xf16>
  %0 = relax.nn.conv3d %x, %few
  %1 = relax.nn.conv3d %x, %one
  %3 = relax.nn.conv3d %x, %parts groups = 2
  %4 = relax.nn.conv3d %h, %half
  %5 = relax.nn.conv3d %t, %w data_layout = "NDHWC"
  %6 = relax.tuple(%0, %1, %3, %4, %5)
  relax.return %6
}
