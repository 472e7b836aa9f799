// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP
// RUN: relax-opt %s --print-op-generic | filecheck %s --check-prefix TYPES

// Matrices, vectors and batches; a vector's dimension is not in the result.
// CHECK-LABEL: relax.func @matmul[
// CHECK-NEXT:      %0 = relax.matmul %x, %y
// CHECK-NEXT:      %1 = relax.matmul %x, %v
// CHECK-NEXT:      %2 = relax.matmul %v, %y
// CHECK-NEXT:      %3 = relax.matmul %v, %v
// CHECK-NEXT:      %4 = relax.matmul %t, %w
// CHECK-NEXT:      %5 = relax.matmul %x, %y out_dtype = f64
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "matmul"
// TYPES: "relax.matmul"{{.*}} -> !relax.tensor<[n, m], f32>
// TYPES: "relax.matmul"{{.*}} -> !relax.tensor<[n], f32>
// TYPES: "relax.matmul"{{.*}} -> !relax.tensor<[m], f32>
// TYPES: "relax.matmul"{{.*}} -> !relax.tensor<[], f32>
// TYPES: "relax.matmul"{{.*}} -> !relax.tensor<[b, 4, n, m], f32>
// TYPES: "relax.matmul"{{.*}} -> !relax.tensor<[n, m], f64>
relax.func @matmul[%n, %k, %m, %b](%x: !relax.tensor<[n, k], f32>, %y: !relax.tensor<[k, m], f32>, %v: !relax.tensor<[k], f32>, %t: !relax.tensor<[b, 1, n, k], f32>, %w: !relax.tensor<[4, k, m], f32>) -> !relax.object {
  %0 = relax.matmul %x, %y
  %1 = relax.matmul %x, %v
  %2 = relax.matmul %v, %y
  %3 = relax.matmul %v, %v
  %4 = relax.matmul %t, %w
  %5 = relax.matmul %x, %y out_dtype = f64
  relax.return %x
}

// Contracted dimensions that may be equal are checked at run time; of unknown ranks nothing is known.
// CHECK-LABEL: relax.func @matmul_unknown[
// CHECK-NEXT:      %0 = relax.matmul %x, %y
// CHECK-NEXT:      %1 = relax.matmul %u, %x
// CHECK-NEXT:      %2 = relax.matmul %x, %v
// CHECK-NEXT:      relax.return %x
// TYPES-LABEL: sym_name = "matmul_unknown"
// TYPES: "relax.matmul"{{.*}} -> !relax.tensor<[n, 4], f32>
// TYPES: "relax.matmul"{{.*}} -> !relax.tensor<[_, k], f32>
// TYPES: "relax.matmul"{{.*}} -> !relax.tensor<*, f32>
relax.func @matmul_unknown[%n, %k, %m](%x: !relax.tensor<[n, k], f32>, %y: !relax.tensor<[m, 4], f32>, %u: !relax.tensor<[_, _], f32>, %v: !relax.tensor<*, f32>) -> !relax.object {
  %0 = relax.matmul %x, %y
  %1 = relax.matmul %u, %x
  %2 = relax.matmul %x, %v
  relax.return %x
}

// CHECK-LABEL: relax.func @outer[
// CHECK-NEXT:      %0 = relax.outer %x, %y
// CHECK-NEXT:      relax.return %0
// TYPES-LABEL: sym_name = "outer"
// TYPES: "relax.outer"{{.*}} -> !relax.tensor<[n, m], f32>
relax.func @outer[%n, %m](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[m], f32>) -> !relax.object {
  %0 = relax.outer %x, %y
  relax.return %0
}

// Letters that are not in the result are summed over.
// CHECK-LABEL: relax.func @einsum[
// CHECK-NEXT:      %0 = relax.einsum %x, %y subscripts = "bij,bjk->bik"
// CHECK-NEXT:      %1 = relax.einsum %s subscripts = "ii->i"
// CHECK-NEXT:      %2 = relax.einsum %s subscripts = "ii"
// CHECK-NEXT:      %3 = relax.einsum %x, %y subscripts = "bij,bjk"
// CHECK-NEXT:      relax.return %0
// TYPES-LABEL: sym_name = "einsum"
// TYPES: "relax.einsum"{{.*}} -> !relax.tensor<[b, n, 4], f32>
// TYPES: "relax.einsum"{{.*}} -> !relax.tensor<[n], f32>
// TYPES: "relax.einsum"{{.*}} -> !relax.tensor<[], f32>
// TYPES: "relax.einsum"{{.*}} -> !relax.tensor<[n, 4], f32>
relax.func @einsum[%b, %n, %k](%x: !relax.tensor<[b, n, k], f32>, %y: !relax.tensor<[b, k, 4], f32>, %s: !relax.tensor<[n, n], f32>) -> !relax.object {
  %0 = relax.einsum %x, %y subscripts = "bij,bjk->bik"
  %1 = relax.einsum %s subscripts = "ii->i"
  %2 = relax.einsum %s subscripts = "ii"
  %3 = relax.einsum %x, %y subscripts = "bij,bjk"
  relax.return %0
}
