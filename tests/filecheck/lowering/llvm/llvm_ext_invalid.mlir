// RUN: RELAX_INVALID

// CHECK: 'llvm_ext.uitofp' op expected equally many elements, got i8 and vector<4xf32>
llvm.func @uitofp_c1(%i: i8) {
  %0 = llvm_ext.uitofp %i : i8 to vector<4xf32>
  llvm.return
}

// -----

// CHECK: 'llvm_ext.fptosi' op expected equally many elements, got vector<2xf32> and vector<4xi8>
llvm.func @fptosi_c1(%x: vector<2xf32>) {
  %0 = llvm_ext.fptosi %x : vector<2xf32> to vector<4xi8>
  llvm.return
}

// -----

// CHECK: 'llvm_ext.fptoui' op expected equally many elements, got vector<2xf32> and i8
llvm.func @fptoui_c1(%x: vector<2xf32>) {
  %0 = llvm_ext.fptoui %x : vector<2xf32> to i8
  llvm.return
}

// -----

// CHECK: 'llvm_ext.fcmp' op expected one of {{.*}}olt{{.*}}, got less
llvm.func @fcmp_c1(%x: f32) {
  %0 = llvm_ext.fcmp "less" %x, %x : f32, i1
  llvm.return
}

// -----

// CHECK: 'llvm_ext.fcmp' op expected as many results as elements, got i1 for vector<4xf32>
llvm.func @fcmp_c2(%x: vector<4xf32>) {
  %0 = llvm_ext.fcmp "olt" %x, %x : vector<4xf32>, i1
  llvm.return
}

// -----

// CHECK: 'llvm_ext.select' op expected equally many elements, got vector<2xi1> and vector<4xf32>
llvm.func @select_c1(%c: vector<2xi1>, %x: vector<4xf32>) {
  %0 = llvm_ext.select %c, %x, %x : vector<2xi1>, vector<4xf32>
  llvm.return
}

// -----

// CHECK: 'llvm_ext.extractelement' op expected an element of vector<4xf32>, got f64
llvm.func @extractelement_c1(%v: vector<4xf32>, %i: i64) {
  %0 = llvm_ext.extractelement %v[%i : i64] : vector<4xf32> -> f64
  llvm.return
}

// -----

// CHECK: 'llvm_ext.atomicrmw' op expected one of xchg, add, {{.*}}, got multiply
llvm.func @atomicrmw_c1(%p: !llvm.ptr, %x: i64) {
  %0 = llvm_ext.atomicrmw "multiply" %p, %x : i64
  llvm.return
}

// -----

// CHECK: 'llvm_ext.switch' op expected 1 values and argument counts, got (2, 1)
llvm.func @switch_c1(%x: i32) {
  "llvm_ext.switch"(%x) [^a, ^b] <{case_values = dense<[1, 2]> : vector<2xi32>, case_operand_segments = array<i32: 0>, operandSegmentSizes = array<i32: 1, 0, 0>}> : (i32) -> ()
^a:
  llvm.return
^b:
  llvm.return
}
