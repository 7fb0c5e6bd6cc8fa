// Reads experiment configs: one reader for each key, in a table that the schema's test compares
// with experiments/schema/experiment.schema.json.
#include "experiments/runner/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "ir/support/diag_codes.h"
#include "ir/type/dtype.h"

namespace lathe {

namespace {

constexpr int kMaxThreads = 1024;
constexpr int kMaxRepeats = 1000000;

// What every reader needs: where errors point, and what it fills.
struct Reader {
  const JsonText& source;
  LocTable& locs;
  ExperimentConfig& config;

  Loc at(size_t offset) const { return source.locate(offset, locs); }
  Diag error(const JsonValue& value, std::string message) const {
    return {code::kBadValue, at(value.offset), std::move(message)};
  }
  Diag wrong_kind(const JsonMember& member, std::string_view expected) const {
    return error(member.value, fmt::format("'{}' is {}, got {}", member.key, expected,
                                           kind_name(member.value.kind)));
  }
};

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  std::string near = nearest(word, candidates);
  return near.empty() ? std::string() : fmt::format("; did you mean '{}'?", near);
}

Status unknown_key(const Reader& r, const JsonMember& member,
                   const std::vector<std::string>& keys) {
  std::string near = did_you_mean(member.key, keys);
  if (near.empty()) near = fmt::format("; the keys are {}", fmt::join(keys, ", "));
  return Diag{code::kUnknownKey, r.at(member.key_offset),
              fmt::format("no key named '{}'{}", member.key, near)};
}

// Readers of kinds.

Status read_string(Reader& r, const JsonMember& member, std::string& out) {
  if (member.value.kind != JsonValue::Kind::string) return r.wrong_kind(member, "a string");
  out = member.value.string;
  return Ok{};
}

Status read_word(Reader& r, const JsonMember& member, const std::vector<std::string>& words,
                 std::string& out) {
  LATHE_DO(read_string(r, member, out));
  if (std::find(words.begin(), words.end(), out) == words.end())
    return r.error(member.value,
                   fmt::format("'{}' is one of {}, got '{}'{}", member.key, fmt::join(words, ", "),
                               out, did_you_mean(out, words)));
  return Ok{};
}

Result<int64_t> read_integer(const Reader& r, std::string_view what, const JsonValue& value,
                             int64_t min, int64_t max) {
  bool ok = value.kind == JsonValue::Kind::number && value.number == std::floor(value.number) &&
            value.number >= static_cast<double>(min) && value.number <= static_cast<double>(max);
  if (!ok)
    return r.error(
        value,
        fmt::format("'{}' is a whole number from {} to {}, got {}", what, min, max,
                    value.kind == JsonValue::Kind::number || value.kind == JsonValue::Kind::string
                        ? "'" + value.string + "'"
                        : std::string(kind_name(value.kind))));
  return static_cast<int64_t>(value.number);
}

// A list, or one element of it alone.
std::vector<const JsonValue*> one_or_more(const JsonValue& value) {
  std::vector<const JsonValue*> values;
  if (value.kind != JsonValue::Kind::array) return {&value};
  for (const JsonValue& item : value.items) values.push_back(&item);
  return values;
}

Status read_source(Reader& r, const JsonMember& member, DataSource& out) {
  std::string text;
  LATHE_DO(read_string(r, member, text));
  out = {.loc = r.at(member.value.offset)};
  constexpr std::string_view kRandom = "random:";
  if (text.compare(0, kRandom.size(), kRandom) != 0) {
    if (text == "random")
      return r.error(member.value, fmt::format("'{}' needs a seed: random:0", member.key));
    if (text != "file") out.file = text;
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

std::string stem(const std::string& path) {
  size_t slash = path.rfind('/');
  std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  for (std::string_view ending : {".gz", ".json", ".pt2", ".lathe"})
    if (name.size() > ending.size() &&
        std::string_view(name).substr(name.size() - ending.size()) == ending)
      name.resize(name.size() - ending.size());
  return name;
}

// Readers of keys.

Status read_model(Reader& r, const JsonValue& value) {
  ModelRef model{.loc = r.at(value.offset)};
  if (value.kind == JsonValue::Kind::string) {
    model.source = value.string;
  } else if (value.kind == JsonValue::Kind::object) {
    for (const JsonMember& member : value.members) {
      if (member.key == "name") {
        LATHE_DO(read_string(r, member, model.name));
      } else if (member.key == "path") {
        LATHE_DO(read_string(r, member, model.source));
        model.loc = r.at(member.value.offset);
      } else {
        return unknown_key(r, member, {"name", "path"});
      }
    }
  } else {
    return r.error(value, fmt::format("a model is a path, a name or an object with 'path', got {}",
                                      kind_name(value.kind)));
  }
  if (model.source.empty()) return r.error(value, "a model needs a path or a name");
  if (model.name.empty()) model.name = stem(model.source);
  r.config.models.push_back(std::move(model));
  return Ok{};
}

Status read_models(Reader& r, const JsonMember& member) {
  r.config.models.clear();
  for (const JsonValue* value : one_or_more(member.value)) LATHE_DO(read_model(r, *value));
  return Ok{};
}

Status read_passes(Reader& r, const JsonMember& member) {
  const JsonValue& value = member.value;
  r.config.variants.clear();
  if (value.kind == JsonValue::Kind::string) {
    r.config.variants.push_back({value.string, value.string, r.at(value.offset + 1)});
    return Ok{};
  }
  if (value.kind != JsonValue::Kind::object || value.members.empty())
    return r.wrong_kind(member, "a pipeline or an object of named pipelines");
  for (const JsonMember& named : value.members) {
    std::string text;
    LATHE_DO(read_string(r, named, text));
    r.config.variants.push_back({named.key, text, r.at(named.value.offset + 1)});
  }
  return Ok{};
}

Status read_targets(Reader& r, const JsonMember& member) {
  static const std::vector<std::string> kTargets = {"cpu", "interp"};
  r.config.targets.clear();
  for (const JsonValue* value : one_or_more(member.value)) {
    std::string name;
    JsonMember one{member.key, member.key_offset, *value};
    LATHE_DO(read_word(r, one, kTargets, name));
    if (std::find(r.config.targets.begin(), r.config.targets.end(), name) == r.config.targets.end())
      r.config.targets.push_back(name);
  }
  if (r.config.targets.empty()) return r.error(member.value, "'targets' is empty");
  return Ok{};
}

Status read_threads(Reader& r, const JsonMember& member) {
  r.config.threads.clear();
  for (const JsonValue* value : one_or_more(member.value)) {
    LATHE_TRY(int64_t threads, read_integer(r, member.key, *value, 1, kMaxThreads));
    r.config.threads.push_back(static_cast<int>(threads));
  }
  return Ok{};
}

Status read_dims(Reader& r, const JsonMember& member) {
  if (member.value.kind != JsonValue::Kind::object)
    return r.wrong_kind(member, "an object of sizes by symbol");
  r.config.dims.clear();
  for (const JsonMember& dim : member.value.members) {
    LATHE_TRY(int64_t size, read_integer(r, dim.key, dim.value, 0, int64_t{1} << 40));
    r.config.dims[dim.key] = size;
  }
  return Ok{};
}

Status read_measure(Reader& r, const JsonMember& member) {
  if (member.value.kind != JsonValue::Kind::object) return r.wrong_kind(member, "an object");
  MeasureConfig& measure = r.config.measure;
  for (const JsonMember& m : member.value.members) {
    if (m.key == "warmup") {
      LATHE_TRY(int64_t n, read_integer(r, m.key, m.value, 0, kMaxRepeats));
      measure.warmup = static_cast<int>(n);
    } else if (m.key == "repeats") {
      LATHE_TRY(int64_t n, read_integer(r, m.key, m.value, 1, kMaxRepeats));
      measure.repeats = static_cast<int>(n);
    } else if (m.key == "min_ms") {
      if (m.value.kind != JsonValue::Kind::number || m.value.number < 0 || m.value.number > 3.6e6)
        return r.error(m.value, "'min_ms' is a number of milliseconds from 0 to 3600000");
      measure.min_ms = m.value.number;
    } else {
      return unknown_key(r, m, {"min_ms", "repeats", "warmup"});
    }
  }
  return Ok{};
}

Status read_dynamic(Reader& r, const JsonMember& member) {
  r.config.dynamic_loc = r.at(member.value.offset);
  r.config.dynamic.reset();
  if (member.value.kind == JsonValue::Kind::null) return Ok{};
  if (member.value.kind != JsonValue::Kind::boolean)
    return r.wrong_kind(member, "true, false or null");
  r.config.dynamic = member.value.boolean;
  return Ok{};
}

Status read_next(Reader& r, const JsonMember& member) {
  r.config.next.clear();
  if (member.value.kind != JsonValue::Kind::object)
    return r.wrong_kind(member, "an object of sentences by command");
  for (const JsonMember& m : member.value.members) {
    NextStep step{.command = m.key, .says = {}};
    LATHE_DO(read_string(r, m, step.says));
    r.config.next.push_back(std::move(step));
  }
  return Ok{};
}

Status read_check(Reader& r, const JsonMember& member) {
  std::string word;
  LATHE_DO(read_word(r, member, {"interp", "none"}, word));
  r.config.check_interp = word == "interp";
  return Ok{};
}

Status read_mode(Reader& r, const JsonMember& member) {
  r.config.mode_loc = r.at(member.value.offset);
  static const std::vector<std::string> kModes = {"default", "max-autotune",
                                                  "max-autotune-no-cudagraphs", "reduce-overhead"};
  return read_word(r, member, kModes, r.config.mode);
}

Status read_dtype(Reader& r, const JsonMember& member) {
  r.config.dtype_loc = r.at(member.value.offset);
  return read_word(r, member, {"bf16", "f16", "f32", "f64"}, r.config.dtype);
}

struct Key {
  std::string_view name;
  Status (*read)(Reader&, const JsonMember&);
};

// "model" and "models" are the same key; so are "target" and "targets".
constexpr Key kKeys[] = {
    {"$schema", [](Reader&, const JsonMember&) -> Status { return Ok{}; }},
    {"about", [](Reader& r, const JsonMember& m) { return read_string(r, m, r.config.about); }},
    {"check", read_check},
    {"dims", read_dims},
    {"dtype", read_dtype},
    {"dynamic", read_dynamic},
    {"inputs", [](Reader& r, const JsonMember& m) { return read_source(r, m, r.config.inputs); }},
    {"isa", [](Reader& r, const JsonMember& m) { return read_string(r, m, r.config.isa); }},
    {"measure", read_measure},
    {"mode", read_mode},
    {"model", read_models},
    {"models", read_models},
    {"name", [](Reader& r, const JsonMember& m) { return read_string(r, m, r.config.name); }},
    {"next", read_next},
    {"passes", read_passes},
    {"target", read_targets},
    {"targets", read_targets},
    {"threads", read_threads},
    {"title", [](Reader& r, const JsonMember& m) { return read_string(r, m, r.config.title); }},
    {"weights", [](Reader& r, const JsonMember& m) { return read_source(r, m, r.config.weights); }},
};

std::string print_source(const DataSource& source) {
  if (source.is_random) return fmt::format("random:{}", source.seed);
  return source.file.empty() ? "file" : source.file;
}

}  // namespace

std::vector<std::string> config_keys() {
  std::vector<std::string> keys;
  for (const Key& key : kKeys) keys.emplace_back(key.name);
  return keys;
}

Status apply_config(const JsonValue& object, const JsonText& source, LocTable& locs,
                    ExperimentConfig& config) {
  Reader reader{source, locs, config};
  if (object.kind != JsonValue::Kind::object)
    return reader.error(object,
                        fmt::format("a config is an object, got {}", kind_name(object.kind)));
  for (const JsonMember& member : object.members) {
    const Key* key = std::find_if(std::begin(kKeys), std::end(kKeys),
                                  [&](const Key& k) { return k.name == member.key; });
    if (key == std::end(kKeys)) return unknown_key(reader, member, config_keys());
    LATHE_DO(key->read(reader, member));
  }
  return Ok{};
}

Result<ExperimentConfig> read_config(const JsonText& source, LocTable& locs) {
  constexpr size_t kMaxBytes = 1 << 20;
  if (source.text.size() > kMaxBytes)
    return Diag{
        code::kTooLarge, source.locate(0, locs),
        fmt::format("a config has at most {} bytes, got {}", kMaxBytes, source.text.size())};
  LATHE_TRY(JsonValue root, parse_json(source, locs));
  ExperimentConfig config;
  config.name = stem(source.file);
  LATHE_DO(apply_config(root, source, locs, config));
  if (config.models.empty())
    return Diag{code::kBadValue, source.locate(root.offset, locs),
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
  json["threads"] = config.threads;
  if (!config.dtype.empty()) json["dtype"] = config.dtype;
  json["measure"] = {{"warmup", config.measure.warmup},
                     {"repeats", config.measure.repeats},
                     {"min_ms", config.measure.min_ms}};
  json["check"] = config.check_interp ? "interp" : "none";
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace lathe
