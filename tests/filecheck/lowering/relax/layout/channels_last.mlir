// RUN: relax-opt %s -p channels-last --split-input-file | filecheck %s
// RUN: relax-opt %s -p channels-last,channels-last --split-input-file | filecheck %s
// RUN: relax-opt %s -p channels-last --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC
// RUN: relax-opt %s -p channels-last,simplify-permute-dims --split-input-file | filecheck %s --check-prefix MERGED

// A sum of products of bytes is over neighbours in memory.
// CHECK-LABEL: relax.func @bytes
// CHECK-NEXT:    %[[X:.*]] = relax.permute_dims %x axes = [0, 2, 3, 1]
// CHECK-NEXT:    %[[W:.*]] = relax.permute_dims %w axes = [0, 2, 3, 1]
// CHECK-NEXT:    %[[SUM:.*]] = relax.nn.conv2d %[[X]], %[[W]] strides = [2, 1] padding = [1, 1, 1, 1] data_layout = "NHWC" kernel_layout = "OHWI" out_dtype = i32
// CHECK-NEXT:    %[[RESULT:.*]] = relax.permute_dims %[[SUM]] axes = [0, 3, 1, 2]
// CHECK-NEXT:    relax.return %[[RESULT]]
// LOC: relax.nn.conv2d {{.*}} loc("{{.*}}":[[# @LINE + 2]]:3)
relax.func @bytes[%n, %h](%x: !relax.tensor<[n, 8, h, 9], ui8>, %w: !relax.tensor<[4, 8, 3, 3], i8>) -> !relax.tensor<[_, _, _, _], i32> {
  %0 = relax.nn.conv2d %x, %w strides = [2, 1] padding = [1, 1, 1, 1] out_dtype = i32
  relax.return %0
}

// -----

// One and three spatial dimensions.
// CHECK-LABEL: relax.func @line
// CHECK:         relax.nn.conv1d {{.*}} data_layout = "NWC" kernel_layout = "OWI"
// CHECK-LABEL: relax.func @cube
// CHECK:         relax.nn.conv3d {{.*}} data_layout = "NDHWC" kernel_layout = "ODHWI"
relax.func @line[%n](%x: !relax.tensor<[n, 8, 9], i8>, %w: !relax.tensor<[4, 8, 3], i8>) -> !relax.tensor<[n, 4, 7], i32> {
  %0 = relax.nn.conv1d %x, %w out_dtype = i32
  relax.return %0
}
relax.func @cube[%n](%x: !relax.tensor<[n, 8, 9, 9, 9], i8>, %w: !relax.tensor<[4, 8, 3, 3, 3], i8>) -> !relax.tensor<[n, 4, 7, 7, 7], i32> {
  %0 = relax.nn.conv3d %x, %w out_dtype = i32
  relax.return %0
}

// -----

// Each channel for itself, of integers as numbers: what is made for the convolution alone is made in its order, so that
// between two convolutions no order changes.
// CHECK-LABEL: relax.func @separable
// CHECK:         %[[X:.*]] = relax.permute_dims %x axes = [0, 2, 3, 1]
// CHECK-NEXT:    %[[PADDED:.*]] = relax.nn.pad %[[X]] pad_width = [0, 0, 1, 2, 3, 4, 0, 0] pad_value = 7.0
// CHECK:         relax.nn.conv2d %[[PADDED]], %{{.*}} data_layout = "NHWC" kernel_layout = "OHWI" out_dtype = i32
// CHECK:         relax.nn.conv2d {{.*}} groups = 8 data_layout = "NHWC" kernel_layout = "HWIO"
// MERGED-LABEL: relax.func @separable
// MERGED:         relax.nn.conv2d {{.*}} kernel_layout = "OHWI"
// MERGED-NOT:     relax.permute_dims {{.*}} axes = [0, 3, 1, 2]
// MERGED:         relax.nn.conv2d {{.*}} kernel_layout = "HWIO"
relax.func @separable[%n](%x: !relax.tensor<[n, 4, 9, 9], ui8>, %w: !relax.tensor<[8, 4, 1, 1], i8>, %v: !relax.tensor<[8, 1, 3, 3], f32>) -> !relax.tensor<[n, 8, 10, 14], f32> {
  %zero = relax.constant dense<3.0> : tensor<f32>
  %0 = relax.nn.pad %x pad_width = [0, 0, 0, 0, 1, 2, 3, 4] pad_value = 7.0
  %1 = relax.nn.conv2d %0, %w out_dtype = i32
  %2 = relax.astype %1 dtype = ui8
  %3 = relax.astype %2 dtype = f32
  %4 = relax.subtract %3, %zero
  %5 = relax.nn.conv2d %4, %v groups = 8
  relax.return %5
}

// -----

// Left alone: numbers, groups of several channels, other layouts, data that somebody writes into.
// CHECK-LABEL: relax.func @numbers
// CHECK-NOT:     relax.permute_dims
relax.func @numbers(%x: !relax.tensor<[1, 8, 9, 9], f32>, %w: !relax.tensor<[8, 1, 3, 3], f32>) -> !relax.tensor<[1, 8, 7, 7], f32> {
  %0 = relax.nn.conv2d %x, %w groups = 8
  relax.return %0
}
relax.func @groups(%x: !relax.tensor<[1, 8, 9, 9], i8>, %w: !relax.tensor<[8, 4, 3, 3], i8>) -> !relax.tensor<[1, 8, 7, 7], i32> {
  %0 = relax.nn.conv2d %x, %w groups = 2 out_dtype = i32
  relax.return %0
}
relax.func @last(%x: !relax.tensor<[1, 9, 9, 8], i8>, %w: !relax.tensor<[8, 8, 3, 3], i8>) -> !relax.tensor<[1, 7, 7, 8], i32> {
  %0 = relax.nn.conv2d %x, %w data_layout = "NHWC" out_dtype = i32
  relax.return %0
}
relax.func @written(%x: !relax.tensor<[1, 8, 9, 9], i8>, %w: !relax.tensor<[8, 8, 3, 3], i8>) -> !relax.tensor<[1, 8, 7, 7], i32> impure {
  %0 = relax.nn.conv2d %x, %w out_dtype = i32
  relax.call_packed "write"(%0)
  relax.return %0
}
relax.func @written_result(%x: !relax.tensor<[1, 8, 9, 9], f32>, %w: !relax.tensor<[8, 8, 3, 3], i8>) -> !relax.tensor<[1, 8, 7, 7], i32> impure {
  %0 = relax.astype %x dtype = i8
  %1 = relax.nn.conv2d %0, %w out_dtype = i32
  relax.call_packed "write"(%1)
  relax.return %1
}

// -----

// What is elementwise before a convolution stays where it is, if an operand of it is written in between.
// CHECK-LABEL: relax.func @written_zero_point
// CHECK:         relax.subtract %{{.*}}, %zero
// CHECK-NEXT:    relax.call_packed "write"(%zero)
// CHECK:         relax.nn.conv2d {{.*}} groups = 8 data_layout = "NHWC"
relax.func @written_zero_point(%x: !relax.tensor<[1, 8, 9, 9], ui8>, %w: !relax.tensor<[8, 1, 3, 3], f32>) -> !relax.tensor<[1, 8, 7, 7], f32> impure {
  %zero = relax.constant dense<3.0> : tensor<f32>
  %0 = relax.astype %x dtype = f32
  %1 = relax.subtract %0, %zero
  relax.call_packed "write"(%zero)
  %2 = relax.nn.conv2d %1, %w groups = 8
  relax.return %2
}
