// RUN: RELAX_ROUNDTRIP
// RUN: RELAX_GENERIC_ROUNDTRIP

// CHECK:      vm.constant @bias : tensor<2xf32> = dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
// CHECK-NEXT: vm.constant @weight : tensor<1024x1024xbf16>
vm.constant @bias : tensor<2xf32> = dense<[1.0, 2.0]> : tensor<2xf32>
vm.constant @weight : tensor<1024x1024xbf16>

// CHECK-LABEL: vm.func @constants
// CHECK-NEXT:    %four = vm.const 4 : i64
// CHECK-NEXT:    %yes = vm.const true
// CHECK-NEXT:    %half = vm.const 5.000000e-01 : f64
// CHECK-NEXT:    %name = vm.str "relu \22six\22"
// CHECK-NEXT:    %dtype = vm.dtype ui8
// CHECK-NEXT:    %null = vm.null
// CHECK-NEXT:    %w = vm.constant_tensor @weight : !vm.tensor<2, bf16>
vm.func @constants() {
  %four = vm.const 4 : i64
  %yes = vm.const true
  %half = vm.const 0.5 : f64
  %name = vm.str "relu \"six\""
  %dtype = vm.dtype ui8
  %null = vm.null
  %w = vm.constant_tensor @weight : !vm.tensor<2, bf16>
  vm.ret
}

// CHECK-LABEL: vm.func private @types
// CHECK-SAME:    !vm.tensor<2, f32>, %{{.*}}: !vm.tensor<_, i1>, %{{.*}}: !vm.tensor<0, _>, %{{.*}}: !vm.shape<3>, %{{.*}}: !vm.shape<_>, %{{.*}}: !vm.storage, %{{.*}}: !vm.object
vm.func private @types(%a: !vm.tensor<2, f32>, %b: !vm.tensor<_, i1>, %c: !vm.tensor<0, _>, %d: !vm.shape<3>, %e: !vm.shape<_>, %f: !vm.storage, %g: !vm.object) {
  vm.ret
}
