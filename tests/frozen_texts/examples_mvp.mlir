builtin.module {
  tir.prim_func @tirexp[%n1, %m1](%X: !tir.buffer<[n1, m1], f32>, %Y: !tir.buffer<[n1, m1], f32>) {
    tir.for (%i0, %j0) in (%n1, %m1) {
      tir.block "exp" (%i = spatial %i0 in %n1, %j = spatial %j0 in %m1) {
        %x = tir.load %X[%i, %j]
        %y = math.exp %x : f32
        tir.store %y, %Y[%i, %j]
      }
    }
  }
  relax.func @myfunc[%n, %m](%x: !relax.tensor<[n, m], f32>) -> !relax.tensor<[m * n], f32> {
    %gv0 = relax.dataflow {
      %lv0 = relax.call_tir @tirexp(%x) : !relax.tensor<[n, m], f32>
      %lv1 = relax.flatten %lv0
      relax.output %lv1
    }
    relax.return %gv0
  }
}
