// bitcast: the bits of elements, read as another dtype of the same width.
#include <fmt/format.h>

#include <utility>

#include "ir/loop/scalar.h"
#include "ir/op/pointwise.h"
#include "ir/op/self.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;

// A bool is a byte that is 0 or 1.
DType bits_of(DType dtype) { return dtype == DType::b8 ? DType::u8 : dtype; }

Result<std::vector<TensorType>> infer_bitcast(const Node& node) {
  const DType from = self_type(node).dtype, to = node.dtype_attr("dtype", from);
  if (dtype_bytes(from) != dtype_bytes(to)) {
    return Diag{code::kDtypeMismatch, node.loc,
                fmt::format("'bitcast' keeps the width of elements, got {} as {}", dtype_name(from),
                            dtype_name(to))};
  }
  return std::vector<TensorType>{{to, self_type(node).shape}};
}

Result<std::vector<Tensor>> bitcast_reference(const Node& node,
                                              std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  const Tensor& self = *operands[0];
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    const auto at = static_cast<size_t>(i);
    const loop::Scalar x = is_float(self.dtype) ? loop::float_scalar(self.floats[at])
                                                : loop::int_scalar(self.integers[at]);
    const loop::Scalar bits = loop::convert_bits(bits_of(self.dtype), bits_of(result.dtype), x);
    if (is_float(result.dtype)) {
      put(result, i, bits.f);
    } else {
      put(result, i, bits.i);
    }
  }
  return std::vector<Tensor>{std::move(result)};
}

Expr lower_bitcast(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  // What another kernel part computes may still be wider than it is stored.
  const Expr x = cast(context.operand(node, 0, index), self_type(node).dtype);
  const DType to = node.types.front().dtype;
  return cast(bitcast(cast(x, bits_of(x->dtype)), bits_of(to)), to);
}

}  // namespace

std::vector<OpDef> define_bitcast() {
  const auto example = [](DType from, DType to) {
    return Example{.operands = {{.dtype = from, .shape = {2, 5}, .low = -9, .high = 9}},
                   .attrs = {{"dtype", to}}};
  };
  return {{
      .name = "bitcast",
      .summary = "the bits of self's elements, as elements of another dtype of their width",
      .operands = {{"self"}},
      .attrs = {{.name = "dtype", .kind = AttrKind::dtype}},
      .traits = {.op_class = OpClass::elementwise},
      .infer = infer_bitcast,
      .reference = bitcast_reference,
      .decompose = Absent{"a core op"},
      .lower = lower_bitcast,
      .derivative = Absent{"bits have none"},
      .imports = {{"view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)"}},
      .examples = {example(DType::f32, DType::i32), example(DType::i32, DType::f32),
                   example(DType::f64, DType::i64), example(DType::f16, DType::i16),
                   example(DType::i16, DType::bf16), example(DType::i8, DType::u8),
                   example(DType::b8, DType::u8), example(DType::u8, DType::b8)},
  }};
}

}  // namespace lathe
