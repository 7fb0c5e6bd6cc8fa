// The one matrix product behind the references of matmul, convolution and attention: blocked and
// threaded, accumulated in double, or of integers in 64 bits that wrap.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "ir/op/parallel.h"

namespace lathe {

inline constexpr int64_t kPanel = 8;  // columns computed at once

// out[i * kPanel + j] = sum over k of a[i * num_k + k] * panel[k * kPanel + j], for i < num_rows.
void multiply_panel(const double* a, const double* panel, int64_t num_rows, int64_t num_k,
                    double* out);
void multiply_panel(const uint64_t* a, const uint64_t* panel, int64_t num_rows, int64_t num_k,
                    uint64_t* out);

// For all i < m, j < n: store(i, j, sum over k' < k of a(i, k') * b(k', j)). The functions read
// elements as T, double or uint64_t; store is called once per (i, j), from several threads.
template <class T = double, class A, class B, class Store>
void contract(int64_t m, int64_t n, int64_t k, A a, B b, Store store) {
  std::vector<T> packed_a(static_cast<size_t>(m * k));
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t at = 0; at < k; ++at) packed_a[static_cast<size_t>(i * k + at)] = a(i, at);
  }
  parallel_for((n + kPanel - 1) / kPanel, [&](int64_t begin, int64_t end) {
    std::vector<T> panel(static_cast<size_t>(k * kPanel));
    std::vector<T> out(static_cast<size_t>(m * kPanel));
    for (int64_t first = begin * kPanel; first < std::min(end * kPanel, n); first += kPanel) {
      const int64_t columns = std::min(kPanel, n - first);
      for (int64_t at = 0; at < k; ++at) {
        for (int64_t j = 0; j < columns; ++j) {
          panel[static_cast<size_t>(at * kPanel + j)] = b(at, first + j);
        }
      }
      multiply_panel(packed_a.data(), panel.data(), m, k, out.data());
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < columns; ++j) {
          store(i, first + j, out[static_cast<size_t>(i * kPanel + j)]);
        }
      }
    }
  });
}

}  // namespace lathe
