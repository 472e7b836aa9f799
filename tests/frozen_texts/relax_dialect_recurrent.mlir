builtin.module {
  relax.func @layers[%t, %b, %i, %h](%x: !relax.tensor<[t, b, i], f32>, %w: !relax.tensor<[1, h, i], f32>, %r: !relax.tensor<[1, h, h], f32>, %c: !relax.tensor<[1, 2 * h], f32>, %l: !relax.tensor<[b], i32>, %s: !relax.tensor<[1, b, h], f32>) -> !relax.object {
    %y, %last = relax.nn.rnn %x, %w, %r, %c, %l, %s activations = "relu" clip = 1.5
    relax.return %x
  }
  relax.func @gated[%b, %t, %i](%x: !relax.tensor<[b, t, i], f32>, %w: !relax.tensor<[1, 12, i], f32>, %r: !relax.tensor<[1, 12, 4], f32>, %c: !relax.tensor<[1, 24], f32>, %l: !relax.tensor<[b], i64>, %s: !relax.tensor<[b, 1, 4], f32>) -> !relax.object {
    %y, %last = relax.nn.gru %x, %w, %r, %c, %l, %s batch_first direction = "reverse" linear_before_reset
    relax.return %x
  }
  relax.func @memory[%t, %b, %i, %h](%x: !relax.tensor<[t, b, i], f32>, %w: !relax.tensor<[2, 4 * h, i], f32>, %r: !relax.tensor<[2, 4 * h, h], f32>, %c: !relax.tensor<[2, 8 * h], f32>, %l: !relax.tensor<[b], i32>, %s: !relax.tensor<[2, b, h], f32>, %q: !relax.tensor<[2, b, h], f32>, %p: !relax.tensor<[2, 3 * h], f32>) -> !relax.object {
    %y, %last, %cell = relax.nn.lstm %x, %w, %r, %c, %l, %s, %q, %p direction = "bidirectional" activations = "sigmoid tanh relu hard_sigmoid elu tanh" alphas = [0.0, 0.0, 0.0, 0.25, 1.0, 0.0] input_forget
    relax.return %x
  }
  relax.func @steps[%t, %b, %h](%x: !relax.tensor<[t, b, 3 * h], f32>, %r: !relax.tensor<[1, h, 3 * h], f32>, %c: !relax.tensor<[1, 3 * h], f32>, %l: !relax.tensor<[b], i32>, %s: !relax.tensor<[1, b, h], f32>) -> !relax.object {
    %y, %last = relax.nn.recurrence %x, %r, %c, %l, %s cell = "gru"
    relax.return %x
  }
}
