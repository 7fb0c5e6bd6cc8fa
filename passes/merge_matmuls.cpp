// Makes one product of several that read the same rows: of queries, keys and values, of a gate and
// what it lets through.
//
// Each is too small to keep a GPU busy, and each is a launch. Their weights stand side by side in
// one, which init writes once, and who read a product reads columns of the wide one through a
// slice. Where a target has products of a library alone, whose prices are known
// (passes/lowering/product_price.h). Behind cse, which finds what is the same; before
// fuse_epilogue, which gives the wide product its bias.
//
// Leaves alone: products that a library ends with what follows them (an activation, a residual),
// which would be a launch of its own behind a slice; results that the caller gets, which would be
// copied; and weights that it would take too much memory to keep twice.
#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "ir/op/term.h"
#include "ir/templates/loop_nest.h"
#include "passes/analysis/patterns.h"
#include "passes/analysis/rewrite.h"
#include "passes/analysis/uses.h"
#include "passes/lowering/library.h"
#include "passes/lowering/product_price.h"
#include "passes/pass.h"

namespace lathe {
namespace {

constexpr double kLeastGain = 1.15;  // of the prices
constexpr int64_t kStepBytes = 16;   // at which columns begin that are read at once
// Weights that may be kept twice: bytes, about what PyTorch's own run keeps for its library, and
// beside them one part in so many of all.
constexpr int64_t kKeptTwice = 32 << 20, kKeptTwiceShare = 10;

// A product, with its bias where it has one.
struct Member {
  Node* product;
  Node* biased = nullptr;
  Value bias = {};
  int64_t columns() const { return product->types[0].shape.back().value(); }
  // What others read.
  Node* result() const { return biased != nullptr ? biased : product; }
};

struct Group {
  std::vector<Member> members;
  double gain = 0;                  // seconds
  int64_t bytes = 0;                // of the weights
  std::vector<Value> columns = {};  // of each member, once they are made
};

bool has_bias(const Group& group) {
  return std::any_of(group.members.begin(), group.members.end(),
                     [](const Member& member) { return member.biased != nullptr; });
}

class Merger {
 public:
  Merger(Module& module, Graph& graph, PassContext& context)
      : module_(module), graph_(graph), context_(context), constants_(graph), uses_(graph) {
    for (const auto& node : graph.nodes)
      for (const Value operand : node->operands)
        if (operand) readers_[operand].push_back(node.get());
    for (const Value output : graph.outputs) kept_.insert(output.node);
    for (const Mutation& mutation : graph.mutations) kept_.insert(mutation.value.node);
  }

  Result<bool> run() {
    find();
    choose();
    if (groups_.empty()) return false;
    // A wide product stands where the first of them stood.
    std::stable_partition(graph_.nodes.begin(), graph_.nodes.end(),
                          [&](const auto& node) { return constants_.contains({node.get(), 0}); });
    return rewrite(module_, graph_, context_.ops, "merge_matmuls",
                   [&](Builder& b, Node& node) { return visit(b, node); });
  }

 private:
  // ---- which -----------------------------------------------------------------------------------

  // One for all of a batch, whatever dims of one element stand before it.
  static bool is_matrix(const TensorType& type) {
    return type.rank() >= 2 && std::all_of(type.shape.begin(), type.shape.end() - 2,
                                           [](const Dim& dim) { return dim == Dim(1); });
  }

  std::optional<Member> member(Node& node) const {
    if (node.op->name != "matmul" || context_.keeps_apart(node)) return std::nullopt;
    const TensorType &a = node.operands[0].type(), &b = node.operands[1].type();
    if (a.rank() < 2 || !is_matrix(b) || a.rank() < b.rank() || a.dtype != b.dtype ||
        !b.is_static() || !(is_half(a.dtype) || a.dtype == DType::f32) ||
        !constants_.contains(node.operands[1]) || constants_.contains(node.operands[0]))
      return std::nullopt;
    Member made{&node};
    const int64_t step = kStepBytes / dtype_bytes(a.dtype);
    if (*b.static_elements() == 0 || made.columns() % step != 0) return std::nullopt;
    if (const Node* next = only_reader(node); next != nullptr && next->op->name == "add")
      for (size_t i = 0; i < 2; ++i)
        if (next->operands[i] == node.result() && is_bias(next->operands[1 - i], node.types[0])) {
          made.biased = const_cast<Node*>(next);
          made.bias = next->operands[1 - i];
        }
    if (made.biased != nullptr && context_.keeps_apart(*made.biased)) return std::nullopt;
    if (kept_.count(made.result()) != 0 || uses_[made.result()->result()] == 0) return std::nullopt;
    const Node* last = only_reader(*made.result());
    if (last != nullptr && may_end_product(*last)) return std::nullopt;
    return made;
  }

  const Node* only_reader(const Node& node) const {
    const auto found = readers_.find({const_cast<Node*>(&node), 0});
    return found == readers_.end() || found->second.size() != 1 || kept_.count(&node) != 0
               ? nullptr
               : found->second.front();
  }

  bool is_bias(Value value, const TensorType& result) const {
    return constants_.contains(value) &&
           value.type() == TensorType{result.dtype, {result.shape.back()}};
  }

  void find() {
    std::map<Value, size_t> by_rows;
    for (const auto& node : graph_.nodes) {
      const std::optional<Member> found = member(*node);
      if (!found) continue;
      const auto [at, is_new] = by_rows.try_emplace(node->operands[0], groups_.size());
      if (is_new) groups_.emplace_back();
      groups_[at->second].members.push_back(*found);
    }
  }

  // Those that gain most for their memory, as far as that goes.
  void choose() {
    for (Group& group : groups_) price(group);
    std::erase_if(groups_, [](const Group& group) { return group.gain <= 0; });
    std::stable_sort(groups_.begin(), groups_.end(), [](const Group& a, const Group& b) {
      return a.gain * static_cast<double>(b.bytes) > b.gain * static_cast<double>(a.bytes);
    });
    int64_t room = kKeptTwice + bytes_of_weights() / kKeptTwiceShare;
    std::set<std::vector<Value>> known;  // weights of several groups
    std::erase_if(groups_, [&](const Group& group) {
      if (known.count(weights(group)) != 0) return false;
      if (group.bytes > room) {
        const Node& first = *group.members.front().product;
        context_.refusals.push_back(
            {first.loc, "'" + first.name + "' stays apart from products of the same rows: its " +
                            "weights would be kept twice"});
        return true;
      }
      room -= group.bytes;
      known.insert(weights(group));
      return false;
    });
    for (size_t i = 0; i < groups_.size(); ++i)
      for (size_t k = 0; k < groups_[i].members.size(); ++k)
        place_[groups_[i].members[k].result()] = {i, k};
    for (size_t i = 0; i < groups_.size(); ++i) first_[groups_[i].members.front().product] = i;
  }

  void price(Group& group) const {
    if (group.members.size() < 2) return;
    const TensorType& rows = group.members.front().product->operands[0].type();
    const double k = at(rows.shape.back()), m = at(rows.num_elements()) / k;
    double apart = 0, columns = 0;
    for (const Member& member : group.members) {
      apart += product_seconds(m, static_cast<double>(member.columns()), k, rows.dtype);
      columns += static_cast<double>(member.columns());
      group.bytes +=
          *member.product->operands[1].type().static_elements() * dtype_bytes(rows.dtype);
    }
    const double together = product_seconds(m, columns, k, rows.dtype);
    group.gain = apart > kLeastGain * together ? apart - together : 0;
  }

  double at(const Dim& size) const { return static_cast<double>(size_at(size, module_.hints)); }

  int64_t bytes_of_weights() const {
    int64_t bytes = 0;
    for (const auto& node : graph_.nodes)
      if (is_weight(*node))
        bytes += node->types[0].static_elements().value_or(0) * dtype_bytes(node->types[0].dtype);
    return bytes;
  }

  // ---- how -------------------------------------------------------------------------------------

  Result<Replacement> visit(Builder& b, Node& node) {
    if (const auto first = first_.find(&node); first != first_.end()) {
      merge(b, groups_[first->second], node.operands[0]);
      if (b.failed()) return b.error();
      context_.counters["merged"] += static_cast<int64_t>(groups_[first->second].members.size());
    }
    const auto found = place_.find(&node);
    if (found == place_.end()) return Replacement();
    return Replacement(
        std::vector<Value>{groups_[found->second.first].columns[found->second.second]});
  }

  Value zeros(Builder& b, int64_t length, DType dtype) {
    Value& made = zeros_[{length, dtype}];
    if (!made) made = expand({b, b.scalar(0, dtype)}, {Dim(length)});
    return made;
  }

  static std::vector<Value> weights(const Group& group) {
    std::vector<Value> values;
    for (const Member& member : group.members) values.push_back(member.product->operands[1]);
    return values;
  }

  // Side by side in their last dim; the same for the same.
  Value joined(Builder& b, const std::vector<Value>& parts) {
    Value& made = joined_[parts];
    if (made) return made;
    if (parts.front().type().rank() == 1) return made = b.call("cat", parts);
    std::vector<Value> columns;
    for (const Value part : parts) {
      const Shape& shape = part.type().shape;
      columns.push_back(transpose_last(reshape({b, part}, {shape.end()[-2], shape.back()})));
    }
    return made = transpose_last({b, b.call("cat", columns)});
  }

  void merge(Builder& b, Group& group, Value rows) {
    Term wide = matmul({b, rows}, {b, joined(b, weights(group))});
    if (has_bias(group)) {
      std::vector<Value> biases;
      for (const Member& member : group.members)
        biases.push_back(member.biased != nullptr ? member.bias
                                                  : zeros(b, member.columns(), rows.type().dtype));
      wide = wide + Term(b, joined(b, biases));
    }
    int64_t start = 0;
    for (const Member& member : group.members) {
      const int64_t end = start + member.columns();
      group.columns.push_back(apply(
          "slice", {wide},
          {{"dim", int64_t{rows.type().rank() - 1}}, {"start", Dim(start)}, {"end", Dim(end)}}));
      start = end;
    }
  }

  Module& module_;
  Graph& graph_;
  PassContext& context_;
  ConstantValues constants_;
  UseCounts uses_;
  std::map<Value, std::vector<const Node*>> readers_;
  std::unordered_set<const Node*> kept_;  // by who called
  std::vector<Group> groups_;
  std::map<std::vector<Value>, Value> joined_;
  std::map<std::pair<int64_t, DType>, Value> zeros_;
  std::unordered_map<const Node*, size_t> first_;  // the group that begins with a product
  std::unordered_map<const Node*, std::pair<size_t, size_t>> place_;  // in a group, of a result
};

Result<Changed> run_merge_matmuls(Unit& unit, const PassOptions&, PassContext& context) {
  if (!context.target.has_library("matmul")) return Changed::no;
  LATHE_TRY(const bool has_changed, Merger(unit.module, unit.module.main(), context).run());
  return has_changed ? Changed::yes : Changed::no;
}

}  // namespace

PassDef define_merge_matmuls() {
  return {
      .name = "merge_matmuls",
      .summary = "make one product of those that read the same rows, where a library does them",
      .needs = Form::core,
      .leaves = Form::core,
      .options = {},
      .counters = {"merged"},
      .example = R"(
func @main(%x: bf16[64, 512]) -> bf16[64, 512] {
  %w = constant() {name = "w", dtype = bf16, shape = [512, 512]}
  %b = constant() {name = "b", dtype = bf16, shape = [512]}
  %v = constant() {name = "v", dtype = bf16, shape = [512, 512]}
  %0 = matmul(%x, %w)
  %1 = add(%0, %b)
  %2 = matmul(%x, %v)
  %3 = mul(%1, %2)
  return %3
}
=>
func @main(%x: bf16[64, 512]) -> bf16[64, 512] {
  %w = constant() {name = "w", dtype = bf16, shape = [512, 512]}
  %b = constant() {name = "b", dtype = bf16, shape = [512]}
  %v = constant() {name = "v", dtype = bf16, shape = [512, 512]}
  %permute = permute(%w) {dims = [1, 0]}
  %permute_1 = permute(%v) {dims = [1, 0]}
  %cat = cat([%permute, %permute_1])
  %permute_2 = permute(%cat) {dims = [1, 0]}
  %matmul = matmul(%x, %permute_2)
  %constant = constant() {value = [0.0], dtype = bf16, shape = []}
  %expand = expand(%constant) {size = [512]}
  %cat_1 = cat([%b, %expand])
  %add = add(%matmul, %cat_1)
  %slice = slice(%add) {dim = 1, start = 0, end = 512}
  %slice_1 = slice(%add) {dim = 1, start = 512, end = 1024}
  %0 = matmul(%x, %w)
  %3 = mul(%slice, %slice_1)
  return %3
}
)",
      .isa = "sm_90",
      .run = run_merge_matmuls,
  };
}

}  // namespace lathe
