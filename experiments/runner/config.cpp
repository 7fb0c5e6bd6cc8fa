// Reads experiment configs: one reader for each key, in a table that the schema's test compares
// with experiments/schema/experiment.schema.json.
#include "experiments/runner/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "frontend/driver/files.h"
#include "ir/support/diag_codes.h"

namespace lathe {

namespace {

using json::Kind;
using json::Member;
using json::Value;

using Config = ExperimentConfig;
constexpr int kMaxRepeats = 1000000;

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

Status read_model(const ObjectReader& r, Value value, Config& config) {
  ModelRef model{.name = {}, .source = {}, .loc = r.at(value)};
  if (value.kind() == Kind::string) {
    model.source = value.string();
  } else if (value.kind() == Kind::object) {
    for (Member member : value.members()) {
      if (member.key == "name") {
        LATHE_DO(r.string(member, model.name));
      } else if (member.key == "path") {
        LATHE_DO(r.string(member, model.source));
        model.loc = r.at(member.value);
      } else if (member.key == "dims") {
        LATHE_DO(read_dims(r, member, model.dims));
      } else {
        return r.unknown_key(member, {"dims", "name", "path"});
      }
    }
  } else {
    return r.error(value, fmt::format("a model is a path, a name or an object with 'path', got {}",
                                      kind_name(value.kind())));
  }
  if (model.source.empty()) return r.error(value, "a model needs a path or a name");
  if (model.name.empty()) model.name = stem(model.source);
  config.models.push_back(std::move(model));
  return Ok{};
}

// The results file lies in results/ under this name, wherever the config came from.
Status read_name(const ObjectReader& r, const Member& member, Config& config) {
  LATHE_DO(r.string(member, config.name));
  if (is_file_name(config.name)) return Ok{};
  return r.error(member.value,
                 fmt::format("'name' is letters, digits, '.', '_' and '-'; did you mean '{}'?",
                             to_file_name(config.name)));
}

Status read_models(const ObjectReader& r, const Member& member, Config& config) {
  config.models.clear();
  LATHE_TRY(std::vector<Value> values, r.one_or_more(member));
  for (Value value : values) LATHE_DO(read_model(r, value, config));
  return Ok{};
}

// Text that starts at a quote of the config: a position in it is one further in the file.
Status read_passes(const ObjectReader& r, const Member& member, Config& config) {
  Value value = member.value;
  config.variants.clear();
  if (value.kind() == Kind::string) {
    std::string text(value.string());
    config.variants.push_back({text, text, r.at(value, 1)});
    return Ok{};
  }
  if (value.kind() != Kind::object || value.size() == 0)
    return r.wrong_kind(member, "a pipeline or an object of named pipelines");
  std::set<std::string_view> names;
  for (Member named : value.members()) {
    std::string text;
    LATHE_DO(r.string(named, text));
    if (!names.insert(named.key).second)
      return r.error(named.value, fmt::format("pipeline '{}' is written twice", named.key));
    config.variants.push_back({std::string(named.key), text, r.at(named.value, 1)});
  }
  return Ok{};
}

Status read_targets(const ObjectReader& r, const Member& member, Config& config) {
  std::vector<std::string> words = target_words();
  words.push_back("interp");
  config.targets.clear();
  LATHE_TRY(std::vector<Value> values, r.one_or_more(member));
  for (Value value : values) {
    std::string name;
    LATHE_DO(r.word({member.key, value}, words, name));
    if (std::find(config.targets.begin(), config.targets.end(), name) == config.targets.end())
      config.targets.push_back(name);
  }
  return Ok{};
}

Status read_thread_counts(const ObjectReader& r, const Member& member, Config& config) {
  config.threads.clear();
  LATHE_TRY(std::vector<Value> values, r.one_or_more(member));
  for (Value value : values) {
    LATHE_TRY(int threads, read_threads(r, member.key, value));
    config.threads.push_back(threads);
  }
  return Ok{};
}

Status read_repeats(const ObjectReader& r, const Member& member, int64_t least, int& out) {
  LATHE_TRY(int64_t count, r.integer(member.key, member.value, least, kMaxRepeats));
  out = static_cast<int>(count);
  return Ok{};
}

Status read_min_ms(const ObjectReader& r, const Member& member, MeasureOptions& out) {
  constexpr double kMaxMs = 3.6e6;
  const Value value = member.value;
  const bool is_number = value.kind() == Kind::integer || value.kind() == Kind::number;
  if (!is_number || !(value.number() >= 0) || value.number() > kMaxMs)
    return r.error(value, "'min_ms' is a number of milliseconds from 0 to 3600000");
  out.min_ms = value.number();
  return Ok{};
}

Status read_measure(const ObjectReader& r, const Member& member, Config& config) {
  using Options = MeasureOptions;
  static const std::vector<ObjectKey<Options>> keys = {
      {"min_ms", read_min_ms},
      {"repeats", [](const ObjectReader& reader, const Member& m,
                     Options& out) { return read_repeats(reader, m, 1, out.repeats); }},
      {"warmup", [](const ObjectReader& reader, const Member& m,
                    Options& out) { return read_repeats(reader, m, 0, out.warmup); }},
  };
  if (member.value.kind() != Kind::object) return r.wrong_kind(member, "an object");
  return read_members(member.value, r, keys, config.measure);
}

Status read_next(const ObjectReader& r, const Member& member, Config& config) {
  config.next.clear();
  if (member.value.kind() != Kind::object)
    return r.wrong_kind(member, "an object of sentences by command");
  for (Member m : member.value.members()) {
    NextStep step{.command = std::string(m.key), .says = {}};
    LATHE_DO(r.string(m, step.says));
    config.next.push_back(std::move(step));
  }
  return Ok{};
}

Status read_check(const ObjectReader& r, const Member& member, Config& config) {
  std::string word;
  LATHE_DO(r.word(member, {"interp", "none"}, word));
  config.check_interp = word == "interp";
  return Ok{};
}

Status read_dtype(const ObjectReader& r, const Member& member, Config& config) {
  config.dtype_loc = r.at(member.value);
  return r.word(member, {"bf16", "f16", "f32", "f64"}, config.dtype);
}

Status read_inputs(const ObjectReader& r, const Member& member, Config& config) {
  return read_source(r, member, config.inputs);
}

template <std::string Config::* kField>
Status read_text(const ObjectReader& r, const Member& member, Config& config) {
  return r.string(member, config.*kField);
}

Status read_nothing(const ObjectReader&, const Member&, Config&) { return Ok{}; }

// An option that all rows share is read as everywhere else.
Status read_shared(const ObjectReader& r, const Member& member, Config& config) {
  return read_option(r, member, config.request);
}

// The options that a study has lists of: "model" and "models" are the same key, and so are "target"
// and "targets".
const std::vector<ObjectKey<Config>>& list_keys() {
  static const std::vector<ObjectKey<Config>> keys = {
      {"model", read_models},   {"models", read_models},   {"passes", read_passes},
      {"target", read_targets}, {"targets", read_targets}, {"threads", read_thread_counts},
  };
  return keys;
}

// Sorted.
const std::vector<ObjectKey<Config>>& config_rows() {
  static const std::vector<ObjectKey<Config>> rows = [] {
    std::vector<ObjectKey<Config>> all = list_keys();
    for (const CompileOption& option : compile_options()) {
      auto is_list = [&](const ObjectKey<Config>& key) { return key.name == option.key; };
      if (std::none_of(all.begin(), all.end(), is_list)) all.push_back({option.key, read_shared});
    }
    all.insert(all.end(), {{"$schema", read_nothing},
                           {"about", read_text<&Config::about>},
                           {"check", read_check},
                           {"dtype", read_dtype},
                           {"inputs", read_inputs},
                           {"measure", read_measure},
                           {"name", read_name},
                           {"next", read_next},
                           {"title", read_text<&Config::title>}});
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return all;
  }();
  return rows;
}

std::string print_source(const DataSource& source) {
  if (source.is_random) return fmt::format("random:{}", source.seed);
  return source.file;
}

}  // namespace

std::vector<std::string> config_keys() { return names_of(config_rows()); }

Status apply_config(Value object, const LocateFn& locate, ExperimentConfig& config) {
  const ObjectReader reader(locate);
  if (object.kind() != Kind::object)
    return reader.error(object,
                        fmt::format("a config is an object, got {}", kind_name(object.kind())));
  return read_members(object, reader, config_rows(), config);
}

std::vector<FlagRow> config_flags() {
  std::vector<FlagRow> rows;
  for (FlagRow& row : option_flags()) {
    if (row.key == "model") row = {row.key, row.help + "; several with commas", FlagForm::list};
    if (row.key == "target") row = {"targets", "cpu, cuda, wasm, interp", FlagForm::list};
    if (row.key == "threads") row = {row.key, "numbers of threads, such as 1,2", FlagForm::list};
    if (row.key == "passes")
      row = {row.key, "pipeline text, or NAME=PIPELINE, given several times to compare",
             FlagForm::pipelines};
    rows.push_back(std::move(row));
  }
  rows.insert(rows.end(), {{"inputs", "random:SEED, or an .npz with tensors 0, 1, ..."},
                           {"dtype", "f32, f64, f16, bf16; the model's own unless given"},
                           {"measure", "such as warmup=3,repeats=20,min_ms=100", FlagForm::pairs},
                           {"check", "interp or none"},
                           {"name", "of the results file"}});
  return rows;
}

Status apply_config_flags(const std::vector<Flag>& flags, const std::string& command_line,
                          LocTable& locs, ExperimentConfig& config) {
  return apply_flags(
      flags, config_flags(), command_line, locs,
      [&](Value object, const LocateFn& locate) { return apply_config(object, locate, config); });
}

Result<ExperimentConfig> read_config(std::string_view text, const std::string& file,
                                     LocTable& locs) {
  LATHE_TRY(auto document, json::parse(text, file, locs, {.max_bytes = 1 << 20, .max_depth = 16}));
  ExperimentConfig config;
  config.name = to_file_name(stem(file));
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
  for (const ModelRef& model : config.models) {
    json["models"].push_back({{"name", model.name}, {"path", model.source}});
    if (!model.dims.empty()) json["models"].back()["dims"] = model.dims;
  }
  json["weights"] = print_source(config.request.weights);
  json["inputs"] = print_source(config.inputs);
  json["mode"] = config.request.mode;
  if (config.request.dynamic) {
    json["dynamic"] = *config.request.dynamic;
  } else {
    json["dynamic"] = nullptr;
  }
  const CompileRequest& request = config.request;
  if (request.cache) json["cache"] = true;
  if (!request.mark_dynamic.empty()) json["mark_dynamic"] = request.mark_dynamic;
  if (!request.specialize_on.empty()) json["specialize_on"] = request.specialize_on;
  if (request.recompile_limit != CompileRequest().recompile_limit)
    json["recompile_limit"] = request.recompile_limit;
  if (!config.request.dims.empty()) json["dims"] = config.request.dims;
  for (const Variant& variant : config.variants) json["passes"][variant.name] = variant.passes;
  json["targets"] = config.targets;
  if (!config.request.isa.empty()) json["isa"] = config.request.isa;
  if (!config.threads.empty()) json["threads"] = config.threads;
  if (!config.dtype.empty()) json["dtype"] = config.dtype;
  for (const Override& forced : config.request.force) json["force"].push_back(forced.text);
  json["numerics"] = kNumericsNames[static_cast<size_t>(config.request.numerics)];
  json["measure"] = {{"warmup", config.measure.warmup},
                     {"repeats", config.measure.repeats},
                     {"min_ms", config.measure.min_ms}};
  json["check"] = config.check_interp ? "interp" : "none";
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace lathe
