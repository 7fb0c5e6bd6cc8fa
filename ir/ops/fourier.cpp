// fourier: discrete Fourier transforms in steps (ir/op/butterfly_plan.h).
#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <utility>

#include "ir/op/butterfly_plan.h"
#include "ir/op/dense.h"
#include "ir/op/fourier_tables.h"
#include "ir/op/matrix.h"
#include "ir/op/reduction.h"
#include "ir/op/self.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using Types = Result<std::vector<TensorType>>;

constexpr int64_t kMostPoints = int64_t{1} << 22;

Types infer_fourier(const Node& node) {
  const TensorType& self = self_type(node);
  const std::string form = node.string_attr("form");
  const bool is_whole = form == "whole";
  if (!is_whole && form != "to_half" && form != "from_half")
    return Diag{code::kAttribute, node.loc,
                fmt::format("'fourier' has no form '{}', expected whole, to_half or from_half",
                            form.substr(0, 60))};
  if (!is_whole && node.bool_attr("inverse"))
    return Diag{code::kAttribute, node.loc, "'fourier' has an inverse of the form whole alone"};
  const bool takes_pairs = form != "to_half";
  const int rank = self.rank() - takes_pairs;
  const bool is_paired = !takes_pairs || (rank >= 0 && self.shape.back() == Dim(2));
  if (rank < 1 || !is_paired)
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'fourier' of {}, expected {}", to_string(self),
                            takes_pairs ? "pairs in the last dim" : "one dim or more")};
  if (self.dtype != DType::f32 && self.dtype != DType::f64)
    return Diag{code::kDtypeMismatch, node.loc,
                fmt::format("'fourier' of {}, expected f32 or f64", to_string(self))};
  LATHE_TRY(int dim, normalized_dim(node, node.int_attr("dim"), rank));
  const Dim given = self.shape[static_cast<size_t>(dim)];
  const bool is_short = given.is_const() && given.value() <= kMostPoints;
  const FourierPlan plan = is_short ? fourier_plan(node) : FourierPlan{};
  if (plan.radices.empty() || (!is_whole && plan.points % 2 != 0))
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'fourier' of {} points, expected a number from 2 on whose prime "
                            "factors are up to 13, twice that to and from halves",
                            given.str())};
  const TensorType& turns = node.operands[1].type();
  const int64_t count = num_turns(plan.radices, !is_whole);
  if (turns.dtype != self.dtype || turns.shape != Shape{Dim(count)})
    return Diag{code::kShapeMismatch, node.loc,
                fmt::format("'fourier' with turns {}, expected {}", to_string(turns),
                            to_string(TensorType{self.dtype, {Dim(count)}}))};
  Shape shape = self.shape;
  if (form == "to_half") shape.push_back(2);
  if (form == "from_half") shape.pop_back();
  if (!is_whole)
    shape[static_cast<size_t>(dim)] = form == "to_half" ? plan.points / 2 + 1 : plan.points;
  return std::vector<TensorType>{{self.dtype, std::move(shape)}};
}

using Line = std::vector<Root>;

Root times(Root a, Root b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }

// The steps, one after the other, with the turns that are given.
Line stepped(Line x, const std::vector<int64_t>& radices, const Tensor& turns) {
  int64_t run = 1, rest = static_cast<int64_t>(x.size()), first = 0;
  for (size_t step = 0; step < radices.size(); ++step) {
    const int64_t r = radices[step];
    rest /= r;
    Line y(x.size());
    for (int64_t p = 0; p < rest; ++p) {
      for (int64_t q = 0; q < run; ++q) {
        for (int64_t k = 0; k < r; ++k) {
          Root sum{0, 0};
          for (int64_t l = 0; l < r; ++l) {
            const Root term =
                times(x[static_cast<size_t>(q + run * (p + rest * l))], root(k * l, r, -1));
            sum = {sum.re + term.re, sum.im + term.im};
          }
          const int64_t at = first + 2 * (k - 1) * rest + p;
          if (k > 0 && step + 1 < radices.size())
            sum = times(sum, {turns.get(at), turns.get(at + rest)});
          y[static_cast<size_t>(q + run * (r * p + k))] = sum;
        }
      }
    }
    first += 2 * (r - 1) * rest;
    run *= r;
    x = std::move(y);
  }
  return x;
}

Root conjugate(Root x) { return {x.re, -x.im}; }
Root swapped(Root x) { return {x.im, x.re}; }

// Half a spectrum from that of reals taken in pairs, twice, where `to_half`, or the other way.
Line halved(const Line& z, const Tensor& turns, int64_t first, bool to_half) {
  const size_t n = to_half ? z.size() : z.size() - 1;
  Line half;
  for (size_t k = 0; k < (to_half ? n + 1 : n); ++k) {
    const auto at = first + static_cast<int64_t>(k);
    Root turn{turns.get(at), turns.get(at + static_cast<int64_t>(n) + 1)};
    Root a = z[to_half ? k % n : k], b = conjugate(z[to_half ? (n - k) % n : n - k]);
    if (!to_half && k == 0) a.im = 0, b.im = 0;
    Root odd = times(to_half ? turn : conjugate(turn), {a.re - b.re, a.im - b.im});
    odd = to_half ? Root{odd.im, -odd.re} : Root{-odd.im, odd.re};
    half.push_back({a.re + b.re + odd.re, a.im + b.im + odd.im});
  }
  return half;
}

Result<std::vector<Tensor>> fourier_reference(const Node& node,
                                              std::span<const Tensor* const> operands) {
  Tensor result = result_tensor(node);
  const FourierPlan plan = fourier_plan(node);
  const auto dim = static_cast<size_t>(plan.dim);
  const double scale = node.float_attr("scale", 1) / (plan.takes_pairs ? 1 : 2);
  const bool is_swapped = node.bool_attr("inverse") || !plan.gives_pairs;
  const int64_t first_half = turns_before(plan.radices, plan.radices.size());
  std::vector<int64_t> lines = operands[0]->shape;
  lines.resize(static_cast<size_t>(plan.rank));
  lines[dim] = 1;
  std::vector<int64_t> from = row_major_strides(operands[0]->shape),
                       to = row_major_strides(result.shape);
  // From one number, or pair of reals, to the next, and from its real to its other part.
  const int64_t part = plan.takes_pairs ? 1 : from[dim],
                part_of_result = plan.gives_pairs ? 1 : to[dim];
  const int64_t next = plan.takes_pairs ? from[dim] : 2 * part,
                next_of_result = plan.gives_pairs ? to[dim] : 2 * part_of_result;
  const int64_t count = plan.takes_pairs ? operands[0]->shape[dim] : plan.points / 2;
  from.resize(lines.size()), to.resize(lines.size());
  walk(lines, {from, to}, [&](int64_t, std::span<const int64_t> base, auto) {
    Line x;
    for (int64_t i = 0; i < count; ++i)
      x.push_back(
          {operands[0]->get(base[0] + i * next), operands[0]->get(base[0] + i * next + part)});
    if (!plan.gives_pairs) x = halved(x, *operands[1], first_half, false);
    if (is_swapped)
      for (Root& number : x) number = swapped(number);
    x = stepped(std::move(x), plan.radices, *operands[1]);
    if (is_swapped)
      for (Root& number : x) number = swapped(number);
    if (!plan.takes_pairs) x = halved(x, *operands[1], first_half, true);
    for (size_t i = 0; i < x.size(); ++i) {
      const int64_t place = base[1] + static_cast<int64_t>(i) * next_of_result;
      put(result, place, scale * x[i].re);
      put(result, place + part_of_result, scale * x[i].im);
    }
  });
  return std::vector<Tensor>{std::move(result)};
}

std::vector<Example> fourier_examples() {
  std::vector<Example> examples;
  const auto add = [&](std::vector<int64_t> shape, int64_t dim, int64_t numbers, const char* form,
                       bool is_inverse, DType dtype) {
    const auto radices = butterfly_radices(numbers);
    std::vector<double> turns = turns_of(radices, std::string_view(form) != "whole");
    const std::vector<int64_t> count = {static_cast<int64_t>(turns.size())};
    examples.push_back(
        {.operands = {{.dtype = dtype, .shape = std::move(shape)},
                      {.dtype = dtype, .shape = count, .values = std::move(turns)}},
         .attrs = {
             {"dim", dim}, {"form", std::string(form)}, {"inverse", is_inverse}, {"scale", 0.5}}});
  };
  add({2, 2}, 0, 2, "whole", false, DType::f32);
  add({3, 60, 2}, -1, 60, "whole", true, DType::f32);
  add({64, 5, 2}, 0, 64, "whole", false, DType::f32);
  add({2, 143, 2}, 1, 143, "whole", false, DType::f64);
  add({3, 48}, -1, 24, "to_half", false, DType::f32);
  add({2, 128, 9}, 1, 64, "to_half", false, DType::f32);
  add({3, 25, 2}, 1, 24, "from_half", false, DType::f32);
  add({29, 6, 2}, 0, 28, "from_half", false, DType::f64);
  add({0, 8, 2}, 1, 8, "whole", false, DType::f32);
  return examples;
}

}  // namespace

std::vector<OpDef> define_fourier() {
  return {{
      .name = "fourier",
      .summary = "the discrete Fourier transform of lines of numbers, which are pairs of reals",
      .doc = "Times `scale`. `to_half` takes reals, as many as the half has numbers but the last, "
             "twice, and gives the half of their spectrum that is not conjugates of the other; "
             "`from_half`, which does not see what is imaginary at the ends, gives such reals, as "
             "an inverse transform does.",
      .operands = {{"self"}, {"turns"}},
      .attrs = {{.name = "dim", .kind = AttrKind::integer, .doc = "of numbers, or reals"},
                {.name = "form", .kind = AttrKind::string, .default_value = std::string("whole")},
                {.name = "inverse", .kind = AttrKind::boolean, .default_value = false},
                {.name = "scale", .kind = AttrKind::number, .default_value = 1.0}},
      .traits = {.op_class = OpClass::reduction, .is_layout_agnostic = false},
      .infer = infer_fourier,
      .reference = fourier_reference,
      .decompose = kIsSequential,
      .lower = kHasTemplate,
      .derivative = kDerivedElsewhere,
      .imports = {},
      .examples = fourier_examples(),
  }};
}

}  // namespace lathe
