// RUN: relax-opt %s -p "convert-tir-to-llvm{vector_bits=512 extensions=avx512dq}" --split-input-file | filecheck %s

// The maximum of x86 has NaN for NaN in its second operand. A sum with 0 makes 0 of -0.
// CHECK-LABEL: @relu6
// CHECK:         %[[MAX:.*]] = {{.*}}llvm.x86.avx512.max.ps.512
// CHECK-NEXT:    %[[SUM:.*]] = {{.*}}fadd
// CHECK:         llvm.x86.avx512.min.ps.512
// CHECK-NOT:     fadd
// CHECK-NOT:     select
tir.prim_func @relu6(%X: !tir.buffer<[16], f32>, %Y: !tir.buffer<[16], f32>) {
  %i = arith.constant 0 : index
  %x = tir.load %X[%i] : vector<16xf32>
  %0 = arith.constant 0.0 : f32
  %zeros = vector.broadcast %0 : f32 to vector<16xf32>
  %1 = arith.maximumf %x, %zeros : vector<16xf32>
  %2 = arith.constant 6.0 : f32
  %sixes = vector.broadcast %2 : f32 to vector<16xf32>
  %3 = arith.minimumf %sixes, %1 : vector<16xf32>
  tir.store %3, %Y[%i]
}

// -----

// Other widths compare and select. No sum makes -0 of 0, and NaN is not equal to itself.
// CHECK-LABEL: @others
// CHECK:         fcmp "olt"
// CHECK-NEXT:    select
// CHECK-NEXT:    fadd
// CHECK-NOT:     select
// CHECK:         llvm.minimum
// CHECK:         llvm.maximum
tir.prim_func @others(%X: !tir.buffer<[4], f32>, %Y: !tir.buffer<[4], f32>) {
  %i = arith.constant 0 : index
  %x = tir.load %X[%i]
  %0 = arith.constant 0.0 : f32
  %1 = arith.maximumf %x, %0 : f32
  %2 = arith.constant -0.0 : f32
  %3 = arith.minimumf %1, %2 : f32
  %4 = arith.constant 0x7FC00000 : f32
  %5 = arith.maximumf %3, %4 : f32
  tir.store %5, %Y[%i]
}
