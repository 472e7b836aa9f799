builtin.module {
  tir.prim_func private @exp[%n](%x: !tir.buffer<[n], f32>, %y: !tir.buffer<[n], f32>) {
  }
  tir.prim_func private @split[%n, %m, %k](%x: !tir.buffer<[m + n], f32>, %a: i64, %y: !tir.buffer<[n], f32>, %z: !tir.buffer<[m], f32>) {
  }
  tir.prim_func private @add_to[%n](%x: !tir.buffer<[n], f32>, %y: !tir.buffer<[n], f32>) {
  }
  relax.func @call_tir[%n](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[n + 4], f32>, %p: !relax.prim<i64>) -> !relax.object {
    %0 = relax.call_tir @exp(%x) : !relax.tensor<[n], f32>
    %1, %2 = relax.call_tir @split(%y, %p) tir_vars [2 * n] : !relax.tensor<[4], f32>, !relax.tensor<[n], f32>
    relax.return %0
  }
  relax.func @opaque_shape(%x: !relax.tensor<[_], f32>, %s: !relax.shape<*>) -> !relax.object {
    %0 = relax.call_tir @exp(%x) shape(%s) : !relax.tensor<[_], f32>
    relax.return %0
  }
  relax.func @inplace[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
    %gv = relax.dataflow {
      %0 = relax.exp %x
      %1 = relax.call_tir_inplace @add_to(%0, %x) inplace [0] : !relax.tensor<[n], f32>
      %2 = relax.call_tir_inplace @exp(%1) inplace [-1] : !relax.tensor<[n], f32>
      relax.output %2
    }
    relax.return %gv
  }
  tir.prim_func @even[%m](%A: !tir.buffer<[2 * floordiv(m, 2)], f32>, %B: !tir.buffer<[2 * floordiv(m, 2)], f32>) {
  }
  relax.func @inside[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
    %0 = relax.call_tir @even(%x) tir_vars [n + 1] : !relax.tensor<[n], f32>
    relax.return %0
  }
}
