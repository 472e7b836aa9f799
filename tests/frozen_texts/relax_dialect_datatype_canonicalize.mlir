builtin.module {
  relax.func @same[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
    %0 = relax.astype %x dtype = f32
    %1 = relax.exp %0
    relax.return %1
  }
  relax.func @returned[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
    %0 = relax.dataflow {
      %1 = relax.astype %x dtype = f32
      relax.output %1
    }
    relax.return %0
  }
  relax.func @made[%n](%x: !relax.tensor<[n], f32>) -> !relax.object {
    %0 = relax.exp %x
    %1 = relax.astype %0 dtype = f32
    relax.return %1
  }
  relax.func @stays[%n](%x: !relax.tensor<[n], f32>, %y: !relax.tensor<[n], _>) -> !relax.object impure {
    %0 = relax.astype %x dtype = f64
    %1 = relax.astype %y dtype = f32
    %2 = relax.astype %x dtype = f32
    relax.call_packed "change"(%2)
    %3 = relax.tuple(%0, %1)
    relax.return %3
  }
}
