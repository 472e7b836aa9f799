// RUN: relax-opt %s -p simplify-match-cast --split-input-file | filecheck %s
// RUN: relax-opt %s -p simplify-match-cast,simplify-match-cast --split-input-file | filecheck %s
// RUN: relax-opt %s -p simplify-match-cast --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// A bound symbol that is known becomes what it is, its witness a value; what was forgotten is known again.
// CHECK-LABEL: relax.func @redundant
// CHECK-NEXT:    %m = relax.prim n + 1
// CHECK-NEXT:    %0 = relax.flatten %x
// CHECK-NEXT:    relax.call_packed "show"(%m, %0)
// CHECK-NEXT:    %s = relax.shape [n + 1]
// CHECK-NEXT:    %1 = relax.zeros %s dtype = f32
// CHECK-NEXT:    relax.return %1
// LOC: relax.prim n + 1 loc("{{.*}}simplify_match_cast.mlir":15:3)
relax.func @redundant[%n](%x: !relax.tensor<[n + 1, 4], f32>) -> !relax.tensor<[_], f32> impure {
  %0, %m = relax.match_cast %x : !relax.tensor<[m, 4], f32> binds [m]
  %1 = relax.match_cast %0 : !relax.tensor<[_, _], f32>
  %2 = relax.flatten %1
  relax.call_packed "show"(%m, %2)
  %s = relax.shape [m]
  %3 = relax.zeros %s dtype = f32
  relax.return %3
}

// -----

// Of two casts the one stays that checks what both do.
// CHECK-LABEL: relax.func @merged
// CHECK-NEXT:    %0, %k = relax.match_cast %y : !relax.tensor<[k], f32> binds [k]
// CHECK-NEXT:    relax.return %0
relax.func @merged(%y: !relax.object) -> !relax.object {
  %0 = relax.match_cast %y : !relax.tensor<*, _>
  %1 = relax.match_cast %0 : !relax.tensor<[_], f32>
  %2, %k = relax.match_cast %1 : !relax.tensor<[k], f32> binds [k]
  relax.return %2
}

// -----

// Checks that may fail stay: what is not implied, what somebody else uses, what is out of the bounds.
// CHECK-LABEL: relax.func @needed
// CHECK-NEXT:    relax.match_cast %x : !relax.tensor<[4], f32>
// CHECK-NEXT:    relax.match_cast %y : !relax.tensor<*, f32>
// CHECK-NEXT:    relax.match_cast %{{.*}} : !relax.tensor<[k], f32> binds [k]
// CHECK-NEXT:    relax.match_cast %x : !relax.tensor<[b], f32> binds [b in [1, 8]]
relax.func @needed[%n](%x: !relax.tensor<[n], f32>, %y: !relax.object) -> !relax.object {
  %0 = relax.match_cast %x : !relax.tensor<[4], f32>
  %1 = relax.match_cast %y : !relax.tensor<*, f32>
  %2, %k = relax.match_cast %1 : !relax.tensor<[k], f32> binds [k]
  %3, %b = relax.match_cast %x : !relax.tensor<[b], f32> binds [b in [1, 8]]
  %4 = relax.tuple(%0, %1, %2, %3)
  relax.return %4
}

// -----

// The bounds of a symbol may prove a cast.
// CHECK-LABEL: relax.func @bounds
// CHECK-NEXT:    relax.return %x
relax.func @bounds[%n in [2, 4]](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0, %b = relax.match_cast %x : !relax.tensor<[b], f32> binds [b in [1, 8]]
  relax.return %0
}

// -----

// A symbol that a region passes on is replaced outside too.
// CHECK-LABEL: relax.func @passed_on
// CHECK-NEXT:    %0, %m = relax.dataflow {
// CHECK-NEXT:      %m_1 = relax.prim n
// CHECK-NEXT:      %1 = relax.exp %x
// CHECK-NEXT:      relax.output %1, %m_1
// CHECK-NEXT:    }
// CHECK-NEXT:    %2 = relax.shape [n]
relax.func @passed_on[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0, %m = relax.dataflow {
    %1, %m = relax.match_cast %x : !relax.tensor<[m], f32> binds [m]
    %2 = relax.exp %1
    relax.output %2, %m
  }
  %3 = relax.shape [m]
  %4 = relax.tuple(%0, %3)
  relax.return %4
}

// -----

// Here the sum can only fail; that stays a matter of the run.
// CHECK-LABEL: relax.func @fails
// CHECK-NEXT:    relax.match_cast
// CHECK-NEXT:    relax.add
relax.func @fails(%x: !relax.tensor<[2], f32>, %y: !relax.tensor<[3], f32>) -> !relax.object {
  %0 = relax.match_cast %x : !relax.tensor<[_], f32>
  %1 = relax.add %0, %y
  relax.return %1
}
