// What lowering a region did, to be done again for regions that are alike: see signature.h.
#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "passes/lowering/lowering.h"
#include "passes/lowering/signature.h"

namespace lathe {

// Values and nodes are those of the region's signature, by index. Buffers are numbered: the
// region's destinations first, then one for each read and temporary, in order.
struct Recipe {
  struct Read {
    size_t value;
  };
  struct Temporary {
    size_t node;  // that it is named after
    std::string suffix;
    TensorType type;
    Dim num_elements;
    Phase phase;
  };
  struct Emitted {
    Launch launch;  // of a kernel; its buffers are their numbers
    size_t origin;  // a node
    Phase phase;
  };
  std::vector<std::variant<Read, Temporary, Emitted>> steps;
};

struct Recipes {
  Signatures signatures;
  // By signature, results and plan; none where a region cannot be repeated.
  std::unordered_map<std::string, std::optional<Recipe>> known = {};
};

// Writes the recipe while a region is lowered.
class Recorder {
 public:
  Recorder(const RegionSignature& signature, std::span<const Destination> outs);

  void read(Value value, BufferId buffer);
  void add_temporary(const Node& of, std::string_view suffix, const TensorType& type,
                     const Dim& num_elements, Phase phase, BufferId buffer);
  void emit(const Launch& launch, const Node& origin, Phase phase);

  // Nothing when something was done that another region could not repeat.
  std::optional<Recipe> take();

 private:
  void number(BufferId buffer) { numbers_.emplace(buffer, next_number_++); }
  std::optional<size_t> index_of(const Node& node) const;

  std::unordered_map<const Node*, size_t> nodes_;
  std::map<Value, size_t> values_;
  std::vector<bool> is_read_;  // by value
  std::unordered_map<BufferId, BufferId> numbers_;
  BufferId next_number_ = 0;
  bool is_whole_ = true;
  Recipe recipe_;
};

}  // namespace lathe
