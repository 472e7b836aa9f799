// RUN: relax-opt %s -p "convert-tir-to-llvm{vector_bits=512 extensions=amx-int8,amx-bf16}" | filecheck %s

// A module asks the operating system once.

// CHECK-LABEL: llvm.func internal @relax.permits_tiles() -> i8
// CHECK:         %[[FLAG:.*]] = llvm.mlir.addressof @relax.permits_tiles.known
// CHECK:         %[[KNOWN:.*]] = llvm.load %[[FLAG]]
// CHECK:         llvm.call @syscall(
// CHECK:         llvm.store {{.*}}, %[[FLAG]]

// All registers have sixteen rows of 64 bytes but two: the bytes of a row of register 5 are at 26, the rows of register 7
// at 55. Rows of A are 40 groups apart, those of C 17.

// CHECK-LABEL: llvm.func @multiply(
// CHECK:         llvm.alloca {{.*}} x vector<64xi8> {alignment = 64 : i64}
// CHECK:         llvm.call @relax.permits_tiles()
// CHECK:         llvm.call_intrinsic "llvm.x86.ldtilecfg"(%
// CHECK-NEXT:    llvm.call_intrinsic "llvm.x86.tilezero"(%
// CHECK:         llvm.call_intrinsic "llvm.x86.tileloadd64"(%{{.*}}, %{{.*}}, %{{.*}})
// CHECK:         llvm.call_intrinsic "llvm.x86.tileloadd64"(%{{.*}}, %{{.*}}, %{{.*}})
// CHECK-NEXT:    llvm.call_intrinsic "llvm.x86.tdpbusd"
// CHECK-NEXT:    llvm.call_intrinsic "llvm.x86.tdpbsud"
// CHECK-NEXT:    llvm.call_intrinsic "llvm.x86.tdpbssd"
// CHECK-NEXT:    llvm.call_intrinsic "llvm.x86.tdpbuud"
// CHECK-NEXT:    llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// CHECK:         llvm.call_intrinsic "llvm.x86.tilestored64"(%{{.*}}, %{{.*}}, %{{.*}})
// CHECK-NEXT:    llvm.call_intrinsic "llvm.x86.tilerelease"()

tir.prim_func @multiply[%rest](%A: !tir.buffer<[16, 40], i32>, %B: !tir.buffer<[16, 16], i32>,
                               %C: !tir.buffer<[16, 17], i32>) {
  %c0 = arith.constant 0 : index
  tir.configure_tiles %rest
  tir.zero_tile 0
  tir.load_tile 5, %A[%c0, %c0]
  tir.load_tile 7, %B[%c0, %c0]
  tir.dot_tiles 0, ui8 5, i8 7
  tir.dot_tiles 0, i8 5, ui8 7
  tir.dot_tiles 0, i8 5, i8 7
  tir.dot_tiles 0, ui8 5, ui8 7
  tir.dot_tiles 0, bf16 5, bf16 7
  tir.store_tile 0, %C[%c0, %c0]
  tir.release_tiles
}
