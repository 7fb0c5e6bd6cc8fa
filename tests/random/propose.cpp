// Proposals for rows in general (see propose.h).
#include "tests/random/propose.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ir/type/dtype.h"

namespace lathe::random_graphs {
namespace {

const std::vector<DType> kCasts = {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i64,
                                   DType::i32, DType::i8,  DType::u8,   DType::b8};
const std::vector<DType> kFloats = {DType::f32, DType::f16, DType::bf16, DType::f64};

// A shape that broadcasts with `shape`: itself, fewer dims, ones among them, or larger where it has
// ones.
Shape broadcast_partner(Grower& grower, const Shape& shape) {
  Draw& draw = grower.draw();
  Shape partner = shape;
  const int64_t how = draw.below(8);
  if (how < 4) return partner;
  if (how == 4) return {};
  const auto rank = static_cast<int64_t>(shape.size());
  if (how == 5 && rank > 0) partner.erase(partner.begin(), partner.begin() + draw.below(rank));
  for (Dim& dim : partner) {
    if (how >= 6 && draw.chance(0.4)) dim = dim.value() == 1 ? Dim(grower.extent()) : Dim(1);
  }
  return partner;
}

bool takes_integers_only(const OpDef& op, size_t operand) {
  for (const Example& example : op.examples)
    if (operand < example.operands.size() && is_float(example.operands[operand].dtype))
      return false;
  return !op.examples.empty();
}

bool takes_bools_only(const OpDef& op, size_t operand) {
  for (const Example& example : op.examples)
    if (operand < example.operands.size() && example.operands[operand].dtype != DType::b8)
      return false;
  return !op.examples.empty();
}

DType operand_dtype(Grower& grower, const OpDef& op, size_t operand, DType usual) {
  if (takes_bools_only(op, operand)) return DType::b8;
  if (takes_integers_only(op, operand) && is_float(usual))
    return grower.draw().one_of<DType>({DType::i32, DType::i64, DType::i8, DType::u8, DType::b8});
  return grower.draw().chance(0.95) ? usual : grower.draw().one_of(kCasts);
}

// The first operand of a row: an existing value in its domain, or a new one.
Value first_operand(Grower& grower, const OpDef& op) {
  Draw& draw = grower.draw();
  const Value found = grower.pick([&](Value value) {
    const DType dtype = value.type().dtype;
    if (takes_bools_only(op, 0) && dtype != DType::b8) return false;
    return grower.is_within(value, domain_of(op, 0, is_float(dtype)));
  });
  if (found && draw.chance(0.85)) return found;
  Shape shape;
  for (int64_t i = draw.below(5); i > 0; --i) shape.push_back(grower.extent());
  const DType dtype = operand_dtype(grower, op, 0, grower.style().dtype);
  return grower.fresh(dtype, shape, domain_of(op, 0, is_float(dtype)));
}

Proposal propose_elementwise(Grower& grower, const OpDef& op) {
  Draw& draw = grower.draw();
  Proposal proposal;
  const Value first = first_operand(grower, op);
  if (!first) return proposal;
  proposal.operands.push_back(first);
  DType usual = first.type().dtype;
  if (takes_bools_only(op, 0)) usual = grower.style().dtype;
  for (size_t i = 1; i < op.operands.size(); ++i) {
    if (op.operands[i].is_optional() && draw.chance(0.4)) {
      proposal.operands.push_back({});
      continue;
    }
    const DType dtype = operand_dtype(grower, op, i, usual);
    const Domain domain = domain_of(op, i, is_float(dtype));
    const Shape shape = broadcast_partner(grower, first.type().shape);
    proposal.operands.push_back(grower.operand(dtype, shape, domain));
    if (!proposal.operands.back()) return {};
  }
  if (op.traits.is_commutative && draw.chance(0.3))
    std::reverse(proposal.operands.begin(), proposal.operands.end());
  proposal.attrs = propose_attrs(grower, op, first.type().rank());
  return proposal;
}

// Rows over one tensor, whose other operands may be left out.
Proposal propose_over_one(Grower& grower, const OpDef& op) {
  Proposal proposal;
  const Value first = first_operand(grower, op);
  if (!first) return proposal;
  proposal.operands.push_back(first);
  proposal.attrs = propose_attrs(grower, op, first.type().rank());
  return proposal;
}

bool needs_one_tensor(const OpDef& op) {
  if (op.operands.empty() || op.operands[0].kind != OperandKind::tensor) return false;
  return std::all_of(op.operands.begin() + 1, op.operands.end(),
                     [](const OperandSpec& spec) { return spec.is_optional() && !spec.is_list(); });
}

std::vector<int64_t> some_dims(Draw& draw, int64_t rank) {
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < rank; ++d)
    if (draw.chance(0.5)) dims.push_back(draw.chance(0.3) ? d - rank : d);
  if (dims.empty() && rank > 0) dims.push_back(draw.below(rank));
  if (draw.chance(0.3)) std::reverse(dims.begin(), dims.end());
  return dims;
}

std::vector<int64_t> permutation(Draw& draw, int64_t rank) {
  std::vector<int64_t> dims(static_cast<size_t>(rank));
  std::iota(dims.begin(), dims.end(), 0);
  for (size_t i = dims.size(); i > 1; --i)
    std::swap(dims[i - 1], dims[static_cast<size_t>(draw.below(static_cast<int64_t>(i)))]);
  return dims;
}

}  // namespace

std::vector<int64_t> integers(Draw& draw, size_t count, int64_t low, int64_t high) {
  std::vector<int64_t> list(count);
  for (int64_t& value : list) value = draw.between(low, high);
  return list;
}

Attr propose_attr(Grower& grower, const OpDef& op, const AttrSpec& spec, int64_t rank) {
  Draw& draw = grower.draw();
  const std::string& name = spec.name;
  if (name == "dim" && spec.kind == AttrKind::integer) {
    if (spec.is_optional && draw.chance(0.3)) return {};
    return rank == 0 ? Attr(draw.between(-1, 0)) : Attr(draw.between(-rank, rank - 1));
  }
  if (name == "dim" && spec.kind == AttrKind::ints) {
    if (rank == 0 || (spec.is_optional && draw.chance(0.25))) return {};
    return some_dims(draw, rank);
  }
  if (name == "dims") return op.name == "permute" ? permutation(draw, rank) : some_dims(draw, rank);
  if (name == "shifts") return integers(draw, 1, -9, 9);
  if (name == "diagonal") return draw.between(-3, 3);
  if (name == "correction") return static_cast<double>(draw.between(0, 1));
  if (name == "dtype" && spec.is_optional) {
    if (draw.chance(0.7)) return {};
    return draw.one_of(kFloats);
  }
  if (name == "dtype" && op.name == "cast") return draw.one_of(kCasts);
  if (spec.kind == AttrKind::boolean) return draw.chance(0.5);
  // What is left is as in an example, or left out.
  std::vector<Attr> seen;
  for (const Example& example : op.examples)
    for (const auto& [key, value] : example.attrs)
      if (key == name) seen.push_back(value);
  if (seen.empty() || draw.chance(0.3)) return {};
  if (spec.kind == AttrKind::number && draw.chance(0.4) && name != "eps" && name != "ord")
    return static_cast<double>(draw.between(-6, 6)) / 4;
  return draw.one_of(seen);
}

NamedAttrs propose_attrs(Grower& grower, const OpDef& op, int64_t rank) {
  NamedAttrs attrs;
  for (const AttrSpec& spec : op.attrs) {
    Attr value = propose_attr(grower, op, spec, rank);
    if (!std::holds_alternative<std::monostate>(value)) attrs.emplace_back(spec.name, value);
  }
  for (auto& [name, value] : attrs) {  // as many shifts as dims
    auto* shifts = name == "shifts" ? std::get_if<std::vector<int64_t>>(&value) : nullptr;
    for (const auto& [other, dims] : attrs)
      if (shifts != nullptr && other == "dims")
        *shifts = integers(grower.draw(), std::get<std::vector<int64_t>>(dims).size(), -9, 9);
  }
  return attrs;
}

Proposal propose_example(Grower& grower, const OpDef& op) {
  Proposal proposal;
  if (op.examples.empty()) return proposal;
  const Example& example = grower.draw().one_of(op.examples);
  for (const ExampleTensor& tensor : example.operands) {
    if (tensor.is_none) {
      proposal.operands.push_back({});
      continue;
    }
    const Shape shape(tensor.shape.begin(), tensor.shape.end());
    double low = tensor.low, high = tensor.high;
    std::vector<double> finite = tensor.values;
    std::erase_if(finite, [](double x) { return !std::isfinite(x); });
    if (!finite.empty()) {
      low = *std::min_element(finite.begin(), finite.end());
      high = *std::max_element(finite.begin(), finite.end());
    }
    proposal.operands.push_back(
        grower.operand(tensor.dtype, shape, {low, high, /*is_bounded=*/true}));
    if (!proposal.operands.back()) return {};
  }
  proposal.attrs = example.attrs;
  proposal.list_sizes = example.list_sizes;
  return proposal;
}

Proposal propose(Grower& grower, const OpDef& op) {
  if (grower.draw().chance(0.05)) return propose_example(grower, op);
  for (const ProposeTable* table : {&propose_views(), &propose_products(), &propose_windows(),
                                    &propose_lookups(), &propose_norms()}) {
    const auto found = table->find(op.name);
    if (found != table->end()) return found->second(grower, op);
  }
  if (op.name == "mul" && grower.draw().chance(0.3)) return propose_scale(grower, op);
  if (op.traits.op_class == OpClass::elementwise) return propose_elementwise(grower, op);
  if (needs_one_tensor(op)) return propose_over_one(grower, op);
  return propose_example(grower, op);
}

const std::map<std::string, std::string>& rows_left_out() {
  const std::string condition = "how far rounding moves it depends on the matrix's condition";
  static const std::map<std::string, std::string> table = {
      {"cholesky", condition},
      {"complex_householder", condition},
      {"complex_lu", condition},
      {"eigh", condition},
      {"fourier", "is of turns, which only importing makes"},
      {"householder", condition},
      {"ldl", condition},
      {"ldl_solve", condition},
      {"lu", condition},
      {"svd", condition},
      {"swapped", "is of pivots, which only lu makes"},
      {"triangular_solve", condition},
      {"assert_bounds", "is of numbers that only assert_index makes"},
      {"bind_size", "makes a symbol of a size, which others may be already"},
      {"param", "stands for an input, which every graph has"},
      {"fused", "passes make it; what it holds is generated unfused"},
  };
  return table;
}

}  // namespace lathe::random_graphs
