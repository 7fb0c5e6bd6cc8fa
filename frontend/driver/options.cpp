// The table of options, and the reader of each.
#include "frontend/driver/options.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/driver/machine.h"
#include "ir/support/diag_codes.h"

namespace lathe {

namespace {

using json::Kind;
using json::Member;

constexpr int kMaxThreads = 1024;
constexpr int64_t kMaxSize = int64_t{1} << 40;
constexpr int64_t kMaxPrograms = 1024;

Status read_force(const ObjectReader& reader, const Member& member, CompileRequest& out) {
  LATHE_TRY(const std::vector<json::Value> lines, reader.one_or_more(member));
  out.force.clear();
  for (const json::Value& line : lines) {
    std::string text;
    LATHE_DO(reader.string({member.key, line}, text));
    LATHE_TRY(Override decision, parse_override(text, reader.at(line)));
    out.force.push_back(std::move(decision));
  }
  return Ok{};
}

Status read_request_dims(const ObjectReader& reader, const Member& member, CompileRequest& out) {
  return read_dims(reader, member, out.dims);
}

Status read_dynamic(const ObjectReader& reader, const Member& member, CompileRequest& out) {
  out.dynamic.reset();
  if (member.value.kind() == Kind::null) return Ok{};
  if (member.value.kind() != Kind::boolean) return reader.wrong_kind(member, "true, false or null");
  out.dynamic = member.value.boolean();
  return Ok{};
}

template <std::vector<std::string> CompileRequest::* kField>
Status read_texts(const ObjectReader& reader, const Member& member, CompileRequest& out) {
  LATHE_TRY(const std::vector<json::Value> items, reader.one_or_more(member));
  (out.*kField).clear();
  for (const json::Value& item : items)
    LATHE_DO(reader.string({member.key, item}, (out.*kField).emplace_back()));
  return Ok{};
}

Status read_cache(const ObjectReader& reader, const Member& member, CompileRequest& out) {
  if (member.value.kind() != Kind::boolean) return reader.wrong_kind(member, "true or false");
  out.cache = member.value.boolean();
  return Ok{};
}

Status read_recompile_limit(const ObjectReader& reader, const Member& member, CompileRequest& out) {
  LATHE_TRY(out.recompile_limit, reader.integer(member.key, member.value, 1, kMaxPrograms));
  return Ok{};
}

Status read_mode(const ObjectReader& reader, const Member& member, CompileRequest& out) {
  static const std::vector<std::string> kModes = {"default", "max-autotune",
                                                  "max-autotune-no-cudagraphs", "reduce-overhead"};
  return reader.word(member, kModes, out.mode);
}

Status read_numerics(const ObjectReader& reader, const Member& member, CompileRequest& out) {
  static const std::vector<std::string> kWords(std::begin(kNumericsNames),
                                               std::end(kNumericsNames));
  std::string word;
  LATHE_DO(reader.word(member, kWords, word));
  const auto at = std::find(kWords.begin(), kWords.end(), word) - kWords.begin();
  out.numerics = static_cast<Numerics>(at);
  return Ok{};
}

Status read_weights(const ObjectReader& reader, const Member& member, CompileRequest& out) {
  LATHE_DO(read_source(reader, member, out.weights));
  if (out.weights.is_random || out.weights.file == "file") return Ok{};
  return reader.error(member.value, fmt::format("'weights' is 'file' or 'random:SEED', got '{}'",
                                                out.weights.file));
}

Status read_one_thread_count(const ObjectReader& reader, const Member& member,
                             CompileRequest& out) {
  LATHE_TRY(out.threads, read_threads(reader, member.key, member.value));
  return Ok{};
}

template <std::string CompileRequest::* kField>
Status read_text(const ObjectReader& reader, const Member& member, CompileRequest& out) {
  return reader.string(member, out.*kField);
}

Status read_target(const ObjectReader& reader, const Member& member, CompileRequest& out) {
  return reader.word(member, target_words(), out.target);
}

}  // namespace

const std::vector<CompileOption>& compile_options() {
  static const std::vector<CompileOption> options = {
      {"cache", "true: programs are kept for other processes, and found; false unless given",
       FlagForm::scalar, read_cache},
      {"dims", "sizes of symbolic dims, such as s0=8", FlagForm::pairs, read_request_dims},
      {"dynamic", "true: one program for every size; false: sizes are numbers; null: numbers first",
       FlagForm::scalar, read_dynamic},
      {"force", "'kernel NODE = KIND', 'tile NODE = 9x3', 'keep NODE': decided so, or refused",
       FlagForm::list, read_force},
      {"isa", "avx2, avx512, avx512_bf16, sm_90, simd128, relaxed; the best there is unless given",
       FlagForm::text, read_text<&CompileRequest::isa>},
      {"mark_dynamic", "symbolic dims that stay so in every program, such as s0", FlagForm::list,
       read_texts<&CompileRequest::mark_dynamic>},
      {"mode", "torch.compile's word: default, reduce-overhead, max-autotune", FlagForm::text,
       read_mode},
      {"model", "a path (.pt2, .json, .json.gz, .lathe) or a graph's name", FlagForm::text,
       read_text<&CompileRequest::model>},
      {"numerics",
       "default; ieee: convolutions on cuda without TF32; strict: the same bits on cpu and wasm",
       FlagForm::text, read_numerics},
      {"passes", "pipeline text; `lathe list passes` shows the words", FlagForm::text,
       read_text<&CompileRequest::passes>},
      {"recompile_limit", "programs for different sizes that are kept: 8 unless given",
       FlagForm::scalar, read_recompile_limit},
      {"specialize_on", "sizes with a program of their own: 's0 == 8; s1 % 4 == 0'", FlagForm::list,
       read_texts<&CompileRequest::specialize_on>},
      {"target", "cpu, cuda or wasm", FlagForm::text, read_target},
      {"threads", "every core unless given", FlagForm::scalar, read_one_thread_count},
      {"weights", "file, or random:SEED", FlagForm::text, read_weights},
  };
  return options;
}

// Pipeline text starts behind a quote, so that a position in it is a place in the file.
Status read_option(const ObjectReader& reader, const Member& member, CompileRequest& out) {
  for (const CompileOption& option : compile_options()) {
    if (option.key != member.key) continue;
    LATHE_DO(option.read(reader, member, out));
    out.places[std::string(member.key)] = reader.at(member.value, option.key == "passes" ? 1 : 0);
  }
  return Ok{};
}

Status apply_options(json::Value object, const LocateFn& locate,
                     const std::vector<std::string_view>& others, CompileRequest& request) {
  const ObjectReader reader(locate);
  if (object.kind() != Kind::object)
    return reader.error(object,
                        fmt::format("options are an object, got {}", kind_name(object.kind())));
  std::vector<std::string> names;
  for (const CompileOption& option : compile_options())
    if (std::find(others.begin(), others.end(), option.key) == others.end())
      names.emplace_back(option.key);
  std::set<std::string_view> seen;
  for (Member member : object.members()) {
    if (std::find(names.begin(), names.end(), member.key) == names.end())
      return reader.unknown_key(member, names);
    if (!seen.insert(member.key).second) return reader.repeated_key(member);
    LATHE_DO(read_option(reader, member, request));
  }
  return Ok{};
}

Status apply_some_options(json::Value object, const LocateFn& locate,
                          const std::vector<std::string_view>& keys, CompileRequest& request) {
  const ObjectReader reader(locate);
  for (std::string_view key : keys) {
    const json::MaybeValue value = object.member(key);
    if (value && !(*value).is_null()) LATHE_DO(read_option(reader, {key, *value}, request));
  }
  return Ok{};
}

Status read_source(const ObjectReader& reader, const Member& member, DataSource& out) {
  std::string text;
  LATHE_DO(reader.string(member, text));
  out = {.loc = reader.at(member.value)};
  constexpr std::string_view kRandom = "random:";
  if (text.compare(0, kRandom.size(), kRandom) != 0) {
    if (text == "random")
      return reader.error(member.value, fmt::format("'{}' needs a seed: random:0", member.key));
    out.file = text;
    return Ok{};
  }
  std::string digits = text.substr(kRandom.size());
  bool ok = !digits.empty() && digits.size() < 19 &&
            digits.find_first_not_of("0123456789") == std::string::npos;
  if (!ok)
    return reader.error(member.value, fmt::format("the seed of '{}' is a whole number, got '{}'",
                                                  member.key, digits));
  out.is_random = true;
  for (char c : digits) out.seed = out.seed * 10 + static_cast<uint64_t>(c - '0');
  return Ok{};
}

Status read_dims(const ObjectReader& reader, const Member& member,
                 std::map<std::string, int64_t>& out) {
  if (member.value.kind() != Kind::object)
    return reader.wrong_kind(member, "an object of sizes by symbol");
  out.clear();
  for (Member dim : member.value.members()) {
    LATHE_TRY(out[std::string(dim.key)], reader.integer(dim.key, dim.value, 0, kMaxSize));
  }
  return Ok{};
}

Result<int> read_threads(const ObjectReader& reader, std::string_view key, json::Value value) {
  LATHE_TRY(int64_t threads, reader.integer(key, value, 1, kMaxThreads));
  return static_cast<int>(threads);
}

std::vector<std::string> target_words() {
  std::set<std::string> words;
  for (const std::string& isa : target_names())
    if (const Target* target = find_target(isa)) words.insert(target->name);
  return {words.begin(), words.end()};
}

Loc CompileRequest::place(std::string_view key) const {
  auto found = places.find(key);
  return found == places.end() ? Loc::unknown() : found->second;
}

int CompileRequest::num_threads() const { return threads > 0 ? threads : usable_cores(); }

Status check_mode(const std::string& mode, const std::string& target, bool has_graphs) {
  if (mode != "reduce-overhead" || has_graphs) return Ok{};
  return Diag{code::kUnsupported, Loc::unknown(),
              fmt::format("mode '{}' is of launches that can be recorded, which target {} has not: "
                          "expected 'default' or 'max-autotune'",
                          mode, target)};
}

}  // namespace lathe
