builtin.module {
  relax.func @random[%n, %k](%seed: !relax.prim<i64>, %t: !relax.prim<i64, k>, %s: !relax.shape<[n, 3]>, %u: !relax.shape<*>) -> !relax.object {
    %0 = relax.random.uniform %seed, %s
    %1 = relax.random.uniform %seed, %s low = -1.0 high = 2.5 dtype = f16
    %2 = relax.random.normal %t, %s mean = 3.0 scale = 0.5 dtype = f64
    %3 = relax.random.normal %seed, %u stream = 7
    relax.return %0
  }
}
