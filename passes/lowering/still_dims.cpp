// Volumes as images: see still_dims.h.
#include "passes/lowering/still_dims.h"

#include <algorithm>
#include <iterator>

namespace lathe {
namespace {

constexpr size_t kBatch = 0, kDepth = 2, kHeight = 3, kWidth = 4;  // of volumes

bool is_still(const ConvolutionCall& call, size_t dim) {
  const size_t d = dim - kDepth;
  return call.w.shape[dim] == Dim(1) && call.stride[d] == 1 && call.padding[d] == 0;
}

// Whether one stride walks through `inner`, and on through `outer`.
bool lie_together(const CallTensor& tensor, size_t outer, size_t inner) {
  return tensor.shape[outer] == Dim(1) || tensor.shape[inner] == Dim(1) ||
         tensor.strides[outer] == tensor.strides[inner] * tensor.shape[inner];
}

void drop(CallTensor& tensor, size_t dim) {
  tensor.shape.erase(tensor.shape.begin() + static_cast<ptrdiff_t>(dim));
  tensor.strides.erase(tensor.strides.begin() + static_cast<ptrdiff_t>(dim));
}

// Both dims become one where `outer` was.
void join(CallTensor& tensor, size_t outer, size_t inner) {
  if (tensor.shape[inner] != Dim(1)) tensor.strides[outer] = tensor.strides[inner];
  tensor.shape[outer] = tensor.shape[outer] * tensor.shape[inner];
  drop(tensor, inner);
}

bool join_all(ConvolutionCall& call, size_t outer, size_t inner) {
  std::vector<CallTensor*> images = {&call.x, &call.y};
  if (call.epilogue.residual) images.push_back(&*call.epilogue.residual);
  if (!std::all_of(images.begin(), images.end(),
                   [&](const CallTensor* image) { return lie_together(*image, outer, inner); }))
    return false;
  for (CallTensor* image : images) join(*image, outer, inner);
  drop(call.w, inner);
  for (std::vector<int64_t>* window : {&call.padding, &call.stride, &call.dilation})
    window->erase(window->begin() + static_cast<ptrdiff_t>(inner - kDepth));
  return true;
}

}  // namespace

void fold_still_dims(ConvolutionCall& call) {
  if (call.x.shape.size() <= kWidth) return;
  if (is_still(call, kDepth) && join_all(call, kBatch, kDepth)) return;
  if (is_still(call, kHeight) && is_still(call, kWidth)) join_all(call, kHeight, kWidth);
}

}  // namespace lathe
