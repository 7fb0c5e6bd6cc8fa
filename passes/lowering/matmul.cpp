// Batch dims merged, the innermost perhaps with the rows: see matmul.h.
#include "passes/lowering/matmul.h"

#include <utility>

namespace lathe {
namespace {

// A dim of the batch with the strides of every operand along it.
struct BatchDim {
  Dim extent;
  Shape strides;
};

class MatmulBatch {
 public:
  explicit MatmulBatch(const MatmulSpec& spec) : operands_{&spec.a, &spec.b, &spec.d} {
    if (spec.epilogue.residual) operands_.push_back(&*spec.epilogue.residual);
    for (size_t i = 0; i < spec.batch.size(); ++i) {
      if (spec.batch[i] == Dim(1)) continue;
      BatchDim dim{spec.batch[i], {}};
      for (const Strided* operand : operands_) dim.strides.push_back(operand->strides[i]);
      if (!dims_.empty() && follows(dims_.back(), dim))
        dims_.back() = {dims_.back().extent * dim.extent, dim.strides};
      else
        dims_.push_back(std::move(dim));
    }
  }

  // As many dims as can.
  void join_rows(MatmulSpec& spec) {
    while (join_innermost(spec)) {
    }
  }

  const std::vector<BatchDim>& dims() const { return dims_; }

 private:
  // The innermost dim joins the rows when they go on in it, and all of it reads one B.
  bool join_innermost(MatmulSpec& spec) {
    constexpr size_t kB = 1;
    if (dims_.empty() || dims_.back().strides[kB] != Dim(0)) return false;
    for (size_t i = 0; i < operands_.size(); ++i)
      if (i != kB && dims_.back().strides[i] != row_stride(i) * spec.m) return false;
    spec.m = spec.m * dims_.back().extent;
    dims_.pop_back();
    return true;
  }
  const Dim& row_stride(size_t operand) const {
    const Shape& strides = operands_[operand]->strides;
    return strides[strides.size() - 2];
  }

  static bool follows(const BatchDim& outer, const BatchDim& inner) {
    for (size_t i = 0; i < outer.strides.size(); ++i)
      if (outer.strides[i] != inner.strides[i] * inner.extent) return false;
    return true;
  }

  std::vector<const Strided*> operands_;  // a, b, d and perhaps the residual
  std::vector<BatchDim> dims_;
};

CallTensor operand_of(const Strided& operand, size_t index, const std::vector<BatchDim>& dims,
                      const Dim& rows, const Dim& columns) {
  CallTensor tensor{operand.buffer, operand.offset, {}, {}};
  for (const BatchDim& dim : dims) {
    tensor.shape.push_back(dim.extent);
    tensor.strides.push_back(dim.strides[index]);
  }
  tensor.shape.insert(tensor.shape.end(), {rows, columns});
  tensor.strides.insert(tensor.strides.end(), operand.strides.end() - 2, operand.strides.end());
  return tensor;
}

}  // namespace

bool has_one_batch(MatmulSpec spec) {
  MatmulBatch batch(spec);
  batch.join_rows(spec);
  return batch.dims().size() <= 1;
}

void emit_matmul(Lowering& lowering, MatmulSpec spec, const LaunchInfo& info, Phase phase) {
  MatmulBatch batch(spec);
  batch.join_rows(spec);
  const std::vector<BatchDim>& dims = batch.dims();
  MatmulCall call;
  call.a = operand_of(spec.a, 0, dims, spec.m, spec.k);
  call.b = operand_of(spec.b, 1, dims, spec.k, spec.n);
  call.d = operand_of(spec.d, 2, dims, spec.m, spec.n);
  const LibraryEpilogue& epilogue = spec.epilogue;
  if (epilogue.bias)
    call.epilogue.bias = CallTensor{epilogue.bias->buffer, epilogue.bias->offset, {spec.n}, {1}};
  if (epilogue.residual)
    call.epilogue.residual = operand_of(*epilogue.residual, 3, dims, spec.m, spec.n);
  call.epilogue.activation = epilogue.activation;
  lowering.emit_library(std::move(call), info, phase);
}

}  // namespace lathe
