builtin.module {
  relax.func @floats[%n](%x: !relax.tensor<[n, _], f32>) -> !relax.object {
    %0 = relax.abs %x
    %1 = relax.acos %x
    %2 = relax.acosh %x
    %3 = relax.asin %x
    %4 = relax.asinh %x
    %5 = relax.atan %x
    %6 = relax.atanh %x
    %7 = relax.ceil %x
    %8 = relax.cos %x
    %9 = relax.cosh %x
    %10 = relax.erf %x
    %11 = relax.exp %x
    %12 = relax.floor %x
    %13 = relax.isfinite %x
    %14 = relax.isinf %x
    %15 = relax.isnan %x
    %16 = relax.log %x
    %17 = relax.negative %x
    %18 = relax.reciprocal %x
    %19 = relax.round %x
    %20 = relax.rsqrt %x
    %21 = relax.sigmoid %x
    %22 = relax.sign %x
    %23 = relax.sin %x
    %24 = relax.sinh %x
    %25 = relax.sqrt %x
    %26 = relax.square %x
    %27 = relax.tan %x
    %28 = relax.tanh %x
    %29 = relax.trunc %x
    relax.return %x
  }
  relax.func @integers[%n](%x: !relax.tensor<[n], i32>, %b: !relax.tensor<[n], i1>) -> !relax.object {
    %0 = relax.abs %x
    %1 = relax.negative %x
    %2 = relax.sign %x
    %3 = relax.square %x
    %4 = relax.bitwise_not %x
    %5 = relax.bitwise_not %b
    %6 = relax.logical_not %b
    relax.return %x
  }
  relax.func @unknown[%n](%x: !relax.tensor<*, _>, %y: !relax.tensor<[n], f32, "cuda:0">) -> !relax.object {
    %0 = relax.exp %x
    %1 = relax.isnan %x
    %2 = relax.exp %y
    %3 = relax.exp %y : !relax.tensor<[_], f32>
    %4 = relax.exp %y {note}
    relax.return %x
  }
}
