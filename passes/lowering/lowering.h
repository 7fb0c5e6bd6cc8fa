// From a fused graph to a program: where each value lives, and the launches that make it.
//
// A node's plan says which kind of kernel makes its results; without one plain loops do. Results
// of a node that lie alike, in shape and layout, are made together; nothing makes those of several
// that nobody reads. Nothing is chosen here: a kind that cannot make what its plan asks for is an
// error.
//
// Values are made on demand. A view is never made unless something must find its elements in
// memory: who reads it reads through it. What depends on constants alone is made once, in
// Program::init.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/graph/node.h"
#include "ir/loop/node.h"
#include "ir/program/program.h"
#include "ir/support/result.h"
#include "ir/templates/loop_nest.h"
#include "passes/analysis/patterns.h"
#include "passes/lowering/kernel_def.h"
#include "passes/lowering/launch_info.h"
#include "passes/pass.h"

namespace lathe {

enum class Phase : uint8_t { init, step };

// The value of a fused node's body that is this result; of another op the result.
Value computed_by(Value result);

class KernelContext;
class Recorder;
struct Recipe;
struct Recipes;
struct RegionSignature;

// Whether regions that are alike are lowered once or each anew: the program is the same.
enum class Repeats : uint8_t { once, each };

class Lowering {
 public:
  // `kinds` are looked up by the names of plans.
  Lowering(Module& module, PassContext& context, std::vector<KernelDef> kinds);
  ~Lowering();
  // Params from `num_inputs` on are state: weights that the graph replaces.
  Result<Program> run(size_t num_inputs, Repeats repeats);

  // --- one region by itself, for who chooses among kinds; not together with run()

  // The nodes that run() makes launches for, with their phase.
  Result<std::vector<std::pair<Node*, Phase>>> launched_nodes();
  // What `kind` makes of the region's results, which are the program's only outputs. What the
  // region reads is there: the init and the steps are those of the region alone.
  struct Trial {
    Verdict answer;
    Program program;
  };
  Result<Trial> try_kernel(Node& region, const KernelDef& kind, Phase phase);

  // --- for kinds of kernels

  // The buffer that holds the value's elements as its type says; appends what makes it when needed.
  Result<BufferId> materialize(Value value);
  // What is made of the value alone and is the same for all who name it so: made for the first.
  using MakeFn = std::function<Result<BufferId>()>;
  Result<BufferId> make_once(Value of, const std::string& name, const MakeFn& make);
  // True when readers take the value's elements from an expression instead of a buffer.
  bool is_inlined(Value value, Phase phase) const;
  bool is_constant(Value value) const { return constants_.contains(value); }
  // When what is made of the value alone is made, for readers in that phase: once, where it can be.
  Phase phase_of(Value value, Phase readers) const {
    return is_constant(value) ? Phase::init : readers;
  }
  // By a node, the caller or a mutation.
  bool is_read(Value value) const { return reads_.count(value) != 0; }

  // A buffer of at least the type's elements, named after a node; init's is persistent when a step
  // reads it.
  BufferId add_temporary(const Node& of, std::string_view suffix, TensorType type,
                         const Dim& num_elements, Phase phase);
  // Stays where it is while others are added.
  const ProgramBuffer& buffer(BufferId id) const { return buffers_[static_cast<size_t>(id)]; }

  // Appends a launch of the kernel, which is shared with an equal one.
  Status emit_kernel(loop::Kernel kernel, std::vector<BufferId> buffers, const LaunchInfo& info,
                     Phase phase);
  // Appends what a library of the target runs.
  void emit_library(LibraryCall call, const LaunchInfo& info, Phase phase);
  // Appends the loop that writes element(index) to every element of `out`, which has the kernel's
  // type.
  using ElementFn = std::function<loop::Expr(std::span<const loop::Expr> index)>;
  Status emit_elements(KernelContext& kernel, BufferId out, const LaunchInfo& info,
                       const ElementFn& element);
  // The same of some elements that follow each other: those of a tensor of that type, from element
  // `first` of `out` on, a multiple of kBufferAlignment bytes. Parts share a kernel.
  struct Part {
    TensorType type;
    int64_t first = 0;
  };
  Status emit_part(KernelContext& kernel, BufferId out, const Part& part, const LaunchInfo& info,
                   const ElementFn& element);
  // Appends one plain loop that makes these results, of an op or of a fused node.
  Status emit_loops(const Node& node, std::span<const Destination> outs, Phase phase);
  const Target& target() const { return target_; }
  // Why a library refused that routine to the region; null when it did not.
  const std::string* refusal(const Node& region, std::string_view routine) const;
  // Ranges of what sizes are made of, and the values that choices reckon with.
  const std::map<std::string, DimRange>& symbols() const { return symbols_; }
  const std::map<std::string, int64_t>& hints() const { return hints_; }

 private:
  BufferId add_buffer(ProgramBuffer buffer);
  void append(Launch launch, const Node& origin, Phase phase);
  Result<BufferId> make(Value value);
  void break_chains();
  bool is_rearranged_constant(Value value) const;
  Status bind_params();
  Status bind_outputs();
  void bind_mutations(size_t num_inputs);
  Status lower_node(Node& node, Phase phase);
  Status bind_size(Node& node);
  Status add_assertions();
  Status join_sweep(const Node& key);
  std::vector<std::vector<int>> results_alike(const Node& node) const;
  Status emit_or_repeat(Node& node, std::span<const Destination> outs, Phase phase);
  Status repeat(const Recipe& recipe, const RegionSignature& signature,
                std::span<const Destination> outs);
  Status emit_planned(Node& node, std::span<const Destination> outs, Phase phase);
  // As the other, of several buffers of one shape and layout: element(i, index) goes to outs[i].
  using ElementsFn = std::function<loop::Expr(size_t i, std::span<const loop::Expr> index)>;
  Result<loop::Kernel> schedule_elements(KernelContext& kernel, std::span<const BufferId> outs,
                                         const TensorType& type, const ElementsFn& element);
  Status emit_elements(KernelContext& kernel, std::span<const BufferId> outs,
                       const TensorType& type, const LaunchInfo& info, const ElementsFn& element);
  Result<BufferId> constant_buffer(const Node& node);
  Status copy_outputs();
  void settle_persistent();

  Graph& graph_;
  const std::map<std::string, DimRange> symbols_;
  const std::map<std::string, int64_t> hints_;
  PassContext& context_;
  std::vector<KernelDef> kinds_;
  std::string region_;     // whose launches are being appended
  bool is_trial_ = false;  // what is read is there, and nothing makes it
  Target target_;          // the context's, as its numerics want it
  ConstantValues constants_;
  std::unordered_set<const Node*> chain_breaks_;
  Program program_;  // without its buffers until the end
  std::deque<ProgramBuffer> buffers_;
  std::map<Value, BufferId> places_;                           // values that have a buffer
  std::map<std::pair<Value, std::string>, BufferId> derived_;  // what make_once() made
  std::map<Value, BufferId> outputs_;                  // values that are made in an output buffer
  std::vector<Value> output_values_;                   // user outputs, then mutations
  std::map<std::string, BufferId> weights_;            // by name
  std::unordered_map<std::string, int> kernel_index_;  // by canonical form
  std::unique_ptr<Recipes> recipes_;  // null when every region is lowered by itself
  Recorder* recorder_ = nullptr;      // of the region that is being lowered
  std::set<Value> reads_;             // what somebody reads
};

}  // namespace lathe
