// Races between builds of one model: see autotune.h.
#include "frontend/driver/autotune.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "frontend/driver/choices_file.h"
#include "frontend/driver/measure.h"
#include "ir/graph/text.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

constexpr size_t kRivals = 3;        // of each region, that are measured
constexpr double kHopeless = 4;      // times the best price: not measured
constexpr double kLeastGain = 0.03;  // of a region's time: less is noise
const MeasureOptions kRace = {.warmup = 1, .repeats = 5, .min_ms = 150, .max_samples = 60};
const MeasureOptions kFinal = {.warmup = 1, .repeats = 9, .min_ms = 300, .max_samples = 200};

// Regions that are lowered alike, and what could make them other than what does.
struct Family {
  std::vector<std::string> regions;
  KernelPlan plan;                 // by price
  std::vector<KernelPlan> rivals;  // by price, the best first
  double seconds = 0;              // of all its launches, as planned by price
  KernelPlan best = {};            // by measurement
  double best_share = 1;           // of the time of `plan`, in the same race
  std::vector<std::string> times = {};
};

// What the prices say of every candidate, each tile of registers one of its own.
Result<Lowered> list_candidates(const Model& model, const Target& target, CompileRequest request,
                                BuildFailure& failure) {
  LATHE_TRY(Pipeline pipeline, parse_pipeline(request.passes));
  for (PipelineStep& step : pipeline.steps)
    if (step.pass->name == "choose_kernels") step.options["tiles"] = "all";
  request.passes = print(pipeline);
  return lower(model, target, request, failure);
}

// A candidate of the same price is the same kernel: the tile that the kind takes by itself.
std::vector<KernelPlan> rivals_of(const KernelChoice& choice, const KernelPlan& plan) {
  std::vector<const KernelCandidate*> able;
  double own = 0;
  for (const KernelCandidate& candidate : choice.candidates) {
    if (candidate.plan == plan) own = candidate.seconds;
    if (candidate.why_not.empty()) able.push_back(&candidate);
  }
  std::stable_sort(able.begin(), able.end(),
                   [](const auto* a, const auto* b) { return a->seconds < b->seconds; });
  std::vector<KernelPlan> rivals;
  for (const KernelCandidate* candidate : able) {
    const bool is_same = candidate->plan == plan || (own > 0 && candidate->seconds == own);
    if (is_same || candidate->seconds > kHopeless * own || rivals.size() == kRivals) continue;
    rivals.push_back(candidate->plan);
  }
  return rivals;
}

// A build that is run with its steps timed.
class Racer {
 public:
  static Result<Racer> create(const Model& model, const std::vector<Tensor>& inputs, Build build) {
    Racer racer;
    racer.build_ = std::make_unique<Build>(std::move(build));
    LATHE_TRY(CallBuffers call,
              CallBuffers::create(racer.build_->program(), inputs, model.weights()));
    racer.call_ = std::make_unique<CallBuffers>(std::move(call));
    return racer;
  }

  // Keeps the least time that each region took, of all runs since `forget`.
  Status run_timed() {
    build_->executable->set_timing(true);
    LATHE_DO(run());
    const std::vector<double> seconds = build_->executable->step_seconds();
    const std::vector<Launch>& steps = build_->program().steps;
    std::map<std::string, double> now;
    for (size_t i = 0; i < std::min(seconds.size(), steps.size()); ++i)
      now[steps[i].region] += seconds[i];
    for (const auto& [region, time] : now) {
      const auto [at, is_first] = least_.emplace(region, time);
      if (!is_first) at->second = std::min(at->second, time);
    }
    return Ok{};
  }
  void forget() { least_.clear(); }
  // Of numbers that nobody chose; what is asserted of them is asserted last.
  Status run() {
    Status status = call_->run(*build_->executable);
    return !status.ok() && status.error().code == code::kAssertion ? Status(Ok{}) : status;
  }
  void stop_timing() { build_->executable->set_timing(false); }

  double seconds(const std::vector<std::string>& regions) const {
    double sum = 0;
    for (const std::string& region : regions)
      if (auto found = least_.find(region); found != least_.end()) sum += found->second;
    return sum;
  }
  const Lowered& lowered() const { return build_->lowered; }

 private:
  Racer() = default;
  std::unique_ptr<Build> build_;
  std::unique_ptr<CallBuffers> call_;
  std::map<std::string, double> least_;  // by region
};

class Tuner {
 public:
  Tuner(const Model& model, Backend& backend, const CompileRequest& request, BuildFailure& failure)
      : model_(model), backend_(backend), request_(request), failure_(failure) {
    request_.mode = "default";
  }

  Result<Choices> run() {
    LATHE_TRY(inputs_, random_inputs(model_, 0));
    LATHE_TRY(Racer own, racer({}));
    LATHE_DO(own.run_timed());
    LATHE_DO(find_families(own));
    for (size_t rank = 0; rank < kRivals; ++rank) LATHE_DO(race(own, rank));
    Choices choices;
    for (const Family& family : families_) {
      if (!family.times.empty()) choices.measured.push_back(describe(family));
      if (family.best == family.plan) continue;
      const KernelPlan& plan = family.best;
      for (const std::string& region : family.regions)
        for (Override& line : overrides_for(region, plan.kind, plan.tile))
          choices.force.push_back(line);
    }
    if (!choices.force.empty()) LATHE_DO(confirm(own, choices));
    return choices;
  }

 private:
  Result<Racer> racer(const std::vector<Override>& force) {
    CompileRequest request = request_;
    request.force.insert(request.force.end(), force.begin(), force.end());
    LATHE_TRY(Build made, build(model_, backend_, request, failure_));
    return Racer::create(model_, inputs_, std::move(made));
  }

  // Of the regions that nobody has decided, the ones that could be made otherwise.
  Status find_families(const Racer& own) {
    LATHE_TRY(const Lowered listed, list_candidates(model_, backend_.target(), request_, failure_));
    std::map<std::string, const KernelChoice*> candidates;
    for (const KernelChoice* choice : choices_of(listed.report))
      candidates[choice->region] = choice;
    std::map<std::string, size_t> places;
    for (const KernelChoice* choice : choices_of(own.lowered().report)) {
      const auto found = candidates.find(choice->region);
      if (choice->is_forced || found == candidates.end()) continue;
      if (own.seconds({choice->region}) == 0) continue;  // in init, or not timed
      const auto [place, is_new] = places.emplace(choice->like, families_.size());
      if (is_new) families_.push_back({.plan = choice->plan, .best = choice->plan});
      Family& family = families_[place->second];
      if (is_new) family.rivals = rivals_of(*found->second, choice->plan);
      family.regions.push_back(choice->region);
    }
    return Ok{};
  }

  // The program of the prices against the one where every family has its rival of a rank.
  Status race(Racer& own, size_t rank) {
    std::vector<Override> force;
    for (const Family& family : families_) {
      if (family.rivals.size() <= rank) continue;
      const KernelPlan& plan = family.rivals[rank];
      for (const std::string& region : family.regions)
        for (Override& line : overrides_for(region, plan.kind, plan.tile)) force.push_back(line);
    }
    if (force.empty()) return Ok{};
    LATHE_TRY(Racer rival, racer(force));
    own.forget();
    LATHE_TRY(const std::vector<Samples> samples,
              measure({[&] { return own.run_timed(); }, [&] { return rival.run_timed(); }}, kRace));
    (void)samples;  // of whole runs: what counts here is each region's
    for (Family& family : families_) {
      if (family.rivals.size() <= rank) continue;
      const double before = own.seconds(family.regions), after = rival.seconds(family.regions);
      if (before <= 0 || after <= 0) continue;
      if (family.times.empty())
        family.times.push_back(fmt::format("{} {:.4f}", print(family.plan), before * 1e3));
      family.times.push_back(fmt::format("{} {:.4f}", print(family.rivals[rank]), after * 1e3));
      const double share = after / before;
      if (share > 1 - kLeastGain || share > family.best_share) continue;
      family.best = family.rivals[rank];
      family.best_share = share;
    }
    return Ok{};
  }

  // The winners together against the prices, untimed: what does not gain as a whole is dropped.
  Status confirm(Racer& own, Choices& choices) {
    LATHE_TRY(Racer tuned, racer(choices.force));
    own.stop_timing();
    LATHE_TRY(const std::vector<Samples> samples,
              measure({[&] { return own.run(); }, [&] { return tuned.run(); }}, kFinal));
    const double before = samples[0].median(), after = samples[1].median();
    choices.measured.push_back(fmt::format("all: by price {:.4f}, as here {:.4f}", before, after));
    if (after > before) choices.force.clear();
    return Ok{};
  }

  // "conv_2 and 5 alike: contraction 0.1200, contraction {tile = [9, 3]} 0.1100 ms".
  static std::string describe(const Family& family) {
    std::string text = family.regions.front();
    if (family.regions.size() > 1) text += fmt::format(" and {} alike", family.regions.size() - 1);
    for (size_t i = 0; i < family.times.size(); ++i)
      text += (i == 0 ? ": " : ", ") + family.times[i];
    return text + " ms";
  }

  const Model& model_;
  Backend& backend_;
  CompileRequest request_;
  BuildFailure& failure_;
  std::vector<Tensor> inputs_;
  std::vector<Family> families_;
};

// As asked for, but by lines that are there.
CompileRequest decided(const CompileRequest& request, const Target& target,
                       const std::vector<Override>& force) {
  CompileRequest made = request;
  made.mode = target.has_graphs && request.mode == "max-autotune" ? "reduce-overhead" : "default";
  made.force.insert(made.force.end(), force.begin(), force.end());
  return made;
}

std::string in_place_of_prices(const std::vector<Override>& force) {
  const auto count = std::count_if(force.begin(), force.end(), [](const Override& line) {
    return line.what == Override::What::kernel;
  });
  return fmt::format("{} {} made otherwise than by price", count,
                     count == 1 ? "region" : "regions");
}

}  // namespace

Result<Build> autotune(const Model& model, Backend& backend, const CompileRequest& request,
                       BuildFailure& failure, SharedWeights* shared) {
  const CacheKey key = choices_key(model, backend.target(), request);
  const std::string path = choices_path(model, key);
  Result<Choices> kept = load_choices(model, key);
  std::string why = kept.ok() ? "" : kept.error().message;
  if (kept.ok()) {
    Result<Build> made =
        build(model, backend, decided(request, backend.target(), kept->force), failure, shared);
    if (made.ok()) {
      made->tuning =
          fmt::format("{}, as measured before: {}", in_place_of_prices(kept->force), path);
      return made;
    }
    why = fmt::format("{}: {}", path, made.error().message);
  }
  Choices choices;
  std::string outcome;
  Result<Choices> measured = Tuner(model, backend, request, failure).run();
  if (measured.ok()) {
    choices = *std::move(measured);
    choices.key = key;
    const Status saved = save_choices(model, choices);
    outcome = fmt::format("measured now ({}); {}", why,
                          saved.ok() ? "kept in " + path : saved.error().message);
  } else if (measured.error().is_internal) {
    return std::move(measured).error();
  } else {  // two programs at once may be too large where one is not
    outcome = "not measured: " + measured.error().message;
  }
  LATHE_TRY(Build made, build(model, backend, decided(request, backend.target(), choices.force),
                              failure, shared));
  made.tuning = fmt::format("{}, {}", in_place_of_prices(choices.force), outcome);
  return made;
}

}  // namespace lathe
