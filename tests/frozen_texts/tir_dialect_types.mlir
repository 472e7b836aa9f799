builtin.module {
  tir.prim_func @defaults[%n](%A: !tir.buffer<[n, 4], f32>, %B: !tir.buffer<[], ui8>, %C: !tir.buffer<[n, 4], f32>, %D: !tir.buffer<[n], i1>) {
  }
  tir.prim_func @layouts[%n, %m](%A: !tir.buffer<[n, m], f16, strides = [1, n]>, %B: !tir.buffer<[n], bf16, strides = [2], offset = n + 1>, %C: !tir.buffer<[floordiv(n, 2), 4 * m], i64, scope = "local", align = 64>) {
  }
}
