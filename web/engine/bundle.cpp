// "bundle": what lathe.capture wrote, from a zip that stays with the page. Nothing of it is kept:
// its graphs are opened as models, each by its entry.
#include <fmt/format.h>

#include <algorithm>

#include "frontend/bundle/groups.h"
#include "ir/support/diag_codes.h"
#include "web/engine/workspace.h"

namespace lathe {
namespace {

using bundle::Bundle;
using bundle::BundleFiles;
using bundle::Compile;

constexpr int64_t kLinesAround = 3;
constexpr uint64_t kMaxBundleBytes = uint64_t{128} << 20;  // that are asked for at once, inflated

// Asks for every file before the first is looked at, so that the page hands them over together.
Status ask_for(const BundleFiles& files, const std::vector<std::string>& names) {
  Status first_miss = Ok{};
  for (const std::string& name : names)
    if (Result<FileBytes> bytes = files.read(name); !bytes.ok() && first_miss.ok())
      first_miss = std::move(bytes).error();
  return first_miss;
}

std::vector<std::string> texts_of(const Bundle& bundle) {
  std::vector<std::string> names;
  for (const Compile& compile : bundle.compiles) {
    if (compile.guards) names.push_back(*compile.guards + ".txt");
    if (compile.graph && compile.graph->python) names.push_back(*compile.graph->python);
  }
  return names;
}

Json frames_json(const Bundle& bundle) {
  Json frames = Json::array();
  for (const bundle::Frame& frame : bundle.frames)
    frames.push_back({{"frame", frame.number},
                      {"function", frame.function},
                      {"is_resumed", frame.is_resumed},
                      {"file", frame.file},
                      {"line", frame.line}});
  return frames;
}

Result<Json> graph_json(const BundleFiles& files, const bundle::CapturedGraph& graph) {
  Json json{{"ops", graph.ops}, {"ends", graph.ends}, {"inputs", Json::array()}};
  if (graph.json) json["entry"] = *graph.json;
  if (graph.refused) json["refused"] = *graph.refused;
  for (const bundle::Input& input : graph.inputs)
    json["inputs"].push_back(
        {{"name", input.name}, {"source", input.source}, {"is_state", input.is_state}});
  if (graph.python) {
    LATHE_TRY(const FileBytes python, files.read(*graph.python));
    json["python"] = std::string(python.text());
  }
  return json;
}

Result<Json> compiles_json(const BundleFiles& files, const Bundle& bundle,
                           const std::vector<bundle::BreakGroup>& breaks) {
  Json compiles = Json::array();
  for (const Compile& compile : bundle.compiles) {
    Json json{{"id", compile.id()}, {"frame", compile.frame}};
    if (compile.call) json["call"] = *compile.call;
    if (compile.seconds) json["seconds"] = *compile.seconds;
    if (compile.failure) json["failure"] = *compile.failure;
    if (compile.graph) {
      LATHE_TRY(json["graph"], graph_json(files, *compile.graph));
    }
    if (compile.guards) {
      LATHE_TRY(const FileBytes guards, files.read(*compile.guards + ".txt"));
      json["guards"] = std::string(guards.text());
    }
    const auto end = std::find_if(breaks.begin(), breaks.end(),
                                  [&](const auto& group) { return group.ends(compile.id()); });
    if (end != breaks.end()) json["break"] = end - breaks.begin();
    compiles.push_back(std::move(json));
  }
  return compiles;
}

Json breaks_json(const Bundle& bundle, const std::vector<bundle::BreakGroup>& breaks) {
  Json list = Json::array();
  for (const bundle::BreakGroup& group : breaks) {
    const bundle::Break& row = *group.first;
    Json json{{"reason", row.reason}, {"explanation", row.explanation},
              {"hints", row.hints},   {"file", row.file},
              {"line", row.line},     {"url", row.url}};
    json["lines"] = Json::array();
    for (const bundle::SourceLine& line : bundle::lines_around(bundle, row, kLinesAround))
      json["lines"].push_back({{"line", line.number}, {"code", line.code}});
    list.push_back(std::move(json));
  }
  return list;
}

Json recompiles_json(const Bundle& bundle) {
  Json list = Json::array();
  for (const bundle::CauseGroup& group : bundle::group_recompiles(bundle)) {
    const bundle::Recompile& row = *group.cause;
    Json json{{"id", bundle::id_of(row.frame, row.compile)},
              {"frame", row.frame},
              {"call", row.call},
              {"kind", row.kind},
              {"reason", row.reason},
              {"reasons", row.reasons},
              {"follow", group.follow}};
    if (row.line > 0) {
      json["file"] = row.file;
      json["line"] = row.line;
      json["code"] = row.code;
    }
    list.push_back(std::move(json));
  }
  return list;
}

Result<Json> bundle_json(const BundleFiles& files, LocTable& locs) {
  std::vector<std::string> rows(std::begin(bundle::kRowFiles), std::end(bundle::kRowFiles));
  rows.insert(rows.begin(), bundle::kManifest);
  LATHE_DO(ask_for(files, rows));
  LATHE_TRY(const Bundle bundle, bundle::read(files, locs));
  LATHE_DO(ask_for(files, texts_of(bundle)));
  const std::vector<bundle::BreakGroup> breaks = bundle::group_breaks(bundle);
  Json json{{"name", files.path()},    {"model", bundle.model}, {"torch", bundle.torch},
            {"origin", bundle.origin}, {"calls", bundle.calls}, {"frames", frames_json(bundle)}};
  LATHE_TRY(json["compiles"], compiles_json(files, bundle, breaks));
  json["breaks"] = breaks_json(bundle, breaks);
  json["num_recompiles"] = bundle.recompiles.size();
  json["recompiles"] = recompiles_json(bundle);
  return json;
}

Result<Json> read_bundle(const OpeningFile& file, LocTable& locs) {
  LATHE_TRY(const BundleFiles files, BundleFiles::of_zip(file.remote->source(), file.name));
  return bundle_json(files, locs);
}

Status check_needed(const OpeningFile& file) {
  uint64_t sum = 0;
  for (const NeededRange& range : file.remote->needed())
    sum += std::max(range.size, range.inflated);
  if (sum <= kMaxBundleBytes) return Ok{};
  return Diag{code::kTooLarge, Loc::unknown(),
              fmt::format("'{}' has {} bytes to show, at most {} are read", file.name, sum,
                          kMaxBundleBytes)};
}

}  // namespace

Result<Answer> handle_bundle(Workspace& workspace, const Request& request) {
  LATHE_TRY(const int64_t handle, opening_of(workspace, request));
  const OpeningFile& file = *workspace.files[handle];
  Result<Json> json = read_bundle(file, request.locs());
  const Status is_small = check_needed(file);
  if (!json.ok() && is_small.ok())
    if (auto more = ask_for_more(workspace, handle, json.error())) return *std::move(more);
  workspace.files.erase(handle);
  LATHE_DO(is_small);
  Answer answer;
  LATHE_TRY(answer.json, std::move(json));
  return answer;
}

}  // namespace lathe
