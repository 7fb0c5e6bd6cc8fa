// Convolutions whose padding is a word: "same" or "valid".
#include <fmt/format.h>

#include <algorithm>

#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

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

std::vector<Import> import_convolution_padding() {
  std::vector<Import> imports;
  for (const int rank : {1, 2, 3})
    imports.push_back(
        {.schema = fmt::format("conv{0}d.padding(Tensor input, Tensor weight, Tensor? bias=None, "
                               "SymInt[{0}] stride=1, str padding=\"valid\", SymInt[{0}] "
                               "dilation=1, SymInt groups=1) -> Tensor",
                               rank),
         .build = composed<kConvolutionOfPadded>});
  return imports;
}

}  // namespace lathe
