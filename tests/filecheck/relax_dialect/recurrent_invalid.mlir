// RUN: RELAX_INVALID

// CHECK: 'relax.nn.rnn' op operand #0 expected a floating-point dtype, got i32
relax.func @nn_rnn_c1[%t, %b, %i, %h](%x: !relax.tensor<[t, b, i], i32>, %w: !relax.tensor<[1, h, i], i32>, %r: !relax.tensor<[1, h, h], i32>, %c: !relax.tensor<[1, 2*h], i32>, %l: !relax.tensor<[b], i32>, %s: !relax.tensor<[1, b, h], i32>) -> !relax.object {
  %y, %last = relax.nn.rnn %x, %w, %r, %c, %l, %s
  relax.return %x
}

// -----

// CHECK: 'relax.nn.rnn' op operand #4 expected an integer dtype, got f32
relax.func @nn_rnn_c1[%t, %b, %i, %h](%x: !relax.tensor<[t, b, i], f32>, %w: !relax.tensor<[1, h, i], f32>, %r: !relax.tensor<[1, h, h], f32>, %c: !relax.tensor<[1, 2*h], f32>, %l: !relax.tensor<[b], f32>, %s: !relax.tensor<[1, b, h], f32>) -> !relax.object {
  %y, %last = relax.nn.rnn %x, %w, %r, %c, %l, %s
  relax.return %x
}

// -----

// CHECK: 'relax.nn.rnn' op direction expected one of forward, reverse, bidirectional, got both
relax.func @nn_rnn_c2[%t, %b, %i, %h](%x: !relax.tensor<[t, b, i], f32>, %w: !relax.tensor<[1, h, i], f32>, %r: !relax.tensor<[1, h, h], f32>, %c: !relax.tensor<[1, 2*h], f32>, %l: !relax.tensor<[b], i32>, %s: !relax.tensor<[1, b, h], f32>) -> !relax.object {
  %y, %last = relax.nn.rnn %x, %w, %r, %c, %l, %s direction = "both"
  relax.return %x
}

// -----

// CHECK: 'relax.nn.rnn' op activations expected some of sigmoid, tanh, relu, affine, leaky_relu, thresholded_relu, scaled_tanh, hard_sigmoid, elu, softsign, softplus, got cosine
relax.func @nn_rnn_c3[%t, %b, %i, %h](%x: !relax.tensor<[t, b, i], f32>, %w: !relax.tensor<[1, h, i], f32>, %r: !relax.tensor<[1, h, h], f32>, %c: !relax.tensor<[1, 2*h], f32>, %l: !relax.tensor<[b], i32>, %s: !relax.tensor<[1, b, h], f32>) -> !relax.object {
  %y, %last = relax.nn.rnn %x, %w, %r, %c, %l, %s activations = "cosine"
  relax.return %x
}

// -----

// CHECK: 'relax.nn.rnn' op expected 1 activations, got 2
relax.func @nn_rnn_c3[%t, %b, %i, %h](%x: !relax.tensor<[t, b, i], f32>, %w: !relax.tensor<[1, h, i], f32>, %r: !relax.tensor<[1, h, h], f32>, %c: !relax.tensor<[1, 2*h], f32>, %l: !relax.tensor<[b], i32>, %s: !relax.tensor<[1, b, h], f32>) -> !relax.object {
  %y, %last = relax.nn.rnn %x, %w, %r, %c, %l, %s activations = "tanh tanh"
  relax.return %x
}

// -----

// CHECK: 'relax.nn.rnn' op expected a clip greater than 0, got -1.0
relax.func @nn_rnn_c4[%t, %b, %i, %h](%x: !relax.tensor<[t, b, i], f32>, %w: !relax.tensor<[1, h, i], f32>, %r: !relax.tensor<[1, h, h], f32>, %c: !relax.tensor<[1, 2*h], f32>, %l: !relax.tensor<[b], i32>, %s: !relax.tensor<[1, b, h], f32>) -> !relax.object {
  %y, %last = relax.nn.rnn %x, %w, %r, %c, %l, %s clip = -1.0
  relax.return %x
}

// -----

// CHECK: 'relax.nn.rnn' op expected operand #1 dimension 0 to fit the layer, got 2 and 1
relax.func @nn_rnn_c5[%t, %b, %i, %h](%x: !relax.tensor<[t, b, i], f32>, %w: !relax.tensor<[2, h, i], f32>, %r: !relax.tensor<[1, h, h], f32>, %c: !relax.tensor<[1, 2*h], f32>, %l: !relax.tensor<[b], i32>, %s: !relax.tensor<[1, b, h], f32>) -> !relax.object {
  %y, %last = relax.nn.rnn %x, %w, %r, %c, %l, %s
  relax.return %x
}

// -----

// CHECK: 'relax.nn.gru' op expected 6 operands, got 7
relax.func @nn_gru_c6[%t, %b, %i, %h](%x: !relax.tensor<[t, b, i], f32>, %w: !relax.tensor<[1, 3*h, i], f32>, %r: !relax.tensor<[1, 3*h, h], f32>, %c: !relax.tensor<[1, 6*h], f32>, %l: !relax.tensor<[b], i32>, %s: !relax.tensor<[1, b, h], f32>) -> !relax.object {
  %y, %last = relax.nn.gru %x, %w, %r, %c, %l, %s, %s
  relax.return %x
}

// -----

// CHECK: 'relax.nn.recurrence' op cell expected one of rnn, gru, lstm, got elman
relax.func @nn_recurrence_c1[%t, %b, %h](%x: !relax.tensor<[t, b, h], f32>, %r: !relax.tensor<[1, h, h], f32>, %c: !relax.tensor<[1, h], f32>, %l: !relax.tensor<[b], i32>, %s: !relax.tensor<[1, b, h], f32>) -> !relax.object {
  %y, %last = relax.nn.recurrence %x, %r, %c, %l, %s cell = "elman"
  relax.return %x
}

// -----

// CHECK: 'relax.nn.quantized_recurrence' op cell expected one of rnn, lstm, gru with linear_before_reset, got gru
relax.func @nn_quantized_recurrence_c1[%t, %b, %h](%x: !relax.tensor<[t, b, 3*h], f32>, %r: !relax.tensor<[1, h, 3*h], i8>, %f: !relax.tensor<[1, 3*h], f32>, %z: !relax.tensor<[1, 3*h], i32>, %l: !relax.tensor<[b], i32>, %s: !relax.tensor<[1, b, h], f32>) -> !relax.object {
  %y, %last = relax.nn.quantized_recurrence %x, %r, %f, %z, %z, %f, %l, %s cell = "gru"
  relax.return %x
}

// -----

// CHECK: 'relax.nn.quantized_recurrence' op expected weights of i8 or ui8, got f32
relax.func @nn_quantized_recurrence_c2[%t, %b, %h](%x: !relax.tensor<[t, b, h], f32>, %r: !relax.tensor<[1, h, h], f32>, %f: !relax.tensor<[1, h], f32>, %z: !relax.tensor<[1, h], i32>, %l: !relax.tensor<[b], i32>, %s: !relax.tensor<[1, b, h], f32>) -> !relax.object {
  %y, %last = relax.nn.quantized_recurrence %x, %r, %f, %z, %z, %f, %l, %s cell = "rnn"
  relax.return %x
}

// -----

// CHECK: 'relax.nn.quantized_recurrence' op operand #3 expected i32, got f32
relax.func @nn_quantized_recurrence_c2[%t, %b, %h](%x: !relax.tensor<[t, b, h], f32>, %r: !relax.tensor<[1, h, h], i8>, %f: !relax.tensor<[1, h], f32>, %z: !relax.tensor<[1, h], i32>, %l: !relax.tensor<[b], i32>, %s: !relax.tensor<[1, b, h], f32>) -> !relax.object {
  %y, %last = relax.nn.quantized_recurrence %x, %r, %f, %f, %z, %f, %l, %s cell = "rnn"
  relax.return %x
}
