// Matrix products with what cuBLASLt cannot put behind them: a graph of cuDNN's does, in one
// launch where it has an engine for that, and otherwise behind cuBLASLt's product, in place.
#include <memory>

#include "backends/cuda/device/cudnn_epilogue.h"

namespace lathe::cuda {
namespace {

constexpr size_t kRank = 3;  // batch, rows, columns

CallTensor with_batch(CallTensor tensor) {
  while (tensor.shape.size() < kRank) {
    tensor.strides.insert(tensor.strides.begin(), tensor.shape.front() * tensor.strides.front());
    tensor.shape.insert(tensor.shape.begin(), Dim(1));
  }
  return tensor;
}

MatmulCall with_batch(MatmulCall call) {
  for (CallTensor* tensor : {&call.a, &call.b, &call.d}) *tensor = with_batch(*tensor);
  if (call.epilogue.residual) call.epilogue.residual = with_batch(*call.epilogue.residual);
  return call;
}

void add_product(CudnnGraph& graph, const MatmulCall& call, DType dtype, CudnnDescriptor sum) {
  CudnnDescriptors& parts = graph.parts();
  const CudnnDescriptor product = parts.create(CudnnKind::matmul);
  parts.set_int(product, CudnnAttribute::matmul_precision, CudnnType::dtype, kCudnnFloat);
  parts.finalize(product);
  graph.add(CudnnKind::matmul_operation,
            {{CudnnAttribute::matmul_a, graph.memory(call.a, dtype, 0)},
             {CudnnAttribute::matmul_b, graph.memory(call.b, dtype, 1)},
             {CudnnAttribute::matmul_c, sum},
             {CudnnAttribute::matmul_description, product}});
}

}  // namespace

Result<LibraryRun> plan_matmul_graph(const Program& program, const MatmulCall& given,
                                     std::shared_ptr<Workspace> workspace) {
  const MatmulCall call = with_batch(given);
  const DType dtype = dtype_of(program, call.d);
  const size_t columns = kRank - 1;
  Result<LibraryRun> whole = plan_graph("multiply", workspace, [&](CudnnGraph& graph) -> Status {
    CudnnSum(graph, call.epilogue, call.d, columns, dtype)
        .describe(CudnnPart::whole,
                  [&](CudnnDescriptor sum) { add_product(graph, call, dtype, sum); });
    return Ok{};
  });
  if (whole.ok()) return whole;
  MatmulCall plain = given;
  plain.epilogue.activation = Activation::none;
  LATHE_TRY(LibraryRun sum, plan_matmul(program, plain, workspace));
  const CallEpilogue activation{.activation = call.epilogue.activation};
  LATHE_TRY(LibraryRun rest, plan_rest("multiply", activation, call.d, columns, dtype, workspace));
  // The product's operands are all there; the rest knows the result alone.
  const size_t result = operands(given).size() - 1;
  return LibraryRun(
      [sum, rest, result](CUstream stream, std::span<const CUdeviceptr> buffers) -> Status {
        LATHE_DO(sum(stream, buffers));
        const CUdeviceptr own[] = {0, 0, buffers[result]};
        return rest(stream, own);
      });
}

}  // namespace lathe::cuda
