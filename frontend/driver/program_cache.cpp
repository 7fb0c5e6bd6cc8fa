// Keys, files and their bounds: see program_cache.h.
//
//   file = magic, checksum of the rest, key: count { name value }, graph, program as text,
//          code: count { key object }, steps: count { region names place },
//          choices: count { region like kind tile: count { number } forced }
//
// Numbers are 64 bits, little-endian; texts follow their sizes.
#include "frontend/driver/program_cache.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>
#include <tuple>
#include <vector>

#include "frontend/driver/build_id.h"
#include "frontend/driver/files.h"
#include "frontend/driver/machine.h"
#include "ir/graph/text.h"
#include "ir/program/text.h"
#include "ir/support/canonical.h"
#include "ir/support/diag_codes.h"
#include "ir/support/hash.h"

namespace lathe {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kProgramMagic = "lathe program 2\n";
constexpr size_t kMostProgramBytes = size_t{1} << 28;  // of a file that is read
constexpr size_t kMostKeyBytes = size_t{1} << 20;      // of its begin, where the key is
constexpr auto kLeftover = std::chrono::hours(1);

// Reads what CanonicalBytes wrote; once something is missing, everything is empty.
class ProgramReader {
 public:
  explicit ProgramReader(std::string_view bytes) : rest_(bytes) {}
  uint64_t number() {
    uint64_t value = 0;
    if (rest_.size() < sizeof value) return fail();
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }
  std::string_view text() {
    const uint64_t size = number();
    if (size > rest_.size()) return fail(), std::string_view();
    const std::string_view text = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return text;
  }
  bool is_whole() const { return !failed_; }
  bool is_at_end() const { return !failed_ && rest_.empty(); }

 private:
  uint64_t fail() {
    failed_ = true;
    rest_ = {};
    return 0;
  }
  std::string_view rest_;
  bool failed_ = false;
};

// "model.py:12" as a location.
std::optional<Loc> location_of(const std::string& place, LocTable& locs) {
  const size_t colon = place.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  int line = 0;
  const char* const end = place.data() + place.size();
  if (std::from_chars(place.data() + colon + 1, end, line).ptr != end || line < 1)
    return std::nullopt;
  return locs.text(place.substr(0, colon), line, 0);
}

// What the text of a program leaves out of its steps; errors of runs then name the user's lines.
// False: of other steps.
bool read_steps(ProgramReader& reader, CachedProgram& cached) {
  if (reader.number() != cached.program.steps.size()) return false;
  for (Launch& step : cached.program.steps) {
    step.region = reader.text();
    Source& source = cached.sources.emplace_back();
    source.names = reader.text();
    source.place = reader.text();
    if (const std::optional<Loc> place = location_of(source.place, cached.locs))
      step.origins = {*place};
  }
  return true;
}

void write_steps(const std::vector<Launch>& steps, const std::vector<Source>& sources,
                 CanonicalBytes& bytes) {
  bytes.add(steps.size());
  for (size_t i = 0; i < steps.size(); ++i)
    for (const std::string* text : {&steps[i].region, &sources[i].names, &sources[i].place})
      bytes.add(std::string_view(*text));
}

std::vector<KernelChoice> read_choices(ProgramReader& reader) {
  std::vector<KernelChoice> choices;
  for (uint64_t count = reader.number(); count > 0 && reader.is_whole(); --count) {
    KernelChoice choice;
    choice.region = reader.text();
    choice.like = reader.text();
    choice.plan.kind = reader.text();
    for (uint64_t extents = reader.number(); extents > 0 && reader.is_whole(); --extents)
      choice.plan.tile.push_back(static_cast<int64_t>(reader.number()));
    choice.is_forced = reader.number() != 0;
    choices.push_back(std::move(choice));
  }
  return choices;
}

void write_choices(const std::vector<const KernelChoice*>& choices, CanonicalBytes& bytes) {
  bytes.add(choices.size());
  for (const KernelChoice* choice : choices) {
    for (const std::string* text : {&choice->region, &choice->like, &choice->plan.kind})
      bytes.add(std::string_view(*text));
    bytes.add(choice->plan.tile.size());
    for (int64_t extent : choice->plan.tile) bytes.add(extent);
    bytes.add(static_cast<int64_t>(choice->is_forced));
  }
}

Diag torn(const std::string& path, std::string_view why) {
  return {code::kBadValue, Loc::unknown(), fmt::format("{}: {}", path, why)};
}

CacheKey read_parts(ProgramReader& reader) {
  CacheKey key;
  for (uint64_t count = reader.number(); count > 0 && reader.is_whole(); --count) {
    const std::string name(reader.text());
    key.emplace_back(name, reader.text());
  }
  return key;
}

// What follows the magic and the checksum. `is_whole` false: of the begin of a file alone.
Result<std::string_view> content_of(const std::string& path, std::string_view bytes,
                                    bool is_whole) {
  if (!bytes.starts_with(kProgramMagic))
    return torn(path, "it is no program, or of another version");
  ProgramReader reader(bytes.substr(kProgramMagic.size()));
  const uint64_t checksum = reader.number();
  if (!reader.is_whole()) return torn(path, "the file is not whole");
  const std::string_view content = bytes.substr(kProgramMagic.size() + sizeof checksum);
  if (is_whole && Hasher().add(content).value() != checksum)
    return torn(path, "the file is not whole");
  return content;
}

std::string rates_text(const Rates& rates) {
  return fmt::format("{} GHz, {}, {}, {}, {}, {}, {}, {} bytes, {} us", rates.gigahertz,
                     rates.vectors_a_cycle, rates.divides_a_cycle, rates.gathers_a_cycle,
                     rates.l2_bytes_a_cycle, rates.l3_bytes_a_cycle, rates.memory_bytes_a_cycle,
                     rates.l3_bytes, rates.launch_us);
}

// Everything that passes read of a model: its text, and how its weights lie in memory.
std::string graph_text(const Model& model) {
  std::string text = print(model.module);
  for (const auto& [name, weight] : model.module.weights)
    text += fmt::format("{} {} by [{}]\n", name, to_string(weight.data.type),
                        fmt::join(weight.data.strides, ", "));
  return text;
}

}  // namespace

Result<ProgramKey> program_key(const Model& model, const Target& target,
                               const CompileRequest& request) {
  const auto cannot = [](const char* why) { return Diag{code::kUnavailable, Loc::unknown(), why}; };
  static const std::string build = build_id();
  if (build.empty()) return cannot("this build of Lathe has no id");
  if (program_cache_folder().empty()) return cannot("there is no home to keep programs in");
  ProgramKey key;
  key.graph = graph_text(model);
  std::vector<std::string> dims, force, facts;
  for (const auto& [symbol, size] : model.dims) dims.push_back(fmt::format("{}={}", symbol, size));
  for (const Override& decision : request.force) force.push_back(decision.text);
  std::string dynamic = request.dynamic ? (*request.dynamic ? "true" : "false") : "null";
  if (request.sizes) {
    dynamic = fmt::format("{}", fmt::join(request.sizes->symbols, " "));
    for (const Guard& fact : request.sizes->facts) facts.push_back(to_string(fact));
  }
  key.parts = {{"graph", fmt::format("{:016x}", Hasher().add(key.graph).value())},
               {"lathe", build},
               {"target", target.name},
               {"isa", target.isa},
               {"libraries", fmt::format("{}", fmt::join(target.libraries, " "))},
               {"processor", this_machine().cpu},
               {"rates", rates_text(target.rates)},
               {"threads", fmt::format("{}", request.num_threads())},
               {"numerics", std::string(kNumericsNames[static_cast<size_t>(request.numerics)])},
               {"mode", request.mode},
               {"passes", request.passes},
               {"force", fmt::format("{}", fmt::join(force, "; "))},
               {"dims", fmt::format("{}", fmt::join(dims, " "))},
               {"dynamic", dynamic},
               {"facts", fmt::format("{}", fmt::join(facts, "; "))}};
  return key;
}

std::string program_cache_folder() { return cache_folder("programs"); }

std::string cached_program_path(const Model& model, const ProgramKey& key) {
  return cache_path(program_cache_folder(), model, key.parts, "program");
}

Result<CacheKey> read_cached_key(const std::string& path) {
  LATHE_TRY(const std::string begin, read_begin(path, kMostKeyBytes));
  LATHE_TRY(const std::string_view content, content_of(path, begin, false));
  ProgramReader reader(content);
  CacheKey key = read_parts(reader);
  if (!reader.is_whole()) return torn(path, "the file is not whole");
  return key;
}

Result<CachedProgram> load_cached_program(const Model& model, const ProgramKey& key) {
  const std::string path = cached_program_path(model, key);
  Result<std::string> bytes = read_file(path, kMostProgramBytes);
  if (!bytes.ok() && bytes.error().code == code::kMissingFile)
    return Diag{code::kMissingFile, Loc::unknown(),
                nearest_miss(program_cache_folder(), model, key.parts, read_cached_key)};
  if (!bytes.ok()) return std::move(bytes).error();
  LATHE_TRY(const std::string_view content, content_of(path, *bytes, true));
  ProgramReader reader(content);
  if (const KeyDifference difference = compare(read_parts(reader), key.parts); difference.count > 0)
    return torn(path, difference.first);
  if (reader.text() != key.graph) return torn(path, "its graph is another with the same hash");
  CachedProgram cached;
  const std::string_view text = reader.text();
  for (uint64_t count = reader.number(); count > 0 && reader.is_whole(); --count) {
    const std::string kernel(reader.text());
    cached.code[kernel] = std::make_shared<const std::string>(reader.text());
  }
  if (!reader.is_whole()) return torn(path, "the file is not whole");
  LATHE_TRY(cached.program, parse_program(text, cached.locs, path));
  if (!read_steps(reader, cached)) return torn(path, "its program has other steps");
  cached.choices = read_choices(reader);
  if (!reader.is_at_end()) return torn(path, "the file is not whole");
  std::error_code ignored;  // who may not write there reads all the same
  fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
  return cached;
}

Status save_cached_program(const Model& model, const ProgramKey& key, const Program& program,
                           const KernelCode& code, const std::vector<Source>& sources,
                           const std::vector<const KernelChoice*>& choices) {
  CanonicalBytes bytes;
  bytes.add(key.parts.size());
  for (const auto& [name, value] : key.parts)
    bytes.add(std::string_view(name)).add(std::string_view(value));
  bytes.add(std::string_view(key.graph)).add(std::string_view(print(program)));
  bytes.add(code.size());
  for (const auto& [kernel, object] : code)
    bytes.add(std::string_view(kernel)).add(std::string_view(*object));
  write_steps(program.steps, sources, bytes);
  write_choices(choices, bytes);
  const std::string content = bytes.take();
  if (content.size() > kMostProgramBytes)
    return Diag{code::kTooLarge, Loc::unknown(),
                fmt::format("the program has {} bytes, at most {} are kept", content.size(),
                            kMostProgramBytes)};
  CanonicalBytes checksum;
  checksum.add(Hasher().add(content).value());
  const std::string path = cached_program_path(model, key);
  LATHE_DO(write_output(path, std::string(kProgramMagic) + checksum.take() + content));
  trim_cache(program_cache_folder(), kMostCachedBytes);
  return Ok{};
}

// Another process may do the same at the same time: what is gone already is no error.
void trim_cache(const std::string& folder, int64_t most_bytes) {
  struct File {
    fs::file_time_type time;
    fs::path path;
    int64_t bytes;
  };
  std::vector<File> files;
  std::error_code error, ignored;
  const auto now = fs::file_time_type::clock::now();
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const auto time = fs::last_write_time(at->path(), ignored);
    if (ignored) continue;
    const auto bytes = static_cast<int64_t>(fs::file_size(at->path(), ignored));
    if (ignored) continue;
    if (at->path().extension() == ".tmp" && now - time > kLeftover)
      fs::remove(at->path(), ignored);
    else if (at->path().extension() == ".program")
      files.push_back({time, at->path(), bytes});
  }
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) {
    return std::tie(a.time, a.path) > std::tie(b.time, b.path);
  });
  int64_t kept = 0;
  for (const File& file : files)
    if ((kept += file.bytes) > most_bytes) fs::remove(file.path, ignored);
}

}  // namespace lathe
