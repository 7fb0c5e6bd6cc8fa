// grid_sample: elements of images at places that a grid says, between elements and beside them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "ir/op/chebyshev.h"
#include "ir/op/demands.h"
#include "ir/op/dense.h"
#include "ir/op/element.h"
#include "ir/op/formula.h"
#include "ir/op/self.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using loop::Expr;

// As PyTorch numbers them.
enum class Border : int64_t { zeros = 0, nearest = 1, reflection = 2 };
enum class Between : int64_t { linear = 0, nearest = 1, cubic = 2 };

struct Sampling {
  Between between;
  Border border;
  bool align_corners;
};

Sampling sampling_of(const Node& node) {
  return {static_cast<Between>(node.int_attr("interpolation_mode")),
          static_cast<Border>(node.int_attr("padding_mode")), node.bool_attr("align_corners")};
}

// The formulas are written once, for numbers and for expressions.
namespace grid_formula {

double floor(double x) { return std::floor(x); }
double round(double x) { return std::nearbyint(x); }
double abs(double x) { return std::fabs(x); }
double trunc(double x) { return std::trunc(x); }
double min(double a, double b) { return a < b ? a : b; }
bool lt(double a, double b) { return a < b; }
double select(bool condition, double a, double b) { return condition ? a : b; }
Expr round(Expr x) { return unary(loop::UnaryOp::round_even, x); }
Expr trunc(Expr x) { return unary(loop::UnaryOp::trunc, x); }

double zero_like(double) { return 0; }
Expr zero_like(Expr x) { return loop::constant_like(x, 0); }

// Thrown back between the first and the last element, or between their outer edges.
template <class Real>
Real reflected(Real place, Real size, bool align_corners) {
  const double low = align_corners ? 0 : -0.5;
  const Real span = align_corners ? size - 1.0 : size;
  const Real distance = abs(place - low), both = span * 2.0;
  const Real extra = distance - trunc(distance / both) * both;
  return select(lt(zero_like(span), span), min(extra, both - extra) + low, zero_like(span));
}

template <class Real>
Real bordered(const Sampling& how, Real place, Real size) {
  if (how.border == Border::zeros) return place;
  if (how.border == Border::reflection) place = reflected(place, size, how.align_corners);
  // NaN becomes 0.
  return min(select(lt(zero_like(place), place), place, zero_like(place)), size - 1.0);
}

// Of four neighbours, by PyTorch's cubic convolution with A = -0.75; t: from the second to the
// place.
template <class Real>
std::array<Real, 4> cubic_weights(Real t) {
  const auto near = [](Real x) { return (x * 1.25 - 2.25) * x * x + 1.0; };
  const auto far = [](Real x) { return ((x * -0.75 + 3.75) * x - 6.0) * x + 3.0; };
  const Real rest = 1.0 - t;
  return {far(t + 1.0), near(t), near(rest), far(rest + 1.0)};
}

// The sample at `grid`, which names the last dim first, of an image of so many elements in each
// dim, the first dim first; element(places) is 0 outside.
template <class Real, class Element>
Real sample(const Sampling& how, const std::vector<Real>& grid, const std::vector<Real>& sizes,
            const Element& element) {
  const size_t rank = sizes.size();
  std::vector<Real> places, at(sizes);
  for (size_t d = 0; d < rank; ++d) {
    const Real scale = (how.align_corners ? sizes[d] - 1.0 : sizes[d]) * 0.5;
    Real place = (grid[rank - 1 - d] + 1.0) * scale;
    if (!how.align_corners) place = place - 0.5;
    places.push_back(how.between == Between::cubic ? place : bordered(how, place, sizes[d]));
  }
  if (how.between == Between::nearest) {
    for (size_t d = 0; d < rank; ++d) at[d] = round(places[d]);
    return element(at);
  }
  std::vector<std::vector<Real>> weights;
  for (const Real& place : places) {
    const Real t = place - floor(place);
    if (how.between == Between::linear) {
      weights.push_back({1.0 - t, t});
    } else {
      const std::array<Real, 4> four = cubic_weights(t);
      weights.push_back({four.begin(), four.end()});
    }
  }
  // Row-major over the neighbours, as PyTorch adds them.
  const size_t taps = weights[0].size();
  const double first = how.between == Between::linear ? 0 : -1;
  size_t count = 1;
  for (size_t d = 0; d < rank; ++d) count *= taps;
  std::vector<Real> parts;
  for (size_t i = 0; i < count; ++i) {
    size_t rest = i;
    std::vector<Real> share;
    for (size_t d = rank; d-- > 0; rest /= taps) {
      const size_t tap = rest % taps;
      at[d] = floor(places[d]) + (first + static_cast<double>(tap));
      if (how.between == Between::cubic) at[d] = bordered(how, at[d], sizes[d]);
      share.push_back(weights[d][tap]);
    }
    Real weight = share[0];
    for (size_t d = 1; d < rank; ++d) weight = weight * share[d];
    parts.push_back(element(at) * weight);
    if (i > 0) parts[0] = parts[0] + parts[i];
  }
  return parts[0];
}

}  // namespace grid_formula

Result<std::vector<TensorType>> infer_sample(const Node& node) {
  const TensorType &self = self_type(node), &grid = node.operands[1].type();
  const int rank = self.rank();
  const auto wrong = [&](std::string needs) {
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'{}' needs {}, got {} and {}", node.op->name, needs, to_string(self),
                            to_string(grid))};
  };
  if ((rank != 4 && rank != 5) || grid.rank() != rank)
    return wrong("images [N, C, H, W] or [N, C, D, H, W] and a grid of their rank");
  if (!is_float(self.dtype) || self.dtype != grid.dtype) return wrong("floats of one dtype");
  for (int d = 2; d < rank; ++d)
    if (self.shape[static_cast<size_t>(d)].is_const() &&
        self.shape[static_cast<size_t>(d)].value() <= 0)
      return wrong("sizes above 0");
  const auto differ = [](const Dim& a, const Dim& b) {
    return a.is_const() && b.is_const() && a != b;
  };
  if (differ(grid.shape.back(), rank - 2)) return wrong("a place in each dim");
  if (differ(self.shape[0], grid.shape[0])) return wrong("a grid for each image");
  const int64_t between = node.int_attr("interpolation_mode"),
                border = node.int_attr("padding_mode");
  if (between < 0 || between > (rank == 4 ? 2 : 1) || border < 0 || border > 2)
    return Diag{code::kBadValue, node.loc,
                fmt::format("'{}' of rank {} by mode {} and padding {}", node.op->name, rank,
                            between, border)};
  Shape shape = {self.shape[0], self.shape[1]};
  shape.insert(shape.end(), grid.shape.begin() + 1, grid.shape.end() - 1);
  return std::vector<TensorType>{{self.dtype, std::move(shape)}};
}

std::vector<Guard> sample_demands(const Node& node) {
  Demands demands(node);
  const Shape &self = self_type(node).shape, &grid = node.operands[1].type().shape;
  for (size_t d = 2; d < self.size(); ++d) demands.at_most(1, self[d], "needs sizes above 0");
  demands.equal(self[0], grid[0], "needs a grid for each image");
  demands.equal(grid.back(), self_type(node).rank() - 2, "needs a place in each dim");
  return demands.take();
}

Result<std::vector<Tensor>> sample_reference(const Node& node,
                                             std::span<const Tensor* const> operands) {
  const Tensor &self = *operands[0], &grid = *operands[1];
  Tensor result = result_tensor(node);
  const size_t rank = self.shape.size() - 2;
  const std::vector<int64_t> strides = row_major_strides(self.shape),
                             grid_strides = row_major_strides(grid.shape);
  const std::vector<double> sizes(self.shape.begin() + 2, self.shape.end());
  walk(result.shape, [&](int64_t position, std::span<const int64_t> index) {
    int64_t at = index[0] * grid_strides[0];
    for (size_t d = 0; d < rank; ++d) at += index[2 + d] * grid_strides[1 + d];
    std::vector<double> place;
    for (size_t d = 0; d < rank; ++d)
      place.push_back(element<double>(grid, at + static_cast<int64_t>(d)));
    put(result, position,
        grid_formula::sample(sampling_of(node), place, sizes, [&](const std::vector<double>& own) {
          int64_t from = index[0] * strides[0] + index[1] * strides[1];
          for (size_t d = 0; d < rank; ++d) {
            if (!(own[d] >= 0 && own[d] <= sizes[d] - 1)) return 0.0;
            from += static_cast<int64_t>(own[d]) * strides[2 + d];
          }
          return element<double>(self, from);
        }));
  });
  return std::vector<Tensor>{std::move(result)};
}

// Positions in 32 bits, where they do: twice as many of them are found at once.
Expr position_of(ElementContext& context, Expr place, const Dim& size) {
  const bool is_short = size.is_const() && size.value() < (1 << 24);
  const DType dtype = is_short ? DType::i32 : DType::i64;
  const Expr at = cast(place, dtype), last = cast(context.integer(size - 1), dtype);
  return cast(loop::min(loop::max(at, loop::constant_like(at, 0)), last), DType::i64);
}

Expr lower_sample(ElementContext& context, const Node& node, int, std::span<const Expr> index) {
  const Shape& shape = self_type(node).shape;
  const size_t rank = shape.size() - 2;
  const DType dtype = compute_dtype(self_type(node).dtype);
  std::vector<Expr> own = {index[0]}, grid, sizes;
  own.insert(own.end(), index.begin() + 2, index.end());
  own.push_back({});
  for (size_t d = 0; d < rank; ++d) {
    own.back() = context.integer(static_cast<int64_t>(d));
    grid.push_back(context.operand(node, 1, own));
    sizes.push_back(context.count(shape[2 + d], dtype));
  }
  const Expr value =
      grid_formula::sample(sampling_of(node), grid, sizes, [&](const std::vector<Expr>& places) {
        std::vector<Expr> at = {index[0], index[1]};
        Expr is_inside = context.pool().boolean(true);
        for (size_t d = 0; d < rank; ++d) {
          at.push_back(position_of(context, places[d], shape[2 + d]));
          is_inside = logical_and(
              is_inside, logical_and(loop::ge(places[d], 0.0), le(places[d], sizes[d] - 1.0)));
        }
        return loop::select(is_inside, context.operand(node, 0, at), 0.0);
      });
  return cast(value, node.types.front().dtype);
}

std::vector<Example> sample_examples() {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto modes = [](int64_t between, int64_t border, bool align) {
    return NamedAttrs{
        {"interpolation_mode", between}, {"padding_mode", border}, {"align_corners", align}};
  };
  std::vector<Example> examples;
  for (int64_t between = 0; between < 3; ++between)
    for (int64_t border = 0; border < 3; ++border)
      for (const bool align : {false, true})
        examples.push_back({.operands = {{.shape = {2, 3, 5, 4}},
                                         {.shape = {2, 3, 7, 2}, .low = -1.7, .high = 1.7}},
                            .attrs = modes(between, border, align)});
  for (const int64_t between : {0, 1})
    examples.push_back({.operands = {{.shape = {1, 2, 3, 4, 5}},
                                     {.shape = {1, 2, 3, 2, 3}, .low = -1.3, .high = 1.3}},
                        .attrs = modes(between, between, false)});
  // One element, places that are none, and many of them side by side.
  examples.push_back({.operands = {{.shape = {1, 1, 1, 1}},
                                   {.shape = {1, 1, 3, 2}, .values = {0, nan, 1e30, 0, -1, 1}}},
                      .attrs = modes(1, 2, true)});
  examples.push_back({.operands = {{.dtype = DType::f64, .shape = {1, 2, 3, 3}},
                                   {.dtype = DType::f64, .shape = {1, 2, 37, 2}}},
                      .attrs = modes(0, 0, false)});
  examples.push_back({.operands = {{.dtype = DType::f16, .shape = {1, 2, 3, 3}},
                                   {.dtype = DType::f16,
                                    .shape = {1, 1, 5, 2},
                                    .values = {-1, -1, 0.5, 0, 1, 1, 0.25, -0.75, 2, 0}}},
                      .attrs = modes(0, 1, true)});
  return examples;
}

}  // namespace

std::vector<OpDef> define_grid_sample() {
  const std::string arguments =
      "(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) "
      "-> Tensor";
  return {{
      .name = "grid_sample",
      .summary = "elements of images at the places of a grid, which lie between -1 and 1",
      .doc = "A place that is NaN is the first one where the border is repeated or reflected.",
      .operands = {{"input"}, {"grid"}},
      .attrs = {{.name = "interpolation_mode",
                 .kind = AttrKind::integer,
                 .default_value = int64_t{0}},
                {.name = "padding_mode", .kind = AttrKind::integer, .default_value = int64_t{0}},
                {.name = "align_corners", .kind = AttrKind::boolean, .default_value = false}},
      .traits = {.op_class = OpClass::reduction},
      .infer = infer_sample,
      .demands = sample_demands,
      .reference = sample_reference,
      .decompose = Absent{"a core op"},
      .lower = lower_sample,
      .derivative = Absent{"sums the gradients of all results that read an element"},
      .imports = {{"grid_sampler" + arguments},
                  {"grid_sampler_2d" + arguments},
                  {"grid_sampler_3d" + arguments}},
      .examples = sample_examples(),
  }};
}

}  // namespace lathe
