; Tensors with memory of their own, and views.

; Puts a new tensor of `rank` sizes into the slot `to`. One block holds the DLPack record, sizes, strides and the data,
; which is 64-byte aligned, or from 64 KiB on at the start of a page: data that begins some lines behind another's start
; of a page is slow to write while the other is read. C's `free` releases the block, or from 1 MiB on what keeps it for
; the next result (`lowering/runtime/kernel/blocks.ll`), so the tensor may outlive this code.
; `dtype` is a DLDataType. Returns the data, or null after an error.
define ptr @vmrt_new_tensor(ptr %to, i64 %rank, ptr %sizes, i32 %dtype) {
entry:
  %itemsize = call i64 @vmrt_itemsize(i32 %dtype)
  %bytes = call i64 @vmrt_byte_size(i64 %itemsize, i64 %rank, ptr %sizes)
  %refused = icmp slt i64 %bytes, 0
  br i1 %refused, label %failed, label %allocate

allocate:
  %dims.bytes = shl i64 %rank, 4
  %is.large = icmp uge i64 %bytes, 65536
  %slack = select i1 %is.large, i64 4095, i64 63
  %records.bytes = add i64 %dims.bytes, 80
  %head.bytes = add i64 %records.bytes, %slack
  %total = add i64 %head.bytes, %bytes
  %is.huge = icmp uge i64 %bytes, 1048576
  %is.known = icmp ne ptr @relax_block_give, null
  %is.lasting = and i1 %is.huge, %is.known
  br i1 %is.lasting, label %look, label %get

look:
  %kept = call ptr @relax_block_take(i64 %total)
  %is.new = icmp eq ptr %kept, null
  br i1 %is.new, label %get, label %fill

get:
  %new = call ptr @malloc(i64 %total)
  %no.memory = icmp eq ptr %new, null
  br i1 %no.memory, label %exhausted, label %prepare

prepare:
  call void @vmrt_ask_for_large_pages(ptr %new, i64 %total)
  %capacity.at = getelementptr inbounds %managed, ptr %new, i64 0, i32 1
  store i64 %total, ptr %capacity.at
  br label %fill

fill:
  %block = phi ptr [ %kept, %look ], [ %new, %prepare ]
  %shape = getelementptr inbounds i8, ptr %block, i64 80
  %strides = getelementptr inbounds i64, ptr %shape, i64 %rank
  %base = ptrtoint ptr %block to i64
  %end = add i64 %base, %head.bytes
  %mask = xor i64 %slack, -1
  %aligned = and i64 %end, %mask
  %data.offset = sub i64 %aligned, %base
  %data = getelementptr inbounds i8, ptr %block, i64 %data.offset
  store <2 x i32> <i32 1, i32 3>, ptr %block
  %deleter = getelementptr inbounds %managed, ptr %block, i64 0, i32 2
  %release = select i1 %is.lasting, ptr @relax_block_give, ptr @free
  store ptr %release, ptr %deleter
  %flags = getelementptr inbounds %managed, ptr %block, i64 0, i32 3
  store i64 0, ptr %flags
  %tensor = getelementptr inbounds %managed, ptr %block, i64 0, i32 4
  %rank32 = trunc i64 %rank to i32
  call void @vmrt_describe(ptr %tensor, ptr %data, i32 %rank32, i32 %dtype, ptr %shape, ptr %strides)
  call void @vmrt_fill_strides(i64 %rank, ptr %sizes, ptr %shape, ptr %strides)
  %made = alloca %any
  store %any { i32 70, i32 0, i64 0 }, ptr %made
  %handle = getelementptr inbounds %any, ptr %made, i64 0, i32 2
  %status = call i32 @TVMFFITensorFromDLPackVersioned(ptr %block, i32 0, i32 0, ptr %handle)
  %rejected = icmp ne i32 %status, 0
  br i1 %rejected, label %undo, label %finish

finish:
  call void @vmrt_move(ptr %to, ptr %made)
  ret ptr %data

undo:
  call void @free(ptr %block)
  ret ptr null

exhausted:
  call void @vmrt_fail_memory(i64 %total)
  ret ptr null

failed:
  ret ptr null
}

; Fills in a DLTensor on the CPU.
define void @vmrt_describe(ptr %tensor, ptr %data, i32 %rank, i32 %dtype, ptr %shape, ptr %strides) {
  store ptr %data, ptr %tensor
  %device.at = getelementptr inbounds %dltensor, ptr %tensor, i64 0, i32 1
  store i64 1, ptr %device.at
  %rank.at = getelementptr inbounds %dltensor, ptr %tensor, i64 0, i32 2
  store i32 %rank, ptr %rank.at
  %dtype.at = getelementptr inbounds %dltensor, ptr %tensor, i64 0, i32 3
  store i32 %dtype, ptr %dtype.at
  %shape.at = getelementptr inbounds %dltensor, ptr %tensor, i64 0, i32 4
  store ptr %shape, ptr %shape.at
  %strides.at = getelementptr inbounds %dltensor, ptr %tensor, i64 0, i32 5
  store ptr %strides, ptr %strides.at
  %offset.at = getelementptr inbounds %dltensor, ptr %tensor, i64 0, i32 6
  store i64 0, ptr %offset.at
  ret void
}

; Puts a tensor on the memory of the tensor `from`, which it keeps alive, into the slot `to`; its number of elements has
; been checked. Returns 0 or -1.
define i32 @vmrt_view(ptr %to, ptr %from, i64 %rank, ptr %sizes) {
entry:
  %kind = load i32, ptr %from
  %is.object = icmp eq i32 %kind, 70
  br i1 %is.object, label %create, label %borrowed

create:
  %source.at = getelementptr inbounds %any, ptr %from, i64 0, i32 2
  %source = load ptr, ptr %source.at
  %tensor = getelementptr inbounds i8, ptr %source, i64 24
  %data = load ptr, ptr %tensor
  %offset.at = getelementptr inbounds %dltensor, ptr %tensor, i64 0, i32 6
  %offset = load i64, ptr %offset.at
  %start = getelementptr inbounds i8, ptr %data, i64 %offset
  %dtype.at = getelementptr inbounds %dltensor, ptr %tensor, i64 0, i32 3
  %dtype = load i32, ptr %dtype.at
  %shape = alloca i64, i64 %rank
  %strides = alloca i64, i64 %rank
  call void @vmrt_fill_strides(i64 %rank, ptr %sizes, ptr %shape, ptr %strides)
  %prototype = alloca %dltensor
  %rank32 = trunc i64 %rank to i32
  call void @vmrt_describe(ptr %prototype, ptr %start, i32 %rank32, i32 %dtype, ptr %shape, ptr %strides)
  %made = alloca %any
  store %any { i32 70, i32 0, i64 0 }, ptr %made
  %handle = getelementptr inbounds %any, ptr %made, i64 0, i32 2
  %status = call i32 @TVMFFITensorCreateUnsafeView(ptr %source, ptr %prototype, ptr %handle)
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %return.failed, label %finish

finish:
  call void @vmrt_move(ptr %to, ptr %made)
  ret i32 0

return.failed:
  ret i32 -1

borrowed:
  call void @TVMFFIErrorSetRaisedFromCStr(ptr @vmrt_type_error, ptr @vmrt_text_borrowed)
  ret i32 -1
}
