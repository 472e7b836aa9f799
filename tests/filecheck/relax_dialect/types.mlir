// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP

// What is known of a tensor: everything, some dimensions (`?` is read as `_`), the rank, nothing; the dtype, or not; a device, if one is named.
// CHECK-LABEL: relax.func @sig_tensors[%n, %m](%a: !relax.tensor<[n, 4 * m], f32>, %m_1: !relax.prim<i64, m>, %b: !relax.tensor<[n, _], bf16>, %c: !relax.tensor<[_, _], _>, %d: !relax.tensor<*, i1>, %e: !relax.tensor<[], ui8, "cuda:0">) -> !relax.object {
// CHECK-NEXT:      relax.return %a
relax.func @sig_tensors[%n, %m](%a: !relax.tensor<[n, 4 * m], f32>, %m_1: !relax.prim<i64, m>, %b: !relax.tensor<[n, _], bf16>, %c: !relax.tensor<[_, ?], _>, %d: !relax.tensor<*, i1>, %e: !relax.tensor<[], ui8, "cuda:0">) -> !relax.object {
  relax.return %a
}

// How workers share a tensor: a placement for each axis of a mesh, behind the device.
// CHECK-LABEL: relax.func @sig_shardings[%n, %p](%a: !relax.tensor<[n, 4], f32, sharding<x = 2: S[0], y = p: R>>, %b: !relax.tensor<*, _, "cpu", sharding<x = 2: P, y = p + 1: P[max]>>, %p_1: !relax.prim<i64, p>, %c: !relax.tensor<[4], f32, sharding<>>) -> !relax.object {
// CHECK-NEXT:      relax.return %a
relax.func @sig_shardings[%n, %p](%a: !relax.tensor<[n, 4], f32, sharding<x = 2: S[0], y = p: R>>, %b: !relax.tensor<*, _, "cpu", sharding<x = 2: P[sum], y = p + 1: P[max]>>, %p_1: !relax.prim<i64, p>, %c: !relax.tensor<[4], f32, sharding<>>) -> !relax.object {
  relax.return %a
}

// CHECK-LABEL: relax.func @sig_values[%n](%a: !relax.shape<[n, n + 1]>, %b: !relax.shape<[_, 2]>, %c: !relax.shape<*>, %d: !relax.prim<i64, 2 * n>, %e: !relax.prim<f32>, %f: !relax.object) -> !relax.object {
// CHECK-NEXT:      relax.return %a
relax.func @sig_values[%n](%a: !relax.shape<[n, n + 1]>, %b: !relax.shape<[_, 2]>, %c: !relax.shape<*>, %d: !relax.prim<i64, 2 * n>, %e: !relax.prim<f32>, %f: !relax.object) -> !relax.object {
  relax.return %a
}

// CHECK-LABEL: relax.func @sig_tuples(%a: !relax.tuple<>, %b: !relax.tuple<!relax.tuple<!relax.object>, !relax.prim<i1>>) -> !relax.tuple<> {
// CHECK-NEXT:      relax.return %a
relax.func @sig_tuples(%a: !relax.tuple<>, %b: !relax.tuple<!relax.tuple<!relax.object>, !relax.prim<i1>>) -> !relax.tuple<> {
  relax.return %a
}

// A function type binds symbols of its own; of a packed function no parameters are known.
// CHECK-LABEL: relax.func @sig_functions(%a: !relax.func<() -> !relax.object, pure>, %b: !relax.func<[n in [1, 8], k](!relax.tensor<[n, k], f32>) -> !relax.tensor<[k], f32>, impure>, %c: !relax.func<* -> !relax.shape<*>, impure>, %d: !relax.func<* derive "name" -> !relax.object, pure>) -> !relax.object {
// CHECK-NEXT:      relax.return %a
relax.func @sig_functions(%a: !relax.func<() -> !relax.object, pure>, %b: !relax.func<[n in [1, 8], k](!relax.tensor<[n, k], f32>) -> !relax.tensor<[k], f32>, impure>, %c: !relax.func<* -> !relax.shape<*>, impure>, %d: !relax.func<* derive "name" -> !relax.object, pure>) -> !relax.object {
  relax.return %a
}

// Equal dimensions are one: they are written in one way.
// CHECK-LABEL: relax.func @canonical[%n, %m](%n_1: !relax.prim<i64, n>, %m_1: !relax.prim<i64, m>, %x: !relax.tensor<[2 * n, m * n, floordiv(n, 2), max(m, n)], f32>) -> !relax.object
relax.func @canonical[%n, %m](%n_1: !relax.prim<i64, n>, %m_1: !relax.prim<i64, m>, %x: !relax.tensor<[n + n, n * m, floordiv(2 * n, 4), max(n, m, n)], f32>) -> !relax.object {
  relax.return %x
}
