// What max-autotune decided, in a file that people can read and compare: the lines of `force`.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/driver/cache_key.h"
#include "frontend/driver/model.h"
#include "frontend/driver/options.h"
#include "ir/support/result.h"
#include "ir/target/target.h"
#include "passes/choices/override.h"

namespace lathe {

// What decisions hold for, as named text: the graph and its sizes, the processor, the threads, ...
CacheKey choices_key(const Model& model, const Target& target, const CompileRequest& request);

struct Choices {
  CacheKey key;
  std::vector<Override> force;        // that beat what the cost model would have taken
  std::vector<std::string> measured;  // for people: a line for each group of regions
};
// One JSON object: "version", "for" (the key), "force", "measured". kBadValue for what is no such
// text as a whole.
std::string print(const Choices& choices);
Result<Choices> parse_choices(std::string_view text);

// $XDG_CACHE_HOME/lathe/choices or ~/.cache/lathe/choices, a file for each model and key; "" where
// there is no home.
std::string choices_path(const Model& model, const CacheKey& key);
// kMissingFile when there is none; its message names the part of the key in which the nearest file
// of the model differs. kBadValue for a file that is torn or of another key.
Result<Choices> load_choices(const Model& model, const CacheKey& key);
// Whole or not at all: of processes that write at once, one's file stays.
Status save_choices(const Model& model, const Choices& choices);

}  // namespace lathe
