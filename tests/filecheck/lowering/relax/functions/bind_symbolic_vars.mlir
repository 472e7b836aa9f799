// RUN: relax-opt %s -p 'bind-symbolic-vars{func=main n=4}' | filecheck %s
// RUN: relax-opt %s -p 'bind-symbolic-vars{func=main n=4}' --print-debuginfo | filecheck %s --check-prefix LOC

// The signature, types, properties and the witness, which becomes a value; other symbols and functions stay.
// CHECK-LABEL: relax.func @main[%k](%x: !relax.tensor<[4, k], f32>) -> !relax.tensor<[4 * k + 4], f32>
// CHECK-NEXT:    %n = relax.prim 4
// CHECK-NEXT:    relax.call_packed "show"(%n)
// CHECK-NEXT:    %0 = relax.flatten %x
// CHECK-NEXT:    %1 = relax.shape [4 * k]
// CHECK-NEXT:    %2, %m = relax.match_cast %0 : !relax.tensor<[m], f32> binds [m]
// CHECK-NEXT:    %3 = relax.reshape %2, %1
// CHECK-NEXT:    %4 = relax.shape [4]
// CHECK-NEXT:    %5 = relax.zeros %4 dtype = f32
// CHECK-LABEL: relax.func @other[%n]
// LOC: relax.flatten %x loc("{{.*}}bind_symbolic_vars.mlir":
relax.func @main[%n in [1, 8], %k](%x: !relax.tensor<[n, k], f32>) -> !relax.tensor<[n * k + n], f32> impure {
  relax.call_packed "show"(%n)
  %0 = relax.flatten %x
  %1 = relax.shape [n * k]
  %2, %m = relax.match_cast %0 : !relax.tensor<[m], f32> binds [m]
  %3 = relax.reshape %2, %1
  %4 = relax.shape [n]
  %5 = relax.zeros %4 dtype = f32
  %6 = relax.concat %3, %5 axis = 0
  relax.return %6
}
relax.func @other[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  relax.return %x
}
