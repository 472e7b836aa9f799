// RUN: relax-opt %s -p "convert-tir-to-llvm{vector-bits=256}" | filecheck %s
// RUN: relax-opt %s -p "convert-tir-to-llvm{vector-bits=128}" | filecheck %s --check-prefix NARROW

// 32 bytes that each select one of 256: the lower half of a byte selects in each row of 16, and each bit of the upper
// half between two rows.

// CHECK-LABEL:    llvm.func @table
// CHECK-NOT:        llvm_ext.gather
// CHECK:            llvm.load {{.*}} -> vector<32xi8>
// CHECK-COUNT-3:    llvm.shl {{.*}} : vector<32xi8>
// CHECK:            llvm.load {{.*}} -> vector<16xi8>
// CHECK-NEXT:       llvm.shufflevector
// CHECK-NEXT:       [[EVEN:%[0-9]+]] = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"
// CHECK:            [[ODD:%[0-9]+]] = llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"
// CHECK-NEXT:       select {{.*}}, [[ODD]], [[EVEN]]
// CHECK-COUNT-14:   llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"
// CHECK-NOT:        llvm.call_intrinsic "llvm.x86.avx2.pshuf.b"
// CHECK:            llvm.store {{.*}} : vector<32xi8>

// NARROW-LABEL:   llvm.func @table
// NARROW:           llvm_ext.gather

tir.prim_func @table(%table: !tir.buffer<[256], ui8>, %x: !tir.buffer<[32], ui8>, %y: !tir.buffer<[32], ui8>) {
  %32 = arith.constant 32 : index
  tir.for vectorized (%lane) in (%32) {
    %0 = tir.load %x[%lane]
    %1 = arith.extui %0 : i8 to i32
    %2 = arith.index_cast %1 : i32 to index
    %3 = tir.load %table[%2]
    tir.store %3, %y[%lane]
  }
}
