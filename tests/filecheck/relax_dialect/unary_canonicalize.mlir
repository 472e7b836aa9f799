// RUN: relax-opt %s -p canonicalize | filecheck %s

// What undoes itself is nothing twice, and what changes nothing the second time is once.
// CHECK-LABEL: relax.func @twice
// CHECK-NEXT:    %[[ONCE:.*]] = relax.ceil %x
// CHECK-NEXT:    relax.add %[[ONCE]], %x
relax.func @twice[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.ceil %x
  %1 = relax.ceil %0
  %2 = relax.negative %x
  %3 = relax.negative %2
  %4 = relax.add %1, %3
  relax.return %4
}

// A copy that somebody may write into stays.
// CHECK-LABEL: relax.func @written
// CHECK-NEXT:    %[[ONE:.*]] = relax.negative %x
// CHECK-NEXT:    %[[TWO:.*]] = relax.negative %[[ONE]]
// CHECK-NEXT:    relax.call_packed "change"(%[[TWO]])
relax.func @written[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> impure {
  %0 = relax.negative %x
  %1 = relax.negative %0
  relax.call_packed "change"(%1)
  relax.return %1
}
