// Streams, products and a chain of shifts: see rates.h.
#include "frontend/driver/rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "frontend/driver/build.h"
#include "frontend/driver/files.h"
#include "frontend/driver/machine.h"
#include "ir/graph/text.h"
#include "ir/op/all_ops.h"
#include "ir/support/diag_codes.h"
#include "nlohmann/json.hpp"

namespace lathe {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 2;  // of the file
constexpr int kRuns = 9;
constexpr double kLeastSpent = 0.08;   // seconds of a measurement: longer than others disturb it
constexpr double kLeastLaunch = 0.15;  // us: between others, a kernel's code is not in the caches

struct Field {
  const char* name;
  double Rates::* rate;
  double least, most;  // that a machine can have
};
constexpr Field kFields[] = {
    {"gigahertz", &Rates::gigahertz, 0.1, 20},
    {"vectors_a_cycle", &Rates::vectors_a_cycle, 0.05, 16},
    {"divides_a_cycle", &Rates::divides_a_cycle, 0.05, 64},
    {"gathers_a_cycle", &Rates::gathers_a_cycle, 0.01, 64},
    {"l2_bytes_a_cycle", &Rates::l2_bytes_a_cycle, 0.1, 1024},
    {"l3_bytes_a_cycle", &Rates::l3_bytes_a_cycle, 0.1, 1024},
    {"memory_bytes_a_cycle", &Rates::memory_bytes_a_cycle, 0.01, 1024},
    {"launch_us", &Rates::launch_us, 0.001, 1000},
};

// Each round is six operations that wait for each other, a cycle each.
double measure_gigahertz() {
  using Clock = std::chrono::steady_clock;
  constexpr int kRounds = 4'000'000;
  double best = 0;
  uint64_t x = 88172645463325252;
  for (int run = 0; run < kRuns; ++run) {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < kRounds; ++i) {
      x ^= x << 13;
      x ^= x >> 7;
      x ^= x << 17;
    }
    volatile uint64_t kept = x;
    (void)kept;
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::max(best, 6.0 * kRounds / seconds / 1e9);
  }
  return best;
}

// Seconds of the longest step of a function, the least of some runs.
Result<double> time_function(Backend& backend, const std::string& text) {
  Unit unit;
  LATHE_TRY(unit.module, parse(text, builtin_registry(), "<rates>"));
  LATHE_TRY(const Pipeline pipeline, parse_pipeline("choose_kernels,lower_to_loops,plan_memory"));
  PassContext context{.ops = builtin_registry(), .target = backend.target()};
  LATHE_TRY(const PipelineReport report, run_pipeline(unit, pipeline, {}, context));
  (void)report;
  LATHE_TRY(const std::unique_ptr<Executable> executable, backend.compile(unit.program, {}));
  std::vector<Tensor> inputs;
  for (const auto& param : unit.module.main().params)
    inputs.push_back(Tensor::zeros(param->types[0].dtype, param->types[0].static_shape()));
  LATHE_TRY(CallBuffers call,
            CallBuffers::create(unit.program, inputs, WeightStore(unit.module, std::nullopt)));
  executable->set_timing(true);
  double least = 0, spent = 0;
  for (int run = 0; run < kRuns || spent < kLeastSpent; ++run) {
    LATHE_DO(call.run(*executable));
    const std::vector<double> seconds = executable->step_seconds();
    LATHE_CHECK(!seconds.empty(), "a backend that does not time its steps");
    const double longest = *std::max_element(seconds.begin(), seconds.end());
    least = run == 0 ? longest : std::min(least, longest);
    spent += std::max(longest, 1e-6);
  }
  return least;
}

// Divisions in the first cache.
Result<double> time_division(Backend& backend, int64_t num_elements) {
  return time_function(backend, fmt::format("func @main(%x: f32[{0}]) -> f32[{0}] {{\n"
                                            "  %0 = reciprocal(%x)\n  return %0\n}}\n",
                                            num_elements));
}

// A table in the first cache, read at indices that are all in it.
Result<double> time_gather(Backend& backend, int64_t num_elements) {
  return time_function(backend, fmt::format("func @main(%x: f32[64], %i: i64[{0}]) -> f32[{0}] {{\n"
                                            "  %0 = index(%x, [%i])\n  return %0\n}}\n",
                                            num_elements));
}

// One sweep that reads and writes so many bytes together.
Result<double> time_stream(Backend& backend, int64_t num_bytes) {
  const std::string type = fmt::format("f32[{}]", num_bytes / 8);
  return time_function(backend, fmt::format("func @main(%x: {}) -> {} {{\n  %0 = neg(%x)\n"
                                            "  return %0\n}}\n",
                                            type, type));
}

}  // namespace

Result<Rates> measure_rates(Backend& backend) {
  const Target& target = backend.target();
  Rates rates = target.rates;
  rates.gigahertz = measure_gigahertz();
  const double hertz = rates.gigahertz * 1e9;
  LATHE_TRY(const double launch, time_stream(backend, 8 * 16));
  rates.launch_us = std::max(launch * 1e6, kLeastLaunch);
  constexpr int64_t kDivisions = 4000;
  LATHE_TRY(const double division, time_division(backend, kDivisions));
  rates.divides_a_cycle = kDivisions / division / hertz;
  constexpr int64_t kGathers = 2000;
  LATHE_TRY(const double gather, time_gather(backend, kGathers));
  rates.gathers_a_cycle = kGathers / gather / hertz;
  const auto stream = [&](int64_t num_bytes, double& rate) -> Status {
    LATHE_TRY(const double seconds, time_stream(backend, num_bytes));
    rate = static_cast<double>(num_bytes) / std::max(seconds, 1e-9) / hertz;
    return Ok{};
  };
  LATHE_DO(stream(target.l2_bytes / 2, rates.l2_bytes_a_cycle));
  LATHE_DO(stream(std::max(rates.l3_bytes / 2, 4 * target.l2_bytes), rates.l3_bytes_a_cycle));
  LATHE_DO(stream(8 * rates.l3_bytes, rates.memory_bytes_a_cycle));
  // Rows for whole tiles of any height, operands that stay in the second cache.
  constexpr int64_t kRows = 252, kDepth = 256, kColumns = 192;
  LATHE_TRY(const double product,
            time_function(backend, fmt::format("func @main(%x: f32[{0}, {1}], %w: f32[{1}, {2}]) "
                                               "-> f32[{0}, {2}] {{\n  %0 = matmul(%x, %w)\n"
                                               "  return %0\n}}\n",
                                               kRows, kDepth, kColumns)));
  const double vectors =
      static_cast<double>(kRows * kDepth * kColumns) / (target.vector_bytes / 4.0);
  rates.vectors_a_cycle = vectors / product / hertz;
  return rates;
}

std::string rates_path(const Target& target) {
  const std::string where = cache_folder("rates");
  if (where.empty()) return "";
  return fmt::format("{}/{}.json", where, to_file_name(this_machine().cpu + "-" + target.isa));
}

Status save_rates(const Target& target, const Rates& rates) {
  const std::string path = rates_path(target);
  if (path.empty())
    return Diag{code::kMissingFile, Loc::unknown(), "there is no home to keep the rates in"};
  Json json = {{"version", kVersion}, {"cpu", this_machine().cpu}, {"isa", target.isa}};
  for (const Field& field : kFields) json[field.name] = rates.*field.rate;
  return write_output(path, json.dump(2) + "\n");
}

Result<Rates> load_rates(const Target& target) {
  const std::string path = rates_path(target);
  constexpr size_t kMostBytes = 1 << 16;
  LATHE_TRY(const std::string text, read_file(path, kMostBytes));
  const auto bad = [&](const std::string& what) {
    return Diag{code::kBadValue, Loc::unknown(),
                fmt::format("{}: {}; `lathe doctor --measure` writes it anew", path, what)};
  };
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return bad("the file is not whole");
  if (json.value("version", Json()) != kVersion) return bad("it is of another version");
  if (json.value("cpu", Json()) != this_machine().cpu) return bad("it is of another processor");
  if (json.value("isa", Json()) != target.isa) return bad("it is of another instruction set");
  Rates rates = target.rates;
  for (const Field& field : kFields) {
    const Json value = json.value(field.name, Json());
    if (!value.is_number()) return bad(fmt::format("'{}' is no number", field.name));
    const double rate = value.get<double>();
    if (!(rate >= field.least && rate <= field.most))
      return bad(
          fmt::format("'{}' is {}, expected {} to {}", field.name, rate, field.least, field.most));
    rates.*field.rate = rate;
  }
  return rates;
}

}  // namespace lathe
