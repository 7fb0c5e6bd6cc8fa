// A case through its pipeline on one machine, judged by the oracle.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ir/support/result.h"
#include "ir/target/numerics.h"
#include "tests/random/case.h"

namespace lathe::random_graphs {

// "cpu avx2", "wasm relaxed"; "interp sm_90" interprets the program lowered for a GPU.
struct Machine {
  std::string target;
  std::string isa;
  std::string name() const { return target + " " + isa; }
};
Result<Machine> parse_machine(const std::string& text);
// An error says why this computer cannot run it.
Status check_machine(const Machine& machine);

// How often what was reached: "op add", "pass cse", "launch kernel".
using Coverage = std::map<std::string, int64_t>;

struct Verdict {
  enum class Kind : uint8_t {
    agrees,
    untold,    // too ill-conditioned, or a jump on inexact values: nothing is said
    left_out,  // refused with its reason: "unsupported"
    error,     // the pipeline or the backend failed
    wrong,     // another result than the oracle's
    crashes,
    hangs,
  };
  Kind kind = Kind::agrees;
  std::string text = {};  // a sentence, but for `agrees`
  bool is_failure() const { return kind >= Kind::error; }
};
std::string_view kind_name(Verdict::Kind kind);

// Runs twice: the second run must return the same bits, and inputs that the graph does not write
// must be as they were.
Verdict run_case(const Case& test, const Machine& machine, Coverage* coverage = nullptr);

// Strict numerics: every machine must return the bits of the first.
Verdict compare_bits(const Case& test, const std::vector<Machine>& machines);

}  // namespace lathe::random_graphs
