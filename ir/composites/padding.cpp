// Padding with elements of the tensor itself.
#include <fmt/format.h>

#include <algorithm>

#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

enum class PadMode : int64_t { reflect = 0, replicate = 1, circular = 2 };  // as _pad_enum has it

// Which of `size` elements stands at each place, from `before` places ahead of the first on.
Term padded_places(const Aten& aten, PadMode mode, int64_t before, int64_t size, int64_t count) {
  const Term place = aten("arange.start", {-before, count - before, DType::i64});
  switch (mode) {
    case PadMode::reflect: {
      const Term behind = aten("abs", {place});
      return aten("rsub.Scalar",
                  {aten("abs", {aten("rsub.Scalar", {behind, size - 1})}), size - 1});
    }
    case PadMode::replicate:
      return aten("clamp", {place, 0, size - 1});
    case PadMode::circular:
      return aten("remainder.Scalar", {place, size});
  }
  return aten.null();
}

// The elements beside the first or the last, `count` of them: side by side as they are copied.
Term border(const Aten& aten, PadMode mode, Term x, int64_t dim, int64_t count, bool is_before) {
  const int64_t size = Aten::size(x, dim).value();
  const auto slice = [&](int64_t start, int64_t end) {
    return aten("slice.Tensor", {x, dim, start, end});
  };
  if (mode == PadMode::circular) return is_before ? slice(size - count, size) : slice(0, count);
  if (mode == PadMode::reflect) {
    const Term beside = is_before ? slice(1, count + 1) : slice(size - 1 - count, size - 1);
    return aten("flip", {beside, Dims{dim}});
  }
  Shape shape = x.shape();
  shape[static_cast<size_t>(dim)] = count;
  return aten("expand", {is_before ? slice(0, 1) : slice(size - 1, size), shape});
}

// What is not cropped, between its borders.
Term bordered(const Aten& aten, PadMode mode, Term x, int64_t dim, int64_t before, int64_t after) {
  const int64_t size = Aten::size(x, dim).value();
  std::vector<Term> parts;
  if (before > 0) parts.push_back(border(aten, mode, x, dim, before, true));
  const int64_t start = std::max<int64_t>(-before, 0), end = size + std::min<int64_t>(after, 0);
  parts.push_back(aten("slice.Tensor", {x, dim, start, end}));
  if (after > 0) parts.push_back(border(aten, mode, x, dim, after, false));
  return aten("cat", {parts, dim});
}

Term padded(const Aten& aten, PadMode mode, std::string_view pad_arg) {
  const ImportCall& call = aten.call();
  Term x = aten.tensor("self");
  const std::vector<Dim> pad = call.dims_attr(pad_arg);
  for (size_t i = 0; i + 1 < pad.size(); i += 2) {
    const int64_t dim = x.rank() - 1 - static_cast<int64_t>(i / 2);
    const Dim size = Aten::size(x, dim);
    if (dim < 0 || !size.is_const() || !pad[i].is_const() || !pad[i + 1].is_const())
      return aten.fail(code::kUnsupported,
                       fmt::format("'{}' of a symbolic size of {}", call.target, size.str()));
    int64_t before = pad[i].value(), after = pad[i + 1].value(), extent = size.value();
    // What is cropped does not come round again.
    if (mode == PadMode::circular && (before < 0 || after < 0)) {
      const int64_t start = std::max<int64_t>(-before, 0);
      const int64_t end = extent + std::min<int64_t>(after, 0);
      x = aten("slice.Tensor", {x, dim, start, end});
      extent = end - start;
      before = std::max<int64_t>(before, 0), after = std::max<int64_t>(after, 0);
    }
    const int64_t count = extent + before + after;
    if (before == 0 && after == 0) continue;
    const int64_t most = mode == PadMode::reflect ? extent - 1 : extent;
    const bool repeats = mode == PadMode::replicate ? extent > 0 : before <= most && after <= most;
    if (count < 0 || !repeats)
      return aten.fail(code::kShapeMismatch, fmt::format("'{}' by {} and {} of a size of {}",
                                                         call.target, before, after, size.str()));
    // Where all of it is cropped, what is left are borders of what is not there.
    const bool has_middle = before > -extent && after > -extent;
    x = has_middle
            ? bordered(aten, mode, x, dim, before, after)
            : aten("index_select", {x, dim, padded_places(aten, mode, before, extent, count)});
  }
  return x;
}

template <PadMode kMode>
Term pad_by(const Aten& aten) {
  return padded(aten, kMode, "padding");
}

constexpr auto kPadEnum = [](const Aten& aten) {
  return padded(aten, static_cast<PadMode>(aten.call().int_attr("mode")), "pad");
};

// "same" keeps the size at stride 1, with more behind than before; "valid" does not pad.
constexpr auto kConvolutionOfPadded = [](const Aten& aten) {
  const ImportCall& call = aten.call();
  const Term weight = aten.tensor("weight");
  const size_t rank = static_cast<size_t>(std::max(weight.rank() - 2, 0));
  Dims dilation = call.ints_attr("dilation"), padding(rank, 0), behind(2 * rank, 0);
  dilation.resize(rank, dilation.empty() ? 1 : dilation.back());
  for (size_t d = 0; d < rank && call.string_attr("padding") == "same"; ++d) {
    const Dim taps = Aten::size(weight, static_cast<int64_t>(2 + d));
    if (!taps.is_const()) return aten.fail(code::kUnsupported, "a weight of symbolic sizes");
    const int64_t total = dilation[d] * (taps.value() - 1);
    padding[d] = total / 2;
    behind[2 * (rank - 1 - d) + 1] = total % 2;
  }
  Term input = aten.tensor("input");
  if (behind != Dims(2 * rank, 0)) input = aten("constant_pad_nd", {input, behind});
  const std::string target = call.schema->name.substr(0, call.schema->name.find('.'));
  return aten(target, {input, weight, aten.tensor("bias"), aten.attr("stride"), padding,
                       aten.attr("dilation"), aten.attr("groups")});
};

}  // namespace

std::vector<Import> import_padding() {
  std::vector<Import> imports = {
      {.schema = "_pad_enum(Tensor self, SymInt[] pad, int mode, float? value=None) -> Tensor",
       .build = composed<kPadEnum>},
      {.schema = "_pad_circular(Tensor self, SymInt[] pad) -> Tensor",
       .build = composed<[](const Aten& aten) { return padded(aten, PadMode::circular, "pad"); }>},
  };
  for (const int rank : {1, 2, 3}) {
    const std::string rest =
        fmt::format("_pad{}d(Tensor self, SymInt[{}] padding) -> Tensor", rank, 2 * rank);
    imports.push_back({.schema = "reflection" + rest, .build = composed<pad_by<PadMode::reflect>>});
    imports.push_back(
        {.schema = "replication" + rest, .build = composed<pad_by<PadMode::replicate>>});
    imports.push_back(
        {.schema = fmt::format("conv{0}d.padding(Tensor input, Tensor weight, Tensor? bias=None, "
                               "SymInt[{0}] stride=1, str padding=\"valid\", SymInt[{0}] "
                               "dilation=1, SymInt groups=1) -> Tensor",
                               rank),
         .build = composed<kConvolutionOfPadded>});
  }
  return imports;
}

}  // namespace lathe
