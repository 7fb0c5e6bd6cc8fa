// Writes: see writes.h.
#include "passes/lowering/writes.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "ir/op/position.h"
#include "ir/op/reduction.h"

namespace lathe {
namespace {

using loop::Block;
using loop::Expr;
using loop::Var;
using Index = Writes::Index;

// self[i, index[i, j], k] = src[i, j, k]: every line along dim by itself.
Writes scatter_writes(KernelContext& kernel, const Node& root) {
  const Shape& shape = root.types[0].shape;
  const auto dim = static_cast<size_t>(known_dim(root, root.types[0].rank()));
  const Shape index_shape = root.operands[1].type().shape;
  const auto at = [dim](Index serial, Index free) {
    std::vector<Expr> index(free.begin(), free.end());
    index.insert(index.begin() + static_cast<ptrdiff_t>(dim), serial[0]);
    return index;
  };
  Writes writes;
  writes.serial = {index_shape[dim]};
  writes.serial_at = dim;
  writes.free = index_shape;
  writes.free.erase(writes.free.begin() + static_cast<ptrdiff_t>(dim));
  writes.has_rows = dim + 1 < index_shape.size();
  writes.has_lines =
      !writes.has_rows && std::equal(shape.begin(), shape.end() - 1, index_shape.begin());
  writes.place = [&kernel, &root, shape, at, dim](Index serial, Index free) {
    std::vector<Expr> index = at(serial, free);
    const Expr chosen = kernel.element(root.operands[1], index);
    index[dim] = wrapped_position(kernel, chosen, shape[dim]);
    return index;
  };
  writes.value = [&kernel, &root, at](Index serial, Index free) {
    const Value src = root.operands[2];
    return kernel.element(src, src.type().rank() == 0 ? std::vector<Expr>{} : at(serial, free));
  };
  return writes;
}

// self[a[i], b[i], k] = values[i, k].
Writes index_put_writes(KernelContext& kernel, const Node& root) {
  const Shape& shape = root.types[0].shape;
  const size_t chosen = static_cast<size_t>(root.list_sizes[0]);
  Writes writes;
  for (size_t d = 0; d < chosen; ++d) {
    const Shape own = root.operands[1 + d].type().shape;
    if (own.size() > writes.serial.size())
      writes.serial.insert(writes.serial.begin(), own.size() - writes.serial.size(), 1);
    for (size_t i = 0; i < own.size(); ++i) {
      Dim& extent = writes.serial[writes.serial.size() - own.size() + i];
      if (own[i] != Dim(1)) extent = own[i];
    }
  }
  writes.free.assign(shape.begin() + static_cast<ptrdiff_t>(chosen), shape.end());
  writes.has_rows = writes.has_lanes = !writes.free.empty();
  writes.place = [&kernel, &root, shape, chosen](Index serial, Index free) {
    std::vector<Expr> index;
    for (size_t d = 0; d < chosen; ++d) {
      const Expr own = kernel.broadcast_operand(root, static_cast<int>(1 + d), serial);
      index.push_back(wrapped_position(kernel, own, shape[d]));
    }
    index.insert(index.end(), free.begin(), free.end());
    return index;
  };
  writes.value = [&kernel, &root](Index serial, Index free) {
    std::vector<Expr> index(serial.begin(), serial.end());
    index.insert(index.end(), free.begin(), free.end());
    return kernel.broadcast_operand(root, static_cast<int>(root.operands.size()) - 1, index);
  };
  return writes;
}

}  // namespace

bool Writes::is_empty() const {
  return std::count(serial.begin(), serial.end(), Dim(0)) +
             std::count(free.begin(), free.end(), Dim(0)) >
         0;
}

Writes writes_of(KernelContext& kernel, const Node& root) {
  return root.op->name == "index_put" ? index_put_writes(kernel, root)
                                      : scatter_writes(kernel, root);
}

WritePlace place_of(KernelContext& kernel, Block& block, const Writes& writes, const Shape& shape,
                    Index serial, Index free) {
  loop::Pool& pool = kernel.pool();
  WritePlace place{writes.place(serial, free), {}};
  for (size_t d = 0; d < place.index.size(); ++d) {
    Expr& own = place.index[d];
    if (std::find(free.begin(), free.end(), own) != free.end()) continue;
    const Var at =
        kernel.kernel().add_var({"at", loop::VarKind::let, DType::i64, 1, INT64_MIN, INT64_MAX});
    block.push_back({loop::Let{at, own}});
    own = pool.var(at);
    const Expr side = loop::binary(loop::BinaryOp::bit_or, own, pool.size(shape[d] - 1) - own);
    place.beyond = place.beyond ? loop::binary(loop::BinaryOp::bit_or, place.beyond, side) : side;
  }
  return place;
}

void append_inside(KernelContext& kernel, Block& block, const WritePlace& place, Block inside) {
  const Expr least = kernel.pool().integer(0);
  if (place.beyond) {
    block.push_back({loop::If{loop::le(least, place.beyond), std::move(inside), {}}});
  } else {
    std::move(inside.begin(), inside.end(), std::back_inserter(block));
  }
}

}  // namespace lathe
