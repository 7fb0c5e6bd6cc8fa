// Reads experiment configs: one reader for each key, in a table that the schema's test compares
// with experiments/schema/experiment.schema.json.
#include "experiments/runner/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "ir/support/diag_codes.h"

namespace lathe {

namespace {

using json::Kind;
using json::Member;
using json::Value;

constexpr int kMaxThreads = 1024;
constexpr int kMaxRepeats = 1000000;

// What every reader needs: where errors point, and what it fills.
struct Reader {
  const LocateFn& locate;
  ExperimentConfig& config;

  Loc at(Value value, size_t inside = 0) const { return locate(value.offset() + inside); }
  Diag error(Value value, std::string message) const {
    return {code::kBadValue, at(value), std::move(message)};
  }
  Diag wrong_kind(const Member& member, std::string_view expected) const {
    return error(member.value, fmt::format("'{}' is {}, got {}", member.key, expected,
                                           kind_name(member.value.kind())));
  }
};

bool is_number(Value value) {
  return value.kind() == Kind::integer || value.kind() == Kind::number;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  std::string near = nearest(word, candidates);
  return near.empty() ? std::string() : fmt::format("; did you mean '{}'?", near);
}

// A key's own place is not in the document: it is looked for before its value.
Loc locate_key(const Reader& r, const Member& member) {
  std::string_view text = member.value.document().text;
  size_t at = text.rfind(fmt::format("\"{}\"", member.key), member.value.offset());
  return r.locate(at == std::string_view::npos ? member.value.offset() : at);
}

Status unknown_key(const Reader& r, const Member& member, const std::vector<std::string>& keys) {
  std::string near = did_you_mean(member.key, keys);
  if (near.empty()) near = fmt::format("; the keys are {}", fmt::join(keys, ", "));
  return Diag{code::kUnknownKey, locate_key(r, member),
              fmt::format("no key named '{}'{}", member.key, near)};
}

// Readers of kinds.

Status read_string(Reader& r, const Member& member, std::string& out) {
  if (member.value.kind() != Kind::string) return r.wrong_kind(member, "a string");
  out = member.value.string();
  return Ok{};
}

Status read_word(Reader& r, const Member& member, const std::vector<std::string>& words,
                 std::string& out) {
  LATHE_DO(read_string(r, member, out));
  if (std::find(words.begin(), words.end(), out) == words.end())
    return r.error(member.value,
                   fmt::format("'{}' is one of {}, got '{}'{}", member.key, fmt::join(words, ", "),
                               out, did_you_mean(out, words)));
  return Ok{};
}

Result<int64_t> read_integer(const Reader& r, std::string_view what, Value value, int64_t min,
                             int64_t max) {
  if (value.kind() == Kind::integer && value.integer() >= min && value.integer() <= max)
    return value.integer();
  std::string got(kind_name(value.kind()));
  if (is_number(value)) got = fmt::format("{}", value.number());
  if (value.kind() == Kind::string) got = fmt::format("'{}'", value.string());
  return r.error(value,
                 fmt::format("'{}' is a whole number from {} to {}, got {}", what, min, max, got));
}

// A list, or one element of it alone; an empty list is an error.
Result<std::vector<Value>> one_or_more(const Reader& r, const Member& member) {
  std::vector<Value> values;
  if (member.value.kind() != Kind::array) return std::vector<Value>{member.value};
  for (Value item : member.value.elements()) values.push_back(item);
  if (values.empty()) return r.error(member.value, fmt::format("'{}' is empty", member.key));
  return values;
}

Status read_source(Reader& r, const Member& member, DataSource& out) {
  std::string text;
  LATHE_DO(read_string(r, member, text));
  out = {.loc = r.at(member.value)};
  constexpr std::string_view kRandom = "random:";
  if (text.compare(0, kRandom.size(), kRandom) != 0) {
    if (text == "random")
      return r.error(member.value, fmt::format("'{}' needs a seed: random:0", member.key));
    out.file = text;
    return Ok{};
  }
  std::string digits = text.substr(kRandom.size());
  bool ok = !digits.empty() && digits.size() < 19 &&
            digits.find_first_not_of("0123456789") == std::string::npos;
  if (!ok)
    return r.error(member.value,
                   fmt::format("the seed of '{}' is a whole number, got '{}'", member.key, digits));
  out.is_random = true;
  for (char c : digits) out.seed = out.seed * 10 + static_cast<uint64_t>(c - '0');
  return Ok{};
}

// "bert_base" of "graphs/bert_base.aten.json.gz" is "bert_base.aten": the stem tells forms apart.
std::string stem(std::string path) {
  size_t slash = path.rfind('/');
  if (slash != std::string::npos) path = path.substr(slash + 1);
  for (std::string_view ending : {".gz", ".json", ".pt2", ".lathe"}) {
    bool ends = path.size() > ending.size() &&
                path.compare(path.size() - ending.size(), ending.size(), ending) == 0;
    if (ends) path.resize(path.size() - ending.size());
  }
  return path;
}

// Readers of keys.

Status read_model(Reader& r, Value value) {
  ModelRef model{.name = {}, .source = {}, .loc = r.at(value)};
  if (value.kind() == Kind::string) {
    model.source = value.string();
  } else if (value.kind() == Kind::object) {
    for (Member member : value.members()) {
      if (member.key == "name") {
        LATHE_DO(read_string(r, member, model.name));
      } else if (member.key == "path") {
        LATHE_DO(read_string(r, member, model.source));
        model.loc = r.at(member.value);
      } else {
        return unknown_key(r, member, {"name", "path"});
      }
    }
  } else {
    return r.error(value, fmt::format("a model is a path, a name or an object with 'path', got {}",
                                      kind_name(value.kind())));
  }
  if (model.source.empty()) return r.error(value, "a model needs a path or a name");
  if (model.name.empty()) model.name = stem(model.source);
  r.config.models.push_back(std::move(model));
  return Ok{};
}

Status read_models(Reader& r, const Member& member) {
  r.config.models.clear();
  LATHE_TRY(std::vector<Value> values, one_or_more(r, member));
  for (Value value : values) LATHE_DO(read_model(r, value));
  return Ok{};
}

// Text that starts at a quote of the config: a position in it is one further in the file.
Status read_passes(Reader& r, const Member& member) {
  Value value = member.value;
  r.config.variants.clear();
  if (value.kind() == Kind::string) {
    std::string text(value.string());
    r.config.variants.push_back({text, text, r.at(value, 1)});
    return Ok{};
  }
  if (value.kind() != Kind::object || value.size() == 0)
    return r.wrong_kind(member, "a pipeline or an object of named pipelines");
  std::set<std::string_view> names;
  for (Member named : value.members()) {
    std::string text;
    LATHE_DO(read_string(r, named, text));
    if (!names.insert(named.key).second)
      return r.error(named.value, fmt::format("pipeline '{}' is written twice", named.key));
    r.config.variants.push_back({std::string(named.key), text, r.at(named.value, 1)});
  }
  return Ok{};
}

Status read_targets(Reader& r, const Member& member) {
  static const std::vector<std::string> kTargets = {"cpu", "cuda", "wasm", "interp"};
  std::vector<std::string>& targets = r.config.targets;
  targets.clear();
  LATHE_TRY(std::vector<Value> values, one_or_more(r, member));
  for (Value value : values) {
    std::string name;
    LATHE_DO(read_word(r, {member.key, value}, kTargets, name));
    if (std::find(targets.begin(), targets.end(), name) == targets.end()) targets.push_back(name);
  }
  return Ok{};
}

Status read_threads(Reader& r, const Member& member) {
  r.config.threads.clear();
  LATHE_TRY(std::vector<Value> values, one_or_more(r, member));
  for (Value value : values) {
    LATHE_TRY(int64_t threads, read_integer(r, member.key, value, 1, kMaxThreads));
    r.config.threads.push_back(static_cast<int>(threads));
  }
  return Ok{};
}

Status read_dims(Reader& r, const Member& member) {
  if (member.value.kind() != Kind::object)
    return r.wrong_kind(member, "an object of sizes by symbol");
  r.config.dims.clear();
  r.config.dims_loc = r.at(member.value);
  for (Member dim : member.value.members()) {
    LATHE_TRY(int64_t size, read_integer(r, dim.key, dim.value, 0, int64_t{1} << 40));
    r.config.dims[std::string(dim.key)] = size;
  }
  return Ok{};
}

Status read_measure(Reader& r, const Member& member) {
  if (member.value.kind() != Kind::object) return r.wrong_kind(member, "an object");
  MeasureOptions& measure = r.config.measure;
  for (Member m : member.value.members()) {
    if (m.key == "warmup") {
      LATHE_TRY(int64_t n, read_integer(r, m.key, m.value, 0, kMaxRepeats));
      measure.warmup = static_cast<int>(n);
    } else if (m.key == "repeats") {
      LATHE_TRY(int64_t n, read_integer(r, m.key, m.value, 1, kMaxRepeats));
      measure.repeats = static_cast<int>(n);
    } else if (m.key == "min_ms") {
      constexpr double kMaxMs = 3.6e6;
      if (!is_number(m.value) || !(m.value.number() >= 0) || m.value.number() > kMaxMs)
        return r.error(m.value, "'min_ms' is a number of milliseconds from 0 to 3600000");
      measure.min_ms = m.value.number();
    } else {
      return unknown_key(r, m, {"min_ms", "repeats", "warmup"});
    }
  }
  return Ok{};
}

Status read_dynamic(Reader& r, const Member& member) {
  r.config.dynamic_loc = r.at(member.value);
  r.config.dynamic.reset();
  if (member.value.kind() == Kind::null) return Ok{};
  if (member.value.kind() != Kind::boolean) return r.wrong_kind(member, "true, false or null");
  r.config.dynamic = member.value.boolean();
  return Ok{};
}

Status read_next(Reader& r, const Member& member) {
  r.config.next.clear();
  if (member.value.kind() != Kind::object)
    return r.wrong_kind(member, "an object of sentences by command");
  for (Member m : member.value.members()) {
    NextStep step{.command = std::string(m.key), .says = {}};
    LATHE_DO(read_string(r, m, step.says));
    r.config.next.push_back(std::move(step));
  }
  return Ok{};
}

Status read_check(Reader& r, const Member& member) {
  std::string word;
  LATHE_DO(read_word(r, member, {"interp", "none"}, word));
  r.config.check_interp = word == "interp";
  return Ok{};
}

Status read_mode(Reader& r, const Member& member) {
  r.config.mode_loc = r.at(member.value);
  static const std::vector<std::string> kModes = {"default", "max-autotune",
                                                  "max-autotune-no-cudagraphs", "reduce-overhead"};
  return read_word(r, member, kModes, r.config.mode);
}

Status read_dtype(Reader& r, const Member& member) {
  r.config.dtype_loc = r.at(member.value);
  return read_word(r, member, {"bf16", "f16", "f32", "f64"}, r.config.dtype);
}

Status read_isa(Reader& r, const Member& member) {
  r.config.isa_loc = r.at(member.value);
  return read_string(r, member, r.config.isa);
}

Status read_numerics(Reader& r, const Member& member) {
  std::string word;
  r.config.numerics_loc = r.at(member.value);
  LATHE_DO(read_word(r, member, {std::begin(kNumericsNames), std::end(kNumericsNames)}, word));
  r.config.numerics = word == "strict" ? Numerics::strict : Numerics::standard;
  return Ok{};
}

Status read_weights(Reader& r, const Member& member) {
  LATHE_DO(read_source(r, member, r.config.weights));
  DataSource& weights = r.config.weights;
  if (!weights.is_random && weights.file != "file")
    return r.error(member.value,
                   fmt::format("'weights' is 'file' or 'random:SEED', got '{}'", weights.file));
  return Ok{};
}

struct Key {
  std::string_view name;
  Status (*read)(Reader&, const Member&);
};

// "model" and "models" are the same key; so are "target" and "targets".
constexpr Key kKeys[] = {
    {"$schema", [](Reader&, const Member&) -> Status { return Ok{}; }},
    {"about", [](Reader& r, const Member& m) { return read_string(r, m, r.config.about); }},
    {"check", read_check},
    {"dims", read_dims},
    {"dtype", read_dtype},
    {"dynamic", read_dynamic},
    {"inputs", [](Reader& r, const Member& m) { return read_source(r, m, r.config.inputs); }},
    {"isa", read_isa},
    {"measure", read_measure},
    {"mode", read_mode},
    {"model", read_models},
    {"models", read_models},
    {"name", [](Reader& r, const Member& m) { return read_string(r, m, r.config.name); }},
    {"next", read_next},
    {"numerics", read_numerics},
    {"passes", read_passes},
    {"target", read_targets},
    {"targets", read_targets},
    {"threads", read_threads},
    {"title", [](Reader& r, const Member& m) { return read_string(r, m, r.config.title); }},
    {"weights", read_weights},
};

std::string print_source(const DataSource& source) {
  if (source.is_random) return fmt::format("random:{}", source.seed);
  return source.file;
}

}  // namespace

std::vector<std::string> config_keys() {
  std::vector<std::string> keys;
  for (const Key& key : kKeys) keys.emplace_back(key.name);
  return keys;
}

Status apply_config(Value object, const LocateFn& locate, ExperimentConfig& config) {
  Reader reader{locate, config};
  if (object.kind() != Kind::object)
    return reader.error(object,
                        fmt::format("a config is an object, got {}", kind_name(object.kind())));
  std::set<std::string_view> seen;
  for (Member member : object.members()) {
    const Key* key = std::find_if(std::begin(kKeys), std::end(kKeys),
                                  [&](const Key& k) { return k.name == member.key; });
    if (key == std::end(kKeys)) return unknown_key(reader, member, config_keys());
    if (!seen.insert(member.key).second)
      return Diag{code::kBadValue, locate_key(reader, member),
                  fmt::format("key '{}' is written twice", member.key)};
    LATHE_DO(key->read(reader, member));
  }
  return Ok{};
}

Result<ExperimentConfig> read_config(std::string_view text, const std::string& file,
                                     LocTable& locs) {
  LATHE_TRY(auto document, json::parse(text, file, locs, {.max_bytes = 1 << 20, .max_depth = 16}));
  ExperimentConfig config;
  config.name = stem(file);
  LocateFn locate = [&](size_t offset) { return json::locate(*document, offset, locs); };
  LATHE_DO(apply_config(document->root(), locate, config));
  if (config.models.empty())
    return Diag{code::kBadValue, locate(document->root().offset()),
                "a config names at least one model: \"model\": \"ffnn\""};
  return config;
}

std::string print_config(const ExperimentConfig& config) {
  nlohmann::ordered_json json;
  json["name"] = config.name;
  if (!config.title.empty()) json["title"] = config.title;
  for (const ModelRef& model : config.models)
    json["models"].push_back({{"name", model.name}, {"path", model.source}});
  json["weights"] = print_source(config.weights);
  json["inputs"] = print_source(config.inputs);
  json["mode"] = config.mode;
  if (config.dynamic) {
    json["dynamic"] = *config.dynamic;
  } else {
    json["dynamic"] = nullptr;
  }
  if (!config.dims.empty()) json["dims"] = config.dims;
  for (const Variant& variant : config.variants) json["passes"][variant.name] = variant.passes;
  json["targets"] = config.targets;
  if (!config.isa.empty()) json["isa"] = config.isa;
  if (!config.threads.empty()) json["threads"] = config.threads;
  if (!config.dtype.empty()) json["dtype"] = config.dtype;
  json["numerics"] = kNumericsNames[static_cast<size_t>(config.numerics)];
  json["measure"] = {{"warmup", config.measure.warmup},
                     {"repeats", config.measure.repeats},
                     {"min_ms", config.measure.min_ms}};
  json["check"] = config.check_interp ? "interp" : "none";
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Status check_mode(const std::string& mode, const std::string& target, bool has_graphs) {
  if (mode == "default" || (has_graphs && mode == "reduce-overhead")) return Ok{};
  return Diag{code::kUnsupported, Loc::unknown(),
              fmt::format("mode '{}' is not supported yet on target {}, expected 'default'{}", mode,
                          target, has_graphs ? " or 'reduce-overhead'" : "")};
}

}  // namespace lathe
