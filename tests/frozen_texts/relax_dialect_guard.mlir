builtin.module {
  relax.func @guards[%n, %m](%x: !relax.tensor<[n, m], f32>) -> !relax.tensor<[n, m], f32> {
    %a = relax.guard %x, equal n, 2 * m, "dimension 0"
    %b = relax.guard %a, broadcast n, m, "dimension 1"
    %c = relax.guard %b, at_most m, n, ""
    relax.return %c
  }
}
