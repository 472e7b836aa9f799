// RUN: relax-opt %s -p expand-conv-transpose --split-input-file | filecheck %s
// RUN: relax-opt %s -p expand-conv-transpose,expand-conv-transpose --split-input-file | filecheck %s
// RUN: relax-opt %s -p expand-conv-transpose --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// Four filters in the place of one, for the four places of the result that begin at a place of the data. Neither the
// transposed convolution nor the new one takes empty data.
// CHECK-LABEL: relax.func @pixels
// CHECK:         [[SPLIT:%.*]] = relax.reshape %k,
// CHECK-NEXT:    [[PLACES:%.*]] = relax.permute_dims [[SPLIT]] axes = [0, 2, 4, 6, 1, 3, 5]
// CHECK-NEXT:    [[SHAPE:%.*]] = relax.shape [20, 8, 1, 1]
// CHECK-NEXT:    [[FILTERS:%.*]] = relax.reshape [[PLACES]], [[SHAPE]]
// CHECK-NEXT:    [[SUMS:%.*]] = relax.nn.conv2d %x, [[FILTERS]]
// CHECK-NEXT:    [[SHAPE:%.*]] = relax.shape [n, 5, 2, 2, h, w]
// CHECK-NEXT:    [[SPLIT:%.*]] = relax.reshape [[SUMS]], [[SHAPE]]
// CHECK-NEXT:    [[BETWEEN:%.*]] = relax.permute_dims [[SPLIT]] axes = [0, 1, 4, 2, 5, 3]
// CHECK-NEXT:    [[SHAPE:%.*]] = relax.shape [n, 5, 2 * h, 2 * w]
// CHECK-NEXT:    [[Y:%.*]] = relax.reshape [[BETWEEN]], [[SHAPE]]
// CHECK-NEXT:    relax.return [[Y]]
// LOC: relax.nn.conv2d {{.*}} loc("{{.*}}":[[# @LINE + 2]]:3)
relax.func @pixels[%n, %h, %w](%x: !relax.tensor<[n, 8, h, w], f32>, %k: !relax.tensor<[8, 5, 2, 2], f32>) -> !relax.object {
  %y = relax.nn.conv2d_transpose %x, %k strides = [2, 2]
  relax.return %y
}

// -----

// A kernel that is no multiple of the stride gets zeros; what padding takes away is cut off. The padded convolution
// takes empty data, so that it is checked.
// CHECK-LABEL: relax.func @cut
// CHECK:         [[K:%.*]] = relax.nn.pad %k pad_width = [0, 0, 0, 0, 0, 1]
// CHECK:         [[FILTERS:%.*]] = relax.flip {{%.*}} axis = 2
// CHECK-NEXT:    [[DATA:%.*]] = relax.guard %x, at_most 1, w, "data in each spatial dimension"
// CHECK-NEXT:    relax.nn.conv1d [[DATA]], [[FILTERS]] padding = [2, 1] groups = 2
// CHECK:         [[ORDER:%.*]] = relax.permute_dims {{%.*}} axes = [0, 1, 3, 2]
// CHECK-NEXT:    [[SHAPE:%.*]] = relax.shape [n, 6, 2 * w + 2]
// CHECK-NEXT:    [[ALL:%.*]] = relax.reshape [[ORDER]], [[SHAPE]]
// CHECK-NEXT:    [[Y:%.*]] = relax.strided_slice [[ALL]] axes = [2] begin = [1] end = [2 * w + 2]
// CHECK-NEXT:    relax.return [[Y]]
relax.func @cut[%n, %w](%x: !relax.tensor<[n, 4, w], f32>, %k: !relax.tensor<[4, 3, 5], f32>) -> !relax.object {
  %y = relax.nn.conv1d_transpose %x, %k strides = [2] padding = [1, 2] output_padding = [1] groups = 2
  relax.return %y
}

// -----

// Where without any place there would be no result, the result is cut without regard to that.
// CHECK-LABEL: relax.func @ends
// CHECK:         [[Y:%.*]] = relax.strided_slice {{%.*}} axes = [2] begin = [1] end = [2 * w] assume_inbound
// CHECK-NEXT:    relax.return [[Y]]
relax.func @ends[%n, %w](%x: !relax.tensor<[n, 4, w], f32>, %k: !relax.tensor<[4, 3, 3], f32>) -> !relax.tensor<[n, 3, 2 * w - 1], f32> {
  %y = relax.nn.conv1d_transpose %x, %k strides = [2] padding = [1, 1]
  relax.return %y
}

// -----

// Many filters of 3 x 3: those of 2 x 2, 2 x 1, 1 x 2 and 1 x 1 places by themselves, not filled up with zeros.
// CHECK-LABEL: relax.func @parts
// CHECK:         relax.strided_slice {{%.*}} axes = [3, 4, 5, 6] begin = [0, 0, 0, 0] end = [2, 1, 2, 1]
// CHECK:         relax.nn.conv2d {{%.*}}, {{%.*}} padding = [1, 1, 1, 1]
// CHECK:         relax.strided_slice {{%.*}} axes = [3, 4, 5, 6] begin = [0, 0, 0, 1] end = [2, 1, 1, 2]
// CHECK:         relax.nn.conv2d {{%.*}}, {{%.*}} padding = [1, 0, 1, 1]
// CHECK:         relax.nn.conv2d {{%.*}}, {{%.*}} padding = [0, 1, 1, 1]
// CHECK:         relax.nn.conv2d {{%.*}}, {{%.*}} padding = [0, 0, 1, 1]
// CHECK:         [[UP:%.*]] = relax.concat {{%.*}}, {{%.*}} axis = 3
// CHECK-NEXT:    [[DOWN:%.*]] = relax.concat {{%.*}}, {{%.*}} axis = 3
// CHECK-NEXT:    relax.concat [[UP]], [[DOWN]] axis = 2
relax.func @parts[%n, %h, %w](%x: !relax.tensor<[n, 8, h, w], f32>, %k: !relax.tensor<[8, 16, 3, 3], f32>) -> !relax.object {
  %y = relax.nn.conv2d_transpose %x, %k strides = [2, 2] padding = [1, 1, 1, 1] output_padding = [1, 1]
  relax.return %y
}

// -----

// Without a stride the kernel is turned around, and that is all.
// CHECK-LABEL: relax.func @turned
// CHECK:         [[FILTERS:%.*]] = relax.flip {{%.*}} axis = 2
// CHECK:         [[Y:%.*]] = relax.nn.conv2d {{%.*}}, [[FILTERS]] padding = [3, 0, 3, 0] dilation = [2, 1]
// CHECK-NEXT:    relax.return [[Y]]
relax.func @turned[%n, %h, %w](%x: !relax.tensor<[n, 4, h, w], f32>, %k: !relax.tensor<[4, 6, 3, 1], f32>) -> !relax.object {
  %y = relax.nn.conv2d_transpose %x, %k padding = [1, 0, 1, 0] dilation = [2, 1]
  relax.return %y
}

// -----

// As much padding as the kernel reaches: of a single place nothing is left, which a convolution cannot give.
// CHECK-LABEL: relax.func @reached
// CHECK:         [[Y:%.*]] = relax.nn.conv1d {{%.*}}, {{%.*}} padding = [2, 1]
// CHECK-NEXT:    relax.strided_slice [[Y]] axes = [2] begin = [1] end = [w] assume_inbound
relax.func @reached[%n, %w](%x: !relax.tensor<[n, 4, w], f32>, %k: !relax.tensor<[4, 6, 4], f32>) -> !relax.object {
  %y = relax.nn.conv1d_transpose %x, %k padding = [2, 2]
  relax.return %y
}

// -----

// Both a stride and a dilation; a kernel of unknown size; another layout.
// CHECK-LABEL: relax.func @stays
// CHECK-COUNT-3: relax.nn.conv1d_transpose
relax.func @stays[%n, %w, %s](%x: !relax.tensor<[n, 4, w], f32>, %k: !relax.tensor<[4, 3, 5], f32>, %u: !relax.tensor<[4, 3, s], f32>, %t: !relax.tensor<[n, w, 4], f32>) -> !relax.object {
  %0 = relax.nn.conv1d_transpose %x, %k strides = [2] dilation = [3]
  %1 = relax.nn.conv1d_transpose %x, %u strides = [2]
  %2 = relax.nn.conv1d_transpose %t, %k strides = [2] data_layout = "NWC"
  %3 = relax.tuple(%0, %1, %2)
  relax.return %3
}

// -----

// Few filters of many channels: a product for each element of the kernel; each place of the result adds up to four of
// them. Nothing is multiplied by zeros.
// CHECK-LABEL: relax.func @few
// CHECK:         [[KERNEL:%.*]] = relax.permute_dims %k axes = [1, 2, 3, 0]
// CHECK:         relax.shape [27, 64, 1, 1]
// CHECK:         [[PRODUCTS:%.*]] = relax.nn.conv2d {{%.*}}, {{%[a-z0-9_]+}}
// CHECK-NEXT:    relax.shape [n, 3, 3, 3, h, w]
// CHECK-NEXT:    [[P:%.*]] = relax.reshape [[PRODUCTS]],
// CHECK-NEXT:    [[S:%.*]] = relax.strided_slice [[P]] axes = [2, 3] begin = [0, 0] end = [2, 2]
// CHECK-NEXT:    relax.nn.pad [[S]] pad_width = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
// CHECK-NEXT:    [[S:%.*]] = relax.strided_slice [[P]] axes = [2, 3] begin = [0, 2] end = [2, 3]
// CHECK-NEXT:    relax.nn.pad [[S]] pad_width = [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, -1]
// CHECK-COUNT-3: relax.add
// CHECK-NOT:     relax.add
relax.func @few[%n, %h, %w](%x: !relax.tensor<[n, 64, h, w], f32>, %k: !relax.tensor<[64, 3, 3, 3], f32>) -> !relax.object {
  %y = relax.nn.conv2d_transpose %x, %k strides = [2, 2] padding = [1, 1, 1, 1]
  relax.return %y
}

// -----

// Not in half precision, where each sum would be rounded.
// CHECK-LABEL: relax.func @half
// CHECK-NOT:     relax.add
relax.func @half[%n, %h, %w](%x: !relax.tensor<[n, 64, h, w], f16>, %k: !relax.tensor<[64, 3, 3, 3], f16>) -> !relax.object {
  %y = relax.nn.conv2d_transpose %x, %k strides = [2, 2] padding = [1, 1, 1, 1]
  relax.return %y
}
