// Attention through cuDNN: two products with a softmax between them, described operation by
// operation in the form that cuDNN knows as one kernel. The scores never reach memory.
#include <limits>
#include <memory>

#include "backends/cuda/device/cudnn_graph.h"
#include "ir/support/diag_codes.h"

namespace lathe::cuda {
namespace {

using Attribute = CudnnAttribute;
using Kind = CudnnKind;
using Type = CudnnType;
using Sizes = std::vector<int64_t>;

class Attention {
 public:
  Attention(CudnnGraph& graph, const Program& program, const AttentionCall& call)
      : graph_(graph),
        call_(call),
        dtype_(dtype_of(program, call.o)),
        bias_dtype_(call.bias ? dtype_of(program, *call.bias) : dtype_) {}

  Status describe() {
    if (call_.bias && graph_.version() < kBiasVersion)
      return Diag{code::kUnavailable, Loc::unknown(),
                  "cuDNN before 9.19 was not seen to give zeros for a query that sees no key"};
    const Sizes q = numbers(call_.q.shape), k = numbers(call_.k.shape);
    dims_ = {q[0], q[1], q[2], k[2]};
    row_dims_ = {q[0], q[1], q[2], 1};
    const CudnnDescriptor query = graph_.memory(call_.q, dtype_, 0);
    CallTensor transposed = call_.k;
    std::swap(transposed.shape[2], transposed.shape[3]);
    std::swap(transposed.strides[2], transposed.strides[3]);
    const CudnnDescriptor key = graph_.memory(transposed, dtype_, 1);
    CudnnDescriptor scores = value();
    add_product(query, key, scores);
    scores = with(kCudnnMul, scores, graph_.constant(static_cast<float>(call_.scale), kRank));
    if (call_.bias) scores = with(kCudnnAdd, scores, graph_.memory(bias(), bias_dtype_, kBias));
    if (call_.is_causal) scores = masked(scores);
    const CudnnDescriptor most = reduced(kCudnnReduceMax, scores);
    const CudnnDescriptor exponential = with(kCudnnExp, with(kCudnnSub, scores, most), nullptr);
    const CudnnDescriptor sum = reduced(kCudnnReduceAdd, exponential);
    // The logarithm of the sum, which nobody asks for, belongs to the form that cuDNN knows.
    const CudnnDescriptor logarithm = row_value(), whole = row_value();
    graph_.add_pointwise({kCudnnLog}, sum, nullptr, nullptr, logarithm);
    graph_.add_pointwise({kCudnnAdd}, most, logarithm, nullptr, whole);
    const CudnnDescriptor weights = value(cudnn_dtype(dtype_));
    graph_.add_pointwise({kCudnnDiv}, exponential, sum, nullptr, weights);
    add_product(weights, graph_.memory(call_.v, dtype_, 2),
                graph_.memory(call_.o, dtype_, call_.bias ? kBias + 1 : kBias));
    return Ok{};
  }

 private:
  static constexpr size_t kBiasVersion = 91900;  // what was tried
  static constexpr size_t kRank = 4;             // batch, heads, rows, columns
  static constexpr size_t kBias = 3;             // its position among the operands

  // What is alike for all sequences or heads has one of them.
  CallTensor bias() const {
    CallTensor tensor = *call_.bias;
    for (size_t d : {0, 1}) {
      if (tensor.strides[d] != Dim(0)) continue;
      tensor.shape[d] = 1;
      tensor.strides[d] = tensor.strides[2] * tensor.shape[2];
    }
    return tensor;
  }

  static Sizes packed(const Sizes& dims) {
    return {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1};
  }
  CudnnDescriptor value(int dtype = kCudnnFloat) {
    return graph_.value(dims_, packed(dims_), dtype);
  }

  CudnnDescriptor row_value() { return graph_.value(row_dims_, packed(row_dims_)); }

  CudnnDescriptor with(int mode, CudnnDescriptor x, CudnnDescriptor b) {
    CudnnDescriptor y = value();
    graph_.add_pointwise({mode}, x, b, nullptr, y);
    return y;
  }

  void add_product(CudnnDescriptor a, CudnnDescriptor b, CudnnDescriptor c) {
    CudnnDescriptors& parts = graph_.parts();
    CudnnDescriptor product = parts.create(Kind::matmul);
    parts.set_int(product, Attribute::matmul_precision, Type::dtype, kCudnnFloat);
    parts.finalize(product);
    graph_.add(Kind::matmul_operation, {{Attribute::matmul_a, a},
                                        {Attribute::matmul_b, b},
                                        {Attribute::matmul_c, c},
                                        {Attribute::matmul_description, product}});
  }

  CudnnDescriptor reduced(int mode, CudnnDescriptor x) {
    CudnnDescriptors& parts = graph_.parts();
    CudnnDescriptor reduction = parts.create(Kind::reduction);
    parts.set_int(reduction, Attribute::reduction_mode, Type::reduction_mode, mode);
    parts.set_int(reduction, Attribute::reduction_precision, Type::dtype, kCudnnFloat);
    parts.finalize(reduction);
    CudnnDescriptor y = row_value();
    graph_.add(Kind::reduction_operation, {{Attribute::reduction_x, x},
                                           {Attribute::reduction_y, y},
                                           {Attribute::reduction_description, reduction}});
    return y;
  }

  // Query i sees keys up to i.
  CudnnDescriptor masked(CudnnDescriptor scores) {
    constexpr int64_t kRows = 2, kColumns = 3;
    const CudnnDescriptor row = value(kCudnnInt32), column = value(kCudnnInt32);
    graph_.add_pointwise({kCudnnIndex, kCudnnFloat, kRows}, scores, nullptr, nullptr, row);
    graph_.add_pointwise({kCudnnIndex, kCudnnFloat, kColumns}, scores, nullptr, nullptr, column);
    const CudnnDescriptor is_seen = value(kCudnnBoolean);
    graph_.add_pointwise({kCudnnGreaterEqual, kCudnnBoolean}, row, column, nullptr, is_seen);
    const CudnnDescriptor least = graph_.constant(-std::numeric_limits<float>::infinity(), kRank);
    CudnnDescriptor y = value();
    graph_.add_pointwise({kCudnnSelect}, scores, least, is_seen, y);
    return y;
  }

  CudnnGraph& graph_;
  const AttentionCall& call_;
  DType dtype_, bias_dtype_;
  Sizes dims_, row_dims_;  // of the scores, and of what is one for each query
};

}  // namespace

Result<LibraryRun> plan_attention(const Program& program, const AttentionCall& call,
                                  std::shared_ptr<Workspace> workspace) {
  return plan_graph("attend", std::move(workspace),
                    [&](CudnnGraph& graph) { return Attention(graph, program, call).describe(); });
}

}  // namespace lathe::cuda
