// RUN: relax-opt %s -p 'convert-layout{block=4}' --split-input-file | filecheck %s
// RUN: relax-opt %s -p 'convert-layout{block=4},convert-layout{block=4}' --split-input-file | filecheck %s
// RUN: relax-opt %s -p 'convert-layout{target="x86-64-v4"}' --split-input-file | filecheck %s --check-prefix WIDE
// RUN: relax-opt %s -p 'convert-layout{block=4}' --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// Data with few channels is read as it is; weights and biases are rearranged; the result leaves its blocks at the end.
// CHECK-LABEL: relax.func @chain
// CHECK-NEXT:    %v = relax.constant "v" : !relax.tensor<[8, 3, 3, 3], f32>
// CHECK-NEXT:    %v_1 = relax.layout_transform %v source = "OIHW" target = "OIHW4o"
// CHECK-NEXT:    %b = relax.constant dense<1.000000e+00> : tensor<2x1x1x4xf32>
// CHECK-NEXT:    %d = relax.constant dense<2.000000e+00> : tensor<2x1x3x3x4xf32>
// CHECK-NEXT:    %u = relax.constant dense<3.000000e+00> : tensor<2x2x1x1x4x4xf32>
// CHECK-NEXT:    %0 = relax.nn.conv2d %x, %v_1 padding = [1, 1, 1, 1] kernel_layout = "OIHW4o" out_layout = "NCHW4c"
// CHECK-NEXT:    %1 = relax.add %0, %b
// CHECK-NEXT:    %2 = relax.nn.relu %1
// CHECK-NEXT:    %3 = relax.nn.max_pool2d %2 pool_size = [2, 2] strides = [2, 2] layout = "NCHW4c"
// CHECK-NEXT:    %4 = relax.nn.conv2d %3, %d padding = [1, 1, 1, 1] groups = 8 data_layout = "NCHW4c" kernel_layout = "OIHW4o"
// CHECK-NEXT:    %5 = relax.nn.conv2d %4, %u data_layout = "NCHW4c" kernel_layout = "OIHW4i4o"
// CHECK-NEXT:    %6 = relax.add %5, %3
// CHECK-NEXT:    %7 = relax.layout_transform %6 source = "NCHW4c" target = "NCHW"
// CHECK-NEXT:    relax.return %7
// WIDE-LABEL: relax.func @chain
// WIDE:         relax.nn.conv2d {{.*}} kernel_layout = "OIHW16o" out_layout = "NCHW16c"
// LOC: relax.layout_transform {{.*}} loc("{{.*}}":[[# @LINE + 12]]:3)
relax.func @chain[%n, %h, %w](%x: !relax.tensor<[n, 3, h, w], f32>) -> !relax.tensor<[n, 8, floordiv(h, 2), floordiv(w, 2)], f32> {
  %v = relax.constant "v" : !relax.tensor<[8, 3, 3, 3], f32>
  %b = relax.constant dense<1.0> : tensor<8x1x1xf32>
  %d = relax.constant dense<2.0> : tensor<8x1x3x3xf32>
  %u = relax.constant dense<3.0> : tensor<8x8x1x1xf32>
  %0 = relax.nn.conv2d %x, %v padding = [1, 1, 1, 1]
  %1 = relax.add %0, %b
  %2 = relax.nn.relu %1
  %3 = relax.nn.max_pool2d %2 pool_size = [2, 2] strides = [2, 2]
  %4 = relax.nn.conv2d %3, %d padding = [1, 1, 1, 1] groups = 8
  %5 = relax.nn.conv2d %4, %u
  %6 = relax.add %5, %3
  relax.return %6
}

// -----

// A window with long sums is worth the way into blocks and back.
// CHECK-LABEL: relax.func @window
// CHECK:         [[X:%.*]] = relax.layout_transform %x source = "NCHW" target = "NCHW4c"
// CHECK:         [[Y:%.*]] = relax.nn.conv2d [[X]], {{%.*}} data_layout = "NCHW4c" kernel_layout = "OIHW4i4o"
// CHECK-NEXT:    [[BACK:%.*]] = relax.layout_transform [[Y]] source = "NCHW4c" target = "NCHW"
// CHECK-NEXT:    relax.return [[BACK]]
relax.func @window[%n](%x: !relax.tensor<[n, 8, 5, 5], f32>) -> !relax.tensor<[n, 8, 3, 3], f32> {
  %w = relax.constant dense<1.0> : tensor<8x8x3x3xf32>
  %0 = relax.nn.conv2d %x, %w
  relax.return %0
}

// -----

// One without a window is not.
// CHECK-LABEL: relax.func @alone
// CHECK:         relax.nn.conv2d %x, %w{{$}}
// CHECK-NEXT:    relax.return
relax.func @alone[%n](%x: !relax.tensor<[n, 8, 5, 5], f32>) -> !relax.tensor<[n, 8, 5, 5], f32> {
  %w = relax.constant dense<1.0> : tensor<8x8x1x1xf32>
  %0 = relax.nn.conv2d %x, %w
  relax.return %0
}

// -----

// Groups of which blocks hold several are as channels by themselves.
// CHECK-LABEL: relax.func @groups
// CHECK:         relax.nn.conv2d {{.*}} groups = 4 data_layout = "NCHW4c" kernel_layout = "OIHW4o"
relax.func @groups[%n](%x: !relax.tensor<[n, 3, 5, 5], f32>) -> !relax.object {
  %v = relax.constant dense<1.0> : tensor<8x3x3x3xf32>
  %w = relax.constant dense<1.0> : tensor<8x2x3x3xf32>
  %0 = relax.nn.conv2d %x, %v
  %1 = relax.nn.conv2d %0, %w groups = 4
  %2 = relax.mean %1 axes = [2, 3]
  relax.return %2
}

// -----

// Groups of whole blocks are products of blocks, as a convolution without groups is.
// CHECK-LABEL: relax.func @whole_groups
// CHECK:         relax.nn.conv2d {{.*}} groups = 2 data_layout = "NCHW4c" kernel_layout = "OIHW4i4o"
relax.func @whole_groups[%n](%x: !relax.tensor<[n, 3, 5, 5], f32>) -> !relax.object {
  %v = relax.constant dense<1.0> : tensor<8x3x3x3xf32>
  %w = relax.constant dense<1.0> : tensor<16x4x3x3xf32>
  %0 = relax.nn.conv2d %x, %v
  %1 = relax.nn.conv2d %0, %w groups = 2
  %2 = relax.mean %1 axes = [2, 3]
  relax.return %2
}

// -----

// Weights that are not known are rearranged in each call where sums are long.
// CHECK-LABEL: relax.func @parameter
// CHECK-DAG:     [[X:%.*]] = relax.layout_transform %x source = "NCHW" target = "NCHW4c"
// CHECK-DAG:     [[W:%.*]] = relax.layout_transform %w source = "OIHW" target = "OIHW4i4o"
// CHECK:         relax.nn.conv2d [[X]], [[W]] data_layout = "NCHW4c" kernel_layout = "OIHW4i4o"
relax.func @parameter[%n](%x: !relax.tensor<[n, 8, 8, 8], f32>, %w: !relax.tensor<[8, 8, 3, 3], f32>) -> !relax.object {
  %0 = relax.nn.conv2d %x, %w
  relax.return %0
}

// -----

// Those used at few places, or of which sums are short, or which somebody may write into, stay; so do groups that cut
// blocks.
// CHECK-LABEL: relax.func @stays
// CHECK-NOT:     layout
relax.func @stays[%n](%x: !relax.tensor<[n, 3, 5, 5], f32>, %v: !relax.tensor<[24, 3, 1, 1], f32>,
    %a: !relax.tensor<[8, 8, 3, 3], f32>, %b: !relax.tensor<[8, 4, 3, 3], f32>, %c: !relax.tensor<[8, 8, 3, 3], f32>,
    %y: !relax.tensor<[n, 8, 8, 8], f32>, %z: !relax.tensor<[n, 8, 7, 7], f32>, %u: !relax.tensor<[n, 4, 8, 8], f32>)
    -> !relax.object impure {
  %w = relax.constant dense<1.0> : tensor<24x6x1x1xf32>
  %0 = relax.nn.conv2d %x, %v
  %1 = relax.nn.conv2d %0, %w groups = 4
  %2 = relax.nn.conv2d %1, %w groups = 4
  %3 = relax.mean %2 axes = [2, 3]
  %4 = relax.nn.conv2d %z, %a
  %5 = relax.nn.conv2d %u, %b
  %6 = relax.nn.conv2d %y, %c
  %7 = relax.call_packed "writes"(%c) : !relax.object
  %f = relax.constant dense<1.0> : tensor<12x3x1x1xf32>
  %h = relax.constant dense<1.0> : tensor<12x6x1x1xf32>
  %8 = relax.nn.conv2d %x, %f
  %9 = relax.nn.conv2d %8, %h groups = 2
  %10 = relax.nn.conv2d %9, %h groups = 2
  %11 = relax.mean %10 axes = [2, 3]
  %12 = relax.tuple(%3, %4, %5, %6, %11)
  relax.return %12
}

// -----

// A result of which somebody writes into a part stays where it is, as others read it after that.
// CHECK-LABEL: relax.func @written
// CHECK:         [[Y:%.*]] = relax.nn.conv2d %x, %w{{$}}
// CHECK-NEXT:    [[FLAT:%.*]] = relax.flatten [[Y]]
// CHECK-NEXT:    relax.call_packed "writes"([[FLAT]])
// CHECK-NEXT:    relax.nn.relu [[Y]]
relax.func @written[%n](%x: !relax.tensor<[n, 8, 5, 5], f32>) -> !relax.object impure {
  %w = relax.constant dense<1.0> : tensor<8x8x3x3xf32>
  %0 = relax.nn.conv2d %x, %w
  %1 = relax.flatten %0
  relax.call_packed "writes"(%1)
  %2 = relax.nn.relu %0
  relax.return %2
}

// -----

// Channels beyond the end have weights of zero, and are cut off where there are no blocks; of one place that takes no
// transformation.
// CHECK-LABEL: relax.func @parts_of_blocks
// CHECK-NEXT:    %v = relax.constant dense<{{.*}}> : tensor<2x2x1x1x4xf32>
// CHECK-NEXT:    %w = relax.constant dense<{{.*}}> : tensor<2x2x1x1x4x4xf32>
// CHECK-NEXT:    %0 = relax.nn.conv2d %x, %v
// CHECK-NEXT:    %1 = relax.nn.conv2d %0, %w
// CHECK-NEXT:    %2 = relax.mean %1 axes = [2, 3] keepdims
// CHECK-NEXT:    %3 = relax.shape [n, 8, 1, 1]
// CHECK-NEXT:    %4 = relax.reshape %2, %3
// CHECK-NEXT:    %5 = relax.strided_slice %4 axes = [1] begin = [0] end = [6]
// CHECK-NEXT:    relax.return %5
relax.func @parts_of_blocks[%n, %h](%x: !relax.tensor<[n, 2, h, 5], f32>) -> !relax.tensor<[n, 6, 1, 1], f32> {
  %v = relax.constant dense<1.0> : tensor<6x2x1x1xf32>
  %w = relax.constant dense<2.0> : tensor<6x6x1x1xf32>
  %0 = relax.nn.conv2d %x, %v
  %1 = relax.nn.conv2d %0, %w
  %2 = relax.mean %1 axes = [2, 3] keepdims
  relax.return %2
}

// -----

// A quotient could make something else than a number of channels beyond the end: it gets none.
// CHECK-LABEL: relax.func @infinite
// CHECK:         %[[X:.*]] = relax.strided_slice %{{.*}} axes = [1] begin = [0] end = [6]
// CHECK:         relax.divide %one, %[[X]]
relax.func @infinite[%n, %h](%x: !relax.tensor<[n, 2, h, 5], f32>) -> !relax.object {
  %one = relax.constant dense<1.0> : tensor<1xf32>
  %v = relax.constant dense<1.0> : tensor<6x2x1x1xf32>
  %w = relax.constant dense<2.0> : tensor<6x6x1x1xf32>
  %0 = relax.nn.conv2d %x, %v
  %1 = relax.nn.conv2d %0, %w
  %2 = relax.divide %one, %1
  relax.return %2
}

// -----

// Scales by channel stay in blocks; a value of one position becomes blocks by a reshape; parts are joined and cut by blocks; places are resized, also with
// infinite elements outside, as the blocks are full.
// CHECK-LABEL: relax.func @scales
// CHECK:         %[[SHAPE:.*]] = relax.shape [n, 2, 1, 1, 4]
// CHECK-NEXT:    %[[Y:.*]] = relax.reshape %y, %[[SHAPE]]
// CHECK:         %[[X:.*]] = relax.nn.conv2d %x
// CHECK-NEXT:    %[[M:.*]] = relax.mean %[[X]] axes = [2, 3] keepdims
// CHECK-NEXT:    %[[S:.*]] = relax.sigmoid %[[M]]
// CHECK-NEXT:    %[[P:.*]] = relax.multiply %[[X]], %[[S]]
// CHECK-NEXT:    %[[Q:.*]] = relax.multiply %[[P]], %[[Y]]
// CHECK-NEXT:    %[[C:.*]] = relax.concat %[[P]], %[[Q]] axis = 1
// CHECK-NEXT:    %[[A:.*]], %[[B:.*]] = relax.split %[[C]] indices = [1] axis = 1
// CHECK-NEXT:    %[[D:.*]] = relax.nn.pad %[[A]] pad_width = [0, 0, 0, 0, 1, 1, 0, 0, 0, 0]
// CHECK-NEXT:    %[[E:.*]] = relax.image.resize1d %[[D]] axis = 3 length = 9 extrapolation_value = inf
// CHECK-NEXT:    relax.nn.conv2d %[[E]]
relax.func @scales[%n, %h](%x: !relax.tensor<[n, 2, h, 5], f32>, %y: !relax.tensor<[n, 8, 1, 1], f32>) -> !relax.object {
  %v = relax.constant dense<1.0> : tensor<8x2x1x1xf32>
  %w = relax.constant dense<2.0> : tensor<8x4x1x1xf32>
  %0 = relax.nn.conv2d %x, %v
  %1 = relax.mean %0 axes = [-1, -2] keepdims
  %2 = relax.sigmoid %1
  %3 = relax.multiply %0, %2
  %4 = relax.multiply %3, %y
  %5 = relax.concat %3, %4 axis = 1
  %6, %7 = relax.split %5 indices = [4] axis = 1
  %8 = relax.nn.pad %6 pad_width = [0, 0, 0, 0, 1, 1, 0, 0]
  %9 = relax.image.resize1d %8 axis = -1 length = 9 extrapolation_value = inf
  %10 = relax.nn.conv2d %9, %w
  %11 = relax.mean %10 axes = [2, 3]
  relax.return %11
}

// -----

// What is added to a tensor of more dimensions, or of any number, leaves its blocks before.
// CHECK-LABEL: relax.func @more_dimensions
// CHECK:         [[X:%.*]] = relax.layout_transform %{{.*}} source = "NCHW4c" target = "NCHW"
// CHECK:         relax.add {{.*}}[[X]]
relax.func @more_dimensions[%n, %h](%x: !relax.tensor<[n, 2, h, 5], f32>, %y: !relax.tensor<[3, n, 8, h, 5], f32>) -> !relax.object {
  %v = relax.constant dense<1.0> : tensor<8x2x1x1xf32>
  %w = relax.constant dense<2.0> : tensor<8x8x1x1xf32>
  %0 = relax.nn.conv2d %x, %v
  %1 = relax.nn.conv2d %0, %w
  %2 = relax.add %1, %y
  relax.return %2
}

// -----

// The result of the network grows: it leaves its blocks before, where there is less to rearrange.
// CHECK-LABEL: relax.func @grown_result
// CHECK:         [[X:%.*]] = relax.layout_transform %{{.*}} source = "NCHW4c" target = "NCHW"
// CHECK-NEXT:    [[R:%.*]] = relax.image.resize1d [[X]] length = 9
// CHECK-NEXT:    relax.sigmoid [[R]]
relax.func @grown_result[%n, %h](%x: !relax.tensor<[n, 2, h, 5], f32>) -> !relax.object {
  %v = relax.constant dense<1.0> : tensor<8x2x1x1xf32>
  %w = relax.constant dense<2.0> : tensor<8x8x1x1xf32>
  %0 = relax.nn.conv2d %x, %v
  %1 = relax.nn.conv2d %0, %w
  %2 = relax.image.resize1d %1 axis = -1 length = 9
  %3 = relax.sigmoid %2
  relax.return %3
}

// -----

// What shrinks does so in blocks.
// CHECK-LABEL: relax.func @shrunk_result
// CHECK:         [[R:%.*]] = relax.image.resize1d %{{.*}} axis = 3 length = 3
// CHECK-NEXT:    relax.layout_transform [[R]] source = "NCHW4c" target = "NCHW"
relax.func @shrunk_result[%n, %h](%x: !relax.tensor<[n, 2, h, 5], f32>) -> !relax.object {
  %v = relax.constant dense<1.0> : tensor<8x2x1x1xf32>
  %w = relax.constant dense<2.0> : tensor<8x8x1x1xf32>
  %0 = relax.nn.conv2d %x, %v
  %1 = relax.nn.conv2d %0, %w
  %2 = relax.image.resize1d %1 axis = -1 length = 3
  relax.return %2
}

// -----

// Channels are padded without blocks.
// CHECK-LABEL: relax.func @padded_channels
// CHECK:         [[X:%.*]] = relax.layout_transform %{{.*}} source = "NCHW4c" target = "NCHW"
// CHECK-NEXT:    relax.nn.pad [[X]] pad_width = [0, 0, 0, 4, 0, 0, 1, 1]
relax.func @padded_channels[%n, %h](%x: !relax.tensor<[n, 2, h, 5], f32>) -> !relax.object {
  %v = relax.constant dense<1.0> : tensor<8x2x1x1xf32>
  %w = relax.constant dense<2.0> : tensor<8x8x1x1xf32>
  %0 = relax.nn.conv2d %x, %v
  %1 = relax.nn.conv2d %0, %w
  %2 = relax.nn.pad %1 pad_width = [0, 0, 0, 4, 0, 0, 1, 1]
  relax.return %2
}

// -----

// Quantised data stay in blocks, also where these are not filled: 6 filters, scaled by one number.
// CHECK-LABEL: relax.func @quantised
// CHECK:         relax.divide %{{.*}}, %s
// CHECK-NEXT:    relax.round
// CHECK-NEXT:    relax.astype
// CHECK-NEXT:    relax.astype
// CHECK-NEXT:    relax.nn.conv2d {{.*}} data_layout = "NCHW4c"
relax.func @quantised[%n](%x: !relax.tensor<[n, 3, 8, 8], f32>) -> !relax.tensor<[n, 8, 8, 8], f32> {
  %v = relax.constant "v" : !relax.tensor<[6, 3, 3, 3], f32>
  %s = relax.constant dense<0.5> : tensor<f32>
  %u = relax.constant dense<3.0> : tensor<8x6x1x1xf32>
  %0 = relax.nn.conv2d %x, %v padding = [1, 1, 1, 1]
  %1 = relax.divide %0, %s
  %2 = relax.round %1
  %3 = relax.astype %2 dtype = i8
  %4 = relax.astype %3 dtype = f32
  %5 = relax.nn.conv2d %4, %u
  relax.return %5
}
