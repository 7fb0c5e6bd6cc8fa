// What symbolic sizes must satisfy for a graph to mean what its model means: a comparison of two
// size expressions. Ranges of single symbols are facts of the module, and no guards.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/lexer.h"
#include "ir/support/result.h"
#include "ir/type/dim.h"

namespace lathe {

enum class Relation : uint8_t { eq, ne, lt, le, gt, ge };
std::string_view relation_sign(Relation relation);  // "=="

struct Guard {
  Dim left;
  Relation relation = Relation::eq;
  Dim right;
  std::string cause = {};  // who needs it: the exporter's own words, or an op
  Loc loc = {};            // the user's line
  std::string pass = {};   // that found it; of none when the file has it
};

// "s0 % 8 == 0", which parse_guard reads back; without the cause.
std::string to_string(const Guard& guard);
Result<Guard> parse_guard(Lexer& lexer);

// The same with what is known of it: `s0 % 8 == 0 because "a branch" by collect_guards`, which
// parse_known_guard reads back. The location is not among it.
std::string spell_known(const Guard& guard);
Result<Guard> parse_known_guard(Lexer& lexer);

// Whether it holds for every value in these ranges (true), for none (false), or that is not known.
std::optional<bool> decide(const Guard& guard, const std::map<std::string, DimRange>& ranges);

// The same of other sizes.
Guard substitute(Guard guard, const std::map<std::string, Dim>& symbols);

// The error when these sizes forbid one of the guards, or make it overflow.
Status check_guards(const std::vector<Guard>& guards, const std::map<std::string, Dim>& sizes);

}  // namespace lathe
