// Text, files and the search for the nearest: see choices_file.h.
#include "frontend/driver/choices_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "frontend/driver/files.h"
#include "frontend/driver/machine.h"
#include "ir/graph/text.h"
#include "ir/graph/verify.h"
#include "ir/support/diag_codes.h"
#include "ir/support/hash.h"
#include "nlohmann/json.hpp"
#include "passes/lowering/kernel_def.h"

namespace lathe {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr size_t kMostBytes = size_t{4} << 20;

Diag not_whole(const std::string& what) { return {code::kBadValue, Loc::unknown(), what}; }

Result<std::vector<std::string>> read_lines(const Json& json, const char* name) {
  const Json list = json.value(name, Json());
  if (!list.is_array()) return not_whole(fmt::format("'{}' is no list", name));
  std::vector<std::string> lines;
  for (const Json& line : list) {
    if (!line.is_string()) return not_whole(fmt::format("'{}' is a list of lines", name));
    lines.push_back(line.get<std::string>());
  }
  return lines;
}

// Of a file; the Diag names it.
Result<Choices> read_choices(const std::string& path) {
  LATHE_TRY(const std::string text, read_file(path, kMostBytes));
  Result<Choices> choices = parse_choices(text);
  if (choices.ok()) return choices;
  return not_whole(fmt::format("{}: {}", path, choices.error().message));
}

Result<CacheKey> read_key(const std::string& path) {
  LATHE_TRY(Choices choices, read_choices(path));
  return std::move(choices.key);
}

}  // namespace

CacheKey choices_key(const Model& model, const Target& target, const CompileRequest& request) {
  std::vector<std::string> dims, force, kinds, tiles;
  for (const auto& [symbol, size] : model.dims) dims.push_back(fmt::format("{}={}", symbol, size));
  for (const Override& decision : request.force) force.push_back(decision.text);
  for (const KernelDef& kind : all_kernels()) kinds.push_back(kind.name);
  for (const RegisterTile& tile : target.gemm_tiles)
    tiles.push_back(fmt::format("{}x{}", tile.rows, tile.vectors));
  // A hash may stand for the graph: choices of another one name nodes that this one lacks, or are
  // slower, but never wrong.
  const uint64_t graph = Hasher().add(canonical_form(model.module.main())).value();
  return {{"graph", fmt::format("{:016x}", graph)},
          {"dims", fmt::format("{}", fmt::join(dims, " "))},
          {"isa", target.isa},
          {"processor", this_machine().cpu},
          {"threads", fmt::format("{}", request.num_threads())},
          {"numerics", std::string(kNumericsNames[static_cast<size_t>(request.numerics)])},
          {"passes", request.passes},
          {"force", fmt::format("{}", fmt::join(force, "; "))},
          {"kernels", fmt::format("{}", fmt::join(kinds, " "))},
          {"tiles", fmt::format("{}", fmt::join(tiles, " "))}};
}

std::string choices_path(const Model& model, const CacheKey& key) {
  return cache_path(cache_folder("choices"), model, key, "json");
}

std::string print(const Choices& choices) {
  Json key = Json::object(), force = Json::array();
  for (const auto& [name, value] : choices.key) key[name] = value;
  for (const Override& decision : choices.force) force.push_back(decision.text);
  const Json json = {{"version", kVersion},
                     {"for", std::move(key)},
                     {"force", std::move(force)},
                     {"measured", choices.measured}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Choices> parse_choices(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return not_whole("the file is not whole");
  if (json.value("version", Json()) != kVersion) return not_whole("it is of another version");
  Choices choices;
  const Json key = json.value("for", Json());
  if (!key.is_object()) return not_whole("'for' is no object");
  for (const auto& [name, value] : key.items()) {
    if (!value.is_string()) return not_whole("'for' is of texts");
    choices.key.emplace_back(name, value.get<std::string>());
  }
  LATHE_TRY(const std::vector<std::string> force, read_lines(json, "force"));
  for (const std::string& line : force) {
    LATHE_TRY(Override decision, parse_override(line, Loc::unknown()));
    choices.force.push_back(std::move(decision));
  }
  LATHE_TRY(choices.measured, read_lines(json, "measured"));
  return choices;
}

Result<Choices> load_choices(const Model& model, const CacheKey& key) {
  const std::string path = choices_path(model, key);
  Result<Choices> choices = read_choices(path);
  if (!choices.ok() && choices.error().code == code::kMissingFile)
    return Diag{code::kMissingFile, Loc::unknown(),
                nearest_miss(cache_folder("choices"), model, key, read_key)};
  if (!choices.ok()) return choices;
  if (const KeyDifference difference = compare(choices->key, key); difference.count > 0)
    return not_whole(fmt::format("{}: {}", path, difference.first));
  return choices;
}

Status save_choices(const Model& model, const Choices& choices) {
  const std::string path = choices_path(model, choices.key);
  if (path.empty())
    return Diag{code::kMissingFile, Loc::unknown(), "there is no home to keep choices in"};
  return write_output(path, print(choices));
}

}  // namespace lathe
