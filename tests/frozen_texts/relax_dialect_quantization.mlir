builtin.module {
  relax.func @quantization[%n](%x: !relax.tensor<[n, 4], f32>, %s: !relax.tensor<[4], f32>, %z: !relax.tensor<[4], i8>, %t: !relax.tensor<[], f32>, %i: !relax.tensor<[n, 4], ui8>, %y: !relax.tensor<[], ui8>) -> !relax.object {
    %0 = relax.quantize %x, %s, %z dtype = i8
    %1 = relax.quantize %x, %t, %y dtype = ui8 axis = 0
    %2 = relax.dequantize %i, %t, %y dtype = f32
    %3 = relax.dequantize %0, %s, %z dtype = f16 axis = 1
    relax.return %x
  }
}
