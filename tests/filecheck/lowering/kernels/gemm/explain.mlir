// RUN: relax-opt %s -p "legalize-ops,schedule-cpu{target=\"x86-64-v3 cores=1\" explain=true}" | filecheck %s

// The generators whose code a kernel has, in the order in which their conditions are tested; without the option nothing says so.

// CHECK:      tir.prim_func @matmul[%m, %k, %n]
// CHECK-SAME: explain = "gemv where M = 1, else small-m where 2 <= M <= 16 and N >= 64, else small-n where N <= 7 and A is contiguous along K, and for columns that remain after whole panels, else skinny where M or N is small, or B fits the second-level cache, else packed in tiles of 6 x 16"
// CHECK:      tir.prim_func @matmul_1({{.*}}explain = "packed in tiles of 6 x 16"
// CHECK:      tir.prim_func @matmul_2({{.*}}explain = "gemv since M = 1"
// CHECK:      tir.prim_func @matmul_3({{.*}}explain = "small-m since 2 <= M <= 16 and N >= 64"
// CHECK:      tir.prim_func @matmul_4({{.*}}explain = "small-n since N <= 7 and A is contiguous along K"
// CHECK:      tir.prim_func @einsum({{.*}}explain = "operand-swap where N <= 8 and A is transposed, else skinny since M or N is small, or B fits the second-level cache"
// CHECK:      tir.prim_func @einsum_1({{.*}}explain = "dot since M <= 16 and few for K, and A and B are contiguous along K"
// CHECK-NOT:  explain

relax.func @symbolic[%m, %n, %k](%x: !relax.tensor<[m, k], f32>, %y: !relax.tensor<[k, n], f32>) -> !relax.tensor<[m, n], f32> {
  %0 = relax.matmul %x, %y
  relax.return %0
}
relax.func @large(%x: !relax.tensor<[512, 512], f32>, %y: !relax.tensor<[512, 512], f32>) -> !relax.tensor<[512, 512], f32> {
  %0 = relax.matmul %x, %y
  relax.return %0
}
relax.func @one_row(%x: !relax.tensor<[1, 512], f32>, %y: !relax.tensor<[512, 4096], f32>) -> !relax.tensor<[1, 4096], f32> {
  %0 = relax.matmul %x, %y
  relax.return %0
}
relax.func @few_rows(%x: !relax.tensor<[4, 512], f32>, %y: !relax.tensor<[512, 4096], f32>) -> !relax.tensor<[4, 4096], f32> {
  %0 = relax.matmul %x, %y
  relax.return %0
}
relax.func @few_columns(%x: !relax.tensor<[4096, 512], f32>, %y: !relax.tensor<[512, 3], f32>) -> !relax.tensor<[4096, 3], f32> {
  %0 = relax.matmul %x, %y
  relax.return %0
}
relax.func @transposed_a(%x: !relax.tensor<[512, 300], f32>, %y: !relax.tensor<[512, 3], f32>) -> !relax.tensor<[300, 3], f32> {
  %0 = relax.einsum %x, %y subscripts = "km,kn->mn"
  relax.return %0
}
relax.func @transposed_b(%x: !relax.tensor<[3, 512], f32>, %y: !relax.tensor<[600, 512], f32>) -> !relax.tensor<[3, 600], f32> {
  %0 = relax.einsum %x, %y subscripts = "mk,nk->mn"
  relax.return %0
}
relax.func @no_contraction(%x: !relax.tensor<[64, 64], f32>) -> !relax.tensor<[64, 64], f32> {
  %0 = relax.nn.relu %x
  relax.return %0
}
