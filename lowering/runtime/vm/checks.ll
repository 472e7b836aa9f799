; Checks of values. `subject` is the C string that errors begin with.

; The DLTensor of a tensor, or null if the value is none.
define ptr @vmrt_dltensor(ptr %any) {
entry:
  %kind = load i32, ptr %any
  %payload.at = getelementptr inbounds %any, ptr %any, i64 0, i32 2
  %payload = load ptr, ptr %payload.at
  switch i32 %kind, label %other [
    i32 70, label %object
    i32 7, label %borrowed
  ]

object:
  %tensor = getelementptr inbounds i8, ptr %payload, i64 24
  ret ptr %tensor

borrowed:
  ret ptr %payload

other:
  ret ptr null
}

; The value is a tensor of `rank` dimensions (-1: any) and the element type `dtype` (a DLDataType, 0: any), contiguous,
; on the CPU, aligned to its element size. Returns its DLTensor, or null after an error.
define ptr @vmrt_check_tensor(ptr %any, i64 %rank, i32 %dtype, ptr %subject) {
entry:
  %tensor = call ptr @vmrt_dltensor(ptr %any)
  %wrong.kind = icmp eq ptr %tensor, null
  br i1 %wrong.kind, label %fail.kind, label %check.rank

check.rank:
  %rank.at = getelementptr inbounds %dltensor, ptr %tensor, i64 0, i32 2
  %got.rank32 = load i32, ptr %rank.at
  %got.rank = sext i32 %got.rank32 to i64
  %any.rank = icmp slt i64 %rank, 0
  %same.rank = icmp eq i64 %rank, %got.rank
  %rank.ok = or i1 %any.rank, %same.rank
  br i1 %rank.ok, label %check.dtype, label %fail.rank

check.dtype:
  %dtype.at = getelementptr inbounds %dltensor, ptr %tensor, i64 0, i32 3
  %got.dtype = load i32, ptr %dtype.at
  %any.dtype = icmp eq i32 %dtype, 0
  %same.dtype = icmp eq i32 %dtype, %got.dtype
  %dtype.ok = or i1 %any.dtype, %same.dtype
  br i1 %dtype.ok, label %check.device, label %fail.dtype

check.device:
  %device.at = getelementptr inbounds %dltensor, ptr %tensor, i64 0, i32 1
  %device = load i32, ptr %device.at
  %device.ok = icmp eq i32 %device, 1
  br i1 %device.ok, label %check.size, label %fail.device

check.size:
  %item = call i64 @vmrt_itemsize(i32 %got.dtype)
  %sizes.at = getelementptr inbounds %dltensor, ptr %tensor, i64 0, i32 4
  %sizes = load ptr, ptr %sizes.at
  %fits = call i1 @vmrt_has_moderate_size(i64 %item, i64 %got.rank, ptr %sizes)
  br i1 %fits, label %check.gaps, label %fail.size

check.gaps:
  %gap = call i64 @vmrt_first_gap(ptr %tensor, i64 %got.rank)
  %no.gap = icmp slt i64 %gap, 0
  br i1 %no.gap, label %check.address, label %fail.gap

check.address:
  %mask = sub i64 %item, 1
  %data = load i64, ptr %tensor
  %offset.at = getelementptr inbounds %dltensor, ptr %tensor, i64 0, i32 6
  %offset = load i64, ptr %offset.at
  %address = add i64 %data, %offset
  %remainder = and i64 %address, %mask
  %aligned = icmp eq i64 %remainder, 0
  br i1 %aligned, label %done, label %unaligned

unaligned:
  %empty = call i1 @vmrt_has_zero(ptr %sizes, i64 %got.rank)
  br i1 %empty, label %done, label %fail.address

done:
  ret ptr %tensor

fail.kind:
  call void @vmrt_fail_kind(ptr %any, ptr @vmrt_text_not_tensor, ptr %subject)
  ret ptr null

fail.rank:
  call void (ptr, ptr, ...) @vmrt_raise(ptr @vmrt_type_error, ptr @vmrt_text_wrong_rank, ptr %subject, i64 %rank, i64 %got.rank)
  ret ptr null

fail.dtype:
  call void @vmrt_fail_dtype(ptr %subject, i32 %dtype, i32 %got.dtype)
  ret ptr null

fail.device:
  %device64 = sext i32 %device to i64
  call void (ptr, ptr, ...) @vmrt_raise(ptr @vmrt_value_error, ptr @vmrt_text_wrong_device, ptr %subject, i64 %device64)
  ret ptr null

fail.size:
  call void (ptr, ptr, ...) @vmrt_raise(ptr @vmrt_value_error, ptr @vmrt_text_too_large_argument, ptr %subject)
  ret ptr null

fail.gap:
  call void (ptr, ptr, ...) @vmrt_raise(ptr @vmrt_value_error, ptr @vmrt_text_not_contiguous, ptr %subject, i64 %gap)
  ret ptr null

fail.address:
  call void (ptr, ptr, ...) @vmrt_raise(ptr @vmrt_value_error, ptr @vmrt_text_not_aligned, ptr %subject, i64 %item, i64 %remainder)
  ret ptr null
}

define void @vmrt_fail_dtype(ptr %subject, i32 %expected, i32 %got) noinline cold {
  %wanted = alloca [64 x i8]
  %found = alloca [64 x i8]
  call void @vmrt_dtype_name(i32 %expected, ptr %wanted)
  call void @vmrt_dtype_name(i32 %got, ptr %found)
  call void (ptr, ptr, ...) @vmrt_raise(ptr @vmrt_type_error, ptr @vmrt_text_wrong_dtype, ptr %subject, ptr %wanted, ptr %found)
  ret void
}

; Writes the name of a DLDataType, cut off at 63 bytes, to `text`.
define void @vmrt_dtype_name(i32 %dtype, ptr %text) {
entry:
  %place = alloca i32
  %name = alloca %any
  store i32 %dtype, ptr %place
  store %any zeroinitializer, ptr %name
  %status = call i32 @TVMFFIDataTypeToString(ptr %place, ptr %name)
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %unknown, label %known

unknown:
  %code = and i32 %dtype, 255
  %bits.shifted = lshr i32 %dtype, 8
  %bits = and i32 %bits.shifted, 255
  %described = call i32 (ptr, i64, ptr, ...) @snprintf(ptr %text, i64 64, ptr @vmrt_other_dtype, i32 %code, i32 %bits)
  ret void

known:
  %kind = load i32, ptr %name
  %is.small = icmp eq i32 %kind, 11
  br i1 %is.small, label %small, label %other

small:
  %length.at = getelementptr inbounds %any, ptr %name, i64 0, i32 1
  %small.length = load i32, ptr %length.at
  %small.data = getelementptr inbounds %any, ptr %name, i64 0, i32 2
  br label %write

other:
  %is.object = icmp eq i32 %kind, 65
  br i1 %is.object, label %object, label %write

object:
  %object.at = getelementptr inbounds %any, ptr %name, i64 0, i32 2
  %string = load ptr, ptr %object.at
  %data.at = getelementptr inbounds i8, ptr %string, i64 24
  %object.data = load ptr, ptr %data.at
  %size.at = getelementptr inbounds i8, ptr %string, i64 32
  %size = load i32, ptr %size.at
  br label %write

write:
  %length = phi i32 [ %small.length, %small ], [ %size, %object ], [ 0, %other ]
  %data = phi ptr [ %small.data, %small ], [ %object.data, %object ], [ %name, %other ]
  %written = call i32 (ptr, i64, ptr, ...) @snprintf(ptr %text, i64 64, ptr @vmrt_slice, i32 %length, ptr %data)
  call void @vmrt_clear(ptr %name)
  ret void
}

; The first axis, from the last one on, along which elements are not where a contiguous tensor has them; -1 if there is none.
define i64 @vmrt_first_gap(ptr %tensor, i64 %rank) {
entry:
  %strides.at = getelementptr inbounds %dltensor, ptr %tensor, i64 0, i32 5
  %strides = load ptr, ptr %strides.at
  %shape.at = getelementptr inbounds %dltensor, ptr %tensor, i64 0, i32 4
  %shape = load ptr, ptr %shape.at
  %contiguous = icmp eq ptr %strides, null
  br i1 %contiguous, label %none, label %head

head:
  %left = phi i64 [ %rank, %entry ], [ %axis, %step ]
  %expected = phi i64 [ 1, %entry ], [ %next, %step ]
  %more = icmp sgt i64 %left, 0
  br i1 %more, label %body, label %none

body:
  %axis = sub i64 %left, 1
  %size.at = getelementptr inbounds i64, ptr %shape, i64 %axis
  %size = load i64, ptr %size.at
  %stride.at = getelementptr inbounds i64, ptr %strides, i64 %axis
  %stride = load i64, ptr %stride.at
  %same = icmp eq i64 %stride, %expected
  %single = icmp eq i64 %size, 1
  %fits = or i1 %same, %single
  br i1 %fits, label %step, label %gap

step:
  %next = mul i64 %expected, %size
  br label %head

gap:
  %empty = call i1 @vmrt_has_zero(ptr %shape, i64 %rank)
  br i1 %empty, label %none, label %found

found:
  ret i64 %axis

none:
  ret i64 -1
}

; Whether one of `count` sizes is 0: then there are no elements to be apart.
define i1 @vmrt_has_zero(ptr %sizes, i64 %count) {
entry:
  br label %head

head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %no

body:
  %at = getelementptr inbounds i64, ptr %sizes, i64 %i
  %size = load i64, ptr %at
  %zero = icmp eq i64 %size, 0
  %next = add nuw i64 %i, 1
  br i1 %zero, label %yes, label %head

yes:
  ret i1 true

no:
  ret i1 false
}

; The value is a shape of `rank` dimensions (-1: any).
define i32 @vmrt_check_shape(ptr %any, i64 %rank, ptr %subject) {
entry:
  %kind = load i32, ptr %any
  %kind.ok = icmp eq i32 %kind, 69
  br i1 %kind.ok, label %check.rank, label %fail.kind

check.rank:
  %payload.at = getelementptr inbounds %any, ptr %any, i64 0, i32 2
  %shape = load ptr, ptr %payload.at
  %size.at = getelementptr inbounds i8, ptr %shape, i64 32
  %size = load i64, ptr %size.at
  %any.rank = icmp slt i64 %rank, 0
  %same.rank = icmp eq i64 %rank, %size
  %rank.ok = or i1 %any.rank, %same.rank
  br i1 %rank.ok, label %done, label %fail.rank

done:
  ret i32 0

fail.kind:
  call void @vmrt_fail_kind(ptr %any, ptr @vmrt_text_not_shape, ptr %subject)
  ret i32 -1

fail.rank:
  call void (ptr, ptr, ...) @vmrt_raise(ptr @vmrt_type_error, ptr @vmrt_text_wrong_rank, ptr %subject, i64 %rank, i64 %size)
  ret i32 -1
}

; The value is of the kind `kind`; `format` takes the subject and the kind that it is.
define i32 @vmrt_check_kind(ptr %any, i32 %kind, ptr %format, ptr %subject) {
entry:
  %got = load i32, ptr %any
  %ok = icmp eq i32 %got, %kind
  br i1 %ok, label %done, label %fail

done:
  ret i32 0

fail:
  call void @vmrt_fail_kind(ptr %any, ptr %format, ptr %subject)
  ret i32 -1
}

; Two tensors, each its first byte and the number of its bytes, have no memory in common; `format` is the message.
define i32 @vmrt_check_apart(ptr %first, i64 %bytes, ptr %second, i64 %other.bytes, ptr %format) {
entry:
  %end = getelementptr i8, ptr %first, i64 %bytes
  %other.end = getelementptr i8, ptr %second, i64 %other.bytes
  %before = icmp ule ptr %end, %second
  %behind = icmp ule ptr %other.end, %first
  %apart = or i1 %before, %behind
  br i1 %apart, label %done, label %check.empty

check.empty:
  %empty = icmp eq i64 %bytes, 0
  %other.empty = icmp eq i64 %other.bytes, 0
  %nothing = or i1 %empty, %other.empty
  br i1 %nothing, label %done, label %fail

done:
  ret i32 0

fail:
  call void (ptr, ptr, ...) @vmrt_raise(ptr @vmrt_value_error, ptr %format)
  ret i32 -1
}
