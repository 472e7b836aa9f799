builtin.module {
  tir.prim_func @tir_exp_func[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
    tir.for (%i) in (%n) {
      tir.block "exp" (%vi = spatial %i in %n) {
        %x = tir.load %X[%vi]
        %y = math.exp %x : f32
        tir.store %y, %Y[%vi]
      }
    }
  }
  relax.func @relax_func[%n, %k](%x: !relax.tensor<[n, k], f32>, %w: !relax.tensor<*, f32>) -> !relax.tensor<[_], f32> impure {
    %gv0 = relax.dataflow {
      %lv0, %m = relax.match_cast %w : !relax.tensor<[k, m], f32> binds [m]
      %lv1 = relax.matmul %x, %lv0
      %lv2 = relax.flatten %lv1
      %lv3 = relax.call_tir @tir_exp_func(%lv2) : !relax.tensor<[m * n], f32>
      relax.output %lv3
    }
    relax.call_packed "custom_inplace_update"(%gv0)
    relax.return %gv0
  }
}
