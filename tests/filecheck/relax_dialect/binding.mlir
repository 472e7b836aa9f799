// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// What is not known of a value is checked, and the symbols that are new in the type are bound.
// CHECK-LABEL: relax.func @binds[
// CHECK-NEXT:      %a, %m = relax.match_cast %x : !relax.tensor<[n, m], f32> binds [m]
// CHECK-NEXT:      %b, %k = relax.match_cast %o : !relax.tensor<[4 * k + 1], _> binds [k in [1, 8]]
// CHECK-NEXT:      %c, %p, %q = relax.match_cast %o : !relax.tuple<!relax.tensor<[p, _], f32>, !relax.prim<i64, q>> binds [p, q]
// CHECK-NEXT:      relax.return %a
// TYPES-LABEL: sym_name = "binds"
// TYPES: "relax.match_cast"{{.*}} -> (!relax.tensor<[n, m], f32>, !relax.prim<i64, m>)
// TYPES: "relax.match_cast"{{.*}} -> (!relax.tensor<[4 * k + 1], _>, !relax.prim<i64, k>)
// TYPES: "relax.match_cast"{{.*}} -> (!relax.tuple<!relax.tensor<[p, _], f32>, !relax.prim<i64, q>>, !relax.prim<i64, p>, !relax.prim<i64, q>)
relax.func @binds[%n](%x: !relax.tensor<[n, _], f32>, %o: !relax.object) -> !relax.object {
  %a, %m = relax.match_cast %x : !relax.tensor<[n, m], f32> binds [m]
  %b, %k = relax.match_cast %o : !relax.tensor<[4 * k + 1], _> binds [k in [1, 8]]
  %c, %p, %q = relax.match_cast %o : !relax.tuple<!relax.tensor<[p, _], f32>, !relax.prim<i64, q>> binds [p, q]
  relax.return %a
}

// Nothing is bound: a check only.
// CHECK-LABEL: relax.func @checks[
// CHECK-NEXT:      %a = relax.match_cast %s : !relax.shape<[_, n]>
// CHECK-NEXT:      %b = relax.match_cast %o : !relax.tensor<*, f16>
// CHECK-NEXT:      %c = relax.match_cast %o : !relax.func<(!relax.object) -> !relax.object, pure>
// CHECK-NEXT:      relax.return %a
// TYPES-LABEL: sym_name = "checks"
// TYPES: "relax.match_cast"{{.*}} -> !relax.shape<[_, n]>
// TYPES: "relax.match_cast"{{.*}} -> !relax.tensor<*, f16>
// TYPES: "relax.match_cast"{{.*}} -> !relax.object, pure>
relax.func @checks[%n](%s: !relax.shape<*>, %o: !relax.object, %n_1: !relax.prim<i64, n>) -> !relax.object {
  %a = relax.match_cast %s : !relax.shape<[_, n]>
  %b = relax.match_cast %o : !relax.tensor<*, f16>
  %c = relax.match_cast %o : !relax.func<(!relax.object) -> !relax.object, pure>
  relax.return %a
}

// A cast may forget: the value has the declared type.
// CHECK-LABEL: relax.func @forgets[
// CHECK-NEXT:      %a = relax.match_cast %x : !relax.tensor<[_, _], f32>
// CHECK-NEXT:      %b = relax.match_cast %x : !relax.object
// CHECK-NEXT:      relax.return %b
// TYPES-LABEL: sym_name = "forgets"
// TYPES: "relax.match_cast"{{.*}} -> !relax.tensor<[_, _], f32>
// TYPES: "relax.match_cast"{{.*}} -> !relax.object
relax.func @forgets[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.object {
  %a = relax.match_cast %x : !relax.tensor<[_, _], f32>
  %b = relax.match_cast %x : !relax.object
  relax.return %b
}

// CHECK-LABEL: relax.func @entry
// CHECK:         %x, %w, %n = relax.check_args(%a, %b) : (!relax.tensor<[n], f32>, !relax.tensor<[n], f32>) binds [n] names ["x", "w"] of "entry" captured 1
// CHECK-NEXT:    %m = relax.check_args() : () binds [m] names [] of "entry"
relax.func @entry(%a: !relax.object, %b: !relax.object) -> !relax.tensor<[_], f32> impure {
  %x, %w, %n = relax.check_args(%a, %b) : (!relax.tensor<[n], f32>, !relax.tensor<[n], f32>) binds [n] names ["x", "w"] of "entry" captured 1
  %m = relax.check_args() : () binds [m] names [] of "entry"
  relax.return %x
}
