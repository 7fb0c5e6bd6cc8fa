// What CUDA C++ the emitter writes, and what it refuses.
#include <gtest/gtest.h>

#include "backends/cuda/emit.h"
#include "backends/cuda/spelling.h"
#include "ir/loop/pool.h"
#include "ir/loop/text.h"

namespace lathe {
namespace {

const Target& h200() { return *find_target("sm_90"); }

loop::Kernel kernel_of(const std::string& text) {
  LocTable locs;
  Result<loop::Kernel> kernel = loop::parse_kernel(text, locs);
  EXPECT_TRUE(kernel.ok()) << render(kernel.error(), locs);
  return kernel.ok() ? *std::move(kernel) : loop::Kernel{};
}

std::string emit(const std::string& text, cuda::EmitOptions options = {}) {
  Result<std::string> source = cuda::emit_kernel(kernel_of(text), "k", h200(), options);
  EXPECT_TRUE(source.ok()) << source.error().message;
  return source.ok() ? *source : "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

constexpr char kDouble[] = R"(kernel @double(%x: f32[4096], %y: f32[4096] out) {
  parallel %i in 0..4 {
    store %y[%i*1024] = load f32x1024 %x[%i*1024] * 2.0
  }
})";

TEST(CudaEmit, AThreadMovesNeighbouringLanesAtOnce) {
  std::string text = emit(kDouble);
  EXPECT_TRUE(contains(text, "const float* __restrict__ x")) << text;
  EXPECT_TRUE(contains(text, "const auto x_2 = load<4>(x + t + first);")) << text;
  EXPECT_TRUE(contains(text, "y_2[e] = x_2[e] * 2.0f;")) << text;
  EXPECT_TRUE(contains(text, "store(y + t + first, y_2);")) << text;
}

TEST(CudaEmit, WritesToOnePlaceAreCombinedAtomically) {
  const std::string text = emit(R"(kernel @k(%at: i64[999], %x: bf16[999], %y: f32[10] out) {
  parallel %i in 0..999 {
    store atomic max %y[load %at[%i]] mask(%i < 998) = f32(load %x[%i])
  }
})");
  EXPECT_TRUE(contains(text, "if (i < 998) combine_at<Max>(y + at[i], float(")) << text;
}

TEST(CudaEmit, AVectorIsABlockOfItsOwnWhenItIsWiderThanAWarp) {
  Result<cuda::LaunchShape> shape = cuda::launch_shape(kernel_of(kDouble), h200());
  ASSERT_TRUE(shape.ok());
  EXPECT_EQ(shape->threads, 256);
  EXPECT_EQ(shape->lanes_a_thread, 4);
  EXPECT_EQ(shape->groups, 1);
  EXPECT_EQ(shape->blocks(), 4);
}

TEST(CudaEmit, ShortVectorsShareABlockAndTheLastGroupsLeave) {
  std::string kernel = R"(kernel @k(%x: f32[3200], %y: f32[100] out) {
  parallel %i in 0..100 {
    store %y[%i] = reduce_lanes(max, load f32x32 %x[%i*32])
  }
})";
  Result<cuda::LaunchShape> shape = cuda::launch_shape(kernel_of(kernel), h200());
  ASSERT_TRUE(shape.ok());
  EXPECT_EQ(shape->threads, 8);
  EXPECT_EQ(shape->groups, 32);
  EXPECT_EQ(shape->blocks(), 4);
  std::string text = emit(kernel);
  EXPECT_TRUE(contains(text, "blockIdx.x * 32 + threadIdx.y")) << text;
  EXPECT_TRUE(contains(text, "if (i >= 100) return;")) << text;
  EXPECT_TRUE(contains(text, "reduce_group<Max, 8>")) << text;
  EXPECT_TRUE(contains(text, "if (thread == 0) y[i] = total;")) << text;
}

TEST(CudaEmit, ThreadsOfAGroupAreTheRowsOfABlock) {
  const std::string kernel = R"(kernel @k(%x: f32[1024], %y: f32[1024] out, %s: f32[256] shared) {
  parallel %g in 0..4 {
    thread %w in 0..8 {
      store %s[%w*32] = load f32x32 %x[%g*256 + %w*32]
      barrier
      store %y[%g*256 + %w*32] = load f32x32 %s[224 - %w*32]
    }
  }
})";
  Result<cuda::LaunchShape> shape = cuda::launch_shape(kernel_of(kernel), h200());
  ASSERT_TRUE(shape.ok());
  EXPECT_EQ(shape->threads, 8);
  EXPECT_EQ(shape->members, 8);
  EXPECT_EQ(shape->rows(), 8);
  EXPECT_EQ(shape->blocks(), 4);
  const std::string text = emit(kernel);
  EXPECT_TRUE(contains(text, "__launch_bounds__(64)")) << text;
  EXPECT_TRUE(contains(text, "__shared__ alignas(16) float s[256];")) << text;
  EXPECT_TRUE(contains(text, "const int w = threadIdx.y;")) << text;
  EXPECT_TRUE(contains(text, "__syncthreads();")) << text;
}

// Rows of 32 that lie 40 apart, eight of which are a vector.
std::string rows_of_tiles(const std::string& stride, const std::string& limit) {
  return emit(
      "kernel @k(%x: bf16[4000], %y: bf16[256] out) { parallel %i in 0..1 { store %y[%i*256] "
      "= load bf16x256 %x[ramp(%i*256, 1, 256)//32*" +
      stride + " + ramp(%i*256, 1, 256) % 32] mask(ramp(%i*256, 1, 256) % 32 < " + limit +
      " && ramp(%i*256, 1, 256)//32 < 5) } }");
}

TEST(CudaEmit, RowsOfWhichAThreadHasAPartAreReadAtOnce) {
  EXPECT_TRUE(contains(rows_of_tiles("40", "24"), "load_if<8>(")) << rows_of_tiles("40", "24");
  EXPECT_FALSE(contains(rows_of_tiles("41", "24"), "load_if<8>(")) << rows_of_tiles("41", "24");
  EXPECT_FALSE(contains(rows_of_tiles("40", "23"), "load_if<8>(")) << rows_of_tiles("40", "23");
}

// Columns of %a, %b and %c side by side, as concatenations are written: of 64, `end` - 64 and the
// rest of 512.
std::string parts(const std::string& end, const std::string& rest) {
  const std::string at = "ramp(0, 1, 512)";
  return emit(
      "kernel @k(%a: bf16[640], %b: bf16[9000], %c: bf16[9000], %y: bf16[5120] out) { "
      "parallel %i in 0..10 { store %y[%i*512] = select(" +
      at + " < 64, load bf16x512 %a[splat(%i*64, 512) + min(" + at + ", 63)], select(" + at +
      " < " + end + ", load bf16x512 %b[splat(%i*" + rest + ", 512) + min(max(" + at +
      " - 64, 0), " + end + " - 65)], load bf16x512 %c[splat(%i*" + rest + ", 512) + max(" + at +
      " - " + end + ", 0)])) } }");
}

TEST(CudaEmit, PartsSideBySideAreReadFromTheChosenAddress) {
  const std::string text = parts("192", "256");
  EXPECT_TRUE(contains(text, "from = first < 64 ? a + i * 64 + first\n")) << text;
  EXPECT_TRUE(contains(text, ": first < 192 ? b + i * 256 + -64 + first\n")) << text;
  EXPECT_TRUE(contains(text, ": c + i * 256 + -192 + first;")) << text;
  EXPECT_TRUE(contains(text, "load<8>(from)")) << text;
}

// Lanes of a thread choose apart where parts end within a pack or begin apart from one.
TEST(CudaEmit, OtherPartsAreChosenForEachLane) {
  for (const std::string& text : {parts("191", "256"), parts("192", "255")}) {
    EXPECT_TRUE(contains(text, "from = first + e < 64 ? a + i * 64 + first + e\n")) << text;
    EXPECT_TRUE(contains(text, " = *from;")) << text;
    EXPECT_FALSE(contains(text, "least(")) << text;
  }
}

std::string refusal(const std::string& text) {
  Result<cuda::LaunchShape> shape = cuda::launch_shape(kernel_of(text), h200());
  return shape.ok() ? "" : shape.error().message;
}

TEST(CudaEmit, RefusesGroupsThatTheMachineCannotHave) {
  const std::string start = "the cuda target cannot compile kernel 'k': ";
  EXPECT_EQ(refusal("kernel @k(%y: f32[1024] out) { parallel %g in 0..1 { thread %w in 0..2 { "
                    "store %y[0] = splat(1.0, 512) } } }"),
            start + "a vector of 512 lanes is wider than a warp, of which its group has 2");
  EXPECT_EQ(refusal("kernel @k(%y: f32[1024] out) { parallel %g in 0..1 { thread %w in 0..64 { "
                    "store %y[0] = splat(1.0, 128) } } }"),
            start + "its group has 2048 threads, expected at most 1024");
  EXPECT_EQ(refusal("kernel @k(%y: f32[16] out, %s: f32[12288] shared) { parallel %g in 0..1 { "
                    "thread %w in 0..2 { store %y[0] = 1.0 } } }"),
            start + "its scratch memory is 49168 bytes, expected at most 49152");
  EXPECT_EQ(refusal("kernel @k(%y: f32[16] out) { parallel %g in 0..1 { tiles %a: left(f32, 16, "
                    "16, 16) store %y[0] = 1.0 } }"),
            start + "sm_90 has no tiles of f32 for a product 16 x 16 x 16");
  EXPECT_EQ(refusal("kernel @k(%y: f32[16] out) { parallel %g in 0..1 { tiles %a: sum(f32, 16, "
                    "8, 16) store %y[0] = splat(1.0, 16) } }"),
            start + "vectors of 16 lanes beside matrix tiles leave part of a warp without any");
}

// exp(x) / w, where w is one value for all lanes.
std::string quotients(const std::string& dtype) {
  const std::string cast = dtype == "f32" ? "" : dtype;
  return emit("kernel @k(%x: f32[1024], %w: f32[1], %y: " + dtype + R"([1024] out) {
  parallel %i in 0..1 {
    store %y[%i*1024] = )" +
              cast + R"((exp(load f32x1024 %x[%i*1024]) / splat(load f32 %w[0], 1024))
  }
})");
}

TEST(CudaEmit, OnlyHalvesAreMadeFromNearValues) {
  std::string text = quotients("bf16");
  EXPECT_TRUE(contains(text, "near_quotient(near_exp(")) << text;
  EXPECT_TRUE(contains(text, "Divisor(")) << text;
  text = quotients("f32");
  EXPECT_TRUE(contains(text, "expf(")) << text;
  EXPECT_FALSE(contains(text, "near_")) << text;
}

TEST(CudaEmit, LanesGoRoundTheThreadsWhereRowsAreNotAligned) {
  std::string text = emit(R"(kernel @k(%x: f32[390], %y: f32[390] out) {
  parallel %i in 0..3 {
    store %y[%i*130] = -load f32x128 %x[%i*130]
  }
})");
  EXPECT_FALSE(contains(text, "load<4>")) << text;
  EXPECT_TRUE(contains(text, "y[t + first + 32 * e] = -x[t + first + 32 * e];")) << text;
}

TEST(CudaEmit, LanesGoRoundTheThreadsWhereEachHasAnIndex) {
  const std::string text = emit(R"(kernel @k(%x: f32[4128], %y: f32[4128] out) {
  parallel %i in 0..4 {
    def %0 = splat(%i*6, 1024) + ramp(0, 1, 1024)//6*24 + ramp(0, 1, 1024) % 6
    store %y[%0] = load f32x1024 %x[%0]
  }
})");
  EXPECT_TRUE(contains(text, "const int first = thread;")) << text;
}

TEST(CudaEmit, AMaskOfWholePacksIsOneCondition) {
  std::string text = emit(R"(kernel @k(%x: f32[100], %y: f32[100] out) {
  parallel %i in 0..1 {
    store %y[0] mask(ramp(0, 1, 128) < 100) = load f32x128 %x[0] mask(ramp(0, 1, 128) < 100)
  }
})");
  EXPECT_TRUE(contains(text, "load_if<4>(first < 100, x + 0 + first)")) << text;
  EXPECT_TRUE(contains(text, "if (first < 100) store(")) << text;
}

TEST(CudaEmit, AMaskOfAVectorOfOneThreadHasNoOtherLanes) {
  std::string text = emit(R"(kernel @k(%x: f32[1000], %y: f32[1000] out) {
  parallel %g in 0..2 {
    thread %w in 0..128 {
      let %at: i64 = %g*512 + %w*4
      def %m = ramp(%at, 1, 4) < splat(1000, 4)
      store %y[%at] mask(%m) = load f32x4 %x[%at] mask(%m)
    }
  }
})");
  EXPECT_TRUE(contains(text, "load_if<4>(at < 1000, x + at)")) << text;
  EXPECT_TRUE(contains(text, "if (at < 1000) store(y + at")) << text;
}

TEST(CudaEmit, OtherMasksAreAskedForEachLane) {
  std::string text = emit(R"(kernel @k(%x: f32[99], %y: f32[99] out) {
  parallel %i in 0..1 {
    store %y[0] mask(ramp(0, 1, 128) < 99) = load f32x128 %x[0] mask(ramp(0, 1, 128) < 99)
  }
})");
  EXPECT_TRUE(contains(text, "? x[0 + first + e] : float(0)")) << text;
}

TEST(CudaEmit, IndicesAreWideOnlyWhereTheyMustBe) {
  std::string text = emit(R"(kernel @k(%x: u8[6000000000], %y: u8[6000000000] out) {
  parallel %i in 0..3000000 {
    store %y[%i*2000] = load %x[%i*2000]
  }
})");
  EXPECT_TRUE(contains(text, "const i64 t = i64(i) * 2000;")) << text;
  EXPECT_TRUE(contains(text, "const int i = ")) << text;
}

TEST(CudaEmit, HalvesAreComputedInFloats) {
  std::string text = emit(R"(kernel @k(%x: bf16[256], %y: bf16[256] out) {
  parallel %i in 0..1 {
    store %y[0] = bf16(f32(load bf16x256 %x[0]) + 1.0)
  }
})");
  EXPECT_TRUE(contains(text, "load<8>(x + 0 + first)")) << text;
  EXPECT_TRUE(contains(text, "bf16(float(x_2[e]) + 1.0f)")) << text;
}

TEST(CudaEmit, BuffersThatMayOverlapAreNotRestricted) {
  EXPECT_FALSE(contains(emit(kDouble, {.is_noalias = false}), "__restrict__"));
}

TEST(CudaEmit, ScratchIsSharedMemoryBetweenBarriers) {
  std::string text = emit(R"(kernel @k(%x: f32[128], %y: f32[128] out, %s: f32[128] scratch) {
  parallel %i in 0..1 {
    store %s[0] = load f32x128 %x[0]
    store %y[0] = load f32x128 %s[ramp(127, -1, 128)]
  }
})");
  size_t store = text.find("store(s + 0 + first");
  ASSERT_NE(store, std::string::npos) << text;
  EXPECT_TRUE(contains(text, "__shared__ alignas(16) float s")) << text;
  EXPECT_LT(text.find("group_sync<32>();"), store) << text;
  EXPECT_NE(text.find("group_sync<32>();", store), std::string::npos) << text;
}

TEST(CudaEmit, TooMuchScratchIsRefused) {
  Result<std::string> source =
      cuda::emit_kernel(kernel_of(R"(kernel @big(%y: f32[1] out, %s: f32[20000] scratch) {
  parallel %i in 0..1 {
    store %y[0] = load %s[0]
  }
})"),
                        "k", h200(), {});
  ASSERT_FALSE(source.ok());
  EXPECT_TRUE(contains(source.error().message, "its scratch memory is 80016 bytes"))
      << source.error().message;
}

// The kernel over a size of that range.
std::string sized(const std::string& range) {
  return "kernel @k(%x: f32[n0], %y: f32[n0] out) { dim %n0 in " + range +
         " dim %n1 in [1, 64] parallel %i in 0..%n0 { store %y[%i] = load %x[%i] * " +
         "f32(%n1) } }";
}

TEST(CudaEmit, SizesFollowThePointersAndBoundTheLoop) {
  const std::string text = emit(sized("[0, 4096]"));
  EXPECT_TRUE(contains(text, "float* __restrict__ y,\n    int n0,\n    int n1) {")) << text;
  EXPECT_TRUE(contains(text, "const int i = blockIdx.x * 256 + threadIdx.y;")) << text;
  EXPECT_TRUE(contains(text, "if (i >= n0) return;")) << text;
}

TEST(CudaEmit, SizesOfNoKnownEndAreIntsWhereWhoLaunchesSaysSo) {
  const std::string kernel = sized("[0, 4611686018427387903]");
  EXPECT_TRUE(cuda::has_large_sizes(kernel_of(kernel)));
  EXPECT_FALSE(cuda::has_large_sizes(kernel_of(sized("[0, 4096]"))));
  EXPECT_TRUE(contains(emit(kernel), "int n0,")) << emit(kernel);
  EXPECT_FALSE(contains(emit(kernel), "i64")) << emit(kernel);
  const std::string wide = emit(kernel, {.has_small_sizes = false});
  EXPECT_TRUE(contains(wide, "i64 n0,\n    int n1")) << wide;
  EXPECT_TRUE(contains(wide, "const i64 i = i64(blockIdx.x) * 256 + threadIdx.y;")) << wide;
}

TEST(CudaEmit, TheGridFollowsTheSizeThatEndsTheLoop) {
  Result<cuda::LaunchShape> shape = cuda::launch_shape(kernel_of(sized("[0, 4096]")), h200());
  ASSERT_TRUE(shape.ok()) << shape.error().message;
  EXPECT_EQ(shape->groups, 256);
  EXPECT_EQ(shape->blocks_at(std::vector<int64_t>{0, 1}), 0);
  EXPECT_EQ(shape->blocks_at(std::vector<int64_t>{1, 1}), 1);
  EXPECT_EQ(shape->blocks_at(std::vector<int64_t>{256, 1}), 1);
  EXPECT_EQ(shape->blocks_at(std::vector<int64_t>{257, 1}), 2);
  EXPECT_EQ(shape->blocks_at(std::vector<int64_t>{INT64_MAX, 1}), (INT64_MAX >> 8) + 1);
}

TEST(CudaEmit, ScratchOfASymbolicSizeIsRefused) {
  Result<std::string> source = cuda::emit_kernel(
      kernel_of("kernel @k(%y: f32[1] out, %s: f32[n0] scratch) { dim %n0 in [1, 64] parallel %i "
                "in 0..1 { store %s[0] = 1.0 store %y[0] = load %s[0] } }"),
      "k", h200(), {});
  ASSERT_FALSE(source.ok());
  EXPECT_TRUE(contains(source.error().message, "its scratch buffer 's' has a symbolic size"))
      << source.error().message;
}

TEST(CudaSpelling, NamesAreUniqueAndNoWordsOfTheLanguage) {
  cuda::Names names;
  EXPECT_EQ(names.make("x"), "x");
  EXPECT_EQ(names.make("x"), "x_2");
  EXPECT_EQ(names.make("float"), "float_2");
  EXPECT_EQ(names.make("3d.out"), "v3d_out");
}

TEST(CudaSpelling, LiteralsKeepTheirValueAndType) {
  EXPECT_EQ(cuda::literal(1.0, DType::f32), "1.0f");
  EXPECT_EQ(cuda::literal(0.1, DType::f64), "0.1");
  EXPECT_EQ(cuda::literal(int64_t{1} << 40, DType::i64, true), "1099511627776LL");
  EXPECT_EQ(cuda::literal(INT64_MIN, DType::i64, true), "(-9223372036854775807LL - 1)");
  EXPECT_TRUE(contains(cuda::literal(1e300, DType::f32), "0x7f800000"));
}

}  // namespace
}  // namespace lathe
