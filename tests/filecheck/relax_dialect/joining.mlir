// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// Dimensions along the axis add up; the others are what is known of any operand.
// CHECK-LABEL: relax.func @join[
// CHECK-NEXT:      %0 = relax.concat %x, %y axis = 1
// CHECK-NEXT:      %1 = relax.concat %x, %u axis = -1
// CHECK-NEXT:      %2 = relax.concat %x, %u
// CHECK-NEXT:      %3 = relax.concat %v, %x axis = 1
// CHECK-NEXT:      %4 = relax.concat %v, %v
// CHECK-NEXT:      %5 = relax.stack %x, %u axis = 2
// CHECK-NEXT:      %6 = relax.stack %v, %v
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "join"
// TYPES: "relax.concat"{{.*}} -> !relax.tensor<[n, k + m], f32>
// TYPES: "relax.concat"{{.*}} -> !relax.tensor<[n, 2 * k], f32>
// TYPES: "relax.concat"{{.*}} -> !relax.tensor<[_, k], f32>
// TYPES: "relax.concat"{{.*}} -> !relax.tensor<[n, _], f32>
// TYPES: "relax.concat"{{.*}} -> !relax.tensor<*, f32>
// TYPES: "relax.stack"{{.*}} -> !relax.tensor<[n, k, 2], f32>
// TYPES: "relax.stack"{{.*}} -> !relax.tensor<*, f32>
relax.func @join[%n, %k, %m](%x: !relax.tensor<[n, k], f32>, %y: !relax.tensor<[n, m], f32>, %u: !relax.tensor<[_, k], f32>, %v: !relax.tensor<*, f32>) -> !relax.object {
  %0 = relax.concat %x, %y axis = 1
  %1 = relax.concat %x, %u axis = -1
  %2 = relax.concat %x, %u
  %3 = relax.concat %v, %x axis = 1
  %4 = relax.concat %v, %v
  %5 = relax.stack %x, %u axis = 2
  %6 = relax.stack %v, %v
  relax.return %x
}

// Parts of equal size, the last one smaller; or cut at places.
// CHECK-LABEL: relax.func @split[
// CHECK-NEXT:      %0, %1, %2 = relax.split %x sections = 3 axis = 1
// CHECK-NEXT:      %3, %4 = relax.split %x sections = 2
// CHECK-NEXT:      %5, %6, %7 = relax.split %x indices = [2, 7] axis = 1
// CHECK-NEXT:      %8, %9 = relax.split %x indices = [n]
// CHECK-NEXT:      %10, %11 = relax.split %u sections = 2
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "split"
// TYPES: "relax.split"{{.*}} -> (!relax.tensor<[n, 4], f32>, !relax.tensor<[n, 4], f32>, !relax.tensor<[n, 2], f32>)
// TYPES: "relax.split"{{.*}} -> (!relax.tensor<[floordiv(n + 1, 2), 10], f32>, !relax.tensor<[n - floordiv(n + 1, 2), 10], f32>)
// TYPES: "relax.split"{{.*}} -> (!relax.tensor<[n, 2], f32>, !relax.tensor<[n, 5], f32>, !relax.tensor<[n, 3], f32>)
// TYPES: "relax.split"{{.*}} -> (!relax.tensor<[n, 10], f32>, !relax.tensor<[0, 10], f32>)
// TYPES: "relax.split"{{.*}} -> (!relax.tensor<*, f32>, !relax.tensor<*, f32>)
relax.func @split[%n](%x: !relax.tensor<[n, 10], f32>, %u: !relax.tensor<*, f32>) -> !relax.object {
  %0, %1, %2 = relax.split %x sections = 3 axis = 1
  %3, %4 = relax.split %x sections = 2
  %5, %6, %7 = relax.split %x indices = [2, 7] axis = 1
  %8, %9 = relax.split %x indices = [n]
  %10, %11 = relax.split %u sections = 2
  relax.return %x
}

// CHECK-LABEL: relax.func @repetition[
// CHECK-NEXT:      %0 = relax.repeat %x repeats = 3 axis = 1
// CHECK-NEXT:      %1 = relax.repeat %x repeats = 3
// CHECK-NEXT:      %2 = relax.repeat %u repeats = 3
// CHECK-NEXT:      %3 = relax.tile %x repeats = [2, 1, 3]
// CHECK-NEXT:      %4 = relax.tile %u repeats = [2]
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "repetition"
// TYPES: "relax.repeat"{{.*}} -> !relax.tensor<[n, 6], f32>
// TYPES: "relax.repeat"{{.*}} -> !relax.tensor<[6 * n], f32>
// TYPES: "relax.repeat"{{.*}} -> !relax.tensor<[_], f32>
// TYPES: "relax.tile"{{.*}} -> !relax.tensor<[2, n, 6], f32>
// TYPES: "relax.tile"{{.*}} -> !relax.tensor<[_, 4], f32>
relax.func @repetition[%n](%x: !relax.tensor<[n, 2], f32>, %u: !relax.tensor<[_, 2], f32>) -> !relax.object {
  %0 = relax.repeat %x repeats = 3 axis = 1
  %1 = relax.repeat %x repeats = 3
  %2 = relax.repeat %u repeats = 3
  %3 = relax.tile %x repeats = [2, 1, 3]
  %4 = relax.tile %u repeats = [2]
  relax.return %x
}
