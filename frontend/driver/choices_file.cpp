// One JSON object: "version", "for" (the key), "force", "measured". See choices_file.h.
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

constexpr size_t kLongestName = 60;  // of a model, in a file's

// "bert_base.aten" of bert_base.aten.json.gz.
std::string name_of(const Model& model) {
  const fs::path path = model.path;
  const bool is_packed = path.extension() == ".gz";
  const fs::path name = is_packed ? path.stem().stem() : path.stem();
  return to_file_name(name.string()).substr(0, kLongestName);
}

Json to_json(const ChoicesKey& key) {
  Json json = Json::object();
  for (const auto& [name, value] : key) json[name] = value;
  return json;
}

Diag bad(const std::string& path, const std::string& what) {
  return {code::kBadValue, Loc::unknown(), fmt::format("{}: {}", path, what)};
}

struct ChoicesFile {
  Json key;
  Choices choices;
};

Result<ChoicesFile> read_choices(const std::string& path) {
  LATHE_TRY(const std::string text, read_file(path, kMostBytes));
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return bad(path, "the file is not whole");
  if (json.value("version", Json()) != kVersion) return bad(path, "it is of another version");
  ChoicesFile file{.key = json.value("for", Json())};
  const Json force = json.value("force", Json());
  if (!file.key.is_object() || !force.is_array()) return bad(path, "the file is not whole");
  for (const Json& line : force) {
    if (!line.is_string()) return bad(path, "'force' is a list of lines");
    Result<Override> decision = parse_override(line.get<std::string>(), Loc::unknown());
    if (!decision.ok()) return bad(path, decision.error().message);
    file.choices.force.push_back(*std::move(decision));
  }
  return file;
}

// The parts in which a file's key is another: the first named with both values.
struct Difference {
  size_t count = 0;
  std::string first;
};
Difference compare(const Json& theirs, const ChoicesKey& key) {
  Difference difference;
  for (const auto& [name, value] : key) {
    const Json other = theirs.value(name, Json());
    if (other == value) continue;
    if (difference.count++ > 0) continue;
    const std::string text = other.is_string() ? other.get<std::string>() : "missing";
    difference.first = fmt::format("its {} is '{}', here '{}'", name, text.substr(0, kShown),
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
    Result<ChoicesFile> read = read_choices(at->path().string());
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

Result<Choices> load_choices(const Model& model, const ChoicesKey& key) {
  const std::string path = choices_path(model, key);
  Result<ChoicesFile> file = read_choices(path);
  if (!file.ok() && file.error().code == code::kMissingFile)
    return Diag{code::kMissingFile, Loc::unknown(), nearest_miss(model, key)};
  if (!file.ok()) return std::move(file).error();
  if (const Difference difference = compare(file->key, key); difference.count > 0)
    return bad(path, difference.first);
  return std::move(file->choices);
}

Status save_choices(const Model& model, const ChoicesKey& key, const Choices& choices) {
  const std::string path = choices_path(model, key);
  if (path.empty())
    return Diag{code::kMissingFile, Loc::unknown(), "there is no home to keep choices in"};
  Json force = Json::array();
  for (const Override& decision : choices.force) force.push_back(decision.text);
  const Json json = {{"version", kVersion},
                     {"model", model.path},
                     {"for", to_json(key)},
                     {"force", std::move(force)},
                     {"measured", choices.measured}};
  return write_output(path, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace lathe
