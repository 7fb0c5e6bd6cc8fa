// What goes back the way of a max pool: its gradient and unpooling; and adaptive max pools.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// x with its last `spatial` dims in one.
Term joined(const Aten& aten, Term x, size_t spatial) {
  return aten("flatten.using_ints", {x, -static_cast<int64_t>(spatial), -1});
}

template <size_t kSpatial>
Built max_pool_backward(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const Term self = aten.tensor("self");
  const Term flat = joined(aten, self, kSpatial);
  const Term zeros = aten("zeros_like", {flat});
  const Term sums = aten("scatter_add", {zeros, -1, joined(aten, aten.tensor("indices"), kSpatial),
                                         joined(aten, aten.tensor("grad_output"), kSpatial)});
  return std::vector<Value>{aten("reshape", {sums, self.shape()})};
}

template <size_t kSpatial>
Built max_unpool(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const Term self = aten.tensor("self");
  const std::vector<Dim> sizes = call.dims_attr("output_size");
  const auto rank = static_cast<size_t>(self.rank());
  if (sizes.size() != kSpatial || rank <= kSpatial)
    return aten.refuse(code::kShapeMismatch, fmt::format("'{}' needs channels and {} spatial dims",
                                                         call.target, kSpatial));
  Shape shape = self.shape();
  Dim volume = 1;
  for (size_t d = 0; d < kSpatial; ++d) {
    shape[rank - kSpatial + d] = sizes[d];
    volume = volume * sizes[d];
  }
  Shape flat(shape.begin(), shape.end() - kSpatial);
  flat.push_back(volume);
  const Term zeros = aten.full(flat, 0, self.dtype());
  const Term written = aten(
      "scatter.src",
      {zeros, -1, joined(aten, aten.tensor("indices"), kSpatial), joined(aten, self, kSpatial)});
  return std::vector<Value>{aten("reshape", {written, shape})};
}

// Window i of n covers floor(i * size / n) to ceil((i + 1) * size / n). Every window as long as the
// longest, whose last elements repeat: x's dim `dim` becomes two, windows and their elements.
Term windows_of(const Aten& aten, Term x, int64_t dim, int64_t size, int64_t n) {
  int64_t longest = 1;
  const auto start = [&](int64_t i) { return i * size / n; };
  const auto end = [&](int64_t i) { return ((i + 1) * size + n - 1) / n; };
  for (int64_t i = 0; i < n; ++i) longest = std::max(longest, end(i) - start(i));
  const auto divided = [&](Term a) { return aten("floor_divide.Scalar", {a, n}); };
  const Term i = aten("unsqueeze", {aten.arange(n), -1});
  const Term first = divided(aten("mul.Scalar", {i, size}));
  const Term last = aten(
      "sub.Scalar",
      {divided(aten("add.Scalar", {aten("mul.Scalar", {aten("add.Scalar", {i, 1}), size}), n - 1})),
       1});
  const Term at = aten("minimum", {aten("add.Tensor", {first, aten.arange(longest)}), last});
  if (!at || !x) return aten.null();
  Shape shape = x.shape();
  shape[static_cast<size_t>(dim)] = n;
  shape.insert(shape.begin() + dim + 1, Dim(longest));
  const Term all = aten("index_select", {x, dim, aten("reshape", {at, Dims{-1}})});
  return aten("reshape", {all, shape});
}

template <size_t kSpatial>
Built adaptive_max_pool(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const Term self = aten.tensor("self");
  const std::vector<int64_t> counts = call.ints_attr("output_size");
  const auto lead = static_cast<size_t>(self.rank()) - kSpatial;
  if (static_cast<size_t>(self.rank()) <= kSpatial || counts.size() != kSpatial)
    return aten.refuse(code::kShapeMismatch,
                       "an adaptive pool needs channels before its spatial dims");
  const Shape whole = self.shape();
  Shape result = whole;
  Dim volume = 1;
  for (size_t d = 0; d < kSpatial; ++d) {
    const Dim size = whole[lead + d];
    if (!size.is_const() || size.value() < 1 || counts[d] < 1)
      return aten.refuse(code::kUnsupported, "an adaptive max pool needs sizes that are numbers");
    volume = volume * size;
    result[lead + d] = counts[d];
  }
  const Shape spatial(whole.begin() + static_cast<ptrdiff_t>(lead), whole.end());
  // Windows of the elements and of their places alike; then elements of windows last, in one dim.
  const auto gathered = [&](Term x, size_t first) {
    for (size_t d = 0; d < kSpatial; ++d)
      x = windows_of(aten, x, static_cast<int64_t>(first + 2 * d), spatial[d].value(), counts[d]);
    Dims order;
    for (size_t d = 0; d < first; ++d) order.push_back(static_cast<int64_t>(d));
    for (size_t part : {size_t{0}, size_t{1}})
      for (size_t d = 0; d < kSpatial; ++d)
        order.push_back(static_cast<int64_t>(first + 2 * d + part));
    return joined(aten, aten("permute", {x, order}), kSpatial);
  };
  const Term taps = gathered(self, lead);
  const Term places = gathered(aten("reshape", {aten.arange(volume), spatial}), 0);
  if (!taps || !places) return std::vector<Value>{{}, {}};
  const std::vector<Term> best = aten.all("max.dim", {taps, -1});
  // The first of equals; NaN: the last, as PyTorch has it.
  Term chosen = best[1];
  if (is_float(self.dtype())) {
    const Dim count = taps.shape().back();
    const Term own = aten("where.ScalarOther", {aten("isnan", {taps}), aten.arange(count), -1});
    chosen = aten("maximum", {chosen, aten("amax", {own, Dims{-1}})});
  }
  Shape index = result;
  index.push_back(1);
  const Term wide = aten("expand", {places, taps.shape()});
  const Term at = aten("gather", {wide, -1, aten("reshape", {chosen, index})});
  return std::vector<Value>{best[0], aten("reshape", {at, result})};
}

}  // namespace

std::vector<Import> import_max_pool() {
  const auto backward = [](const std::string& n) {
    const std::string ints = "int[" + n + "] ";
    return "max_pool" + n + "d_with_indices_backward(Tensor grad_output, Tensor self, " + ints +
           "kernel_size, " + ints + "stride, " + ints + "padding, " + ints +
           "dilation, bool ceil_mode, Tensor indices) -> Tensor";
  };
  const auto adaptive = [](const std::string& n) {
    return "adaptive_max_pool" + n + "d(Tensor self, int[" + n +
           "] output_size) -> (Tensor, Tensor)";
  };
  return {
      {.schema = backward("2"), .build = max_pool_backward<2>},
      {.schema = backward("3"), .build = max_pool_backward<3>},
      {.schema = "max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor",
       .build = max_unpool<2>},
      {.schema = "max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, "
                 "int[3] padding) -> Tensor",
       .build = max_unpool<3>},
      {.schema = adaptive("1"), .build = adaptive_max_pool<1>},
      {.schema = adaptive("2"), .build = adaptive_max_pool<2>},
      {.schema = adaptive("3"), .build = adaptive_max_pool<3>},
  };
}

}  // namespace lathe
