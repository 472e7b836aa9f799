// RUN: relax-opt %s -p topological-sort --split-input-file | filecheck %s --check-prefixes CHECK,DFI
// RUN: relax-opt %s -p "topological-sort{order=breadth-first}" --split-input-file | filecheck %s --check-prefixes CHECK,BFI
// RUN: relax-opt %s -p "topological-sort{direction=from-outputs}" --split-input-file | filecheck %s --check-prefixes CHECK,DFO
// RUN: relax-opt %s -p "topological-sort{order=breadth-first direction=from-outputs}" --split-input-file | filecheck %s --check-prefixes CHECK,BFO
// RUN: relax-opt %s -p topological-sort --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// Two chains that meet, a constant that is needed at the end only, and an op that nothing needs.
// CHECK-LABEL: relax.func @order
// CHECK-NEXT:    relax.dataflow
// DFI-NEXT:      relax.exp
// DFI-NEXT:      relax.log
// DFI-NEXT:      relax.tan
// DFI-NEXT:      relax.constant
// DFI-NEXT:      relax.sin
// DFI-NEXT:      relax.cos
// DFI-NEXT:      relax.add
// DFI-NEXT:      relax.multiply
// BFI-NEXT:      relax.exp
// BFI-NEXT:      relax.constant
// BFI-NEXT:      relax.sin
// BFI-NEXT:      relax.log
// BFI-NEXT:      relax.tan
// BFI-NEXT:      relax.cos
// BFI-NEXT:      relax.add
// BFI-NEXT:      relax.multiply
// DFO-NEXT:      relax.exp
// DFO-NEXT:      relax.log
// DFO-NEXT:      relax.sin
// DFO-NEXT:      relax.cos
// DFO-NEXT:      relax.add
// DFO-NEXT:      relax.constant
// DFO-NEXT:      relax.multiply
// DFO-NEXT:      relax.tan
// BFO-NEXT:      relax.exp
// BFO-NEXT:      relax.sin
// BFO-NEXT:      relax.log
// BFO-NEXT:      relax.cos
// BFO-NEXT:      relax.add
// BFO-NEXT:      relax.constant
// BFO-NEXT:      relax.multiply
// BFO-NEXT:      relax.tan
// CHECK-NEXT:    relax.output
// LOC: relax.log {{.*}} loc("{{.*}}topological_sort.mlir":49:5)
relax.func @order(%x: !relax.tensor<[4], f32>, %y: !relax.tensor<[4], f32>) -> !relax.tensor<[4], f32> {
  %0 = relax.dataflow {
    %1 = relax.exp %x
    %2 = relax.constant dense<2.0> : tensor<f32>
    %3 = relax.sin %y
    %4 = relax.log %1
    %5 = relax.tan %1
    %6 = relax.cos %3
    %7 = relax.add %4, %6
    %8 = relax.multiply %7, %2
    relax.output %8
  }
  relax.return %0
}

// -----

// An op that names a symbol comes behind the cast that binds it, although it does not use the witness.
// CHECK-LABEL: relax.func @symbols
// CHECK-NEXT:    relax.dataflow
// CHECK:           relax.match_cast %x : !relax.tensor<[m], f32> binds [m]
// CHECK:           relax.shape [m]
relax.func @symbols(%x: !relax.tensor<[_], f32>) -> !relax.object {
  %0, %1, %2 = relax.dataflow {
    %3, %m = relax.match_cast %x : !relax.tensor<[m], f32> binds [m]
    %4 = relax.exp %x
    %5 = relax.shape [m]
    relax.output %5, %4, %3
  }
  %6 = relax.tuple(%0, %1, %2)
  relax.return %6
}

// -----

// A closure has to stay in front of a cast that binds a symbol of the name that it binds itself.
// CHECK-LABEL: relax.func @same_name
// CHECK-NEXT:    relax.dataflow
// CHECK-NEXT:      relax.closure [%m]
// CHECK:           relax.match_cast %x : !relax.tensor<[m], f32> binds [m]
relax.func @same_name(%x: !relax.tensor<[_], f32>) -> !relax.object {
  %0, %1 = relax.dataflow {
    %2 = relax.closure [%m](%y: !relax.tensor<[m], f32>) -> !relax.tensor<[m], f32> {
      relax.return %y
    }
    %3, %m = relax.match_cast %x : !relax.tensor<[m], f32> binds [m]
    relax.output %3, %2
  }
  %4 = relax.tuple(%0, %1)
  relax.return %4
}

// -----

// Ops outside of a region stay where they are.
// CHECK-LABEL: relax.func @outside
// CHECK-NEXT:    relax.exp
// CHECK-NEXT:    relax.sin
// CHECK-NEXT:    relax.log
relax.func @outside(%x: !relax.tensor<[4], f32>) -> !relax.object {
  %0 = relax.exp %x
  %1 = relax.sin %x
  %2 = relax.log %0
  %3 = relax.tuple(%2, %1)
  relax.return %3
}
