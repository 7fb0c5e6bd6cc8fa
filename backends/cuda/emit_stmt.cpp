// Statements.
#include <fmt/format.h>

#include "backends/cuda/kernel_emitter.h"
#include "ir/loop/linear.h"

namespace lathe::cuda {
namespace {

constexpr int64_t kUnrolledTrips = 8;  // loops of so few trips become straight code

// How often the loop runs, when that is a constant.
std::optional<int64_t> num_trips(const loop::For& loop) {
  loop::Linear length = loop::linear(loop.hi - loop.lo);
  if (!length.terms.empty()) return std::nullopt;
  return length.constant <= 0 ? 0 : (length.constant + loop.step - 1) / loop.step;
}

}  // namespace

void KernelEmitter::line(const std::string& text) {
  out_.append(static_cast<size_t>(2 * depth_), ' ');
  out_ += text;
  out_ += '\n';
}

void KernelEmitter::emit_block(const loop::Block& block) {
  for (const loop::Stmt& stmt : block) {
    if (error_) return;
    uses_.clear();
    texts_.clear();
    emit_stmt(stmt);
  }
}

void KernelEmitter::emit_stmt(const loop::Stmt& stmt) {
  if (auto* loop = std::get_if<loop::For>(&stmt.kind)) return emit_for(*loop);
  if (auto* branch = std::get_if<loop::If>(&stmt.kind)) return emit_if(*branch);
  if (auto* let = std::get_if<loop::Let>(&stmt.kind)) return emit_let(*let);
  if (auto* regs = std::get_if<loop::DeclareRegs>(&stmt.kind)) return emit_regs(regs->array);
  if (auto* set = std::get_if<loop::SetReg>(&stmt.kind)) return emit_set(*set);
  if (auto* store = std::get_if<loop::Store>(&stmt.kind)) return emit_store(*store);
  if (std::holds_alternative<loop::Barrier>(stmt.kind)) return line("__syncthreads();");
  if (auto* load = std::get_if<loop::LoadTile>(&stmt.kind)) return emit_load_tile(*load);
  if (auto* tile = std::get_if<loop::StoreTile>(&stmt.kind)) return emit_store_tile(*tile);
  if (auto* mma = std::get_if<loop::Mma>(&stmt.kind)) return emit_mma(*mma);
  // Prefetches stay out: the hardware has enough threads to wait with.
}

void KernelEmitter::emit_for(const loop::For& loop) {
  if (loop.kind == loop::LoopKind::thread) {
    std::string& own = vars_[loop.var.id];
    own = names_.make(kernel_.vars[loop.var.id].name);
    line(fmt::format("const int {} = threadIdx.y;", own));
    return emit_block(loop.body);
  }
  const std::optional<int64_t> trips = num_trips(loop);
  if (trips == 0) return;
  count_uses({loop.lo, loop.hi});
  define_scalars({loop.lo, loop.hi});
  const loop::VarInfo& info = kernel_.vars[loop.var.id];
  bool is_long = info.min < INT32_MIN || info.max > INT32_MAX - loop.step;
  std::string& name = vars_[loop.var.id];
  name = names_.make(info.name);
  // A loop of one trip keeps its braces and its variable, so that the text stays the kernel's.
  if (loop.kind == loop::LoopKind::unroll || (trips && *trips <= kUnrolledTrips))
    line("#pragma unroll");
  std::string step =
      loop.step == 1 ? fmt::format("++{}", name) : fmt::format("{} += {}", name, loop.step);
  line(fmt::format("for ({0} {1} = {2}; {1} < {3}; {4}) {{", is_long ? "i64" : "int", name,
                   code(loop.lo), code(loop.hi, 11), step));
  ++depth_;
  emit_block(loop.body);
  --depth_;
  line("}");
}

void KernelEmitter::emit_if(const loop::If& branch) {
  count_uses({branch.condition});
  define_scalars({branch.condition});
  line(fmt::format("if ({}) {{", code(branch.condition)));
  ++depth_;
  emit_block(branch.then_body);
  --depth_;
  if (!branch.else_body.empty()) {
    line("} else {");
    ++depth_;
    emit_block(branch.else_body);
    --depth_;
  }
  line("}");
}

void KernelEmitter::emit_let(const loop::Let& let) {
  count_uses({let.value});
  define_scalars({let.value});
  std::string& name = vars_[let.var.id];
  name = names_.make(kernel_.vars[let.var.id].name);
  if (let.value->lanes == 1) {
    line(fmt::format("const {} {} = {};", ctype(let.value), name, code(let.value)));
    return;
  }
  std::string extent = shape_.lanes_a_thread > 1 ? fmt::format("[{}]", shape_.lanes_a_thread) : "";
  line(fmt::format("{} {}{};", ctype(let.value), name, extent));
  for_each_lane({let.value},
                [&] { line(fmt::format("{} = {};", at_lane(name), code(let.value))); });
}

void KernelEmitter::emit_regs(loop::RegArray array) {
  const loop::RegInfo& info = kernel_.regs[array.id];
  std::string& name = regs_[array.id];
  name = names_.make(info.name);
  std::string extents;
  for (int64_t extent : info.shape) extents += fmt::format("[{}]", extent);
  if (info.role != loop::TileRole::none)
    return line(fmt::format("{} {}{};", tile_type(info), name, extents));
  if (info.lanes > 1 && shape_.lanes_a_thread > 1)
    extents += fmt::format("[{}]", shape_.lanes_a_thread);
  line(fmt::format("{} {}{};", variable_type(info.dtype, true), name, extents));
}

std::string KernelEmitter::index_list(const std::vector<Expr>& indices) {
  std::string text;
  for (Expr index : indices) text += fmt::format("[{}]", code(index));
  return text;
}

void KernelEmitter::emit_set(const loop::SetReg& set) {
  std::vector<Expr> roots = {set.value};
  roots.insert(roots.end(), set.indices.begin(), set.indices.end());
  count_uses(roots);
  define_scalars(roots);
  std::string place = regs_[set.array.id] + index_list(set.indices);
  if (const loop::RegInfo& info = kernel_.regs[set.array.id]; info.role != loop::TileRole::none)
    return line(fmt::format("{}.fill({}({}));", place, type_name(info.dtype), code(set.value)));
  if (kernel_.regs[set.array.id].lanes == 1) {
    line(fmt::format("{} = {};", place, code(set.value)));
    return;
  }
  for_each_lane({set.value},
                [&] { line(fmt::format("{} = {};", at_lane(place), code(set.value))); });
}

}  // namespace lathe::cuda
