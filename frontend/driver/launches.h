// The launches of a program: what each is, what it was predicted to take and takes, what lost.
#pragma once
#include <string>
#include <vector>

#include "ir/cost/price.h"
#include "nlohmann/json_fwd.hpp"
#include "passes/pipeline/pipeline.h"

namespace lathe {

struct LaunchRow {
  const Launch* launch = nullptr;        // of the program
  double seconds = 0;                    // measured; 0 when it was not
  Price price = {};                      // zeros when the target has no prices
  const KernelChoice* choice = nullptr;  // of its region; null when none was made
};

// Of the steps, in order; `seconds` is empty, or one for each. Rows point into what they are of.
std::vector<LaunchRow> describe_launches(const Program& program,
                                         const std::vector<const KernelChoice*>& choices,
                                         const Target& target,
                                         const std::vector<double>& seconds = {});
// {"label", "flops", "bytes", "region"}; "seconds" when measured; of a target with prices
// "predicted", "arithmetic", "memory", "limit" (seconds) and "bound"; of a region with a choice
// what passes/pipeline/choice_json.h writes: "plan", "forced", "candidates".
nlohmann::ordered_json to_json(const LaunchRow& row);
// {"launches": [...]}; of a program that was compiled with symbols also "formulas", where sizes are
// text: "flops", "bytes", "alive" (the most of these is the peak of temporaries, in bytes), and in
// "launches" the "flops" and "bytes" of each.
std::string to_json(const std::vector<LaunchRow>& rows, const Program* symbolic = nullptr);

}  // namespace lathe
