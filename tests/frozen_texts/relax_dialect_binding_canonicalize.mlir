builtin.module {
  relax.func @same_type[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
    %0 = relax.match_cast %x : !relax.tensor<[n], f32>
    relax.return %0
  }
  relax.func @stays[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
    %0 = relax.match_cast %x : !relax.tensor<[4], f32>
    %1 = relax.match_cast %x : !relax.tensor<[_], f32>
    %2, %m = relax.match_cast %x : !relax.tensor<[m], f32> binds [m]
    %3 = relax.tuple(%0, %1, %2)
    relax.return %3
  }
  relax.func @unused[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
    %0 = relax.match_cast %x : !relax.tensor<[4], f32>
    relax.return %x
  }
  relax.func @symbol_is_used(%x: !relax.tensor<[_], f32>) -> !relax.shape<[_]> {
    %0, %k = relax.match_cast %x : !relax.tensor<[k], f32> binds [k]
    %1 = relax.shape [k]
    relax.return %1
  }
  relax.func @symbol_is_passed_on(%x: !relax.tensor<[_], f32>) -> !relax.shape<[_]> {
    %k = relax.dataflow {
      %0, %l = relax.match_cast %x : !relax.tensor<[k], f32> binds [k]
      relax.output %l
    }
    %1 = relax.shape [k]
    relax.return %1
  }
  relax.func @symbol_is_not_used(%x: !relax.tensor<[_], f32>, %c: !relax.prim<i1>) -> !relax.object {
    %0, %k = relax.match_cast %x : !relax.tensor<[k], f32> binds [k]
    %1 = relax.shape [k]
    %2 = relax.if %c {
      %3, %l = relax.match_cast %x : !relax.tensor<[l], f32> binds [l]
      %4 = relax.shape [l]
      relax.yield %4
    } else {
      %5 = relax.shape [3]
      relax.yield %5
    }
    relax.return %x
  }
}
