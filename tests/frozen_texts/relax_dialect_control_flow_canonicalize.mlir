builtin.module {
  relax.func @known[%n, %m](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[m], f32>) -> !relax.object impure {
    %true = relax.prim i1 true
    %0 = relax.if %true {
      relax.call_packed "show"(%x)
      %1 = relax.exp %x
      relax.yield %1
    } else {
      relax.yield %y
    }
    %false = relax.constant dense<false> : tensor<i1>
    %2 = relax.if %false {
      %3 = relax.log %x
      relax.yield %3
    } else {
      relax.yield %x
    }
    %4 = relax.tuple(%0, %2)
    relax.return %4
  }
  relax.func @binds(%x: !relax.tensor<[_], f32>) -> !relax.object {
    %true = relax.prim i1 true
    %0 = relax.if %true {
      %1, %k = relax.match_cast %x : !relax.tensor<[k], f32> binds [k]
      %2 = relax.add %1, %1
      relax.yield %2
    } else {
      relax.yield %x
    }
    relax.return %0
  }
}
