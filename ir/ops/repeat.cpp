// Copies and rotations along dims: repeat and roll.
#include <fmt/format.h>

#include <utility>

#include "ir/op/import_call.h"
#include "ir/op/reduction.h"
#include "ir/op/self.h"
#include "ir/op/term.h"
#include "ir/op/view.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

using Types = Result<std::vector<TensorType>>;
using Ints = std::vector<int64_t>;

Types infer_repeat(const Node& node) {
  std::vector<Dim> repeats = node.dims_attr("repeats");
  const Shape& shape = self_type(node).shape;
  if (repeats.size() < shape.size()) {
    return Diag{
        code::kAttribute, node.loc,
        fmt::format("'repeat' needs at least {} counts, got {}", shape.size(), repeats.size())};
  }
  const size_t lead = repeats.size() - shape.size();
  for (size_t d = 0; d < shape.size(); ++d) repeats[lead + d] = repeats[lead + d] * shape[d];
  return std::vector<TensorType>{{self_type(node).dtype, std::move(repeats)}};
}

constexpr auto kRepeat = [](const Node& node, auto index, auto number) {
  const size_t rank = self_type(node).shape.size();
  index.erase(index.begin(), index.end() - static_cast<ptrdiff_t>(rank));
  for (size_t d = 0; d < rank; ++d) index[d] = index_mod(index[d], number(source_extent(node, d)));
  return index;
};

// The copies side by side, as dims of their own, and their sum.
std::vector<Value> repeat_gradient(Builder& b, const Node& node, std::span<const Value> gradients) {
  const std::vector<Dim> repeats = node.dims_attr("repeats");
  const Shape& shape = self_type(node).shape;
  const size_t lead = repeats.size() - shape.size();
  Shape split;
  std::vector<int64_t> copies;
  for (size_t d = 0; d < repeats.size(); ++d) {
    copies.push_back(static_cast<int64_t>(split.size()));
    split.push_back(repeats[d]);
    if (d >= lead) split.push_back(shape[d - lead]);
  }
  return {reshape(sum(reshape({b, gradients[0]}, std::move(split)), copies), shape)};
}

OpDef repeat() {
  return {
      .name = "repeat",
      .summary = "repeats[d] copies of self along each dim; more counts than dims lead",
      .operands = {{"self"}},
      .attrs = {{.name = "repeats", .kind = AttrKind::dims}},
      .traits = {.op_class = OpClass::view},
      .infer = infer_repeat,
      .reference = view_reference<kRepeat>,
      .decompose = Absent{"a core op"},
      .lower = view_lower<kRepeat>,
      .derivative = repeat_gradient,
      .imports = {{"repeat(Tensor self, SymInt[] repeats) -> Tensor"}},
      .examples = {{.operands = {{.shape = {2, 3}}}, .attrs = {{"repeats", Ints{2, 2}}}},
                   {.operands = {{.shape = {3}}}, .attrs = {{"repeats", Ints{2, 1}}}}},
  };
}

Types infer_roll(const Node& node) {
  if (node.ints_attr("shifts").size() != node.ints_attr("dims").size()) {
    return Diag{code::kAttribute, node.loc, "'roll' needs as many shifts as dims"};
  }
  for (int64_t dim : node.ints_attr("dims")) {
    LATHE_DO(normalized_dim(node, dim, self_type(node).rank()));
  }
  return std::vector<TensorType>{self_type(node)};
}

constexpr auto kRoll = [](const Node& node, auto index, auto number) {
  const std::vector<int64_t> dims = node.ints_attr("dims"), shifts = node.ints_attr("shifts");
  for (size_t i = 0; i < dims.size() && !index.empty(); ++i) {
    const auto d = static_cast<size_t>(normalize_dim(dims[i], self_type(node).rank()).value_or(0));
    index[d] = index_mod(index[d] + number(-shifts[i]), number(source_extent(node, d)));
  }
  return index;
};

std::vector<Value> roll_gradient(Builder& b, const Node& node, std::span<const Value> gradients) {
  std::vector<int64_t> back = node.ints_attr("shifts");
  for (int64_t& shift : back) shift = -shift;
  return {apply("roll", {{b, gradients[0]}},
                {{"shifts", std::move(back)}, {"dims", node.ints_attr("dims")}})};
}

// Without dims, the elements roll in row-major order.
Result<std::vector<Value>> import_roll(Builder& b, const ImportCall& call) {
  const Term self{b, call.value("self")};
  const std::vector<int64_t> shifts = call.ints_attr("shifts"), dims = call.ints_attr("dims");
  if (!dims.empty()) {
    return import_node(b, call, "roll", {self}, {{"shifts", shifts}, {"dims", dims}});
  }
  const TensorType type{self.dtype(), self.shape()};
  const Term flat = apply("roll", {reshape(self, {type.num_elements()})},
                          {{"shifts", shifts}, {"dims", Ints{0}}});
  return import_node(b, call, "reshape", {flat}, {{"shape", type.shape}});
}

OpDef roll() {
  return {
      .name = "roll",
      .summary = "self moved by shifts[i] along dims[i]; what leaves comes back at the other end",
      .operands = {{"self"}},
      .attrs = {{.name = "shifts", .kind = AttrKind::ints},
                {.name = "dims", .kind = AttrKind::ints}},
      .traits = {.op_class = OpClass::view},
      .infer = infer_roll,
      .reference = view_reference<kRoll>,
      .decompose = Absent{"a core op"},
      .lower = view_lower<kRoll>,
      .derivative = roll_gradient,
      .imports = {{.schema = "roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor",
                   .build = import_roll}},
      .examples = {{.operands = {{.shape = {3, 4}}},
                    .attrs = {{"shifts", Ints{1, -2}}, {"dims", Ints{0, 1}}}},
                   {.operands = {{.shape = {5}}},
                    .attrs = {{"shifts", Ints{7}}, {"dims", Ints{-1}}}}},
  };
}

}  // namespace

std::vector<OpDef> define_repeat() { return {repeat(), roll()}; }

}  // namespace lathe
