// RUN: relax-opt %s -p to-mixed-precision --split-input-file | filecheck %s
// RUN: relax-opt %s -p to-mixed-precision,to-mixed-precision --split-input-file | filecheck %s
// RUN: relax-opt %s -p "to-mixed-precision{dtype=bf16 out_dtype=bf16}" --split-input-file | filecheck %s --check-prefix BFLOAT
// RUN: relax-opt %s -p to-mixed-precision --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// Products get small operands and sum in f32; what lies between them follows, and softmax does not.
// CHECK-LABEL: relax.func @chain
// CHECK-NEXT:    %[[X:.*]] = relax.astype %x dtype = f16
// CHECK-NEXT:    %w = relax.constant {{.*}} : tensor<2x2xf16>
// CHECK-NEXT:    %[[FIRST:.*]] = relax.matmul %[[X]], %w out_dtype = f32
// CHECK-NEXT:    %[[SMALL:.*]] = relax.astype %[[FIRST]] dtype = f16
// CHECK-NEXT:    %[[ACTIVE:.*]] = relax.nn.relu %[[SMALL]]
// CHECK-NEXT:    %[[SECOND:.*]] = relax.matmul %[[ACTIVE]], %w out_dtype = f32
// CHECK-NEXT:    %[[SUM:.*]] = relax.add %[[SECOND]], %x
// CHECK-NEXT:    %[[RESULT:.*]] = relax.nn.softmax %[[SUM]]
// CHECK-NEXT:    relax.return %[[RESULT]]
// LOC: relax.nn.relu %{{.*}} loc("{{.*}}":[[# @LINE + 12]]:3)

// Sums in the smaller dtype too.
// BFLOAT-LABEL: relax.func @chain
// BFLOAT:         %[[FIRST:.*]] = relax.matmul %{{.*}}, %w
// BFLOAT-NEXT:    %[[ACTIVE:.*]] = relax.nn.relu %[[FIRST]]
// BFLOAT-NEXT:    %[[SECOND:.*]] = relax.matmul %[[ACTIVE]], %w
// BFLOAT-NEXT:    %[[RAISED:.*]] = relax.astype %[[SECOND]] dtype = f32
// BFLOAT-NEXT:    relax.add %[[RAISED]], %x
relax.func @chain[%n](%x: !relax.tensor<[n, 2], f32>) -> !relax.tensor<[n, 2], f32> {
  %w = relax.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %0 = relax.matmul %x, %w
  %1 = relax.nn.relu %0
  %2 = relax.matmul %1, %w
  %3 = relax.add %2, %x
  %4 = relax.nn.softmax %3 axis = -1
  relax.return %4
}

// -----

// Another dtype, and what no product needs, stay.
// CHECK-LABEL: relax.func @stay
// CHECK-NOT:     relax.astype
// CHECK:         relax.return
relax.func @stay[%n](%x: !relax.tensor<[n, n], f64>, %y: !relax.tensor<[n, n], f32>) -> !relax.object {
  %0 = relax.matmul %x, %x
  %1 = relax.sum %y axes = [0]
  %2 = relax.nn.relu %y
  %3 = relax.tuple(%0, %1, %2)
  relax.return %3
}

// -----

// In a branch, a value from outside is converted there.
// CHECK-LABEL: relax.func @branch
// CHECK-NEXT:    %r = relax.if %c {
// CHECK-NEXT:      %[[SMALL:.*]] = relax.astype %x dtype = f16
// CHECK-NEXT:      %[[RESULT:.*]] = relax.matmul %[[SMALL]], %[[SMALL]] out_dtype = f32
// CHECK-NEXT:      relax.yield %[[RESULT]]
relax.func @branch[%n](%x: !relax.tensor<[n, n], f32>, %c: !relax.tensor<[], i1>) -> !relax.tensor<[n, n], f32> {
  %r = relax.if %c {
    %0 = relax.matmul %x, %x
    relax.yield %0
  } else {
    relax.yield %x
  }
  relax.return %r
}

// -----

// What is written in between is converted anew, and so is what may be the same memory.
// CHECK-LABEL: relax.func @written
// CHECK:         relax.astype %y dtype = f16
// CHECK-NEXT:    relax.matmul
// CHECK:         relax.call_packed "fill"(%y)
// CHECK-NEXT:    relax.astype %x dtype = f16
// CHECK-NEXT:    relax.astype %y dtype = f16
relax.func @written[%n](%x: !relax.tensor<[n, n], f32>, %y: !relax.tensor<[n, n], f32>) -> !relax.object impure {
  %0 = relax.matmul %x, %y
  relax.call_packed "fill"(%y)
  %1 = relax.matmul %x, %y
  %2 = relax.tuple(%0, %1)
  relax.return %2
}
