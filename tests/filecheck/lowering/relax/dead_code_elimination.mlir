// RUN: relax-opt %s -p dead-code-elimination --split-input-file | filecheck %s
// RUN: relax-opt %s -p dead-code-elimination,dead-code-elimination --split-input-file | filecheck %s
// RUN: relax-opt %s -p "dead-code-elimination{entry=main}" --split-input-file | filecheck %s --check-prefix ENTRY
// RUN: relax-opt %s -p dead-code-elimination --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// Unread outputs of a region go, and what they need; so do functions that are only called there.
// CHECK-NOT:   @helper
// CHECK-LABEL: relax.func @main
// CHECK-NEXT:    %0 = relax.dataflow {
// CHECK-NEXT:      %1 = relax.exp %x
// CHECK-NEXT:      relax.output %1
// CHECK-NEXT:    }
// CHECK-NEXT:    relax.return %0
// LOC-LABEL: relax.func @main
// LOC-NEXT:    relax.dataflow {
// LOC:         relax.output %1 loc("{{.*}}dead_code_elimination.mlir":25:5)
// LOC-NEXT:    } loc("{{.*}}dead_code_elimination.mlir":22:3)
relax.func private @helper(%x: !relax.object) -> !relax.object {
  relax.return %x
}
relax.func @main(%x: !relax.tensor<[4], f32>) -> !relax.tensor<[4], f32> {
  %0, %1 = relax.dataflow {
    %2 = relax.exp %x
    %3 = relax.call @helper(%x) : !relax.object
    relax.output %2, %3
  }
  relax.return %0
}

// -----

// Branches: the unread value goes from both, the one with an effect stays.
// CHECK-LABEL: relax.func @main
// CHECK-NEXT:    %0 = relax.if %c {
// CHECK-NEXT:      relax.call_packed "show"(%x)
// CHECK-NEXT:      relax.yield %x
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %1 = relax.exp %x
// CHECK-NEXT:      relax.yield %1
// CHECK-NEXT:    }
// CHECK-NEXT:    relax.return %0
relax.func @main(%x: !relax.tensor<[4], f32>, %c: !relax.prim<i1>) -> !relax.tensor<[4], f32> impure {
  %0, %1 = relax.if %c {
    relax.call_packed "show"(%x)
    %2 = relax.log %x
    relax.yield %x, %2
  } else {
    %3 = relax.exp %x
    relax.yield %3, %3
  }
  relax.return %0
}

// -----

// A symbol that a type names keeps the cast that binds it, also as the output of a region.
// CHECK-LABEL: relax.func @main
// CHECK-NEXT:    %k = relax.dataflow {
// CHECK-NEXT:      %0, %l = relax.match_cast %x : !relax.tensor<[k], f32> binds [k]
// CHECK-NEXT:      relax.output %l
// CHECK-NEXT:    }
// CHECK-NEXT:    %1 = relax.shape [k]
// CHECK-NEXT:    relax.return %1
relax.func @main(%x: !relax.tensor<[_], f32>, %y: !relax.tensor<[_], f32>) -> !relax.shape<[_]> {
  %0, %k = relax.dataflow {
    %1, %l = relax.match_cast %x : !relax.tensor<[k], f32> binds [k]
    relax.output %1, %l
  }
  %2, %m = relax.match_cast %y : !relax.tensor<[m], f32> binds [m]
  %3 = relax.shape [m]
  %4 = relax.shape [k]
  relax.return %4
}

// -----

// Functions that only call each other are out of reach; kernels of a kept function are not. With one entry named,
// other public functions go as well.
// CHECK-NOT:   @even
// CHECK-NOT:   @odd
// CHECK-LABEL: relax.func @main
// CHECK-LABEL: tir.prim_func private @kernel
// CHECK-LABEL: relax.func @other
// ENTRY-LABEL: relax.func @main(%x: !relax.tensor<[2], f32>)
// ENTRY-LABEL: tir.prim_func private @kernel
// ENTRY-NOT:   @other
relax.func private @even(%x: !relax.object) -> !relax.object {
  %0 = relax.call @odd(%x) : !relax.object
  relax.return %0
}
relax.func private @odd(%x: !relax.object) -> !relax.object {
  %0 = relax.call @even(%x) : !relax.object
  relax.return %0
}
relax.func @main(%x: !relax.tensor<[2], f32>) -> !relax.tensor<[2], f32> {
  %0 = relax.call_tir @kernel(%x) : !relax.tensor<[2], f32>
  relax.return %0
}
tir.prim_func private @kernel(%x: !tir.buffer<[2], f32>, %y: !tir.buffer<[2], f32>) {
}
relax.func @other(%x: !relax.object) -> !relax.object {
  relax.return %x
}
