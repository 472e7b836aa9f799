// RUN: relax-opt %s -p insert-guards | filecheck %s
// RUN: relax-opt %s -p insert-guards,insert-guards | filecheck %s

// What cannot be decided is checked; what is proved is not.
// CHECK-LABEL: relax.func @main
// CHECK-NEXT:    %0 = relax.add %x, %x
// CHECK-NEXT:    %1 = relax.guard %0, broadcast n, m, "dimensions that broadcast"
// CHECK-NEXT:    %2 = relax.add %1, %y
// CHECK-NEXT:    relax.return %2
relax.func @main[%n, %m](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[m], f32>) -> !relax.tensor<[_], f32> {
  %0 = relax.add %x, %x
  %1 = relax.add %0, %y
  relax.return %1
}
