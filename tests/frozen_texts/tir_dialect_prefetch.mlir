builtin.module {
  tir.prim_func @prefetch[%n](%X: !tir.buffer<[n, 4], f32>, %S: !tir.buffer<[], f32>) {
    %c9 = arith.constant 9 : index
    tir.prefetch %X[%n, %c9] level 1
    tir.prefetch %S[] level 3 {note}
  }
}
