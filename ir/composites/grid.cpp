// Samples of images at places that a grid says, and grids of affine maps.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

enum class Border : int64_t { zeros = 0, nearest = 1, reflection = 2 };  // as PyTorch numbers them

struct Sampling {
  Term input;
  Border border;
  bool align_corners;
  std::vector<int64_t> sizes;  // of the spatial dims
};

// From [-1, 1] to positions of elements, with the roundings of PyTorch: halves are rounded at each
// step, and a position near the middle of two elements is nearest to one of them.
Term unnormalized(const Aten& aten, const Sampling& how, Term place, size_t d) {
  const auto size = static_cast<double>(how.sizes[d]);
  const Term from_zero = aten("add.Scalar", {place, 1.0});
  if (how.sizes.size() == 2) {
    const double scale = how.align_corners ? (size - 1) / 2 : size / 2;
    const Term scaled = aten("mul.Scalar", {from_zero, scale});
    return how.align_corners ? scaled : aten("sub.Scalar", {scaled, 0.5});
  }
  if (how.align_corners)
    return aten("mul.Scalar", {aten("mul.Scalar", {from_zero, 0.5}), size - 1});
  return aten("mul.Scalar",
              {aten("sub.Scalar", {aten("mul.Scalar", {from_zero, size}), 1.0}), 0.5});
}

// Thrown back between the first and the last element, or between their outer edges.
Term reflected(const Aten& aten, const Sampling& how, Term place, double low, double span) {
  if (span == 0) return aten("zeros_like", {place});
  const Term distance = aten("abs", {aten("sub.Scalar", {place, low})});
  if (how.sizes.size() == 2) {
    const Term turns = aten("trunc", {aten("div.Scalar", {distance, 2 * span})});
    const Term extra = aten("sub.Tensor", {distance, aten("mul.Scalar", {turns, 2 * span})});
    const Term back = aten("rsub.Scalar", {extra, 2 * span});
    const Term nearer = aten("minimum", {extra, back});
    return low == 0 ? nearer : aten("add.Scalar", {nearer, low});
  }
  const Term extra = aten("fmod.Scalar", {distance, span});
  const Term flips = aten("floor", {aten("div.Scalar", {distance, span})});
  const Term is_even = aten("eq.Scalar", {aten("fmod.Scalar", {flips, 2.0}), 0});
  return aten("where.self", {is_even, aten("add.Scalar", {extra, low}),
                             aten("rsub.Scalar", {extra, span + low})});
}

Term bordered(const Aten& aten, const Sampling& how, Term place, size_t d) {
  if (how.border == Border::zeros) return place;
  const auto size = static_cast<double>(how.sizes[d]);
  if (how.border == Border::reflection)
    place = how.align_corners ? reflected(aten, how, place, 0, size - 1)
                              : reflected(aten, how, place, -0.5, size);
  return aten("clamp", {place, 0.0, size - 1});
}

// The elements at whole positions [N, 1, out...] of each dim; 0 outside.
Term elements_of(const Aten& aten, const Sampling& how, const std::vector<Term>& places) {
  const int rank = how.input.rank();
  const auto leading = [&](const Dim& size, int dim) {
    Shape shape(static_cast<size_t>(rank), 1);
    shape[static_cast<size_t>(dim)] = size;
    return aten("reshape", {aten.arange(size), shape});
  };
  std::vector<Term> index = {leading(Aten::size(how.input, 0), 0),
                             leading(Aten::size(how.input, 1), 1)};
  Term is_inside = aten.null();
  for (size_t d = 0; d < places.size(); ++d) {
    const double last = static_cast<double>(how.sizes[d] - 1);
    const Term here = aten(
        "logical_and", {aten("ge.Scalar", {places[d], 0.0}), aten("le.Scalar", {places[d], last})});
    is_inside = is_inside ? aten("logical_and", {is_inside, here}) : here;
    index.push_back(aten("to.dtype", {aten("clamp", {places[d], 0.0, last}), DType::i64}));
  }
  return aten("where.ScalarOther", {is_inside, aten("index.Tensor", {how.input, index}), 0});
}

Term sampled_linearly(const Aten& aten, const Sampling& how, const std::vector<Term>& places) {
  std::vector<Term> first;
  for (Term place : places) first.push_back(aten("floor", {place}));
  Term sum = aten.null();
  for (size_t corner = 0; corner < size_t{1} << places.size(); ++corner) {
    std::vector<Term> at;
    Term weight = aten.null();
    for (size_t d = 0; d < places.size(); ++d) {
      const bool is_second = (corner >> d & 1) != 0;
      const Term t = aten("sub.Tensor", {places[d], first[d]});
      const Term share = is_second ? t : aten("rsub.Scalar", {t, 1.0});
      at.push_back(is_second ? aten("add.Scalar", {first[d], 1.0}) : first[d]);
      weight = weight ? aten("mul.Tensor", {weight, share}) : share;
    }
    const Term part = aten("mul.Tensor", {elements_of(aten, how, at), weight});
    sum = sum ? aten("add.Tensor", {sum, part}) : part;
  }
  return sum;
}

// Of four neighbours in each dim, by PyTorch's cubic convolution with A = -0.75.
std::vector<Term> cubic_weights(const Aten& aten, Term t) {
  const auto polynomial = [&](Term x, double c3, double c2, double c1, double c0) {
    Term sum = aten("add.Scalar", {aten("mul.Scalar", {x, c3}), c2});
    sum = aten("add.Scalar", {aten("mul.Tensor", {sum, x}), c1});
    return aten("add.Scalar", {aten("mul.Tensor", {sum, x}), c0});
  };
  const auto near = [&](Term x) { return polynomial(x, 1.25, -2.25, 0, 1); };
  const auto far = [&](Term x) { return polynomial(x, -0.75, 3.75, -6, 3); };
  const Term rest = aten("rsub.Scalar", {t, 1.0});
  return {far(aten("add.Scalar", {t, 1.0})), near(t), near(rest),
          far(aten("add.Scalar", {rest, 1.0}))};
}

Term sampled_cubically(const Aten& aten, const Sampling& how, const std::vector<Term>& places) {
  std::vector<std::vector<Term>> weights;
  std::vector<Term> first;
  for (Term place : places) {
    first.push_back(aten("floor", {place}));
    weights.push_back(cubic_weights(aten, aten("sub.Tensor", {place, first.back()})));
  }
  const auto neighbour = [&](size_t d, int64_t tap) {
    return bordered(aten, how, aten("add.Scalar", {first[d], tap - 1}), d);
  };
  Term sum = aten.null();
  for (size_t row = 0; row < 4; ++row) {
    for (size_t column = 0; column < 4; ++column) {
      const Term element = elements_of(
          aten, how,
          {neighbour(0, static_cast<int64_t>(row)), neighbour(1, static_cast<int64_t>(column))});
      const Term weight = aten("mul.Tensor", {weights[0][row], weights[1][column]});
      const Term part = aten("mul.Tensor", {element, weight});
      sum = sum ? aten("add.Tensor", {sum, part}) : part;
    }
  }
  return sum;
}

constexpr auto kGridSampler = [](const Aten& aten) {
  const ImportCall& call = aten.call();
  const Term input = aten.tensor("input"), grid = aten.tensor("grid");
  Sampling how{.input = input,
               .border = static_cast<Border>(call.int_attr("padding_mode")),
               .align_corners = call.bool_attr("align_corners"),
               .sizes = {}};
  const int rank = input.rank();
  bool is_known = (rank == 4 || rank == 5) && grid.rank() == rank;
  for (int d = 2; is_known && d < rank; ++d) {
    is_known = Aten::size(input, d).is_const() && Aten::size(input, d).value() > 0;
    how.sizes.push_back(Aten::size(input, d).value());
  }
  if (!is_known)
    return aten.fail(code::kUnsupported,
                     fmt::format("'{}' needs images of constant extents", call.target));
  const int64_t mode = call.int_attr("interpolation_mode");
  std::vector<Term> places;
  for (int d = 0; d < rank - 2; ++d) {  // a grid names the last dim first
    const Term own = aten("unsqueeze", {aten("select.int", {grid, -1, rank - 3 - d}), 1});
    const Term place = unnormalized(aten, how, own, static_cast<size_t>(d));
    places.push_back(mode == 2 ? place : bordered(aten, how, place, static_cast<size_t>(d)));
  }
  if (mode == 0) return sampled_linearly(aten, how, places);
  if (mode == 2 && rank == 4) return sampled_cubically(aten, how, places);
  if (mode != 1)
    return aten.fail(code::kBadValue, fmt::format("'{}' by mode {}", call.target, mode));
  for (Term& place : places) place = aten("round", {place});
  return elements_of(aten, how, places);
};

}  // namespace

std::vector<Import> import_grid() {
  const std::string arguments =
      "(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) "
      "-> Tensor";
  return {{.schema = "grid_sampler" + arguments, .build = composed<kGridSampler>},
          {.schema = "grid_sampler_2d" + arguments, .build = composed<kGridSampler>},
          {.schema = "grid_sampler_3d" + arguments, .build = composed<kGridSampler>}};
}

}  // namespace lathe
