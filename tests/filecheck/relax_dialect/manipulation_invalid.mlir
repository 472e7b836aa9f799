// RUN: RELAX_INVALID

// CHECK: 'relax.reshape' op cannot reshape [2, 4] to [2, 5]: expected equally many elements, got 8 and 10
relax.func @reshape_c1(%x: !relax.tensor<[2, 4], f32>, %s: !relax.shape<[2, 5]>) -> !relax.object {
  %0 = relax.reshape %x, %s
  relax.return %x
}

// -----

// CHECK: 'relax.reshape' op operand #1 expected a shape, got !relax.tensor<[n, 4], f32>
relax.func @reshape[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.reshape %x, %x
  relax.return %x
}

// -----

// CHECK: 'relax.reshape' op expected a size that is not negative, got 0 and -1
relax.func @reshape_c2[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %s = relax.shape [-1, -n]
  %0 = relax.reshape %x, %s
  relax.return %0
}

// -----

// CHECK: 'relax.permute_dims' op expected each axis once, got [0, 0]
relax.func @permute_dims_c1[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.permute_dims %x axes = [0, 0]
  relax.return %x
}

// -----

// CHECK: 'relax.permute_dims' op expected 2 axes, got 1
relax.func @permute_dims_c1[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.permute_dims %x axes = [0]
  relax.return %x
}

// -----

// CHECK: 'relax.permute_dims' op axis 2 is out of range for rank 2
relax.func @permute_dims_c1[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.permute_dims %x axes = [0, 2]
  relax.return %x
}

// -----

// CHECK: 'relax.expand_dims' op axis 3 is out of range for rank 3
relax.func @expand_dims_c1[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.expand_dims %x axes = [0, 3]
  relax.return %x
}

// -----

// CHECK: 'relax.squeeze' op axis 2 is out of range for rank 2
relax.func @squeeze_c1[%n](%x: !relax.tensor<[n, 1], f32>) -> !relax.object {
  %0 = relax.squeeze %x axes = [2]
  relax.return %x
}

// -----

// CHECK: 'relax.squeeze' op expected dimension 1 to be 1, got 4 and 1
relax.func @squeeze_c2[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.squeeze %x axes = [1]
  relax.return %x
}

// -----

// CHECK: 'relax.broadcast_to' op expected a shape of rank 2 or more, got rank 1
relax.func @broadcast_to_c1[%n](%x: !relax.tensor<[n, 4], f32>, %s: !relax.shape<[n]>) -> !relax.object {
  %0 = relax.broadcast_to %x, %s
  relax.return %x
}

// -----

// CHECK: 'relax.broadcast_to' op expected a dimension that is 1 or the one of the shape, got 4 and 5
relax.func @broadcast_to_c2[%n](%x: !relax.tensor<[n, 4], f32>, %s: !relax.shape<[n, 5]>) -> !relax.object {
  %0 = relax.broadcast_to %x, %s
  relax.return %x
}

// -----

// CHECK: 'relax.broadcast_to' op expected a dimension that is 1 or the one of the shape, got 4 and 1
relax.func @broadcast_to_c2[%n](%x: !relax.tensor<[n, 4], f32>, %s: !relax.shape<[n, 1]>) -> !relax.object {
  %0 = relax.broadcast_to %x, %s
  relax.return %x
}

// -----

// CHECK: 'relax.broadcast_to' op expected a size that is not negative, got 0 and -1
relax.func @broadcast_to_c3(%x: !relax.tensor<[1], f32>) -> !relax.object {
  %s = relax.shape [-1]
  %0 = relax.broadcast_to %x, %s
  relax.return %0
}

// -----

// CHECK: 'relax.flip' op axis 2 is out of range for rank 2
relax.func @flip_c1[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.flip %x axis = 2
  relax.return %x
}

// -----

// A property is given once.
// CHECK: 'relax.flip' op attribute axis is given twice
relax.func @flip[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.flip %x axis = 0 axis = 1
  relax.return %x
}

// -----

// A name that is no property is told where it stands.
// CHECK: %0 = relax.mean %x axs = [1]
// CHECK-NEXT: ^^^
// CHECK: 'relax.mean' op attribute axs is unknown, expected one of axes, keepdims
relax.func @mean[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.mean %x axs = [1]
  relax.return %x
}

// -----

// CHECK: 'relax.mean' op attribute axes is given twice
relax.func @mean[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.mean %x axis = 1 axes = [0]
  relax.return %x
}

// -----

// CHECK: 'relax.exp' op attribute keepdims is unknown, it has none
relax.func @exp[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.exp %x keepdims
  relax.return %x
}

// -----

// The dictionary is for attributes of others.
// CHECK: 'relax.mean' op expected axes before the dictionary of attributes
relax.func @mean[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.mean %x {hint = 1 : i64, axes = array<i64: 1>}
  relax.return %x
}

// -----

// CHECK: 'relax.flip' op expected a property axis
relax.func @flip[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.flip %x
  relax.return %x
}

// -----

// CHECK: 'relax.nn.dropout' op operand #0 expected a floating-point dtype, got i8
relax.func @nn_dropout_c1[%n](%x: !relax.tensor<[n], i8>) -> !relax.object {
  %0 = relax.nn.dropout %x
  relax.return %x
}

// -----

// CHECK: 'relax.nn.dropout' op expected a rate of at least 0 and below 1, got 1.0
relax.func @nn_dropout_c2[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.nn.dropout %x rate = 1.0
  relax.return %x
}

// -----

// CHECK: 'relax.nn.batch_flatten' op expected rank 1 or more, got !relax.tensor<[], f32>
relax.func @nn_batch_flatten_c1(%x: !relax.tensor<[], f32>) -> !relax.object {
  %0 = relax.nn.batch_flatten %x
  relax.return %x
}

// -----

// CHECK: 'relax.nn.pixel_shuffle' op expected rank 3 or more, got !relax.tensor<[n, 4], f32>
relax.func @nn_pixel_shuffle_c1[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %0 = relax.nn.pixel_shuffle %x upscale_factor = 2
  relax.return %x
}

// -----

// CHECK: 'relax.nn.pixel_shuffle' op expected a factor of at least 1, got 0
relax.func @nn_pixel_shuffle_c2[%n](%x: !relax.tensor<[n, 4, 4], f32>) -> !relax.object {
  %0 = relax.nn.pixel_shuffle %x upscale_factor = 0
  relax.return %x
}

// -----

// CHECK: 'relax.nn.pixel_shuffle' op expected channels in multiples of 4, got 5
relax.func @nn_pixel_shuffle_c3[%n](%x: !relax.tensor<[5, n, n], f32>) -> !relax.object {
  %0 = relax.nn.pixel_shuffle %x upscale_factor = 2
  relax.return %x
}
