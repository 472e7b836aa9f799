// RUN: relax-opt %s -p canonicalize | filecheck %s
// RUN: relax-opt %s -p canonicalize --print-debuginfo | filecheck %s --check-prefix LOC

// The branch that is taken stays; what it yields keeps the type that the result had.
// CHECK-LABEL: relax.func @known
// CHECK-NEXT:    relax.call_packed "show"(%x)
// CHECK-NEXT:    %0 = relax.exp %x
// CHECK-NEXT:    %1 = relax.match_cast %0 : !relax.tensor<[_], f32>
// CHECK-NEXT:    relax.tuple(%1, %x)
// LOC: relax.match_cast {{.*}} loc("{{.*}}control_flow_canonicalize.mlir":13:3)
relax.func @known[%n, %m](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[m], f32>) -> !relax.object impure {
  %true = relax.prim i1 true
  %0 = relax.if %true {
    relax.call_packed "show"(%x)
    %1 = relax.exp %x
    relax.yield %1
  } else {
    relax.yield %y
  }
  %false = relax.constant dense<false> : tensor<i1>
  %2 = relax.if %false {
    %3 = relax.log %x
    relax.yield %3
  } else {
    relax.yield %x
  }
  %4 = relax.tuple(%0, %2)
  relax.return %4
}

// Symbols of a branch do not leave it, so it stays.
// CHECK-LABEL: relax.func @binds
// CHECK:         relax.if
relax.func @binds(%x: !relax.tensor<[_], f32>) -> !relax.object {
  %true = relax.prim i1 true
  %0 = relax.if %true {
    %1, %k = relax.match_cast %x : !relax.tensor<[k], f32> binds [k]
    %2 = relax.add %1, %1
    relax.yield %2
  } else {
    relax.yield %x
  }
  relax.return %0
}
