// Calls that float8 takes part in: casts, moves, and products with scales.
#include "ir/op/float8.h"

#include <fmt/format.h>

#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// The same call on bytes.
constexpr const char* kOnBytes[] = {
    "_unsafe_view",
    "alias",
    "as_strided",
    "broadcast_to",
    "cat",
    "chunk",
    "clone",
    "constant_pad_nd",
    "contiguous",
    "detach",
    "diagonal",
    "embedding",
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "expand",
    "expand_as",
    "fill",
    "flatten",
    "flip",
    "full",
    "full_like",
    "gather",
    "index",
    "index_copy",
    "index_put",
    "index_select",
    "lift_fresh",
    "lift_fresh_copy",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "meshgrid",
    "movedim",
    "narrow",
    "new_empty",
    "new_empty_strided",
    "new_full",
    "new_zeros",
    "pad",
    "permute",
    "pixel_shuffle",
    "pixel_unshuffle",
    "repeat",
    "repeat_interleave",
    "reshape",
    "roll",
    "rot90",
    "scatter",
    "select",
    "select_scatter",
    "slice",
    "slice_scatter",
    "split",
    "split_with_sizes",
    "squeeze",
    "stack",
    "t",
    "take",
    "take_along_dim",
    "tensor_split",
    "tile",
    "transpose",
    "tril",
    "triu",
    "unbind",
    "unflatten",
    "unfold",
    "unsqueeze",
    "view",
    "view_as",
    "where",
    "zeros",
    "zeros_like",
};
// In f32, and what is a float again in 8 bits. (The byte of the number 1 is another than 1.)
constexpr const char* kOnFloats[] = {"abs", "eq",       "isfinite", "isinf",    "isnan",
                                     "ne",  "new_ones", "ones",     "ones_like"};

Term in_dtype(const Aten& aten, Term x, const CallArg* dtype) {
  const auto* given = dtype == nullptr ? nullptr : std::get_if<Float8DType>(dtype);
  const auto* attr = dtype == nullptr ? nullptr : std::get_if<Attr>(dtype);
  const auto* real = attr == nullptr ? nullptr : std::get_if<DType>(attr);
  if (given != nullptr && given->encoding != x.encoding())
    return to_float8(aten, x.is_float8() ? from_float8(aten, x) : x, given->encoding);
  if (real != nullptr) return aten("to.dtype", {x.is_float8() ? from_float8(aten, x) : x, *real});
  return aten("clone", x);
}

constexpr auto kTo = [](const Aten& aten) {
  return in_dtype(aten, aten.tensor("self"), aten.call().find("dtype"));
};
constexpr auto kConvert = [](const Aten& aten) {
  return in_dtype(aten, aten.tensor("a"), aten.call().find("dtype"));
};

CallArg dtype_of(Term x) {
  return x.is_float8() ? CallArg(Float8DType{x.encoding()}) : CallArg(Attr{x.dtype()});
}

constexpr auto kToOther = [](const Aten& aten) {
  const CallArg dtype = dtype_of(aten.tensor("other"));
  return in_dtype(aten, aten.tensor("self"), &dtype);
};

constexpr auto kCopy = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  const CallArg dtype = dtype_of(self);
  const Term source = in_dtype(aten, aten.tensor("src"), &dtype);
  const char* target = aten.call().in_place ? "copy_" : "copy";
  if (!self.is_float8()) return aten(target, {self, source});
  const Term copied = aten(target, {bytes_of(aten, self), bytes_of(aten, source)});
  copied.builder().mark(copied, self.encoding());
  return copied;
};

constexpr auto kBitcast = [](const Aten& aten) {
  const Term self = aten.tensor("self");
  const Term bytes =
      self.is_float8() ? bytes_of(aten, self) : aten("view.dtype", {self, DType::u8});
  const auto* given = std::get_if<Float8DType>(aten.call().find("dtype"));
  if (given != nullptr) return float8_of(aten, bytes, given->encoding);
  return aten("view.dtype", {bytes, aten.attr("dtype")});
};

// What the file says of a tensor is checked where its bytes are made.
constexpr auto kNothing = [](const Aten&) { return std::vector<Term>{}; };

// self @ mat2 in f32, times a scale of each or of each row and each column. `scale_result` divides
// where the call asks for float8, as PyTorch's on the CPU; a GPU's there is not, on which it says
// nothing else.
constexpr auto kScaledProduct = [](const Aten& aten) {
  const Term a = aten.tensor("self"), b = aten.tensor("mat2"), bias = aten.tensor("bias");
  if (!a.is_float8() || !b.is_float8())
    return aten.fail(code::kDtypeMismatch, "'_scaled_mm' is of float8, got other numbers");
  const Term scale_a = aten.tensor("scale_a"), scale_b = aten.tensor("scale_b");
  Term product = aten("mm", from_float8(aten, a), from_float8(aten, b));
  for (const Term scale : {scale_a, scale_b}) {
    if (scale.is_float8() || scale.rank() > 2)
      return aten.fail(code::kUnsupported,
                       "'_scaled_mm' takes scales of the whole, of rows or of columns in f32");
    product = aten("mul.Tensor", product, scale);
  }
  if (bias) product = aten("add.Tensor", product, bias);
  const CallArg* dtype = aten.call().find("out_dtype");
  const auto* attr = dtype == nullptr ? nullptr : std::get_if<Attr>(dtype);
  const bool is_given = attr == nullptr || !std::holds_alternative<std::monostate>(*attr);
  const CallArg otherwise = dtype_of(a);
  const Term scale = aten.tensor("scale_result");
  if (scale && dtype != nullptr && std::holds_alternative<Float8DType>(*dtype))
    product = aten("div.Tensor", product, scale);
  return in_dtype(aten, product, dtype != nullptr && is_given ? dtype : &otherwise);
};

}  // namespace

std::vector<Import> import_float8() {
  std::vector<Import> imports;
  const auto as = [&](const char* name, auto* build) {
    imports.push_back(
        {.schema = name, .build = build, .alias_of = name, .numbers = NumberKind::float8});
  };
  for (const char* name : {"to.dtype", "to.device", "to.dtype_layout", "_to_copy"})
    as(name, composed<kTo>);
  as("prims.convert_element_type", composed<kConvert>);
  for (const char* name : {"to.other", "type_as"}) as(name, composed<kToOther>);
  as("copy", composed<kCopy>);
  as("view.dtype", composed<kBitcast>);
  as("_assert_tensor_metadata", composed<kNothing>);
  for (const char* name : kOnBytes) as(name, on_bytes);
  for (const char* name : kOnFloats) as(name, on_floats);
  imports.push_back(
      {.schema = "_scaled_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? "
                 "bias=None, Tensor? scale_result=None, ScalarType? out_dtype=None, bool "
                 "use_fast_accum=False) -> Tensor",
       .build = composed<kScaledProduct>,
       .numbers = NumberKind::float8});
  return imports;
}

}  // namespace lathe
