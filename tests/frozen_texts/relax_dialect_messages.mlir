builtin.module {
  relax.func @messages[%n](%x: !relax.tensor<[n], f32>) -> !relax.tuple<!relax.tensor<[0], i1>, !relax.tensor<[n, 2], f16>> {
    %0 = relax.ccl.send %x to = 1 tag = 3 group = "p"
    %s = relax.shape [n, 2]
    %1 = relax.ccl.receive %s source = 1 dtype = f16
    %2 = relax.tuple(%0, %1)
    relax.return %2
  }
}
