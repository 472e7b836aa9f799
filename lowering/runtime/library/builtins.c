/* The builtins of the virtual machine that are Python in a process with this package, for shared libraries: what a
 * library calls by a name that begins with `vm.builtin.` it finds in the table at the end of this file. Results and
 * errors are those of `vm_dialect/builtins`. It is compiled into a library that needs it, by the compiler driver that
 * links the library, and knows of the tvm-ffi and C libraries only. Texts and limits in capitals are defined before it.
 *
 * Every function has the packed calling convention: 0, or -1 after it has raised a tvm-ffi error.
 */

#include <dlpack/dlpack.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tvm/ffi/c_api.h>

#define PACKED(name) static int name(void* self, const TVMFFIAny* args, int32_t count, TVMFFIAny* ret)
#define ALIGNMENT 64
#define MOST_RANK 64

/* Errors. */

static int fail(const char* kind, const char* format, ...) {
  char text[1024];
  va_list values;
  va_start(values, format);
  vsnprintf(text, sizeof text, format, values);
  va_end(values);
  TVMFFIErrorSetRaisedFromCStr(kind, text);
  return -1;
}

static int no_memory(void) { return fail("MemoryError", "out of memory"); }

/* Arguments. */

static void* cell(const TVMFFIAny* value) { return (char*)value->v_obj + sizeof(TVMFFIObject); }

static const DLTensor* tensor(const TVMFFIAny* value) {
  if (value->type_index == kTVMFFIDLTensorPtr) return value->v_ptr;
  return value->type_index == kTVMFFITensor ? cell(value) : NULL;
}

static TVMFFIByteArray bytes(const TVMFFIAny* value) {
  TVMFFIByteArray found = {"", 0};
  switch (value->type_index) {
    case kTVMFFISmallStr:
      found.data = value->v_bytes;
      found.size = value->small_str_len;
      break;
    case kTVMFFIRawStr:
      found.data = value->v_c_str;
      found.size = strlen(value->v_c_str);
      break;
    case kTVMFFIByteArrayPtr:
      found = *(const TVMFFIByteArray*)value->v_ptr;
      break;
    case kTVMFFIStr:
      found = *(const TVMFFIByteArray*)cell(value);
      break;
  }
  return found;
}

static bool is_text(const TVMFFIAny* value) {
  int32_t kind = value->type_index;
  return kind == kTVMFFISmallStr || kind == kTVMFFIRawStr || kind == kTVMFFIStr;
}

static const char* kind_name(int32_t index) {
  switch (index) {
    case kTVMFFINone: return "null";
    case kTVMFFIInt: return "int";
    case kTVMFFIBool: return "bool";
    case kTVMFFIFloat: return "float";
    case kTVMFFIOpaquePtr: return "pointer";
    case kTVMFFIDataType: return "dtype";
    case kTVMFFIDevice: return "device";
    case kTVMFFIDLTensorPtr: case kTVMFFITensor: return "tensor";
    case kTVMFFIRawStr: case kTVMFFISmallStr: case kTVMFFIStr: return "string";
    case kTVMFFIByteArrayPtr: case kTVMFFISmallBytes: case kTVMFFIBytes: return "bytes";
    case kTVMFFIError: return "error";
    case kTVMFFIFunction: return "function";
    case kTVMFFIShape: return "shape";
    case kTVMFFIArray: return "tuple";
    case kTVMFFIMap: return "map";
    case kTVMFFIModule: return "module";
    default: return "object";
  }
}

static int expect(const TVMFFIAny* value, const char* name, const char* kind) {
  const char* got = kind_name(value->type_index);
  return strcmp(kind, got) == 0 ? 0 : fail("TypeError", "vm.builtin.%s: expected a %s, got %s", name, kind, got);
}

static int64_t elements(const DLTensor* x) {
  int64_t size = 1;
  for (int i = 0; i < x->ndim; i++) size *= x->shape[i];
  return size;
}

static int element_bytes(DLDataType dtype) { return (dtype.bits + 7) / 8; }

/* The elements one after the other: where they are, or a copy that the caller frees. NULL if there is no memory. */
static const char* contiguous(const DLTensor* x, void** copy) {
  const char* data = (const char*)x->data + x->byte_offset;
  int64_t size = elements(x), width = element_bytes(x->dtype), expected = 1;
  bool is_compact = true;
  *copy = NULL;
  if (x->strides != NULL)
    for (int i = x->ndim - 1; i >= 0; i--) {
      if (x->shape[i] != 1 && x->strides[i] != expected) is_compact = false;
      expected *= x->shape[i];
    }
  if (is_compact || size == 0) return data != NULL ? data : "";
  char* to = *copy = malloc(size * width);
  if (to == NULL) return NULL;
  for (int64_t i = 0; i < size; i++) {
    int64_t rest = i, offset = 0;
    for (int axis = x->ndim - 1; axis >= 0; axis--) {
      offset += rest % x->shape[axis] * x->strides[axis];
      rest /= x->shape[axis];
    }
    memcpy(to + i * width, data + offset * width, width);
  }
  return to;
}

/* Results. */

typedef struct {
  DLManagedTensorVersioned managed;
  int64_t shape[2 * MOST_RANK];
} Owned;

static void release(DLManagedTensorVersioned* self) {
  free(self->dl_tensor.data);
  free(self);
}

/* A new tensor in `to`, whose elements are at the address that it gives; NULL after an error. */
static void* new_tensor(TVMFFIAny* to, DLDataType dtype, int rank, const int64_t* shape) {
  int64_t size = element_bytes(dtype), bound = size;
  for (int i = 0; i < rank; i++) {
    if (shape[i] < 0) {
      fail("ValueError", NEGATIVE_DIMENSION, (long long)i, (long long)shape[i]);
      return NULL;
    }
    int64_t at_least = shape[i] > 1 ? shape[i] : 1;
    if (__builtin_mul_overflow(bound, at_least, &bound) || bound > MOST_BYTES) {
      fail("MemoryError", TOO_LARGE);
      return NULL;
    }
    size *= shape[i];
  }
  Owned* owned = calloc(1, sizeof *owned);
  void* data = NULL;
  if (owned == NULL || rank > MOST_RANK || posix_memalign(&data, ALIGNMENT, size ? size : 1) != 0) {
    free(owned);
    no_memory();
    return NULL;
  }
  int64_t stride = 1;
  for (int i = rank - 1; i >= 0; i--) {
    owned->shape[i] = shape[i];
    owned->shape[MOST_RANK + i] = stride;
    stride *= shape[i];
  }
  owned->managed.version.major = DLPACK_MAJOR_VERSION;
  owned->managed.version.minor = DLPACK_MINOR_VERSION;
  owned->managed.deleter = release;
  owned->managed.dl_tensor = (DLTensor){data, {kDLCPU, 0}, rank, dtype, owned->shape, owned->shape + MOST_RANK, 0};
  TVMFFIObjectHandle handle;
  if (TVMFFITensorFromDLPackVersioned(&owned->managed, 0, 0, &handle) != 0) {
    release(&owned->managed);
    return NULL;
  }
  *to = (TVMFFIAny){.type_index = kTVMFFITensor, .v_obj = handle};
  return data;
}

static void clear(TVMFFIAny* value) {
  if (value->type_index >= kTVMFFIStaticObjectBegin) TVMFFIObjectDecRef(value->v_obj);
  memset(value, 0, sizeof *value);
}

/* What a function of the tvm-ffi registry gives. */
static int call_global(const char* name, const TVMFFIAny* args, int32_t count, TVMFFIAny* ret) {
  TVMFFIByteArray key = {name, strlen(name)};
  TVMFFIObjectHandle function = NULL;
  if (TVMFFIFunctionGetGlobal(&key, &function) != 0) return -1;
  if (function == NULL) return fail("ValueError", "tvm-ffi has no function %s", name);
  memset(ret, 0, sizeof *ret);
  int status = TVMFFIFunctionCall(function, (TVMFFIAny*)args, count, ret);
  TVMFFIObjectDecRef(function);
  return status;
}

/* Text that grows. */

typedef struct {
  char* data;
  size_t size, room;
  bool failed;
} Text;

static void append(Text* text, const char* data, size_t size) {
  if (text->failed) return;
  if (text->size + size + 1 > text->room) {
    size_t room = 2 * (text->size + size) + 64;
    char* grown = realloc(text->data, room);
    if (grown == NULL) {
      text->failed = true;
      return;
    }
    text->data = grown;
    text->room = room;
  }
  memcpy(text->data + text->size, data, size);
  text->size += size;
  text->data[text->size] = 0;
}

static void put(Text* text, const char* format, ...) {
  char part[512];
  va_list values;
  va_start(values, format);
  int size = vsnprintf(part, sizeof part, format, values);
  va_end(values);
  append(text, part, size);
}

static void spaces(Text* text, int count) {
  while (count-- > 0) append(text, " ", 1);
}

/* Numbers as NumPy and Python write them. */

static double half(uint16_t bits) {
  int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  double value = exponent == 0    ? ldexp(mantissa, -24)
                 : exponent == 31 ? (mantissa ? NAN : INFINITY)
                                  : ldexp(mantissa + 1024, exponent - 25);
  return bits >> 15 ? -value : value;
}

static double bfloat(uint16_t bits) {
  uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

static double float_at(const char* data, DLDataType dtype) {
  uint16_t bits;
  float single;
  double value;
  memcpy(&bits, data, 2);
  if (dtype.code == kDLBfloat) return bfloat(bits);
  if (dtype.bits == 16) return half(bits);
  if (dtype.bits == 32) {
    memcpy(&single, data, 4);
    return single;
  }
  memcpy(&value, data, 8);
  return value;
}

static uint64_t bits_at(const char* data, DLDataType dtype) {
  uint64_t value = 0;
  memcpy(&value, data, element_bytes(dtype));
  if (dtype.code == kDLInt && dtype.bits < 64 && value >> (dtype.bits - 1) & 1) value |= ~0ULL << dtype.bits;
  return value;
}

static bool is_float(DLDataType dtype) { return dtype.code == kDLFloat || dtype.code == kDLBfloat; }

/* Whether elements can be compared and printed here: those of whole bytes that C has, halves and bfloat16. */
static int expect_element(DLDataType dtype, const char* name) {
  bool is_whole = dtype.bits == 8 || dtype.bits == 16 || dtype.bits == 32 || dtype.bits == 64;
  bool is_known = dtype.code <= kDLUInt || dtype.code == kDLBool || dtype.code == kDLBfloat ||
                  (dtype.code == kDLFloat && dtype.bits > 8);
  if (is_whole && is_known && dtype.lanes == 1) return 0;
  return fail("TypeError", "vm.builtin.%s: a library has no such function for elements of %d bits of DLPack's type %d",
              name, dtype.bits, dtype.code);
}

/* Half a step of a half float above and below a value: what other decimals may differ by and mean the same. */
static bool same_half(double decimal, double value) {
  int exponent;
  frexp(value, &exponent);
  double step = ldexp(1, exponent - 11 > -24 ? exponent - 11 : -24), below = step;
  if (fabs(frexp(value, &exponent)) == 0.5 && exponent - 11 > -24) below = step / 2;
  double distance = fabs(decimal) - fabs(value);
  bool is_even = fmod(fabs(value) / step, 2) == 0;
  if (distance >= 0) return distance < step / 2 || (is_even && distance == step / 2);
  return -distance < below / 2 || (is_even && -distance == below / 2);
}

/* The fewest digits, one before the point, that mean this value and no other of its width: `d.ddde[+-]dd`. */
static int shortest(double value, int width, char* to) {
  for (int digits = 0; digits < 17; digits++) {
    sprintf(to, "%.*e", digits, value);
    double read = strtod(to, NULL);
    if (width == 64 ? read == value : width == 32 ? strtof(to, NULL) == (float)value : same_half(read, value))
      return digits;
  }
  return 16;
}

/* How the floats of a tensor are written, so that their points are below each other: NumPy's `FloatingFormat`. */
typedef struct {
  bool with_exponent, is_plain;
  int width, left, right, exponent_digits;
} Floats;

/* A float without padding, at most 8 digits after the point, which is always there. */
static void positional(double value, int width, char* to) {
  char digits[40];
  int fraction = shortest(value, width, digits) - atoi(strchr(digits, 'e') + 1);
  /* Beyond the digits that mean the value there are zeros. */
  if (fraction < 0) value = strtod(digits, NULL);
  sprintf(to, "%.*f", fraction < 0 ? 0 : fraction > 8 ? 8 : fraction, value);
  if (strchr(to, '.') == NULL) {
    strcat(to, ".");
  } else {
    char* end = to + strlen(to);
    while (end[-1] == '0') *--end = 0;
  }
}

/* The same with an exponent, and its digits after the point; the text before `e` ends without zeros. */
static int scientific(double value, int width, char* to) {
  int digits = shortest(value, width, to);
  if (digits > 8) sprintf(to, "%.*e", digits = 8, value);
  char *mark = strchr(to, 'e'), *end = mark;
  while (digits > 0 && end[-1] == '0') end--, digits--;
  memmove(end, mark, strlen(mark) + 1);
  return digits;
}

static void measure(Floats* how, double value) {
  char text[400];
  if (how->with_exponent) {
    int fraction = scientific(value, how->width, text);
    int left = strcspn(text, ".e"), exponent = strlen(strchr(text, 'e')) - 2;
    if (fraction > how->right) how->right = fraction;
    if (left > how->left) how->left = left;
    if (exponent > how->exponent_digits) how->exponent_digits = exponent;
  } else {
    positional(value, how->width, text);
    int left = strcspn(text, "."), right = strlen(text) - left - 1;
    if (left > how->left) how->left = left;
    if (right > how->right) how->right = right;
  }
}

static void put_float(Text* text, const Floats* how, double value) {
  char part[400];
  if (how->is_plain) {
    put(text, isnan(value) ? "nan" : "%g", value);
    return;
  }
  int after = how->with_exponent ? how->right + how->exponent_digits + 2 : how->right;
  if (!isfinite(value)) {
    const char* name = isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
    spaces(text, how->left + after + 1 - (int)strlen(name));
    put(text, "%s", name);
    return;
  }
  if (how->with_exponent) {
    /* As many digits as the longest has, of the value itself where fewer would mean it. */
    sprintf(part, "%.*e", how->right, value);
    char* mark = strchr(part, 'e');
    spaces(text, how->left - (int)strcspn(part, ".e"));
    append(text, part, mark - part);
    if (how->right == 0) append(text, ".", 1);
    put(text, "e%c%0*d", mark[1], how->exponent_digits, abs(atoi(mark + 1)));
  } else {
    positional(value, how->width, part);
    int left = strcspn(part, ".");
    spaces(text, how->left - left);
    append(text, part, strlen(part));
    spaces(text, how->right - (int)strlen(part) + left + 1);
  }
}

/* A float alone, as Python writes it. */
static void put_scalar(Text* text, double value, int width) {
  char part[400];
  double size = fabs(value);
  if (!isfinite(value)) {
    put(text, "%s", isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
  } else if (size != 0 && (size < 1e-4 || size >= 1e16)) {
    shortest(value, width, part);
    append(text, part, strlen(part));
  } else {
    int fraction = shortest(value, width, part) - atoi(strchr(part, 'e') + 1);
    put(text, "%.*f", fraction < 1 ? 1 : fraction, fraction < 0 ? strtod(part, NULL) : value);
  }
}

/* Tensors as NumPy writes them. */

typedef struct {
  const char* data;
  const DLTensor* shape;
  bool is_summary;
  int word; /* characters of an integer */
  Floats floats;
  Text* text;
  size_t line; /* where the current line begins in the text */
} Printer;

static bool leaves_out(const Printer* printer, int axis) {
  return printer->is_summary && printer->shape->shape[axis] > 6;
}

static void put_element(Text* text, const Printer* printer, const char* at) {
  DLDataType dtype = printer->shape->dtype;
  char part[32];
  if (is_float(dtype)) {
    put_float(text, &printer->floats, float_at(at, dtype));
    return;
  }
  uint64_t bits = bits_at(at, dtype);
  if (dtype.code == kDLBool)
    sprintf(part, "%s", bits ? "True" : "False");
  else
    sprintf(part, dtype.code == kDLInt ? "%lld" : "%llu", (long long)bits);
  put(text, "%*s", printer->word, part);
}

typedef void Visitor(Printer* printer, const char* at, void* state);

/* Calls the visitor with each element that is written. */
static void visit(Printer* printer, int axis, const char* at, int64_t stride, Visitor* visitor, void* state) {
  const DLTensor* x = printer->shape;
  if (axis == x->ndim) {
    visitor(printer, at, state);
    return;
  }
  int64_t length = x->shape[axis], inner = stride / length;
  for (int64_t i = 0; i < length; i++) {
    if (leaves_out(printer, axis) && i == 3) i = length - 3;
    visit(printer, axis + 1, at + i * inner, inner, visitor, state);
  }
}

typedef struct {
  double least, most;
  bool is_any, has_negative_infinity, has_other;
} Range;

static void see_range(Printer* printer, const char* at, void* state) {
  Range* range = state;
  double value = float_at(at, printer->shape->dtype), size = fabs(value);
  if (!isfinite(value)) {
    range->has_other = true;
    range->has_negative_infinity |= value == -INFINITY;
  } else if (size != 0) {
    if (!range->is_any || size < range->least) range->least = size;
    if (!range->is_any || size > range->most) range->most = size;
    range->is_any = true;
  }
}

static void see_float(Printer* printer, const char* at, void* state) {
  double value = float_at(at, printer->shape->dtype);
  *(bool*)state |= isfinite(value);
  if (isfinite(value)) measure(&printer->floats, value);
}

static void see_word(Printer* printer, const char* at, void* state) {
  char part[32];
  DLDataType dtype = printer->shape->dtype;
  int length = 5;
  if (dtype.code != kDLBool)
    length = sprintf(part, dtype.code == kDLInt ? "%lld" : "%llu", (long long)bits_at(at, dtype));
  if (length > printer->word) printer->word = length;
}

/* Whether some are so large, so small or so different that all are written with exponents, in the precision of the
 * elements. Since NumPy 2.4 the narrower are written so from fewer digits on. */
static bool needs_exponent(const Range* range, int width) {
  if (width == 64) return range->most >= 1e8 || range->least < 1e-4 || range->most / range->least > 1000.0;
  if (width == 32)
    return (float)range->most >= LARGE_SINGLE || (float)range->least < 1e-4f ||
           (float)range->most / (float)range->least > 1000;
  return range->most >= LARGE_HALF || range->least < half(0x068e) || range->most / range->least > 1000.25;
}

static void prepare(Printer* printer, int64_t bytes_in_all) {
  DLDataType dtype = printer->shape->dtype;
  if (!is_float(dtype)) {
    visit(printer, 0, printer->data, bytes_in_all, see_word, NULL);
    return;
  }
  Range range = {0};
  Floats* how = &printer->floats;
  bool is_any_finite = false;
  how->width = dtype.bits;
  how->is_plain = dtype.code == kDLBfloat;
  visit(printer, 0, printer->data, bytes_in_all, see_range, &range);
  how->with_exponent = range.is_any && needs_exponent(&range, dtype.bits);
  visit(printer, 0, printer->data, bytes_in_all, see_float, &is_any_finite);
  if (how->with_exponent && !is_any_finite) how->with_exponent = false;
  if (range.has_other) {
    int after = (how->with_exponent ? how->right + how->exponent_digits + 2 : how->right) + 1;
    int needed = 3 + range.has_negative_infinity - after;
    if (3 - after > needed) needed = 3 - after;
    if (needed > how->left) how->left = needed;
  }
}

/* A word at the end of the line, or of the next one if it has no room for it. */
static void add_word(Printer* printer, const char* word, size_t size, int width, int indent) {
  Text* text = printer->text;
  size_t line = text->size - printer->line;
  if ((int)(line + size) > width && (int)line > indent) {
    while (text->size > printer->line && text->data[text->size - 1] == ' ') text->size--;
    append(text, "\n", 1);
    printer->line = text->size;
    spaces(text, indent);
  }
  append(text, word, size);
}

static void put_row(Printer* printer, int axis, const char* at, int64_t stride, int indent, int width) {
  int64_t length = printer->shape->shape[axis], inner = stride / length;
  for (int64_t i = 0; i < length; i++) {
    Text word = {0};
    if (leaves_out(printer, axis) && i == 3) {
      add_word(printer, "...", 3, width - 1, indent);
      append(printer->text, " ", 1);
      i = length - 3;
    }
    put_element(&word, printer, at + i * inner);
    add_word(printer, word.data, word.size, width - 1, indent);
    printer->text->failed |= word.failed;
    free(word.data);
    if (i + 1 < length) append(printer->text, " ", 1);
  }
}

static void put_axis(Printer* printer, int axis, const char* at, int64_t stride, int indent, int width) {
  const DLTensor* x = printer->shape;
  Text* text = printer->text;
  int left = x->ndim - axis;
  append(text, "[", 1);
  if (left == 1) {
    /* The bracket stands where the last of the indent was. */
    put_row(printer, axis, at, stride, indent, width);
  } else {
    int64_t length = x->shape[axis], inner = stride / length;
    for (int64_t i = 0; i < length; i++) {
      if (i > 0) {
        for (int line = 1; line < left; line++) append(text, "\n", 1);
        printer->line = text->size;
        spaces(text, indent);
      }
      if (leaves_out(printer, axis) && i == 3) {
        append(text, "...", 3);
        for (int line = 1; line < left; line++) append(text, "\n", 1);
        printer->line = text->size;
        spaces(text, indent);
        i = length - 3;
      }
      put_axis(printer, axis + 1, at + i * inner, inner, indent + 1, width - 1);
    }
  }
  append(text, "]", 1);
}

static int put_tensor(Text* text, const DLTensor* x) {
  if (expect_element(x->dtype, "print") != 0) return -1;
  if (x->device.device_type != kDLCPU) return fail("ValueError", "vm.builtin.print: expected a tensor of the CPU");
  int64_t size = elements(x);
  if (x->ndim > 0 && size == 0) {
    append(text, "[]", 2);
    return 0;
  }
  void* copy;
  const char* data = contiguous(x, &copy);
  if (data == NULL) return no_memory();
  Printer printer = {data, x, size > 1000, 0, {0}, text, 0};
  if (x->ndim == 0 && is_float(x->dtype) && x->dtype.code != kDLBfloat) {
    put_scalar(text, float_at(data, x->dtype), x->dtype.bits);
  } else if (x->ndim == 0) {
    printer.floats.is_plain = true;
    put_element(text, &printer, data);
  } else {
    /* Lines are measured from the beginning of the tensor, whatever stands before it. */
    Text own = {0};
    int64_t bytes_in_all = size * element_bytes(x->dtype);
    prepare(&printer, bytes_in_all);
    printer.text = &own;
    put_axis(&printer, 0, data, bytes_in_all, 1, 75);
    append(text, own.data, own.size);
    text->failed |= own.failed;
    free(own.data);
  }
  free(copy);
  return 0;
}

/* Values as text. */

static void put_dtype(Text* text, DLDataType dtype) {
  TVMFFIAny name = {0};
  if (dtype.lanes == 1 && dtype.code <= kDLFloat)
    put(text, "%s%d", dtype.code == kDLInt ? "i" : dtype.code == kDLUInt ? "ui" : "f", dtype.bits);
  else if (dtype.lanes == 1 && (dtype.code == kDLBool || dtype.code == kDLBfloat))
    put(text, "%s", dtype.code == kDLBool ? "i1" : "bf16");
  else if (TVMFFIDataTypeToString(&dtype, &name) == 0) {
    TVMFFIByteArray found = bytes(&name);
    append(text, found.data, found.size);
    clear(&name);
  }
}

static int put_value(Text* text, const TVMFFIAny* value, int* fields) {
  if ((*fields)++ > MOST_FIELDS) return fail("ValueError", "print: a tuple of more than %d fields in all", MOST_FIELDS);
  if (tensor(value) != NULL) return put_tensor(text, tensor(value));
  if (is_text(value)) {
    TVMFFIByteArray found = bytes(value);
    append(text, found.data, found.size);
    return 0;
  }
  switch (value->type_index) {
    case kTVMFFINone: put(text, "null"); return 0;
    case kTVMFFIBool: put(text, "%s", value->v_int64 ? "true" : "false"); return 0;
    case kTVMFFIInt: put(text, "%lld", (long long)value->v_int64); return 0;
    case kTVMFFIFloat: put_scalar(text, value->v_float64, 64); return 0;
    case kTVMFFIDataType: put_dtype(text, value->v_dtype); return 0;
    case kTVMFFIShape: {
      const TVMFFIShapeCell* shape = cell(value);
      for (size_t i = 0; i < shape->size; i++) put(text, "%s%lld", i ? ", " : "[", (long long)shape->data[i]);
      put(text, "%s", shape->size ? "]" : "[]");
      return 0;
    }
    case kTVMFFIArray: {
      const TVMFFISeqCell* tuple = cell(value);
      append(text, "(", 1);
      for (int64_t i = 0; i < tuple->size; i++) {
        if (i > 0) append(text, ", ", 2);
        if (put_value(text, (const TVMFFIAny*)tuple->data + i, fields) != 0) return -1;
      }
      append(text, ")", 1);
      return 0;
    }
    default: put(text, "<%s>", kind_name(value->type_index)); return 0;
  }
}

/* The format with its `{}` replaced by the text of the values, as a text that the caller frees. */
static int fill(const TVMFFIAny* args, int32_t count, Text* text) {
  TVMFFIByteArray format = bytes(args);
  int32_t used = 1;
  for (size_t i = 0; i < format.size; i++) {
    if (i + 1 < format.size && format.data[i] == '{' && format.data[i + 1] == '}') {
      int fields = 0;
      if (used < count && put_value(text, args + used, &fields) != 0) return -1;
      used++;
      i++;
    } else {
      append(text, format.data + i, 1);
    }
  }
  append(text, "", 0);
  if (used != count)
    return fail("ValueError", "format has %d marks for %d values: %.*s", used - 1, count - 1, (int)format.size, format.data);
  return text->failed ? no_memory() : 0;
}

PACKED(builtin_print) {
  Text text = {0};
  int status = fill(args, count, &text);
  if (status == 0) {
    append(&text, "\n", 1);
    fwrite(text.data, 1, text.size, stdout);
    fflush(stdout);
  }
  free(text.data);
  return status;
}

PACKED(builtin_fail) {
  Text text = {0};
  if (fill(args, count, &text) == 0) TVMFFIErrorSetRaisedFromCStr("ValueError", text.data);
  free(text.data);
  return -1;
}

/* Shapes. */

PACKED(builtin_shape_from_tensor) {
  if (expect(args, "shape_from_tensor", "tensor") != 0) return -1;
  const DLTensor* x = tensor(args);
  if (x->ndim != 1 || x->dtype.code > kDLUInt || x->dtype.bits < 8)
    return fail("TypeError", "shape_from_tensor: expected a vector of integers, got a tensor of rank %d and DLPack's "
                "type %d", x->ndim, x->dtype.code);
  int64_t stride = x->strides == NULL ? 1 : x->strides[0], width = element_bytes(x->dtype);
  TVMFFIAny* dims = calloc(x->shape[0] + 1, sizeof *dims);
  if (dims == NULL) return no_memory();
  for (int64_t i = 0; i < x->shape[0]; i++) {
    const char* at = (const char*)x->data + x->byte_offset + i * stride * width;
    dims[i] = (TVMFFIAny){.type_index = kTVMFFIInt, .v_int64 = (int64_t)bits_at(at, x->dtype)};
  }
  int status = call_global("ffi.Shape", dims, (int32_t)x->shape[0], ret);
  free(dims);
  return status;
}

PACKED(builtin_shape_to_tensor) {
  if (expect(args, "shape_to_tensor", "shape") != 0) return -1;
  const TVMFFIShapeCell* shape = cell(args);
  int64_t size = (int64_t)shape->size;
  void* data = new_tensor(ret, (DLDataType){kDLInt, 64, 1}, 1, &size);
  if (data == NULL) return -1;
  if (size > 0) memcpy(data, shape->data, size * sizeof(int64_t));
  return 0;
}

PACKED(builtin_new_tensor_of_shape) {
  DLDataType dtype;
  if (expect(args + 1, "new_tensor_of_shape", "shape") != 0) return -1;
  if (args->type_index == kTVMFFIDataType) {
    dtype = args->v_dtype;
  } else {
    TVMFFIByteArray name = bytes(args);
    if (TVMFFIDataTypeFromString(&name, &dtype) != 0) return -1;
  }
  const TVMFFIShapeCell* shape = cell(args + 1);
  return new_tensor(ret, dtype, (int)shape->size, shape->data) == NULL ? -1 : 0;
}

PACKED(builtin_get_packed_func) {
  TVMFFIByteArray name = bytes(args);
  TVMFFIObjectHandle function = NULL;
  if (TVMFFIFunctionGetGlobal(&name, &function) != 0) return -1;
  if (function == NULL) {
    char text[256];
    snprintf(text, sizeof text, "%.*s", (int)name.size, name.data);
    return fail("ValueError", UNKNOWN_PACKED, text, text);
  }
  *ret = (TVMFFIAny){.type_index = kTVMFFIFunction, .v_obj = function};
  return 0;
}

/* Results whose shapes depend on data. */

PACKED(builtin_nonzero) {
  if (expect(args, "nonzero", "tensor") != 0) return -1;
  const DLTensor* x = tensor(args);
  if (expect_element(x->dtype, "nonzero") != 0) return -1;
  void* copy;
  const char* data = contiguous(x, &copy);
  if (data == NULL) return no_memory();
  int64_t size = elements(x), width = element_bytes(x->dtype), shape[2] = {x->ndim, 0};
#define IS_SET(i) (is_float(x->dtype) ? float_at(data + (i) * width, x->dtype) != 0 : bits_at(data + (i) * width, x->dtype) != 0)
  for (int64_t i = 0; i < size; i++) shape[1] += IS_SET(i);
  int64_t *to = new_tensor(ret, (DLDataType){kDLInt, 64, 1}, 2, shape), column = 0;
  for (int64_t i = 0; to != NULL && i < size; i++) {
    if (!IS_SET(i)) continue;
    int64_t rest = i;
    for (int axis = x->ndim - 1; axis >= 0; axis--) {
      to[axis * shape[1] + column] = rest % x->shape[axis];
      rest /= x->shape[axis];
    }
    column++;
  }
  free(copy);
  return to == NULL ? -1 : 0;
}

/* The rows of a matrix in order. */
typedef struct {
  const char* data;
  int64_t length; /* elements of a row */
  DLDataType dtype;
  bool nan_is_nan; /* whether NaN equals NaN */
} Rows;

static int order_of_elements(const char* a, const char* b, DLDataType dtype) {
  if (is_float(dtype)) {
    double x = float_at(a, dtype), y = float_at(b, dtype);
    if (isnan(x) || isnan(y)) return isnan(x) - isnan(y); /* NaN is last */
    return (x > y) - (x < y);
  }
  uint64_t x = bits_at(a, dtype), y = bits_at(b, dtype);
  if (dtype.code == kDLInt) return ((int64_t)x > (int64_t)y) - ((int64_t)x < (int64_t)y);
  return (x > y) - (x < y);
}

static int order_of_rows(const Rows* rows, int64_t i, int64_t j) {
  int64_t width = element_bytes(rows->dtype);
  for (int64_t k = 0; k < rows->length; k++) {
    int64_t a = (i * rows->length + k) * width, b = (j * rows->length + k) * width;
    int order = order_of_elements(rows->data + a, rows->data + b, rows->dtype);
    if (order != 0) return order;
  }
  return 0;
}

static bool are_equal(const Rows* rows, int64_t i, int64_t j) {
  if (order_of_rows(rows, i, j) != 0) return false;
  if (rows->nan_is_nan || !is_float(rows->dtype)) return true;
  for (int64_t k = 0; k < rows->length; k++)
    if (isnan(float_at(rows->data + (i * rows->length + k) * element_bytes(rows->dtype), rows->dtype))) return false;
  return true;
}

/* Merge sort: equal rows keep their order. */
static void sort_rows(const Rows* rows, int64_t* order, int64_t* scratch, int64_t count) {
  for (int64_t width = 1; width < count; width *= 2) {
    for (int64_t begin = 0; begin < count; begin += 2 * width) {
      int64_t middle = begin + width < count ? begin + width : count;
      int64_t end = begin + 2 * width < count ? begin + 2 * width : count, i = begin, j = middle;
      for (int64_t k = begin; k < end; k++)
        scratch[k] = j == end || (i < middle && order_of_rows(rows, order[i], order[j]) <= 0) ? order[i++] : order[j++];
    }
    memcpy(order, scratch, count * sizeof *order);
  }
}

/* The elements of a tensor with an axis first; NULL if there is no memory. */
static char* with_axis_first(const char* data, const DLTensor* x, int axis) {
  int64_t width = element_bytes(x->dtype), outer = 1, inner = 1, length = x->shape[axis];
  for (int i = 0; i < axis; i++) outer *= x->shape[i];
  for (int i = axis + 1; i < x->ndim; i++) inner *= x->shape[i];
  char* to = malloc(outer * inner * length * width + 1);
  for (int64_t i = 0; to != NULL && i < length; i++)
    for (int64_t j = 0; j < outer; j++)
      memcpy(to + (i * outer + j) * inner * width, data + (j * length + i) * inner * width, inner * width);
  return to;
}

/* What `unique` gives: the rows that are the first of their kind, in order. */
static int put_unique(const Rows* rows, const DLTensor* x, int axis, int64_t count, const int64_t* order,
                      const bool* flags, TVMFFIAny* ret) {
  int64_t kinds = 0, width = element_bytes(x->dtype), shape[MOST_RANK];
  for (int64_t i = 0; i < count; i++) kinds += i == 0 || !are_equal(rows, order[i - 1], order[i]);
  int rank = axis < 0 ? 1 : x->ndim;
  for (int i = 0; i < rank; i++) shape[i] = axis < 0 || i == axis ? kinds : x->shape[i];
  TVMFFIAny made[4] = {{0}};
  int64_t* extra[3] = {NULL, NULL, NULL};
  const int64_t sizes[3] = {kinds, count, kinds};
  int number = 1;
  char* values = new_tensor(made, x->dtype, rank, shape);
  bool failed = values == NULL;
  for (int i = 0; i < 3 && !failed; i++) {
    if (!flags[i]) continue;
    extra[i] = new_tensor(made + number++, (DLDataType){kDLInt, 64, 1}, 1, sizes + i);
    failed = extra[i] == NULL;
  }
  int64_t outer = 1, inner = 1, kind = -1;
  for (int i = 0; i < axis; i++) outer *= x->shape[i];
  for (int i = axis + 1; axis >= 0 && i < x->ndim; i++) inner *= x->shape[i];
  for (int64_t i = 0; i < count && !failed; i++) {
    int64_t row = order[i];
    if (i == 0 || !are_equal(rows, order[i - 1], row)) {
      kind++;
      for (int64_t j = 0; j < outer; j++)
        memcpy(values + (j * kinds + kind) * inner * width, rows->data + (row * outer + j) * inner * width, inner * width);
      if (extra[0] != NULL) extra[0][kind] = row;
      if (extra[2] != NULL) extra[2][kind] = 0;
    }
    if (extra[1] != NULL) extra[1][row] = kind;
    if (extra[2] != NULL) extra[2][kind]++;
  }
  int status = -1;
  if (!failed && number == 1) {
    *ret = made[0];
    return 0;
  }
  if (!failed) status = call_global("ffi.Array", made, number, ret);
  for (int i = 0; i < 4; i++) clear(made + i);
  return status;
}

PACKED(builtin_unique) {
  if (expect(args, "unique", "tensor") != 0) return -1;
  const DLTensor* x = tensor(args);
  if (expect_element(x->dtype, "unique") != 0) return -1;
  int axis = args[1].type_index == kTVMFFINone ? -1 : (int)args[1].v_int64;
  if (args[1].type_index != kTVMFFINone && axis < 0) axis += x->ndim;
  if (args[1].type_index != kTVMFFINone && (axis < 0 || axis >= x->ndim))
    return fail("ValueError", "axis %lld is out of bounds for array of dimension %d", (long long)args[1].v_int64, x->ndim);
  bool flags[3] = {false, false, false};
  for (int i = 0; i < 3 && i + 2 < count; i++) flags[i] = args[i + 2].v_int64 != 0;
  void *copy, *moved = NULL;
  const char* data = contiguous(x, &copy);
  int64_t rows_count = axis < 0 ? elements(x) : x->shape[axis], length = 1;
  for (int i = 0; axis >= 0 && i < x->ndim; i++) length *= i == axis ? 1 : x->shape[i];
  if (data != NULL && axis > 0) data = moved = with_axis_first(data, x, axis);
  int64_t* order = malloc((2 * rows_count + 1) * sizeof *order);
  int status = -1;
  if (data == NULL || order == NULL) {
    no_memory();
  } else {
    Rows rows = {data, length, x->dtype, axis < 0};
    for (int64_t i = 0; i < rows_count; i++) order[i] = i;
    sort_rows(&rows, order, order + rows_count, rows_count);
    status = put_unique(&rows, x, axis, rows_count, order, flags, ret);
  }
  free(order);
  free(moved);
  free(copy);
  return status;
}

/* The table that native code looks into before the registry: names and functions, ended by a null name. */

typedef struct {
  const char* name;
  int (*function)(void*, const TVMFFIAny*, int32_t, TVMFFIAny*);
} Row;

const Row relax_builtins[] = {
    {"vm.builtin.fail", builtin_fail},
    {"vm.builtin.get_packed_func", builtin_get_packed_func},
    {"vm.builtin.new_tensor_of_shape", builtin_new_tensor_of_shape},
    {"vm.builtin.nonzero", builtin_nonzero},
    {"vm.builtin.print", builtin_print},
    {"vm.builtin.shape_from_tensor", builtin_shape_from_tensor},
    {"vm.builtin.shape_to_tensor", builtin_shape_to_tensor},
    {"vm.builtin.unique", builtin_unique},
    {NULL, NULL},
};
