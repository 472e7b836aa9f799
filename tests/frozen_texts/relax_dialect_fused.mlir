builtin.module {
  tir.prim_func @exp[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
    tir.for (%i) in (%n) {
      %x = tir.load %X[%i]
      %y = math.exp %x : f32
      tir.store %y, %Y[%i]
    }
  }
  relax.func @calls[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
    %0 = relax.dataflow {
      %y = relax.fused attributes {library = "blas"} {
        %1 = relax.call_tir @exp(%x) : !relax.tensor<[n], f32>
        %2 = relax.call_tir @exp(%1) : !relax.tensor<[n], f32>
        relax.yield %2
      }
      relax.output %y
    }
    relax.return %0
  }
}
// -----
builtin.module {
  relax.func @operators[%n](%x: !relax.tensor<[n], f32>) -> !relax.tuple<!relax.tensor<[n], f32>, !relax.tensor<[_], f32>> {
    %a, %b = relax.fused {
      %0 = relax.exp %x
      %1 = relax.unique %0
      %2, %m = relax.match_cast %1 : !relax.tensor<[m], f32> binds [m]
      relax.yield %0, %2
    }
    %r = relax.tuple(%a, %b)
    relax.return %r
  }
}
