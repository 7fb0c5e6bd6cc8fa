// Matrix products through cuBLASLt.
//
// cuBLASLt thinks in columns: a row-major product D = A B is asked for as its transpose, B' A',
// whose columns are D's rows. A bias over D's columns is then one over its rows, which is what the
// library's epilogue adds.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>

#include "backends/cuda/device/cublas_lt_api.h"
#include "backends/cuda/device/libraries.h"
#include "backends/cuda/device/library.h"
#include "ir/support/diag_codes.h"

namespace lathe::cuda {
namespace {

constexpr size_t kMostWorkspace = 64 << 20;   // that an algorithm may ask for
constexpr size_t kTableWorkspace = 32 << 20;  // what cuBLAS wants on sm_90, whatever it multiplies
constexpr int64_t kMostAlignment = 16;        // what a caller's memory has at least

struct CublasLt {
  CublasLtApi api;
  CublasHandle handle = nullptr;
};

Diag failed(int status, const std::string& what) {
  return Diag{code::kUnavailable, Loc::unknown(),
              fmt::format("cuBLASLt failed to {} (status {})", what, status)};
}

Status check(int status, const std::string& what) {
  if (status == 0) return Ok{};
  return failed(status, what);
}

Status find_all(const Library& library, CublasLtApi& api) {
  LATHE_DO(library.find(api.create, "cublasLtCreate"));
  LATHE_DO(library.find(api.create_desc, "cublasLtMatmulDescCreate"));
  LATHE_DO(library.find(api.destroy_desc, "cublasLtMatmulDescDestroy"));
  LATHE_DO(library.find(api.set_desc, "cublasLtMatmulDescSetAttribute"));
  LATHE_DO(library.find(api.create_layout, "cublasLtMatrixLayoutCreate"));
  LATHE_DO(library.find(api.destroy_layout, "cublasLtMatrixLayoutDestroy"));
  LATHE_DO(library.find(api.set_layout, "cublasLtMatrixLayoutSetAttribute"));
  LATHE_DO(library.find(api.create_preference, "cublasLtMatmulPreferenceCreate"));
  LATHE_DO(library.find(api.destroy_preference, "cublasLtMatmulPreferenceDestroy"));
  LATHE_DO(library.find(api.set_preference, "cublasLtMatmulPreferenceSetAttribute"));
  LATHE_DO(library.find(api.heuristic, "cublasLtMatmulAlgoGetHeuristic"));
  return library.find(api.matmul, "cublasLtMatmul");
}

// Opened once for each process.
Result<const CublasLt*> open_cublas_lt() {
  static std::mutex mutex;
  static std::unique_ptr<CublasLt> opened;
  std::lock_guard lock(mutex);
  if (opened) return opened.get();
  LATHE_TRY(const Library* library,
            Library::open({"libcublasLt.so.13", "libcublasLt.so.12"}, "cuBLASLt"));
  auto made = std::make_unique<CublasLt>();
  LATHE_DO(find_all(*library, made->api));
  LATHE_DO(check(made->api.create(&made->handle), "start"));
  opened = std::move(made);
  return opened.get();
}

// Its handle keeps a stream and memory: one call at a time.
struct Cublas {
  CublasApi api;
  CublasHandle handle = nullptr;
  mutable std::mutex in_use;
};

Result<const Cublas*> open_cublas() {
  static std::mutex mutex;
  static std::unique_ptr<Cublas> opened;
  std::lock_guard lock(mutex);
  if (opened) return opened.get();
  LATHE_TRY(const Library* library,
            Library::open({"libcublas.so.13", "libcublas.so.12"}, "cuBLAS"));
  auto made = std::make_unique<Cublas>();
  LATHE_DO(library->find(made->api.create, "cublasCreate_v2"));
  LATHE_DO(library->find(made->api.set_stream, "cublasSetStream_v2"));
  LATHE_DO(library->find(made->api.set_workspace, "cublasSetWorkspace_v2"));
  LATHE_DO(library->find(made->api.batched, "cublasGemmBatchedEx"));
  LATHE_DO(check(made->api.create(&made->handle), "start"));
  opened = std::move(made);
  return opened.get();
}

Result<int> cublas_dtype(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return static_cast<int>(kReal32F);
    case DType::f64:
      return static_cast<int>(kReal64F);
    case DType::f16:
      return static_cast<int>(kReal16F);
    case DType::bf16:
      return static_cast<int>(kReal16Bf);
    default:
      return Diag{code::kUnavailable, Loc::unknown(),
                  fmt::format("cuBLASLt has no products of {}", dtype_name(dtype))};
  }
}

// An operand of the call: element (batch, row, column) lies at offset + batch strides + row *
// row_stride + column * column_stride.
struct Operand {
  size_t position = 0;  // among the call's operands
  DType dtype = DType::f32;
  int64_t offset = 0, row_stride = 0, column_stride = 0;
  std::vector<int64_t> batch;
};

Operand make_operand(const Program& program, const CallTensor& tensor, size_t position) {
  Operand result;
  result.position = position;
  result.dtype = dtype_of(program, tensor);
  result.offset = tensor.offset.value();
  result.batch = numbers(tensor.strides);
  result.column_stride = result.batch.back();
  result.row_stride = result.batch[result.batch.size() - 2];
  result.batch.resize(result.batch.size() - 2);
  return result;
}

// A batch of one dim is the library's. Of several, it is a table of pointers when nothing follows
// the sum, and otherwise one call for each element of the outer dims.
class Matmul {
 public:
  Matmul(const CublasLt& library) : library_(library) {}
  ~Matmul() {
    const CublasLtApi& api = library_.api;
    for (MatrixLayout layout : {a_, b_, c_, d_})
      if (layout) api.destroy_layout(layout);
    if (desc_) api.destroy_desc(desc_);
  }
  Matmul(const Matmul&) = delete;

  Status plan(const Program& program, const MatmulCall& call);
  Status run(CUstream stream, std::span<const CUdeviceptr> buffers, const Workspace& workspace);
  size_t workspace_bytes() const {
    return table_library_ != nullptr ? kTableWorkspace : algorithm_.workspace_bytes;
  }

 private:
  Status make_desc(Activation activation, bool swaps_left, bool swaps_right);
  // The transpose of rows x columns; `is_transposed`: its rows lie side by side, not its columns.
  Status make_layout(MatrixLayout& layout, const Operand& from, int64_t rows, int64_t columns,
                     bool& is_transposed);
  Status choose();
  CUdeviceptr place(const Operand& operand, std::span<const CUdeviceptr> buffers, int64_t index,
                    size_t num_dims) const;
  Status run_table(CUstream stream, std::span<const CUdeviceptr> buffers,
                   const Workspace& workspace);
  int64_t alignment(const Operand& operand) const;

  const CublasLt& library_;
  MatmulDesc desc_ = nullptr;
  MatrixLayout a_ = nullptr, b_ = nullptr, c_ = nullptr, d_ = nullptr;
  Operand left_, right_, result_, residual_;  // A, B, D and what is added
  std::vector<int64_t> extents_;              // of the batch
  bool has_residual_ = false, has_bias_ = false;
  size_t bias_position_ = 0;
  int64_t bias_offset_ = 0;
  DType dtype_ = DType::f32;
  MatmulHeuristic algorithm_{};
  int64_t m_ = 0, n_ = 0, k_ = 0;
  bool swaps_left_ = false, swaps_right_ = false;
  const Cublas* table_library_ = nullptr;  // null: no table
  // Pointers to B, A and D, by where these are: launches that share this plan differ in that.
  std::map<std::array<CUdeviceptr, 3>, DeviceMemory> tables_;
};

Status Matmul::make_layout(MatrixLayout& layout, const Operand& from, int64_t rows, int64_t columns,
                           bool& is_transposed) {
  LATHE_TRY(int dtype, cublas_dtype(from.dtype));
  // Rows that lie side by side are the columns of the transpose.
  const bool has_rows =
      (columns == 1 || from.column_stride == 1) && (rows == 1 || from.row_stride >= columns);
  is_transposed = !has_rows;
  const int64_t inner = has_rows ? columns : rows, outer = has_rows ? rows : columns;
  const int64_t stride = has_rows ? from.row_stride : from.column_stride;
  const int64_t leading = outer == 1 ? inner : stride;
  LATHE_DO(check(library_.api.create_layout(&layout, dtype, static_cast<uint64_t>(inner),
                                            static_cast<uint64_t>(outer), leading),
                 "describe a matrix"));
  if (extents_.empty()) return Ok{};
  const auto count = static_cast<int32_t>(extents_.back());
  const int64_t distance = from.batch.back();
  LATHE_DO(check(library_.api.set_layout(layout, kLayoutBatch, &count, sizeof count),
                 "describe a batch"));
  return check(library_.api.set_layout(layout, kLayoutBatchStride, &distance, sizeof distance),
               "describe a batch");
}

Status Matmul::make_desc(Activation activation, bool swaps_left, bool swaps_right) {
  const bool is_double = dtype_ == DType::f64;
  const CublasLtApi& api = library_.api;
  LATHE_DO(check(api.create_desc(&desc_, is_double ? kCompute64F : kCompute32F,
                                 is_double ? kReal64F : kReal32F),
                 "describe a product"));
  const int32_t left = swaps_left ? kTransposed : kNotTransposed;
  const int32_t right = swaps_right ? kTransposed : kNotTransposed;
  LATHE_DO(check(api.set_desc(desc_, kDescTransA, &left, sizeof left), "describe a product"));
  LATHE_DO(check(api.set_desc(desc_, kDescTransB, &right, sizeof right), "describe a product"));
  uint32_t epilogue = 0;
  if (has_bias_) epilogue |= kBias;
  if (activation == Activation::relu) epilogue |= kRelu;
  if (activation == Activation::gelu_tanh) epilogue |= kGelu;
  if (epilogue == 0) epilogue = kPlain;
  return check(api.set_desc(desc_, kDescEpilogue, &epilogue, sizeof epilogue),
               "describe an epilogue");
}

int64_t Matmul::alignment(const Operand& operand) const {
  int64_t bits = operand.offset;
  for (int64_t stride : operand.batch) bits |= stride;
  if (bits == 0) return kMostAlignment;
  return std::min(kMostAlignment, (bits & -bits) * dtype_bytes(operand.dtype));
}

Status Matmul::choose() {
  const CublasLtApi& api = library_.api;
  MatmulPreference preference = nullptr;
  LATHE_DO(check(api.create_preference(&preference), "state a preference"));
  auto ask = [&]() -> Status {
    const uint64_t workspace = kMostWorkspace;
    LATHE_DO(check(api.set_preference(preference, kPreferWorkspace, &workspace, sizeof workspace),
                   "state a preference"));
    const Operand& added = has_residual_ ? residual_ : result_;
    const std::pair<int, const Operand*> operands[] = {{kPreferAlignA, &right_},
                                                       {kPreferAlignB, &left_},
                                                       {kPreferAlignC, &added},
                                                       {kPreferAlignD, &result_}};
    for (const auto& [attribute, operand] : operands) {
      const auto bytes = static_cast<uint32_t>(alignment(*operand));
      LATHE_DO(check(api.set_preference(preference, attribute, &bytes, sizeof bytes),
                     "state a preference"));
    }
    int found = 0;
    LATHE_DO(check(
        api.heuristic(library_.handle, desc_, a_, b_, c_, d_, preference, 1, &algorithm_, &found),
        "find an algorithm"));
    if (found == 0) return failed(0, "find an algorithm");
    return Ok{};
  };
  Status status = ask();
  api.destroy_preference(preference);
  return status;
}

Status Matmul::plan(const Program& program, const MatmulCall& call) {
  extents_ = numbers(call.d.shape);
  m_ = extents_[extents_.size() - 2];
  n_ = extents_.back();
  k_ = call.a.shape.back().value();
  const int64_t m = m_, n = n_, k = k_;
  extents_.resize(extents_.size() - 2);
  size_t position = 2;
  has_bias_ = call.epilogue.bias.has_value();
  has_residual_ = call.epilogue.residual.has_value();
  left_ = make_operand(program, call.a, 0);
  right_ = make_operand(program, call.b, 1);
  if (has_bias_) {
    bias_position_ = position++;
    bias_offset_ = call.epilogue.bias->offset.value();
  }
  if (has_residual_) residual_ = make_operand(program, *call.epilogue.residual, position++);
  result_ = make_operand(program, call.d, position);
  dtype_ = result_.dtype;
  bool swaps_a = false, swaps_b = false, swaps_c = false, swaps_d = false;
  // The library's A is our B, and the other way round.
  LATHE_DO(make_layout(a_, right_, k, n, swaps_a));
  LATHE_DO(make_layout(b_, left_, m, k, swaps_b));
  LATHE_DO(make_layout(c_, has_residual_ ? residual_ : result_, m, n, swaps_c));
  LATHE_DO(make_layout(d_, result_, m, n, swaps_d));
  LATHE_CHECK(!swaps_c && !swaps_d, "a product whose result is column-major");
  swaps_left_ = swaps_a;
  swaps_right_ = swaps_b;
  const bool is_plain =
      !has_bias_ && !has_residual_ && call.epilogue.activation == Activation::none;
  if (extents_.size() > 1 && is_plain) {
    LATHE_TRY(table_library_, open_cublas());
    return Ok{};
  }
  LATHE_DO(make_desc(call.epilogue.activation, swaps_a, swaps_b));
  return choose();
}

// The matrix at a position in the first `num_dims` of the batch.
CUdeviceptr Matmul::place(const Operand& operand, std::span<const CUdeviceptr> buffers,
                          int64_t index, size_t num_dims) const {
  int64_t element = operand.offset;
  for (size_t dim = num_dims; dim-- > 0; index /= extents_[dim])
    element += index % extents_[dim] * operand.batch[dim];
  return buffers[operand.position] + static_cast<CUdeviceptr>(element * dtype_bytes(operand.dtype));
}

Status Matmul::run_table(CUstream stream, std::span<const CUdeviceptr> buffers,
                         const Workspace& workspace) {
  int64_t count = 1;
  for (int64_t extent : extents_) count *= extent;
  const size_t array_bytes = static_cast<size_t>(count) * sizeof(CUdeviceptr);
  const std::array<CUdeviceptr, 3> places = {buffers[right_.position], buffers[left_.position],
                                             buffers[result_.position]};
  // Callers that bring new memory every time must not fill the device with tables; recordings go
  // through memory of the program's own.
  constexpr size_t kMostTables = 256;
  const bool is_full = tables_.size() > kMostTables && !workspace.is_recorded();
  if (is_full && tables_.count(places) == 0) tables_.clear();
  DeviceMemory& table = tables_[places];
  // While a run is recorded nothing is new, and nothing is copied.
  if (table.num_bytes() == 0) {
    std::vector<CUdeviceptr> pointers;
    for (const Operand* operand : {&right_, &left_, &result_})
      for (int64_t i = 0; i < count; ++i)
        pointers.push_back(place(*operand, buffers, i, extents_.size()));
    LATHE_TRY(const Device* device, Device::open());
    LATHE_TRY(table, DeviceMemory::allocate(*device, 3 * array_bytes, "a table of matrices"));
    LATHE_DO(device->check(
        device->api().copy(table.address(), reinterpret_cast<CUdeviceptr>(pointers.data()),
                           3 * array_bytes, stream),
        "copying a table of matrices"));
  }
  const double one = 1, zero = 0;
  const float one_f32 = 1, zero_f32 = 0;
  const bool is_double = dtype_ == DType::f64;
  auto leading = [](const Operand& operand, bool is_transposed, int64_t inner) {
    const int64_t stride = is_transposed ? operand.column_stride : operand.row_stride;
    return static_cast<int>(std::max(stride, inner));
  };
  LATHE_TRY(int right, cublas_dtype(right_.dtype));
  LATHE_TRY(int left, cublas_dtype(left_.dtype));
  LATHE_TRY(int result, cublas_dtype(result_.dtype));
  const CublasApi& api = table_library_->api;
  std::lock_guard lock(table_library_->in_use);
  LATHE_DO(check(api.set_stream(table_library_->handle, stream), "take a stream"));
  LATHE_DO(
      check(api.set_workspace(table_library_->handle, workspace.address(), workspace.num_bytes()),
            "take memory"));
  return check(
      api.batched(
          table_library_->handle, swaps_left_ ? kTransposed : kNotTransposed,
          swaps_right_ ? kTransposed : kNotTransposed, static_cast<int>(n_), static_cast<int>(m_),
          static_cast<int>(k_), is_double ? static_cast<const void*>(&one) : &one_f32,
          table.address(), right, leading(right_, swaps_left_, swaps_left_ ? k_ : n_),
          table.address() + array_bytes, left, leading(left_, swaps_right_, swaps_right_ ? m_ : k_),
          is_double ? static_cast<const void*>(&zero) : &zero_f32,
          table.address() + 2 * array_bytes, result, leading(result_, false, n_),
          static_cast<int>(count), is_double ? kCompute64F : kCompute32F, kDefaultAlgorithm),
      "multiply matrices");
}

Status Matmul::run(CUstream stream, std::span<const CUdeviceptr> buffers,
                   const Workspace& workspace) {
  const double one = 1, zero = 0;
  const float one_f32 = 1, zero_f32 = 0;
  const bool is_double = dtype_ == DType::f64;
  const void* alpha = is_double ? static_cast<const void*>(&one) : &one_f32;
  const void* none = is_double ? static_cast<const void*>(&zero) : &zero_f32;
  if (table_library_) return run_table(stream, buffers, workspace);
  if (has_bias_) {
    const CUdeviceptr bias =
        buffers[bias_position_] + static_cast<CUdeviceptr>(bias_offset_ * dtype_bytes(dtype_));
    LATHE_DO(check(library_.api.set_desc(desc_, kDescBias, &bias, sizeof bias), "set the bias"));
  }
  int64_t outer = 1;
  for (size_t i = 0; i + 1 < extents_.size(); ++i) outer *= extents_[i];
  for (int64_t i = 0; i < outer; ++i) {
    auto at = [&](const Operand& operand) {
      return place(operand, buffers, i, extents_.empty() ? 0 : extents_.size() - 1);
    };
    LATHE_DO(check(
        library_.api.matmul(library_.handle, desc_, alpha, at(right_), a_, at(left_), b_,
                            has_residual_ ? alpha : none, at(has_residual_ ? residual_ : result_),
                            c_, at(result_), d_, &algorithm_.algorithm, workspace.address(),
                            workspace.num_bytes(), stream),
        "multiply matrices"));
  }
  return Ok{};
}

}  // namespace

Result<LibraryRun> plan_matmul(const Program& program, const MatmulCall& call,
                               std::shared_ptr<Workspace> workspace) {
  LATHE_TRY(const CublasLt* library, open_cublas_lt());
  auto matmul = std::make_shared<Matmul>(*library);
  LATHE_DO(matmul->plan(program, call));
  workspace->reserve(matmul->workspace_bytes());
  return LibraryRun([matmul, workspace](CUstream stream, std::span<const CUdeviceptr> buffers) {
    return matmul->run(stream, buffers, *workspace);
  });
}

}  // namespace lathe::cuda
