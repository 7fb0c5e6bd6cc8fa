// The same dispatcher that serves real calls, fed with what passes find.
#include "frontend/artifacts/trace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "frontend/driver/build.h"
#include "frontend/driver/files.h"
#include "frontend/driver/object_reader.h"
#include "frontend/file/json.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

constexpr size_t kMaxTraceBytes = size_t{1} << 26;

// What the program of a planned artifact needs of sizes.
Result<std::vector<Guard>> guards_of(Model& model, const Target& target, CompileRequest request,
                                     const Artifact& planned, const Dispatcher& dispatcher,
                                     std::span<const int64_t> sizes) {
  request.sizes = dispatcher.sizes_of(planned);
  for (size_t i = 0; i < sizes.size(); ++i) model.dims[dispatcher.symbols()[i]] = sizes[i];
  BuildFailure failure;
  LATHE_TRY(const Lowered lowered, lower(model, target, request, failure));
  return lowered.unit.program.guards;
}

}  // namespace

Result<std::vector<std::vector<int64_t>>> read_trace(const std::string& path, const Model& model,
                                                     LocTable& locs) {
  LATHE_TRY(const std::string text, read_file(path, kMaxTraceBytes));
  LATHE_TRY(auto document, json::parse(text, path, locs, {.max_bytes = kMaxTraceBytes}));
  const LocateFn locate = [&](size_t offset) { return json::locate(*document, offset, locs); };
  const ObjectReader reader(locate);
  const json::Value root = document->root();
  if (root.kind() != json::Kind::array)
    return reader.error(root, fmt::format("a trace is an array of calls such as {{\"s0\": 8}}, got "
                                          "{}",
                                          kind_name(root.kind())));
  std::vector<std::string> symbols;
  std::vector<int64_t> sizes;
  for (const auto& [symbol, size] : model.dims) {
    symbols.push_back(symbol);
    sizes.push_back(size);
  }
  std::vector<std::vector<int64_t>> calls;
  for (const json::Value call : root.elements()) {
    if (call.kind() != json::Kind::object)
      return reader.error(call, fmt::format("a call is an object of sizes by symbol, got {}",
                                            kind_name(call.kind())));
    for (const json::Member size : call.members()) {
      const auto at = std::find(symbols.begin(), symbols.end(), size.key);
      if (at == symbols.end()) return reader.unknown_key(size, symbols);
      LATHE_TRY(sizes[static_cast<size_t>(at - symbols.begin())],
                reader.integer(size.key, size.value, INT64_MIN, INT64_MAX));
    }
    calls.push_back(sizes);
  }
  return calls;
}

Result<Trace> trace(Model& model, const Target& target, const CompileRequest& request,
                    const std::vector<std::vector<int64_t>>& calls) {
  LATHE_TRY(Dispatcher dispatcher, Dispatcher::create(model, request));
  Trace result;
  result.symbols = dispatcher.symbols();
  for (const std::vector<int64_t>& sizes : calls) {
    TracedCall call{sizes};
    const auto served = dispatcher.serve(sizes, [&](const Artifact& planned) {
      return guards_of(model, target, request, planned, dispatcher, sizes);
    });
    if (served.ok()) {
      call.artifact = served->artifact;
      call.compiles = served->is_new;
      if (served->is_new) call.reason = dispatcher.artifacts()[served->artifact].reason;
      result.num_compiled += served->is_new ? 1 : 0;
    } else if (dispatcher.artifacts().empty()) {
      return Diag(served.error());
    } else {
      call.reason = served.error().message;
    }
    result.calls.push_back(std::move(call));
  }
  result.artifacts = dispatcher.artifacts();
  return result;
}

std::string to_json(const Trace& trace) {
  using Json = nlohmann::ordered_json;
  const auto by_symbol = [&](const auto& sizes, auto&& value) {
    Json json = Json::object();
    for (size_t i = 0; i < trace.symbols.size(); ++i) json[trace.symbols[i]] = value(sizes[i]);
    return json;
  };
  Json json = {{"symbols", trace.symbols}, {"calls", Json::array()}, {"artifacts", Json::array()}};
  for (const TracedCall& call : trace.calls)
    json["calls"].push_back(
        {{"sizes", by_symbol(call.sizes, [](int64_t size) { return Json(size); })},
         {"artifact", call.artifact ? Json(*call.artifact) : Json()},
         {"compiles", call.compiles},
         {"reason", call.reason}});
  for (const Artifact& artifact : trace.artifacts)
    json["artifacts"].push_back(
        {{"sizes",
          by_symbol(artifact.sizes, [](const auto& size) { return size ? Json(*size) : Json(); })},
         {"hint", artifact.hint},
         {"reason", artifact.reason},
         {"calls", artifact.calls}});
  json["compiled"] = trace.num_compiled;
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::vector<std::string> hot_sizes(const Trace& trace, size_t count) {
  std::map<std::vector<int64_t>, int64_t> times;
  for (const TracedCall& call : trace.calls)
    if (call.artifact && trace.artifacts[*call.artifact].is_symbolic()) ++times[call.sizes];
  std::vector<std::pair<std::vector<int64_t>, int64_t>> order(times.begin(), times.end());
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> hints;
  for (size_t i = 0; i < std::min(count, order.size()) && order[i].second > 1; ++i) {
    std::vector<std::string> facts;
    for (size_t k = 0; k < trace.symbols.size(); ++k)
      facts.push_back(fmt::format("{} == {}", trace.symbols[k], order[i].first[k]));
    hints.push_back(fmt::format("{}", fmt::join(facts, "; ")));
  }
  return hints;
}

}  // namespace lathe
