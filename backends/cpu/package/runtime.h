// What runs inside a package's library: its program, without a compiler.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "backends/binding/weights_file.h"
#include "backends/cpu/memory.h"
#include "backends/cpu/package/package_data.h"
#include "ir/program/program.h"
#include "ir/support/result.h"

namespace lathe::cpu {

class Package {
 public:
  // `threads`: 0 for every core. The file is read whole, and closed.
  static Result<std::unique_ptr<Package>> load(const PackageData& data, const std::string& weights,
                                               int threads);
  // The sizes of the runs that follow, of the program's symbols in their order. An error leaves
  // them as they were.
  Status bind(std::span<const int64_t> sizes);
  // One pointer for each input and output of the graph, to as many bytes as they have now.
  Status run(const void* const* inputs, void* const* outputs);

  size_t num_sizes() const { return program_.symbols.size(); }
  size_t num_inputs() const { return num_inputs_; }
  size_t num_outputs() const { return num_outputs_; }
  // At the sizes that are bound; symbols without a size make bytes and extents -1.
  int64_t input_bytes(size_t index) const { return bytes_of(program_.inputs[index]); }
  int64_t output_bytes(size_t index) const { return bytes_of(program_.outputs[index]); }
  std::vector<int64_t> output_shape(size_t index) const;

 private:
  Package() = default;
  Status read_weights(const std::string& path, uint64_t id);
  Status make_state();
  int64_t bytes_of(BufferId id) const;
  BufferView weight(const WeightsPlan::Place& place) const;

  Program program_;
  size_t num_inputs_ = 0, num_outputs_ = 0;
  WeightsPlan plan_;
  Block weights_;
  std::vector<Block> state_, results_;  // behind the graph's inputs, and its outputs
  std::map<std::string, int64_t> sizes_;
  std::unique_ptr<Executable> executable_;
};

}  // namespace lathe::cpu
