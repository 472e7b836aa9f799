// RUN: relax-opt %s -p copy-constants | filecheck %s
// RUN: relax-opt %s -p copy-constants,copy-constants | filecheck %s
// RUN: relax-opt %s -p copy-constants --print-debuginfo | filecheck %s --check-prefix LOC

tir.prim_func private @add[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
}

// What is returned is a copy; what only reads goes on with the constant.
// CHECK-LABEL: relax.func @returned
// CHECK-NEXT:    %c = relax.constant
// CHECK-NEXT:    %[[SUM:.*]] = relax.add %x, %c
// CHECK-NEXT:    %[[SHAPE:.*]] = relax.shape [4]
// CHECK-NEXT:    %[[COPY:.*]] = relax.broadcast_to %c, %[[SHAPE]]
// CHECK-NEXT:    %[[RESULT:.*]] = relax.tuple(%[[SUM]], %[[COPY]])
// CHECK-NEXT:    relax.return %[[RESULT]]
// LOC: relax.broadcast_to {{.*}} loc("{{.*}}copy_constants.mlir":[[# @LINE + 2]]:3)
relax.func @returned(%x: !relax.tensor<[4], f32>) -> !relax.object {
  %c = relax.constant dense<0.0> : tensor<4xf32>
  %0 = relax.add %x, %c
  %1 = relax.tuple(%0, %c)
  relax.return %1
}

// The copy is made in the branch and the region that need it, and for views.
// CHECK-LABEL: relax.func @regions
// CHECK-NEXT:    %c = relax.constant
// CHECK-NEXT:    relax.dataflow {
// CHECK-NEXT:      relax.shape [4]
// CHECK-NEXT:      %[[COPY:.*]] = relax.broadcast_to %c
// CHECK-NEXT:      relax.output %[[COPY]]
// CHECK-NEXT:    }
// CHECK-NEXT:    relax.if %p {
// CHECK-NEXT:      relax.shape [2, 2]
// CHECK-NEXT:      relax.shape [4]
// CHECK-NEXT:      relax.broadcast_to %c
// CHECK-NEXT:      relax.reshape
// CHECK-NEXT:      relax.yield
// CHECK-NEXT:    } else {
// CHECK-NEXT:      relax.exp %c
relax.func @regions(%p: !relax.tensor<[], i1>, %s: !relax.shape<[2, 2]>) -> !relax.object {
  %c = relax.constant dense<0.0> : tensor<4xf32>
  %0 = relax.dataflow {
    relax.output %c
  }
  %1 = relax.if %p {
    %2 = relax.shape [2, 2]
    %3 = relax.reshape %c, %2
    relax.yield %3
  } else {
    %4 = relax.exp %c
    %5 = relax.shape [2, 2]
    %6 = relax.reshape %4, %5
    relax.yield %6
  }
  %7 = relax.tuple(%0, %1)
  relax.return %7
}

// Each branch gives the caller a copy.
// CHECK-LABEL: relax.func @branches
// CHECK-NEXT:    %c = relax.constant
// CHECK-NEXT:    relax.if %p {
// CHECK:           [[COPY:%.*]] = relax.broadcast_to %c
// CHECK:           relax.yield [[COPY]]
// CHECK:         } else {
// CHECK:           [[COPY:%.*]] = relax.broadcast_to %c
// CHECK-NEXT:      relax.yield [[COPY]]
relax.func @branches(%p: !relax.prim<i1>) -> !relax.object impure {
  %c = relax.constant dense<0.0> : tensor<4xf32>
  %1 = relax.if %p {
    relax.print "{}"(%p)
    relax.yield %c
  } else {
    relax.yield %c
  }
  relax.return %1
}

// Functions that write into what they get, or pass it on to such a one: what is read afterwards is what was written.
// CHECK-LABEL: relax.func @called
// CHECK:         %[[ONE:.*]] = relax.broadcast_to %c
// CHECK-NEXT:    relax.call @pass_on(%[[ONE]])
// CHECK-NEXT:    relax.call @same(%[[ONE]])
// CHECK-NEXT:    relax.call @read(%[[ONE]])
relax.func @called() -> !relax.object impure {
  %c = relax.constant dense<0.0> : tensor<4xf32>
  %0 = relax.call @pass_on(%c) impure
  %1 = relax.call @same(%c)
  %2 = relax.call @read(%c)
  %3 = relax.tuple(%0, %1, %2)
  relax.return %3
}
relax.func private @pass_on[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> impure {
  %0 = relax.call @write(%x) impure
  %1 = relax.exp %0
  relax.return %1
}
relax.func private @write[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> impure {
  %0 = relax.exp %x
  %1 = relax.call_tir_inplace @add(%0, %x) inplace [1] : !relax.tensor<[n], f32>
  relax.return %0
}
relax.func private @same[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  relax.return %x
}
relax.func private @read[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.call_tir @add(%x) : !relax.tensor<[n], f32>
  relax.return %0
}

// Functions that return what they get; the last one only reads.
// CHECK-LABEL: relax.func @called_pure
// CHECK:         %[[TWO:.*]] = relax.broadcast_to %c
// CHECK-NEXT:    relax.call @same(%[[TWO]])
// CHECK-NEXT:    relax.call @read(%c)
relax.func @called_pure() -> !relax.object {
  %c = relax.constant dense<0.0> : tensor<4xf32>
  %0 = relax.call @same(%c)
  %1 = relax.call @read(%c)
  %2 = relax.tuple(%0, %1)
  relax.return %2
}

// A packed function with effects may write into what it gets.
// CHECK-LABEL: relax.func @changed
// CHECK:         %[[ONE:.*]] = relax.broadcast_to %c
// CHECK-NEXT:    relax.call_packed "change"(%[[ONE]])
// CHECK-NEXT:    relax.exp %[[ONE]]
relax.func @changed() -> !relax.object impure {
  %c = relax.constant dense<0.0> : tensor<4xf32>
  relax.call_packed "change"(%c)
  %0 = relax.exp %c
  relax.return %0
}

// A pure one may return it.
// CHECK-LABEL: relax.func @packed
// CHECK:         relax.call_pure_packed "size_of"(%c)
// CHECK:         %[[TWO:.*]] = relax.broadcast_to %c
// CHECK-NEXT:    relax.call_pure_packed "same"(%[[TWO]])
// CHECK-NEXT:    relax.call_dps_packed "fill"(%c)
relax.func @packed() -> !relax.object {
  %c = relax.constant dense<0.0> : tensor<4xf32>
  %0 = relax.call_pure_packed "size_of"(%c) : !relax.tensor<[4], f32>
  %1 = relax.exp %0
  %2 = relax.call_pure_packed "same"(%c) : !relax.tensor<[4], f32>
  %3 = relax.call_dps_packed "fill"(%c) : !relax.tensor<[4], f32>
  %4 = relax.tuple(%1, %2, %3)
  relax.return %4
}

// A field of a tuple that is not taken does not leave; closures keep what they capture if they return it.
// CHECK-LABEL: relax.func @closure
// CHECK:         relax.tuple(%x, %c)
// CHECK:         %[[COPY:.*]] = relax.broadcast_to %c
// CHECK-NEXT:    relax.make_closure @same(%[[COPY]])
// CHECK-NEXT:    relax.make_closure @read(%c)
relax.func @closure(%x: !relax.tensor<[4], f32>) -> !relax.object {
  %c = relax.constant dense<0.0> : tensor<4xf32>
  %0 = relax.tuple(%x, %c)
  %1 = relax.tuple_get %0[0]
  %2 = relax.make_closure @same(%c)
  %3 = relax.make_closure @read(%c)
  %4 = relax.tuple(%1, %2, %3)
  relax.return %4
}
