// RUN: relax-opt %s -p to-non-dataflow | filecheck %s
// RUN: relax-opt %s -p to-non-dataflow,to-non-dataflow | filecheck %s
// RUN: relax-opt %s -p to-non-dataflow --print-debuginfo | filecheck %s --check-prefix LOC

// The ops of the region take its place, and its outputs that of its results.
// CHECK-LABEL: relax.func @main
// CHECK-NEXT:    %a = relax.exp %x
// CHECK-NEXT:    %b = relax.add %a, %x
// CHECK-NEXT:    %c = relax.negative %b
// CHECK-NEXT:    relax.return %c
// CHECK-NOT:   relax.dataflow
// LOC: relax.add %a, %x loc("{{.*}}to_non_dataflow.mlir":

relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %r = relax.dataflow {
    %a = relax.exp %x
    %b = relax.add %a, %x
    relax.output %b
  }
  %c = relax.negative %r
  relax.return %c
}

// -----

// Two regions bind a symbol of one name, each for itself: one of them gets another.
// CHECK-LABEL: relax.func @same_symbol
// CHECK-NEXT:    relax.match_cast %x : !relax.tensor<[k_1], f32> binds [k_1]
// CHECK-NEXT:    relax.match_cast %x : !relax.tensor<[k], f32> binds [k]
// CHECK-NEXT:    relax.tuple
relax.func @same_symbol(%x: !relax.tensor<[_], f32>) -> !relax.object {
  %0 = relax.dataflow {
    %1, %k = relax.match_cast %x : !relax.tensor<[k], f32> binds [k]
    relax.output %1
  }
  %2 = relax.dataflow {
    %3, %k = relax.match_cast %x : !relax.tensor<[k], f32> binds [k]
    relax.output %3
  }
  %4 = relax.tuple(%0, %2)
  relax.return %4
}

// What a closure binds for itself is its own: another symbol of the region may have that name behind it.
// CHECK-LABEL: relax.func @closure
// CHECK-NEXT:    relax.closure [%m](%y: !relax.tensor<[m], f32>) -> !relax.tensor<[m], f32>
// CHECK:         relax.match_cast %x : !relax.tensor<[m_1], f32> binds [m_1]
relax.func @closure(%x: !relax.tensor<[_], f32>) -> !relax.object {
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
