// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// Sequences of different lengths; the symbols are those of data and weights.
// CHECK-LABEL: relax.func @layers[
// CHECK-NEXT:      %y, %last = relax.nn.rnn %x, %w, %r, %c, %l, %s activations = "relu" clip = 1.5
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "layers"
// TYPES: "relax.nn.rnn"{{.*}} -> (!relax.tensor<[t, 1, b, h], f32>, !relax.tensor<[1, b, h], f32>)
relax.func @layers[%t, %b, %i, %h](%x: !relax.tensor<[t, b, i], f32>, %w: !relax.tensor<[1, h, i], f32>, %r: !relax.tensor<[1, h, h], f32>, %c: !relax.tensor<[1, 2*h], f32>, %l: !relax.tensor<[b], i32>, %s: !relax.tensor<[1, b, h], f32>) -> !relax.object {
  %y, %last = relax.nn.rnn %x, %w, %r, %c, %l, %s activations = "relu" clip = 1.5
  relax.return %x
}

// Three gates.
// CHECK-LABEL: relax.func @gated[
// CHECK-NEXT:      %y, %last = relax.nn.gru %x, %w, %r, %c, %l, %s batch_first direction = "reverse" linear_before_reset
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "gated"
// TYPES: "relax.nn.gru"{{.*}} -> (!relax.tensor<[b, t, 1, 4], f32>, !relax.tensor<[b, 1, 4], f32>)
relax.func @gated[%b, %t, %i](%x: !relax.tensor<[b, t, i], f32>, %w: !relax.tensor<[1, 12, i], f32>, %r: !relax.tensor<[1, 12, 4], f32>, %c: !relax.tensor<[1, 24], f32>, %l: !relax.tensor<[b], i64>, %s: !relax.tensor<[b, 1, 4], f32>) -> !relax.object {
  %y, %last = relax.nn.gru %x, %w, %r, %c, %l, %s linear_before_reset batch_first direction = "reverse"
  relax.return %x
}

// Both directions have weights of their own.
// CHECK-LABEL: relax.func @memory[
// CHECK-NEXT:      %y, %last, %cell = relax.nn.lstm %x, %w, %r, %c, %l, %s, %q, %p direction = "bidirectional" activations = "sigmoid tanh relu hard_sigmoid elu tanh" alphas = [0.0, 0.0, 0.0, 0.25, 1.0, 0.0] input_forget
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "memory"
// TYPES: "relax.nn.lstm"{{.*}} -> (!relax.tensor<[t, 2, b, h], f32>, !relax.tensor<[2, b, h], f32>, !relax.tensor<[2, b, h], f32>)
relax.func @memory[%t, %b, %i, %h](%x: !relax.tensor<[t, b, i], f32>, %w: !relax.tensor<[2, 4*h, i], f32>, %r: !relax.tensor<[2, 4*h, h], f32>, %c: !relax.tensor<[2, 8*h], f32>, %l: !relax.tensor<[b], i32>, %s: !relax.tensor<[2, b, h], f32>, %q: !relax.tensor<[2, b, h], f32>, %p: !relax.tensor<[2, 3*h], f32>) -> !relax.object {
  %y, %last, %cell = relax.nn.lstm %x, %w, %r, %c, %l, %s, %q, %p direction = "bidirectional" input_forget activations = "sigmoid tanh relu hard_sigmoid elu tanh" alphas = [0.0, 0.0, 0.0, 0.25, 1.0, 0.0]
  relax.return %x
}

// What is left when the products are made.
// CHECK-LABEL: relax.func @steps[
// CHECK-NEXT:      %y, %last = relax.nn.recurrence %x, %r, %c, %l, %s cell = "gru"
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "steps"
// TYPES: "relax.nn.recurrence"{{.*}} -> (!relax.tensor<[t, 1, b, h], f32>, !relax.tensor<[1, b, h], f32>)
relax.func @steps[%t, %b, %h](%x: !relax.tensor<[t, b, 3*h], f32>, %r: !relax.tensor<[1, h, 3*h], f32>, %c: !relax.tensor<[1, 3*h], f32>, %l: !relax.tensor<[b], i32>, %s: !relax.tensor<[1, b, h], f32>) -> !relax.object {
  %y, %last = relax.nn.recurrence %x, %r, %c, %l, %s cell = "gru"
  relax.return %x
}

// Weights of bytes, with a scale, a zero point and a sum for each gate.
// CHECK-LABEL: relax.func @bytes[
// CHECK-NEXT:      %y, %last, %cell = relax.nn.quantized_recurrence %x, %r, %f, %z, %z, %f, %l, %s, %s, %p cell = "lstm" direction = "reverse"
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "bytes"
// TYPES: "relax.nn.quantized_recurrence"{{.*}} -> (!relax.tensor<[t, 1, b, h], f32>, !relax.tensor<[1, b, h], f32>, !relax.tensor<[1, b, h], f32>)
relax.func @bytes[%t, %b, %h](%x: !relax.tensor<[t, b, 4*h], f32>, %r: !relax.tensor<[1, h, 4*h], i8>, %f: !relax.tensor<[1, 4*h], f32>, %z: !relax.tensor<[1, 4*h], i32>, %l: !relax.tensor<[b], i32>, %s: !relax.tensor<[1, b, h], f32>, %p: !relax.tensor<[1, 3*h], f32>) -> !relax.object {
  %y, %last, %cell = relax.nn.quantized_recurrence %x, %r, %f, %z, %z, %f, %l, %s, %s, %p cell = "lstm" direction = "reverse"
  relax.return %x
}
