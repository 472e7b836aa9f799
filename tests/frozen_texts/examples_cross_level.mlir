builtin.module {
  tir.prim_func @tir_matmul[%m, %n, %k](%A: !tir.buffer<[m, n], f32>, %B: !tir.buffer<[n, k], f32>, %C: !tir.buffer<[m, k], f32>) {
    tir.for (%i0, %j0, %k0) in (%m, %k, %n) {
      tir.block "matmul" (%i = spatial %i0 in %m, %j = spatial %j0 in %k, %r = reduce %k0 in %n) {
        tir.init {
          %zero = arith.constant 0.000000e+00 : f32
          tir.store %zero, %C[%i, %j]
        }
        %a = tir.load %A[%i, %r]
        %b = tir.load %B[%r, %j]
        %c = tir.load %C[%i, %j]
        %product = arith.mulf %a, %b : f32
        %sum = arith.addf %c, %product : f32
        tir.store %sum, %C[%i, %j]
      }
    }
  }
  relax.func @relax_func[%m, %n, %k](%x: !relax.tensor<[m, n], f32>, %y: !relax.tensor<[n, k], f32>) -> !relax.tensor<[m, 2 * k], f32> impure {
    %gv0 = relax.dataflow {
      %lv0 = relax.call_tir @tir_matmul(%x, %y) : !relax.tensor<[m, k], f32>
      relax.output %lv0
    }
    relax.call_packed "custom_print"(%gv0)
    %gv1 = relax.call_packed "custom_add"(%gv0, %gv0) : !relax.tensor<[m, k], f32>
    %gv2 = relax.call_dps_packed "custom_tile"(%gv1) : !relax.tensor<[m, 2 * k], f32>
    relax.return %gv2
  }
}
