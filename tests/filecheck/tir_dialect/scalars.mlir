// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP

// CHECK-LABEL: tir.prim_func @scalars
tir.prim_func @scalars[%n, %m](%ok: i1) {
  // CHECK: %d = tir.dim 4 * m + 2 * floordiv(n, 2)
  // CHECK-NEXT: %c = tir.dim 7 {note}
  // CHECK-NEXT: %r = tir.ramp %d by %c : vector<8xindex>
  // CHECK-NEXT: tir.assert %ok, "n is \22even\22"
  %d = tir.dim m * 4 + 2 * floordiv(n, 2)
  %c = tir.dim 7 {note}
  %r = tir.ramp %d by %c : vector<8xindex>
  tir.assert %ok, "n is \"even\""
}
