builtin.module {
  relax.func @astype[%n](%x: !relax.tensor<[n, _], f32>, %u: !relax.tensor<*, _>) -> !relax.object {
    %0 = relax.astype %x dtype = f16
    %1 = relax.astype %x dtype = i1
    %2 = relax.astype %u dtype = ui8
    relax.return %0
  }
  relax.func @reinterpret[%n](%x: !relax.tensor<[9, n], f32>, %u: !relax.tensor<*, _>) -> !relax.object {
    %s = relax.shape [4, n]
    %0 = relax.reinterpret %x, %s dtype = i8
    %1 = relax.reinterpret %x, %s offset = 4 * n
    %2 = relax.reinterpret %u, %s dtype = f16
    relax.return %0
  }
}
