// Max pools of windows at pseudo-random places.
#include <fmt/format.h>

#include <algorithm>

#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// Where the n windows of a dim begin, for each sample u in [0, 1): trunc((i + u) a) - trunc(u a)
// with a = (size - window) / (n - 1), and the last one at the end (Graham, "Fractional
// max-pooling", 2014, as PyTorch has it). [..., n] of i64.
Term window_starts(const Aten& aten, Term samples, int64_t size, int64_t window, int64_t n) {
  const Term last = aten("full_like", {samples, size - window, DType::i64});
  if (n == 1) return aten("unsqueeze", {last, -1});
  // Divided in the samples' dtype, whose roundings decide.
  const Term alpha =
      aten("div.Tensor", {aten.scalar(static_cast<double>(size - window), samples.dtype()),
                          aten.scalar(static_cast<double>(n - 1), samples.dtype())});
  const auto place = [&](Term at) {
    return aten("to.dtype", {aten("mul.Tensor", {at, alpha}), DType::i64});
  };
  const Term own = aten("unsqueeze", {samples, -1});
  const Term i = aten("to.dtype", {aten.arange(n - 1), samples.dtype()});
  const Term starts = aten("sub.Tensor", {place(aten("add.Tensor", {own, i})), place(own)});
  return aten("cat", {std::vector<Term>{starts, aten("unsqueeze", {last, -1})}, -1});
}

// One dim of the input's last `kSpatial` ones.
struct Pooled {
  int64_t size, window, count;
};

// The largest element of each window and its place in the plane, of rows [..., plane].
template <size_t kSpatial>
std::vector<Term> pooled(const Aten& aten, Term rows, Term samples,
                         const std::vector<Pooled>& dims) {
  // Places of the elements of all windows, [..., count_0, window_0, count_1, ...]: a sum over dims.
  Term places = aten.scalar(0, DType::i64);
  int64_t stride = 1;
  for (size_t d = kSpatial; d-- > 0;) {
    const Pooled& dim = dims[d];
    // PyTorch's samples are for width, height of images, and for time, height, width of volumes.
    const auto sample = static_cast<int64_t>(kSpatial == 2 ? 1 - d : d);
    const Term starts = window_starts(aten, aten("select.int", {samples, -1, sample}), dim.size,
                                      dim.window, dim.count);
    const Term own = aten("add.Tensor", {aten("unsqueeze", {starts, -1}), aten.arange(dim.window)});
    Shape shape = own.shape();
    shape.resize(shape.size() - std::min<size_t>(2, shape.size()));
    for (size_t k = 0; k < kSpatial; ++k) shape.push_back(k == d ? Dim(dim.count) : Dim(1));
    for (size_t k = 0; k < kSpatial; ++k) shape.push_back(k == d ? Dim(dim.window) : Dim(1));
    const Term scaled = aten("mul.Scalar", {own, stride});
    places = aten("add.Tensor", {places, aten("reshape", {scaled, shape})});
    stride *= dim.size;
  }
  const Term windows = aten("flatten.using_ints", {places, -static_cast<int64_t>(kSpatial), -1});
  const Shape shape = windows.shape();
  const Term flat = aten("flatten.using_ints", {windows, rows.rank() - 1, -1});
  const Term all = aten("reshape", {aten("gather", {rows, -1, flat}), shape});
  const std::vector<Term> best = aten.all("max.dim", {all, -1, true});
  if (best.size() < 2) return {aten.null(), aten.null()};
  const Term at = aten("gather", {windows, -1, best[1]});
  return {aten("squeeze.dim", {best[0], -1}), aten("squeeze.dim", {at, -1})};
}

template <size_t kSpatial>
std::vector<Term> fractional_max_pool(const Aten& aten) {
  const ImportCall& call = aten.call();
  const Term self = aten.tensor("self"), samples = aten.tensor("random_samples");
  const std::vector<int64_t> windows = call.ints_attr("kernel_size");
  const std::vector<int64_t> counts = call.ints_attr("output_size");
  const auto refuse = [&](const std::string& why) {
    return std::vector<Term>(
        2, aten.fail(code::kShapeMismatch, fmt::format("'{}' {}", call.target, why)));
  };
  const Shape shape = self.shape();
  const int64_t leading = self.rank() - static_cast<int64_t>(kSpatial);
  if (!self || !samples || leading < 1 || leading > 2 || samples.rank() != 3 ||
      samples.shape()[2] != Dim(kSpatial) || windows.size() != kSpatial ||
      counts.size() != kSpatial)
    return refuse("needs channels, a window, a size of the result and samples for each dim");
  std::vector<Pooled> dims;
  for (size_t d = 0; d < kSpatial; ++d) {
    const Dim& size = shape[static_cast<size_t>(leading) + d];
    if (!size.is_const()) return refuse("needs numbers as sizes");
    if (windows[d] < 1 || counts[d] < 1 || counts[d] + windows[d] - 1 > size.value())
      return refuse(
          fmt::format("takes {} windows of {} from {}", counts[d], windows[d], size.value()));
    dims.push_back({size.value(), windows[d], counts[d]});
  }
  const Term rows = aten("flatten.using_ints", {self, leading, -1});
  const Term own = leading == 1 ? aten("select.int", {samples, 0, 0}) : samples;
  return pooled<kSpatial>(aten, rows, own, dims);
}

}  // namespace

std::vector<Import> import_fractional_max_pool() {
  const auto schema = [](const std::string& n) {
    return "fractional_max_pool" + n + "d(Tensor self, int[" + n + "] kernel_size, int[" + n +
           "] output_size, Tensor random_samples) -> (Tensor, Tensor)";
  };
  return {{.schema = schema("2"), .build = composed<fractional_max_pool<2>>},
          {.schema = schema("3"), .build = composed<fractional_max_pool<3>>}};
}

}  // namespace lathe
