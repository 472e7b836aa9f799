builtin.module {
  relax.func @binds[%n](%x: !relax.tensor<[n, _], f32>, %o: !relax.object) -> !relax.object {
    %a, %m = relax.match_cast %x : !relax.tensor<[n, m], f32> binds [m]
    %b, %k = relax.match_cast %o : !relax.tensor<[4 * k + 1], _> binds [k in [1, 8]]
    %c, %p, %q = relax.match_cast %o : !relax.tuple<!relax.tensor<[p, _], f32>, !relax.prim<i64, q>> binds [p, q]
    relax.return %a
  }
  relax.func @checks[%n](%s: !relax.shape<*>, %o: !relax.object, %n_1: !relax.prim<i64, n>) -> !relax.object {
    %a = relax.match_cast %s : !relax.shape<[_, n]>
    %b = relax.match_cast %o : !relax.tensor<*, f16>
    %c = relax.match_cast %o : !relax.func<(!relax.object) -> !relax.object, pure>
    relax.return %a
  }
  relax.func @forgets[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
    %a = relax.match_cast %x : !relax.tensor<[_, _], f32>
    %b = relax.match_cast %x : !relax.object
    relax.return %b
  }
  relax.func @entry(%a: !relax.object, %b: !relax.object) -> !relax.tensor<[_], f32> impure {
    %x, %w, %n = relax.check_args(%a, %b) : (!relax.tensor<[n], f32>, !relax.tensor<[n], f32>) binds [n] names ["x", "w"] of "entry" captured 1
    %m = relax.check_args() : () binds [m] names [] of "entry"
    relax.return %x
  }
}
