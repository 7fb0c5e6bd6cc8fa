// Values of a growing graph (see grower.h).
#include "tests/random/grower.h"

#include <algorithm>
#include <cmath>

#include "fmt/format.h"
#include "ir/op/all_ops.h"
#include "ir/type/dtype.h"

namespace lathe::random_graphs {
namespace {

constexpr int64_t kMaxElements = 6000;
constexpr double kMaxFloat = 4096;
constexpr double kMaxHalf = 256;

// Ones, primes, powers of two, and widths around those of vectors.
const std::vector<int64_t> kExtents = {1, 1,  2,  2,  3,  3,  4,  5,  6,  7,  8,
                                       9, 11, 13, 15, 16, 17, 31, 32, 33, 64, 67};
const std::vector<DType> kDTypes = {DType::f32,  DType::f32, DType::f32, DType::f32, DType::f32,
                                    DType::f32,  DType::f32, DType::f16, DType::f16, DType::bf16,
                                    DType::bf16, DType::f64, DType::i64, DType::i32};

bool is_bounded_by(const ExampleTensor& example) { return example.low != -2 || example.high != 2; }

}  // namespace

int64_t elements(const Shape& shape) {
  int64_t count = 1;
  for (const Dim& dim : shape) count *= dim.value();
  return count;
}

Style draw_style(Draw& draw) {
  Style style;
  style.dtype = draw.one_of(kDTypes);
  for (int64_t i = draw.between(2, 4); i > 0; --i) style.extents.push_back(draw.one_of(kExtents));
  if (draw.chance(0.03)) style.extents.push_back(0);
  style.has_specials = draw.chance(0.03);
  style.has_writes = draw.chance(0.12);
  style.takes_reals = draw.chance(0.4);
  return style;
}

Domain domain_of(const OpDef& op, size_t operand, bool is_float_dtype) {
  Domain domain{.low = 0, .high = 0, .is_bounded = true};
  bool is_known = false;
  for (const Example& example : op.examples) {
    if (operand >= example.operands.size()) continue;
    const ExampleTensor& tensor = example.operands[operand];
    if (tensor.is_none || !tensor.values.empty() || is_float(tensor.dtype) != is_float_dtype)
      continue;
    domain.is_bounded = domain.is_bounded && is_bounded_by(tensor);
    domain.low = is_known ? std::min(domain.low, tensor.low) : tensor.low;
    domain.high = is_known ? std::max(domain.high, tensor.high) : tensor.high;
    is_known = true;
  }
  return is_known ? domain : Domain{};
}

Grower::Grower(Case& test, Draw& draw)
    : test_(test),
      draw_(draw),
      style_(draw_style(draw)),
      eager_(test.module, {.has_writes = style_.has_writes}) {
  test_.module.graphs.push_back(std::make_unique<Graph>());
  loc_ = test_.module.locs.text("<random>", 1, 1);
}

int64_t Grower::extent() {
  return draw_.chance(0.75) ? draw_.one_of(style_.extents) : draw_.one_of(kExtents);
}

Value Grower::pick(const std::function<bool(Value)>& fits) {
  std::vector<Value> fitting;
  for (Value value : values_)
    if (!fits || fits(value)) fitting.push_back(value);
  if (fitting.empty()) return {};
  return draw_.chance(0.5) ? fitting.back() : draw_.one_of(fitting);
}

Value Grower::floating(size_t rank) {
  const Value found = pick([&](Value value) {
    return is_float(value.type().dtype) && value.type().shape.size() >= rank;
  });
  if (found && draw_.chance(0.85)) return found;
  Shape shape;
  for (auto i = static_cast<int64_t>(rank) + draw_.below(3); i > 0; --i) shape.push_back(extent());
  return fresh(is_float(style_.dtype) ? style_.dtype : DType::f32, shape);
}

Value Grower::made(Value value, const Fill& how) {
  if (!value) return value;
  const bool is_weight = value.node->op->name == kConstantOp;
  if (is_weight && !value.node->is_none("name")) {
    test_.fills[value.node->string_attr("name")] = how;
    fill_weights(test_);
  }
  if (is_weight && !eager_.run(*value.node).ok()) return {};
  if (!is_weight) {
    test_.fills[value.node->name] = how;
    eager_.bind(*value.node, fill(how, value.type().dtype, value.type().static_shape()));
  }
  values_.push_back(value);
  return value;
}

Fill Grower::draw_fill(DType dtype, const Domain& domain) {
  Fill how{.low = domain.low, .high = domain.high, .seed = draw_.next() % 1000};
  if (!is_float(dtype)) {
    how.kind = Fill::Kind::integers;
    const bool is_unsigned = dtype == DType::u8 || dtype == DType::b8;
    if (!domain.is_bounded) how.low = -9, how.high = 9;
    how.low = is_unsigned ? std::max(0.0, std::ceil(how.low)) : std::ceil(how.low);
    how.high = std::max(how.low, std::floor(how.high));
  } else if (style_.has_specials && !domain.is_bounded && draw_.chance(0.5)) {
    how.kind = Fill::Kind::specials;
  } else if (style_.takes_reals || domain.high - domain.low < 0.5) {
    how.kind = Fill::Kind::reals;
  }
  return how;
}

Value Grower::hold(DType dtype, const Shape& shape, const Domain& domain, Held held) {
  if (elements(shape) > kMaxElements) return {};
  if (dtype == DType::b8 && domain.is_bounded && domain.low > 0) return {};
  const Fill how = draw_fill(dtype, domain);
  Builder builder(test_.module.main(), builtin_registry(), loc_);
  if (held == Held::input) return made(builder.param({dtype, shape}, "x"), how);
  NamedAttrs attrs = {{"dtype", dtype}, {"shape", shape}};
  if (held == Held::weight) {
    attrs.emplace_back("name", fmt::format("w{}", test_.module.weights.size()));
    return made(builder.call(kConstantOp, {}, attrs), how);
  }
  const Tensor drawn = fill(how, dtype, TensorType{dtype, shape}.static_shape());
  std::vector<double> numbers;
  for (int64_t i = 0; i < drawn.num_elements(); ++i) numbers.push_back(drawn.get(i));
  const bool is_plain = !numbers.empty() && std::all_of(numbers.begin(), numbers.end(),
                                                        [](double x) { return std::isfinite(x); });
  if (!is_plain) return {};
  attrs.emplace_back("value", numbers);
  return made(builder.call(kConstantOp, {}, attrs), how);
}

Value Grower::fresh(DType dtype, const Shape& shape, const Domain& domain) {
  constexpr int64_t kMostLiterals = 16;
  const int64_t share = draw_.below(10);
  if (share == 0 && elements(shape) <= kMostLiterals)
    if (const Value literal = hold(dtype, shape, domain, Held::literal)) return literal;
  return hold(dtype, shape, domain, share < 4 ? Held::weight : Held::input);
}

Value Grower::weight(DType dtype, const Shape& shape, const Domain& domain) {
  if (draw_.chance(0.7)) return hold(dtype, shape, domain, Held::weight);
  return operand(dtype, shape, domain);
}

Value Grower::fresh_integers(DType dtype, const Shape& shape, int64_t low, int64_t high) {
  return fresh(dtype, shape,
               {static_cast<double>(low), static_cast<double>(high), /*is_bounded=*/true});
}

bool Grower::is_within(Value value, const Domain& domain) const {
  if (!domain.is_bounded) return true;
  const Tensor tensor = eager_.values(value);
  for (int64_t i = 0; i < tensor.num_elements(); ++i)
    if (!(tensor.get(i) >= domain.low && tensor.get(i) <= domain.high)) return false;
  return true;
}

Value Grower::operand(DType dtype, const Shape& shape, const Domain& domain) {
  const Value found = pick([&](Value value) {
    return value.type().dtype == dtype && value.type().shape == shape && is_within(value, domain);
  });
  return found && draw_.chance(0.6) ? found : fresh(dtype, shape, domain);
}

// Finite (but where infinities are wanted), not large, not many.
bool Grower::is_fit(const Node& node) const {
  for (size_t i = 0; i < node.types.size(); ++i) {
    const Value value{const_cast<Node*>(&node), static_cast<int>(i)};
    const Tensor tensor = eager_.values(value);
    const double largest = is_half(tensor.dtype) ? kMaxHalf : kMaxFloat;
    for (double x : tensor.floats)
      if (!(std::fabs(x) <= largest) && !(style_.has_specials && !std::isfinite(x))) return false;
  }
  return true;
}

bool Grower::add(const OpDef& op, Proposal proposal, bool in_place) {
  Graph& graph = test_.module.main();
  const size_t before = graph.nodes.size();
  Builder builder(graph, builtin_registry(), loc_);
  Node* node = builder.create(op, std::move(proposal.operands), std::move(proposal.list_sizes),
                              std::move(proposal.attrs), {}, in_place);
  if (node == nullptr) return false;
  int64_t count = 0;
  for (const TensorType& type : node->types) count += elements(type.shape);
  if (count > kMaxElements || !eager_.run(*node).ok() || !is_fit(*node)) {
    graph.nodes.resize(before);
    return false;
  }
  for (size_t i = 0; i < node->types.size(); ++i)
    values_.push_back(node->result(static_cast<int>(i)));
  return true;
}

Value Grower::view(const std::string& op, Value of, NamedAttrs attrs) {
  const OpDef* row = builtin_registry().find(op);
  if (row == nullptr || !add(*row, {.operands = {of}, .attrs = std::move(attrs)}, false)) return {};
  return values_.back();
}

void Grower::finish() {
  Graph& graph = test_.module.main();
  if (values_.empty()) return;
  graph.outputs.push_back(values_.back());
  for (int64_t i = draw_.below(3); i > 0; --i) graph.outputs.push_back(pick());
  if (draw_.chance(0.8)) graph.erase_dead();
  std::set<const Node*> read;
  for (const auto& node : graph.nodes)
    for (Value operand : node->operands) read.insert(operand.node);
  for (Value output : graph.outputs) read.insert(output.node);
  std::erase_if(graph.params, [&](const auto& param) { return read.count(param.get()) == 0; });
}

}  // namespace lathe::random_graphs
