// The guards of a model that is compiled with symbols: who needs each, what checking it costs, and
// what the program gains from it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "frontend/driver/build.h"

namespace lathe {

// The program with a guard beside the one without it, timed in turn at the model's sizes.
struct GuardWorth {
  double with_ms = 0, without_ms = 0;  // medians
  // Without over with, above 1 where the guard makes runs faster: the median of neighbouring runs,
  // and where 10 and 90 of 100 lie.
  double ratio = 1, low = 1, high = 1;
};

struct GuardRow {
  std::string text;           // "s1 == s0"; of a range "1 <= s0 <= 64"
  std::string torch;          // as PyTorch's log has it: "Eq(s1, s0)"
  std::string source = {};    // as its checks have it: "L['y'].size()[0] == L['x'].size()[0]"
  std::string found_by = {};  // "the file", or a pass
  std::string cause = {};
  Loc loc = {};
  double check_ns = 0;
  std::string stays = {};                // why it cannot be dropped; empty: it can
  std::optional<GuardWorth> worth = {};  // of one that can
  std::string unmeasured = {};           // why one that can has no worth
};

struct GuardReport {
  std::vector<GuardRow> rows;       // ranges, then guards
  double check_ns = 0;              // all together, as a binding does it
  std::vector<std::string> unread;  // what the exporter says that nobody checks
  LocTable locs;                    // of the rows
};

// Of the request's pipeline with sizes left symbols. Each guard that the pipeline itself makes
// (assumed, merged symbols, sizes beside symbols that became numbers) is dropped once: the model is
// built without it.
Result<GuardReport> report_guards(const Model& model, Backend& backend,
                                  const CompileRequest& request, BuildFailure& failure);

// {"guards": [{"text", "torch", "source", "found_by", "line", "cause", "check_ns", "stays" or
// "without": {"with_ms", "without_ms", "ratio", "low", "high"}}], "check_ns", "unchecked": [...]};
// `lines` are the places of the rows.
std::string to_json(const GuardReport& report, const std::vector<std::string>& lines);

}  // namespace lathe
