// Greedy descent: every edit that keeps the failure is kept, until none does (see minimise.h).
#include "tests/random/minimise.h"

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "ir/graph/op_def.h"
#include "passes/pipeline/pipeline.h"
#include "tests/random/rebuild.h"

namespace lathe::random_graphs {
namespace {

constexpr int kMaxQuestions = 600;

class Minimiser {
 public:
  Minimiser(Case failing, const std::function<bool(const Case&)>& fails)
      : best_(std::move(failing)), fails_(fails) {}

  Case run() {
    for (bool goes_on = true; goes_on && asked_ < kMaxQuestions;) {
      goes_on = false;
      for (bool (Minimiser::*step)() :
           {&Minimiser::fewer_sizes, &Minimiser::fewer_outputs, &Minimiser::fewer_nodes,
            &Minimiser::fewer_passes, &Minimiser::smaller_extents, &Minimiser::plainer_nodes,
            &Minimiser::plainer_values})
        while ((this->*step)() && asked_ < kMaxQuestions) goes_on = true;
    }
    return std::move(best_);
  }

 private:
  bool keep(std::optional<Case> candidate) {
    if (!candidate || print(*candidate) == print(best_) || ++asked_ > kMaxQuestions) return false;
    if (!fails_(*candidate)) return false;
    best_ = *std::move(candidate);
    return true;
  }
  bool keep(const Edit& edit) { return keep(rebuild(best_, edit)); }
  const Graph& graph() const { return best_.module.main(); }

  bool fewer_sizes() {
    for (size_t i = 0; i < best_.sizes.size() && best_.sizes.size() > 1; ++i) {
      Case candidate = copy(best_);
      candidate.sizes.erase(candidate.sizes.begin() + static_cast<std::ptrdiff_t>(i));
      if (keep(std::move(candidate))) return true;
    }
    return false;
  }

  bool fewer_outputs() {
    if (graph().outputs.size() < 2) return false;
    for (size_t i = 0; i < graph().outputs.size(); ++i)
      if (keep({.only_output = i})) return true;
    return false;
  }

  bool fewer_nodes() {
    for (size_t i = graph().nodes.size(); i-- > 0;) {
      const Node& node = *graph().nodes[i];
      if (keep({.as_params = {&node}})) return true;
      for (size_t operand = 0; operand < node.operands.size(); ++operand) {
        const Value value = node.operands[operand];
        const bool is_between =
            value && node.types.size() == 1 && value.type() == node.types.front();
        if (is_between && keep({.bypassed = &node, .bypass = operand})) return true;
      }
    }
    return false;
  }

  bool fewer_passes() {
    if (best_.passes == "minimal") return false;
    Case candidate = copy(best_);
    candidate.passes = "minimal";
    if (keep(std::move(candidate))) return true;
    const auto pipeline = parse_pipeline(best_.passes);
    if (!pipeline.ok()) return false;
    for (const PipelineStep& step : pipeline->steps) {
      candidate = copy(best_);
      candidate.passes += ",-" + step.pass->name;
      if (keep(std::move(candidate))) return true;
    }
    return false;
  }

  std::set<int64_t> extents() const {
    std::set<int64_t> found;
    const auto note = [&](const Node& node) {
      for (const TensorType& type : node.types)
        for (const Dim& dim : type.shape)
          if (dim.is_const()) found.insert(dim.value());
    };
    for (const auto& param : graph().params) note(*param);
    for (const auto& node : graph().nodes) note(*node);
    return found;
  }

  bool smaller_extents() {
    const std::set<int64_t> found = extents();
    for (auto size = found.rbegin(); size != found.rend(); ++size) {
      for (int64_t smaller : {int64_t{1}, int64_t{2}, int64_t{3}, *size / 2, *size - 1}) {
        if (smaller >= *size || smaller < 1) continue;
        const auto change = [&](int64_t other) { return other == *size ? smaller : other; };
        if (keep({.extent = change})) return true;
      }
    }
    return false;
  }

  bool plainer_attr(const Node& node, size_t i) {
    const AttrSpec& plain = node.op->attrs[i];
    const Attr value = plain.default_value;
    const bool is_required = std::holds_alternative<std::monostate>(value) && !plain.is_optional;
    if (is_required || node.attrs[i] == value) return false;
    return keep({.attr = [&](const Node& other, const AttrSpec& spec, const Attr& own) {
      return &other == &node && spec.name == plain.name ? value : own;
    }});
  }

  bool plainer_nodes() {
    if (keep({.drops_writes = true})) return true;
    if (keep({.dtype = [](DType dtype) { return is_float(dtype) ? DType::f32 : dtype; }}))
      return true;
    for (const auto& node : graph().nodes) {
      for (size_t i = 0; i < node->attrs.size(); ++i)
        if (node->op->name != kConstantOp && plainer_attr(*node, i)) return true;
      for (Value operand : node->operands)
        if (operand && keep({.left_out = operand, .left_out_of = node.get()})) return true;
    }
    return false;
  }

  bool plainer_values() {
    for (const auto& [name, how] : best_.fills) {
      for (const Fill& plain :
           {Fill{.kind = Fill::Kind::quarters, .low = 1, .high = 1},
            Fill{.kind = Fill::Kind::quarters}, Fill{how.kind, how.low, how.high, 0}}) {
        if (how.kind == Fill::Kind::integers && plain.kind != how.kind) continue;
        Case candidate = copy(best_);
        candidate.fills[name] = plain;
        fill_weights(candidate);
        if (print(plain) != print(how) && print(how) != "quarters 1 1 seed 0" &&
            keep(std::move(candidate)))
          return true;
      }
    }
    return false;
  }

  Case best_;
  const std::function<bool(const Case&)>& fails_;
  int asked_ = 0;
};

}  // namespace

Case minimise(Case failing, const std::function<bool(const Case&)>& fails) {
  return Minimiser(std::move(failing), fails).run();
}

}  // namespace lathe::random_graphs
