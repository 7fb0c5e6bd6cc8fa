// Runs experiments. For each model: build every candidate, run each once and check it, then time
// all of them interleaved.
#include "experiments/runner/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "frontend/driver/backends.h"
#include "frontend/driver/files.h"
#include "ir/support/diag_codes.h"
#include "ir/target/target.h"

namespace lathe {

namespace {

// A row while it is being made, with what runs it.
struct Candidate {
  StudyRow row;
  std::unique_ptr<Build> build;
  std::unique_ptr<CallBuffers> call;
};

int64_t count_tf32(const Program& program) {
  return std::count_if(program.steps.begin(), program.steps.end(), [](const Launch& launch) {
    const auto* library = std::get_if<LibraryLaunch>(&launch.kind);
    const auto* call = library ? std::get_if<ConvolutionCall>(&library->call) : nullptr;
    return call != nullptr && call->may_use_tf32;
  });
}

class Runner {
 public:
  Runner(ExperimentConfig config, const StudyOptions& options, LocTable& locs,
         BuildFailure& failure)
      : options_(options), locs_(locs), failure_(failure) {
    study_.config = std::move(config);
  }

  Result<Study> run() {
    study_.machine = this_machine();
    study_.started = utc_now();
    LATHE_DO(complete_config());
    LATHE_DO(load_models());
    for (model_index_ = 0; model_index_ < models_.size(); ++model_index_) LATHE_DO(run_model());
    return std::move(study_);
  }

 private:
  const ExperimentConfig& config() const { return study_.config; }

  // Each model takes an equal part of the bar.
  Status progress(double share, std::string_view what) {
    double models = static_cast<double>(std::max<size_t>(models_.size(), 1));
    bool goes_on = !options_.progress ||
                   options_.progress((static_cast<double>(model_index_) + share) / models, what);
    if (goes_on) return Ok{};
    return Diag{code::kUnsupported, Loc::unknown(), "stopped"};
  }

  // An error without a place gets that of the config's words that caused it.
  Diag placed(Diag diag, Loc loc) {
    if (!diag.loc.is_unknown() || loc.is_unknown()) return diag;
    diag.loc = loc;
    failure_.locs = locs_;
    return diag;
  }

  // An error whose locations are the config's.
  Diag config_error(std::string_view code, Loc loc, std::string message) {
    failure_.locs = locs_;
    return {std::string(code), loc, std::move(message)};
  }

  // What a row on `target` asks for, but for its passes and threads. An instruction set is of one
  // target; the others take their best.
  CompileRequest request_for(const std::string& target) const {
    CompileRequest request = config().request;
    request.target = target;
    const Target* machine = find_target(request.isa);
    if (machine != nullptr && machine->name != target) request.isa.clear();
    return request;
  }

  Status complete_config() {
    ExperimentConfig& c = study_.config;
    if (c.threads.empty()) c.threads = {study_.machine.cores};
    for (const Variant& variant : c.variants) {
      Result<Pipeline> pipeline = parse_pipeline(variant.passes);
      if (!pipeline.ok()) {
        Diag diag = std::move(pipeline).error();
        diag.loc = place_in_passes(variant, diag.message);
        failure_.locs = locs_;
        return diag;
      }
    }
    for (const std::string& target : c.targets) {
      if (target == "interp") {  // has no launches to record: asked to, it does the same
        Status runs = check_mode(c.request.mode, target, true);
        if (!runs.ok()) return placed(std::move(runs).error(), c.request.place("mode"));
        Status keeps = check_numerics(c.request.numerics, target,
                                      "it computes in float64 and rounds after every op");
        if (!keeps.ok()) return placed(std::move(keeps).error(), c.request.place("numerics"));
        continue;
      }
      Result<std::unique_ptr<Backend>> backend = choose_backend(request_for(target));
      if (!backend.ok()) {
        failure_.locs = locs_;
        return std::move(backend).error();
      }
      backends_[target] = *std::move(backend);
    }
    return Ok{};
  }

  // The place of the first quoted name of the message inside the pipeline's text.
  Loc place_in_passes(const Variant& variant, const std::string& message) {
    const LocRow row = locs_[variant.loc];
    if (row.kind != LocRow::Kind::text) return variant.loc;
    size_t begin = message.find('\''), end = message.find('\'', begin + 1);
    if (begin == std::string::npos || end == std::string::npos) return variant.loc;
    size_t at = variant.passes.find(message.substr(begin + 1, end - begin - 1));
    if (at == std::string::npos) return variant.loc;
    return locs_.text(row.file, row.line, row.column + static_cast<int>(at), row.source_line);
  }

  Status load_models() {
    for (const ModelRef& ref : config().models) {
      LATHE_DO(progress(0, "loading " + ref.name));
      Result<std::string> path = find_model(ref.source, options_.folder);
      if (!path.ok()) return placed(std::move(path).error(), ref.loc);
      ModelOptions load = model_options(config().request);
      for (const auto& [symbol, size] : ref.dims) load.dims[symbol] = size;
      Result<Model> model = load_model(*path, load, failure_.locs);
      if (!model.ok()) {
        bool is_about_dims = !load.dims.empty() && model.error().code != code::kMissingWeight;
        const Loc place = ref.dims.empty() ? config().request.place("dims") : ref.loc;
        return is_about_dims ? placed(std::move(model).error(), place) : std::move(model).error();
      }
      models_.push_back(std::make_unique<Model>(*std::move(model)));
      LATHE_DO(check_dtype(*models_.back(), ref));
    }
    return Ok{};
  }

  Status check_dtype(const Model& model, const ModelRef& ref) {
    std::string_view own = dtype_name(model_dtype(model));
    if (config().dtype.empty() || config().dtype == own) return Ok{};
    return config_error(code::kUnsupported, config().dtype_loc,
                        fmt::format("model '{}' computes in {}; running it in {} is not supported "
                                    "yet",
                                    ref.name, own, config().dtype));
  }

  Result<std::vector<Tensor>> make_inputs(Model& model) {
    const DataSource& source = config().inputs;
    failure_.locs = model.module.locs;
    if (source.is_random) return random_inputs(model, source.seed);
    Result<std::string> path = find_file(source.file, options_.folder);
    if (!path.ok()) return placed(std::move(path).error(), source.loc);
    Result<std::vector<Tensor>> inputs = read_inputs(model, *path);
    if (!inputs.ok()) return placed(std::move(inputs).error(), source.loc);
    return inputs;
  }

  Status run_model() {
    Model& model = *models_[model_index_];
    const ModelRef& ref = config().models[model_index_];
    LATHE_TRY(study_.inputs, make_inputs(model));
    candidates_.clear();
    LATHE_DO(build_candidates(model, ref));
    LATHE_DO(check_candidates(model, ref));
    LATHE_DO(time_candidates(ref));
    for (Candidate& candidate : candidates_) study_.rows.push_back(std::move(candidate.row));
    candidates_.clear();
    return Ok{};
  }

  Status build_candidates(const Model& model, const ModelRef& ref) {
    size_t total = config().variants.size() * config().threads.size() * config().targets.size();
    for (const std::string& target : config().targets) {
      if (target == "interp") {
        LATHE_DO(add_interpreter(model, ref));
        continue;
      }
      const bool has_threads = backends_[target]->target().has_threads;
      for (int threads : has_threads ? config().threads : std::vector<int>{1})
        for (const Variant& variant : config().variants) {
          double share = static_cast<double>(candidates_.size()) / static_cast<double>(total);
          LATHE_DO(progress(0.3 * share, fmt::format("{}  compiling {}", ref.name, variant.name)));
          LATHE_DO(build_one(model, ref, target, threads, variant));
        }
    }
    return Ok{};
  }

  Status build_one(const Model& model, const ModelRef& ref, const std::string& target, int threads,
                   const Variant& variant) {
    Candidate candidate;
    StudyRow& row = candidate.row;
    Backend& backend = *backends_[target];
    int64_t before = reset_peak_memory() ? resident_bytes() : 0;
    CompileRequest request = request_for(target);
    request.passes = variant.passes;
    request.threads = threads;
    Result<Build> made = build(model, backend, request, failure_);
    if (!made.ok() && made.error().code == code::kBadForm)
      return placed(std::move(made).error(), variant.loc);
    if (!made.ok()) return std::move(made).error();
    candidate.build = std::make_unique<Build>(*std::move(made));
    const Program& program = candidate.build->program();
    LATHE_TRY(CallBuffers call, CallBuffers::create(program, study_.inputs, model.weights()));
    candidate.call = std::make_unique<CallBuffers>(std::move(call));
    failure_.locs = candidate.build->lowered.unit.module.locs;
    LATHE_DO(candidate.call->run(*candidate.build->executable));
    if (before > 0) row.process_peak_bytes = std::max<int64_t>(peak_resident_bytes() - before, 0);
    const ExecutableStats& stats = candidate.build->executable->stats();
    row.model = ref.name;
    row.variant = variant.name;
    row.target = target;
    row.threads = threads;
    row.dtype = dtype_name(model_dtype(model));
    row.isa = backend.target().isa;
    row.compile_ms = candidate.build->compile_ms;
    row.init_ms = candidate.build->init_ms;
    row.tuning = candidate.build->tuning;
    row.kernels = program.num_kernels();
    row.tf32_launches = count_tf32(program);
    row.flops = candidate.build->flops();
    row.traffic_bytes = candidate.build->traffic_bytes();
    row.persistent_bytes = stats.persistent_bytes;
    row.arena_bytes = stats.arena_bytes;
    row.init_arena_bytes = program.init_arena_bytes;
    row.in_place_bytes = program.in_place_bytes();
    row.io_bytes = candidate.build->io_bytes();
    candidates_.push_back(std::move(candidate));
    return Ok{};
  }

  // The interpreter is a target too: it runs the imported graph, rounding as eager does. It is its
  // own check, and one sample is enough of it.
  Status add_interpreter(const Model& model, const ModelRef& ref) {
    Candidate candidate;
    candidate.row.model = ref.name;
    candidate.row.variant = "as imported";
    candidate.row.target = "interp";
    candidate.row.dtype = dtype_name(model_dtype(model));
    candidates_.push_back(std::move(candidate));
    return Ok{};
  }

  Result<Reference> interpret(const Model& model, const ModelRef& ref, bool narrows) {
    LATHE_TRY(Module module, reference_module(model));
    failure_.locs = module.locs;
    auto tick = [&](double share) {
      return progress(0.3 + 0.4 * share, ref.name + "  interpreting").ok();
    };
    return evaluate_reference(module, study_.inputs,
                              {.dims = model.dims, .progress = tick, .uses_tf32 = narrows});
  }

  Status check_candidates(const Model& model, const ModelRef& ref) {
    bool has_interpreter = std::find(config().targets.begin(), config().targets.end(), "interp") !=
                           config().targets.end();
    std::map<bool, Reference> references;  // by whether the target uses TF32
    bool is_first = true;
    for (Candidate& candidate : candidates_) {
      const auto backend = backends_.find(candidate.row.target);
      const bool narrows = backend != backends_.end() &&
                           uses_tf32(backend->second->target(), config().request.numerics);
      Reference& reference = references[narrows];
      if (reference.exact.empty() && (config().check_interp || has_interpreter)) {
        LATHE_TRY(reference, interpret(model, ref, narrows));
      }
      if (candidate.call == nullptr) candidate.row.samples.milliseconds = {reference.rounded_ms};
      const bool is_kept = is_first && options_.keep_outputs;
      if (!is_kept && !config().check_interp) continue;
      std::vector<Tensor> outputs = reference.rounded;
      if (candidate.call != nullptr) {
        LATHE_TRY(outputs, candidate.call->outputs());
      }
      if (config().check_interp) candidate.row.agreement = compare(outputs, reference);
      outputs.resize(std::min(outputs.size(), model.module.main().outputs.size()));
      if (is_kept) study_.outputs = std::move(outputs);
      is_first = false;
    }
    return Ok{};
  }

  Status time_candidates(const ModelRef& ref) {
    std::vector<std::function<Status()>> runs;
    std::vector<Candidate*> timed;
    for (Candidate& candidate : candidates_) {
      if (candidate.call == nullptr) continue;
      timed.push_back(&candidate);
      runs.push_back([&candidate] { return candidate.call->run(*candidate.build->executable); });
    }
    auto tick = [&](double share) {
      return progress(0.7 + 0.3 * share, ref.name + "  measuring").ok();
    };
    LATHE_TRY(std::vector<Samples> samples, measure(runs, config().measure, tick));
    for (size_t i = 0; i < timed.size(); ++i) timed[i]->row.samples = std::move(samples[i]);
    return Ok{};
  }

  const StudyOptions& options_;
  LocTable& locs_;
  BuildFailure& failure_;
  Study study_;
  std::map<std::string, std::unique_ptr<Backend>> backends_;
  std::vector<std::unique_ptr<Model>> models_;
  std::vector<Candidate> candidates_;
  size_t model_index_ = 0;
};

}  // namespace

std::string Study::about_tf32() const {
  std::string launches, model;
  for (const StudyRow& row : rows) {
    if (row.tf32_launches == 0 || row.model == model) continue;
    model = row.model;
    launches += fmt::format("{}{} of {}", launches.empty() ? "" : ", ", row.tf32_launches, model);
  }
  if (launches.empty()) return "";
  return fmt::format(
      "Convolutions in f32 may read TF32, 10 bits behind the point, as PyTorch's do by default: "
      "{}. "
      "What that rounds is allowed for; --numerics ieee keeps f32.",
      launches);
}

double StudyRow::gflops() const {
  double ms = samples.median();
  return ms > 0 ? static_cast<double>(flops) / ms / 1e6 : 0;
}

std::string StudyRow::status() const {
  if (!agreement) return "unchecked";
  return agreement->passed ? "ok" : "wrong";
}

bool Study::passed() const {
  return std::all_of(rows.begin(), rows.end(), [](const StudyRow& row) { return row.passed(); });
}

Result<Study> run_study(ExperimentConfig config, const StudyOptions& options, LocTable& locs,
                        BuildFailure& failure) {
  return Runner(std::move(config), options, locs, failure).run();
}

}  // namespace lathe
