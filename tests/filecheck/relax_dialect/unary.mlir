// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// Every function of floats; the shape stays, whatever is known of it.
// CHECK-LABEL: relax.func @floats[
// CHECK-NEXT:      %0 = relax.abs %x
// CHECK-NEXT:      %1 = relax.acos %x
// CHECK-NEXT:      %2 = relax.acosh %x
// CHECK-NEXT:      %3 = relax.asin %x
// CHECK-NEXT:      %4 = relax.asinh %x
// CHECK-NEXT:      %5 = relax.atan %x
// CHECK-NEXT:      %6 = relax.atanh %x
// CHECK-NEXT:      %7 = relax.ceil %x
// CHECK-NEXT:      %8 = relax.cos %x
// CHECK-NEXT:      %9 = relax.cosh %x
// CHECK-NEXT:      %10 = relax.erf %x
// CHECK-NEXT:      %11 = relax.exp %x
// CHECK-NEXT:      %12 = relax.floor %x
// CHECK-NEXT:      %13 = relax.isfinite %x
// CHECK-NEXT:      %14 = relax.isinf %x
// CHECK-NEXT:      %15 = relax.isnan %x
// CHECK-NEXT:      %16 = relax.log %x
// CHECK-NEXT:      %17 = relax.negative %x
// CHECK-NEXT:      %18 = relax.reciprocal %x
// CHECK-NEXT:      %19 = relax.round %x
// CHECK-NEXT:      %20 = relax.rsqrt %x
// CHECK-NEXT:      %21 = relax.sigmoid %x
// CHECK-NEXT:      %22 = relax.sign %x
// CHECK-NEXT:      %23 = relax.sin %x
// CHECK-NEXT:      %24 = relax.sinh %x
// CHECK-NEXT:      %25 = relax.sqrt %x
// CHECK-NEXT:      %26 = relax.square %x
// CHECK-NEXT:      %27 = relax.tan %x
// CHECK-NEXT:      %28 = relax.tanh %x
// CHECK-NEXT:      %29 = relax.trunc %x
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "floats"
// TYPES: "relax.abs"{{.*}} -> !relax.tensor<[n, _], f32>
// TYPES: "relax.acos"{{.*}} -> !relax.tensor<[n, _], f32>
// TYPES: "relax.acosh"{{.*}} -> !relax.tensor<[n, _], f32>
// TYPES: "relax.asin"{{.*}} -> !relax.tensor<[n, _], f32>
// TYPES: "relax.asinh"{{.*}} -> !relax.tensor<[n, _], f32>
// TYPES: "relax.atan"{{.*}} -> !relax.tensor<[n, _], f32>
// TYPES: "relax.atanh"{{.*}} -> !relax.tensor<[n, _], f32>
// TYPES: "relax.ceil"{{.*}} -> !relax.tensor<[n, _], f32>
// TYPES: "relax.cos"{{.*}} -> !relax.tensor<[n, _], f32>
// TYPES: "relax.cosh"{{.*}} -> !relax.tensor<[n, _], f32>
// TYPES: "relax.erf"{{.*}} -> !relax.tensor<[n, _], f32>
// TYPES: "relax.exp"{{.*}} -> !relax.tensor<[n, _], f32>
// TYPES: "relax.floor"{{.*}} -> !relax.tensor<[n, _], f32>
// TYPES: "relax.isfinite"{{.*}} -> !relax.tensor<[n, _], i1>
// TYPES: "relax.isinf"{{.*}} -> !relax.tensor<[n, _], i1>
// TYPES: "relax.isnan"{{.*}} -> !relax.tensor<[n, _], i1>
// TYPES: "relax.log"{{.*}} -> !relax.tensor<[n, _], f32>
// TYPES: "relax.negative"{{.*}} -> !relax.tensor<[n, _], f32>
// TYPES: "relax.reciprocal"{{.*}} -> !relax.tensor<[n, _], f32>
// TYPES: "relax.round"{{.*}} -> !relax.tensor<[n, _], f32>
// TYPES: "relax.rsqrt"{{.*}} -> !relax.tensor<[n, _], f32>
// TYPES: "relax.sigmoid"{{.*}} -> !relax.tensor<[n, _], f32>
// TYPES: "relax.sign"{{.*}} -> !relax.tensor<[n, _], f32>
// TYPES: "relax.sin"{{.*}} -> !relax.tensor<[n, _], f32>
// TYPES: "relax.sinh"{{.*}} -> !relax.tensor<[n, _], f32>
// TYPES: "relax.sqrt"{{.*}} -> !relax.tensor<[n, _], f32>
// TYPES: "relax.square"{{.*}} -> !relax.tensor<[n, _], f32>
// TYPES: "relax.tan"{{.*}} -> !relax.tensor<[n, _], f32>
// TYPES: "relax.tanh"{{.*}} -> !relax.tensor<[n, _], f32>
// TYPES: "relax.trunc"{{.*}} -> !relax.tensor<[n, _], f32>
relax.func @floats[%n](%x: !relax.tensor<[n, _], f32>) -> !relax.object {
  %0 = relax.abs %x
  %1 = relax.acos %x
  %2 = relax.acosh %x
  %3 = relax.asin %x
  %4 = relax.asinh %x
  %5 = relax.atan %x
  %6 = relax.atanh %x
  %7 = relax.ceil %x
  %8 = relax.cos %x
  %9 = relax.cosh %x
  %10 = relax.erf %x
  %11 = relax.exp %x
  %12 = relax.floor %x
  %13 = relax.isfinite %x
  %14 = relax.isinf %x
  %15 = relax.isnan %x
  %16 = relax.log %x
  %17 = relax.negative %x
  %18 = relax.reciprocal %x
  %19 = relax.round %x
  %20 = relax.rsqrt %x
  %21 = relax.sigmoid %x
  %22 = relax.sign %x
  %23 = relax.sin %x
  %24 = relax.sinh %x
  %25 = relax.sqrt %x
  %26 = relax.square %x
  %27 = relax.tan %x
  %28 = relax.tanh %x
  %29 = relax.trunc %x
  relax.return %x
}

// Integers and truth values.
// CHECK-LABEL: relax.func @integers[
// CHECK-NEXT:      %0 = relax.abs %x
// CHECK-NEXT:      %1 = relax.negative %x
// CHECK-NEXT:      %2 = relax.sign %x
// CHECK-NEXT:      %3 = relax.square %x
// CHECK-NEXT:      %4 = relax.bitwise_not %x
// CHECK-NEXT:      %5 = relax.bitwise_not %b
// CHECK-NEXT:      %6 = relax.logical_not %b
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "integers"
// TYPES: "relax.abs"{{.*}} -> !relax.tensor<[n], i32>
// TYPES: "relax.negative"{{.*}} -> !relax.tensor<[n], i32>
// TYPES: "relax.sign"{{.*}} -> !relax.tensor<[n], i32>
// TYPES: "relax.square"{{.*}} -> !relax.tensor<[n], i32>
// TYPES: "relax.bitwise_not"{{.*}} -> !relax.tensor<[n], i32>
// TYPES: "relax.bitwise_not"{{.*}} -> !relax.tensor<[n], i1>
// TYPES: "relax.logical_not"{{.*}} -> !relax.tensor<[n], i1>
relax.func @integers[%n](%x: !relax.tensor<[n], i32>, %b: !relax.tensor<[n], i1>) -> !relax.object {
  %0 = relax.abs %x
  %1 = relax.negative %x
  %2 = relax.sign %x
  %3 = relax.square %x
  %4 = relax.bitwise_not %x
  %5 = relax.bitwise_not %b
  %6 = relax.logical_not %b
  relax.return %x
}

// What is not known of the operand is not known of the result; a result type may say less.
// CHECK-LABEL: relax.func @unknown[
// CHECK-NEXT:      %0 = relax.exp %x
// CHECK-NEXT:      %1 = relax.isnan %x
// CHECK-NEXT:      %2 = relax.exp %y
// CHECK-NEXT:      %3 = relax.exp %y : !relax.tensor<[_], f32>
// CHECK-NEXT:      %4 = relax.exp %y {note}
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "unknown"
// TYPES: "relax.exp"{{.*}} -> !relax.tensor<*, _>
// TYPES: "relax.isnan"{{.*}} -> !relax.tensor<*, i1>
// TYPES: "relax.exp"{{.*}} -> !relax.tensor<[n], f32, "cuda:0">
// TYPES: "relax.exp"{{.*}} -> !relax.tensor<[_], f32>
// TYPES: "relax.exp"{{.*}} -> !relax.tensor<[n], f32, "cuda:0">
relax.func @unknown[%n](%x: !relax.tensor<*, _>, %y: !relax.tensor<[n], f32, "cuda:0">) -> !relax.object {
  %0 = relax.exp %x
  %1 = relax.isnan %x
  %2 = relax.exp %y
  %3 = relax.exp %y : !relax.tensor<[_], f32>
  %4 = relax.exp %y {note}
  relax.return %x
}
