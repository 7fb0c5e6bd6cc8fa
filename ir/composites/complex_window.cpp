// Convolutions of complex images, or by complex filters: those of their parts.
#include "ir/op/complex.h"

namespace lathe {
namespace {

Built parts_convolved(Builder& builder, const ImportCall& call) {
  const Aten aten(builder, call);
  const Pair x = pair(aten, aten.tensor("input")), w = pair(aten, aten.tensor("weight"));
  const Term bias = aten.tensor("bias");
  const Pair b = bias ? pair(aten, bias) : Pair{bias, bias};
  const auto convolution = [&](Term images, Term filters, Term added) -> Result<Term> {
    ImportCall inner{.target = call.schema->name, .args = call.args, .loc = call.loc};
    for (auto& [name, arg] : inner.args) {
      if (name == "input") arg = static_cast<Value>(images);
      if (name == "weight") arg = static_cast<Value>(filters);
      if (name == "bias") arg = static_cast<Value>(added);
    }
    if (builder.failed()) return builder.error();
    LATHE_TRY(const std::vector<Value> found, import_call(builder, *call.table, std::move(inner)));
    return Term(builder, found.front());
  };
  LATHE_TRY(const Term re, convolution(x.re, w.re, b.re));
  LATHE_TRY(const Term less, convolution(x.im, w.im, aten.null()));
  LATHE_TRY(const Term im, convolution(x.re, w.im, b.im));
  LATHE_TRY(const Term more, convolution(x.im, w.re, aten.null()));
  return std::vector<Value>{join(aten, aten("sub.Tensor", re, less), aten("add.Tensor", im, more))};
}

}  // namespace

std::vector<Import> import_complex_window() {
  std::vector<Import> imports;
  for (const char* name : {"convolution", "conv1d", "conv2d", "conv3d", "conv_transpose1d",
                           "conv_transpose2d", "conv_transpose3d"})
    imports.push_back({.schema = name,
                       .build = parts_convolved,
                       .alias_of = name,
                       .numbers = NumberKind::complex});
  return imports;
}

}  // namespace lathe
