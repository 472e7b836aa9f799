builtin.module {
  tir.prim_func @scalars[%n, %m](%ok: i1) {
    %d = tir.dim 4 * m + 2 * floordiv(n, 2)
    %c = tir.dim 7 {note}
    %r = tir.ramp %d by %c : vector<8xindex>
    tir.assert %ok, "n is \22even\22"
  }
}
