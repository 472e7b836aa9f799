builtin.module {
  vm.constant @bias : tensor<2xf32> = dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
  vm.constant @weight : tensor<1024x1024xbf16>
  vm.func @constants() {
    %four = vm.const 4 : i64
    %yes = vm.const true
    %half = vm.const 5.000000e-01 : f64
    %name = vm.str "relu \22six\22"
    %dtype = vm.dtype ui8
    %null = vm.null
    %w = vm.constant_tensor @weight : !vm.tensor<2, bf16>
    vm.ret
  }
  vm.func private @types(%a: !vm.tensor<2, f32>, %b: !vm.tensor<_, i1>, %c: !vm.tensor<0, _>, %d: !vm.shape<3>, %e: !vm.shape<_>, %f: !vm.storage, %g: !vm.object) {
    vm.ret
  }
}
