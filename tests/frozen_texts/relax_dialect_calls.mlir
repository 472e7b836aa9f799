builtin.module {
  relax.func private @callee[%n, %m](%x: !relax.tensor<[n, m], f32>) -> !relax.tensor<[m, n], f32> {
    %0 = relax.permute_dims %x
    relax.return %0
  }
  relax.func private @effect(%x: !relax.object) -> !relax.tuple<> impure {
    relax.print "{}"(%x)
    %0 = relax.tuple()
    relax.return %0
  }
  relax.func @calls[%n](%x: !relax.tensor<[n, 4], f32>, %u: !relax.tensor<*, f32>) -> !relax.object impure {
    %0 = relax.call @callee(%x) : !relax.tensor<[4, n], f32>
    %1 = relax.call @callee(%x) : !relax.tensor<[_, _], f32>
    %2 = relax.call @callee(%u) : !relax.tensor<[_, _], f32>
    %3 = relax.call @effect(%x) impure : !relax.tuple<>
    relax.return %0
  }
  relax.func @call_values[%n](%f: !relax.func<[a, b](!relax.tensor<[a, b], f32>) -> !relax.tensor<[a * b], f32>, pure>, %x: !relax.tensor<[n, 4], f32>, %u: !relax.tensor<[_, 4], f32>) -> !relax.object {
    %0 = relax.call_closure %f(%x)
    %1 = relax.call_closure %f(%u)
    %2 = relax.call_closure %f(%x) : !relax.tensor<*, f32>
    relax.return %0
  }
  relax.func @values[%n](%x: !relax.tensor<[n], f32>) -> !relax.object impure {
    %f = relax.make_closure @callee() : !relax.func<[a, b](!relax.tensor<[a, b], f32>) -> !relax.tensor<[b, a], f32>, pure>
    %g = relax.make_closure @two(%x) : !relax.func<[b](!relax.tensor<[n, b], f32>) -> !relax.tensor<[b], f32>, pure>
    %h = relax.extern_func "my.function" : !relax.func<* -> !relax.object, impure>
    %0 = relax.call_closure %h(%x, %x)
    relax.return %0
  }
  relax.func private @two[%n, %m](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[n, m], f32>) -> !relax.tensor<[m], f32> {
    %0 = relax.matmul %x, %y
    relax.return %0
  }
  tir.prim_func @copy[%n](%x: !tir.buffer<[n], f32>, %y: !tir.buffer<[n], f32>) {
    tir.for (%i) in (%n) {
      tir.block "copy" (%v = spatial %i in %n) {
        %0 = tir.load %x[%v]
        tir.store %0, %y[%v]
      }
    }
  }
  relax.func @prim_func_value(%x: !relax.tensor<[4], f32>, %y: !relax.tensor<[4], f32>) -> !relax.object impure {
    %f = relax.make_closure @copy() : !relax.func<[n](!relax.tensor<[n], f32>, !relax.tensor<[n], f32>) -> !relax.tuple<>, impure>
    %g = relax.make_closure @copy(%x) : !relax.func<(!relax.tensor<[4], f32>) -> !relax.tuple<>, impure>
    %0 = relax.call_closure %g(%y)
    relax.return %f
  }
  relax.func @derived[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.tensor<[4 * n], f32> {
    %0 = relax.call @later(%x) : !relax.tensor<[4 * n], f32>
    %1 = relax.exp %0
    %f = relax.make_closure @add(%1) : !relax.func<(!relax.tensor<[4 * n], f32>) -> !relax.tensor<[4 * n], f32>, pure>
    %2 = relax.call_closure %f(%0)
    %k = relax.make_closure @kernel() : !relax.func<[m, k](!relax.tensor<[2 * floordiv(m, 2), k], f32>, !relax.prim<i64, m>) -> !relax.tuple<>, impure>
    relax.return %2
  }
  relax.func private @later[%a, %b](%x: !relax.tensor<[a, b], f32>) -> !relax.tensor<[a * b], f32> {
    %0 = relax.call @callee(%x) : !relax.tensor<[b, a], f32>
    %1 = relax.flatten %0
    relax.return %1
  }
  relax.func private @add[%a](%x: !relax.tensor<[a], f32>, %y: !relax.tensor<[a], f32>) -> !relax.tensor<[a], f32> {
    %0 = relax.add %x, %y
    relax.return %0
  }
  tir.prim_func @kernel[%m, %k](%X: !tir.buffer<[2 * floordiv(m, 2), k], f32>) {
  }
  relax.func @down[%n](%x: !relax.tensor<[n], f32>, %c: !relax.prim<i1>) -> !relax.tensor<[n], f32> {
    %0 = relax.if %c {
      %1 = relax.call @down(%x, %c) : !relax.tensor<[n], f32>
      relax.yield %1
    } else {
      relax.yield %x
    }
    relax.return %0
  }
}
