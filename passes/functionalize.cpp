// Replaces in-place ops by pure ones and says what the run writes back.
//
// First in every pipeline: afterwards a graph is what its values are, and the order of nodes no
// longer matters. A write through a view is put back into the view's base, and everything that
// shares its memory is taken anew from the base where it is next read. Writes to parameters,
// buffers and inputs become Graph::mutations. Which values share memory follows PyTorch's eager
// run: reshapes of permuted memory are copies.
//
// Does not write through views that repeat elements (expand), which eager refuses as well, and does
// not know of aliases between inputs: the caller passes distinct tensors.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "fmt/format.h"
#include "ir/graph/builder.h"
#include "ir/support/diag_codes.h"
#include "passes/analysis/aliases.h"
#include "passes/analysis/patterns.h"
#include "passes/analysis/rewrite.h"
#include "passes/analysis/write_back.h"
#include "passes/pass.h"

namespace lathe {
namespace {

Result<Changed> run_functionalize(Unit& unit, const PassOptions& options, PassContext& context);

}  // namespace

PassDef define_functionalize() {
  return {
      .name = "functionalize",
      .summary = "replace in-place ops by pure ones",
      .needs = Form::imported,
      .leaves = Form::functional,
      .counters = {"replaced", "mutations"},
      .example = R"(
func @main(%x: f32[4]) -> f32[4] {
  %a = neg(%x)
  %b = relu_(%a)
  return %a
}
=>
func @main(%x: f32[4]) -> f32[4] {
  %a = neg(%x)
  %b = relu(%a)
  return %b
}
)",
      .run = run_functionalize,
  };
}

namespace {

// A piece of memory: its first value and what it holds now.
struct Storage {
  Value root;
  Value current;
  int version = 0;
  std::string target;  // of a weight or an input
  bool is_input = false;
};

// How a value lies in its storage, and the newest value that was taken from there.
struct Alias {
  int storage = 0;
  Value parent;                // null: the root
  const Node* view = nullptr;  // makes it from the parent; null: it is the parent
  int result = 0;
  Strides strides;
  Value current;
  int version = 0;
};

struct ValueHash {
  size_t operator()(Value value) const {
    return std::hash<const void*>()(value.node) * 31 + static_cast<size_t>(value.index);
  }
};

class Functionalizer {
 public:
  Functionalizer(Module& module, Graph& graph, bool is_entry, PassContext& context)
      : module_(module), graph_(graph), is_entry_(is_entry), context_(context) {}

  Status run() {
    for (const auto& param : graph_.params) {
      int storage = add_root(param->result());
      storages_[static_cast<size_t>(storage)].target = param->name;
      storages_[static_cast<size_t>(storage)].is_input = true;
    }
    auto visit = [&](Builder& b, Node& node) { return visit_node(b, node); };
    LATHE_TRY(bool changed, rewrite(module_, graph_, context_.ops, "functionalize", visit));
    (void)changed;  // the caller saw an in-place node
    return finish();
  }

 private:
  Result<Replacement> visit_node(Builder& b, Node& node) {
    if (node.in_place) return replace(b, node);
    std::vector<Value> originals = node.operands;
    for (Value& operand : node.operands) {
      LATHE_TRY(operand, fresh(b, operand));
    }
    if (is_weight(node)) add_weight(node);
    if (originals.empty() || !originals[0]) return Replacement();
    for (size_t i = 0; i < node.types.size(); ++i) {
      Alias& base = alias_of(originals[0]);
      ViewOf view = view_of(node, static_cast<int>(i), base.strides);
      if (!view.is_view) break;
      Value value = node.result(static_cast<int>(i));
      int storage = base.storage;
      int version = storages_[static_cast<size_t>(storage)].version;
      aliases_[value] = {storage,      originals[0], &node,  static_cast<int>(i),
                         view.strides, value,        version};
    }
    return Replacement();
  }

  // The pure twin of an in-place node, written back into the memory of its first operand.
  Result<Replacement> replace(Builder& b, Node& node) {
    if (!node.bodies.empty() || node.types.size() != 1)
      return Diag{
          code::kUnsupported, node.loc,
          fmt::format("'{}' cannot run in place: it has bodies or several results", node.op->name)};
    Value target = node.operands[0];
    if (view_of(node, 0, std::nullopt).is_view) {  // detach_, dropout_: writes what is there
      context_.counters["replaced"] += 1;
      return Replacement(std::vector<Value>{target});
    }
    TensorType type = target.type();
    std::vector<Value> operands = node.operands;
    for (Value& operand : operands) {
      LATHE_TRY(operand, fresh(b, operand));
    }
    NamedAttrs attrs;
    for (size_t i = 0; i < node.attrs.size(); ++i)
      attrs.push_back({node.op->attrs[i].name, node.attrs[i]});
    Node* made = b.create(*node.op, operands, node.list_sizes, attrs);
    if (made == nullptr) return b.error();
    Value value = made->result();
    if (value.type().dtype != type.dtype) value = b.call("cast", {value}, {{"dtype", type.dtype}});
    if (b.failed()) return b.error();
    context_.counters["replaced"] += 1;
    LATHE_DO(write(b, target, value));
    Alias& base = alias_of(target);
    int version = storages_[static_cast<size_t>(base.storage)].version;
    Alias same{base.storage, target, nullptr, 0, base.strides, value, version};
    aliases_[value] = same;
    return Replacement(std::vector<Value>{value});
  }

  // The value as a read at this point sees it.
  Result<Value> fresh(Builder& b, Value value) {
    auto found = aliases_.find(value);
    if (!value || found == aliases_.end()) return value;
    int storage = found->second.storage;
    int version = storages_[static_cast<size_t>(storage)].version;
    if (found->second.version == version) return found->second.current;
    Alias alias = found->second;
    Value current = storages_[static_cast<size_t>(storage)].current;
    if (alias.parent) {
      LATHE_TRY(current, fresh(b, alias.parent));
      if (alias.view != nullptr) {
        LATHE_TRY(current, view_again(b, alias, current));
      }
    }
    aliases_[value].current = current;
    aliases_[value].version = version;
    return current;
  }

  Result<Value> view_again(Builder& b, const Alias& alias, Value base) {
    const Node& view = *alias.view;
    std::vector<Value> operands = view.operands;
    operands[0] = base;
    NamedAttrs attrs;
    for (size_t i = 0; i < view.attrs.size(); ++i)
      attrs.push_back({view.op->attrs[i].name, view.attrs[i]});
    Node* made = b.create(*view.op, operands, view.list_sizes, attrs);
    if (made == nullptr) return b.error();
    return made->result(alias.result);
  }

  // Stores `value` where `target` lies: through its views up to the root.
  Status write(Builder& b, Value target, Value value) {
    std::vector<std::pair<Value, Value>> written = {{target, value}};
    int storage = alias_of(target).storage;
    for (Value at = target; alias_of(at).parent;) {
      Alias alias = alias_of(at);
      LATHE_TRY(Value old, fresh(b, alias.parent));
      if (alias.view != nullptr) {
        LATHE_TRY(value, write_back(b, *alias.view, alias.result, old, value));
      }
      at = alias.parent;
      written.push_back({at, value});
    }
    Storage& memory = storages_[static_cast<size_t>(storage)];
    memory.current = value;
    ++memory.version;
    for (auto& [at, now] : written) {
      aliases_[at].current = now;
      aliases_[at].version = memory.version;
    }
    return Ok{};
  }

  int add_root(Value value) {
    int storage = static_cast<int>(storages_.size());
    storages_.push_back({value, value, 0, {}, false});
    aliases_[value] = {storage, {}, nullptr, 0, contiguous_strides(value.type()), value, 0};
    return storage;
  }

  // Two constants with one name are one piece of memory.
  void add_weight(const Node& node) {
    Value value = const_cast<Node&>(node).result();
    std::string name = node.string_attr("name");
    auto [found, is_new] = weights_.emplace(name, value);
    if (is_new) {
      storages_[static_cast<size_t>(add_root(value))].target = name;
      auto weight = module_.weights.find(name);
      if (weight != module_.weights.end() && !weight->second.data.strides.empty())
        aliases_[value].strides = weight->second.data.strides;
      return;
    }
    Alias& first = aliases_[found->second];
    Alias twin{first.storage, found->second, nullptr, 0, first.strides, found->second, 0};
    aliases_[value] = twin;
  }

  Alias& alias_of(Value value) {
    if (aliases_.find(value) == aliases_.end()) add_root(value);
    return aliases_[value];
  }

  // Outputs and mutations read at the end of the run.
  Status finish() {
    Builder b(graph_, context_.ops, Loc::unknown());
    auto read = [&](Value value) {
      b.set_loc(module_.locs.derive("functionalize", {value.node->loc}));
      return fresh(b, value);
    };
    for (Value& output : graph_.outputs) {
      LATHE_TRY(output, read(output));
    }
    for (Mutation& mutation : graph_.mutations) {
      LATHE_TRY(mutation.value, read(mutation.value));
    }
    for (const Storage& storage : storages_) {
      if (storage.version == 0 || storage.target.empty()) continue;
      if (!is_entry_ && storage.is_input)
        return Diag{code::kUnsupported, storage.root.node->loc,
                    fmt::format("the body '{}' writes to '{}', which it got from outside",
                                graph_.name, storage.target)};
      auto is_same = [&](const Mutation& m) {
        return m.target == storage.target && m.is_input == storage.is_input;
      };
      auto& mutations = graph_.mutations;
      if (std::any_of(mutations.begin(), mutations.end(), is_same)) continue;
      mutations.push_back({storage.target, storage.is_input, storage.current});
      context_.counters["mutations"] += 1;
    }
    return Ok{};
  }

  Module& module_;
  Graph& graph_;
  bool is_entry_;
  PassContext& context_;
  std::vector<Storage> storages_;
  std::unordered_map<Value, Alias, ValueHash> aliases_;  // only of values that share memory
  std::map<std::string, Value> weights_;
};

Result<Changed> run_functionalize(Unit& unit, const PassOptions&, PassContext& context) {
  Changed changed = Changed::no;
  for (Graph* graph : all_graphs(unit.module)) {
    bool has_writes = std::any_of(graph->nodes.begin(), graph->nodes.end(),
                                  [](const auto& node) { return node->in_place; });
    if (!has_writes) continue;
    bool is_entry = std::any_of(unit.module.graphs.begin(), unit.module.graphs.end(),
                                [&](const auto& top) { return top.get() == graph; });
    LATHE_DO(Functionalizer(unit.module, *graph, is_entry, context).run());
    changed = Changed::yes;
  }
  return changed;
}

}  // namespace
}  // namespace lathe
