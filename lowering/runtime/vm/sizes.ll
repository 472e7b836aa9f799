; Arithmetic on the sizes of tensors.

; Bytes of a tensor of `rank` sizes at `itemsize` bytes an element; -1 after an error. It is too large with more than
; MOST_BYTES bytes, where sizes of 0 count as 1: with such sizes no product overflows unnoticed.
define i64 @vmrt_byte_size(i64 %itemsize, i64 %rank, ptr %sizes) {
entry:
  br label %head

head:
  %i = phi i64 [ 0, %entry ], [ %next, %step ]
  %bytes = phi i64 [ %itemsize, %entry ], [ %product, %step ]
  %empty = phi i1 [ false, %entry ], [ %now.empty, %step ]
  %overflow = phi i1 [ false, %entry ], [ %now.overflow, %step ]
  %more = icmp slt i64 %i, %rank
  br i1 %more, label %body, label %done

body:
  %size.at = getelementptr inbounds i64, ptr %sizes, i64 %i
  %size = load i64, ptr %size.at
  %is.negative = icmp slt i64 %size, 0
  br i1 %is.negative, label %negative, label %step

step:
  %factor = call i64 @llvm.umax.i64(i64 %size, i64 1)
  %checked = call { i64, i1 } @llvm.smul.with.overflow.i64(i64 %bytes, i64 %factor)
  %product = extractvalue { i64, i1 } %checked, 0
  %wrapped = extractvalue { i64, i1 } %checked, 1
  %now.overflow = or i1 %overflow, %wrapped
  %is.zero = icmp eq i64 %size, 0
  %now.empty = or i1 %empty, %is.zero
  %next = add nuw i64 %i, 1
  br label %head

done:
  %too.large = icmp sgt i64 %bytes, MOST_BYTES
  %refused = or i1 %overflow, %too.large
  %result = select i1 %empty, i64 0, i64 %bytes
  br i1 %refused, label %large, label %return

return:
  ret i64 %result

negative:
  call void (ptr, ptr, ...) @vmrt_raise(ptr @vmrt_value_error, ptr @vmrt_text_negative_dimension, i64 %i, i64 %size)
  ret i64 -1

large:
  call void @TVMFFIErrorSetRaisedFromCStr(ptr @vmrt_memory_error, ptr @vmrt_text_too_large)
  ret i64 -1
}

; Whether a tensor has at most MOST_BYTES bytes, where sizes of 0 count as 1.
define i1 @vmrt_has_moderate_size(i64 %itemsize, i64 %rank, ptr %sizes) {
entry:
  br label %head

head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %bytes = phi i64 [ %itemsize, %entry ], [ %product, %body ]
  %fits = phi i1 [ true, %entry ], [ %still, %body ]
  %more = icmp slt i64 %i, %rank
  br i1 %more, label %body, label %done

body:
  %size.at = getelementptr inbounds i64, ptr %sizes, i64 %i
  %size = load i64, ptr %size.at
  %factor = call i64 @llvm.umax.i64(i64 %size, i64 1)
  %checked = call { i64, i1 } @llvm.umul.with.overflow.i64(i64 %bytes, i64 %factor)
  %product = extractvalue { i64, i1 } %checked, 0
  %wrapped = extractvalue { i64, i1 } %checked, 1
  %small = icmp ule i64 %product, MOST_BYTES
  %good = select i1 %wrapped, i1 false, i1 %small
  %still = and i1 %fits, %good
  %next = add nuw i64 %i, 1
  br label %head

done:
  ret i1 %fits
}

; Copies `sizes` to `shape` and writes the strides of a contiguous tensor.
define void @vmrt_fill_strides(i64 %rank, ptr %sizes, ptr %shape, ptr %strides) {
entry:
  br label %head

head:
  %left = phi i64 [ %rank, %entry ], [ %i, %body ]
  %stride = phi i64 [ 1, %entry ], [ %next, %body ]
  %more = icmp sgt i64 %left, 0
  br i1 %more, label %body, label %done

body:
  %i = sub i64 %left, 1
  %size.at = getelementptr inbounds i64, ptr %sizes, i64 %i
  %size = load i64, ptr %size.at
  %shape.at = getelementptr inbounds i64, ptr %shape, i64 %i
  store i64 %size, ptr %shape.at
  %stride.at = getelementptr inbounds i64, ptr %strides, i64 %i
  store i64 %stride, ptr %stride.at
  %next = mul i64 %stride, %size
  br label %head

done:
  ret void
}

; Elements of a tensor.
define i64 @vmrt_element_count(ptr %any) {
entry:
  %tensor = call ptr @vmrt_dltensor(ptr %any)
  %rank.at = getelementptr inbounds %dltensor, ptr %tensor, i64 0, i32 2
  %rank32 = load i32, ptr %rank.at
  %rank = sext i32 %rank32 to i64
  %shape.at = getelementptr inbounds %dltensor, ptr %tensor, i64 0, i32 4
  %shape = load ptr, ptr %shape.at
  %count = call i64 @vmrt_product(i64 %rank, ptr %shape)
  ret i64 %count
}

; The product of `rank` sizes, each modulo 2^64.
define i64 @vmrt_product(i64 %rank, ptr %sizes) {
entry:
  br label %head

head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %product = phi i64 [ 1, %entry ], [ %larger, %body ]
  %more = icmp slt i64 %i, %rank
  br i1 %more, label %body, label %done

body:
  %at = getelementptr inbounds i64, ptr %sizes, i64 %i
  %size = load i64, ptr %at
  %larger = mul i64 %product, %size
  %next = add nuw i64 %i, 1
  br label %head

done:
  ret i64 %product
}

; Whether the `rank` sizes of a view have `count` elements; raises an error if not.
define i32 @vmrt_check_count(i64 %count, i64 %rank, ptr %sizes) {
entry:
  %bytes = call i64 @vmrt_byte_size(i64 1, i64 %rank, ptr %sizes)
  %refused = icmp slt i64 %bytes, 0
  br i1 %refused, label %failed, label %compare

compare:
  %same = icmp eq i64 %count, %bytes
  br i1 %same, label %done, label %differs

done:
  ret i32 0

differs:
  call void (ptr, ptr, ...) @vmrt_raise(ptr @vmrt_value_error, ptr @vmrt_text_wrong_element_count, i64 %count, i64 %bytes)
  ret i32 -1

failed:
  ret i32 -1
}

; Bytes of an element of a DLDataType: what is narrower than a byte takes one.
define i64 @vmrt_itemsize(i32 %dtype) {
  %bits.shifted = lshr i32 %dtype, 8
  %bits = and i32 %bits.shifted, 255
  %bits.rounded = add i32 %bits, 7
  %itemsize = lshr i32 %bits.rounded, 3
  %result = zext i32 %itemsize to i64
  ret i64 %result
}
