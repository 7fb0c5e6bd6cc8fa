// Eager semantics on places in memory (see eager.h).
#include "tests/random/eager.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "fmt/format.h"
#include "ir/graph/builder.h"
#include "ir/graph/op_def.h"
#include "ir/graph/text.h"
#include "ir/op/all_ops.h"
#include "ir/op/dense.h"
#include "ir/op/element.h"
#include "ir/support/diag_codes.h"
#include "ir/support/hash.h"
#include "ir/type/dtype.h"
#include "tests/random/exactness.h"

namespace lathe::random_graphs {
namespace {

Tensor in_floats(const Tensor& integers, DType dtype) {
  Tensor floats = integers;
  floats.dtype = dtype;
  floats.floats.assign(integers.integers.begin(), integers.integers.end());
  floats.integers.clear();
  return floats;
}

// PyTorch's views; a reshape is one where strides can say it.
const std::set<std::string> kAlwaysViews = {"alias",   "dropout",  "expand", "permute",
                                            "reshape", "select",   "slice",  "split_with_sizes",
                                            "squeeze", "unsqueeze"};

constexpr double kTf32Roundoff = 0x1p-11;

bool fits_tf32(const Tensor& tensor) {
  return std::all_of(tensor.floats.begin(), tensor.floats.end(), [](double x) {
    return std::isnan(x) || static_cast<double>(round_to_tf32(static_cast<float>(x))) == x;
  });
}

// Of f32 and f64.
double largest_normal(DType dtype) {
  return dtype == DType::f64 ? std::numeric_limits<double>::max()
                             : std::numeric_limits<float>::max();
}
double smallest_normal(DType dtype) { return dtype == DType::f64 ? 0x1p-1022 : 0x1p-126; }

std::vector<const Tensor*> pointers_to(const Node& node, const std::vector<Tensor>& operands) {
  std::vector<const Tensor*> pointers;
  for (size_t i = 0; i < operands.size(); ++i)
    pointers.push_back(node.operands[i] ? &operands[i] : nullptr);
  return pointers;
}

// How many terms one result adds, or about that: partial sums in any order are off by a random
// walk of as many roundings.
double num_terms(const Node& node) {
  const OpClass kind = node.op->traits.op_class;
  const bool adds =
      kind == OpClass::reduction || kind == OpClass::normalize || kind == OpClass::contraction;
  if (!adds) return 1;
  int64_t terms = 1;
  for (Value operand : node.operands) {
    if (!operand) continue;
    const std::vector<int64_t> shape = operand.type().static_shape();
    for (int64_t extent : shape) terms = std::max(terms, extent);
    const std::vector<int64_t> result = node.types[0].static_shape();
    if (kind == OpClass::reduction)
      terms = std::max(terms, num_elements(shape) / std::max<int64_t>(1, num_elements(result)));
  }
  if (kind == OpClass::contraction && node.operands.size() > 1 && node.operands[1]) {
    const std::vector<int64_t> weight = node.operands[1].type().static_shape();
    if (weight.size() > 2)
      terms = std::max(terms, num_elements(weight) / std::max<int64_t>(1, weight[0]));
  }
  return static_cast<double>(terms);
}

void wrap(Tensor& tensor) {
  for (int64_t i = 0; i < static_cast<int64_t>(tensor.integers.size()); ++i)
    put(tensor, i, tensor.integers[static_cast<size_t>(i)]);
}

}  // namespace

Tensor EagerRun::Place::load() const {
  Tensor tensor = memory->data;
  tensor.shape = shape;
  if (offsets.empty() && num_elements(shape) == memory->data.num_elements()) return tensor;
  tensor = Tensor::zeros(memory->data.dtype, shape);
  for (size_t i = 0; i < offsets.size(); ++i)
    copy_element(tensor, static_cast<int64_t>(i), memory->data, offsets[i]);
  return tensor;
}

void EagerRun::Place::store(const Tensor& tensor) {
  for (int64_t i = 0; i < tensor.num_elements(); ++i)
    copy_element(memory->data, offsets.empty() ? i : offsets[static_cast<size_t>(i)], tensor, i);
}

// Whether the offsets are linear in the index.
bool EagerRun::Place::is_strided() const {
  const std::vector<int64_t> counts = row_major_strides(shape);
  for (size_t i = 0; i < offsets.size(); ++i) {
    int64_t expected = offsets[0];
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] <= 1) continue;
      const int64_t index = static_cast<int64_t>(i) / counts[d] % shape[d];
      expected += index * (offsets[static_cast<size_t>(counts[d])] - offsets[0]);
    }
    if (expected != offsets[i]) return false;
  }
  return true;
}

EagerRun::Place EagerRun::fresh(Tensor tensor, bool is_exact) {
  Place place{std::make_shared<Memory>(), tensor.shape, {}};
  tensor.shape = {tensor.num_elements()};
  *place.memory = {std::move(tensor), is_exact};
  return place;
}

void EagerRun::bind(const Node& param, const Tensor& value) {
  places_[{const_cast<Node*>(&param), 0}] = fresh(value, true);
}

bool EagerRun::can_write(Value value) const {
  const std::vector<int64_t>& offsets = places_.at(value).offsets;
  return std::set<int64_t>(offsets.begin(), offsets.end()).size() == offsets.size();
}

// The view of the offsets says where its elements lie; nothing when the node makes a copy.
std::optional<std::vector<EagerRun::Place>> EagerRun::view(const Node& node) const {
  if (!options_.has_writes || node.operands.empty()) return std::nullopt;
  const Place& base = places_.at(node.operands[0]);
  const bool is_same = node.op->name == "contiguous" ||
                       (node.op->name == "cast" && node.types[0].dtype == base.memory->data.dtype);
  if (!is_same && kAlwaysViews.count(node.op->name) == 0) return std::nullopt;
  Tensor offsets = Tensor::zeros(DType::f64, base.shape);
  for (size_t i = 0; i < offsets.floats.size(); ++i)
    offsets.floats[i] =
        static_cast<double>(base.offsets.empty() ? static_cast<int64_t>(i) : base.offsets[i]);
  if (is_same) {
    bool is_row_major = true;  // side by side, as offsets of none are
    for (size_t i = 0; i < base.offsets.size(); ++i)
      is_row_major = is_row_major && base.offsets[i] == base.offsets[0] + static_cast<int64_t>(i);
    if (node.op->name == "contiguous" && !is_row_major) return std::nullopt;
    return std::vector<Place>{base};
  }
  Node moving;
  moving.op = node.op;
  moving.operands = node.operands;
  moving.attrs = node.attrs;
  moving.types = node.types;
  for (TensorType& type : moving.types) type.dtype = DType::f64;
  const Tensor* operand = &offsets;
  auto moved = node.op->reference.function(moving, std::span(&operand, 1));
  if (!moved.ok()) return std::nullopt;
  std::vector<Place> places;
  for (const Tensor& part : *moved) {
    Place place{base.memory, part.shape, {}};
    for (double offset : part.floats) place.offsets.push_back(static_cast<int64_t>(offset));
    if (node.op->name == "reshape" && !place.is_strided()) return std::nullopt;
    places.push_back(std::move(place));
  }
  return places;
}

Result<std::vector<Tensor>> EagerRun::apply(const Node& node,
                                            const std::vector<Tensor>& operands) const {
  if (node.op->name == kConstantOp && !node.is_none("name")) {
    LATHE_TRY(Tensor weight, read_tensor(module_.weights.at(node.string_attr("name")).data));
    return std::vector<Tensor>{std::move(weight)};
  }
  LATHE_CHECK(bool{node.op->reference}, "a row without reference");
  LATHE_TRY(std::vector<Tensor> results,
            node.op->reference.function(node, pointers_to(node, operands)));
  for (Tensor& result : results) wrap(result);
  return results;
}

// The formula in the dtype that it computes in.
Result<std::vector<Tensor>> EagerRun::apply_parts(const Node& node,
                                                  const std::vector<Tensor>& operands) {
  Module formula;
  formula.graphs.push_back(std::make_unique<Graph>());
  Graph& graph = formula.main();
  Builder builder(graph, builtin_registry(), node.loc);
  std::vector<Value> params;
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!node.operands[i]) {
      params.push_back({});
      continue;
    }
    TensorType type = node.operands[i].type();
    type.dtype = compute_dtype(type.dtype);
    params.push_back(builder.param(type, "x"));
    inputs.push_back(operands[i]);
    inputs.back().dtype = type.dtype;
  }
  NamedAttrs attrs;
  for (size_t i = 0; i < node.attrs.size(); ++i)
    attrs.emplace_back(node.op->attrs[i].name, node.attrs[i]);
  Node* whole = builder.create(*node.op, params, node.list_sizes, attrs);
  if (whole == nullptr) return builder.error();
  graph.outputs = node.op->decompose.function(builder, *whole);
  if (builder.failed()) return builder.error();
  graph.erase_dead();
  static const std::set<const Node*> none;
  EagerOptions options = options_;
  options.has_writes = false;
  options.noise = Hasher().add(*options_.noise).add(++disturbed_).value();
  options.exact_nodes = &none;
  options.is_formula = true;
  EagerRun run(formula, options);
  LATHE_DO(run.run(graph, inputs));
  std::vector<Tensor> results;
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    results.push_back(run.values(graph.outputs[i]));
    results.back().dtype = node.types[i].dtype;
  }
  return results;
}

Result<std::vector<Tensor>> EagerRun::apply_with_noise(const Node& node,
                                                       std::vector<Tensor> operands) {
  const OpClass kind = node.op->traits.op_class;
  for (Tensor& operand : operands) {
    // A function of floats converts integers, and rounds on from there.
    const bool is_function = kind == OpClass::elementwise && node.operands.size() == 1;
    if (is_function && is_float(node.types[0].dtype) && is_integer(operand.dtype))
      operand = in_floats(operand, node.types[0].dtype);
    disturb(operand, operand_noise(node, operand));
  }
  const bool is_formula = (kind == OpClass::elementwise || kind == OpClass::normalize) &&
                          node.op->decompose && is_float(node.types[0].dtype);
  LATHE_TRY(std::vector<Tensor> results,
            is_formula ? apply_parts(node, operands) : apply(node, operands));
  for (Tensor& result : results) disturb(result, unit_roundoff(result.dtype));
  return results;
}

// A float that the integer lacks has no meaning as one.
Status EagerRun::check_conversion(const Node& node) const {
  const DType to = node.types.empty() ? DType::f32 : node.types[0].dtype;
  if (node.op->traits.op_class != OpClass::elementwise || !is_integer(to)) return Ok{};
  for (Value operand : node.operands) {
    if (!operand || !is_float(operand.type().dtype)) continue;
    for (double x : values(operand).floats)
      if (!std::isfinite(x) || round_to(to, x) != std::trunc(x))
        return Diag{code::kUnsupported, node.loc, fmt::format("{} converts {}", print(node), x)};
  }
  return Ok{};
}

// A product has any order: when some order overflows or underflows on its way to a result that the
// dtype holds, any answer is right. The products of the factors above 1 and of those below are the
// largest and the smallest that are met.
Status EagerRun::check_partial_products(const Node& node) const {
  if (node.op->name != "prod" || !is_float(node.types[0].dtype)) return Ok{};
  const Tensor factors = values(node.operands[0]);
  Node wide;
  wide.op = node.op;
  wide.operands = node.operands;
  wide.attrs = node.attrs;
  wide.types = {{DType::f64, node.types[0].shape}};
  for (const bool is_large : {true, false}) {
    Tensor some = Tensor::zeros(DType::f64, factors.shape);
    for (int64_t i = 0; i < factors.num_elements(); ++i) {
      const double x = std::fabs(factors.get(i));
      const bool is_taken = is_large ? x > 1 : x < 1 && x != 0;
      some.set(i, is_taken ? x : 1);
    }
    const Tensor* operand = &some;
    LATHE_TRY(const std::vector<Tensor> products,
              node.op->reference.function(wide, std::span(&operand, 1)));
    for (double product : products[0].floats)
      if (product > largest_normal(compute_dtype(node.types[0].dtype)) ||
          product < smallest_normal(compute_dtype(node.types[0].dtype)))
        return Diag{code::kUnsupported, node.loc,
                    fmt::format("{} meets {} in some order", print(node), product)};
  }
  return Ok{};
}

// What infinity and NaN give depends on who asks where the formula says neither whether they meet
// a zero nor in which order: (x - mean) * factor is x * factor - mean * factor in PyTorch too; a
// convolution's padding may be multiplied or left out; the weight of a neighbour may round to zero.
Status EagerRun::check_infinities(const Node& node) const {
  const std::string& op = node.op->name;
  if (op != "batch_norm" && op != "convolution" && op != "upsample_bilinear2d") return Ok{};
  for (size_t i = op == "upsample_bilinear2d" ? 0 : 1; i < node.operands.size(); ++i) {
    if (!node.operands[i]) continue;
    for (double x : values(node.operands[i]).floats)
      if (!std::isfinite(x))
        return Diag{code::kUnsupported, node.loc, fmt::format("{} scales by {}", print(node), x)};
  }
  return Ok{};
}

Status EagerRun::check_fair(const Node& node) const {
  if (options_.is_formula) return Ok{};
  LATHE_DO(check_conversion(node));
  LATHE_DO(check_partial_products(node));
  LATHE_DO(check_infinities(node));
  const bool is_question = std::any_of(node.types.begin(), node.types.end(),
                                       [](const TensorType& t) { return !is_float(t.dtype); });
  if (!is_question && !jumps(node)) return Ok{};
  for (Value operand : node.operands)
    if (operand && is_float(operand.type().dtype) && !is_exact(operand))
      return Diag{code::kUnsupported, node.loc,
                  fmt::format("{} jumps on operands that rounding may change", print(node))};
  return Ok{};
}

bool EagerRun::is_exact_step(const Node& node, const std::vector<Tensor>& operands,
                             const std::vector<Tensor>& results) const {
  if (options_.exact_nodes != nullptr) return options_.exact_nodes->count(&node) != 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!node.operands[i]) continue;
    if (!is_exact(node.operands[i])) return false;
    const bool narrows = options_.uses_tf32 && node.op->traits.may_use_tf32;
    if (narrows && operands[i].dtype == DType::f32 && !fits_tf32(operands[i])) return false;
  }
  return stays_exact(node, pointers_to(node, operands), results);
}

double EagerRun::operand_noise(const Node& node, const Tensor& operand) const {
  const bool narrows =
      options_.uses_tf32 && node.op->traits.may_use_tf32 && operand.dtype == DType::f32;
  const double own =
      (narrows ? kTf32Roundoff : unit_roundoff(operand.dtype)) * std::sqrt(num_terms(node));
  // Positions between elements are computed in floats: their rounding grows with the extent.
  const bool is_between = node.op->name == "upsample_bilinear2d";
  return is_between ? own * static_cast<double>(operand.shape[2] + operand.shape[3]) : own;
}

void EagerRun::disturb(Tensor& tensor, double amplitude) {
  for (double& x : tensor.floats) {
    const uint64_t word = Hasher().add(*options_.noise).add(++disturbed_).value();
    x *= 1 + amplitude * (static_cast<double>(word >> 11) * 0x1p-52 - 1);
  }
}

Status EagerRun::run(const Node& node) {
  LATHE_DO(check_fair(node));
  if (auto views = view(node); views && !node.in_place) {
    for (size_t i = 0; i < views->size(); ++i)
      places_[{const_cast<Node*>(&node), static_cast<int>(i)}] = std::move((*views)[i]);
    return Ok{};
  }
  std::vector<Tensor> operands;
  for (Value operand : node.operands) operands.push_back(operand ? values(operand) : Tensor{});
  LATHE_TRY(std::vector<Tensor> results, apply(node, operands));
  const bool is_exact = is_exact_step(node, operands, results);
  if (is_exact) exact_nodes_.insert(&node);
  const bool moves = node.op->traits.op_class == OpClass::view;
  if (!is_exact && !moves && options_.noise) {
    LATHE_TRY(results, apply_with_noise(node, std::move(operands)));
  }
  if (node.in_place) {
    Place target = places_.at(node.operands[0]);
    target.store(results[0]);
    target.memory->is_exact = target.memory->is_exact && is_exact;
    places_[{const_cast<Node*>(&node), 0}] = target;
    return Ok{};
  }
  for (size_t i = 0; i < results.size(); ++i)
    places_[{const_cast<Node*>(&node), static_cast<int>(i)}] =
        fresh(std::move(results[i]), is_exact);
  return Ok{};
}

Status EagerRun::run(const Graph& graph, const std::vector<Tensor>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) bind(*graph.params[i], inputs[i]);
  for (const auto& node : graph.nodes) LATHE_DO(run(*node));
  return Ok{};
}

}  // namespace lathe::random_graphs
