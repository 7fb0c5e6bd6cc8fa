// "sizes": what a program over symbols costs at some sizes, as formulas and as numbers, and along
// one of its symbols.
#include "web/engine/sizes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "frontend/driver/formulas.h"
#include "ir/cost/price.h"
#include "ir/program/binding.h"
#include "ir/support/diag_codes.h"
#include "web/engine/workspace.h"

namespace lathe {
namespace {

constexpr int64_t kMostPoints = 64;
constexpr int64_t kFarEnough = 4096;  // where a curve along a size without an end stops
constexpr int64_t kMostTries = 64;    // of a point that a guard refuses, for one behind it
constexpr size_t kMostPeaks = 4;      // sums of a formula that a person still reads

// What a person may choose from.
struct Ends {
  int64_t first, last;
};
Ends ends_of(const DimRange& range, int64_t hint) {
  const int64_t first = std::max<int64_t>(range.min.value_or(0), 0);
  return {first, std::max(first, range.max.value_or(std::max(kFarEnough, hint)))};
}

// Of kernels and their bytes: what constants hold costs nothing, and would be copied for each size.
Program without_contents(Program program) {
  for (ProgramBuffer& buffer : program.buffers) buffer.bytes.clear();
  return program;
}

double predicted_seconds(const Program& numbers, const Target& target) {
  const double weights = weight_bytes(numbers);
  double seconds = 0;
  for (const Launch& launch : numbers.steps)
    seconds += predict(numbers, launch, target, weights).seconds;
  return seconds;
}

// Of GPUs nothing is predicted.
void write_numbers(const Program& numbers, const Target& target, Json& json) {
  if (!target.groups) json["predicted"] = predicted_seconds(numbers, target);
  json["arena_bytes"] = numbers.arena_bytes;
}

// Up to `points` sizes from the first to the last, each further by about the same factor.
std::vector<int64_t> spread(Ends ends, int64_t points) {
  std::set<int64_t> sizes;
  const double from = std::log(static_cast<double>(std::max<int64_t>(ends.first, 1))),
               to = std::log(static_cast<double>(std::max<int64_t>(ends.last, 1)));
  for (int64_t i = 0; i < points; ++i) {
    const double share = points == 1 ? 0 : static_cast<double>(i) / static_cast<double>(points - 1);
    const double size = std::exp(from + (to - from) * share);
    // The largest doubles are no int64_t.
    const bool is_last = size >= static_cast<double>(ends.last) || (i > 0 && i + 1 == points);
    sizes.insert(i == 0    ? ends.first
                 : is_last ? ends.last
                           : std::clamp<int64_t>(std::llround(size), ends.first, ends.last));
  }
  return {sizes.begin(), sizes.end()};
}

// A point that a guard refuses (of multiples of eight, say) moves on to the next size, if that is
// near; one that is refused for good is left out.
Json curve_json(const Program& program, const Target& target, Sizes sizes,
                const std::string& symbol, int64_t points) {
  const Binder binder(program);
  const std::vector<int64_t> chosen =
      spread(ends_of(program.symbols.at(symbol), hints_of(program).at(symbol)), points);
  Json curve = Json::array();
  for (size_t i = 0; i < chosen.size(); ++i) {
    const int64_t room = i + 1 < chosen.size() ? chosen[i + 1] - chosen[i] : 1;
    for (int64_t step = 0; step < std::min(room, kMostTries); ++step) {
      sizes[symbol] = chosen[i] + step;
      const Result<std::vector<int64_t>> values = ordered_sizes(program, sizes);
      if (!values.ok() || !binder.bind(*values).ok()) continue;
      const Result<Program> numbers = instantiate(program, sizes);
      if (!numbers.ok()) continue;
      Json point{{"size", sizes[symbol]}};
      write_numbers(*numbers, target, point);
      curve.push_back(std::move(point));
      break;
    }
  }
  return curve;
}

Json formula_json(const Formula& formula) {
  Json json{{"text", formula.text}};
  if (formula.here) json["here"] = *formula.here;
  return json;
}

Json formulas_json(const ProgramFormulas& formulas) {
  Json json{{"flops", formula_json(formulas.all.flops)},
            {"bytes", formula_json(formulas.all.bytes)},
            {"peak", formula_json(formulas.peak)}};
  if (formulas.num_peaks > kMostPeaks)
    json["peak"]["text"] = fmt::format("the most of {} sums", formulas.num_peaks);
  return json;
}

Json symbols_json(const Program& program, const Sizes& sizes) {
  Json list = Json::array();
  const Sizes hints = hints_of(program);
  for (const auto& [symbol, range] : program.symbols) {
    const Ends ends = ends_of(range, hints.at(symbol));
    list.push_back({{"name", symbol},
                    {"min", ends.first},
                    {"max", ends.last},
                    {"is_bounded", range.max.has_value()},
                    {"hint", hints.at(symbol)},
                    {"here", sizes.at(symbol)}});
  }
  return list;
}

}  // namespace

Sizes hints_of(const Program& program) {
  Sizes sizes;
  for (const auto& [symbol, range] : program.symbols) {
    const auto hint = program.hints.find(symbol);
    sizes[symbol] = hint != program.hints.end() ? hint->second : ends_of(range, 1).first;
  }
  return sizes;
}

Result<Sizes> sizes_of(const Request& request, const Sizes& known) {
  CompileRequest asked;
  LATHE_DO(request.options({"dims"}, asked));
  Sizes sizes = known;
  for (const auto& [symbol, size] : asked.dims) {
    const auto found = sizes.find(symbol);
    if (found == sizes.end()) {
      std::vector<std::string> names;
      for (const auto& [name, value] : known) names.push_back(name);
      return request.bad(
          "dims", fmt::format("no size '{}' is open here; {}", symbol,
                              names.empty() ? "all are numbers"
                                            : fmt::format("{} are", fmt::join(names, ", "))));
    }
    found->second = size;
  }
  return sizes;
}

Result<std::shared_ptr<const Program>> program_at(const PipelineRun& run, const Request& request) {
  const std::shared_ptr<const Program>& program = run.steps.back().program;
  LATHE_TRY(const Sizes sizes, sizes_of(request, hints_of(*program)));
  if (program->symbols.empty()) return program;
  Result<Program> numbers = instantiate(*program, sizes);
  if (numbers.ok()) return std::make_shared<const Program>(*std::move(numbers));
  Diag refusal = request.bad("dims", numbers.error().message);
  refusal.code = numbers.error().code;
  return refusal;
}

Result<Answer> handle_sizes(Workspace& workspace, const Request& request) {
  LATHE_TRY(PipelineRun * run, run_of(workspace, request));
  if (run->program() == nullptr || run->program()->symbols.empty())
    return request.bad("run", fmt::format("pipeline '{}' leaves no size a symbol; one that ends in "
                                          "a program, without specialize_shapes, does",
                                          run->passes));
  const Program program = without_contents(*run->program());
  LATHE_TRY(const Sizes sizes, sizes_of(request, hints_of(program)));
  LATHE_TRY(const std::string along, request.text("along", ""));
  LATHE_TRY(const int64_t points, request.integer("points", 0));
  if (points < 0 || points > kMostPoints)
    return request.bad("points",
                       fmt::format("'points' is {}, expected 0 to {}", points, kMostPoints));
  if ((points > 0 || !along.empty()) && program.symbols.count(along) == 0)
    return request.bad("along", fmt::format("no size '{}' is open here", along));
  Answer answer;
  Json& json = answer.json;
  json["symbols"] = symbols_json(program, sizes);
  json["guards"] = Json::array();
  for (const Guard& guard : program.guards) json["guards"].push_back(to_string(guard));
  json.update(formulas_json(formulas_of(program, {}, sizes)));
  const Result<Program> numbers = instantiate(program, sizes);
  if (numbers.ok())
    write_numbers(*numbers, *run->target, json);
  else
    json["refused"] = numbers.error().message;
  if (points > 0) json["curve"] = curve_json(program, *run->target, sizes, along, points);
  return answer;
}

}  // namespace lathe
