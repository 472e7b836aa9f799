builtin.module {
  relax.func @exchanged[%n, %m](%x: !relax.tensor<[4 * n, 6], f32>, %y: !relax.tensor<[_, m], f32>) -> !relax.object {
    %0 = relax.ccl.allreduce %x
    %1 = relax.ccl.allreduce %x op_type = "avg" all_groups
    %2 = relax.ccl.allgather %x num_workers = 2
    %3 = relax.ccl.broadcast_from_worker0 %x
    %4 = relax.ccl.scatter_from_worker0 %x num_workers = 2
    %5 = relax.ccl.scatter_from_worker0 %y num_workers = 3 axis = -1
    relax.return %x
  }
  relax.func @along[%n, %m, %t](%x: !relax.tensor<[2 * n, 6], f32>, %s: !relax.shape<[m, t]>) -> !relax.object {
    %0 = relax.ccl.allgather %x num_workers = 2 axis = 1 group = "x"
    %1 = relax.ccl.allgather %x num_workers = 2 size = m group = "x"
    %2 = relax.ccl.reduce_scatter %x num_workers = 2 axis = 1 tile = t group = "x"
    %3 = relax.ccl.reduce_scatter %x op_type = "max" num_workers = 2
    %4 = relax.ccl.all_to_all %x concat_axis = 1 num_workers = 2
    %5 = relax.ccl.all_to_all %x concat_axis = 0 size = m num_workers = 3 axis = 1 tile = t group = "y"
    relax.return %x
  }
}
// -----
builtin.module {
  relax.func @quantization[%n](%x: !relax.tensor<[n, 4], f32>, %s: !relax.tensor<[4], f32>, %z: !relax.tensor<[4], i8>, %t: !relax.tensor<[], f32>, %i: !relax.tensor<[n, 4], ui8>, %y: !relax.tensor<[], ui8>) -> !relax.object {
    %0 = relax.quantize %x, %s, %z dtype = i8
    %1 = relax.quantize %x, %t, %y dtype = ui8 axis = 0
    %2 = relax.dequantize %i, %t, %y dtype = f32
    %3 = relax.dequantize %0, %s, %z dtype = f16 axis = 1
    relax.return %x
  }
  relax.func @dequantize_blocks[%n, %b](%w: !relax.tensor<[n, 40], ui8>, %k: !relax.tensor<[210], ui8>, %b0: !relax.tensor<[2, b], ui8>, %u: !relax.tensor<[_, _], ui8>) -> !relax.object {
    %0 = relax.dequantize_blocks %w format = "q4_1"
    %1 = relax.dequantize_blocks %k format = "q6_k" dtype = f16
    %2 = relax.dequantize_blocks %b0 format = "q8_0"
    %3 = relax.dequantize_blocks %u format = "mxfp4"
    relax.return %w
  }
}
// -----
builtin.module {
  relax.func @placed[%n](%x: !relax.tensor<[4 * n, 6], f32>) -> !relax.object {
    %0 = relax.dist.annotate_sharding %x mesh = [2, 3] placement = "S[0], S[1]"
    %1 = relax.dist.redistribute %0 mesh = [2, 3] placement = "R, R"
    %2 = relax.dist.local_view %0 mesh = [2, 3] placement = "S[0], S[1]"
    %3 = relax.dist.global_view %2 mesh = [2, 3] placement = "S[0], S[1]"
    %4 = relax.dist.annotate_sharding %x mesh = [] placement = ""
    %5 = relax.dist.redistribute_replica_to_shard %x num_workers = 2
    relax.return %x
  }
  relax.func @named[%p](%p_1: !relax.prim<i64, p>, %x: !relax.tensor<[8, 6], f32, sharding<x = p: S[1]>>) -> !relax.object {
    %0 = relax.dist.redistribute %x mesh = [p] placement = "P[max]" axes = "x"
    %1 = relax.dist.redistribute_replica_to_shard %x index = 1 num_workers = 3 tile = p group = "x"
    relax.return %x
  }
}
