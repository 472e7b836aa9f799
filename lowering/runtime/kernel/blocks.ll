; Memory of large results, which is kept when a result goes and used again for one of about the same size: new memory costs
; as much as a simple kernel, since the system clears every page of it.
;
; A block begins with a DLManagedTensorVersioned, whose `manager_ctx` is the number of bytes of the block. At most four
; blocks are kept, of at most 256 MiB together. Any thread may take and give.

@kept = internal global [4 x ptr] zeroinitializer
@held = internal global i64 0                   ; bytes of those that are kept, or about to be
@turn = internal global i64 0                   ; whose turn it is to make room

declare void @free(ptr)

; A block of at least as many bytes and at most a quarter more, which is nobody else's now; null if none is kept.
define ptr @relax_block_take(i64 %bytes) {
entry:
  %quarter = lshr i64 %bytes, 2
  %most = add i64 %bytes, %quarter
  br label %look
look:
  %i = phi i64 [ 0, %entry ], [ %after, %next ]
  %place = getelementptr [4 x ptr], ptr @kept, i64 0, i64 %i
  %block = atomicrmw xchg ptr %place, ptr null acq_rel
  %is.empty = icmp eq ptr %block, null
  br i1 %is.empty, label %next, label %measure
measure:
  %size.at = getelementptr i8, ptr %block, i64 8
  %size = load i64, ptr %size.at
  %is.enough = icmp uge i64 %size, %bytes
  %is.modest = icmp ule i64 %size, %most
  %fits = and i1 %is.enough, %is.modest
  br i1 %fits, label %found, label %back
back:
  %returned = cmpxchg ptr %place, ptr null, ptr %block acq_rel monotonic
  %is.back = extractvalue { ptr, i1 } %returned, 1
  br i1 %is.back, label %next, label %drop
drop:
  call void @drop(ptr %block)
  br label %next
next:
  %after = add i64 %i, 1
  %more = icmp ult i64 %after, 4
  br i1 %more, label %look, label %none
found:
  %left = atomicrmw sub ptr @held, i64 %size monotonic
  ret ptr %block
none:
  ret ptr null
}

; Frees what was kept, if it is a block.
define internal void @drop(ptr %block) {
entry:
  %is.empty = icmp eq ptr %block, null
  br i1 %is.empty, label %done, label %free
free:
  %size.at = getelementptr i8, ptr %block, i64 8
  %size = load i64, ptr %size.at
  %left = atomicrmw sub ptr @held, i64 %size monotonic
  call void @free(ptr %block)
  br label %done
done:
  ret void
}

; Keeps a block, in the place of others that have been kept if there is no room, or frees it.
define void @relax_block_give(ptr %block) {
entry:
  %size.at = getelementptr i8, ptr %block, i64 8
  %size = load i64, ptr %size.at
  %is.huge = icmp ugt i64 %size, 268435456
  br i1 %is.huge, label %free, label %count
free:
  call void @free(ptr %block)
  br label %done
count:
  %before = atomicrmw add ptr @held, i64 %size monotonic
  br label %fit
fit:
  %k = phi i64 [ 0, %count ], [ %k.after, %smaller ]
  %sum = load atomic i64, ptr @held monotonic, align 8
  %is.much = icmp ugt i64 %sum, 268435456
  %is.kept = icmp ult i64 %k, 4
  %must.go = and i1 %is.much, %is.kept
  br i1 %must.go, label %smaller, label %look
smaller:
  %place.k = getelementptr [4 x ptr], ptr @kept, i64 0, i64 %k
  %gone = atomicrmw xchg ptr %place.k, ptr null acq_rel
  call void @drop(ptr %gone)
  %k.after = add i64 %k, 1
  br label %fit
look:
  %i = phi i64 [ 0, %fit ], [ %after, %next ]
  %place = getelementptr [4 x ptr], ptr @kept, i64 0, i64 %i
  %stored = cmpxchg ptr %place, ptr null, ptr %block acq_rel monotonic
  %is.stored = extractvalue { ptr, i1 } %stored, 1
  br i1 %is.stored, label %done, label %next
next:
  %after = add i64 %i, 1
  %more = icmp ult i64 %after, 4
  br i1 %more, label %look, label %replace
replace:
  %turn = atomicrmw add ptr @turn, i64 1 monotonic
  %victim = and i64 %turn, 3
  %there = getelementptr [4 x ptr], ptr @kept, i64 0, i64 %victim
  %old = atomicrmw xchg ptr %there, ptr %block acq_rel
  call void @drop(ptr %old)
  br label %done
done:
  ret void
}
