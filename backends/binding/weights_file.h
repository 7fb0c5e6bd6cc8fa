// The weights file of a package, whatever its target: bytes by name, as a program wants them.
//
//   file = magic (16 bytes), id, size of the data (64 bits each, little-endian), padding to 64
//          bytes, data: each weight at the next multiple of 64 bytes
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "ir/program/program.h"
#include "ir/support/result.h"

namespace lathe {

inline constexpr size_t kWeightsHeaderBytes = 64;

// Where weights lie in the data.
struct WeightsPlan {
  struct Place {
    std::string name;
    int64_t offset;
    int64_t num_bytes;
  };
  std::vector<Place> places = {};  // each name once
  int64_t num_bytes = 0;

  void add(const std::string& name, int64_t bytes);  // unless it is there
  const Place* find(const std::string& name) const;  // null when there is none
};
// Adds the first values of state: inputs of the program behind the graph's `num_inputs`.
void add_state(WeightsPlan& plan, const Program& program, size_t num_inputs);

// The file's bytes, of no package yet. `weight` gives those of each name, of the size that the plan
// has.
Result<std::string> write_weights(
    const WeightsPlan& plan, const std::function<Result<BufferView>(const std::string&)>& weight);
// Makes it that of one package: whose program prints as `program` does, and has these weights.
// Returns its id.
uint64_t set_weights_id(std::string& file, std::string_view program);

// The header of a file with that id and as many bytes: an error says what is wrong.
Status check_weights_header(std::string_view header, uint64_t id, int64_t num_bytes);

}  // namespace lathe
