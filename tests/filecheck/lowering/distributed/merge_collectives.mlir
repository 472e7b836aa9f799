// RUN: relax-opt %s -p merge-collectives --split-input-file | filecheck %s

// A sum of two all-reduces is one.
// CHECK-LABEL: relax.func @sum[
// CHECK-NEXT:    %0 = relax.add %a, %b
// CHECK-NEXT:    %1 = relax.ccl.allreduce %0 group = "x"
// CHECK-NEXT:    relax.return %1
relax.func @sum[%n](%a: !relax.tensor<[n, 4096], f32>, %b: !relax.tensor<[n, 4096], f32>) -> !relax.object {
  %0 = relax.ccl.allreduce %a group = "x"
  %1 = relax.ccl.allreduce %b group = "x"
  %2 = relax.add %0, %1
  relax.return %2
}

// -----

// So is one in which a term is broadcast.
// CHECK-LABEL: relax.func @broadcast[
// CHECK-NEXT:    %0 = relax.add %b, %a
// CHECK-NEXT:    %1 = relax.ccl.allreduce %0 group = "x"
// CHECK-NEXT:    relax.return %1
relax.func @broadcast[%n](%a: !relax.tensor<[n, 4096], f32>, %b: !relax.tensor<[4096], f32>) -> !relax.object {
  %0 = relax.ccl.allreduce %a group = "x"
  %1 = relax.ccl.allreduce %b group = "x"
  %2 = relax.add %1, %0
  relax.return %2
}

// -----

// Not so if something else uses one, if the sum is larger than both, or if the greatest is what workers look for.
// CHECK-LABEL: relax.func @others[
// CHECK-COUNT-5: relax.ccl.allreduce
relax.func @others[%n](%a: !relax.tensor<[n, 1], f32>, %b: !relax.tensor<[65536], f32>) -> !relax.object {
  %0 = relax.ccl.allreduce %a group = "x"
  %1 = relax.ccl.allreduce %b group = "x"
  %2 = relax.add %0, %1
  %3 = relax.ccl.allreduce %2 op_type = "max" group = "x"
  %4 = relax.ccl.allreduce %a op_type = "max" group = "x"
  %5 = relax.add %3, %4
  %6 = relax.ccl.allreduce %5 group = "x"
  %7 = relax.add %6, %5
  relax.return %7
}

// -----

// Small ones that do not wait for each other are one of all elements; the third one needs the result of the first.
// CHECK-LABEL: relax.func @small[
// CHECK-NEXT:    %0 = relax.exp %b
// CHECK-NEXT:    %1 = relax.shape [4 * n]
// CHECK-NEXT:    %2 = relax.reshape %a, %1
// CHECK-NEXT:    %3 = relax.shape [8]
// CHECK-NEXT:    %4 = relax.reshape %0, %3
// CHECK-NEXT:    %5 = relax.concat %2, %4
// CHECK-NEXT:    %6 = relax.ccl.allreduce %5 group = "x"
// CHECK-NEXT:    %7, %8 = relax.split %6 indices = [4 * n]
// CHECK-NEXT:    %9 = relax.shape [n, 4]
// CHECK-NEXT:    %10 = relax.shape [8]
// CHECK-NEXT:    %11 = relax.reshape %7, %9
// CHECK-NEXT:    %12 = relax.reshape %8, %10
// CHECK-NEXT:    %13 = relax.negative %11
// CHECK-NEXT:    %14 = relax.ccl.allreduce %13 group = "x"
// CHECK-NEXT:    %15 = relax.ccl.allreduce %a op_type = "max" group = "x"
// CHECK-NEXT:    relax.tuple(%12, %14, %15)
relax.func @small[%n](%a: !relax.tensor<[n, 4], f32>, %b: !relax.tensor<[8], f32>) -> !relax.object {
  %0 = relax.ccl.allreduce %a group = "x"
  %1 = relax.exp %b
  %2 = relax.ccl.allreduce %1 group = "x"
  %3 = relax.negative %0
  %4 = relax.ccl.allreduce %3 group = "x"
  %5 = relax.ccl.allreduce %a op_type = "max" group = "x"
  %6 = relax.tuple(%2, %4, %5)
  relax.return %6
}
