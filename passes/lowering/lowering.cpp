// Places, phases and launches: see lowering.h.
#include "passes/lowering/lowering.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "fmt/format.h"
#include "ir/loop/expand_math.h"
#include "ir/loop/lift_sizes.h"
#include "ir/loop/rebase.h"
#include "ir/loop/strict.h"
#include "ir/loop/text.h"
#include "ir/loop/traffic.h"
#include "ir/program/tidy.h"
#include "ir/support/canonical.h"
#include "ir/support/diag_codes.h"
#include "passes/analysis/symbols.h"
#include "passes/lowering/kernel_context.h"
#include "passes/lowering/recipe.h"

namespace lathe {
namespace {

using loop::Expr;

// Values made on demand ask for others, each one deeper.
constexpr int kMaxDemandDepth = 64;
constexpr int64_t kMostElements = int64_t{1} << 48;
constexpr int kStrictLanes = 16;  // of f32 and everything else: the widest target's registers

using Index = std::span<const Expr>;

// Who reads through it would meet a condition at every element.
bool is_copied_view(const Node& node) {
  const ViewKind view = node.op->traits.view;
  return view == ViewKind::join || view == ViewKind::pad;
}

Dim elements(const TensorType& type) { return type.num_elements(); }
Dim bytes_of(const TensorType& type) { return elements(type) * Dim(dtype_bytes(type.dtype)); }

// Sizes whose bytes, and sums of a few, are numbers; of symbols who gives them values finds out.
Status check_types(const Node& node) {
  for (const TensorType& type : node.types) {
    const Dim count = elements(type);
    if (count.is_too_large() || (count.is_const() && count.value() > kMostElements))
      return Diag{code::kTooLarge, node.loc,
                  fmt::format("'{}' is {}, of {} elements; expected at most {}", node.name,
                              to_string(type), count.str(), kMostElements)};
  }
  return Ok{};
}

Status check_types(const Graph& graph) {
  for (const auto& node : graph.nodes) {
    LATHE_DO(check_types(*node));
    for (const auto& body : node->bodies) LATHE_DO(check_types(*body));
  }
  for (const auto& param : graph.params) LATHE_DO(check_types(*param));
  return Ok{};
}

// Of the elements that a kernel without sizes touches, each once.
int64_t touched_bytes(const loop::Kernel& kernel) {
  const std::vector<int64_t> touched = loop::touched_elements(kernel);
  int64_t bytes = 0;
  size_t next = 0;
  for (const loop::Buffer& buffer : kernel.buffers)
    if (buffer.space == loop::Space::global) bytes += touched[next++] * dtype_bytes(buffer.dtype);
  return bytes;
}

// Of all elements of its buffers: which of them a kernel touches depends on its sizes.
Dim whole_bytes(const loop::Kernel& kernel, const std::vector<Dim>& sizes) {
  std::map<std::string, Dim> values;
  const std::vector<loop::Var> dims = loop::dims(kernel);
  for (size_t i = 0; i < dims.size(); ++i) values.emplace(kernel.vars[dims[i].id].name, sizes[i]);
  Dim bytes = 0;
  for (const loop::Buffer& buffer : kernel.buffers)
    if (buffer.space == loop::Space::global)
      bytes = bytes + buffer.size.substitute(values) * Dim(dtype_bytes(buffer.dtype));
  return bytes;
}

}  // namespace

Value computed_by(Value result) {
  const Node& node = *result.node;
  return node.bodies.empty() ? result : node.bodies[0]->outputs[static_cast<size_t>(result.index)];
}

Lowering::Lowering(Module& module, PassContext& context, std::vector<KernelDef> kinds)
    : graph_(module.main()),
      symbols_(ranges_of_symbols(module)),
      hints_(hints_of_symbols(module)),
      context_(context),
      kinds_(std::move(kinds)),
      target_(context.target),
      constants_(graph_) {
  target_.uses_tf32 = uses_tf32(context.target, context.numerics);
  if (context.numerics == Numerics::strict) {
    target_.sum_lanes = kStrictLanes;
    target_.has_pair_dot = false;
  }
  for (const auto& node : graph_.nodes)
    for (Value operand : node->operands)
      if (operand) reads_.insert(operand);
  for (Value output : graph_.outputs) reads_.insert(output);
  for (const Mutation& mutation : graph_.mutations) reads_.insert(mutation.value);
}

Lowering::~Lowering() = default;

Result<Program> Lowering::run(size_t num_inputs, Repeats repeats) {
  LATHE_TRY(const auto nodes, launched_nodes());
  program_.name = graph_.name;
  program_.symbols = symbols_;
  program_.hints = hints_;
  LATHE_DO(bind_params());
  LATHE_DO(bind_outputs());
  bind_mutations(num_inputs);
  if (repeats == Repeats::once)
    recipes_ = std::make_unique<Recipes>(Recipes{Signatures(*this, Likeness::code)});
  for (const auto& [node, phase] : nodes) LATHE_DO(lower_node(*node, phase));
  LATHE_DO(copy_outputs());
  LATHE_DO(add_assertions());
  program_.buffers.assign(std::move_iterator(buffers_.begin()), std::move_iterator(buffers_.end()));
  share_constants(program_);
  drop_unread(program_);
  settle_persistent();
  return std::move(program_);
}

Result<std::vector<std::pair<Node*, Phase>>> Lowering::launched_nodes() {
  LATHE_DO(check_types(graph_));
  break_chains();
  std::vector<std::pair<Node*, Phase>> nodes;
  for (const auto& node : graph_.nodes) {
    if (node->types.empty() || node->op->name == "constant") continue;
    const bool is_constant = constants_.contains(node->result());
    const bool is_made_on_demand = is_constant ? chain_breaks_.count(node.get()) == 0
                                               : is_inlined(node->result(), Phase::step);
    if (!is_made_on_demand) nodes.emplace_back(node.get(), is_constant ? Phase::init : Phase::step);
  }
  return nodes;
}

Result<Lowering::Trial> Lowering::try_kernel(Node& region, const KernelDef& kind, Phase phase) {
  is_trial_ = true;
  program_ = {};
  buffers_.clear();
  places_.clear();
  derived_.clear();
  weights_.clear();
  kernel_index_.clear();
  Trial trial;
  for (const std::vector<int>& results : results_alike(region)) {
    std::vector<Destination> outs;
    for (int result : results) {
      ProgramBuffer buffer{.name = region.name, .type = region.types[static_cast<size_t>(result)]};
      buffer.num_bytes = bytes_of(buffer.type);
      buffer.kind = BufferKind::output;
      outs.push_back({result, add_buffer(std::move(buffer))});
      program_.outputs.push_back(outs.back().buffer);
    }
    LATHE_TRY(trial.answer, kind.emit(*this, region, outs, phase));
    if (!trial.answer.is_made()) break;
  }
  program_.buffers.assign(std::move_iterator(buffers_.begin()), std::move_iterator(buffers_.end()));
  trial.program = std::move(program_);
  trial.program.symbols = symbols_;
  return trial;
}

// Chains of views and of constants are made when somebody reads their end, by recursion. In long
// ones a value is made in memory now and then, in graph order, so that nobody has to go further up.
void Lowering::break_chains() {
  std::unordered_map<const Node*, int> depths;
  for (const auto& node : graph_.nodes) {
    if (node->types.empty() || node->op->name == "constant") continue;
    const bool is_view = is_inlined(node->result(), Phase::step);
    if (!is_view && !constants_.contains(node->result())) continue;
    int above = 0;
    for (Value operand : node->operands) {
      if (operand) above = std::max(above, depths[operand.node]);
    }
    int depth =
        above + (node->bodies.empty() ? 1 : static_cast<int>(node->bodies[0]->nodes.size()));
    if (depth > kMaxDemandDepth) {
      chain_breaks_.insert(node.get());
      depth = 0;
    }
    depths[node.get()] = depth;
  }
}

BufferId Lowering::add_buffer(ProgramBuffer buffer) {
  buffers_.push_back(std::move(buffer));
  return static_cast<BufferId>(buffers_.size()) - 1;
}

BufferId Lowering::add_temporary(const Node& of, std::string_view suffix, TensorType type,
                                 const Dim& num_elements, Phase phase) {
  ProgramBuffer buffer;
  buffer.name = of.name + std::string(suffix);
  buffer.num_bytes = num_elements * Dim(dtype_bytes(type.dtype));
  buffer.type = std::move(type);
  buffer.kind = phase == Phase::init ? BufferKind::persistent : BufferKind::temporary;
  const BufferId id = add_buffer(std::move(buffer));
  if (recorder_ != nullptr)
    recorder_->add_temporary(of, suffix, buffers_.back().type, num_elements, phase, id);
  return id;
}

// What init computes anyway it writes as steps read it: a table of biases with its heads first.
bool Lowering::is_rearranged_constant(Value value) const {
  const Traits& traits = value.node->op->traits;
  const bool is_permuted = traits.op_class == OpClass::view && traits.view == ViewKind::permute;
  if (!is_permuted || !constants_.contains(value)) return false;
  Value source = value;
  while (source.node->op->traits.op_class == OpClass::view && !source.node->operands.empty())
    source = source.node->operands[0];
  return source.node->op->name != "constant" && !is_inlined(source, Phase::step);
}

bool Lowering::is_inlined(Value value, Phase phase) const {
  const Node& node = *value.node;
  if (node.op->name == "constant") return splat_value(value).has_value();
  if (chain_breaks_.count(&node) != 0) return false;
  switch (node.op->traits.op_class) {
    case OpClass::view:
      return !is_copied_view(node) && !(phase == Phase::step && is_rearranged_constant(value));
    case OpClass::source:
      return static_cast<bool>(node.op->lower);
    case OpClass::elementwise:
      return phase == Phase::init && constants_.contains(value) &&
             static_cast<bool>(node.op->lower);
    default:
      return false;
  }
}

// What reading it takes to make is no part of the region that reads.
Result<BufferId> Lowering::materialize(Value value) {
  Recorder* const recorder = std::exchange(recorder_, nullptr);
  Result<BufferId> buffer = make(value);
  recorder_ = recorder;
  if (recorder_ != nullptr && buffer.ok()) recorder_->read(value, *buffer);
  return buffer;
}

Result<BufferId> Lowering::make_once(Value of, const std::string& name, const MakeFn& make) {
  if (auto found = derived_.find({of, name}); found != derived_.end()) return found->second;
  LATHE_TRY(const BufferId made, make());
  derived_[{of, name}] = made;
  return made;
}

Result<BufferId> Lowering::make(Value value) {
  if (auto found = places_.find(value); found != places_.end()) return found->second;
  if (value.node->op->name == "constant") return constant_buffer(*value.node);
  LATHE_CHECK(is_trial_ || value.node->op->name != "param",
              fmt::format("the param '{}' has no buffer", value.node->name));
  const bool is_constant = constants_.contains(value);
  if (is_trial_) {
    const TensorType& type = value.type();
    const BufferId there = add_temporary(*value.node, "", type, elements(type),
                                         is_constant ? Phase::init : Phase::step);
    places_[value] = there;
    return there;
  }
  LATHE_DO(lower_node(*value.node, is_constant ? Phase::init : Phase::step));
  auto found = places_.find(value);
  LATHE_CHECK(found != places_.end(), fmt::format("'{}' was lowered, but result {} was not made",
                                                  value.node->name, value.index));
  return found->second;
}

Result<BufferId> Lowering::constant_buffer(const Node& node) {
  ProgramBuffer buffer;
  buffer.name = node.name;
  buffer.type = node.types[0];
  buffer.num_bytes = bytes_of(buffer.type);
  if (is_weight(node)) {
    buffer.kind = BufferKind::weight;
    buffer.weight = node.string_attr("name");
    if (auto known = weights_.find(buffer.weight); known != weights_.end()) return known->second;
  } else {
    buffer.kind = BufferKind::constant;
    LATHE_CHECK(is_literal(node) && !node.is_none("value"),
                fmt::format("the constant '{}' has neither name nor value", node.name));
    buffer.bytes =
        to_bytes(literal_tensor(node.attr("value"), buffer.type.dtype, buffer.type.static_shape()));
  }
  const std::string weight = buffer.weight;
  const BufferId id = add_buffer(std::move(buffer));
  if (!weight.empty()) weights_[weight] = id;
  places_[{const_cast<Node*>(&node), 0}] = id;
  return id;
}

Status Lowering::lower_node(Node& node, Phase phase) {
  if (node.op->traits.has_effects && node.types.empty()) return Ok{};
  if (node.op->traits.binds_size) return bind_size(node);
  // What a region wants made on its way is part of it.
  const bool is_outermost = region_.empty();
  if (is_outermost) region_ = node.name;
  for (const std::vector<int>& results : results_alike(node)) {
    std::vector<Destination> outs;
    for (int result : results) {
      const Value value{&node, result};
      if (places_.count(value) != 0) continue;
      const TensorType& type = node.types[static_cast<size_t>(result)];
      auto output = outputs_.find(value);
      const BufferId out = output != outputs_.end() && phase == Phase::step
                               ? output->second
                               : add_temporary(node, "", type, elements(type), phase);
      outs.push_back({result, out});
    }
    if (outs.empty()) continue;
    LATHE_DO(emit_or_repeat(node, outs, phase));
    for (const Destination& out : outs) places_[{&node, out.result}] = out.buffer;
  }
  if (is_outermost) region_.clear();
  return Ok{};
}

// The results that one kernel makes, in lists: those of one shape and layout. Of several results
// only those that somebody reads.
std::vector<std::vector<int>> Lowering::results_alike(const Node& node) const {
  std::vector<std::vector<int>> lists;
  for (int result = 0; result < static_cast<int>(node.types.size()); ++result) {
    if (node.types.size() > 1 && !is_read({const_cast<Node*>(&node), result})) continue;
    const TensorType& type = node.types[static_cast<size_t>(result)];
    const auto alike = std::find_if(lists.begin(), lists.end(), [&](const std::vector<int>& list) {
      const TensorType& first = node.types[static_cast<size_t>(list.front())];
      return first.shape == type.shape && first.layout == type.layout;
    });
    if (alike == lists.end())
      lists.push_back({result});
    else
      alike->push_back(result);
  }
  return lists;
}

Status Lowering::emit_or_repeat(Node& node, std::span<const Destination> outs, Phase phase) {
  if (!recipes_) return emit_planned(node, outs, phase);
  const RegionSignature signature = recipes_->signatures.of(node, phase);
  CanonicalBytes key;
  key.add(std::string_view(signature.bytes)).add(outs.size());
  for (const Destination& out : outs) key.add(out.result);
  if (node.plan) {
    key.add(std::string_view(node.plan->kind));
    for (int64_t extent : node.plan->tile) key.add(extent);
  }
  std::optional<Recipe>& recipe = recipes_->known[key.take()];
  if (recipe) return repeat(*recipe, signature, outs);
  Recorder recorder(signature, outs);
  recorder_ = &recorder;
  const Status emitted = emit_planned(node, outs, phase);
  recorder_ = nullptr;
  if (emitted.ok()) recipe = recorder.take();
  return emitted;
}

Status Lowering::repeat(const Recipe& recipe, const RegionSignature& signature,
                        std::span<const Destination> outs) {
  std::vector<BufferId> buffers;
  for (const Destination& out : outs) buffers.push_back(out.buffer);
  for (const auto& step : recipe.steps) {
    if (const auto* read = std::get_if<Recipe::Read>(&step)) {
      LATHE_TRY(buffers.emplace_back(), materialize(signature.values[read->value]));
    } else if (const auto* made = std::get_if<Recipe::Temporary>(&step)) {
      buffers.push_back(add_temporary(*signature.nodes[made->node], made->suffix, made->type,
                                      made->num_elements, made->phase));
    } else {
      const auto& emitted = std::get<Recipe::Emitted>(step);
      Launch launch = emitted.launch;
      for (BufferId& buffer : std::get<KernelLaunch>(launch.kind).buffers)
        buffer = buffers[static_cast<size_t>(buffer)];
      append(std::move(launch), *signature.nodes[emitted.origin], emitted.phase);
    }
  }
  return Ok{};
}

Status Lowering::emit_planned(Node& node, std::span<const Destination> outs, Phase phase) {
  if (!node.plan) return emit_loops(node, outs, phase);
  const KernelDef* kind = find_kernel(kinds_, node.plan->kind);
  if (kind == nullptr) return unknown_kernel(kinds_, node.plan->kind, node.loc);
  Verdict answer = applies(*kind, node, target_);
  if (answer.is_made()) answer = fits_sizes(*kind, node);
  if (answer.is_made() && elements(buffer(outs.front().buffer).type) != Dim(0)) {
    LATHE_TRY(answer, kind->emit(*this, node, outs, phase));
  }
  if (answer.is_made()) return Ok{};
  return Diag{code::kUnsupported, node.loc,
              fmt::format("'{}' cannot be made by {}: {}", node.name, kind->name, answer.why_not)};
}

Status Lowering::emit_loops(const Node& node, std::span<const Destination> outs, Phase phase) {
  std::vector<BufferId> buffers;
  for (const Destination& out : outs) buffers.push_back(out.buffer);
  const TensorType& type = buffer(buffers.front()).type;
  if (elements(type) == Dim(0)) return Ok{};
  KernelContext kernel(*this, node, phase);
  return emit_elements(kernel, buffers, type, describe(node), [&](size_t i, Index index) {
    const Value value{const_cast<Node*>(&node), outs[i].result};
    return kernel.compute(computed_by(value), index);
  });
}

Status Lowering::emit_elements(KernelContext& kernel, BufferId out, const LaunchInfo& info,
                               const ElementFn& element) {
  return emit_part(kernel, out, {buffer(out).type}, info, element);
}

Status Lowering::emit_part(KernelContext& kernel, BufferId out, const Part& part,
                           const LaunchInfo& info, const ElementFn& element) {
  LATHE_DO(emit_elements(kernel, {&out, 1}, part.type, info,
                         [&](size_t, Index index) { return element(index); }));
  if (part.first == 0) return Ok{};
  std::vector<Launch>& launches = kernel.phase() == Phase::init ? program_.init : program_.steps;
  auto& launch = std::get<KernelLaunch>(launches.back().kind);
  launch.offsets.resize(launch.buffers.size());
  const auto at = std::find(launch.buffers.begin(), launch.buffers.end(), out);
  launch.offsets[static_cast<size_t>(at - launch.buffers.begin())] += part.first;
  return Ok{};
}

Status Lowering::emit_elements(KernelContext& kernel, std::span<const BufferId> outs,
                               const TensorType& type, const LaunchInfo& info,
                               const ElementsFn& element) {
  LATHE_TRY(loop::Kernel loops, schedule_elements(kernel, outs, type, element));
  return emit_kernel(std::move(loops), kernel.buffers(), info, kernel.phase());
}

Result<loop::Kernel> Lowering::schedule_elements(KernelContext& kernel,
                                                 std::span<const BufferId> outs,
                                                 const TensorType& type,
                                                 const ElementsFn& element) {
  const ElementLoops loops = element_loops(kernel.kernel(), type);
  LoopNest nest{.vars = loops.vars, .extents = loops.extents, .hints = hints_};
  nest.is_once = kernel.phase() == Phase::init;
  for (size_t i = 0; i < outs.size(); ++i) {
    const Expr value = element(i, loops.index);
    nest.values.push_back(loop::cast(value, buffer(outs[i]).type.dtype));
  }
  nest.index = kernel.address(type, loops.index);
  for (BufferId out : outs) nest.outs.push_back(kernel.use(out, true));
  if (kernel.error()) return *kernel.error();
  nest.kernel = kernel.kernel();
  // As if there were no more of it.
  if (type.num_elements() != buffer(outs.front()).type.num_elements())
    for (loop::BufferRef out : nest.outs) nest.kernel.buffers[out.id].size = type.num_elements();
  return schedule(std::move(nest), target());
}

const std::string* Lowering::refusal(const Node& region, std::string_view routine) const {
  const auto found = context_.refused.find({region.name, std::string(routine)});
  return found == context_.refused.end() ? nullptr : &found->second;
}

Status Lowering::emit_kernel(loop::Kernel kernel, std::vector<BufferId> buffers,
                             const LaunchInfo& info, Phase phase) {
  Launch launch;
  launch.label = info.label;
  launch.flops = info.flops;
  kernel.origins = {info.origin->loc};
  if (context_.numerics == Numerics::strict)
    loop::make_strict(kernel);
  else if (!target_.has_functions)
    loop::expand_math(kernel, target_.has_fma);
  std::vector<Dim> sizes = loop::lift_sizes(kernel);
  if (is_trial_) {  // who prices a kernel looks at it closely enough
    launch.kind = KernelLaunch{
        static_cast<int>(program_.kernels.size()), std::move(buffers), {}, std::move(sizes)};
    program_.kernels.push_back(std::move(kernel));
    append(std::move(launch), *info.origin, phase);
    return Ok{};
  }
  launch.bytes = sizes.empty() ? Dim(touched_bytes(kernel)) : whole_bytes(kernel, sizes);
  std::vector<int64_t> offsets = loop::rebase(kernel, kBufferAlignment);
  auto [found, is_new] = kernel_index_.emplace(loop::canonical_form(kernel),
                                               static_cast<int>(program_.kernels.size()));
  if (is_new) {
    kernel.name = fmt::format("{}_{}", launch.label, found->second);
    program_.kernels.push_back(std::move(kernel));
  }
  const bool is_further =
      std::any_of(offsets.begin(), offsets.end(), [](int64_t offset) { return offset > 0; });
  launch.kind =
      KernelLaunch{found->second, std::move(buffers),
                   is_further ? std::move(offsets) : std::vector<int64_t>{}, std::move(sizes)};
  append(std::move(launch), *info.origin, phase);
  return Ok{};
}

void Lowering::emit_library(LibraryCall call, const LaunchInfo& info, Phase phase) {
  Launch launch;
  launch.label = info.label;
  launch.flops = info.flops;
  for (const CallOperand& operand : operands(call))
    launch.bytes = launch.bytes + distinct_elements(*operand.tensor) *
                                      Dim(dtype_bytes(buffer(operand.tensor->buffer).type.dtype));
  launch.kind = LibraryLaunch{std::move(call)};
  append(std::move(launch), *info.origin, phase);
}

void Lowering::append(Launch launch, const Node& origin, Phase phase) {
  launch.region = region_;
  launch.origins = {origin.loc};
  if (recorder_ != nullptr) recorder_->emit(launch, origin, phase);
  (phase == Phase::init ? program_.init : program_.steps).push_back(std::move(launch));
}

Status Lowering::copy_outputs() {
  for (size_t i = 0; i < output_values_.size(); ++i) {
    const Value value = output_values_[i];
    const BufferId out = program_.outputs[i];
    auto made = outputs_.find(value);
    if (made != outputs_.end() && made->second == out) continue;
    if (elements(value.type()) == Dim(0)) continue;
    auto place = places_.find(value);
    KernelContext kernel(*this, Phase::step, value.node->name);
    const bool is_whole = place != places_.end() && value.type().layout.empty();
    if (is_whole) {
      Launch launch;
      launch.label = "copy";
      launch.origins = {value.node->loc};
      launch.bytes = Dim(2) * buffer(out).num_bytes;
      launch.kind = CopyLaunch{place->second, out};
      program_.steps.push_back(std::move(launch));
      continue;
    }
    if (!is_inlined(value, Phase::step)) {
      LATHE_TRY(const BufferId source, materialize(value));
      kernel.read_from(value, source);
    }
    LATHE_DO(emit_elements(kernel, out, {"copy", value.node, 0}, [&](std::span<const Expr> index) {
      return kernel.element(value, index);
    }));
  }
  return Ok{};
}

// What init makes for itself alone lives in init's arena and goes when init has run.
void Lowering::settle_persistent() {
  std::set<BufferId> read_by_steps(program_.outputs.begin(), program_.outputs.end());
  for (const Launch& launch : program_.steps) {
    for (BufferId id : launch.buffers()) read_by_steps.insert(id);
  }
  for (size_t i = 0; i < program_.buffers.size(); ++i) {
    ProgramBuffer& buffer = program_.buffers[i];
    if (buffer.kind == BufferKind::persistent &&
        read_by_steps.count(static_cast<BufferId>(i)) == 0) {
      buffer.kind = BufferKind::temporary;
    }
  }
}

}  // namespace lathe
