// Contractions as launches of a target's library, where strides can say what they read and write.
//
// The library takes the operands where they lie: through views, transposed, with batch dims of
// stride 0. What strides cannot say is copied first. The first ops of an epilogue that the library
// knows (a bias, a residual, relu, tanh-gelu) go with it; a loop does the others.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "passes/lowering/kernel_context.h"
#include "passes/lowering/lowering.h"

namespace lathe {

// Where the elements of an expression lie: base + sum of stride * variable, in elements.
struct Strided {
  BufferId buffer = -1;
  Dim offset = 0;
  Shape strides;  // by variable, in the order they were asked for
};

// Whether a library may take the op along with the product that it follows, for nothing.
bool may_end_product(const Node& node);

// At every size: symbols are at least 1, since what has no elements is not made.
bool is_at_least(const Lowering& lowering, const Dim& size, const Dim& least);
// Whether a sum over `depth` has terms wherever the result, of that shape, has elements. Only such
// sums are a library's.
bool has_terms(const Lowering& lowering, const Dim& depth, const Shape& result);

// The expression as one load whose index is linear in `vars`; of no other dtype than `dtype`.
std::optional<Strided> as_strided(const KernelContext& kernel, loop::Expr element, DType dtype,
                                  const std::vector<loop::Expr>& vars);

// The value's elements at `index` as a matrix over the last two of `vars`, of extents `rows` and
// `columns`: in place when strides can say where they lie, otherwise in a copy, which later reads
// through the kernel take too.
Result<std::optional<Strided>> place_operand(Lowering& lowering, KernelContext& kernel, Value value,
                                             const std::vector<loop::Expr>& index,
                                             const std::vector<loop::Expr>& vars, const Dim& rows,
                                             const Dim& columns);
// The value in a temporary of that type, whose extents are its own or larger numbers: zeros fill
// it up. `reader` is what it is made for.
Result<BufferId> copy_filled_up(Lowering& lowering, Node& reader, Value value,
                                const TensorType& type, const std::string& label, Phase phase);
// Later reads of the value through the kernel take a row-major copy.
Status copy_operand(Lowering& lowering, KernelContext& kernel, Value value);
// The same of a result, whose rows must lie side by side; none when they do not.
std::optional<Strided> place_result(const Lowering& lowering, KernelContext& kernel,
                                    BufferId buffer, const TensorType& type,
                                    const std::vector<loop::Expr>& index,
                                    const std::vector<loop::Expr>& vars, const Dim& rows,
                                    const Dim& columns);

// What a library does after the sum.
struct LibraryEpilogue {
  std::optional<Strided> bias, residual;
  Activation activation = Activation::none;  // behind both
  bool is_nothing() const { return !bias && !residual && activation == Activation::none; }
};

// The sums of a region's root: where they are, and what the library does with them in any case.
struct LibrarySums {
  std::vector<loop::Expr> index;  // of one of them
  std::vector<loop::Expr> vars;   // what strides are over, the row and the column last
  Dim rows = 1, columns = 1;
  // Of images, the extents of all vars but the last: pixels then follow each other at one distance,
  // in the order of vars. A library writes past others, and says nothing. None: rows alone do.
  Shape pixels = {};
  Layout layout = {};  // of a buffer for them
  std::optional<Strided> bias = {}, residual = {};
  std::span<const Activation> activations = {};  // those that the library knows
  bool is_bare = false;                          // nothing of the epilogue goes with them
  // Of a row of the buffer, where the library wants rows to start at even addresses: the result is
  // then copied from there, but where it lies evenly by itself. 0: as many as there are.
  int64_t padded_columns = 0;
  // The buffer is for one of so many equal parts of the divided dim, which follow each other
  // through it.
  int64_t parts = 1;
};

// The outermost dim that is not 1, but for the last: parts of it lie side by side.
size_t divided_dim(const Shape& shape);

// What a library makes of a region, and where it writes that.
struct LibraryResult {
  LibraryEpilogue epilogue;
  Strided place;
  const Node* last = nullptr;  // the member that gives it
};

// All of the region, to `out`, when the library knows all members and strides can say where their
// result lies; otherwise the first members, as many as they can say it of, to a temporary. None
// when they cannot say it of the sums.
Result<std::optional<LibraryResult>> place_sums(Lowering& lowering, KernelContext& kernel,
                                                const Node& region, const LibrarySums& sums,
                                                BufferId out);

// What is left of a region when the value of `done` lies in `made`: a loop to `out`, or nothing
// when that is where it lies.
// Part `part` of a result without an epilogue, out of the buffer that the parts go through.
Status emit_part(Lowering& lowering, const Node& node, BufferId made, BufferId out, int64_t part,
                 Phase phase);
Status emit_rest(Lowering& lowering, const Node& region, const Node& done, BufferId made,
                 BufferId out, Phase phase);

}  // namespace lathe
