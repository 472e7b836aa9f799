builtin.module {
  tir.prim_func @flat[%n, %m](%X: !tir.buffer<[n, m], f32>, %S: !tir.buffer<[], i8>) {
    %c0 = arith.constant 0 : index
    %F = tir.flatten %X
    %x = tir.load %F[%n]
    %G = tir.flatten %S {note}
    %s = tir.load %G[%c0]
  }
}
