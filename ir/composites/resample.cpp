// Resampling of [N, C, spatial...], one dim after the other: each result reads a few neighbours.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

constexpr double kMaxExtent = 0x1p40;

// How a dim of `in` elements becomes one of `out`; a factor counts where it is above 0.
struct Resampling {
  int64_t dim = 0, in = 1, out = 1;
  double factor = 0;
  DType compute = DType::f32;

  double step(bool align_corners) const {
    const auto to_real = [](int64_t n) { return static_cast<double>(n); };
    if (align_corners) return out > 1 ? to_real(in - 1) / to_real(out - 1) : 0;
    return factor > 0 ? 1 / factor : to_real(in) / to_real(out);
  }
};

// The dims of the call, with sizes or factors in any of PyTorch's overloads; none after a failure.
std::vector<Resampling> resamplings(const Aten& aten, Term x) {
  const ImportCall& call = aten.call();
  const std::vector<Dim> sizes = call.dims_attr("output_size");
  const Attr given = call.attr("scale_factors");
  const auto* factors = std::get_if<std::vector<double>>(&given);
  const size_t count = factors && sizes.empty() ? factors->size() : sizes.size();
  const bool fits = count >= 1 && count <= 3 && static_cast<size_t>(x.rank()) == count + 2;
  if (!fits || (factors && factors->size() != count)) {
    aten.fail(code::kShapeMismatch,
              fmt::format("'{}' of {} sizes of a tensor of rank {}", call.target, count, x.rank()));
    return {};
  }
  constexpr const char* kScales[] = {"scales_d", "scales_h", "scales_w"};
  std::vector<Resampling> result;
  for (size_t d = 0; d < count; ++d) {
    const Dim in = Aten::size(x, static_cast<int64_t>(2 + d));
    const char* scale = count == 1 ? "scales" : kScales[3 - count + d];
    double factor = factors ? (*factors)[d] : call.float_attr(scale);
    const double scaled = in.is_const() ? static_cast<double>(in.value()) * factor : -1;
    const bool is_sized = !sizes.empty();
    const bool is_known =
        in.is_const() && (is_sized ? sizes[d].is_const() : scaled >= 1 && scaled < kMaxExtent);
    const int64_t out = !is_known ? 0 : is_sized ? sizes[d].value() : static_cast<int64_t>(scaled);
    if (!is_known || in.value() < 1 || out < 1) {
      aten.fail(code::kUnsupported, fmt::format("'{}' of an extent of {}", call.target, in.str()));
      return {};
    }
    result.push_back({static_cast<int64_t>(2 + d), in.value(), out, factor,
                      x.dtype() == DType::f64 ? DType::f64 : DType::f32});
  }
  return result;
}

// Positions of results as numbers.
Term result_places(const Aten& aten, const Resampling& along) {
  return aten("to.dtype", {aten.arange(along.out), along.compute});
}

// The elements of the dim at `places`, of which those outside are the nearest inside.
Term elements_at(const Aten& aten, Term x, const Resampling& along, Term places) {
  const Term whole = aten("to.dtype", {aten("floor", {places}), DType::i64});
  return aten("index_select", {x, along.dim, aten("clamp", {whole, int64_t{0}, along.in - 1})});
}

// A weight for each result of the dim, so that it broadcasts.
Term weight_along(const Aten& aten, Term x, const Resampling& along, Term weight) {
  Shape shape(static_cast<size_t>(std::max<int64_t>(x.rank(), along.dim + 1)), 1);
  shape[static_cast<size_t>(along.dim)] = along.out;
  return aten("reshape", {weight, shape});
}

// --- nearest

template <bool kIsExact>
Term resampled_nearest(const Aten& aten, Term x) {
  for (const Resampling& along : resamplings(aten, x)) {
    if (along.in == along.out) continue;
    Term places = result_places(aten, along);
    if (kIsExact) places = aten("add.Scalar", {places, 0.5});
    places = aten("mul.Scalar", {places, along.step(false)});
    x = elements_at(aten, x, along, places);
  }
  return x;
}

// --- linear and cubic

struct Neighbour {
  int64_t offset;
  Term weight;
};

// Where each result lies among the elements.
Term source_places(const Aten& aten, const Resampling& along, bool align_corners) {
  const Term i = result_places(aten, along);
  const double step = along.step(align_corners);
  if (align_corners) return aten("mul.Scalar", {i, step});
  return aten("sub.Scalar", {aten("mul.Scalar", {aten("add.Scalar", {i, 0.5}), step}), 0.5});
}

std::vector<Neighbour> linear_neighbours(const Aten& aten, Term t) {
  return {{0, aten("rsub.Scalar", {t, 1.0})}, {1, t}};
}

// PyTorch's convolution with A = -0.75, by distance: up to 1, and up to 2.
constexpr double kCubic = -0.75;
Term cubic_near(const Aten& aten, Term t) {
  const Term inner = aten("sub.Scalar", {aten("mul.Scalar", {t, kCubic + 2}), kCubic + 3});
  const Term square = aten("mul.Tensor", {aten("mul.Tensor", {inner, t}), t});
  return aten("add.Scalar", {square, 1.0});
}
Term cubic_far(const Aten& aten, Term t) {
  const Term inner = aten("sub.Scalar", {aten("mul.Scalar", {t, kCubic}), 5 * kCubic});
  const Term next = aten("add.Scalar", {aten("mul.Tensor", {inner, t}), 8 * kCubic});
  return aten("sub.Scalar", {aten("mul.Tensor", {next, t}), 4 * kCubic});
}

std::vector<Neighbour> cubic_neighbours(const Aten& aten, Term t) {
  const Term rest = aten("rsub.Scalar", {t, 1.0});
  return {{-1, cubic_far(aten, aten("add.Scalar", {t, 1.0}))},
          {0, cubic_near(aten, t)},
          {1, cubic_near(aten, rest)},
          {2, cubic_far(aten, aten("add.Scalar", {rest, 1.0}))}};
}

template <bool kIsCubic>
Term resampled(const Aten& aten, Term input) {
  const bool align_corners = aten.call().bool_attr("align_corners");
  if (!is_float(input.dtype()))
    return aten.fail(code::kUnsupported,
                     fmt::format("'{}' of {}", aten.call().target, dtype_name(input.dtype())));
  std::vector<Resampling> dims = resamplings(aten, input);
  if (dims.empty()) return aten.null();
  Term x = aten("to.dtype", {input, dims.front().compute});
  std::reverse(dims.begin(), dims.end());
  for (const Resampling& along : dims) {
    if (along.in == along.out) continue;
    Term places = source_places(aten, along, align_corners);
    if (!kIsCubic) places = aten("clamp_min", {places, 0.0});
    const Term first = aten("floor", {places});
    const Term t = aten("clamp", {aten("sub.Tensor", {places, first}), 0.0, 1.0});
    Term sum = aten.null();
    for (const auto& [offset, weight] :
         kIsCubic ? cubic_neighbours(aten, t) : linear_neighbours(aten, t)) {
      const Term element = elements_at(aten, x, along, aten("add.Scalar", {first, offset}));
      const Term part = aten("mul.Tensor", {element, weight_along(aten, x, along, weight)});
      sum = sum ? aten("add.Tensor", {sum, part}) : part;
    }
    x = sum;
  }
  return aten("to.dtype", {x, input.dtype()});
}

// --- antialiased: weights by distance, over as many elements as a result stands for

template <bool kIsCubic>
Term antialiased(const Aten& aten, Term input) {
  const bool align_corners = aten.call().bool_attr("align_corners");
  std::vector<Resampling> dims = resamplings(aten, input);
  if (dims.empty()) return aten.null();
  Term x = aten("to.dtype", {input, dims.front().compute});
  for (const Resampling& along : dims) {
    const double step = along.step(align_corners), width = std::max(step, 1.0);
    const double support = (kIsCubic ? 2 : 1) * width;
    const Term i = aten("unsqueeze", {result_places(aten, along), 1});
    const Term center = aten("mul.Scalar", {aten("add.Scalar", {i, 0.5}), step});
    const Term j = aten("to.dtype", {aten.arange(along.in), along.compute});
    const auto edge = [&](double offset) {
      return aten("trunc", {aten("add.Scalar", {center, offset})});
    };
    const Term is_inside =
        aten("logical_and", {aten("ge.Tensor", {j, aten("clamp_min", {edge(0.5 - support), 0.0})}),
                             aten("lt.Tensor", {j, edge(0.5 + support)})});
    const Term distance = aten(
        "abs",
        {aten("div.Scalar", {aten("add.Scalar", {aten("sub.Tensor", {j, center}), 0.5}), width})});
    const auto within = [&](Term weight, double most) {
      return aten("where.ScalarOther", {aten("lt.Scalar", {distance, most}), weight, 0});
    };
    Term weight = within(aten("rsub.Scalar", {distance, 1.0}), 1);
    if (kIsCubic) {
      // PIL's A = -0.5.
      const Term square = aten("mul.Tensor", {distance, distance});
      const Term cube = aten("mul.Tensor", {square, distance});
      const auto polynomial = [&](double c3, double c2, double c1, double c0) {
        const Term high =
            aten("add.Tensor", {aten("mul.Scalar", {cube, c3}), aten("mul.Scalar", {square, c2})});
        const Term low = aten("add.Scalar", {aten("mul.Scalar", {distance, c1}), c0});
        return aten("add.Tensor", {high, low});
      };
      weight = aten("where.self", {aten("lt.Scalar", {distance, 1.0}), polynomial(1.5, -2.5, 0, 1),
                                   within(polynomial(-0.5, 2.5, -4, 2), 2)});
    }
    weight = aten("where.ScalarOther", {is_inside, weight, 0});
    weight = aten("div.Tensor", {weight, aten("sum.dim_IntList", {weight, Dims{1}, true})});
    const Term moved = aten("transpose.int", {x, along.dim, -1});
    const Term sums = aten("matmul", {moved, aten("t", {weight})});
    x = aten("transpose.int", {sums, along.dim, -1});
  }
  return aten("to.dtype", {x, input.dtype()});
}

template <auto kResample>
void add_resampling(std::vector<Import>& imports, const std::string& name, int rank,
                    bool has_corners, bool is_row = false) {
  constexpr const char* kScales[] = {", float? scales_d=None", ", float? scales_h=None",
                                     ", float? scales_w=None"};
  const std::string corners = has_corners ? ", bool align_corners" : "";
  std::string scales = rank == 1 ? ", float? scales=None" : "";
  for (int d = 3 - rank; rank > 1 && d < 3; ++d) scales += kScales[d];
  imports.push_back(
      {.schema = fmt::format("{}(Tensor self, SymInt[{}] output_size{}{}) -> Tensor", name, rank,
                             corners, scales),
       .build = composed<[](const Aten& aten) { return kResample(aten, aten.tensor("self")); }>});
  if (is_row) return;
  imports.push_back(
      {.schema = fmt::format("{}.vec(Tensor input, SymInt[]? output_size{}, float[]? "
                             "scale_factors) -> Tensor",
                             name, corners),
       .build = composed<[](const Aten& aten) { return kResample(aten, aten.tensor("input")); }>});
}

}  // namespace

std::vector<Import> import_resample() {
  std::vector<Import> imports;
  for (const int rank : {1, 2, 3}) {
    const std::string dims = fmt::format("{}d", rank);
    add_resampling<resampled_nearest<false>>(imports, "upsample_nearest" + dims, rank, false,
                                             rank == 2);
    add_resampling<resampled_nearest<true>>(imports, "_upsample_nearest_exact" + dims, rank, false);
  }
  add_resampling<resampled<false>>(imports, "upsample_linear1d", 1, true);
  add_resampling<resampled<false>>(imports, "upsample_bilinear2d", 2, true, true);
  add_resampling<resampled<false>>(imports, "upsample_trilinear3d", 3, true);
  add_resampling<resampled<true>>(imports, "upsample_bicubic2d", 2, true);
  add_resampling<antialiased<false>>(imports, "_upsample_bilinear2d_aa", 2, true);
  add_resampling<antialiased<true>>(imports, "_upsample_bicubic2d_aa", 2, true);
  return imports;
}

}  // namespace lathe
