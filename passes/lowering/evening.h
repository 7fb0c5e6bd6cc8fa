// Products of halves that feed a library's tensor cores: 16 bytes at once, of rows that start at
// multiples of them. Where an extent or a stride does not fit, the library falls back to kernels
// several times slower; zeros that fill rows up, or a small product for the columns that are over,
// cost less.
#pragma once
#include <cstdint>

namespace lathe {

// A product at the sizes it is priced for, all batch elements together.
struct UnevenProduct {
  double m = 1, n = 1, k = 1;
  double a_elements = 0, b_elements = 0;    // read, without those of stride 0
  bool is_a_even = true, is_b_even = true;  // but for the extents: strides and where they begin
  bool is_a_constant = false, is_b_constant = false;  // copied once, when weights are bound
  bool has_copy = false;                              // of the result, in any case: by what follows
};

struct Evening {
  bool copies_a = false, copies_b = false;  // with terms of zeros
  bool pads_rows = false;                   // of the result, which is copied out of them
  bool fills_columns = false;  // B gets columns of zeros; else a product of their own has the last
  bool is_nothing() const { return !copies_a && !copies_b && !pads_rows; }
};

// What is faster than the product as it is; `step` elements are 16 bytes.
Evening choose_evening(const UnevenProduct& product, int64_t step);

}  // namespace lathe
