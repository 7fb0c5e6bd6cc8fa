// The inner loops of contract (see contract.h).
#include "ir/op/contract.h"

namespace lathe {
namespace {

// A block of rows keeps its sums in registers; the constant bounds let the compiler vectorise.
template <int kRows, class T>
void multiply_rows(const T* a, const T* panel, int64_t num_k, T* out) {
  T sums[kRows][kPanel] = {};
  for (int64_t k = 0; k < num_k; ++k) {
    for (int i = 0; i < kRows; ++i) {
      const T x = a[i * num_k + k];
      for (int64_t j = 0; j < kPanel; ++j) sums[i][j] += x * panel[k * kPanel + j];
    }
  }
  for (int i = 0; i < kRows; ++i) {
    for (int64_t j = 0; j < kPanel; ++j) out[i * kPanel + j] = sums[i][j];
  }
}

template <class T>
void multiply(const T* a, const T* panel, int64_t num_rows, int64_t num_k, T* out) {
  int64_t i = 0;
  for (; i + 2 <= num_rows; i += 2) {
    multiply_rows<2>(a + i * num_k, panel, num_k, out + i * kPanel);
  }
  if (i < num_rows) multiply_rows<1>(a + i * num_k, panel, num_k, out + i * kPanel);
}

}  // namespace

void multiply_panel(const double* a, const double* panel, int64_t num_rows, int64_t num_k,
                    double* out) {
  multiply(a, panel, num_rows, num_k, out);
}
void multiply_panel(const uint64_t* a, const uint64_t* panel, int64_t num_rows, int64_t num_k,
                    uint64_t* out) {
  multiply(a, panel, num_rows, num_k, out);
}

}  // namespace lathe
