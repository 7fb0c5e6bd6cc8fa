// Graphs of operations for cuDNN, and the plans that run them.
//
// A graph is described once, operation by operation; cuDNN's heuristics name engines, best first,
// and the first that can be made runs it.
#pragma once
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/device/cudnn_api.h"
#include "backends/cuda/device/libraries.h"

namespace lathe::cuda {

// A handle of cuDNN, which keeps a stream: for one thread at a time. Given back when this goes.
class CudnnLease {
 public:
  static Result<CudnnLease> take();  // opens cuDNN the first time
  CudnnLease(CudnnLease&& other) noexcept;
  CudnnLease& operator=(CudnnLease&&) = delete;
  ~CudnnLease();
  const CudnnApi& api() const { return *api_; }
  const CudnnHandle& handle() const { return handle_; }

 private:
  CudnnLease(const CudnnApi& api, CudnnHandle handle) : api_(&api), handle_(handle) {}
  const CudnnApi* api_;
  CudnnHandle handle_;
};

// Descriptors that are destroyed together. The first error stays; nothing is set after it.
class CudnnDescriptors {
 public:
  explicit CudnnDescriptors(const CudnnApi& api) : api_(api) {}
  ~CudnnDescriptors();
  CudnnDescriptors(const CudnnDescriptors&) = delete;

  CudnnDescriptor create(CudnnKind kind);
  void set(CudnnDescriptor to, CudnnAttribute attribute, CudnnType type, int64_t count,
           const void* values);
  void set_int(CudnnDescriptor to, CudnnAttribute attribute, CudnnType type, int value) {
    set(to, attribute, type, 1, &value);
  }
  void set_sizes(CudnnDescriptor to, CudnnAttribute attribute, const std::vector<int64_t>& sizes) {
    set(to, attribute, CudnnType::int64, static_cast<int64_t>(sizes.size()), sizes.data());
  }
  void finalize(CudnnDescriptor descriptor) {
    if (status_ == 0) note(api_.finalize(descriptor));
  }
  int status() const { return status_; }

 private:
  void note(int status) {
    if (status_ == 0) status_ = status;
  }
  const CudnnApi& api_;
  std::vector<CudnnDescriptor> made_;
  int status_ = 0;
};

int cudnn_dtype(DType dtype);  // of f16, bf16 and f32

// What happens to each element.
struct CudnnFunction {
  int mode;
  int precision = kCudnnFloat;
  std::optional<int64_t> axis = {};  // of kCudnnIndex
};

class CudnnGraph {
 public:
  // `what` names the graph in errors: "convolve". The lease is of the thread that describes it.
  CudnnGraph(const CudnnLease& lease, std::string what);

  // Memory of a launch's buffer that the graph reads or writes.
  struct Port {
    size_t position;  // among the call's operands
    int64_t offset_bytes;
  };
  CudnnDescriptor memory(int dtype, const std::vector<int64_t>& dims,
                         const std::vector<int64_t>& strides, Port port);
  // The memory of an operand, which lies at this position among the call's.
  CudnnDescriptor memory(const CallTensor& operand, DType dtype, size_t position);
  // A value between operations, of the sums' precision unless told.
  CudnnDescriptor value(const std::vector<int64_t>& dims, const std::vector<int64_t>& strides,
                        int dtype = kCudnnFloat);
  CudnnDescriptor constant(float x, size_t rank);

  // An operation with its operands and results.
  using Operands = std::initializer_list<std::pair<CudnnAttribute, CudnnDescriptor>>;
  void add(CudnnKind kind, Operands operands);
  // b and t are what the mode takes.
  void add_pointwise(const CudnnFunction& function, CudnnDescriptor x, CudnnDescriptor b,
                     CudnnDescriptor t, CudnnDescriptor y);
  // Leaves out engines that compute f32 with fewer bits.
  void keep_f32() { keeps_f32_ = true; }
  size_t version() const { return api_.version ? api_.version() : 0; }  // of the library
  // For descriptors that operations name.
  CudnnDescriptors& parts() { return parts_; }

  Status plan(const CudnnLease& lease, Workspace& workspace);
  Status run(CUstream stream, std::span<const CUdeviceptr> buffers,
             const Workspace& workspace) const;

 private:
  CudnnDescriptor tensor(int dtype, const std::vector<int64_t>& dims,
                         const std::vector<int64_t>& strides, int64_t id, bool is_virtual,
                         bool is_constant);
  Status choose(const CudnnLease& lease, CudnnDescriptor graph, int mode);
  bool may_narrow(CudnnDescriptor config);
  Status check(int status, const std::string& what) const;

  const CudnnApi& api_;
  std::string what_;
  CudnnDescriptors parts_;
  std::vector<CudnnDescriptor> operations_;
  bool keeps_f32_ = false;
  CudnnDescriptor plan_ = nullptr;
  std::vector<std::pair<int64_t, Port>> ports_;                        // by id
  std::vector<std::pair<int64_t, std::unique_ptr<float>>> constants_;  // likewise
  int64_t next_id_ = 0;
  int64_t workspace_bytes_ = 0;
};

// What runs the graph that `describe` makes; `what` names it in errors.
Result<LibraryRun> plan_graph(const std::string& what, std::shared_ptr<Workspace> workspace,
                              const std::function<Status(CudnnGraph& graph)>& describe);

}  // namespace lathe::cuda
