builtin.module {
  relax.func @sig_tensors[%n, %m](%a: !relax.tensor<[n, 4 * m], f32>, %m_1: !relax.prim<i64, m>, %b: !relax.tensor<[n, _], bf16>, %c: !relax.tensor<[_, _], _>, %d: !relax.tensor<*, i1>, %e: !relax.tensor<[], ui8, "cuda:0">) -> !relax.object {
    relax.return %a
  }
  relax.func @sig_values[%n](%a: !relax.shape<[n, n + 1]>, %b: !relax.shape<[_, 2]>, %c: !relax.shape<*>, %d: !relax.prim<i64, 2 * n>, %e: !relax.prim<f32>, %f: !relax.object) -> !relax.object {
    relax.return %a
  }
  relax.func @sig_tuples(%a: !relax.tuple<>, %b: !relax.tuple<!relax.tuple<!relax.object>, !relax.prim<i1>>) -> !relax.tuple<> {
    relax.return %a
  }
  relax.func @sig_functions(%a: !relax.func<() -> !relax.object, pure>, %b: !relax.func<[n in [1, 8], k](!relax.tensor<[n, k], f32>) -> !relax.tensor<[k], f32>, impure>, %c: !relax.func<* -> !relax.shape<*>, impure>, %d: !relax.func<* derive "name" -> !relax.object, pure>) -> !relax.object {
    relax.return %a
  }
  relax.func @canonical[%n, %m](%n_1: !relax.prim<i64, n>, %m_1: !relax.prim<i64, m>, %x: !relax.tensor<[2 * n, m * n, floordiv(n, 2), max(m, n)], f32>) -> !relax.object {
    relax.return %x
  }
}
