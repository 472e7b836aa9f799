// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// CHECK-LABEL: relax.func @attention[
// CHECK-NEXT:      %0 = relax.nn.attention %q, %k, %v
// CHECK-NEXT:      %1 = relax.nn.attention %q, %k, %v scale = 0.125 causal_mask = "TopLeft"
// CHECK-NEXT:      %2 = relax.nn.attention %q, %g, %g causal_mask = "BottomRight" window_size = 16
// CHECK-NEXT:      %3 = relax.nn.attention_bias %q, %k, %v, %m
// CHECK-NEXT:      relax.return %q
// TYPES-LABEL: sym_name = "attention"
// TYPES: "relax.nn.attention"{{.*}} -> !relax.tensor<[b, s, 8, 32], f32>
// TYPES: "relax.nn.attention"{{.*}} -> !relax.tensor<[b, s, 8, 32], f32>
// TYPES: "relax.nn.attention"{{.*}} -> !relax.tensor<[b, s, 8, 64], f32>
// TYPES: "relax.nn.attention_bias"{{.*}} -> !relax.tensor<[b, s, 8, 32], f32>
relax.func @attention[%b, %s, %t](%q: !relax.tensor<[b, s, 8, 64], f32>, %k: !relax.tensor<[b, t, 8, 64], f32>, %v: !relax.tensor<[b, t, 8, 32], f32>, %g: !relax.tensor<[b, t, 2, 64], f32>, %m: !relax.tensor<[s, t], f32>) -> !relax.object {
  %0 = relax.nn.attention %q, %k, %v
  %1 = relax.nn.attention %q, %k, %v scale = 0.125 causal_mask = "TopLeft"
  %2 = relax.nn.attention %q, %g, %g causal_mask = "BottomRight" window_size = 16
  %3 = relax.nn.attention_bias %q, %k, %v, %m
  relax.return %q
}
