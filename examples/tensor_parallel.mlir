// A feed-forward layer on several workers, from one annotation: the first weight has its columns on them.
//
//   mpiexec -n 2 relax-run examples/tensor_parallel.mlir --mesh 2 --random "f32[4,64]" "f32[64,256]" "f32[256,64]"
//
// RUN: relax-opt %s -p propagate-sharding,lower-distributed | filecheck %s

// CHECK:      relax.func @main[%x_index, %n](
// CHECK:        %0 = relax.matmul %x, %up
// CHECK-NEXT:   %1 = relax.nn.gelu %0
// CHECK-NEXT:   %2 = relax.matmul %1, %down
// CHECK-NEXT:   %3 = relax.ccl.allreduce %2 group = "x"
// CHECK-NEXT:   %4 = relax.add %3, %x
relax.func @main[%n](%x: !relax.tensor<[n, 64], f32>, %up: !relax.tensor<[64, 256], f32, sharding<x = 2: S[1]>>,
    %down: !relax.tensor<[256, 64], f32>) -> !relax.tensor<[n, 64], f32> {
  %0 = relax.matmul %x, %up
  %1 = relax.nn.gelu %0
  %2 = relax.matmul %1, %down
  %3 = relax.add %2, %x
  relax.return %3
}
