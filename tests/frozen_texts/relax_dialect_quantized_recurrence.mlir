builtin.module {
  relax.func @bytes[%t, %b, %h](%x: !relax.tensor<[t, b, 4 * h], f32>, %r: !relax.tensor<[1, h, 4 * h], i8>, %f: !relax.tensor<[1, 4 * h], f32>, %z: !relax.tensor<[1, 4 * h], i32>, %l: !relax.tensor<[b], i32>, %s: !relax.tensor<[1, b, h], f32>, %p: !relax.tensor<[1, 3 * h], f32>) -> !relax.object {
    %y, %last, %cell = relax.nn.quantized_recurrence %x, %r, %f, %z, %z, %f, %l, %s, %s, %p cell = "lstm" direction = "reverse"
    relax.return %x
  }
}
