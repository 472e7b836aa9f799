// RUN: relax-opt %s -p simplify-reshapes --split-input-file | filecheck %s
// RUN: relax-opt %s -p simplify-reshapes,simplify-reshapes --split-input-file | filecheck %s
// RUN: relax-opt %s -p simplify-reshapes --split-input-file --print-debuginfo | filecheck %s --check-prefix LOC

// What follows a product elementwise stands right behind it; shapes in between go.
// CHECK-LABEL: relax.func @epilogue
// CHECK-NEXT:    %[[PRODUCT:.*]] = relax.matmul %x, %w
// CHECK-NEXT:    %[[SUM:.*]] = relax.add %[[PRODUCT]], %b
// CHECK-NEXT:    %[[ACTIVE:.*]] = relax.nn.relu %[[SUM]]
// CHECK-NEXT:    %t = relax.shape [m, n, 2, 4]
// CHECK-NEXT:    %[[RESULT:.*]] = relax.reshape %[[ACTIVE]], %t
// CHECK-NEXT:    relax.return %[[RESULT]]
// LOC: relax.add %{{.*}} loc("{{.*}}":[[# @LINE + 5]]:3)
relax.func @epilogue[%m, %n](%y: !relax.tensor<[m, n], f32>, %x: !relax.tensor<[m * n, 8], f32>, %w: !relax.tensor<[8, 8], f32>, %b: !relax.tensor<[8], f32>) -> !relax.tensor<[m, n, 2, 4], f32> {
  %0 = relax.matmul %x, %w
  %s = relax.shape [m, n, 8]
  %1 = relax.reshape %0, %s
  %2 = relax.add %1, %b
  %3 = relax.nn.relu %2
  %t = relax.shape [m, n, 2, 4]
  %4 = relax.reshape %3, %t
  relax.return %4
}

// -----

// Views of views are one, or none.
// CHECK-LABEL: relax.func @views
// CHECK-NEXT:    %[[SUM:.*]] = relax.exp %x
// CHECK-NEXT:    %s = relax.shape [n, 3]
// CHECK-NEXT:    %[[VIEW:.*]] = relax.reshape %y, %s
// CHECK-NEXT:    relax.add %[[SUM]], %[[VIEW]]
relax.func @views[%n](%x: !relax.tensor<[n, 3], f32>, %y: !relax.tensor<[1, 3 * n], f32>) -> !relax.tensor<[n, 3], f32> {
  %0 = relax.expand_dims %x axes = [0]
  %1 = relax.squeeze %0 axes = [0]
  %2 = relax.exp %1
  %3 = relax.squeeze %y axes = [0]
  %s = relax.shape [n, 3]
  %4 = relax.reshape %3, %s
  %5 = relax.add %2, %4
  relax.return %5
}

// -----

// What meets another tensor in the new shape, is used elsewhere too, or was computed by nobody, stays.
// CHECK-LABEL: relax.func @stay
// CHECK:         relax.flatten %x
// CHECK-NEXT:    relax.exp
// CHECK-NEXT:    relax.matmul
// CHECK-NEXT:    relax.flatten
// CHECK-NEXT:    relax.add
// CHECK-NEXT:    relax.flatten
// CHECK-NEXT:    relax.exp
relax.func @stay[%n](%x: !relax.tensor<[n, 3], f32>, %w: !relax.tensor<[3, 3], f32>, %z: !relax.tensor<[3 * n], f32>) -> !relax.object {
  %0 = relax.flatten %x
  %1 = relax.exp %0
  %2 = relax.matmul %x, %w
  %3 = relax.flatten %2
  %4 = relax.add %3, %z
  %5 = relax.flatten %2
  %6 = relax.exp %5
  %7 = relax.tuple(%1, %4, %5, %6)
  relax.return %7
}
