// RUN: relax-opt %s -p canonicalize | filecheck %s

// To the dtype that the elements have.
// CHECK-LABEL: relax.func @same
// CHECK-NEXT:    relax.exp %x
relax.func @same[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.astype %x dtype = f32
  %1 = relax.exp %0
  relax.return %1
}

// The caller, which may write into what it gets, gets no argument of its own, but may have what the function has made.
// CHECK-LABEL: relax.func @returned[
// CHECK:         relax.astype %x
// CHECK-LABEL: relax.func @made
// CHECK-NEXT:    %[[Y:.*]] = relax.exp %x
// CHECK-NEXT:    relax.return %[[Y]]
relax.func @returned[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.dataflow {
    %1 = relax.astype %x dtype = f32
    relax.output %1
  }
  relax.return %0
}
relax.func @made[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
  %0 = relax.exp %x
  %1 = relax.astype %0 dtype = f32
  relax.return %1
}

// Another dtype, one that is not known, and a copy that may be written into.
// CHECK-LABEL: relax.func @stays
// CHECK-NEXT:    relax.astype %x
// CHECK-NEXT:    relax.astype %y
// CHECK-NEXT:    relax.astype %x
relax.func @stays[%n](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[n], _>) -> !relax.object impure {
  %0 = relax.astype %x dtype = f64
  %1 = relax.astype %y dtype = f32
  %2 = relax.astype %x dtype = f32
  relax.call_packed "change"(%2)
  %3 = relax.tuple(%0, %1)
  relax.return %3
}
