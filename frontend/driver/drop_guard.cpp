// One way to drop a guard for each pass that makes some of its own.
#include "frontend/driver/drop_guard.h"

#include <fmt/format.h>

#include <algorithm>

namespace lathe {
namespace {

// Steps of a pass after which one of its guards is not made: whether there was one to change.
using DropFn = bool (*)(Pipeline& pipeline, const std::vector<Guard>& guards, const Guard& guard);

// "s0*s1 <= 4096; s0 % 8 == 0" without one of the two.
bool drop_assumed(Pipeline& pipeline, const std::vector<Guard>&, const Guard& guard) {
  bool has_dropped = false;
  for (PipelineStep& step : pipeline.steps) {
    if (step.pass->name != guard.pass) continue;
    std::string left;
    Lexer lexer(step.options.at("assume"), "", nullptr);
    while (!lexer.at_end()) {
      const Result<Guard> entry = parse_guard(lexer);
      if (!entry.ok()) return false;
      if (to_string(*entry) == to_string(guard))
        has_dropped = true;
      else
        left += (left.empty() ? "" : "; ") + to_string(*entry);
      lexer.accept(";");
    }
    step.options["assume"] = left;
  }
  return has_dropped;
}

// The other merges by name, or none of them.
bool drop_merge(Pipeline& pipeline, const std::vector<Guard>& guards, const Guard& guard) {
  std::string others;
  for (const Guard& other : guards)
    if (other.pass == guard.pass && to_string(other) != to_string(guard))
      others +=
          fmt::format("{}{}={}", others.empty() ? "" : ",", other.left.str(), other.right.str());
  const auto merges = [&](const PipelineStep& step) { return step.pass->name == guard.pass; };
  if (std::none_of(pipeline.steps.begin(), pipeline.steps.end(), merges)) return false;
  if (others.empty()) std::erase_if(pipeline.steps, merges);
  for (PipelineStep& step : pipeline.steps)
    if (merges(step)) step.options["symbols"] = others;
  return true;
}

// The symbol stays one.
bool drop_number(Pipeline& pipeline, const std::vector<Guard>&, const Guard& guard) {
  bool has_dropped = false;
  const std::string symbol = guard.left.symbol_name();
  for (PipelineStep& step : pipeline.steps) {
    if (step.pass->name != guard.pass) continue;
    std::string& bindings = step.options["bindings"];
    if (bindings == "hints") {
      std::string& keep = step.options["keep"];
      keep += (keep.empty() ? "" : ",") + symbol;
      has_dropped = true;
      continue;
    }
    std::string left;
    for (size_t begin = 0; begin < bindings.size();) {
      const size_t end = std::min(bindings.find(',', begin), bindings.size());
      const std::string item = bindings.substr(begin, end - begin);
      if (item.substr(0, item.find('=')) == symbol)
        has_dropped = true;
      else
        left += (left.empty() ? "" : ",") + item;
      begin = end + 1;
    }
    bindings = left;
  }
  return has_dropped;
}

struct DropRow {
  std::string_view pass;
  DropFn drop;
};
constexpr DropRow kDrops[] = {
    {"collect_guards", drop_assumed},
    {"merge_symbols", drop_merge},
    {"specialize_shapes", drop_number},
};

}  // namespace

DroppedGuard drop_guard(const Pipeline& pipeline, const std::vector<Guard>& guards,
                        const Guard& guard) {
  if (guard.pass.empty()) return {pipeline, "the file's: the graph is right for no other sizes"};
  DroppedGuard dropped{pipeline};
  const auto row = std::find_if(std::begin(kDrops), std::end(kDrops),
                                [&](const DropRow& r) { return r.pass == guard.pass; });
  if (row == std::end(kDrops) || !row->drop(dropped.pipeline, guards, guard))
    dropped.stays = guard.loc.is_unknown() ? "no option of the pipeline makes it"
                                           : "the graph means nothing at other sizes";
  return dropped;
}

}  // namespace lathe
