// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP

// Only shape and dtype are required; what is the default is not printed.
// CHECK-LABEL: tir.prim_func @defaults
// CHECK-SAME:    %A: !tir.buffer<[n, 4], f32>, %B: !tir.buffer<[], ui8>, %C: !tir.buffer<[n, 4], f32>, %D: !tir.buffer<[n], i1>
tir.prim_func @defaults[%n](
  %A: !tir.buffer<[n, 4], f32>,
  %B: !tir.buffer<[], ui8>,
  %C: !tir.buffer<[n, 4], f32, strides = [4, 1], offset = 0, scope = "global", align = 4>,
  %D: !tir.buffer<[n], i1, align = 1>
) {
}

// CHECK-LABEL: tir.prim_func @layouts
// CHECK-SAME:    %A: !tir.buffer<[n, m], f16, strides = [1, n]>
// CHECK-SAME:    %B: !tir.buffer<[n], bf16, strides = [2], offset = n + 1>
// CHECK-SAME:    %C: !tir.buffer<[floordiv(n, 2), 4 * m], i64, scope = "local", align = 64>
tir.prim_func @layouts[%n, %m](
  %A: !tir.buffer<[n, m], f16, strides = [1, n]>,
  %B: !tir.buffer<[n], bf16, offset = 1 + n, strides = [2]>,
  %C: !tir.buffer<[floordiv(n, 2), m * 4], i64, align = 64, scope = "local">
) {
}
