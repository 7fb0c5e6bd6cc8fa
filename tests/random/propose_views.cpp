// Shapes for views: the same elements elsewhere.
#include <algorithm>

#include "tests/random/propose.h"

namespace lathe::random_graphs {
namespace {

Value tensor(Grower& grower, int64_t min_rank) {
  const Value found = grower.pick([&](Value value) { return value.type().rank() >= min_rank; });
  if (found && grower.draw().chance(0.9)) return found;
  Shape shape;
  for (int64_t i = std::max<int64_t>(min_rank, grower.draw().between(0, 4)); i > 0; --i)
    shape.push_back(grower.extent());
  return grower.fresh(grower.style().dtype, shape);
}

Proposal over(Value value, NamedAttrs attrs) {
  if (!value) return {};
  return {.operands = {value}, .attrs = std::move(attrs)};
}

// Splits and merges neighbouring dims.
Proposal propose_reshape(Grower& grower, const OpDef&) {
  Draw& draw = grower.draw();
  const Value x = tensor(grower, 0);
  if (!x) return {};
  std::vector<int64_t> sizes = x.type().static_shape();
  for (int64_t i = draw.between(1, 3); i > 0; --i) {
    if (sizes.size() > 1 && draw.chance(0.5)) {
      const auto at = static_cast<size_t>(draw.below(static_cast<int64_t>(sizes.size()) - 1));
      sizes[at] *= sizes[at + 1];
      sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(at) + 1);
      continue;
    }
    if (sizes.size() > 4) continue;
    const auto at = draw.below(static_cast<int64_t>(sizes.size()) + 1);
    int64_t factor = 1;
    if (at < static_cast<int64_t>(sizes.size())) {
      int64_t& size = sizes[static_cast<size_t>(at)];
      const int64_t wanted = draw.one_of<int64_t>({1, 2, 3, 4, 5, 8});
      if (size > 0 && size % wanted == 0) size /= factor = wanted;
    }
    sizes.insert(sizes.begin() + at, factor);
  }
  return over(x, {{"shape", Shape(sizes.begin(), sizes.end())}});
}

Proposal propose_expand(Grower& grower, const OpDef&) {
  Draw& draw = grower.draw();
  const Value x = tensor(grower, 0);
  if (!x) return {};
  Shape size = x.type().shape;
  for (Dim& dim : size)
    if (dim == Dim(1) && draw.chance(0.6)) dim = grower.extent();
  if (size.size() < 4 && draw.chance(0.5)) size.insert(size.begin(), Dim(grower.extent()));
  return over(x, {{"size", size}});
}

Proposal propose_slice(Grower& grower, const OpDef&) {
  Draw& draw = grower.draw();
  const Value x = tensor(grower, 1);
  if (!x) return {};
  const int64_t rank = x.type().rank(), dim = draw.below(rank);
  const int64_t size = x.type().shape[static_cast<size_t>(dim)].value();
  NamedAttrs attrs = {{"dim", draw.chance(0.3) ? dim - rank : dim}};
  if (draw.chance(0.7)) attrs.emplace_back("start", Dim(draw.between(-size, size)));
  if (draw.chance(0.7)) attrs.emplace_back("end", Dim(draw.between(-size, size + 2)));
  if (draw.chance(0.4)) attrs.emplace_back("step", Dim(draw.between(1, 3)));
  return over(x, attrs);
}

Proposal propose_select(Grower& grower, const OpDef&) {
  Draw& draw = grower.draw();
  const Value x = tensor(grower, 1);
  if (!x) return {};
  const int64_t rank = x.type().rank(), dim = draw.below(rank);
  const int64_t size = x.type().shape[static_cast<size_t>(dim)].value();
  if (size == 0) return {};
  return over(x, {{"dim", dim - (draw.chance(0.3) ? rank : 0)},
                  {"index", Dim(draw.between(-size, size - 1))}});
}

Proposal propose_unsqueeze(Grower& grower, const OpDef&) {
  const Value x = tensor(grower, 0);
  if (!x || x.type().rank() > 4) return {};
  return over(x, {{"dim", grower.draw().between(-x.type().rank() - 1, x.type().rank())}});
}

Proposal propose_repeat(Grower& grower, const OpDef&) {
  Draw& draw = grower.draw();
  const Value x = tensor(grower, 0);
  if (!x) return {};
  const auto count = static_cast<size_t>(x.type().rank() + draw.below(2));
  return over(x, {{"repeats", integers(draw, count, draw.chance(0.1) ? 0 : 1, 3)}});
}

Proposal propose_pad(Grower& grower, const OpDef&) {
  Draw& draw = grower.draw();
  const Value x = tensor(grower, 1);
  if (!x) return {};
  const auto dims = static_cast<size_t>(draw.between(1, x.type().rank()));
  const int64_t low = draw.chance(0.3) ? -1 : 0;
  return over(x, {{"pad", integers(draw, 2 * dims, low, 3)},
                  {"value", static_cast<double>(draw.between(-2, 2)) / 2}});
}

Proposal propose_split(Grower& grower, const OpDef&) {
  Draw& draw = grower.draw();
  const Value x = tensor(grower, 1);
  if (!x) return {};
  const int64_t dim = draw.below(x.type().rank());
  int64_t left = x.type().shape[static_cast<size_t>(dim)].value();
  std::vector<int64_t> sizes;
  while (sizes.size() < 3 && left > 0) {
    sizes.push_back(draw.between(draw.chance(0.1) ? 0 : 1, left));
    left -= sizes.back();
  }
  sizes.push_back(left);
  return over(x, {{"split_sizes", sizes}, {"dim", dim}});
}

Proposal propose_cat(Grower& grower, const OpDef&) {
  Draw& draw = grower.draw();
  const Value x = tensor(grower, 1);
  if (!x) return {};
  const auto dim = static_cast<size_t>(draw.below(x.type().rank()));
  Proposal proposal{.operands = {x}, .attrs = {{"dim", static_cast<int64_t>(dim)}}};
  for (int64_t i = draw.between(0, 3); i > 0; --i) {
    Shape shape = x.type().shape;
    if (draw.chance(0.5)) shape[dim] = grower.extent();
    const Value other = draw.chance(0.2) ? x : grower.operand(x.type().dtype, shape);
    if (other) proposal.operands.push_back(other);
  }
  if (draw.chance(0.5)) std::reverse(proposal.operands.begin(), proposal.operands.end());
  proposal.list_sizes = {static_cast<int>(proposal.operands.size())};
  return proposal;
}

Proposal propose_constant(Grower& grower, const OpDef&) {
  Shape shape;
  for (int64_t i = grower.draw().below(3); i > 0; --i) shape.push_back(grower.extent());
  const double value = static_cast<double>(grower.draw().between(-8, 8)) / 4;
  return {.attrs = {{"value", std::vector<double>{value}},
                    {"dtype", grower.style().dtype},
                    {"shape", shape}}};
}

Proposal propose_full(Grower& grower, const OpDef&) {
  Shape shape;
  for (int64_t i = grower.draw().below(4); i > 0; --i) shape.push_back(grower.extent());
  return {.attrs = {{"size", shape},
                    {"fill_value", static_cast<double>(grower.draw().between(-8, 8)) / 4},
                    {"dtype", grower.style().dtype}}};
}

Proposal propose_arange(Grower& grower, const OpDef&) {
  Draw& draw = grower.draw();
  const int64_t start = draw.between(-3, 3), step = draw.one_of<int64_t>({1, 1, 2, -1, 3});
  return {.attrs = {{"start", Dim(start)},
                    {"end", Dim(start + step * grower.extent())},
                    {"step", Dim(step)},
                    {"dtype", draw.one_of<DType>({DType::i64, DType::i32, DType::f32})}}};
}

}  // namespace

const ProposeTable& propose_views() {
  static const ProposeTable table = {
      {"reshape", propose_reshape},
      {"expand", propose_expand},
      {"slice", propose_slice},
      {"select", propose_select},
      {"unsqueeze", propose_unsqueeze},
      {"repeat", propose_repeat},
      {"pad", propose_pad},
      {"split_with_sizes", propose_split},
      {"cat", propose_cat},
      {"constant", propose_constant},
      {"full", propose_full},
      {"arange", propose_arange},
  };
  return table;
}

}  // namespace lathe::random_graphs
