// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// What is not said is f32 between 0 and 1, or around 0; the shape of the result is that of the operand.
// CHECK-LABEL: relax.func @random[
// CHECK-NEXT:      %0 = relax.random.uniform %seed, %s
// CHECK-NEXT:      %1 = relax.random.uniform %seed, %s low = -1.0 high = 2.5 dtype = f16
// CHECK-NEXT:      %2 = relax.random.normal %t, %s mean = 3.0 scale = 0.5 dtype = f64
// CHECK-NEXT:      %3 = relax.random.normal %seed, %u stream = 7
// CHECK-NEXT:      relax.return %0
// TYPES-LABEL: sym_name = "random"
// TYPES: "relax.random.uniform"{{.*}} -> !relax.tensor<[n, 3], f32>
// TYPES: "relax.random.uniform"{{.*}} -> !relax.tensor<[n, 3], f16>
// TYPES: "relax.random.normal"{{.*}} -> !relax.tensor<[n, 3], f64>
// TYPES: "relax.random.normal"{{.*}} -> !relax.tensor<*, f32>
relax.func @random[%n, %k](%seed: !relax.prim<i64>, %t: !relax.prim<i64, k>, %s: !relax.shape<[n, 3]>, %u: !relax.shape<*>) -> !relax.object {
  %0 = relax.random.uniform %seed, %s
  %1 = relax.random.uniform %seed, %s low = -1.0 high = 2.5 dtype = f16
  %2 = relax.random.normal %t, %s mean = 3.0 scale = 0.5 dtype = f64
  %3 = relax.random.normal %seed, %u stream = 7
  relax.return %0
}
