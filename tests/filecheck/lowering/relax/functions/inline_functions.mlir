// RUN: relax-opt %s -p inline-functions --split-input-file | filecheck %s
// RUN: relax-opt %s -p inline-functions,inline-functions --split-input-file | filecheck %s
// RUN: relax-opt %s -p inline-functions --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// The symbols of the callee become those of the arguments, its witness a value of the caller; the function goes.
// CHECK-NOT:   private
// CHECK-LABEL: relax.func @static
// CHECK-NEXT:    %m = relax.prim 4 * n
// CHECK-NEXT:    %0 = relax.add %x, %x
// CHECK-NEXT:    relax.call_packed "show"(%m)
// CHECK-NEXT:    %w = relax.constant "weight" : !relax.tensor<[1], f32>
// CHECK-NEXT:    %1 = relax.multiply %0, %w
// CHECK-NEXT:    relax.return %1
// LOC: relax.add %x, %x loc("{{.*}}inline_functions.mlir":23:3)
relax.func private @twice[%m](%y: !relax.tensor<[m], f32>) -> !relax.tensor<[m], f32> impure {
  %0 = relax.add %y, %y
  relax.call_packed "show"(%m)
  %w = relax.constant "weight" : !relax.tensor<[1], f32>
  %1 = relax.multiply %0, %w
  relax.return %1
}
relax.func @static[%n](%x: !relax.tensor<[4 * n], f32>) -> !relax.tensor<[4 * n], f32> impure {
  %0 = relax.call @twice(%x) impure : !relax.tensor<[4 * n], f32>
  relax.return %0
}

// -----

// What only the run time knows is bound and checked; symbols get new names where they would clash.
// CHECK-LABEL: relax.func @dynamic
// CHECK-NEXT:    %0 = relax.tuple(%x, %y)
// CHECK-NEXT:    %1, %n_1 = relax.match_cast %0 : !relax.tuple<!relax.tensor<[n_1], f32>, !relax.tensor<[2 * n_1], f32>> binds [n_1 in [1, 8]] {subject = "arguments of @join"}
// CHECK-NEXT:    %x_1 = relax.tuple_get %1[0]
// CHECK-NEXT:    %y_1 = relax.tuple_get %1[1]
// CHECK-NEXT:    %2 = relax.concat %x_1, %y_1
// CHECK-NEXT:    %3 = relax.match_cast %2 : !relax.tensor<[_], f32> {subject = "result of @join"}
// CHECK-NEXT:    relax.return %3
relax.func private @join[%n in [1, 8]](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[2 * n], f32>) -> !relax.tensor<[3 * n], f32> {
  %0 = relax.concat %x, %y
  relax.return %0
}
relax.func @dynamic[%n](%x: !relax.tensor<[_], f32>, %y: !relax.tensor<[n], f32>) -> !relax.tensor<[_], f32> {
  %0 = relax.call @join(%x, %y) : !relax.tensor<[_], f32>
  relax.return %0
}

// -----

// Dataflow regions do not nest: that of the callee dissolves. Symbols that are bound inside are new in each copy.
// CHECK-LABEL: relax.func @dataflow
// CHECK-NEXT:    %0 = relax.dataflow {
// CHECK-NEXT:      %1 = relax.unique %x
// CHECK-NEXT:      %2, %u = relax.match_cast %1 : !relax.tensor<[u], f32> binds [u]
// CHECK-NEXT:      %x_1 = relax.match_cast %2 : !relax.tensor<[_], f32>
// CHECK-NEXT:      %3 = relax.unique %x_1
// CHECK-NEXT:      %4, %u_1 = relax.match_cast %3 : !relax.tensor<[u_1], f32> binds [u_1]
// CHECK-NEXT:      %5 = relax.match_cast %4 : !relax.tensor<[_], f32>
// CHECK-NEXT:      relax.output %5
relax.func private @unique(%x: !relax.tensor<[_], f32>) -> !relax.tensor<[_], f32> {
  %0 = relax.dataflow {
    %1 = relax.unique %x
    %2, %u = relax.match_cast %1 : !relax.tensor<[u], f32> binds [u]
    relax.output %2
  }
  relax.return %0
}
relax.func @dataflow(%x: !relax.tensor<[_], f32>) -> !relax.tensor<[_], f32> {
  %0 = relax.dataflow {
    %1 = relax.call @unique(%x) : !relax.tensor<[_], f32>
    %2 = relax.call @unique(%1) : !relax.tensor<[_], f32>
    relax.output %2
  }
  relax.return %0
}

// -----

// Recursion stays; what calls it and is called from outside it only is inlined.
// CHECK-LABEL: relax.func private @even
// CHECK:         relax.call @odd
// CHECK-LABEL: relax.func private @odd
// CHECK:         relax.call @even
// CHECK-NOT:   @start
// CHECK-LABEL: relax.func @recursion
// CHECK-NEXT:    %0 = relax.call @even(%x)
// CHECK-NEXT:    relax.return %0
relax.func private @even(%x: !relax.tensor<[], f32>) -> !relax.tensor<[], f32> {
  %0 = relax.call @odd(%x) : !relax.tensor<[], f32>
  relax.return %0
}
relax.func private @odd(%x: !relax.tensor<[], f32>) -> !relax.tensor<[], f32> {
  %0 = relax.call @even(%x) : !relax.tensor<[], f32>
  relax.return %0
}
relax.func private @start(%x: !relax.tensor<[], f32>) -> !relax.tensor<[], f32> {
  %0 = relax.call @even(%x) : !relax.tensor<[], f32>
  relax.return %0
}
relax.func @recursion(%x: !relax.tensor<[], f32>) -> !relax.tensor<[], f32> {
  %0 = relax.call @start(%x) : !relax.tensor<[], f32>
  relax.return %0
}

// -----

// Public functions, and in a dataflow region those with control flow, stay calls.
// CHECK-LABEL: relax.func @stays
// CHECK:         relax.call @public
// CHECK:         relax.call @branches
// CHECK-NOT:     relax.call
relax.func @public(%x: !relax.tensor<[], f32>) -> !relax.tensor<[], f32> {
  relax.return %x
}
relax.func private @branches(%x: !relax.tensor<[], f32>, %c: !relax.prim<i1>) -> !relax.tensor<[], f32> {
  %0 = relax.if %c {
    relax.yield %x
  } else {
    %1 = relax.negative %x
    relax.yield %1
  }
  relax.return %0
}
relax.func @stays(%x: !relax.tensor<[], f32>, %c: !relax.prim<i1>) -> !relax.tensor<[], f32> {
  %0 = relax.call @public(%x) : !relax.tensor<[], f32>
  %1 = relax.dataflow {
    %2 = relax.call @branches(%0, %c) : !relax.tensor<[], f32>
    relax.output %2
  }
  %3 = relax.call @branches(%1, %c) : !relax.tensor<[], f32>
  relax.return %3
}
