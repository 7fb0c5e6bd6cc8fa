// Decides which kind of kernel makes each region, and writes it into the graph as the node's plan.
//
// Every kind that a region could be is tried: lowered by itself, with what it reads taken as there,
// and the launches of a call are priced by the cost model. The cheapest becomes the plan, an
// override before all others. Where vectors are spread over threads the model has no prices: a
// library is taken first there, and loops last, but for kinds that say themselves what they take.
// Runs last on the graph, when fusion and layouts have settled what the regions are; lower_to_loops
// then only carries the plans out. Views and other values that readers compute by themselves have
// no kernel, and so no plan.
#include <charconv>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "fmt/format.h"
#include "ir/cost/price.h"
#include "ir/graph/op_def.h"
#include "ir/program/binding.h"
#include "ir/support/diag_codes.h"
#include "ir/support/hash.h"
#include "passes/lowering/lowering.h"
#include "passes/lowering/signature.h"
#include "passes/pass.h"

namespace lathe {
namespace {

constexpr size_t kShown = 60;  // characters of a person's text in a message

// What all weights of the module hold: a bound of what a call reads of them.
double bytes_of_weights(const Module& module) {
  double bytes = 0;
  for (const auto& node : module.main().nodes) {
    if (node->op->name != "constant" || node->types.empty()) continue;
    const TensorType& type = node->types[0];
    bytes += static_cast<double>(type.static_elements().value_or(0)) *
             static_cast<double>(dtype_bytes(type.dtype));
  }
  return bytes;
}

class Chooser {
 public:
  // `seed`: of a random choice among the kinds that can; none: the cheapest. `has_all_tiles`: each
  // tile of the target is a candidate, beside the one that the kind takes by itself.
  Chooser(Module& module, PassContext& context, std::optional<uint64_t> seed, bool has_all_tiles)
      : context_(context),
        seed_(seed),
        has_all_tiles_(has_all_tiles),
        kinds_(all_kernels()),
        priced_{.ops = context.ops,
                .target = context.numerics == Numerics::strict ? strict_target() : context.target,
                .refused = context.refused,
                .numerics = context.numerics},
        lowering_(module, priced_, kinds_),
        signatures_(lowering_, Likeness::price),
        weight_bytes_(bytes_of_weights(module)) {}

  Result<Changed> run() {
    LATHE_TRY(const auto regions, lowering_.launched_nodes());
    LATHE_DO(read_overrides(regions));
    bool is_changed = false;
    for (const auto& [region, phase] : regions) {
      if (region->types[0].num_elements() == Dim(0)) continue;  // nothing is launched
      if (region->op->traits.binds_size) continue;              // the host reads a number
      const std::optional<KernelPlan> before = region->plan;
      region->plan = forced_.count(region) != 0 ? forced_[region] : std::optional<KernelPlan>();
      LATHE_DO(choose(*region, phase));
      is_changed = is_changed || region->plan != before;
    }
    context_.counters["regions"] = static_cast<int64_t>(context_.choices.size());
    return is_changed ? Changed::yes : Changed::no;
  }

 private:
  using Regions = std::vector<std::pair<Node*, Phase>>;

  // An override names a region, or a member of one.
  Status read_overrides(const Regions& regions) {
    std::unordered_map<std::string, Node*> by_name;
    std::vector<std::string> names;
    const auto add = [&](const std::string& name, Node* region) {
      if (by_name.emplace(name, region).second) names.push_back(name);
    };
    for (const auto& [region, phase] : regions) {
      add(region->name, region);
      for (const auto& body : region->bodies)
        for (const auto& member : body->nodes) add(member->name, region);
    }
    for (Override& override : context_.overrides) {
      if (override.what == Override::What::keep) continue;
      auto found = by_name.find(override.node);
      if (found == by_name.end()) return unknown_node(override, names);
      override.is_carried_out = true;
      std::optional<KernelPlan>& plan = forced_[found->second];
      if (!plan) plan = KernelPlan{};
      if (override.what == Override::What::tile) plan->tile = override.tile;
      if (override.what != Override::What::kernel) continue;
      if (find_kernel(kinds_, override.kernel) == nullptr)
        return unknown_kernel(kinds_, override.kernel, override.loc);
      plan->kind = override.kernel;
    }
    return Ok{};
  }

  Status choose(Node& region, Phase phase) {
    KernelChoice choice{.region = region.name, .like = region.name, .loc = region.loc};
    const std::optional<KernelPlan> forced = region.plan;
    region.plan.reset();
    const std::string signature = signatures_.of(region, phase).bytes;
    if (auto like = chosen_.find(signature); !forced && like != chosen_.end()) {
      choice.like = like->second.region;
      choice.plan = like->second.plan;
      choice.candidates = like->second.candidates;
      region.plan = choice.plan;
      context_.choices.push_back(std::move(choice));
      return Ok{};
    }
    const KernelCandidate* best = nullptr;
    Diag failure;
    choice.candidates = candidates(region, forced);
    for (KernelCandidate& candidate : choice.candidates) {
      region.plan = candidate.plan;
      const KernelDef& kind = *find_kernel(kinds_, candidate.plan.kind);
      if (candidate.why_not.empty()) {
        if (Status tried = price(region, kind, phase, candidate); !tried.ok()) {
          failure = std::move(tried).error();
          if (failure.is_internal) return failure;
          candidate.why_not = failure.message;
        }
      }
      const bool is_asked = forced && is_as_asked(*forced, kind);
      if (is_asked && !candidate.why_not.empty())
        return Diag{code::kUnsupported, region.loc,
                    fmt::format("'{}' cannot be made by {}: {}", region.name, kind.name,
                                candidate.why_not)};
      if (!candidate.why_not.empty() || (forced && !is_asked)) continue;
      if (best == nullptr || is_better(candidate, *best)) best = &candidate;
    }
    if (best == nullptr) return failure;
    if (!forced && seed_) best = draw(choice.candidates, signature);
    choice.is_forced = forced.has_value();
    choice.plan = best->plan;
    region.plan = best->plan;
    if (!forced) chosen_[signature] = choice;
    context_.choices.push_back(std::move(choice));
    return Ok{};
  }

  // Whether a kind is meant by a person who named it, or a tile of whatever has one.
  static bool is_as_asked(const KernelPlan& forced, const KernelDef& kind) {
    return forced.kind.empty() ? kind.has_tile : forced.kind == kind.name;
  }

  // The plans to try, unpriced: of every kind that takes the region's members, and of what was
  // asked for, with the reason where that cannot be.
  std::vector<KernelCandidate> candidates(const Node& region,
                                          const std::optional<KernelPlan>& forced) const {
    std::vector<KernelCandidate> found;
    for (const KernelDef& kind : kinds_) {
      const bool is_asked = forced && is_as_asked(*forced, kind);
      Verdict answer = applies(kind, region, lowering_.target());
      const bool wants_tile = is_asked && !forced->tile.empty();
      if (answer.is_made() && wants_tile && !kind.has_tile) answer = {"it has no tile"};
      if (!answer.is_made() && !is_asked) continue;
      if (answer.is_made()) answer = fits_sizes(kind, region);
      KernelCandidate candidate{.plan = {kind.name}, .why_not = answer.why_not};
      if (wants_tile) candidate.plan.tile = forced->tile;
      found.push_back(candidate);
      if (!has_all_tiles_ || is_asked || !kind.has_tile) continue;
      for (const RegisterTile& tile : lowering_.target().gemm_tiles) {
        candidate.plan.tile = {tile.rows, tile.vectors};
        found.push_back(candidate);
      }
    }
    return found;
  }

  // One that can, the same for regions that are alike.
  const KernelCandidate* draw(const std::vector<KernelCandidate>& candidates,
                              const std::string& signature) const {
    std::vector<const KernelCandidate*> makers;
    for (const KernelCandidate& candidate : candidates)
      if (candidate.why_not.empty()) makers.push_back(&candidate);
    return makers[Hasher().add(*seed_).add(signature).value() % makers.size()];
  }

  bool has_prices() const { return !lowering_.target().groups; }

  // Without prices: a library before kinds of some ops alone, and those before loops.
  int rank(const KernelCandidate& candidate) const {
    const KernelDef& kind = *find_kernel(kinds_, candidate.plan.kind);
    return kind.needs == Needs::library ? 2 : kind.roots.empty() ? 0 : 1;
  }

  bool is_better(const KernelCandidate& candidate, const KernelCandidate& best) const {
    const bool are_priced = has_prices() || (candidate.seconds > 0 && best.seconds > 0);
    return are_priced ? candidate.seconds < best.seconds : rank(candidate) > rank(best);
  }

  // Of the launches of a call; what runs once, when weights are bound, costs nothing. A region that
  // runs there altogether is priced by that.
  Status price(Node& region, const KernelDef& kind, Phase phase, KernelCandidate& candidate) {
    LATHE_TRY(const Lowering::Trial trial, lowering_.try_kernel(region, kind, phase));
    candidate.why_not = trial.answer.why_not;
    for (const auto* launches : {&trial.program.init, &trial.program.steps})
      for (const Launch& launch : *launches)
        if (const auto* library = std::get_if<LibraryLaunch>(&launch.kind))
          if (const std::string* why = lowering_.refusal(region, routine_name(library->call)))
            candidate.why_not = "the library refused it: " + *why;
    if (!candidate.why_not.empty()) return Ok{};
    if (!has_prices()) {
      candidate.seconds = trial.answer.seconds;
      return Ok{};
    }
    Program program = trial.program;
    if (!program.symbols.empty()) {
      LATHE_TRY(program, instantiate(program, lowering_.hints()));
    }
    for (const Launch& launch : phase == Phase::init ? program.init : program.steps)
      candidate.seconds += predict(program, launch, lowering_.target(), weight_bytes_).seconds;
    return Ok{};
  }

  Diag unknown_node(const Override& override, const std::vector<std::string>& names) const {
    const std::string near = nearest(override.node, names);
    return {code::kUndefinedValue, override.loc,
            fmt::format("'{}': no kernel computes '{}'{}", override.text.substr(0, kShown),
                        override.node.substr(0, kShown),
                        near.empty() ? "" : fmt::format("; did you mean '{}'?", near))};
  }

  PassContext& context_;
  std::optional<uint64_t> seed_;
  bool has_all_tiles_;
  std::vector<KernelDef> kinds_;
  PassContext priced_;
  Lowering lowering_;
  Signatures signatures_;
  double weight_bytes_;
  std::unordered_map<std::string, KernelChoice> chosen_;  // by signature: layers repeat
  std::unordered_map<const Node*, std::optional<KernelPlan>> forced_;  // kind empty: a tile alone
};

// "own" or "all".
Result<bool> read_tiles(const std::string& tiles) {
  if (tiles == "own" || tiles == "all") return tiles == "all";
  return Diag{code::kBadValue, Loc::unknown(),
              fmt::format("'tiles' is 'own' or 'all', got '{}'", tiles.substr(0, kShown))};
}

// "cheapest", or the number in "random:7".
Result<std::optional<uint64_t>> read_pick(const std::string& pick) {
  constexpr std::string_view kRandom = "random:";
  if (pick == "cheapest") return std::optional<uint64_t>();
  uint64_t seed = 0;
  const char* const end = pick.data() + pick.size();
  const bool is_random = pick.starts_with(kRandom) && pick.size() > kRandom.size();
  const auto [at, error] =
      std::from_chars(pick.data() + (is_random ? kRandom.size() : 0), end, seed);
  if (is_random && error == std::errc() && at == end) return std::optional(seed);
  return Diag{
      code::kBadValue, Loc::unknown(),
      fmt::format("'pick' is 'cheapest' or 'random:SEED', got '{}'", pick.substr(0, kShown))};
}

Result<Changed> run_choose_kernels(Unit& unit, const PassOptions& options, PassContext& context) {
  LATHE_TRY(const std::optional<uint64_t> seed, read_pick(options.at("pick")));
  LATHE_TRY(const bool has_all_tiles, read_tiles(options.at("tiles")));
  return Chooser(unit.module, context, seed, has_all_tiles).run();
}

}  // namespace

PassDef define_choose_kernels() {
  return {
      .name = "choose_kernels",
      .summary = "try every kind of kernel for each region and plan the cheapest",
      .needs = Form::core,
      .leaves = Form::core,
      .options = {{"pick", "cheapest", "or random:SEED, any kind that can: what tests compare"},
                  {"tiles", "own", "or all: each tile of the target is a candidate"}},
      .counters = {"regions"},
      .example = R"(
func @main(%x: f32[40, 64], %w: f32[64, 48]) -> f32[40, 48] {
  %0 = matmul(%x, %w)
  %1 = exp(%0)
  return %1
}
=>
func @main(%x: f32[40, 64], %w: f32[64, 48]) -> f32[40, 48] {
  %0 = matmul(%x, %w) using contraction
  %1 = exp(%0) using loops
  return %1
}
)",
      .run = run_choose_kernels,
  };
}

}  // namespace lathe
