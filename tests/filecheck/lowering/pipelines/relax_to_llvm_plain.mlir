// RUN: relax-opt %s -p relax-to-llvm-plain | filecheck %s
// RUN: relax-opt %s -p relax-to-llvm-plain | relax-opt -p relax-to-llvm-plain | filecheck %s

// Every operator is a kernel of its own.
// CHECK-DAG: llvm.func @exp(%{{.*}}: i64, %{{.*}}: !llvm.ptr {{.*}}, %{{.*}}: !llvm.ptr {{.*}}) -> i32
// CHECK-DAG: llvm.func @negative(%{{.*}}: i64, %{{.*}}: !llvm.ptr {{.*}}, %{{.*}}: !llvm.ptr {{.*}}) -> i32
// CHECK-DAG: llvm.call @exp(
// CHECK-DAG: llvm.call @negative(
// CHECK-DAG: llvm.func @__tvm_ffi_main(
relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.exp %x
  %1 = relax.negative %0
  relax.return %1
}
