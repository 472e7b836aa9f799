// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP

// CHECK-LABEL: llvm.func @conversions
llvm.func @conversions(%u: i8, %f: f32, %v: vector<4xf32>) {
  // CHECK: llvm_ext.uitofp %u : i8 to f32
  %0 = llvm_ext.uitofp %u : i8 to f32
  // CHECK: llvm_ext.fptosi %f : f32 to i64
  %1 = llvm_ext.fptosi %f : f32 to i64
  // CHECK: llvm_ext.fptoui %v : vector<4xf32> to vector<4xi8>
  %2 = llvm_ext.fptoui %v : vector<4xf32> to vector<4xi8>
  llvm.return
}

// CHECK-LABEL: llvm.func @vectors
llvm.func @vectors(%p: !llvm.ptr, %i: i64, %a: vector<4xf32>, %b: vector<4xf32>) {
  // CHECK: llvm_ext.fcmp "olt" %a, %b : vector<4xf32>, vector<4xi1>
  %0 = llvm_ext.fcmp "olt" %a, %b : vector<4xf32>, vector<4xi1>
  // CHECK: llvm_ext.select %{{.*}}, %a, %b : vector<4xi1>, vector<4xf32>
  %1 = llvm_ext.select %0, %a, %b : vector<4xi1>, vector<4xf32>
  // CHECK: llvm_ext.extractelement %a[%i : i64] : vector<4xf32> -> f32
  %2 = llvm_ext.extractelement %a[%i : i64] : vector<4xf32> -> f32
  // CHECK: llvm_ext.masked_load %p, %{{.*}}, %a {alignment = 4 : i32} : vector<4xi1>, vector<4xf32>
  %3 = llvm_ext.masked_load %p, %0, %a {alignment = 4 : i32} : vector<4xi1>, vector<4xf32>
  // CHECK: llvm_ext.masked_store %{{.*}}, %p, %{{.*}} {alignment = 4 : i32} : vector<4xf32>, vector<4xi1>
  llvm_ext.masked_store %3, %p, %0 {alignment = 4 : i32} : vector<4xf32>, vector<4xi1>
  // CHECK: llvm_ext.gather %p, %{{.*}}, %{{.*}}, %a {alignment = 4 : i32} : vector<4xi64>, vector<4xi1>, vector<4xf32>
  %offsets = llvm.mlir.constant(dense<[3, 1, 0, 2]> : vector<4xi64>) : vector<4xi64>
  %4 = llvm_ext.gather %p, %offsets, %0, %a {alignment = 4 : i32} : vector<4xi64>, vector<4xi1>, vector<4xf32>
  // CHECK: llvm_ext.scatter %{{.*}}, %p, %{{.*}}, %{{.*}} {alignment = 4 : i32} : vector<4xf32>, vector<4xi64>, vector<4xi1>
  llvm_ext.scatter %4, %p, %offsets, %0 {alignment = 4 : i32} : vector<4xf32>, vector<4xi64>, vector<4xi1>
  llvm.return
}

// CHECK-LABEL: llvm.func @control
llvm.func @control(%q: !llvm.ptr, %x: i64) -> i64 {
  // CHECK: llvm_ext.atomicrmw "add" %q, %x : i64
  %0 = llvm_ext.atomicrmw "add" %q, %x : i64
  // CHECK:      llvm_ext.switch %x : i64, [
  // CHECK-NEXT:   default: ^{{.*}}(%x : i64),
  // CHECK-NEXT:   42: ^{{.*}}(%{{.*}} : i64)
  llvm_ext.switch %x : i64, [
    default: ^exit(%x : i64),
    42: ^exit(%0 : i64)
  ]
^exit(%y : i64):
  llvm.return %y : i64
}
