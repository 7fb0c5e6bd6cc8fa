// Text, files and the search for the nearest: see choices_file.h.
#include "frontend/driver/choices_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

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
namespace fs = std::filesystem;

constexpr int kVersion = 1;
constexpr size_t kMostBytes = size_t{4} << 20;
constexpr size_t kMostFiles = 1000;  // that are looked at for the nearest
constexpr size_t kShown = 60;        // characters of a part of the key in a message

constexpr size_t kLongestModelName = 60;  // of a model, in a file's

// "bert_base.aten" of bert_base.aten.json.gz.
std::string name_of(const Model& model) {
  const fs::path path = model.path;
  const bool is_packed = path.extension() == ".gz";
  const fs::path name = is_packed ? path.stem().stem() : path.stem();
  return to_file_name(name.string()).substr(0, kLongestModelName);
}

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

// The parts in which a file's key is another: the first named with both values.
struct Difference {
  size_t count = 0;
  std::string first;
};
std::string find_part(const ChoicesKey& key, const std::string& name) {
  for (const auto& [part, value] : key)
    if (part == name) return value;
  return "missing";
}

Difference compare(const ChoicesKey& theirs, const ChoicesKey& key) {
  Difference difference;
  for (const auto& [name, value] : key) {
    const std::string other = find_part(theirs, name);
    if (other == value || difference.count++ > 0) continue;
    difference.first = fmt::format("its {} is '{}', here '{}'", name, other.substr(0, kShown),
                                   value.substr(0, kShown));
  }
  return difference;
}

// Why no file of the model fits: the difference of the one that is nearest.
std::string nearest_miss(const Model& model, const ChoicesKey& key) {
  Difference least;
  std::string name;
  std::error_code error;
  size_t looked_at = 0;
  for (fs::directory_iterator at(cache_folder("choices"), error), end; !error && at != end;
       at.increment(error)) {
    const std::string file = at->path().filename().string();
    if (!file.starts_with(name_of(model) + "-") || ++looked_at > kMostFiles) continue;
    Result<Choices> read = read_choices(at->path().string());
    if (!read.ok()) continue;
    Difference difference = compare(read->key, key);
    const bool is_nearer = name.empty() || difference.count < least.count ||
                           (difference.count == least.count && file < name);
    if (!is_nearer) continue;
    least = std::move(difference);
    name = file;
  }
  if (name.empty()) return fmt::format("nothing was measured for '{}' yet", name_of(model));
  return fmt::format("{} is of something else: {}", name, least.first);
}

}  // namespace

ChoicesKey choices_key(const Model& model, const Target& target, const CompileRequest& request) {
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

std::string choices_path(const Model& model, const ChoicesKey& key) {
  const std::string folder = cache_folder("choices");
  if (folder.empty()) return "";
  Hasher hasher;
  for (const auto& [name, value] : key) hasher.add(value);
  return fmt::format("{}/{}-{:016x}.json", folder, name_of(model), hasher.value());
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

Result<Choices> load_choices(const Model& model, const ChoicesKey& key) {
  const std::string path = choices_path(model, key);
  Result<Choices> choices = read_choices(path);
  if (!choices.ok() && choices.error().code == code::kMissingFile)
    return Diag{code::kMissingFile, Loc::unknown(), nearest_miss(model, key)};
  if (!choices.ok()) return choices;
  if (const Difference difference = compare(choices->key, key); difference.count > 0)
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
