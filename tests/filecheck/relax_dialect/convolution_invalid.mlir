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

// CHECK: 'relax.nn.conv2d' op padding expected 4 numbers, those before each dimension and then those after each, got 2
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

// CHECK: 'relax.nn.conv2d' op expected as many channels as the kernel's times 1 group, got 3 and 4
relax.func @nn_conv2d_c6[%n](%x: !relax.tensor<[n, 3, 8, 8], f32>, %w: !relax.tensor<[4, 4, 3, 3], f32>) -> !relax.object {
  %0 = relax.nn.conv2d %x, %w
  relax.return %x
}

// -----

// CHECK: 'relax.nn.conv2d' op expected as many channels as the kernel's times 1 group, got 32 and 16
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

// -----

// CHECK: 'relax.nn.deform_conv2d' op operand #3 expected rank 4, got !relax.tensor<[n, h, w], f32>
relax.func @nn_deform_conv2d_c1[%n, %c, %h, %w, %o](%x: !relax.tensor<[n, c, h, w], f32>, %k: !relax.tensor<[o, c, 1, 1], f32>, %s: !relax.tensor<[n, 2, h, w], f32>, %m: !relax.tensor<[n, h, w], f32>) -> !relax.object {
  %0 = relax.nn.deform_conv2d %x, %k, %s, %m
  relax.return %x
}

// -----

// CHECK: 'relax.nn.deform_conv2d' op operand #0 expected a floating-point dtype, got i32
relax.func @nn_deform_conv2d_c1[%n, %c, %h, %w, %o](%x: !relax.tensor<[n, c, h, w], i32>, %k: !relax.tensor<[o, c, 1, 1], i32>, %s: !relax.tensor<[n, 2, h, w], i32>, %m: !relax.tensor<[n, 1, h, w], i32>) -> !relax.object {
  %0 = relax.nn.deform_conv2d %x, %k, %s, %m
  relax.return %x
}

// -----

// CHECK: 'relax.nn.deform_conv2d' op strides expected 2 numbers, got 1
relax.func @nn_deform_conv2d_c2[%n, %c, %h, %w, %o](%x: !relax.tensor<[n, c, h, w], f32>, %k: !relax.tensor<[o, c, 1, 1], f32>, %s: !relax.tensor<[n, 2, h, w], f32>, %m: !relax.tensor<[n, 1, h, w], f32>) -> !relax.object {
  %0 = relax.nn.deform_conv2d %x, %k, %s, %m strides = [1]
  relax.return %x
}

// -----

// CHECK: 'relax.nn.deform_conv2d' op expected groups of at least 1, got 0 and 1
relax.func @nn_deform_conv2d_c3[%n, %c, %h, %w, %o](%x: !relax.tensor<[n, c, h, w], f32>, %k: !relax.tensor<[o, c, 1, 1], f32>, %s: !relax.tensor<[n, 2, h, w], f32>, %m: !relax.tensor<[n, 1, h, w], f32>) -> !relax.object {
  %0 = relax.nn.deform_conv2d %x, %k, %s, %m groups = 0
  relax.return %x
}

// -----

// CHECK: 'relax.nn.deform_conv2d' op expected as many channels as the kernel sees, got 3 and 2
relax.func @nn_deform_conv2d_c3[%n, %h, %w, %o](%x: !relax.tensor<[n, 3, h, w], f32>, %k: !relax.tensor<[o, 2, 1, 1], f32>, %s: !relax.tensor<[n, 2, h, w], f32>, %m: !relax.tensor<[n, 1, h, w], f32>) -> !relax.object {
  %0 = relax.nn.deform_conv2d %x, %k, %s, %m
  relax.return %x
}

// -----

// CHECK: 'relax.nn.deform_conv2d' op expected offsets that fit the window and the result, got 4 and 2
relax.func @nn_deform_conv2d_c4[%n, %c, %h, %w, %o](%x: !relax.tensor<[n, c, h, w], f32>, %k: !relax.tensor<[o, c, 1, 1], f32>, %s: !relax.tensor<[n, 4, h, w], f32>, %m: !relax.tensor<[n, 1, h, w], f32>) -> !relax.object {
  %0 = relax.nn.deform_conv2d %x, %k, %s, %m
  relax.return %x
}

// -----

// CHECK: 'relax.nn.deform_conv2d' op expected a mask that fits the window and the result, got 2 and 1
relax.func @nn_deform_conv2d_c4[%n, %c, %h, %w, %o](%x: !relax.tensor<[n, c, h, w], f32>, %k: !relax.tensor<[o, c, 1, 1], f32>, %s: !relax.tensor<[n, 2, h, w], f32>, %m: !relax.tensor<[n, 2, h, w], f32>) -> !relax.object {
  %0 = relax.nn.deform_conv2d %x, %k, %s, %m
  relax.return %x
}

// -----

// CHECK: 'relax.nn.col2im' op operand #0 expected rank 3, got !relax.tensor<[n, c], f32>
relax.func @nn_col2im_c1[%n, %c, %h, %w](%x: !relax.tensor<[n, c], f32>, %s: !relax.shape<[h, w]>) -> !relax.object {
  %0 = relax.nn.col2im %x, %s window = [1, 1]
  relax.return %x
}

// -----

// CHECK: 'relax.nn.col2im' op expected a window size of at least 1 per dimension, got [1] and !relax.shape<[h, w]>
relax.func @nn_col2im_c2[%n, %c, %h, %w](%x: !relax.tensor<[n, c, h*w], f32>, %s: !relax.shape<[h, w]>) -> !relax.object {
  %0 = relax.nn.col2im %x, %s window = [1]
  relax.return %x
}

// -----

// CHECK: 'relax.nn.col2im' op expected channels in multiples of 2, got 5
relax.func @nn_col2im_c3[%n, %h, %w](%x: !relax.tensor<[n, 5, h*w], f32>, %s: !relax.shape<[h+1, w]>) -> !relax.object {
  %0 = relax.nn.col2im %x, %s window = [2, 1]
  relax.return %x
}

// -----

// CHECK: 'relax.nn.col2im' op expected a column for each window, got 9 and 8
relax.func @nn_col2im_c3[%n](%x: !relax.tensor<[n, 2, 9], f32>, %s: !relax.shape<[3, 4]>) -> !relax.object {
  %0 = relax.nn.col2im %x, %s window = [2, 1]
  relax.return %x
}

// -----

// CHECK: 'relax.nn.col2im' op expected a size that is not negative, got 0 and -3
relax.func @nn_col2im_c4[%n](%x: !relax.tensor<[n, 2, 9], f32>) -> !relax.object {
  %s = relax.shape [-3, 4]
  %0 = relax.nn.col2im %x, %s window = [2, 1]
  relax.return %0
}
