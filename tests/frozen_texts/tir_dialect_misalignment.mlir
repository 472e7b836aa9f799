builtin.module {
  tir.prim_func @misalignment[%n](%X: !tir.buffer<[n, 4], f32>, %S: !tir.buffer<[], f64>) {
    %c9 = arith.constant 9 : index
    %e = tir.misalignment %X[%n, %c9] of 16
    %f = tir.misalignment %S[] of 1 {note}
  }
}
