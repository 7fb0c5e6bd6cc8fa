// Runs a graph by the references of its rows, one node after the other. Symbols are bound first, or
// where a node binds them, on a copy, so that a reference only ever sees numbers.
#include "ir/graph/eval.h"

#include <fmt/format.h>

#include <unordered_map>
#include <utility>

#include "ir/graph/check_types.h"
#include "ir/graph/text.h"
#include "ir/support/diag_codes.h"
#include "ir/type/bind.h"

namespace lathe {
namespace {

Diag fault(const Node& node, const char* code, std::string message) {
  return Diag{code, node.loc, std::move(message)};
}

// Integers wrap to their dtype in either mode: that is their meaning, not an error of rounding.
void wrap_integers(Tensor& tensor) {
  auto wrap = [&](auto narrow) {
    for (int64_t& value : tensor.integers) value = narrow(value);
  };
  switch (tensor.dtype) {
    case DType::b8:
      return wrap([](int64_t v) { return int64_t{v != 0}; });
    case DType::u8:
      return wrap([](int64_t v) { return int64_t{static_cast<uint8_t>(v)}; });
    case DType::i8:
      return wrap([](int64_t v) { return int64_t{static_cast<int8_t>(v)}; });
    case DType::i16:
      return wrap([](int64_t v) { return int64_t{static_cast<int16_t>(v)}; });
    case DType::i32:
      return wrap([](int64_t v) { return int64_t{static_cast<int32_t>(v)}; });
    case DType::i64:
    case DType::f16:
    case DType::bf16:
    case DType::f32:
    case DType::f64:
      return;
  }
}

void round_floats(Tensor& tensor) {
  if (tensor.dtype == DType::f32) {  // the common case, in a loop that vectorises
    for (double& value : tensor.floats) value = static_cast<double>(static_cast<float>(value));
  } else if (tensor.dtype != DType::f64) {
    for (double& value : tensor.floats) value = round_to(tensor.dtype, value);
  }
}

// Points f32 operands at copies without the bits that TF32 lacks.
std::vector<Tensor> as_tf32(std::vector<const Tensor*>& operands) {
  std::vector<Tensor> copies;
  copies.reserve(operands.size());
  for (const Tensor*& operand : operands) {
    if (operand == nullptr || operand->dtype != DType::f32) continue;
    copies.push_back(*operand);
    for (double& value : copies.back().floats)
      value = static_cast<double>(round_to_tf32(static_cast<float>(value)));
    operand = &copies.back();
  }
  return copies;
}

bool is_well_formed(const Tensor& tensor) {
  TensorType type{tensor.dtype, Shape(tensor.shape.begin(), tensor.shape.end())};
  const std::optional<int64_t> count = type.static_elements();
  const size_t held = is_float(tensor.dtype) ? tensor.floats.size() : tensor.integers.size();
  return count && static_cast<size_t>(*count) == held;
}

// What has a size that symbols leave open agrees with any size.
bool has_type(const Tensor& tensor, const TensorType& type) {
  bool is_same = tensor.dtype == type.dtype && tensor.shape.size() == type.shape.size();
  for (size_t i = 0; is_same && i < tensor.shape.size(); ++i)
    is_same = !type.shape[i].is_const() || type.shape[i].value() == tensor.shape[i];
  return is_same;
}

std::string describe(const Tensor& tensor) {
  return to_string(TensorType{tensor.dtype, Shape(tensor.shape.begin(), tensor.shape.end())});
}

uint64_t size_bytes(const Tensor& tensor) {
  return (tensor.floats.size() + tensor.integers.size()) * sizeof(double);
}

class Evaluator {
 public:
  // `bindable`: what the outermost run() runs, whose symbols nodes bind.
  Evaluator(const Module& module, const EvalOptions& options, Graph* bindable,
            std::map<std::string, int64_t> symbols)
      : module_(module), options_(options), bindable_(bindable), symbols_(std::move(symbols)) {}

  // Values of one run of one graph.
  struct Frame {
    std::unordered_map<const Node*, const Tensor*> inputs;  // of params; not owned
    std::unordered_map<const Node*, std::vector<Tensor>> results;
    std::unordered_map<const Node*, size_t> last_uses;  // position after which results are freed

    const Tensor* find(Value value) const {
      if (!value) return nullptr;
      if (const auto input = inputs.find(value.node); input != inputs.end()) return input->second;
      const auto result = results.find(value.node);
      if (result == results.end()) return nullptr;
      return &result->second[static_cast<size_t>(value.index)];
    }
  };

  // Runs the nodes; outputs and mutations are then found in the frame.
  Status run(const Graph& graph, const std::vector<const Tensor*>& inputs, Frame& frame,
             bool is_outermost) {
    for (size_t i = 0; i < inputs.size(); ++i) frame.inputs[graph.params[i].get()] = inputs[i];
    note_last_uses(graph, frame);
    std::vector<std::vector<const Node*>> dying(graph.nodes.size());
    for (const auto& [node, position] : frame.last_uses)
      if (position < dying.size()) dying[position].push_back(node);
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      if (is_outermost && options_.progress && !options_.progress(i, graph.nodes.size()))
        return Diag{code::kStopped, Loc::unknown(), "the evaluation was stopped"};
      const Node& node = *graph.nodes[i];
      LATHE_TRY(std::vector<Tensor> results, run_node(node, frame));
      const std::string symbol = node.bound_symbol();
      if (!symbol.empty()) LATHE_DO(bind(node, symbol, results.front().integers.front()));
      frame.results[&node] = std::move(results);
      for (const Node* dead : dying[i]) release(frame, dead);
    }
    return Ok{};
  }

 private:
  Status bind(const Node& node, const std::string& symbol, int64_t size) {
    LATHE_CHECK(bindable_ != nullptr, "a graph inside another binds no size");
    symbols_[symbol] = size;
    if (size < 0)
      return fault(node, code::kDimRange, fmt::format("'{}' is {}, below 0", symbol, size));
    Status allowed = lathe::check_sizes({}, {module_.dims, module_.guards}, symbols_);
    if (!allowed.ok()) return located(std::move(allowed).error(), node);
    bindable_->substitute({{symbol, Dim(size)}});
    return check_types(*bindable_);
  }

  // Results that nothing uses die where they are made; outputs live on.
  void note_last_uses(const Graph& graph, Frame& frame) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      frame.last_uses[graph.nodes[i].get()] = i;
      for (Value operand : graph.nodes[i]->operands)
        if (operand) frame.last_uses[operand.node] = i;
    }
    for (Value output : graph.outputs) frame.last_uses[output.node] = graph.nodes.size();
    for (const Mutation& mutation : graph.mutations)
      frame.last_uses[mutation.value.node] = graph.nodes.size();
  }

  void release(Frame& frame, const Node* node) {
    const auto found = frame.results.find(node);
    if (found == frame.results.end()) return;
    for (const Tensor& tensor : found->second) live_bytes_ -= size_bytes(tensor);
    frame.results.erase(found);
  }

  // Before a reference allocates them.
  Status check_sizes(const Node& node) const {
    uint64_t total = live_bytes_;
    for (const TensorType& type : node.types) {
      if (!type.is_static()) continue;
      const std::optional<int64_t> count = type.static_elements();
      uint64_t num_bytes = 0;
      if (!count ||
          __builtin_mul_overflow(static_cast<uint64_t>(*count), sizeof(double), &num_bytes) ||
          __builtin_add_overflow(total, num_bytes, &total) || total > options_.max_bytes)
        return fault(node, code::kTooLarge,
                     fmt::format("evaluating {} takes more than the {} MB allowed", print(node),
                                 options_.max_bytes >> 20));
    }
    return Ok{};
  }

  Result<std::vector<Tensor>> run_node(const Node& node, const Frame& frame) {
    if (node.in_place)
      return fault(node, code::kBadForm,
                   fmt::format("'{}_' is in place; functionalize the graph before evaluating it",
                               node.op->name));
    LATHE_DO(check_sizes(node));
    std::vector<const Tensor*> operands;
    for (Value operand : node.operands) {
      operands.push_back(frame.find(operand));
      LATHE_CHECK(!operand || operands.back() != nullptr,
                  fmt::format("an operand of '{}' has no value", node.name));
    }
    std::vector<Tensor> narrowed;
    if (options_.round && options_.uses_tf32 && node.op->traits.may_use_tf32)
      narrowed = as_tf32(operands);
    Result<std::vector<Tensor>> results = apply(node, operands);
    if (!results.ok()) return located(std::move(results).error(), node);
    LATHE_CHECK(results->size() == node.types.size(),
                fmt::format("'{}' computed {} results instead of {}", node.name, results->size(),
                            node.types.size()));
    for (size_t i = 0; i < results->size(); ++i) {
      Tensor& tensor = (*results)[i];
      LATHE_CHECK(is_well_formed(tensor) && has_type(tensor, node.types[i]),
                  fmt::format("'{}' computed {}, its type is {}", node.name, describe(tensor),
                              to_string(node.types[i])));
      wrap_integers(tensor);
      if (options_.round) round_floats(tensor);
      live_bytes_ += size_bytes(tensor);
    }
    return results;
  }

  Result<std::vector<Tensor>> apply(const Node& node, const std::vector<const Tensor*>& operands) {
    if (node.op->name == kFusedOp && !node.bodies.empty())
      return run_body(*node.bodies.front(), operands);
    if (node.op->name == kConstantOp && !node.is_none("name")) return load_weight(node);
    if (node.op->reference) return node.op->reference.function(node, operands);
    return fault(
        node, code::kUnsupported,
        fmt::format("'{}' cannot be evaluated: {}", node.op->name, node.op->reference.why));
  }

  Result<std::vector<Tensor>> run_body(const Graph& body,
                                       const std::vector<const Tensor*>& operands) {
    LATHE_CHECK(body.params.size() == operands.size(), "a body has other params than operands");
    Frame frame;
    LATHE_DO(run(body, operands, frame, false));
    std::vector<Tensor> results;
    for (Value output : body.outputs) {
      const Tensor* tensor = frame.find(output);
      LATHE_CHECK(tensor != nullptr, "an output of a body has no value");
      results.push_back(*tensor);
    }
    while (!frame.results.empty()) release(frame, frame.results.begin()->first);
    return results;
  }

  Result<std::vector<Tensor>> load_weight(const Node& node) const {
    const std::string name = node.string_attr("name");
    const auto weight = module_.weights.find(name);
    if (weight == module_.weights.end())
      return fault(node, code::kMissingWeight, fmt::format("weight '{}' has no values", name));
    Result<Tensor> tensor = read_tensor(weight->second.data);
    if (!tensor.ok()) {
      Diag diag = std::move(tensor).error();
      diag.message = fmt::format("weight '{}': {}", name, diag.message);
      return diag;
    }
    return std::vector<Tensor>{*std::move(tensor)};
  }

  const Module& module_;
  const EvalOptions& options_;
  Graph* const bindable_;
  std::map<std::string, int64_t> symbols_;
  uint64_t live_bytes_ = 0;
};

Status check_inputs(const Graph& graph, const std::vector<Tensor>& inputs) {
  if (inputs.size() != graph.params.size())
    return Diag{
        code::kBadValue, Loc::unknown(),
        fmt::format("the graph takes {} inputs, got {}", graph.params.size(), inputs.size())};
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Node& param = *graph.params[i];
    if (!is_well_formed(inputs[i]))
      return fault(param, code::kBadValue,
                   fmt::format("input '{}' does not hold the values its shape says", param.name));
    if (inputs[i].dtype != param.types.front().dtype)
      return fault(param, code::kDtypeMismatch,
                   fmt::format("input '{}' must be {}, got {}", param.name,
                               dtype_name(param.types.front().dtype), dtype_name(inputs[i].dtype)));
  }
  return Ok{};
}

}  // namespace

Result<EvalResult> evaluate(const Module& module, const Graph& graph,
                            const std::vector<Tensor>& inputs, const EvalOptions& options) {
  LATHE_DO(check_inputs(graph, inputs));
  std::vector<ShapeBinding> bindings;
  for (size_t i = 0; i < inputs.size(); ++i)
    bindings.push_back(
        {graph.params[i]->name, graph.params[i]->types.front().shape, inputs[i].shape});
  const std::vector<std::string> in_run = graph.bound_symbols();
  std::map<std::string, int64_t> known = options.symbols;
  for (const std::string& symbol : in_run) known.erase(symbol);
  LATHE_TRY(const auto symbols,
            bind_symbols(bindings, {module.dims, module.guards}, std::move(known)));
  std::unique_ptr<Graph> bound;
  if (!symbols.empty() || !in_run.empty()) {
    bound = graph.clone();
    bound->substitute({symbols.begin(), symbols.end()});
    LATHE_DO(check_types(*bound));  // references trust them
  }
  const Graph& runnable = bound ? *bound : graph;

  std::vector<const Tensor*> pointers;
  for (const Tensor& input : inputs) pointers.push_back(&input);
  Evaluator::Frame frame;
  LATHE_DO(Evaluator(module, options, bound.get(), symbols).run(runnable, pointers, frame, true));
  EvalResult result;
  for (Value output : runnable.outputs) {
    const Tensor* tensor = frame.find(output);
    LATHE_CHECK(tensor != nullptr, "an output has no value");
    result.outputs.push_back(*tensor);
  }
  for (const Mutation& mutation : runnable.mutations) {
    const Tensor* tensor = frame.find(mutation.value);
    LATHE_CHECK(tensor != nullptr, "a mutation has no value");
    result.mutated.push_back(*tensor);
  }
  return result;
}

}  // namespace lathe
