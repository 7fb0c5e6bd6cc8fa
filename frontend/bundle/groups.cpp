#include "frontend/bundle/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace lathe::bundle {

std::string id_of(int64_t frame, int64_t compile) { return fmt::format("{}_{}", frame, compile); }

bool BreakGroup::ends(const std::string& graph) const {
  return std::find(graphs.begin(), graphs.end(), graph) != graphs.end();
}

std::vector<BreakGroup> group_breaks(const Bundle& bundle) {
  std::map<std::tuple<std::string, int64_t, std::string>, size_t> known;
  std::vector<BreakGroup> groups;
  for (const Break& row : bundle.breaks) {
    const auto [same, is_new] =
        known.emplace(std::tuple(row.file, row.line, row.reason), groups.size());
    if (is_new) groups.push_back({&row});
    groups[same->second].graphs.push_back(id_of(row.frame, row.compile));
  }
  return groups;
}

std::vector<CauseGroup> group_recompiles(const Bundle& bundle) {
  std::vector<CauseGroup> groups;
  std::vector<size_t> group_of(bundle.recompiles.size());
  for (size_t i = 0; i < bundle.recompiles.size(); ++i) {
    const Recompile& row = bundle.recompiles[i];
    if (static_cast<size_t>(row.cause) == i) {
      group_of[i] = groups.size();
      groups.push_back({&row});
    } else {
      group_of[i] = group_of[static_cast<size_t>(row.cause)];
      groups[group_of[i]].follow.push_back(id_of(row.frame, row.compile));
    }
  }
  return groups;
}

std::vector<SourceLine> lines_around(const Bundle& bundle, const Break& row, int64_t around) {
  const auto known = bundle.sources.find(row.file);
  std::vector<SourceLine> lines;
  for (int64_t number = row.line - around; number <= row.line + around; ++number) {
    SourceLine line{number, number == row.line ? row.code : ""};
    if (known != bundle.sources.end())
      if (const auto found = known->second.find(std::to_string(number));
          found != known->second.end())
        line.code = found->second;
    if (!line.code.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace lathe::bundle
