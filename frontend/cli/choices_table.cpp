// Rows of launches with their candidates: see choices_table.h.
#include "frontend/cli/choices_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "frontend/cli/format.h"
#include "ir/graph/text.h"

namespace lathe {

namespace {

constexpr size_t kRows = 16;    // without `all`
constexpr size_t kLabel = 24;   // columns
constexpr size_t kLosers = 72;  // likewise
constexpr double kFarFromLimit = 4;

struct Group {
  const LaunchRow* first = nullptr;
  int64_t count = 0;
  double seconds = 0;
  double predicted = 0;
  double limit = 0;
};

std::string kernel_of(const LaunchRow& row) {
  return row.choice == nullptr ? "-" : print(row.choice->plan);
}

// Alike: the same work by the same kind, in other layers.
std::string key_of(const LaunchRow& row) {
  return fmt::format("{} {} {} {}", row.launch->label, kernel_of(row), row.launch->flops.value(),
                     row.launch->bytes.value());
}

std::string microseconds(double seconds) { return format_ms(seconds * 1e3); }

// "loops 3.5 ms; depthwise: its groups are not of 1, 2, 4 or 8 channels".
std::string losers(const KernelChoice& choice) {
  std::string priced, refused;
  for (const KernelCandidate& candidate : choice.candidates) {
    if (candidate.plan == choice.plan) continue;
    if (candidate.why_not.empty() && candidate.seconds == 0)
      priced += print(candidate.plan) + "; ";
    else if (candidate.why_not.empty())
      priced += fmt::format("{} {}; ", print(candidate.plan), microseconds(candidate.seconds));
    else
      refused += fmt::format("{}: {}; ", print(candidate.plan), candidate.why_not);
  }
  const std::string text = priced + refused;
  return text.substr(0, text.empty() ? 0 : text.size() - 2);
}

}  // namespace

std::string choices_table(const std::vector<LaunchRow>& rows, bool all) {
  std::map<std::string, size_t> places;
  std::vector<Group> groups;
  for (const LaunchRow& row : rows) {
    const auto [place, is_new] = places.emplace(key_of(row), groups.size());
    if (is_new) groups.push_back({.first = &row});
    Group& group = groups[place->second];
    ++group.count;
    group.seconds += row.seconds;
    group.predicted += row.price.seconds;
    group.limit += row.price.limit;
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.seconds > b.seconds; });
  Table table({Align::left, Align::left, Align::right, Align::right, Align::left, Align::right});
  table.add({"launch", "kernel", "time", "predicted", "bound by", "of limit"});
  for (size_t i = 0; i < groups.size() && (all || i < kRows); ++i) {
    const Group& g = groups[i];
    const auto times = static_cast<double>(g.count);
    const double share = g.seconds > 0 ? g.limit / g.seconds : 0;
    const bool is_far = g.seconds > kFarFromLimit * g.limit;
    table.add({cut(g.first->launch->label, all ? kUncut : kLabel) +
                   (g.count > 1 ? fmt::format(" x{}", g.count) : ""),
               kernel_of(*g.first), microseconds(g.seconds / times),
               g.predicted > 0 ? microseconds(g.predicted / times) : "-",
               g.predicted > 0 ? bound_name(g.first->price.bound) : "-",
               g.predicted > 0 ? fmt::format("{:.2f}{}", share, is_far ? " !" : "") : "-"});
    // Of a program that was kept nobody knows what else there was.
    if (g.first->choice == nullptr || g.first->choice->candidates.empty()) continue;
    const std::string lost = losers(*g.first->choice);
    const std::string forced = g.first->choice->is_forced ? "as asked; " : "";
    if (lost.empty() && forced.empty()) continue;
    table.add_line("    " + forced +
                   cut(lost.empty() ? "no other kind" : "not " + lost, all ? kUncut : kLosers));
  }
  std::string text = table.str(2);
  if (!all && groups.size() > kRows)
    text += fmt::format("  {} more lines; --all shows every launch\n", groups.size() - kRows);
  return text +
         "  of limit: the time of its arithmetic at the peak, or of its bytes once, over "
         "its own; ! beyond 4 times\n";
}

}  // namespace lathe
