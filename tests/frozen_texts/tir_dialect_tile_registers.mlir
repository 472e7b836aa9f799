builtin.module {
  tir.prim_func @multiply[%rest](%A: !tir.buffer<[16, 32], i32>, %B: !tir.buffer<[2, 16, 16], i32>, %C: !tir.buffer<[16, 16], i32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    tir.configure_tiles %rest
    tir.zero_tile 0
    tir.load_tile 5, %A[%c0, %c1]
    tir.load_tile 7, %B[%c1, %c0, %c0] {note}
    tir.dot_tiles 0, ui8 5, i8 7
    tir.dot_tiles 3, bf16 4, bf16 6
    tir.store_tile 0, %C[%c0, %c0]
    tir.release_tiles
  }
}
