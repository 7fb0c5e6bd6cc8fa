// Products and convolutions of halves by generated code, where threads share vectors: matrix tiles
// of an instruction, for what no library takes, and for who asks.
#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "ir/templates/matrix_tiles.h"
#include "passes/lowering/contraction.h"
#include "passes/lowering/convolution_price.h"
#include "passes/lowering/copy_price.h"
#include "passes/lowering/epilogue.h"
#include "passes/lowering/kernel_context.h"
#include "passes/lowering/kernel_def.h"
#include "passes/lowering/lowering.h"

namespace lathe {
namespace {

using loop::Expr;
using Index = std::span<const Expr>;

// Filters that change with no call, with those of a group side by side.
Result<BufferId> pack_columns(Lowering& lowering, Node& node, const ContractionOperands& operands,
                              DType dtype) {
  const ContractionSpec& spec = operands.spec;
  TensorType type{dtype, spec.batch};
  type.shape.insert(type.shape.end(), spec.k.begin(), spec.k.end());
  type.shape.push_back(spec.n);
  const BufferId packed =
      lowering.add_temporary(node, "_packed", type, type.num_elements(), Phase::init);
  KernelContext kernel(lowering, node, Phase::init);
  LATHE_DO(lowering.emit_elements(kernel, packed, {"pack", &node, 0}, [&](Index index) {
    return operands.column(kernel, index.first(spec.batch.size()),
                           index.subspan(spec.batch.size(), spec.k.size()), index.back());
  }));
  return packed;
}

// `has_packed`: columns are packed first.
Status emit_product(Lowering& lowering, Node& node, const ContractionOperands& operands,
                    const MatrixTile& tile, bool has_packed, BufferId out, const LaunchInfo& info,
                    Phase phase) {
  KernelContext kernel(lowering, node, phase);
  Epilogue epilogue(kernel, node, out, lowering.buffer(out).type);
  MatrixTileSpec spec{.batch = numbers(operands.spec.batch),
                      .m = numbers(operands.spec.m),
                      .n = operands.spec.n.value(),
                      .k = numbers(operands.spec.k),
                      .dtype = tile.dtype};
  spec.left = [&](Index batch, Index m, Index k) {
    const std::vector<Expr> index = operands.row_index(batch, m, k);
    return operands.rows_buffer < 0 ? kernel.element_within(operands.rows, index)
                                    : kernel.load(operands.rows_buffer, index);
  };
  spec.right = [&](Index batch, Index k, Expr n) { return operands.column(kernel, batch, k, n); };
  if (has_packed) {
    LATHE_TRY(const BufferId packed, pack_columns(lowering, node, operands, tile.dtype));
    spec.right = [&kernel, packed](Index batch, Index k, Expr n) {
      std::vector<Expr> index(batch.begin(), batch.end());
      index.insert(index.end(), k.begin(), k.end());
      index.push_back(n);
      return kernel.load(packed, index);
    };
  }
  spec.epilogue = [&](Index batch, Index m, Expr n, Expr sum) {
    const std::vector<Expr> index = operands.result_index(batch, m, n);
    if (operands.bias) sum = sum + kernel.element(operands.bias, std::vector<Expr>{index[1]});
    return epilogue.apply(index, sum);
  };
  build_matrix_tiles(kernel.kernel(), spec, tile, lowering.target());
  if (kernel.error()) return *kernel.error();
  return lowering.emit_kernel(kernel.kernel(), kernel.buffers(), info, phase);
}

Result<Verdict> emit_matrix_tiles(Lowering& lowering, Node& node, std::span<const Destination> outs,
                                  Phase phase) {
  const Node& root = *root_of(node);
  const DType dtype = root.types[0].dtype;
  const std::optional<MatrixTile> tile = matrix_tile(dtype, lowering.target());
  if (!tile)
    return Verdict{
        fmt::format("{} has no matrix tiles of {}", lowering.target().isa, dtype_name(dtype))};
  const KernelContext context(lowering, node, phase);
  LATHE_TRY(const std::vector<ContractionOperands> products,
            contraction_operands(lowering, root, context, phase));
  if (products.empty())
    return Verdict{fmt::format("it is not one product, nor up to {} of them", kMostProducts)};
  for (const ContractionOperands& operands : products) {
    if (std::count(operands.spec.k.begin(), operands.spec.k.end(), Dim(0)) > 0)
      return Verdict{"its sums are of nothing"};
    if (const int64_t columns = operands.spec.n.value(); 2 * columns < tile->n)
      return Verdict{
          fmt::format("its {} columns leave most of a tile of {} empty", columns, tile->n)};
  }
  const bool is_convolution = root.op->name == "convolution";
  const bool has_packed = is_convolution && lowering.is_constant(context.resolve(root.operands[1]));
  LaunchInfo info = describe(node);
  info.flops = Dim::floor_div(info.flops, static_cast<int64_t>(products.size()));
  for (ContractionOperands operands : products) {
    operands.spec.dtype = compute_dtype(dtype);
    LATHE_DO(emit_product(lowering, node, operands, *tile, has_packed, outs.front().buffer, info,
                          phase));
  }
  // A library is sooner done with what has no groups, or short windows.
  if (!is_convolution || root.int_attr("groups", 1) <= 1 || products.size() > 1) return Verdict{};
  const ConvolutionWork work = convolution_work(root, lowering);
  if (work.longest <= kShortWindow) return Verdict{};
  double seconds = tiled_seconds(work, static_cast<double>(tile->n));
  const TensorType& images = root.operands[0].type();
  if (products.front().rows_buffer >= 0)
    seconds += copy_seconds(
        2.0 * static_cast<double>(*images.static_elements() * dtype_bytes(images.dtype)));
  return Verdict{.seconds = seconds};
}

}  // namespace

KernelDef kernel_matrix_tiles() {
  return {
      .name = "matrix_tiles",
      .summary = "tiles in shared memory and matrix instructions: products of halves on a GPU",
      .roots = {"convolution", "matmul"},
      .members = Members::epilogue,
      .needs = Needs::threads,
      .emit = emit_matrix_tiles,
      .example = R"(
func @main(%x: bf16[70, 41], %w: bf16[41, 48]) -> bf16[70, 48] {
  %0 = matmul(%x, %w)
  return %0
}
)",
      .isa = "sm_90",
  };
}

}  // namespace lathe
