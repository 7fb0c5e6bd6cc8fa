// Joins elementwise ops with the loop that reads them: another elementwise op, a reduction, a
// gather, or the copy that a cat or a pad is.
//
// What one loop computes and the next one reads passes through memory; in one loop it stays in a
// register. Groups grow from their reader upwards: a producer joins when every reader of it is in
// the group, so that nothing is computed twice by two groups. One that others read too joins the
// first loop that reads it when that has its elements at hand, one by one: the loop then writes it
// beside its own result, which saves a launch and reading it once. Not when both compute functions:
// the chain of what waits for each other then gets longer than a core can run ahead. A group is
// launched where its root stands and joined by what nobody reads before that, so that no cycle can
// form. A norm or softmax that elementwise ops alone read, at the same place, joins their group:
// its last sweep does what follows.
//
// A reader that visits an element several times (the three sweeps of a softmax, overlapping
// windows) computes it anew each time, which pays for arithmetic and not for transcendental
// functions: those producers keep their own loop, and the pass says so. Views join when what they
// read may join; otherwise the loop reads through them anyway.
#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "ir/graph/op_def.h"
#include "passes/analysis/outline.h"
#include "passes/analysis/patterns.h"
#include "passes/lowering/kernel_def.h"
#include "passes/pass.h"

namespace lathe {
namespace {

// A producer this dear is not computed again at every visit: about one transcendental function.
constexpr int kCheap = 4;
// Beyond this the values of a group no longer fit in registers, and its code grows for nothing.
constexpr size_t kMaxMembers = 64;
// Of one loop. Beyond this a core loses track of what it writes: in large tensors 16 results took
// two to three times as long as 16 loops, 8 two thirds.
constexpr size_t kMaxResults = 8;
// Functions of few elements that groups of threads compute again for each of many, rather than wait
// for a launch: of so many in all, which take about as long as one.
constexpr int kMostAgain = 2;
constexpr int64_t kMostVisits = 8 << 20;
// Of a loop that joins and pads take apart.
constexpr size_t kMostPieces = 64;
// Operands of a join that its loop computes: it has code for each, which loops of their own share,
// and groups of threads compute all of them for each element, to choose one.
constexpr size_t kMostChosen = 8;

// Elementwise ops of about one instruction for each element; any other counts as a function.
constexpr std::string_view kArithmeticOps[] = {"abs", "add", "cast", "clamp",   "eq",      "ge",
                                               "gt",  "le",  "lt",   "maximum", "minimum", "mul",
                                               "ne",  "neg", "relu", "sub",     "where"};

// Rough operations per element of an elementwise op.
int cost(const Node& node) {
  for (std::string_view name : kArithmeticOps) {
    if (node.op->name == name) return 1;
  }
  return 8;
}

class PointwiseFuser {
 public:
  PointwiseFuser(Graph& graph, PassContext& context)
      : graph_(graph), context_(context), constants_(graph) {
    for (const KernelDef& kind : all_kernels())
      if (kind.needs == Needs::threads && kind.members == Members::epilogue &&
          context.target.groups)
        takes_none_.insert(kind.roots.begin(), kind.roots.end());
    for (const auto& node : graph.nodes) {
      const size_t place = place_.size();
      place_[node.get()] = place;
      for (Value operand : node->operands) {
        if (operand) readers_[operand.node].push_back(node.get());
      }
    }
    for (Value output : graph.outputs) kept_.insert(output.node);
    for (const Mutation& mutation : graph.mutations) kept_.insert(mutation.value.node);
    for (const auto& node : graph.nodes)
      if (is_dear(*node)) dear_.insert(node.get());
  }

  std::vector<FusionGroup> run() {
    for (size_t i = graph_.nodes.size(); i-- > 0;) {
      Node* node = graph_.nodes[i].get();
      if (context_.keeps_apart(*node)) continue;
      const int joined = group_to_join(*node);
      if (joined >= 0) {
        groups_[static_cast<size_t>(joined)].push_back(node);
        group_of_[node] = joined;
      } else if (can_lead(*node)) {
        group_of_[node] = static_cast<int>(groups_.size());
        groups_.push_back({node});
        visits_[node] = node->types[0].static_elements().value_or(0);
        num_results_.push_back(1);
        num_again_.push_back(0);
        num_pieces_.push_back(is_copied(*node) ? node->operands.size() : 0);
        const OpClass op_class = node->op->traits.op_class;
        if (op_class == OpClass::elementwise || op_class == OpClass::normalize)
          at_hand_.insert(node);
      }
    }
    std::vector<FusionGroup> result;
    for (std::vector<Node*>& members : groups_) {
      std::reverse(members.begin(), members.end());
      // Views at the edge compute nothing: without another computation, or a copy that is saved,
      // there is nothing to fuse.
      const auto computes = std::count_if(members.begin(), members.end(), [&](const Node* node) {
        return node->op->traits.op_class != OpClass::view ||
               (is_copied(*node) && saves_copy(*members.back()));
      });
      if (computes < 2) continue;
      context_.counters["fused"] += static_cast<int64_t>(computes) - 1;
      result.push_back({members});
    }
    return result;
  }

 private:
  static bool is_view(const Node& node, ViewKind kind) {
    return node.op->traits.op_class == OpClass::view && node.op->traits.view == kind;
  }
  // Nobody reads through it without a condition for each element, so that it is a loop where no
  // other loop takes it in.
  static bool is_copied(const Node& node) {
    return is_view(node, ViewKind::join) || is_view(node, ViewKind::pad);
  }

  static bool is_function(const Node* node) {
    return node->op->traits.op_class != OpClass::view && cost(*node) > kCheap;
  }

  // Whether a loop of its own would compute functions: its, or those of what it alone reads.
  bool is_dear(const Node& node) const {
    const OpClass op_class = node.op->traits.op_class;
    if (op_class != OpClass::elementwise && op_class != OpClass::view) return false;
    return is_function(&node) ||
           std::any_of(node.operands.begin(), node.operands.end(), [this](Value operand) {
             return operand && dear_.count(operand.node) != 0 &&
                    readers_.at(operand.node).size() == 1;
           });
  }

  bool can_lead(const Node& node) const {
    if (takes_none_.count(node.op->name) != 0) return false;
    switch (node.op->traits.op_class) {
      case OpClass::elementwise:
      case OpClass::gather:
      case OpClass::reduction:
      case OpClass::normalize:
        return node.types.size() == 1 && !node.op->traits.has_effects;
      case OpClass::view:
        return is_copied(node) && node.operands.size() <= kMostChosen;
      default:
        return false;
    }
  }

  // The group that is launched first of those that read the node, when it may join that; -1
  // otherwise.
  int group_to_join(Node& node) {
    if (node.op->traits.op_class == OpClass::normalize) return group_behind(node);
    const bool computes = node.op->traits.op_class == OpClass::elementwise;
    if (!computes && node.op->traits.op_class != OpClass::view) return -1;
    auto found = readers_.find(&node);
    if (node.types.size() != 1 || found == readers_.end()) return -1;
    const std::vector<Node*>& readers = found->second;
    const Node* first = *std::min_element(
        readers.begin(), readers.end(),
        [this](const Node* a, const Node* b) { return launch_of(a) < launch_of(b); });
    const Node* other = nullptr;
    for (const Node* reader : readers)
      if (launch_of(reader) != launch_of(first)) other = reader;
    const int group = group_of(first);
    const bool is_shared = other != nullptr || kept_.count(&node) != 0;
    // Nobody waits for what weights alone decide: it is made once, before the first call, and by no
    // loop of every call.
    if (is_shared && (!computes || constants_.contains({const_cast<Node*>(&node), 0}))) return -1;
    if (const std::string why_not = is_shared ? why_no_result(node, group) : ""; !why_not.empty()) {
      if (group >= 0 || (other != nullptr && group_of(other) >= 0))
        refuse_shared(node, *first, why_not);
      return -1;
    }
    if (group < 0) return -1;
    const std::vector<Node*>& members = groups_[static_cast<size_t>(group)];
    if (is_made_once(node) && !constants_.contains(members.front()->result())) return -1;
    const bool repeats = is_repeated(node, group);
    if (computes && !is_worth_repeating(node, group, repeats)) return -1;
    if (is_copied(node)) {
      const size_t pieces = num_pieces(node, group);
      if (pieces > kMostPieces || !may_read_through(node, *members.front(), repeats)) return -1;
      num_pieces_[static_cast<size_t>(group)] = pieces;
    }
    if (members.size() >= kMaxMembers) {
      refuse_large(node, *members.front());
      return -1;
    }
    if (computes && is_at_hand(node, group)) at_hand_.insert(&node);
    if (repeats) repeated_.insert(&node);
    visits_[&node] = visits(node, group);
    if (const Node* chooser = chooser_of(node, group)) chooser_[&node] = chooser;
    num_results_[static_cast<size_t>(group)] += is_shared;
    return group;
  }

  // The elementwise group that alone reads a norm or softmax, where its own sweeps may be that
  // group's loop; -1 when there is none.
  int group_behind(const Node& node) {
    const auto found = readers_.find(&node);
    if (!can_lead(node) || found == readers_.end() || found->second.size() != 1 ||
        kept_.count(&node) != 0 || constants_.contains({const_cast<Node*>(&node), 0}))
      return -1;
    const int group = group_of(found->second.front());
    if (group < 0 || !is_at_hand(node, group)) return -1;
    const std::vector<Node*>& members = groups_[static_cast<size_t>(group)];
    const auto is_elementwise_or_view = [](const Node* member) {
      const OpClass op_class = member->op->traits.op_class;
      return op_class == OpClass::elementwise || op_class == OpClass::view;
    };
    if (members.size() >= kMaxMembers ||
        !std::all_of(members.begin(), members.end(), is_elementwise_or_view))
      return -1;
    at_hand_.insert(&node);
    visits_[&node] = visits(node, group);
    return group;
  }

  // Whether the group's loop computes the node's elements in each of several sweeps.
  bool is_repeated(const Node& node, int group) const {
    const std::vector<Node*>& readers = readers_.at(&node);
    return std::any_of(readers.begin(), readers.end(), [&](const Node* reader) {
      const Traits& traits = reader->op->traits;
      return group_of(reader) == group &&
             (repeated_.count(reader) != 0 || traits.op_class == OpClass::normalize ||
              (traits.op_class == OpClass::reduction && reader->op->num_results > 1));
    });
  }

  // From weights alone, and no larger than they are: a mask of positions would take memory, and be
  // read, for what a loop computes from its indices.
  bool is_made_once(Node& node) const {
    if (!constants_.contains({const_cast<Node*>(&node), 0})) return false;
    int64_t most = 0;
    for (Value operand : node.operands) {
      while (operand && operand.node->op->traits.op_class == OpClass::view &&
             !operand.node->operands.empty())
        operand = operand.node->operands[0];
      if (operand) most = std::max(most, operand.type().static_elements().value_or(0));
    }
    return node.types[0].static_elements().value_or(0) <= most;
  }

  int group_of(const Node* node) const {
    auto found = group_of_.find(node);
    return found == group_of_.end() ? -1 : found->second;
  }

  // Where in the graph a node is launched: at the root of its group, or by itself.
  size_t launch_of(const Node* node) const {
    const int group = group_of(node);
    return place_.at(group < 0 ? node : groups_[static_cast<size_t>(group)].front());
  }

  // Why the group's loop, which is launched before all others that read the node, should not write
  // it beside the root's result; empty when it should.
  std::string why_no_result(const Node& node, int group) const {
    if (group < 0 || !is_at_hand(node, group)) return "that does not have its elements at hand";
    const std::vector<Node*>& members = groups_[static_cast<size_t>(group)];
    for (const Node* reader : readers_.at(&node)) {
      // A view of another group may yet stay where it is.
      const bool is_view = reader->op->traits.op_class == OpClass::view;
      if (group_of(reader) != group && is_view && place_.at(reader) < place_.at(members.front()))
        return "'" + reader->name + "' stands before that";
    }
    if (num_results_[static_cast<size_t>(group)] >= kMaxResults)
      return "that has " + std::to_string(kMaxResults) + " results already";
    const bool has_functions = std::any_of(members.begin(), members.end(), is_function);
    if (has_functions && dear_.count(&node) != 0)
      return "loops that both compute functions take less time apart";
    return "";
  }

  // Whether the group's loop computes the node's element at the root's own index.
  bool is_at_hand(const Node& node, int group) const {
    const TensorType &own = node.types[0],
                     &result = groups_[static_cast<size_t>(group)].front()->types[0];
    const std::vector<Node*>& readers = readers_.at(&node);
    return own.shape == result.shape && own.layout == result.layout &&
           std::any_of(readers.begin(), readers.end(), [&](const Node* reader) {
             return group_of(reader) == group && at_hand_.count(reader) != 0;
           });
  }

  // The innermost dim that a join or pad has edges along.
  static size_t cut_dim(const Node& view) {
    const auto rank = static_cast<size_t>(view.types[0].rank());
    if (is_view(view, ViewKind::join))
      return static_cast<size_t>(
          normalize_dim(view.int_attr("dim"), view.types[0].rank()).value_or(0));
    const std::vector<Dim> pad = view.dims_attr("pad");
    for (size_t i = 0; i + 1 < pad.size(); i += 2)
      if (pad[i] != Dim(0) || pad[i + 1] != Dim(0)) return rank - 1 - i / 2;
    return 0;
  }

  // Whether a group of that root should read through joins and pads if only to save their copies:
  // one of threads would choose among operands in each sweep.
  bool saves_copy(const Node& root) const {
    return !context_.target.groups || is_copied(root) ||
           root.op->traits.op_class == OpClass::elementwise;
  }

  // Whether what lies between a join's or pad's edges is long for the vectors of a core.
  static bool is_long(const TensorType& part, const Node& view) {
    constexpr int64_t kLongRow = 128;
    int64_t row = 1;
    for (size_t d = cut_dim(view); d < part.shape.size(); ++d)
      row *= part.shape[d].is_const() ? part.shape[d].value() : 1;
    return row >= kLongRow;
  }

  // Whether the loop of a join or pad should have the node in it. Loops of a core are cut at edges,
  // which leaves the ends of short rows to narrow vectors; groups of threads choose among what they
  // have computed of all.
  bool is_chosen(const Node& node, const Node& view) const {
    if (dear_.count(&node) == 0) return true;
    if (context_.target.groups) return is_view(view, ViewKind::pad);
    return is_long(node.types[0], view);
  }

  // Whether a loop of a core should read through a join or pad, rather than a copy: not windows,
  // which meet its edges anywhere, nor sums and several sweeps where rows between edges are short.
  bool may_read_through(const Node& view, const Node& root, bool repeats) const {
    const OpClass op_class = root.op->traits.op_class;
    if (context_.target.groups) return true;
    const bool is_sum = op_class == OpClass::reduction && root.op->attr_index("dim") >= 0;
    if (op_class == OpClass::gather || (op_class == OpClass::reduction && !is_sum)) return false;
    if (!is_sum && !repeats) return true;
    return std::any_of(view.operands.begin(), view.operands.end(),
                       [&](Value part) { return part && is_long(part.type(), view); });
  }

  // How many elements of the node the group's loop computes; 0: not known.
  int64_t visits(const Node& node, int group) const {
    int64_t most = 0;
    for (const Node* reader : readers_.at(&node)) {
      if (group_of(reader) != group) continue;
      const auto found = visits_.find(reader);
      most = std::max(most, is_copied(*reader)       ? node.types[0].static_elements().value_or(0)
                            : found == visits_.end() ? 0
                                                     : found->second);
    }
    return most;
  }

  // The nearest join or pad of the group through which it reads the node; null: none.
  const Node* chooser_of(const Node& node, int group) const {
    for (const Node* reader : readers_.at(&node)) {
      if (group_of(reader) != group) continue;
      if (is_copied(*reader)) return reader;
      if (const auto found = chooser_.find(reader); found != chooser_.end()) return found->second;
    }
    return nullptr;
  }

  // Into how many pieces joins take the group's loop apart at most, when this one is read too: each
  // for every part of those around it.
  size_t num_pieces(const Node& view, int group) const {
    size_t own = std::max<size_t>(view.operands.size(), 2);
    for (const Node* chooser = chooser_of(view, group); chooser != nullptr;) {
      own *= std::max<size_t>(chooser->operands.size(), 2);
      if (own > kMostPieces) break;
      const auto outer = chooser_.find(chooser);
      chooser = outer == chooser_.end() ? nullptr : outer->second;
    }
    return num_pieces_[static_cast<size_t>(group)] + own;
  }

  bool is_worth_repeating(const Node& node, int group, bool repeats) {
    const Node& root = *groups_[static_cast<size_t>(group)].front();
    const std::optional<int64_t> own = node.types[0].static_elements();
    const bool is_broadcast =
        root.op->traits.op_class != OpClass::reduction && own && visits(node, group) > *own;
    const Node* chooser = chooser_of(node, group);
    if (chooser != nullptr && !is_broadcast && !is_chosen(node, *chooser)) {
      context_.refusals.push_back({node.loc, "'" + node.name + "' keeps its own loop: '" +
                                                 root.name + "' would compute it beside what '" +
                                                 chooser->name + "' joins it with"});
      return false;
    }
    if (cost(node) <= kCheap || (!repeats && !is_broadcast)) return true;
    int& num_again = num_again_[static_cast<size_t>(group)];
    if (context_.target.groups && !repeats && num_again < kMostAgain &&
        visits(node, group) <= kMostVisits) {
      num_again += 1;
      return true;
    }
    context_.refusals.push_back(
        {node.loc, "'" + node.name + "' keeps its own loop: '" + root.name +
                       "' would compute it several times for each element"});
    return false;
  }

  void refuse_large(const Node& node, const Node& root) {
    context_.refusals.push_back({node.loc, "'" + node.name + "' keeps its own loop: that of '" +
                                               root.name + "' has " + std::to_string(kMaxMembers) +
                                               " ops already"});
  }

  void refuse_shared(const Node& node, const Node& first, const std::string& why_not) {
    context_.refusals.push_back({node.loc, "'" + node.name + "' keeps its own loop: not only '" +
                                               first.name + "' reads it, and " + why_not});
  }

  Graph& graph_;
  PassContext& context_;
  std::unordered_map<const Node*, std::vector<Node*>> readers_;
  std::unordered_map<const Node*, size_t> place_;  // in the graph
  std::unordered_set<const Node*> kept_;           // outputs and mutations
  std::unordered_set<const Node*> dear_;           // in a loop of their own
  std::set<std::string> takes_none_;               // roots whose kernel takes what follows alone
  ConstantValues constants_;                       // computed from weights alone
  std::unordered_map<const Node*, int> group_of_;
  std::unordered_set<const Node*> repeated_;              // in each sweep of a group's loop
  std::unordered_map<const Node*, int64_t> visits_;       // to its elements, by a group's loop
  std::unordered_map<const Node*, const Node*> chooser_;  // of what is read through a join or pad
  std::unordered_set<const Node*> at_hand_;  // at the root's index when the loop computes that
  std::vector<std::vector<Node*>> groups_;   // each from its root, which reads, upwards
  std::vector<size_t> num_results_;          // by group
  std::vector<int> num_again_;               // functions of few elements, by group
  std::vector<size_t> num_pieces_;           // likewise
};

Result<Changed> run_fuse_pointwise(Unit& unit, const PassOptions&, PassContext& context) {
  Graph& graph = unit.module.main();
  const std::vector<FusionGroup> groups = PointwiseFuser(graph, context).run();
  LATHE_DO(outline(unit.module, graph, context.ops, "fuse_pointwise", groups));
  return groups.empty() ? Changed::no : Changed::yes;
}

}  // namespace

PassDef define_fuse_pointwise() {
  return {
      .name = "fuse_pointwise",
      .summary = "join elementwise ops with the loops that read them",
      .needs = Form::core,
      .leaves = Form::fused,
      .options = {},
      .counters = {"fused"},
      .example = R"(
func @main(%x: f32[8, 4], %y: f32[8, 4]) -> f32[8, 4] {
  %0 = mul(%x, %y)
  %1 = add(%0, %x)
  %2 = tanh(%1)
  return %2
}
=>
func @main(%x: f32[8, 4], %y: f32[8, 4]) -> f32[8, 4] {
  %2 = fused([%x, %y]) {
    (%x: f32[8, 4], %y: f32[8, 4])
    %0 = mul(%x, %y)
    %1 = add(%0, %x)
    %2 = tanh(%1)
    return %2
  }
  return %2
}
)",
      .run = run_fuse_pointwise,
  };
}

}  // namespace lathe
