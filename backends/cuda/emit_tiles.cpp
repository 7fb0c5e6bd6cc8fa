// Matrix tiles: those of an mma that the machine has, held by a warp.
#include <fmt/format.h>

#include "backends/cuda/kernel_emitter.h"

namespace lathe::cuda {
namespace {

constexpr int64_t kLineBytes = 16;  // from which ldmatrix reads a line

}  // namespace

std::string KernelEmitter::tile_type(const loop::RegInfo& info) {
  switch (info.role) {
    case loop::TileRole::left:
      return fmt::format("LeftTile<{}>", type_name(info.dtype));
    case loop::TileRole::right:
      return fmt::format("RightTile<{}, {}>", type_name(info.dtype), info.tile.n);
    default:
      return fmt::format("SumTile<{}>", info.tile.n);
  }
}

std::string KernelEmitter::tile_name(const loop::TileRef& tile) {
  return regs_[tile.array.id] + index_list(tile.indices);
}

void KernelEmitter::prepare_tile(const loop::TileRef& tile, Expr index) {
  std::vector<Expr> roots = tile.indices;
  if (index) roots.push_back(index);
  count_uses(roots);
  define_scalars(roots);
}

void KernelEmitter::emit_load_tile(const loop::LoadTile& load) {
  prepare_tile(load.tile, load.index);
  const loop::RegInfo& info = kernel_.regs[load.tile.array.id];
  const int64_t elements = kLineBytes / dtype_bytes(info.dtype);
  const bool has_lines = kernel_.buffers[load.buffer.id].space == loop::Space::shared &&
                         alignment(load.index) % elements == 0 && load.stride % elements == 0;
  const std::string from = element_address(load.buffer, load.index);
  if (has_lines && info.role != loop::TileRole::sum)
    return line(fmt::format("{}.{}({}, {});", tile_name(load.tile),
                            load.is_transposed ? "load_columns" : "load_rows", from, load.stride));
  line(fmt::format("{}.load({}, {}, {});", tile_name(load.tile), from,
                   load.is_transposed ? 1 : load.stride, load.is_transposed ? load.stride : 1));
}

void KernelEmitter::emit_store_tile(const loop::StoreTile& store) {
  prepare_tile(store.tile, store.index);
  const bool is_shared = is_synchronised(store.buffer);
  if (is_shared) sync();
  line(fmt::format("{}.store({}, {});", tile_name(store.tile),
                   element_address(store.buffer, store.index), store.stride));
  if (is_shared) sync();
}

void KernelEmitter::emit_mma(const loop::Mma& mma) {
  std::vector<Expr> roots;
  for (const loop::TileRef* tile : {&mma.sum, &mma.left, &mma.right})
    roots.insert(roots.end(), tile->indices.begin(), tile->indices.end());
  count_uses(roots);
  define_scalars(roots);
  line(fmt::format("mma({}, {}, {});", tile_name(mma.sum), tile_name(mma.left),
                   tile_name(mma.right)));
}

}  // namespace lathe::cuda
