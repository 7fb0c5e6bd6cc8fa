// cuDNN as far as Lathe calls it: names two engines for every graph, of which one uses tensor
// cores, computes nothing and notes what ran. Numbers are those of cudnn_graph.h of cuDNN 9.
#include <cstddef>
#include <cstring>
#include <map>
#include <vector>

#include "tests/backends/fake_cuda/fake_cudnn.h"

namespace {

constexpr int kInt64 = 3, kDescriptor = 15;
constexpr int kHeuristicGraph = 201, kHeuristicResults = 202, kConfigEngine = 300;
constexpr int kPlanConfig = 401, kPlanWorkspace = 402, kGraphOperations = 801, kTensorDims = 902;
constexpr int kEngineNotes = 1303;
constexpr int64_t kEngines = 2;

struct Descriptor {
  int kind = 0;
  int engine = 0;  // of configurations and engines
  std::map<int, std::vector<int64_t>> numbers;
  std::map<int, std::vector<Descriptor*>> parts;
};

lathe::FakeCudnn state;

}  // namespace

extern "C" {

lathe::FakeCudnn* fake_cudnn() { return &state; }

size_t cudnnGetVersion() { return 91900; }
int cudnnCreate(void** handle) {
  *handle = &state;
  return 0;
}
int cudnnSetStream(void*, void*) { return 0; }
int cudnnBackendCreateDescriptor(int kind, void** made) {
  *made = new Descriptor{.kind = kind};
  return 0;
}
int cudnnBackendDestroyDescriptor(void* descriptor) {
  delete static_cast<Descriptor*>(descriptor);
  return 0;
}
int cudnnBackendSetAttribute(void* to, int attribute, int type, int64_t count, const void* values) {
  Descriptor& descriptor = *static_cast<Descriptor*>(to);
  const auto read = [&](auto& list) {
    list.resize(static_cast<size_t>(count));
    std::memcpy(list.data(), values, list.size() * sizeof(list[0]));
  };
  if (type == kInt64) read(descriptor.numbers[attribute]);
  if (type == kDescriptor) read(descriptor.parts[attribute]);
  return 0;
}
int cudnnBackendGetAttribute(void* from, int attribute, int, int64_t wanted, int64_t* count,
                             void* values) {
  Descriptor& descriptor = *static_cast<Descriptor*>(from);
  const auto list = static_cast<Descriptor**>(values);
  *count = attribute == kHeuristicResults ? kEngines : 1;
  if (attribute == kHeuristicResults)
    for (int engine = 0; engine < wanted; ++engine) {
      list[engine]->engine = engine;
      list[engine]->parts = descriptor.parts;
    }
  if (attribute == kConfigEngine) list[0]->engine = descriptor.engine;
  if (attribute == kPlanWorkspace) *static_cast<int64_t*>(values) = 0;
  if (attribute == kEngineNotes) {
    *count = descriptor.engine == 0 ? 1 : 0;
    if (wanted > 0) *static_cast<int*>(values) = 0;  // tensor cores
  }
  return 0;
}
int cudnnBackendFinalize(void*) { return 0; }
int cudnnBackendExecute(void*, void* plan, void*) {
  Descriptor& config = *static_cast<Descriptor*>(plan)->parts[kPlanConfig][0];
  Descriptor& operation = *config.parts[kHeuristicGraph][0]->parts[kGraphOperations][0];
  lathe::FakeCudnnRun run{.engine = config.engine, .operation = operation.kind, .extents = {}};
  for (const auto& [attribute, parts] : operation.parts)
    run.extents[attribute] = parts[0]->numbers[kTensorDims];
  state.runs.push_back(std::move(run));
  return 0;
}

}  // extern "C"
