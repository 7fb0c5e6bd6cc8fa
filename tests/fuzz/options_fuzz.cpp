// Any text is options, as JSON and as flags, or is refused. Lines of flags read `key=value`.
#include <string>
#include <vector>

#include "experiments/runner/config.h"
#include "frontend/driver/options.h"
#include "tests/fuzz/fuzz_target.h"

namespace lathe::fuzz {
namespace {

bool read_json(std::string_view text) {
  LocTable locs;
  const auto document = json::parse(text, "options", locs, {.max_bytes = 1 << 20});
  if (!document) return must_blame_the_input(document.error(), locs);
  CompileRequest request;
  const LocateFn locate = [&](size_t offset) { return json::locate(**document, offset, locs); };
  const Status read = apply_options((*document)->root(), locate, {"model"}, request);
  return read.ok() || must_blame_the_input(read.error(), locs);
}

bool read_flags(std::string_view text) {
  static const std::vector<FlagRow> rows = config_flags();
  std::vector<Flag> flags;
  std::string line = "lathe run";
  while (!text.empty() && flags.size() < 64) {
    const std::string_view flag = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), flag.size() + 1));
    const size_t equals = std::min(flag.find('='), flag.size());
    const std::string key(flag.substr(0, equals));
    const std::string value(flag.substr(std::min(equals + 1, flag.size())));
    bool is_known = false;
    for (const FlagRow& row : rows) is_known = is_known || row.key == key;
    if (!is_known) continue;  // which the parser of the command line refuses
    flags.push_back({key, value});
    line += " --" + key + "=" + value;
  }
  LocTable locs;
  ExperimentConfig config;
  const Status read = apply_config_flags(flags, line, locs, config);
  return read.ok() || must_blame_the_input(read.error(), locs);
}

bool check(std::string_view text) {
  const bool is_object = read_json(text);
  return read_flags(text) || is_object;
}

}  // namespace

const Property kProperty = {check};

}  // namespace lathe::fuzz
