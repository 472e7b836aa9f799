builtin.module {
  relax.func @numbers[%n](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[n], f32>) -> !relax.object {
    %0 = relax.add %x, %y
    %1 = relax.atan2 %x, %y
    %2 = relax.divide %x, %y
    %3 = relax.equal %x, %y
    %4 = relax.floor_divide %x, %y
    %5 = relax.floor_mod %x, %y
    %6 = relax.greater %x, %y
    %7 = relax.greater_equal %x, %y
    %8 = relax.less %x, %y
    %9 = relax.less_equal %x, %y
    %10 = relax.log_add_exp %x, %y
    %11 = relax.maximum %x, %y
    %12 = relax.minimum %x, %y
    %13 = relax.mod %x, %y
    %14 = relax.multiply %x, %y
    %15 = relax.not_equal %x, %y
    %16 = relax.power %x, %y
    %17 = relax.subtract %x, %y
    %18 = relax.ewise_fma %x, %y, %x
    relax.return %x
  }
  relax.func @bits[%n](%x: !relax.tensor<[n], ui8>, %b: !relax.tensor<[n], i1>) -> !relax.object {
    %0 = relax.bitwise_and %x, %x
    %1 = relax.bitwise_or %x, %x
    %2 = relax.bitwise_xor %x, %x
    %3 = relax.left_shift %x, %x
    %4 = relax.right_shift %x, %x
    %5 = relax.bitwise_and %b, %b
    %6 = relax.bitwise_or %b, %b
    %7 = relax.bitwise_xor %b, %b
    %8 = relax.logical_and %b, %b
    %9 = relax.logical_or %b, %b
    %10 = relax.logical_xor %b, %b
    relax.return %x
  }
  relax.func @broadcast_known[%n, %m](%x: !relax.tensor<[n, 4 * m], f32>, %y: !relax.tensor<[n, 1], f32>, %z: !relax.tensor<[4 * m], f32>, %s: !relax.tensor<[], f32>) -> !relax.object {
    %0 = relax.add %x, %x
    %1 = relax.add %x, %y
    %2 = relax.add %z, %x
    %3 = relax.add %s, %y
    %4 = relax.add %y, %z
    relax.return %x
  }
  relax.func @broadcast_unknown[%n, %m](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[m], f32>, %z: !relax.tensor<[4], f32>, %u: !relax.tensor<[_], f32>, %v: !relax.tensor<*, f32>) -> !relax.object {
    %0 = relax.add %x, %y
    %1 = relax.add %x, %z
    %2 = relax.add %u, %z
    %3 = relax.add %u, %x
    %4 = relax.add %v, %x
    relax.return %x
  }
  relax.func @unknown_dtype[%n](%x: !relax.tensor<[n], _>, %y: !relax.tensor<[n], f16>) -> !relax.object {
    %0 = relax.add %x, %y
    %1 = relax.add %x, %x
    %2 = relax.less %x, %x
    relax.return %x
  }
}
