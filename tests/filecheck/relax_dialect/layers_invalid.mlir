// RUN: RELAX_INVALID

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
