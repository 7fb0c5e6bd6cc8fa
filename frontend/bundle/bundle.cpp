// A bundle's files become structs, and what they say of each other is checked: a name that a file
// holds is compared with the one name that it can be, and never opened as it stands.
#include "frontend/bundle/bundle.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "frontend/file/json_reader.h"
#include "ir/support/diag_codes.h"

namespace lathe::bundle {

using json::optional;
using json::read_object;
using json::Reader;
using json::required;

static constexpr int64_t kMaxLine = INT32_MAX;

// The readers are static, not in an anonymous namespace: argument-dependent lookup must find them.
static void check_line(Reader& reader, json::Value value, int64_t line) {
  if (line < 0 || line > kMaxLine)
    reader.fail(value, fmt::format("line {} is not from 0 to {}", line, kMaxLine));
}

static void read(Reader& reader, json::Value value, Frame& out) {
  read_object(reader, value, required("frame", out.number), required("function", out.function),
              required("is_resumed", out.is_resumed), required("file", out.file),
              required("line", out.line));
  check_line(reader, value, out.line);
}

static void read(Reader& reader, json::Value value, Input& out) {
  read_object(reader, value, required("name", out.name), required("source", out.source),
              required("is_state", out.is_state));
}

static void read(Reader& reader, json::Value value, CapturedGraph& out) {
  read_object(reader, value, required("id", out.id), required("ops", out.ops),
              required("ends", out.ends), optional("json", out.json),
              optional("python", out.python), optional("refused", out.refused),
              optional("inputs", out.inputs));
}

static void read(Reader& reader, json::Value value, Compile& out) {
  read_object(reader, value, required("frame", out.frame), required("compile", out.compile),
              optional("call", out.call), optional("graph", out.graph),
              optional("guards", out.guards), optional("seconds", out.seconds),
              optional("failure", out.failure));
  const std::string id = out.id();
  const auto is = [](const std::optional<std::string>& name, const std::string& expected) {
    return !name || *name == expected;
  };
  if (out.frame < 0 || out.compile < 0)
    reader.fail(value,
                fmt::format("compilation {}/{} has a number below 0", out.frame, out.compile));
  else if (!is(out.guards, "guards/" + id))
    reader.fail(value, fmt::format("the guards of {} are in \"{}\", expected \"guards/{}\"", id,
                                   *out.guards, id));
  else if (out.graph && out.graph->id != id)
    reader.fail(value, fmt::format("the graph of {} has the id \"{}\"", id, out.graph->id));
  else if (out.graph && !is(out.graph->json, "graphs/" + id + ".json"))
    reader.fail(value, fmt::format("graph {} is in \"{}\", expected \"graphs/{}.json\"", id,
                                   *out.graph->json, id));
  else if (out.graph && !is(out.graph->python, "graphs/" + id + ".py"))
    reader.fail(value, fmt::format("graph {} is in \"{}\", expected \"graphs/{}.py\"", id,
                                   *out.graph->python, id));
}

static void read(Reader& reader, json::Value value, Break& out) {
  read_object(reader, value, required("frame", out.frame), required("compile", out.compile),
              required("reason", out.reason), optional("explanation", out.explanation),
              optional("hints", out.hints), required("file", out.file), required("line", out.line),
              optional("code", out.code), optional("url", out.url));
  check_line(reader, value, out.line);
}

static void read(Reader& reader, json::Value value, Recompile& out) {
  read_object(reader, value, required("frame", out.frame), required("compile", out.compile),
              required("call", out.call), required("reasons", out.reasons),
              required("kind", out.kind), required("reason", out.reason),
              required("cause", out.cause), optional("file", out.file), optional("line", out.line),
              optional("code", out.code));
  check_line(reader, value, out.line);
}

static void read(Reader& reader, json::Value value, Guard& out) {
  read_object(reader, value, required("kind", out.kind), required("source", out.source),
              required("code", out.code), required("line", out.line), required("place", out.place));
}

struct Manifest {
  Bundle bundle = {};
};

static void read(Reader& reader, json::Value value, Manifest& out) {
  if (!reader.expect(value, json::Kind::object)) return;
  // What another format or version has further is not looked at.
  const json::MaybeValue format = value.member("format"), version = value.member("version");
  if (!format || (*format).kind() != json::Kind::string || (*format).string() != "lathe-bundle")
    return reader.fail(value, "no bundle: \"format\" is not \"lathe-bundle\"");
  if (!version || (*version).kind() != json::Kind::integer || (*version).integer() != kVersion)
    return reader.fail(value,
                       fmt::format("\"version\" is not {}, which this Lathe reads", kVersion),
                       code::kSchemaVersion);
  Bundle& bundle = out.bundle;
  read_object(reader, value, required("model", bundle.model), required("torch", bundle.torch),
              required("origin", bundle.origin), required("calls", bundle.calls),
              optional("dynamic", bundle.dynamic), required("frames", bundle.frames),
              required("compiles", bundle.compiles));
}

namespace {

// A file of rows, one on each line, as one array: lines of messages stay what they are.
std::string array_of_lines(std::string_view lines) {
  std::string text = "[";
  size_t end = lines.size();
  while (end > 0 && (lines[end - 1] == '\n' || lines[end - 1] == '\r')) --end;
  for (const char c : lines.substr(0, end)) {
    if (c == '\n') text += ',';
    text += c;
  }
  return text + "]";
}

template <class T>
Status read_file(const BundleFiles& files, const std::string& name, LocTable& locs, T& out) {
  LATHE_TRY(const FileBytes bytes, files.read(name));
  const bool is_rows = name.size() > 6 && name.substr(name.size() - 6) == ".jsonl";
  const std::string text = is_rows ? array_of_lines(bytes.text()) : std::string(bytes.text());
  LATHE_TRY(const auto document,
            json::parse(text, files.path() + ":" + name, locs, {.max_bytes = kMaxFileBytes}));
  Reader reader(locs, code::kBadArchive);
  read(reader, document->root(), out);
  if (reader.failed()) return std::move(reader).take_error();
  return Ok{};
}

}  // namespace

const Frame* Bundle::find_frame(int64_t number) const {
  const auto found = std::find_if(frames.begin(), frames.end(),
                                  [&](const Frame& frame) { return frame.number == number; });
  return found == frames.end() ? nullptr : &*found;
}

const Compile* Bundle::find_graph(const std::string& id) const {
  const auto found = std::find_if(compiles.begin(), compiles.end(), [&](const Compile& compile) {
    return compile.graph && compile.graph->id == id;
  });
  return found == compiles.end() ? nullptr : &*found;
}

std::vector<std::string> Bundle::graph_ids() const {
  std::vector<std::string> ids;
  for (const Compile& compile : compiles)
    if (compile.graph) ids.push_back(compile.graph->id);
  return ids;
}

// No compilation is there twice, and a recompile names one before it, or itself, as its cause.
static Status check_rows(const Bundle& bundle, const BundleFiles& files) {
  std::set<std::string> ids;
  for (const Compile& compile : bundle.compiles)
    if (!ids.insert(compile.id()).second)
      return Diag{
          code::kBadArchive, Loc::unknown(),
          fmt::format("'{}:{}' has compilation {} twice", files.path(), kManifest, compile.id())};
  for (size_t i = 0; i < bundle.recompiles.size(); ++i) {
    const int64_t cause = bundle.recompiles[i].cause;
    if (cause < 0 || static_cast<uint64_t>(cause) > i)
      return Diag{
          code::kBadArchive, Loc::unknown(),
          fmt::format("'{}:recompiles.jsonl' line {} has cause {}, expected a row from 0 to "
                      "{}",
                      files.path(), i + 1, cause, i)};
  }
  return Ok{};
}

Result<Bundle> read(const BundleFiles& files, LocTable& locs) {
  Manifest manifest;
  LATHE_DO(read_file(files, kManifest, locs, manifest));
  Bundle bundle = std::move(manifest.bundle);
  LATHE_DO(read_file(files, "breaks.jsonl", locs, bundle.breaks));
  LATHE_DO(read_file(files, "recompiles.jsonl", locs, bundle.recompiles));
  LATHE_DO(read_file(files, "sources.json", locs, bundle.sources));
  LATHE_DO(check_rows(bundle, files));
  return bundle;
}

Result<std::vector<Guard>> read_guards(const BundleFiles& files, const Compile& compile,
                                       LocTable& locs) {
  std::vector<Guard> guards;
  if (compile.guards) LATHE_DO(read_file(files, *compile.guards + ".json", locs, guards));
  return guards;
}

}  // namespace lathe::bundle
