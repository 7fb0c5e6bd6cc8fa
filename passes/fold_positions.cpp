// Writes what a model computes from positions alone in one canonical way, while sizes are symbols:
// a mask as a comparison of two ranges, `j <= i + c`, a mask that hides nothing as one value, and
// positions as a range. What such positions are asserted to be, and are at every size, goes.
//
// After drop_noops, whose casts and checks stand between the parts, and before
// recognize_structured and dce: attention is then found with a mask that simplify turns into
// `is_causal` or drops. With sizes that are numbers, fold_constants makes literals of such
// values and more; those are left to it.
//
// Decides by what is known of sizes, and adds no guard: what is not decided stays as it is.
#include <algorithm>
#include <unordered_set>

#include "ir/type/size_facts.h"
#include "passes/analysis/index_formula.h"
#include "passes/analysis/patterns.h"
#include "passes/analysis/rewrite.h"
#include "passes/pass.h"

namespace lathe {
namespace {

Result<Changed> run_fold_positions(Unit& unit, const PassOptions& options, PassContext& context);

}  // namespace

PassDef define_fold_positions() {
  return {
      .name = "fold_positions",
      .summary = "write masks and positions of symbolic sizes canonically",
      .needs = Form::functional,
      .leaves = Form::functional,
      .counters = {"asserts", "constants", "masks", "positions"},
      .example = R"(
dim s0 in [1, 64]
func @main(%x: f32[s0, s0]) -> f32[s0, s0] {
  %ones = full() {size = [s0], fill_value = 1, dtype = i64}
  %j = cumsum(%ones) {dim = 0}
  %i = unsqueeze(%j) {dim = 1}
  %later = gt(%j, %i)
  %zero = constant() {value = [0.0], dtype = f32, shape = []}
  %y = where(%later, %zero, %x)
  return %y
}
=>
dim s0 in [1, 64]
func @main(%x: f32[s0, s0]) -> f32[s0, s0] {
  %ones = full() {size = [s0], fill_value = 1, dtype = i64}
  %j = cumsum(%ones) {dim = 0}
  %i = unsqueeze(%j) {dim = 1}
  %rows = arange() {end = s0}
  %row = reshape(%rows) {shape = [s0, 1]}
  %columns = arange() {start = -1, end = s0 - 1}
  %column = reshape(%columns) {shape = [1, s0]}
  %later = le(%row, %column)
  %zero = constant() {value = [0.0], dtype = f32, shape = []}
  %y = where(%later, %zero, %x)
  return %y
}
)",
      .run = run_fold_positions,
  };
}

namespace {

// No tensor has as many elements: so numbers of them stay far from the ends of 64 bits.
constexpr int64_t kLargestSize = int64_t{1} << 40;

SizeFacts facts_of(const Module& module, const Graph& graph) {
  std::vector<std::string> symbols;
  for (const auto& param : graph.params)
    for (const Dim& size : param->types.front().shape) size.collect_symbols(symbols);
  SizeFacts facts(module.dims, module.hints);
  for (const Guard& guard : module.guards) facts.assume(guard);
  for (const std::string& name : symbols)
    facts.assume({Dim::symbol(name), Relation::le, kLargestSize});
  for (const auto& param : graph.params)
    for (const Dim& size : param->types.front().shape) facts.assume({size, Relation::ge, 0});
  return facts;
}

// --- what is canonical already

bool is_view(const Node& node, ViewKind kind) {
  return node.op->traits.op_class == OpClass::view && node.op->traits.view == kind;
}

// Nodes that are as this pass writes them.
class CanonicalNodes {
 public:
  explicit CanonicalNodes(const Graph& graph) {
    for (const auto& node : graph.nodes) {
      if (is_range(*node)) ranges_.insert(node.get());
      if (is_mask(*node)) masks_.insert(node.get());
    }
  }
  bool contains(const Node& node) const {
    return ranges_.count(&node) != 0 || masks_.count(&node) != 0;
  }

 private:
  bool are(const std::unordered_set<const Node*>& all, const Node& node, size_t count) const {
    for (size_t i = 0; i < count; ++i)
      if (all.count(node.operands[i].node) == 0) return false;
    return true;
  }
  bool is_range(const Node& node) const {
    if (node.op->name == "arange") return true;
    return (is_view(node, ViewKind::rename) || is_view(node, ViewKind::expand)) &&
           are(ranges_, node, 1);
  }
  bool is_mask(const Node& node) const {
    const std::string& op = node.op->name;
    if (op == "le") return are(ranges_, node, 2);
    if (op == "bitwise_and") return are(masks_, node, 2);
    if (op == "where")
      return are(masks_, node, 1) && splat_value(node.operands[1]) && splat_value(node.operands[2]);
    return is_view(node, ViewKind::expand) && are(masks_, node, 1);
  }

  std::unordered_set<const Node*> ranges_, masks_;
};

// --- writing

// index[low] <= index[high] + distance.
struct Band {
  size_t high, low;
  Dim distance;
};
std::optional<Band> band_of(const Affine& condition) {
  std::optional<size_t> high, low;
  for (size_t d = 0; d < condition.coefficients.size(); ++d) {
    const Dim& c = condition.coefficients[d];
    if (c == Dim(0)) continue;
    std::optional<size_t>& place = c == Dim(1) ? high : low;
    if ((c != Dim(1) && c != Dim(-1)) || place) return std::nullopt;
    place = d;
  }
  if (!high || !low) return std::nullopt;
  return Band{*high, *low, condition.constant};
}

// start, start + 1, ... along one dim of a tensor of `shape`, of extent 1 along the others.
Value range_along(Builder& b, const Dim& start, size_t dim, const Shape& shape, DType dtype) {
  const Value line =
      b.call("arange", {}, {{"start", start}, {"end", start + shape[dim]}, {"dtype", dtype}});
  if (shape.size() == 1) return line;
  Shape own(shape.size(), Dim(1));
  own[dim] = shape[dim];
  return b.call("reshape", {line}, {{"shape", std::move(own)}});
}

// nullopt for a size that is a symbol.
std::optional<Attr> number(const IndexElement& element) {
  if (const auto* real = std::get_if<double>(&element)) return Attr(*real);
  const Dim& integer = std::get<Affine>(element).constant;
  return integer.is_const() ? std::optional(Attr(integer.value())) : std::nullopt;
}

Value splat(Builder& b, const Attr& value, DType dtype, Shape shape) {
  return b.call("full", {}, {{"size", std::move(shape)}, {"fill_value", value}, {"dtype", dtype}});
}

Value widened(Builder& b, Value value, const Shape& shape) {
  if (!value || value.type().shape == shape) return value;
  return b.call("expand", {value}, {{"size", shape}});
}

Value write_range(Builder& b, const Affine& position, const TensorType& type) {
  std::optional<size_t> dim;
  for (size_t d = 0; d < type.shape.size(); ++d) {
    if (position.coefficients[d] == Dim(0)) continue;
    if (position.coefficients[d] != Dim(1) || dim) return {};
    dim = d;
  }
  if (!dim) return {};
  const Value range = range_along(b, position.constant, *dim, type.shape, type.dtype);
  return widened(b, range, type.shape);
}

Value write_mask(Builder& b, IndexFormula formula, const TensorType& type) {
  const bool is_bool = type.dtype == DType::b8;
  if (formula.conditions.size() == 1) {
    // A bool is true inside; what is added is written with the dim of keys, the later, at most that
    // of queries.
    Affine& only = formula.conditions.front();
    const auto band = band_of(only);
    const bool is_turned = is_bool ? std::get<Affine>(formula.inside).constant == Dim(0)
                                   : band && band->low < band->high;
    if (is_turned) {
      only = Affine::of(-1, type.shape.size()) - only;
      std::swap(formula.inside, formula.outside);
    }
  }
  if (is_bool && std::get<Affine>(formula.inside).constant == Dim(0)) return {};
  std::vector<Band> bands;
  for (const Affine& condition : formula.conditions) {
    const auto band = band_of(condition);
    if (!band) return {};
    bands.push_back(*band);
  }
  const auto inside = number(formula.inside), outside = number(formula.outside);
  if (!inside || !outside) return {};
  Value mask;
  for (const Band& band : bands) {
    const Value low = range_along(b, 0, band.low, type.shape, DType::i64);
    const Value high = range_along(b, band.distance, band.high, type.shape, DType::i64);
    const Value within = b.call("le", {low, high});
    mask = mask ? b.call("bitwise_and", {mask, within}) : within;
  }
  if (!is_bool)
    mask = b.call("where",
                  {mask, splat(b, *inside, type.dtype, {}), splat(b, *outside, type.dtype, {})});
  return widened(b, mask, type.shape);
}

// Null when the formula has no canonical form.
Value write(Builder& b, const IndexFormula& formula, const TensorType& type,
            std::map<std::string, int64_t>& counters) {
  const auto counted = [&](const char* counter, Value value) {
    counters[counter] += value ? 1 : 0;
    return value;
  };
  if (is_constant(formula)) {
    const auto value = number(formula.inside);
    return counted("constants", value ? splat(b, *value, type.dtype, type.shape) : Value());
  }
  if (formula.conditions.empty())
    return counted("positions", write_range(b, std::get<Affine>(formula.inside), type));
  return counted("masks", write_mask(b, formula, type));
}

// Nodes that have a formula and are read by something that has none.
std::unordered_set<const Node*> read_from_outside(const Graph& graph,
                                                  const IndexFormulas& formulas) {
  std::unordered_set<const Node*> found;
  const auto read = [&](Value value) {
    if (value && formulas.find(value) != nullptr) found.insert(value.node);
  };
  for (const auto& node : graph.nodes)
    if (formulas.find(node->result()) == nullptr)
      for (Value operand : node->operands) read(operand);
  for (Value output : graph.outputs) read(output);
  for (const Mutation& mutation : graph.mutations) read(mutation.value);
  return found;
}

// Whether an assertion is true at every size. Of other positions than formulas nothing is known.
bool always_holds(const Node& node, const IndexFormulas& formulas, const SizeFacts& facts) {
  if (node.op->traits.asserts != Asserts::positions) return false;
  const IndexFormula* formula = formulas.find(node.operands[0]);
  const Affine* position = formula != nullptr ? affine_of(*formula) : nullptr;
  const auto *low = std::get_if<Dim>(&node.attr("low")),
             *high = std::get_if<Dim>(&node.attr("high"));
  if (position == nullptr || low == nullptr || high == nullptr) return false;
  const Shape& shape = node.operands[0].type().shape;
  const IndexBox box(shape, facts);
  return box.is_never_negative(*position - Affine::of(*low, shape.size())) &&
         box.is_always_negative(*position - Affine::of(*high, shape.size()));
}

bool has_no_symbols(const Graph& graph) {
  return std::all_of(graph.params.begin(), graph.params.end(),
                     [](const auto& param) { return param->types[0].is_static(); });
}

Result<Changed> run_fold_positions(Unit& unit, const PassOptions&, PassContext& context) {
  Module& module = unit.module;
  if (has_no_symbols(module.main())) return Changed::no;
  const SizeFacts facts = facts_of(module, module.main());
  Changed changed = Changed::no;
  for (Graph* graph : all_graphs(module)) {
    const IndexFormulas formulas(*graph, context.ops, facts);
    const CanonicalNodes canonical(*graph);
    const auto read = read_from_outside(*graph, formulas);
    const auto visit = [&](Builder& b, Node& node) -> Result<Replacement> {
      if (always_holds(node, formulas, facts)) {
        context.counters["asserts"] += 1;
        return Replacement(std::vector<Value>());
      }
      if (read.count(&node) == 0 || node.types[0].is_static()) return Replacement();
      const IndexFormula& formula = *formulas.find(node.result());
      if (is_constant(formula) ? splat_value(node.result()).has_value() : canonical.contains(node))
        return Replacement();
      const Value value = write(b, formula, node.types[0], context.counters);
      return value ? Replacement({value}) : Replacement();
    };
    LATHE_TRY(bool written, rewrite(module, *graph, context.ops, "fold_positions", visit));
    if (written) changed = Changed::yes;
  }
  return changed;
}

}  // namespace
}  // namespace lathe
