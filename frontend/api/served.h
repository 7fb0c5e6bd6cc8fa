// A compiled program of a loaded model, with the memory that its runs need beside the caller's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "frontend/api/tensor_info.h"
#include "frontend/driver/build.h"
#include "frontend/driver/model.h"
#include "ir/support/result.h"

namespace lathe {

// Memory of the handle.
struct OwnBuffer {
  std::shared_ptr<std::byte> bytes;
  size_t num_bytes = 0;

  static Result<OwnBuffer> create(size_t num_bytes, const std::string& name);
};

// Buffers that the model mutates, by name: what a run of one program makes of them, the next run
// of any sees.
using State = std::map<std::string, OwnBuffer>;

class Served {
 public:
  // What the program takes and gives beyond the graph's params and outputs is state; what of that
  // is not in `state` yet comes from the model's weights.
  static Result<std::unique_ptr<Served>> create(Build build, const Model& model, State& state);

  // The sizes of the runs that follow, in the order of Model::dims; those of the build at first. An
  // error leaves them as they were.
  Status bind(std::span<const int64_t> sizes);

  // On the caller's memory, one view for each param and output of the graph.
  Status run(std::vector<BufferView> inputs, std::vector<BufferView> outputs, const State& state);

  // Whether later runs measure each launch; turning it on forgets what was measured.
  void set_timing(bool on);
  // Of each step, the least of the runs at the sizes that are bound; empty before the first.
  const std::vector<double>& seconds() const { return seconds_; }
  // Of the program's symbols, in their order, as they are bound; empty where it has none.
  const std::vector<int64_t>& sizes() const { return bound_; }

  const Build& build() const { return build_; }
  Executable& executable() { return *build_.executable; }
  // By the order of the program's inputs.
  const std::vector<std::string>& state_names() const { return state_names_; }

 private:
  Build build_;
  std::vector<std::string> state_names_;
  std::vector<std::unique_ptr<TensorInfo>> result_infos_;  // what a run makes of state
  std::vector<OwnBuffer> results_;
  std::unique_ptr<SizedTensors> sized_;  // of them, where the program has symbols
  std::vector<size_t> places_;           // of the program's symbols among the model's dims
  std::vector<int64_t> values_, bound_;  // those that were asked for last; those that are bound
  bool is_timing_ = false;
  std::vector<double> seconds_;
};

}  // namespace lathe
