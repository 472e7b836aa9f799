// RUN: relax-opt %s -p convert-to-dataflow --split-input-file | filecheck %s
// RUN: relax-opt %s -p convert-to-dataflow,convert-to-dataflow --split-input-file | filecheck %s
// RUN: relax-opt %s -p "convert-to-dataflow{min-size=3}" --split-input-file | filecheck %s --check-prefix THREE
// RUN: relax-opt %s -p convert-to-dataflow --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// An op with an effect ends a run; a run of one op stays, and constants do not make it longer.
// CHECK-LABEL: relax.func @effects
// CHECK-NEXT:    %0 = relax.dataflow {
// CHECK-NEXT:      %1 = relax.exp %x
// CHECK-NEXT:      %2 = relax.add %1, %x
// CHECK-NEXT:      relax.output %2
// CHECK-NEXT:    }
// CHECK-NEXT:    relax.call_packed "show"(%0)
// CHECK-NEXT:    relax.prim
// CHECK-NEXT:    relax.add
// CHECK-NEXT:    relax.return
// THREE-LABEL: relax.func @effects
// THREE-NOT:     relax.dataflow
// LOC: relax.output %2 loc("{{.*}}convert_to_dataflow.mlir":23:3)
// LOC-NEXT: } loc("{{.*}}convert_to_dataflow.mlir":22:3)
relax.func @effects(%x: !relax.tensor<[4], f32>) -> !relax.object impure {
  %0 = relax.exp %x
  %1 = relax.add %0, %x
  relax.call_packed "show"(%1)
  %2 = relax.prim 3
  %3 = relax.add %1, %1
  relax.return %3
}

// -----

// Regions among the ops dissolve in the new one; branches are outside and have runs of their own.
// CHECK-LABEL: relax.func @control_flow
// CHECK-NEXT:    %0 = relax.dataflow {
// CHECK-NEXT:      %1 = relax.exp %x
// CHECK-NEXT:      %2 = relax.log %1
// CHECK-NEXT:      %3 = relax.sin %2
// CHECK-NEXT:      relax.output %3
// CHECK-NEXT:    }
// CHECK-NEXT:    %4 = relax.if %c {
// CHECK-NEXT:      %5 = relax.dataflow {
// CHECK-NEXT:        relax.exp
// CHECK-NEXT:        relax.log
// CHECK-NEXT:        relax.output
// CHECK-NEXT:      }
// CHECK-NEXT:      relax.yield %5
// THREE-LABEL: relax.func @control_flow
// THREE-NEXT:    relax.dataflow
// THREE:         relax.if %c {
// THREE-NEXT:      relax.exp
relax.func @control_flow(%x: !relax.tensor<[4], f32>, %c: !relax.prim<i1>) -> !relax.tensor<[4], f32> {
  %0 = relax.exp %x
  %1 = relax.dataflow {
    %2 = relax.log %0
    relax.output %2
  }
  %3 = relax.sin %1
  %4 = relax.if %c {
    %5 = relax.exp %3
    %6 = relax.log %5
    relax.yield %6
  } else {
    relax.yield %3
  }
  relax.return %4
}

// -----

// Where a type behind the run names a symbol, its witness is an output.
// CHECK-LABEL: relax.func @witness
// CHECK-NEXT:    %0, %m = relax.dataflow {
// CHECK-NEXT:      %1, %m_1 = relax.match_cast %x : !relax.tensor<[m], f32> binds [m]
// CHECK-NEXT:      %2 = relax.add %1, %1
// CHECK-NEXT:      relax.output %2, %m_1
// CHECK-NEXT:    }
// CHECK-NEXT:    relax.call_packed "show"(%0)
relax.func @witness(%x: !relax.tensor<[_], f32>) -> !relax.tensor<[_], f32> impure {
  %0, %m = relax.match_cast %x : !relax.tensor<[m], f32> binds [m]
  %1 = relax.add %0, %0
  relax.call_packed "show"(%1)
  relax.return %1
}

// -----

// Recursion is control flow, a call of another pure function is not.
// CHECK-LABEL: relax.func @recursive
// CHECK-NEXT:    relax.dataflow {
// CHECK-NEXT:      relax.exp
// CHECK-NEXT:      relax.call @leaf
// CHECK-NEXT:      relax.output
// CHECK-NEXT:    }
// CHECK-NEXT:    relax.call @recursive
relax.func @recursive(%x: !relax.object, %y: !relax.tensor<[4], f32>) -> !relax.object {
  %0 = relax.exp %y
  %1 = relax.call @leaf(%x) : !relax.object
  %2 = relax.call @recursive(%1, %0) : !relax.object
  relax.return %2
}
relax.func private @leaf(%x: !relax.object) -> !relax.object {
  relax.return %x
}

// -----

// A closure that captures a value of the run starts a new one.
// CHECK-LABEL: relax.func @closure
// CHECK-NEXT:    %0 = relax.dataflow {
// CHECK-NEXT:      relax.exp
// CHECK-NEXT:      relax.log
// CHECK-NEXT:      relax.output
// CHECK-NEXT:    }
// CHECK-NEXT:    relax.closure
// CHECK:           relax.return %0
relax.func @closure(%x: !relax.tensor<[4], f32>) -> !relax.object {
  %0 = relax.exp %x
  %1 = relax.log %0
  %2 = relax.closure () -> !relax.object {
    relax.return %1
  }
  relax.return %2
}

// -----

// What is written in place by a later run stays outside: coming out of a region, somebody else might have it.
// CHECK-LABEL: relax.func @in_place
// CHECK-NEXT:    relax.exp
// CHECK-NEXT:    relax.if
tir.prim_func private @halve[%n](%x: !tir.buffer<[n], f32>) {
}
relax.func @in_place(%x: !relax.tensor<[4], f32>, %c: !relax.prim<i1>) -> !relax.object {
  %0 = relax.exp %x
  %1 = relax.if %c {
    relax.yield %x
  } else {
    relax.yield %x
  }
  %2 = relax.call_tir_inplace @halve(%0) inplace [0] : !relax.tensor<[4], f32>
  %3 = relax.add %1, %2
  relax.return %3
}

// -----

// A group holds no regions; it may be in one.
// CHECK-LABEL: relax.func @group
// CHECK-NEXT:    %0 = relax.dataflow {
// CHECK-NEXT:      %1 = relax.fused {
// CHECK-NEXT:        relax.exp
// CHECK-NEXT:        relax.exp
// CHECK-NEXT:        relax.yield
// THREE-LABEL: relax.func @group
// THREE-NEXT:    relax.fused
relax.func @group[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.fused {
    %1 = relax.exp %x
    %2 = relax.exp %1
    relax.yield %2
  }
  %3 = relax.exp %0
  relax.return %3
}
