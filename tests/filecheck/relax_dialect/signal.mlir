// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// The dtype is f32 if nothing is said.
// CHECK-LABEL: relax.func @windows[
// CHECK-NEXT:      %0 = relax.cosine_window length = n coefficients = [0.5, 0.5]
// CHECK-NEXT:      %1 = relax.cosine_window length = 2 * n + 1 coefficients = [0.42, 0.5, 0.08] periodic dtype = f64
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "windows"
// TYPES: "relax.cosine_window"{{.*}} -> !relax.tensor<[n], f32>
// TYPES: "relax.cosine_window"{{.*}} -> !relax.tensor<[2 * n + 1], f64>
relax.func @windows[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.cosine_window length = n coefficients = [0.5, 0.5]
  %1 = relax.cosine_window length = 2 * n + 1 coefficients = [0.42, 0.5, 0.08] periodic dtype = f64
  relax.return %x
}
