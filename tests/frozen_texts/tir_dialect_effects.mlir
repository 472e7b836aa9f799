builtin.module {
  tir.prim_func @loads(%X: !tir.buffer<[], f32>, %Y: !tir.buffer<[], f32>) {
    %x = tir.load %X[]
    %y = tir.load %X[]
    %s = arith.addf %x, %y : f32
    tir.store %s, %X[]
    %z = tir.load %X[]
    tir.store %z, %Y[]
  }
  tir.prim_func @dead[%n](%X: !tir.buffer<[], f32>, %s: f32) {
    tir.store %s, %X[]
    tir.for (%i) in (%n) {
      %x = tir.load %X[]
      tir.block "b" (%v = spatial %i in %n) {
        %y = tir.load %X[]
      }
    }
    %T = tir.alloc_buffer : !tir.buffer<[n], f32>
    %e = tir.call_extern pure "erff"(%s) : f32
  }
  tir.prim_func @kept[%n](%ok: i1) {
    %T = tir.alloc_buffer : !tir.buffer<[n], f32>
    %U = tir.alloc_buffer : !tir.buffer<[n], f32>
    tir.call_packed "f"(%T, %U)
    tir.call_packed "f"(%T, %U)
    tir.assert %ok, "message"
    tir.block "b" {
      tir.reads %T[%n]
    }
    tir.call @kept[%n](%ok)
  }
  tir.prim_func @dims[%n]() {
    %c = tir.dim 4
    %s = tir.dim n
    %e = tir.dim n + 1
    tir.call_extern "use"(%c, %s, %e)
  }
  tir.prim_func @hint(%X: !tir.buffer<[], f32>) {
    tir.prefetch %X[] level 1
    tir.prefetch %X[] level 1
  }
}
