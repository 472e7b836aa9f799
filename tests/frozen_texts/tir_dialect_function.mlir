builtin.module {
  tir.prim_func @copy[%n, %m](%X: !tir.buffer<[n, m], f32>, %Y: !tir.buffer<[n, m], f32>) {
    tir.for (%i, %j) in (%n, %m) {
      %x = tir.load %X[%i, %j]
      tir.store %x, %Y[%i, %j]
    }
  }
  tir.prim_func private @bounds[%n in [1, 2048], %size as m, %k in [4, _]](%X: !tir.buffer<[n, m, k], f32>) {
  }
  tir.prim_func @scalars(%X: !tir.buffer<[], bf16>, %s: f32, %k: i64) may_alias attributes {note = "text"} {
  }
}
