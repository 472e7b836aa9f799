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
}
