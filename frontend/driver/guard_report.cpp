// Builds the model with and without its guards.
#include "frontend/driver/guard_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "frontend/driver/drop_guard.h"
#include "frontend/driver/measure.h"
#include "frontend/import/sources.h"
#include "ir/type/size_check.h"

namespace lathe {
namespace {

using GuardJson = nlohmann::ordered_json;
using Ranges = std::map<std::string, DimRange>;

constexpr MeasureOptions kTiming = {.warmup = 3, .repeats = 30, .min_ms = 200};

// Nanoseconds of a check: the least of some rounds of many.
double time_check(const Ranges& ranges, const std::vector<Guard>& guards,
                  const std::map<std::string, int64_t>& sizes) {
  constexpr int kRounds = 20, kChecks = 5000;
  const SizeCheck check(ranges, guards);
  std::vector<int64_t> values, scratch;
  for (const auto& [symbol, range] : ranges) {
    const auto size = sizes.find(symbol);
    values.push_back(size == sizes.end() ? 0 : size->second);
  }
  double best = 0;
  int num_allowed = 0;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kChecks; ++i) {
      // Opaque, so that no check is done once for all.
      __asm__ volatile("" : : "r"(values.data()) : "memory");
      num_allowed += check.allows(values, scratch) ? 1 : 0;
    }
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
    if (best == 0 || taken.count() < best) best = taken.count();
  }
  return num_allowed >= 0 ? best / kChecks : 0;
}

std::string in_logs(const Guard& guard) {
  const char* const name = guard.relation == Relation::eq   ? "Eq"
                           : guard.relation == Relation::ne ? "Ne"
                                                            : nullptr;
  return name == nullptr ? to_string(guard)
                         : fmt::format("{}({}, {})", name, guard.left.str(), guard.right.str());
}

std::string spell(const std::string& size, const DimRange& range) {
  const std::string low = range.min ? fmt::format("{} <= ", *range.min) : "";
  const std::string high = range.max ? fmt::format(" <= {}", *range.max) : "";
  return low + size + high;
}

// The symbols that a guard has, with their ranges: what one that stands alone is checked with.
Ranges symbols_in(const Guard& guard) {
  std::vector<std::string> names;
  guard.left.collect_symbols(names);
  guard.right.collect_symbols(names);
  Ranges ranges;
  for (const std::string& name : names) ranges[name] = {};
  return ranges;
}

// The request with its sizes as symbols, but where its pipeline itself says which stay.
CompileRequest with_symbols(const CompileRequest& request, const Pipeline& pipeline) {
  CompileRequest symbolic = request;
  const bool chooses =
      std::any_of(pipeline.steps.begin(), pipeline.steps.end(), [](const PipelineStep& step) {
        return step.pass->name == "specialize_shapes" &&
               (step.options.at("bindings") != "hints" || !step.options.at("keep").empty());
      });
  if (!chooses) symbolic.dynamic = true;
  return symbolic;
}

class Dropper {
 public:
  Dropper(const Model& model, Backend& backend, const CompileRequest& request,
          const Pipeline& pipeline)
      : model_(model), backend_(backend), request_(request), pipeline_(pipeline) {}

  void drop(const std::vector<Guard>& guards, const Guard& guard, GuardRow& row) {
    DroppedGuard dropped = drop_guard(pipeline_, guards, guard);
    row.stays = std::move(dropped.stays);
    if (!row.stays.empty()) return;
    Result<GuardWorth> worth = compare(print(dropped.pipeline));
    if (worth.ok())
      row.worth = *worth;
    else
      row.unmeasured = worth.error().message;
  }

 private:
  Result<GuardWorth> compare(const std::string& passes) {
    BuildFailure failure;
    if (!with_) {
      LATHE_TRY(with_, build(model_, backend_, request_, failure));
      LATHE_TRY(inputs_, random_inputs(model_, 0));
    }
    CompileRequest request = request_;
    request.passes = passes;
    LATHE_TRY(Build without, build(model_, backend_, request, failure));
    LATHE_TRY(CallBuffers call, CallBuffers::create(with_->program(), inputs_, model_.weights()));
    LATHE_TRY(CallBuffers other, CallBuffers::create(without.program(), inputs_, model_.weights()));
    LATHE_TRY(const std::vector<Samples> samples,
              measure({[&] { return call.run(*with_->executable); },
                       [&] { return other.run(*without.executable); }},
                      kTiming));
    Samples ratios;
    for (size_t i = 0; i < samples[0].milliseconds.size(); ++i)
      ratios.milliseconds.push_back(samples[1].milliseconds[i] / samples[0].milliseconds[i]);
    return GuardWorth{samples[0].median(), samples[1].median(), ratios.median(),
                      ratios.quantile(0.1), ratios.quantile(0.9)};
  }

  const Model& model_;
  Backend& backend_;
  const CompileRequest& request_;
  const Pipeline& pipeline_;
  std::optional<Build> with_;
  std::vector<Tensor> inputs_;
};

}  // namespace

Result<GuardReport> report_guards(const Model& model, Backend& backend,
                                  const CompileRequest& request, BuildFailure& failure) {
  GuardReport report;
  if (model.signature) report.unread = model.signature->unread_guards;
  if (model.dims.empty()) return report;
  LATHE_TRY(const Pipeline pipeline, parse_pipeline(request.passes));
  const CompileRequest symbolic = with_symbols(request, pipeline);
  LATHE_TRY(const Lowered lowered, lower(model, backend.target(), symbolic, failure));
  const Module& module = lowered.unit.module;
  const auto sources = symbol_sources(model.module, model.signature ? &*model.signature : nullptr);
  std::map<std::string, Dim> by_source;
  for (const auto& [symbol, source] : sources) by_source.emplace(symbol, Dim::symbol(source));
  for (const auto& [symbol, range] : module.dims) {
    if (!range.min && !range.max) continue;
    const auto source = sources.find(symbol);
    const auto here = model.dims.find(symbol);
    GuardRow row{.text = spell(symbol, range), .torch = spell(symbol, range)};
    row.source = source == sources.end() ? row.text : spell(source->second, range);
    row.found_by = "the file";
    row.cause = "its range";
    if (here != model.dims.end()) row.cause += fmt::format("; here {}", here->second);
    row.check_ns = time_check({{symbol, range}}, {}, model.dims);
    row.stays = "the file's: the graph is right for no other sizes";
    report.rows.push_back(std::move(row));
  }
  Dropper dropper(model, backend, symbolic, pipeline);
  for (const Guard& guard : module.guards) {
    GuardRow row{.text = to_string(guard), .torch = in_logs(guard)};
    row.source = to_string(substitute(guard, by_source));
    row.found_by = guard.pass.empty() ? "the file" : guard.pass;
    row.cause = guard.cause;
    row.loc = guard.loc;
    row.check_ns = time_check(symbols_in(guard), {guard}, model.dims);
    dropper.drop(module.guards, guard, row);
    report.rows.push_back(std::move(row));
  }
  Ranges all = module.dims;
  for (const Guard& guard : module.guards) all.merge(symbols_in(guard));
  report.check_ns = time_check(all, module.guards, model.dims);
  report.locs = module.locs;
  return report;
}

std::string to_json(const GuardReport& report, const std::vector<std::string>& lines) {
  GuardJson guards = GuardJson::array();
  for (size_t i = 0; i < report.rows.size(); ++i) {
    const GuardRow& row = report.rows[i];
    GuardJson json{{"text", row.text},         {"torch", row.torch}, {"source", row.source},
                   {"found_by", row.found_by}, {"line", lines[i]},   {"cause", row.cause},
                   {"check_ns", row.check_ns}};
    if (!row.stays.empty()) json["stays"] = row.stays;
    if (!row.unmeasured.empty()) json["unmeasured"] = row.unmeasured;
    if (const auto& worth = row.worth)
      json["without"] = {{"with_ms", worth->with_ms},
                         {"without_ms", worth->without_ms},
                         {"ratio", worth->ratio},
                         {"low", worth->low},
                         {"high", worth->high}};
    guards.push_back(std::move(json));
  }
  const GuardJson document{
      {"guards", std::move(guards)}, {"check_ns", report.check_ns}, {"unchecked", report.unread}};
  return document.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace lathe
