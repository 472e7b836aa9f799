// RUN: RELAX_INVALID

// CHECK: 'relax.nn.conv2d' op expected operands of one dtype, got f32 and f16; convert with 'relax.astype'
relax.func @nn_conv2d_c1[%n](%x: !relax.tensor<[n, 3, 8, 8], f32>, %w: !relax.tensor<[4, 3, 3, 3], f16>) -> !relax.object {
  %0 = relax.nn.conv2d %x, %w
  relax.return %x
}

// -----

// CHECK: 'relax.nn.conv2d' op operand #0 expected rank 4, got !relax.tensor<[n, 3, 8], f32>
relax.func @nn_conv2d_c2[%n](%x: !relax.tensor<[n, 3, 8], f32>, %w: !relax.tensor<[4, 3, 3, 3], f32>) -> !relax.object {
  %0 = relax.nn.conv2d %x, %w
  relax.return %x
}

// -----

// CHECK: 'relax.nn.conv2d' op data_layout expected a permutation of NCHW with blocks of C at most, got NCWD
relax.func @nn_conv2d_c3[%n](%x: !relax.tensor<[n, 3, 8, 8], f32>, %w: !relax.tensor<[4, 3, 3, 3], f32>) -> !relax.object {
  %0 = relax.nn.conv2d %x, %w data_layout = "NCWD"
  relax.return %x
}

// -----

// CHECK: 'relax.nn.conv2d' op data_layout expected a permutation of NCHW with blocks of C at most, got NCHW4h
relax.func @nn_conv2d_c3[%n](%x: !relax.tensor<[n, 3, 2, 8, 4], f32>, %w: !relax.tensor<[4, 3, 3, 3], f32>) -> !relax.object {
  %0 = relax.nn.conv2d %x, %w data_layout = "NCHW4h"
  relax.return %x
}

// -----

// CHECK: 'relax.nn.conv2d' op kernel_layout expected a permutation of OIHW with blocks of O or I at most, got OIHW0o
relax.func @nn_conv2d_c3[%n](%x: !relax.tensor<[n, 3, 8, 8], f32>, %w: !relax.tensor<[4, 3, 3, 3], f32>) -> !relax.object {
  %0 = relax.nn.conv2d %x, %w kernel_layout = "OIHW0o"
  relax.return %x
}

// -----

// CHECK: 'relax.nn.conv2d' op padding expected 4 numbers, got 2
relax.func @nn_conv2d_c4[%n](%x: !relax.tensor<[n, 3, 8, 8], f32>, %w: !relax.tensor<[4, 3, 3, 3], f32>) -> !relax.object {
  %0 = relax.nn.conv2d %x, %w padding = [1, 1]
  relax.return %x
}

// -----

// CHECK: 'relax.nn.conv2d' op expected strides and dilations of at least 1
relax.func @nn_conv2d_c4[%n](%x: !relax.tensor<[n, 3, 8, 8], f32>, %w: !relax.tensor<[4, 3, 3, 3], f32>) -> !relax.object {
  %0 = relax.nn.conv2d %x, %w strides = [0, 1]
  relax.return %x
}

// -----

// CHECK: 'relax.nn.conv2d' op expected at least one group, got 0
relax.func @nn_conv2d_c5[%n](%x: !relax.tensor<[n, 3, 8, 8], f32>, %w: !relax.tensor<[4, 3, 3, 3], f32>) -> !relax.object {
  %0 = relax.nn.conv2d %x, %w groups = 0
  relax.return %x
}

// -----

// CHECK: 'relax.nn.conv2d' op expected filters in multiples of 3, got 4
relax.func @nn_conv2d_c5[%n](%x: !relax.tensor<[n, 3, 8, 8], f32>, %w: !relax.tensor<[4, 1, 3, 3], f32>) -> !relax.object {
  %0 = relax.nn.conv2d %x, %w groups = 3
  relax.return %x
}

// -----

// CHECK: 'relax.nn.conv2d' op expected channels that are 1 times the kernel's, got 3 and 4
relax.func @nn_conv2d_c6[%n](%x: !relax.tensor<[n, 3, 8, 8], f32>, %w: !relax.tensor<[4, 4, 3, 3], f32>) -> !relax.object {
  %0 = relax.nn.conv2d %x, %w
  relax.return %x
}

// -----

// CHECK: 'relax.nn.conv2d' op expected channels that are 1 times the kernel's, got 32 and 16
relax.func @nn_conv2d_c6[%n](%x: !relax.tensor<[n, 2, 8, 8, 16], f32>, %w: !relax.tensor<[1, 1, 3, 3, 16, 16], f32>) -> !relax.object {
  %0 = relax.nn.conv2d %x, %w data_layout = "NCHW16c" kernel_layout = "OIHW16i16o"
  relax.return %x
}

// -----

// CHECK: 'relax.nn.conv2d' op expected blocks c of 16, got 8 and 16
relax.func @nn_conv2d_c7[%n](%x: !relax.tensor<[n, 2, 8, 8, 8], f32>, %w: !relax.tensor<[1, 1, 3, 3, 16, 16], f32>) -> !relax.object {
  %0 = relax.nn.conv2d %x, %w data_layout = "NCHW16c" kernel_layout = "OIHW16i16o"
  relax.return %x
}

// -----

// CHECK: 'relax.nn.conv2d' op expected filters in blocks of 16, got 8
relax.func @nn_conv2d_c7[%n](%x: !relax.tensor<[n, 2, 8, 8, 16], f32>, %w: !relax.tensor<[1, 2, 3, 3, 16, 8], f32>) -> !relax.object {
  %0 = relax.nn.conv2d %x, %w data_layout = "NCHW16c" kernel_layout = "OIHW16i8o"
  relax.return %x
}

// -----

// CHECK: 'relax.nn.conv2d' op expected a window within the padded data, got 3 and 2
relax.func @nn_conv2d_c1[%n](%x: !relax.tensor<[n, 3, 2, 8], f32>, %w: !relax.tensor<[4, 3, 3, 3], f32>) -> !relax.object {
  %0 = relax.nn.conv2d %x, %w
  relax.return %x
}

// -----

// CHECK: 'relax.nn.conv2d_transpose' op expected channels in multiples of 2, got 3
relax.func @nn_conv2d_transpose_c5[%n](%x: !relax.tensor<[n, 3, 8, 8], f32>, %w: !relax.tensor<[3, 2, 3, 3], f32>) -> !relax.object {
  %0 = relax.nn.conv2d_transpose %x, %w groups = 2
  relax.return %x
}

// -----

// CHECK: 'relax.nn.conv2d_transpose' op expected the channels of the kernel, got 3 and 4
relax.func @nn_conv2d_transpose_c6[%n](%x: !relax.tensor<[n, 3, 8, 8], f32>, %w: !relax.tensor<[4, 3, 3, 3], f32>) -> !relax.object {
  %0 = relax.nn.conv2d_transpose %x, %w
  relax.return %x
}

// -----

// CHECK: 'relax.nn.conv2d_transpose' op expected data in each spatial dimension, got 1 and 0
relax.func @nn_conv2d_transpose_c3[%n](%x: !relax.tensor<[n, 3, 8, 0], f32>, %w: !relax.tensor<[3, 4, 3, 3], f32>) -> !relax.object {
  %0 = relax.nn.conv2d_transpose %x, %w
  relax.return %x
}

// -----

// CHECK: 'relax.nn.conv2d_transpose' op expected 2 output paddings below stride or dilation, got [1, 0]
relax.func @nn_conv2d_transpose_c1[%n](%x: !relax.tensor<[n, 3, 8, 8], f32>, %w: !relax.tensor<[3, 4, 3, 3], f32>) -> !relax.object {
  %0 = relax.nn.conv2d_transpose %x, %w output_padding = [1, 0]
  relax.return %x
}

// -----

// CHECK: 'relax.nn.conv1d_transpose' op expected padding within the result, got 0 and -2
relax.func @nn_conv1d_transpose_c2[%n](%x: !relax.tensor<[n, 3, 2], f32>, %w: !relax.tensor<[3, 4, 1], f32>) -> !relax.object {
  %0 = relax.nn.conv1d_transpose %x, %w padding = [2, 2]
  relax.return %0
}
