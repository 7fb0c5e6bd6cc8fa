// The contraction and attention templates against plain sums.
#include "ir/templates/contraction.h"

#include <cmath>

#include "ir/templates/attention.h"
#include "ir/templates/packing.h"
#include "tests/templates/run_kernel.h"

namespace lathe {
namespace {

using loop::Expr;
using Index = std::span<const Expr>;

struct Product {
  int64_t batch, m, n, k;
};

enum class Columns { packed, in_place };

class MatrixProduct : public ::testing::TestWithParam<std::tuple<Product, const char*, Columns>> {};

// out[b, m, n] = relu(x[b, m, k] @ w[b, k, n] + bias[n])
TEST_P(MatrixProduct, AgreesWithPlainSums) {
  const auto& [p, isa, columns] = GetParam();
  const Product size = p;
  const Target& target = *find_target(isa);
  const bool in_place = columns == Columns::in_place;
  loop::Kernel kernel, packer;
  kernel.pool = std::make_shared<loop::Pool>();
  packer.pool = std::make_shared<loop::Pool>();
  ContractionSpec spec;
  if (size.batch > 1) spec.batch = {size.batch};
  spec.m = {size.m};
  spec.n = size.n;
  spec.k = {size.k};
  const auto column_of = [size](loop::Pool& own, loop::BufferRef w) {
    return [=, &own](Index batch, Index k, Expr n) {
      Expr depth = batch.empty() ? k[0] : batch[0] * own.integer(size.k) + k[0];
      return own.load(w, depth * own.integer(size.n) + n, DType::f32);
    };
  };
  loop::Pool& pool = *kernel.pool;
  auto x = kernel.add_buffer({"x", DType::f32, size.batch * size.m * size.k});
  auto bias = kernel.add_buffer({"bias", DType::f32, size.n});
  const int64_t num_columns = size.batch * size.k * size.n;
  if (in_place) spec.b = column_of(pool, kernel.add_buffer({"w", DType::f32, num_columns}));
  const PackedLayout layout = packed_layout(spec, target);
  loop::BufferRef packed;
  if (!in_place) packed = kernel.add_buffer({"packed", DType::f32, layout.num_elements()});
  auto out = kernel.add_buffer(
      {"out", DType::f32, size.batch * size.m * size.n, loop::Space::global, true});
  auto row = [&](Index batch, Expr m) {
    return batch.empty() ? m : batch[0] * pool.integer(size.m) + m;
  };
  spec.a = [&](Index batch, Index m, Index k) {
    return pool.load(x, row(batch, m[0]) * pool.integer(size.k) + k[0], DType::f32);
  };
  spec.epilogue = [&](Index batch, Index m, Expr n, Expr sum) {
    Expr value = loop::max(sum + pool.load(bias, n, DType::f32), loop::constant_like(sum, 0));
    return ResultElement{out, row(batch, m[0]) * pool.integer(size.n) + n, value};
  };
  build_contraction(kernel, spec, layout, packed, target);

  auto w = packer.add_buffer({"w", DType::f32, num_columns});
  auto packed_out =
      packer.add_buffer({"packed", DType::f32, layout.num_elements(), loop::Space::global, true});
  const ColumnElement column = column_of(*packer.pool, w);

  // Of one sign where the products are many: what a single chain of additions would lose.
  const auto factors = [&](int64_t count, int seed) {
    return size.k > 1000 ? Floats(static_cast<size_t>(count), 0.1f) : numbers(count, seed);
  };
  Floats xs = factors(size.batch * size.m * size.k, 1),
         ws = factors(size.batch * size.k * size.n, 2), biases = numbers(size.n, 3),
         packs(size_t(layout.num_elements().value()), NAN),
         outs(size_t(size.batch * size.m * size.n), NAN);
  for (const PanelRange& range : panel_ranges(spec, layout))
    run_kernel(schedule(pack_nest(packer, spec, layout, range, packed_out, column), target),
               {&ws, &packs});
  run_kernel(kernel, {&xs, &biases, in_place ? &ws : &packs, &outs});
  for (int64_t b = 0; b < size.batch; ++b) {
    for (int64_t m = 0; m < size.m; ++m) {
      for (int64_t n = 0; n < size.n; ++n) {
        double sum = biases[size_t(n)];
        for (int64_t k = 0; k < size.k; ++k) {
          sum += double(xs[size_t((b * size.m + m) * size.k + k)]) *
                 ws[size_t((b * size.k + k) * size.n + n)];
        }
        ASSERT_NEAR(outs[size_t((b * size.m + m) * size.n + n)], std::max(sum, 0.0),
                    1e-4 + 2e-5 * std::fabs(sum))
            << b << ", " << m << ", " << n;
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(
    Shapes, MatrixProduct,
    ::testing::Combine(::testing::Values(Product{1, 1, 1, 1}, Product{1, 15, 32, 8},
                                         Product{1, 29, 10, 7}, Product{1, 5, 100, 12},
                                         Product{3, 17, 33, 20}, Product{1, 40, 64, 16},
                                         Product{1, 2, 17, 100003}, Product{1, 9, 20, 13}),
                       ::testing::Values("avx512", "avx2"),
                       ::testing::Values(Columns::packed, Columns::in_place)));

// How a test packs pairs: by a loop nest, or by whole vectors of what lies side by side.
enum class Packing { nest, columns, elements };

// Of bf16, two elements a step.
class PairedProduct : public ::testing::TestWithParam<std::tuple<Product, Packing>> {};

TEST_P(PairedProduct, AgreesWithPlainSums) {
  const auto& [size, packing] = GetParam();
  const Product p = size;
  const bool turned = packing == Packing::elements;
  const Target& target = *find_target("avx512_bf16");
  loop::Kernel kernel, packer;
  kernel.pool = std::make_shared<loop::Pool>();
  packer.pool = std::make_shared<loop::Pool>();
  ContractionSpec spec;
  spec.is_paired = true;
  if (p.batch > 1) spec.batch = {p.batch};
  spec.m = {p.m};
  spec.n = p.n;
  spec.k = {2, p.k};
  const PackedLayout layout = packed_layout(spec, target);
  loop::Pool& pool = *kernel.pool;
  auto x = kernel.add_buffer({"x", DType::bf16, p.batch * p.m * 2 * p.k});
  auto packed = kernel.add_buffer({"packed", DType::i32, layout.num_elements()});
  auto out = kernel.add_buffer({"out", DType::f32, p.batch * p.m * p.n, loop::Space::global, true});
  auto row = [&](Index batch, Expr m) {
    return batch.empty() ? m : batch[0] * pool.integer(p.m) + m;
  };
  spec.a = [&](Index batch, Index m, Index k) {
    const Expr at = (row(batch, m[0]) * pool.integer(2) + k[0]) * pool.integer(p.k) + k[1];
    return pool.load(x, at, DType::bf16);
  };
  spec.epilogue = [&](Index batch, Index m, Expr n, Expr sum) {
    return ResultElement{out, row(batch, m[0]) * pool.integer(p.n) + n, sum};
  };
  build_contraction(kernel, spec, layout, packed, target);

  loop::Pool& own = *packer.pool;
  auto w = packer.add_buffer({"w", DType::bf16, p.batch * 2 * p.k * p.n});
  auto packed_out =
      packer.add_buffer({"packed", DType::i32, layout.num_elements(), loop::Space::global, true});
  const ColumnElement column = [&](Index batch, Index k, Expr n) {
    Expr at = batch.empty() ? own.integer(0) : batch[0] * own.integer(2 * p.k * p.n);
    at = at + (turned ? n * own.integer(2 * p.k) + k[0] * own.integer(p.k) + k[1]
                      : (k[0] * own.integer(p.k) + k[1]) * own.integer(p.n) + n);
    return own.load(w, at, DType::bf16);
  };

  const auto halves = [](int64_t count, int seed) {
    std::vector<uint16_t> result;
    for (float value : numbers(count, seed)) result.push_back(f32_to_bf16(value));
    return result;
  };
  std::vector<uint16_t> xs = halves(p.batch * p.m * 2 * p.k, 1),
                        ws = halves(p.batch * 2 * p.k * p.n, 2);
  std::vector<int32_t> packs(size_t(layout.num_elements().value()), 0x7fc07fc0);  // NaN
  Floats outs(size_t(p.batch * p.m * p.n), NAN);
  if (packing != Packing::nest) {
    build_pair_packing(packer, spec, layout, packed_out, column,
                       turned ? Neighbours::elements : Neighbours::columns, target);
    run_in_memory(packer, {memory_of(ws), memory_of(packs)});
  } else {
    for (const PanelRange& range : panel_ranges(spec, layout))
      run_in_memory(schedule(pack_nest(packer, spec, layout, range, packed_out, column), target),
                    {memory_of(ws), memory_of(packs)});
  }
  run_in_memory(kernel, {memory_of(xs), memory_of(packs), memory_of(outs)});
  for (int64_t b = 0; b < p.batch; ++b) {
    for (int64_t m = 0; m < p.m; ++m) {
      for (int64_t n = 0; n < p.n; ++n) {
        double sum = 0;
        for (int64_t k = 0; k < 2 * p.k; ++k) {
          const int64_t at = turned ? n * 2 * p.k + k : k * p.n + n;
          sum += double(bf16_to_f32(xs[size_t((b * p.m + m) * 2 * p.k + k)])) *
                 bf16_to_f32(ws[size_t(b * 2 * p.k * p.n + at)]);
        }
        ASSERT_NEAR(outs[size_t((b * p.m + m) * p.n + n)], sum, 1e-4 + 2e-5 * std::fabs(sum))
            << b << ", " << m << ", " << n;
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(
    Shapes, PairedProduct,
    ::testing::Combine(::testing::Values(Product{1, 1, 1, 2}, Product{1, 15, 32, 8},
                                         Product{1, 29, 10, 7}, Product{1, 5, 100, 3},
                                         Product{3, 17, 33, 41}, Product{2, 4, 64, 32},
                                         Product{2, 6, 20, 27}),
                       ::testing::Values(Packing::nest, Packing::columns, Packing::elements)));

// 14 rows that are 4096 bytes apart would share the 8 ways of one cache set.
TEST(PackedLayout, TakesFewRowsThatShareACacheSet) {
  ContractionSpec spec;
  spec.m = {128};
  spec.n = 768;
  spec.k = {3072};
  const Target& target = *find_target("avx512");
  spec.row_bytes = 3072 * 4 + 64;
  EXPECT_GT(packed_layout(spec, target).tile.rows, 8);
  spec.row_bytes = 3072 * 4;
  EXPECT_LE(packed_layout(spec, target).tile.rows, 6);
}

// A 3x3 convolution, channels last, unpadded; rows of 7 pixels share a tile.
TEST(Convolution, AgreesWithPlainSums) {
  const int64_t c = 5, o = 20, size = 7;
  const Target& target = *find_target("avx512");
  loop::Kernel kernel, packer;
  kernel.pool = std::make_shared<loop::Pool>();
  packer.pool = std::make_shared<loop::Pool>();
  loop::Pool& pool = *kernel.pool;
  ContractionSpec spec;
  spec.m = {1, size, size};
  spec.n = o;
  spec.k = {3, 3, c};
  const PackedLayout layout = packed_layout(spec, target);
  auto x = kernel.add_buffer({"x", DType::f32, (size + 2) * (size + 2) * c});
  auto packed = kernel.add_buffer({"packed", DType::f32, layout.num_elements()});
  auto out = kernel.add_buffer({"out", DType::f32, size * size * o, loop::Space::global, true});
  spec.a = [&](Index, Index m, Index k) {
    Expr pixel = (m[1] + k[0]) * pool.integer(size + 2) + m[2] + k[1];
    return pool.load(x, pixel * pool.integer(c) + k[2], DType::f32);
  };
  spec.epilogue = [&](Index, Index m, Expr n, Expr sum) {
    return ResultElement{out, (m[1] * pool.integer(size) + m[2]) * pool.integer(o) + n, sum};
  };
  build_contraction(kernel, spec, layout, packed, target);
  auto w = packer.add_buffer({"w", DType::f32, o * c * 9});
  auto packed_out =
      packer.add_buffer({"packed", DType::f32, layout.num_elements(), loop::Space::global, true});
  const ColumnElement column = [&](Index, Index k, Expr n) {
    loop::Pool& own = *packer.pool;
    return own.load(w,
                    ((n * own.integer(c) + k[2]) * own.integer(3) + k[0]) * own.integer(3) + k[1],
                    DType::f32);
  };
  Floats xs = numbers((size + 2) * (size + 2) * c, 1), ws = numbers(o * c * 9, 2),
         packs(size_t(layout.num_elements().value()), NAN), outs(size_t(size * size * o), NAN);
  for (const PanelRange& range : panel_ranges(spec, layout))
    run_kernel(schedule(pack_nest(packer, spec, layout, range, packed_out, column), target),
               {&ws, &packs});
  run_kernel(kernel, {&xs, &packs, &outs});
  for (int64_t h = 0; h < size; ++h) {
    for (int64_t v = 0; v < size; ++v) {
      for (int64_t n = 0; n < o; ++n) {
        double sum = 0;
        for (int64_t i = 0; i < 3; ++i) {
          for (int64_t j = 0; j < 3; ++j) {
            for (int64_t k = 0; k < c; ++k) {
              sum += double(xs[size_t(((h + i) * (size + 2) + v + j) * c + k)]) *
                     ws[size_t(((n * c + k) * 3 + i) * 3 + j)];
            }
          }
        }
        ASSERT_NEAR(outs[size_t((h * size + v) * o + n)], sum, 1e-4);
      }
    }
  }
}

struct AttentionSize {
  int64_t heads, queries, keys, depth, width;
  bool is_causal;
};
class AttentionTemplate : public ::testing::TestWithParam<AttentionSize> {};

TEST_P(AttentionTemplate, AgreesWithPlainSoftmax) {
  const AttentionSize s = GetParam();
  loop::Kernel kernel;
  kernel.pool = std::make_shared<loop::Pool>();
  loop::Pool& pool = *kernel.pool;
  auto q = kernel.add_buffer({"q", DType::f32, s.heads * s.queries * s.depth});
  auto k = kernel.add_buffer({"k", DType::f32, s.heads * s.keys * s.depth});
  auto v = kernel.add_buffer({"v", DType::f32, s.heads * s.keys * s.width});
  auto out = kernel.add_buffer(
      {"out", DType::f32, s.heads * s.queries * s.width, loop::Space::global, true});
  AttentionSpec spec;
  spec.batch = {s.heads};
  spec.queries = s.queries;
  spec.keys = s.keys;
  spec.depth = s.depth;
  spec.width = s.width;
  spec.scale = 0.5;
  spec.is_causal = s.is_causal;
  auto at = [&](Index batch, int64_t rows, Expr row, int64_t columns, Expr column) {
    return (batch[0] * pool.integer(rows) + row) * pool.integer(columns) + column;
  };
  spec.query = [&](Index b, Expr i, Expr d) {
    return pool.load(q, at(b, s.queries, i, s.depth, d), DType::f32);
  };
  spec.key = [&](Index b, Expr t, Expr d) {
    return pool.load(k, at(b, s.keys, t, s.depth, d), DType::f32);
  };
  spec.value = [&](Index b, Expr t, Expr e) {
    return pool.load(v, at(b, s.keys, t, s.width, e), DType::f32);
  };
  spec.result = [&](Index b, Expr i, Expr e, Expr sum) {
    return ResultElement{out, at(b, s.queries, i, s.width, e), sum};
  };
  build_attention(kernel, spec, *find_target("avx512"));
  Floats qs = numbers(s.heads * s.queries * s.depth, 1),
         ks = numbers(s.heads * s.keys * s.depth, 2), vs = numbers(s.heads * s.keys * s.width, 3),
         outs(size_t(s.heads * s.queries * s.width), NAN);
  run_kernel(kernel, {&qs, &ks, &vs, &outs});
  for (int64_t h = 0; h < s.heads; ++h) {
    for (int64_t i = 0; i < s.queries; ++i) {
      std::vector<double> p(size_t(s.keys), 0);
      double total = 0;
      for (int64_t t = 0; t < s.keys; ++t) {
        if (s.is_causal && t > i) continue;
        double score = 0;
        for (int64_t d = 0; d < s.depth; ++d) {
          score += double(qs[size_t((h * s.queries + i) * s.depth + d)]) *
                   ks[size_t((h * s.keys + t) * s.depth + d)];
        }
        p[size_t(t)] = std::exp(score * 0.5);
        total += p[size_t(t)];
      }
      for (int64_t e = 0; e < s.width; ++e) {
        double want = 0;
        for (int64_t t = 0; t < s.keys; ++t)
          want += p[size_t(t)] / total * vs[size_t((h * s.keys + t) * s.width + e)];
        ASSERT_NEAR(outs[size_t((h * s.queries + i) * s.width + e)], want, 1e-4)
            << h << ", " << i << ", " << e;
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(
    Sizes, AttentionTemplate,
    ::testing::Values(AttentionSize{2, 20, 20, 8, 16, false}, AttentionSize{1, 1, 5, 4, 3, false},
                      AttentionSize{3, 29, 40, 16, 32, true},
                      AttentionSize{1, 15, 70, 6, 40, false},
                      // Panels of keys that early queries do not see.
                      AttentionSize{1, 70, 70, 8, 16, true}, AttentionSize{2, 33, 51, 7, 5, true},
                      AttentionSize{1, 80, 40, 4, 8, true}, AttentionSize{1, 97, 300, 3, 17, true},
                      // Few queries.
                      AttentionSize{2, 3, 45, 20, 9, true}, AttentionSize{1, 2, 70, 33, 6, false},
                      // More columns than are unrolled.
                      AttentionSize{1, 3, 4, 2, 1100, false},
                      AttentionSize{1, 16, 4, 2, 1056, false}));

}  // namespace
}  // namespace lathe
