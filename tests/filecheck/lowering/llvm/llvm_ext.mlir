// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP

// CHECK-LABEL: llvm.func @casts
// CHECK-NEXT:    llvm_ext.uitofp %{{\w+}} : i8 to f32
// CHECK-NEXT:    llvm_ext.fptosi %{{\w+}} : f32 to i8
// CHECK-NEXT:    llvm_ext.fptoui %{{\w+}} : vector<4xf32> to vector<4xi8>
llvm.func @casts(%i: i8, %x: f32, %v: vector<4xf32>) {
  %0 = llvm_ext.uitofp %i : i8 to f32
  %1 = llvm_ext.fptosi %x : f32 to i8
  %2 = llvm_ext.fptoui %v : vector<4xf32> to vector<4xi8>
  llvm.return
}

// CHECK-LABEL: llvm.func @vectors
// CHECK-NEXT:    %{{\w+}} = llvm_ext.fcmp "olt" %{{\w+}}, %{{\w+}} : vector<4xf32>, vector<4xi1>
// CHECK-NEXT:    llvm_ext.select %{{\w+}}, %{{\w+}}, %{{\w+}} : vector<4xi1>, vector<4xf32>
// CHECK-NEXT:    llvm_ext.extractelement %{{\w+}}[%{{\w+}} : i64] : vector<4xf32> -> f32
llvm.func @vectors(%v: vector<4xf32>, %i: i64) {
  %c = llvm_ext.fcmp "olt" %v, %v : vector<4xf32>, vector<4xi1>
  %0 = llvm_ext.select %c, %v, %v : vector<4xi1>, vector<4xf32>
  %1 = llvm_ext.extractelement %v[%i : i64] : vector<4xf32> -> f32
  llvm.return
}

// CHECK-LABEL: llvm.func @memory
// CHECK-NEXT:    llvm_ext.masked_load %{{\w+}}, %{{\w+}}, %{{\w+}} {alignment = 4 : i32} : vector<4xi1>, vector<4xf32>
// CHECK-NEXT:    llvm_ext.masked_store %{{\w+}}, %{{\w+}}, %{{\w+}} {alignment = 4 : i32} : vector<4xf32>, vector<4xi1>
// CHECK-NEXT:    llvm_ext.gather %{{\w+}}, %{{\w+}}, %{{\w+}}, %{{\w+}} {alignment = 4 : i32} : vector<4xi64>, vector<4xi1>, vector<4xf32>
// CHECK-NEXT:    llvm_ext.scatter %{{\w+}}, %{{\w+}}, %{{\w+}}, %{{\w+}} {alignment = 4 : i32} : vector<4xf32>, vector<4xi64>, vector<4xi1>
// CHECK-NEXT:    llvm_ext.atomicrmw "add" %{{\w+}}, %{{\w+}} : i64
llvm.func @memory(%p: !llvm.ptr, %v: vector<4xf32>, %o: vector<4xi64>, %m: vector<4xi1>, %i: i64) {
  %0 = llvm_ext.masked_load %p, %m, %v {alignment = 4 : i32} : vector<4xi1>, vector<4xf32>
  llvm_ext.masked_store %v, %p, %m {alignment = 4 : i32} : vector<4xf32>, vector<4xi1>
  %1 = llvm_ext.gather %p, %o, %m, %v {alignment = 4 : i32} : vector<4xi64>, vector<4xi1>, vector<4xf32>
  llvm_ext.scatter %v, %p, %o, %m {alignment = 4 : i32} : vector<4xf32>, vector<4xi64>, vector<4xi1>
  %2 = llvm_ext.atomicrmw "add" %p, %i : i64
  llvm.return
}

// CHECK-LABEL: llvm.func @branch
// CHECK:         llvm_ext.switch %{{\w+}} : i32, [
// CHECK-NEXT:      default: ^{{.*}},
// CHECK-NEXT:      42: ^{{.*}}(%{{\w+}} : i32)
// CHECK-NEXT:    ]
llvm.func @branch(%x: i32) {
  llvm_ext.switch %x : i32, [
    default: ^a,
    42: ^b(%x : i32)
  ]
^a:
  llvm.return
^b(%y: i32):
  llvm.return
}
