// RUN: RELAX_INVALID

// CHECK: 'relax.nn.attention' op expected operands of one dtype, got f32 and f16; convert with 'relax.astype'
relax.func @nn_attention_c1[%n](%q: !relax.tensor<[n, 2, 3, 4], f32>, %k: !relax.tensor<[n, 2, 3, 4], f16>) -> !relax.object {
  %0 = relax.nn.attention %q, %k, %k
  relax.return %q
}

// -----

// CHECK: 'relax.nn.attention' op operand #0 expected a floating-point dtype, got i8
relax.func @nn_attention_c1[%n](%q: !relax.tensor<[n, 2, 3, 4], i8>) -> !relax.object {
  %0 = relax.nn.attention %q, %q, %q
  relax.return %q
}

// -----

// CHECK: 'relax.nn.attention' op operand #0 expected rank 4, got !relax.tensor<[n, 2, 4], f32>
relax.func @nn_attention_c2[%n](%q: !relax.tensor<[n, 2, 4], f32>) -> !relax.object {
  %0 = relax.nn.attention %q, %q, %q
  relax.return %q
}

// -----

// CHECK: 'relax.nn.attention' op expected equal batches, got 2 and 3
relax.func @nn_attention_c3(%q: !relax.tensor<[2, 2, 3, 4], f32>, %k: !relax.tensor<[3, 2, 3, 4], f32>) -> !relax.object {
  %0 = relax.nn.attention %q, %k, %k
  relax.return %q
}

// -----

// CHECK: 'relax.nn.attention' op expected queries and keys with equal features, got 4 and 5
relax.func @nn_attention_c3[%n](%q: !relax.tensor<[n, 2, 3, 4], f32>, %k: !relax.tensor<[n, 2, 3, 5], f32>) -> !relax.object {
  %0 = relax.nn.attention %q, %k, %k
  relax.return %q
}

// -----

// CHECK: 'relax.nn.attention' op expected keys and values of equal lengths, got 2 and 3
relax.func @nn_attention_c3[%n](%q: !relax.tensor<[n, 2, 3, 4], f32>, %k: !relax.tensor<[n, 3, 3, 4], f32>) -> !relax.object {
  %0 = relax.nn.attention %q, %q, %k
  relax.return %q
}

// -----

// CHECK: 'relax.nn.attention' op expected heads of queries in multiples of 2, got 3
relax.func @nn_attention_c4[%n](%q: !relax.tensor<[n, 2, 3, 4], f32>, %k: !relax.tensor<[n, 2, 2, 4], f32>) -> !relax.object {
  %0 = relax.nn.attention %q, %k, %k
  relax.return %q
}

// -----

// CHECK: 'relax.nn.attention' op causal_mask expected one of TopLeft, BottomRight, got Left
relax.func @nn_attention_c5[%n](%q: !relax.tensor<[n, 2, 3, 4], f32>) -> !relax.object {
  %0 = relax.nn.attention %q, %q, %q causal_mask = "Left"
  relax.return %q
}

// -----

// CHECK: 'relax.nn.attention' op expected a window size of at least 1 with a causal mask, got 4
relax.func @nn_attention_c6[%n](%q: !relax.tensor<[n, 2, 3, 4], f32>) -> !relax.object {
  %0 = relax.nn.attention %q, %q, %q window_size = 4
  relax.return %q
}

// -----

// CHECK: 'relax.nn.attention_bias' op expected a dimension that is 1 or the one of the shape, got 3 and 2
relax.func @nn_attention_bias_c1[%n](%q: !relax.tensor<[n, 2, 3, 4], f32>, %b: !relax.tensor<[3, 2], f32>) -> !relax.object {
  %0 = relax.nn.attention_bias %q, %q, %q, %b
  relax.return %q
}

// -----

// CHECK: 'relax.nn.attention_bias' op operand #3 expected rank 4 or less, got !relax.tensor<[1, 1, 1, 1, 1], f32>
relax.func @nn_attention_bias_c1[%n](%q: !relax.tensor<[n, 2, 3, 4], f32>, %b: !relax.tensor<[1, 1, 1, 1, 1], f32>) -> !relax.object {
  %0 = relax.nn.attention_bias %q, %q, %q, %b
  relax.return %q
}

// -----

// CHECK: 'relax.nn.attention' op k_layout expected a permutation of BSHD, got BHD
relax.func @nn_attention_c7[%n](%q: !relax.tensor<[n, 2, 3, 4], f32>) -> !relax.object {
  %0 = relax.nn.attention %q, %q, %q k_layout = "BHD"
  relax.return %q
}

// -----

// CHECK: 'relax.nn.attention_bias' op expected operands of one dtype, got f32 and f64; convert with 'relax.astype'
relax.func @nn_attention_bias_c2[%n](%q: !relax.tensor<[n, 2, 3, 4], f32>, %b: !relax.tensor<[2, 2], f64>) -> !relax.object {
  %0 = relax.nn.attention_bias %q, %q, %q, %b
  relax.return %q
}

// -----

// CHECK: 'relax.nn.attention_bias' op a masked score expected a bias of bool, got f32
relax.func @nn_attention_bias_c3[%n](%q: !relax.tensor<[n, 2, 3, 4], f32>, %b: !relax.tensor<[2, 2], f32>) -> !relax.object {
  %0 = relax.nn.attention_bias %q, %q, %q, %b masked_score = -1.0
  relax.return %q
}

// -----

// CHECK: 'relax.nn.attention' op expected a softcap greater than 0, got 0.0
relax.func @nn_attention_c8[%n](%q: !relax.tensor<[n, 2, 3, 4], f32>) -> !relax.object {
  %0 = relax.nn.attention %q, %q, %q softcap = 0.0
  relax.return %q
}

// -----

// CHECK: 'relax.nn.attention_bias' op expected operand #4 with a sink for each head of queries, got 4 and 3
relax.func @nn_attention_c9[%n](%q: !relax.tensor<[n, 2, 3, 4], f32>, %b: !relax.tensor<[2, 2], f32>, %z: !relax.tensor<[4], f32>) -> !relax.object {
  %0 = relax.nn.attention_bias %q, %q, %q, %b, %z
  relax.return %q
}

// -----

// CHECK: 'relax.nn.attention' op expected at most 4 operands, got 5
relax.func @nn_attention_c9[%n](%q: !relax.tensor<[n, 2, 3, 4], f32>, %z: !relax.tensor<[3], f32>) -> !relax.object {
  %0 = relax.nn.attention %q, %q, %q, %z, %z
  relax.return %q
}
