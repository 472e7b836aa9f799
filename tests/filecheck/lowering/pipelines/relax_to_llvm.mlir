// RUN: relax-opt %s -p relax-to-llvm | filecheck %s
// RUN: relax-opt %s -p relax-to-vm,tir-to-llvm | filecheck %s --check-prefix KERNELS
// RUN: relax-opt %s -p relax-to-llvm | relax-opt -p relax-to-llvm | filecheck %s

// One llvm module: the kernel, the function that calls it directly, and the entry for tvm-ffi.
// CHECK-DAG: llvm.func @exp(%n: i64, %{{.*}}: !llvm.ptr {{.*}}, %{{.*}}: !llvm.ptr {{.*}}) -> i32
// CHECK-DAG: llvm.call @exp(
// CHECK-DAG: llvm.func @__tvm_ffi_main(

// Only PrimFuncs; the other functions call them as before.
// KERNELS-DAG: llvm.func @exp(%n: i64
// KERNELS-DAG: vm.call_kernel @exp

relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.call_tir @exp(%x) : !relax.tensor<[n], f32>
  relax.return %0
}

tir.prim_func @exp[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    tir.block "exp" (%vi = spatial %i in %n) {
      %x = tir.load %X[%vi]
      %y = math.exp %x : f32
      tir.store %y, %Y[%vi]
    }
  }
}
