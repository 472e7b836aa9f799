// RUN: RELAX_INVALID

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
