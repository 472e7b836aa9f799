builtin.module {
  relax.func @constants() -> !relax.object {
    %0 = relax.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
    %1 = relax.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi64>
    %2 = relax.constant dense<true> : tensor<i1>
    %3 = relax.constant dense<> : tensor<0x4xf32>
    %4 = relax.constant dense<[1, 255]> : tensor<2xui8>
    %5 = relax.constant "conv1.weight" : !relax.tensor<[64, 3, 7, 7], f32>
    relax.return %0
  }
  relax.func @prims[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
    %0 = relax.prim 4 * n
    %1 = relax.prim -n
    %2 = relax.prim -3
    %3 = relax.prim f32 -0.5
    %4 = relax.prim f64 1.0e-12
    %5 = relax.prim bf16 inf
    %6 = relax.prim i8 -7
    %7 = relax.prim i1 true
    relax.return %0
  }
  relax.func @objects() -> !relax.object {
    %0 = relax.string "nearest \22one\22"
    %1 = relax.dtype bf16
    %2 = relax.null
    relax.return %2
  }
}
