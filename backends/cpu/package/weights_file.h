// The weights file of a package: what its program's steps read, as they read it.
//
//   file = magic (16 bytes), id, size of the data (64 bits each, little-endian), padding to 64
//          bytes, data: each weight at the next multiple of 64 bytes, in the order of buffers
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "ir/program/program.h"
#include "ir/support/result.h"

namespace lathe::cpu {

inline constexpr size_t kWeightsHeaderBytes = 64;

// Where weights lie in the data.
struct WeightsPlan {
  struct Place {
    std::string name;
    int64_t offset;
    int64_t num_bytes;
  };
  std::vector<Place> places;  // each name once
  int64_t num_bytes = 0;
};
// Of the weights that steps read, and of the state behind the first `num_inputs` inputs.
WeightsPlan plan_weights(const Program& program, size_t num_inputs);

// The file's bytes, of no package yet. `weight` gives those of each name, of the size that the plan
// has.
Result<std::string> write_weights(
    const WeightsPlan& plan, const std::function<Result<BufferView>(const std::string&)>& weight);
void set_weights_id(std::string& file, uint64_t id);

// The header of a file with that id and as many bytes: an error says what is wrong.
Status check_weights_header(std::string_view header, uint64_t id, int64_t num_bytes);

}  // namespace lathe::cpu
