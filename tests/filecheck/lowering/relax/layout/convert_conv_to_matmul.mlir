// RUN: relax-opt %s -p convert-conv-to-matmul --split-input-file | filecheck %s
// RUN: relax-opt %s -p convert-conv-to-matmul,convert-conv-to-matmul --split-input-file | filecheck %s
// RUN: relax-opt %s -p optimize-graph --split-input-file | filecheck %s --check-prefix GRAPH
// RUN: relax-opt %s -p convert-conv-to-matmul --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// The bias and what follows join the product: the reshapes of squeeze-and-excitation stay outside.
// CHECK-LABEL: relax.func @squeezed
// CHECK:         [[W:%.*]] = relax.constant {{.*}}tensor<64x16xf32>
// CHECK:         [[ROWS:%.*]] = relax.reshape %x
// CHECK-NEXT:    [[PRODUCT:%.*]] = relax.matmul [[ROWS]], [[W]]
// CHECK:         relax.reshape [[PRODUCT]]
// CHECK-NOT:     relax.nn.conv2d
// GRAPH-LABEL: relax.func @squeezed
// GRAPH:         [[PRODUCT:%.*]] = relax.matmul
// GRAPH:         [[SUM:%.*]] = relax.add [[PRODUCT]], {{.*}}
// GRAPH-NEXT:    [[Y:%.*]] = relax.nn.relu [[SUM]]
// GRAPH:         relax.reshape [[Y]]
// LOC: relax.matmul {{.*}} loc("{{.*}}":[[# @LINE + 4]]:3)
relax.func @squeezed[%n](%x: !relax.tensor<[n, 64, 1, 1], f32>) -> !relax.object {
  %w = relax.constant dense<1.0> : tensor<16x64x1x1xf32>
  %b = relax.constant dense<2.0> : tensor<1x16x1x1xf32>
  %0 = relax.nn.conv2d %x, %w
  %1 = relax.add %0, %b
  %y = relax.nn.relu %1
  relax.return %y
}

// -----

// A window as large as the image, weights that are not known, and integers with their channels last.
// CHECK-LABEL: relax.func @window
// CHECK:         [[FILTERS:%.*]] = relax.reshape %w
// CHECK-NEXT:    [[W:%.*]] = relax.permute_dims [[FILTERS]] axes = [1, 0]
// CHECK:         relax.matmul {{.*}}, [[W]]
// CHECK:         relax.matmul {{.*}} out_dtype = i32
// CHECK-NOT:     relax.nn.conv
relax.func @window[%n](%x: !relax.tensor<[n, 8, 3, 3], f32>, %w: !relax.tensor<[16, 8, 3, 3], f32>,
    %i: !relax.tensor<[n, 1, 1, 8], ui8>, %v: !relax.tensor<[4, 1, 1, 8], i8>) -> !relax.object {
  %0 = relax.nn.conv2d %x, %w
  %1 = relax.nn.conv2d %i, %v data_layout = "NHWC" kernel_layout = "OHWI" out_dtype = i32
  %y = relax.tuple (%0, %1)
  relax.return %y
}

// -----

// Several windows, padding, groups, an image of unknown size, another order in the kernel than in the data.
// CHECK-LABEL: relax.func @stays
// CHECK-COUNT-5: relax.nn.conv2d
// CHECK-NOT:     relax.matmul
relax.func @stays[%n, %h](%x: !relax.tensor<[n, 8, 3, 3], f32>, %w: !relax.tensor<[16, 8, 3, 3], f32>,
    %g: !relax.tensor<[16, 4, 3, 3], f32>, %v: !relax.tensor<[16, 8, 1, 1], f32>,
    %l: !relax.tensor<[n, 8, h, h], f32>, %t: !relax.tensor<[n, 3, 3, 8], f32>) -> !relax.object {
  %0 = relax.nn.conv2d %x, %v
  %1 = relax.nn.conv2d %x, %w padding = [1, 1, 1, 1]
  %2 = relax.nn.conv2d %x, %g groups = 2
  %3 = relax.nn.conv2d %l, %v
  %4 = relax.nn.conv2d %t, %w data_layout = "NHWC"
  %y = relax.tuple (%0, %1, %2, %3, %4)
  relax.return %y
}
