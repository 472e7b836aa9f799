builtin.module {
  tir.prim_func @fields[%n](%tensor: i64, %X: !tir.buffer<[n, 4], f32>) may_alias {
    %c0 = arith.constant 0 : index
    %data = tir.memory_at %tensor : !tir.buffer<[1], i64>
    %address = tir.load %data[%c0]
    %A = tir.memory_at %address : !tir.buffer<[n, 4], f32, strides = [8, 1]>
    %there = tir.address_of %X[%c0, %c0]
    tir.store %there, %data[%c0]
    %text = tir.text "a \22text\22"
    tir.call_boxed "f"(%text, 0)
  }
}
