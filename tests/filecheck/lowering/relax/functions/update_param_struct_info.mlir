// RUN: relax-opt %s -p 'update-param-struct-info{x="!relax.tensor<[4, k], f32>"}' --split-input-file | filecheck %s
// RUN: relax-opt %s -p 'update-param-struct-info{x="!relax.tensor<[4, k], f32>"},update-param-struct-info{x="!relax.tensor<[4, k], f32>"}' --split-input-file | filecheck %s
// RUN: relax-opt %s -p 'update-param-struct-info{x="!relax.tensor<[4, k], f32>"}' --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// The old symbols become what the new type says, for other parameters too, and a witness a value. What the new type
// does not show is checked. The new symbol has the name, and the bounds, of an old one with another meaning.
// CHECK-LABEL: relax.func @main[%k in [1, 8], %n](%x: !relax.tensor<[4, k], f32>, %y: !relax.tensor<[4, n], f32>)
// CHECK-SAME:    -> !relax.tuple<!relax.tensor<[16], f32>, !relax.tensor<[4, n], f32>, !relax.prim<i64, 4>> {
// CHECK-NEXT:    %x_1 = relax.match_cast %x : !relax.tensor<[4, 4], f32>
// CHECK-NEXT:    %k_1 = relax.prim 4
// CHECK-NEXT:    %0 = relax.flatten %x_1
// CHECK-NEXT:    %1 = relax.tuple(%0, %y, %k_1)
// LOC: relax.flatten %x_1 loc("{{.*}}update_param_struct_info.mlir":15:3)
relax.func @main[%n, %k in [1, 8]](%x: !relax.tensor<[k, k], f32>, %y: !relax.tensor<[k, n], f32>) -> !relax.object {
  %0 = relax.flatten %x
  %1 = relax.tuple(%0, %y, %k)
  relax.return %1
}
