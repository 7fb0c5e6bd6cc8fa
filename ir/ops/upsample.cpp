// Resampling of [N, C, H, W]: upsample_nearest2d and upsample_bilinear2d.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "ir/op/demands.h"
#include "ir/op/dense.h"
#include "ir/op/formula.h"
#include "ir/op/import_call.h"
#include "ir/op/promotion.h"
#include "ir/op/resample.h"
#include "ir/op/self.h"
#include "ir/op/view.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;
using namespace resample;

constexpr Absent kSumsReaders{"sums the gradients of all results that read an element"};

Result<std::vector<TensorType>> infer_upsample(const Node& node) {
  // Images of u8 as well.
  if (self_type(node).dtype != DType::u8) LATHE_DO(check_takes_floats(node));
  const Shape& shape = self_type(node).shape;
  const std::vector<Dim> size = node.dims_attr("output_size");
  const size_t num_scales = [&] {
    const auto* scales = std::get_if<std::vector<double>>(&node.attr("scale_factors"));
    return scales ? scales->size() : size_t{2};
  }();
  if (shape.size() != 4 || size.size() != 2 || num_scales != 2) {
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'{}' needs an input of rank 4 and two output sizes, got {} and {}",
                            node.op->name, to_string(shape), size.size())};
  }
  const auto is_empty = [](const Dim& extent) { return extent.is_const() && extent.value() <= 0; };
  if (is_empty(shape[2]) || is_empty(shape[3]) || is_empty(size[0]) || is_empty(size[1])) {
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'{}' needs spatial sizes above 0, got {} for {}", node.op->name,
                            to_string(size), to_string(shape))};
  }
  return std::vector<TensorType>{{self_type(node).dtype, {shape[0], shape[1], size[0], size[1]}}};
}

std::vector<Guard> upsample_demands(const Node& node) {
  Demands demands(node);
  for (const Shape* shape : {&self_type(node).shape, &node.types.front().shape})
    for (size_t d = 2; d < 4; ++d) demands.at_most(1, (*shape)[d], "needs spatial sizes above 0");
  return demands.take();
}

// Static sizes, as numbers.
constexpr auto kValue = [](const Dim& size) { return size.value(); };

bool has_numbers(const Node& node) {
  const Shape &in = self_type(node).shape, &out = node.types.front().shape;
  return in[2].is_const() && in[3].is_const() && out[2].is_const() && out[3].is_const();
}

// --- nearest

// Through f32, as PyTorch computes it.
int64_t scaled_floor(int64_t i, double step, int64_t last) {
  const float at = static_cast<float>(i) * static_cast<float>(step);
  return std::min(static_cast<int64_t>(std::floor(at)), last);
}
// A division of integers wherever that gives the same for all `count` positions.
Expr scaled_floor(Expr i, double step, int64_t last, int64_t count) {
  constexpr double kMaxRatio = 1e9;  // beyond all counts
  const auto ratio =
      std::max(int64_t{1}, static_cast<int64_t>(std::round(std::min(1 / step, kMaxRatio))));
  bool divides = true;
  for (int64_t k = 0; k < count; ++k)
    divides = divides && scaled_floor(k, step, last) == std::min(k / ratio, last);
  loop::Pool& pool = *i->pool;
  const Expr at =
      divides ? floor_div(i, pool.integer(ratio)) : cast(cast(i, DType::f32) * step, DType::i64);
  return min(at, pool.integer(last));
}

int64_t nearest(const Node& node, size_t d, int64_t i) {
  return scaled_floor(i, nearest_step(node, d, kValue), input_size(node, d).value() - 1);
}
Expr nearest(const Node& node, size_t d, Expr i) {
  const Dim last = input_size(node, d) - 1;
  if (has_numbers(node))
    return scaled_floor(i, nearest_step(node, d, kValue), last.value(),
                        result_size(node, d).value());
  const auto size = [&](const Dim& n) { return i->pool->size(n); };
  const Expr step = cast(nearest_step(node, d, size), DType::f32);
  return min(cast(cast(i, DType::f32) * step, DType::i64), size(last));
}

constexpr auto kNearest = [](const Node& node, auto index, auto) {
  for (size_t d : {size_t{0}, size_t{1}}) index[2 + d] = nearest(node, d, index[2 + d]);
  return index;
};

// --- bilinear

// The two neighbours along a dim and the weight of the second.
struct Neighbours {
  int64_t first, second;
  double weight;
};

Neighbours neighbours(const Node& node, size_t d, int64_t i) {
  const bool align = node.bool_attr("align_corners");
  const double step = input_step(node, d, align, kValue);
  const int64_t last = input_size(node, d).value() - 1;
  const double at = align ? static_cast<double>(i) * step
                          : std::max((static_cast<double>(i) + 0.5) * step - 0.5, 0.0);
  const int64_t first = std::min(static_cast<int64_t>(at), last);
  return {first, std::min(first + 1, last), std::min(at - static_cast<double>(first), 1.0)};
}

Result<std::vector<Tensor>> bilinear_reference(const Node& node,
                                               std::span<const Tensor* const> operands) {
  const Tensor& input = *operands[0];
  Tensor result = result_tensor(node);
  const int64_t height = input.shape[2], width = input.shape[3];
  walk(result.shape, [&](int64_t position, std::span<const int64_t> index) {
    const Neighbours y = neighbours(node, 0, index[2]), x = neighbours(node, 1, index[3]);
    const int64_t plane = (index[0] * input.shape[1] + index[1]) * height;
    const auto row = [&](int64_t at) {
      return input.get((plane + at) * width + x.first) * (1 - x.weight) +
             input.get((plane + at) * width + x.second) * x.weight;
    };
    put(result, position, row(y.first) * (1 - y.weight) + row(y.second) * y.weight);
  });
  return std::vector<Tensor>{std::move(result)};
}

struct LoweredNeighbours {
  Expr first, second, weight;
};

LoweredNeighbours lower_neighbours(const Node& node, size_t d, Expr i, DType dtype) {
  const bool align = node.bool_attr("align_corners");
  const auto size = [&](const Dim& n) { return i->pool->size(n); };
  const Dim& extent = input_size(node, d);
  const Expr o = cast(i, dtype), last = size(extent - 1);
  const bool is_known = extent.is_const() && result_size(node, d).is_const();
  const double known_step = is_known ? input_step(node, d, align, kValue) : 0;
  const Expr step =
      is_known ? constant_like(o, known_step) : cast(input_step(node, d, align, size), dtype);
  const Expr at = align ? o * step : max((o + 0.5) * step - 0.5, 0.0);
  const Expr first = min(max(cast(at, DType::i64), size(0)), last);
  Expr weight = at - cast(first, dtype);
  // Behind the input both neighbours are the last element.
  if (!is_known || real(result_size(node, d).value()) * known_step > real(extent.value()))
    weight = min(weight, constant_like(weight, 1));
  return {first, min(first + 1.0, last), weight};
}

Expr lower_bilinear(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  const DType dtype = node.types.front().dtype, compute = compute_dtype(dtype);
  const LoweredNeighbours y = lower_neighbours(node, 0, index[2], compute);
  const LoweredNeighbours x = lower_neighbours(node, 1, index[3], compute);
  const auto element = [&](Expr row, Expr column) {
    const std::array<Expr, 4> at = {index[0], index[1], row, column};
    return cast(context.operand(node, 0, at), compute);
  };
  const auto row = [&](Expr at) {
    return element(at, x.first) * (1.0 - x.weight) + element(at, x.second) * x.weight;
  };
  return cast(row(y.first) * (1.0 - y.weight) + row(y.second) * y.weight, dtype);
}

constexpr double kMaxSize = 0x1p48;

// The size in the call, or the input's times the factors.
Result<std::vector<Value>> import_upsample(Builder& b, const ImportCall& call) {
  const Value input = call.value("input");
  const Shape& shape = input.type().shape;
  std::vector<Dim> size = call.dims_attr("output_size");
  NamedAttrs attrs;
  const Attr given = call.attr("scale_factors");
  if (const auto* scales = std::get_if<std::vector<double>>(&given);
      scales && size.empty() && scales->size() == 2 && shape.size() == 4) {
    for (size_t d = 0; d < 2; ++d) {
      const double factor = (*scales)[d];
      if (shape[2 + d].is_const()) {
        const double scaled = static_cast<double>(shape[2 + d].value()) * factor;
        if (!(scaled >= 0 && scaled < kMaxSize))
          return Diag{
              code::kBadValue, call.loc,
              fmt::format("'{}' by {} of a size of {}", call.target, factor, shape[2 + d].value())};
        size.push_back(static_cast<int64_t>(scaled));
      } else if (factor == std::floor(factor) && factor >= 1 && factor < 1e6) {
        size.push_back(shape[2 + d] * static_cast<int64_t>(factor));
      } else {
        return Diag{code::kUnsupported, call.loc,
                    fmt::format("'{}' by {} of a symbolic size", call.target, factor)};
      }
    }
    attrs.emplace_back("scale_factors", given);
  }
  attrs.emplace_back("output_size", std::move(size));
  if (call.op->attr_index("align_corners") >= 0) {
    attrs.emplace_back("align_corners", call.bool_attr("align_corners"));
  }
  return import_node(b, call, call.op->name, {input}, std::move(attrs));
}

OpDef upsample(std::string name, std::string summary) {
  return {
      .name = name,
      .summary = std::move(summary),
      .doc =
          "scale_factors, when given, decide which elements are read; output_size the result's "
          "size.",
      .operands = {{"input"}},
      .attrs = {{.name = "output_size", .kind = AttrKind::dims},
                {.name = "scale_factors", .kind = AttrKind::numbers, .is_optional = true}},
      .traits = {.op_class = OpClass::view},
      .infer = infer_upsample,
      .demands = upsample_demands,
      .reference = view_reference<kNearest>,
      .decompose = Absent{"a core op"},
      .lower = view_lower<kNearest>,
      .derivative = kSumsReaders,
      .imports = {},
      .examples = {{.operands = {{.shape = {1, 2, 3, 4}}},
                    .attrs = {{"output_size", std::vector<int64_t>{6, 8}},
                              {"scale_factors", std::vector<double>{2, 2}}}},
                   {.operands = {{.shape = {2, 1, 3, 4}}},
                    .attrs = {{"output_size", std::vector<int64_t>{5, 3}}}},
                   // Factors that leave a size as it is, or double it, and are not 1 or 2.
                   {.operands = {{.shape = {1, 1, 3, 4}}},
                    .attrs = {{"output_size", std::vector<int64_t>{3, 8}},
                              {"scale_factors", std::vector<double>{1.3, 2.2}}}}},
  };
}

OpDef nearest() {
  OpDef row = upsample("upsample_nearest2d", "the nearest element, rounded down");
  row.imports = {{.schema = "upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? "
                            "scale_factors) -> Tensor",
                  .build = import_upsample}};
  return row;
}

OpDef bilinear() {
  OpDef row = upsample("upsample_bilinear2d", "the mean of four neighbours, weighted by distance");
  row.attrs.push_back({.name = "align_corners", .kind = AttrKind::boolean, .default_value = false});
  row.traits.op_class = OpClass::reduction;
  row.reference = bilinear_reference;
  row.lower = lower_bilinear;
  row.imports = {{.schema = "upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool "
                            "align_corners, float[]? scale_factors) -> Tensor",
                  .build = import_upsample}};
  row.examples.push_back(
      {.operands = {{.shape = {1, 1, 3, 4}}},
       .attrs = {{"output_size", std::vector<int64_t>{5, 7}}, {"align_corners", true}}});
  return row;
}

}  // namespace

std::vector<OpDef> define_upsample() { return {nearest(), bilinear()}; }

}  // namespace lathe
