// The function around a kernel: how it is launched, its signature, what is known of its accesses.
#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/kernel_emitter.h"
#include "ir/loop/lift_sizes.h"
#include "ir/loop/text.h"
#include "ir/loop/threads.h"
#include "ir/support/diag_codes.h"

namespace lathe::cuda {
namespace {

Diag unsupported(const loop::Kernel& kernel, const std::string& message) {
  return Diag{.code = code::kUnsupported,
              .loc = kernel.origins.empty() ? Loc::unknown() : kernel.origins.front(),
              .message = fmt::format("the cuda target cannot compile kernel '{}': {}", kernel.name,
                                     message)};
}

// The lanes of a kernel's vectors, all of one number; 1 without vectors.
struct VectorLanes {
  int lanes = 1;
  bool is_uniform = true;
  void visit(Expr root) {
    if (!root) return;
    loop::for_each(root, [&](Expr e) { add(e->lanes); });
  }
  void add(int other) {
    if (other == 1 || other == lanes) return;
    is_uniform = is_uniform && lanes == 1;
    lanes = std::max(lanes, other);
  }
  void visit(const loop::Block& block) {
    for (const loop::Stmt& stmt : block) {
      if (auto* loop = std::get_if<loop::For>(&stmt.kind)) visit(loop->body);
      if (auto* branch = std::get_if<loop::If>(&stmt.kind)) {
        visit(branch->then_body);
        visit(branch->else_body);
      }
      if (auto* let = std::get_if<loop::Let>(&stmt.kind)) visit(let->value);
      if (auto* set = std::get_if<loop::SetReg>(&stmt.kind)) visit(set->value);
      if (auto* store = std::get_if<loop::Store>(&stmt.kind)) {
        visit(store->value);
        visit(store->index);
        visit(store->mask);
      }
    }
  }
};

bool makes_only_halves(const loop::Kernel& kernel) {
  return std::all_of(kernel.buffers.begin(), kernel.buffers.end(), [](const loop::Buffer& buffer) {
    return !buffer.is_written || buffer.space != loop::Space::global || is_half(buffer.dtype);
  });
}

// The position among the dims of the one that the expression is; -1: it is none.
int dim_position(const loop::Kernel& kernel, Expr e) {
  const auto* read = std::get_if<loop::VarRead>(&e->kind);
  if (!read) return -1;
  const std::vector<loop::Var> dims = loop::dims(kernel);
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i].id == read->var.id) return static_cast<int>(i);
  return -1;
}

// Shared memory is reserved by the text, which has to know how much.
Status check_scratch(const loop::Kernel& kernel) {
  for (const loop::Buffer& buffer : kernel.buffers)
    if (buffer.space != loop::Space::global && !buffer.size.is_const())
      return unsupported(kernel,
                         fmt::format("its scratch buffer '{}' has a symbolic size", buffer.name));
  return Ok{};
}

loop::Kernel with_small_dims(loop::Kernel kernel) {
  for (loop::Var dim : loop::dims(kernel)) {
    loop::VarInfo& info = kernel.vars[dim.id];
    info.min = std::clamp<int64_t>(info.min, -kMostSmallSize, kMostSmallSize);
    info.max = std::clamp<int64_t>(info.max, -kMostSmallSize, kMostSmallSize);
  }
  return kernel;
}

int64_t shared_bytes(const loop::Kernel& kernel) {
  int64_t bytes = 0;
  for (const loop::Buffer& buffer : kernel.buffers)
    if (buffer.space != loop::Space::global)
      bytes += buffer.size.value() * dtype_bytes(buffer.dtype) + 16;
  return bytes;
}

bool is_power_of_two(int64_t x) { return x > 0 && (x & (x - 1)) == 0; }

bool has_tile(const ThreadGroups& machine, const loop::RegInfo& info) {
  return std::any_of(machine.tiles.begin(), machine.tiles.end(), [&](const MatrixTile& tile) {
    return tile.m == info.tile.m && tile.n == info.tile.n && tile.k == info.tile.k &&
           (info.role == loop::TileRole::sum || tile.dtype == info.dtype);
  });
}

// How many threads share a vector, and how many rows of them a group has.
Status choose_threads(const loop::Kernel& kernel, const Target& target, LaunchShape& shape) {
  const ThreadGroups& machine = *target.groups;
  int64_t narrowest = 8;
  for (const loop::Buffer& buffer : kernel.buffers)
    if (buffer.space == loop::Space::global)
      narrowest = std::min(narrowest, dtype_bytes(buffer.dtype));
  shape.lanes_a_thread = std::min(shape.lanes, target.lanes_per_thread(narrowest));
  if (loop::has_tiles(kernel)) {
    for (const loop::RegInfo& info : kernel.regs)
      if (info.role != loop::TileRole::none && !has_tile(machine, info))
        return unsupported(
            kernel, fmt::format("{} has no tiles of {} for a product {} x {} x {}", target.isa,
                                dtype_name(info.dtype), info.tile.m, info.tile.n, info.tile.k));
    if (shape.lanes > 1 && shape.lanes < machine.warp)
      return unsupported(kernel, fmt::format("vectors of {} lanes beside matrix tiles leave part "
                                             "of a warp without any",
                                             shape.lanes));
    shape.lanes_a_thread = std::max(1, shape.lanes / machine.warp);
    shape.threads = machine.warp;
  } else {
    shape.threads = shape.lanes / shape.lanes_a_thread;
  }
  if (const loop::For* threads = loop::thread_loop(kernel)) {
    shape.members = static_cast<int>(loop::as_int(threads->hi)->value);
    if (shape.threads > machine.warp)
      return unsupported(kernel, fmt::format("a vector of {} lanes is wider than a warp, of which "
                                             "its group has {}",
                                             shape.lanes, shape.members));
  }
  if (shape.threads * shape.members > machine.limit)
    return unsupported(kernel, shape.members > 1
                                   ? fmt::format("its group has {} threads, expected at most {}",
                                                 shape.threads * shape.members, machine.limit)
                                   : fmt::format("a vector of {} lanes needs more than {} threads",
                                                 shape.lanes, machine.limit));
  return Ok{};
}

}  // namespace

Result<LaunchShape> launch_shape(const loop::Kernel& kernel, const Target& target) {
  const loop::For* loop =
      kernel.body.size() == 1 ? std::get_if<loop::For>(&kernel.body.front().kind) : nullptr;
  if (!loop || loop->kind != loop::LoopKind::parallel)
    return unsupported(kernel, "its body is not one parallel loop");
  const loop::IntConst* lo = loop::as_int(loop->lo);
  const loop::IntConst* hi = loop::as_int(loop->hi);
  const int hi_dim = dim_position(kernel, loop->hi);
  if (!lo || (!hi && hi_dim < 0) || loop->step < 1)
    return unsupported(kernel, "the bounds of its parallel loop are neither numbers nor sizes");
  LATHE_DO(check_scratch(kernel));
  VectorLanes vectors;
  for (const loop::RegInfo& reg : kernel.regs) vectors.add(reg.lanes);
  vectors.visit(kernel.body);
  LaunchShape shape;
  shape.lo = lo->value;
  shape.step = loop->step;
  shape.hi_dim = hi_dim;
  shape.tasks = shape.tasks_before(
      hi ? hi->value : kernel.vars[std::get<loop::VarRead>(loop->hi->kind).var.id].max);
  shape.lanes = vectors.lanes;
  if (!vectors.is_uniform || !is_power_of_two(shape.lanes))
    return unsupported(kernel, "its vectors have lanes of different numbers");
  LATHE_DO(choose_threads(kernel, target, shape));
  const ThreadGroups& machine = *target.groups;
  if (shape.threads <= machine.warp && !loop::thread_loop(kernel)) {
    shape.groups = machine.block / shape.threads;
    while (shape.groups > 1 && (shape.groups / 2 >= shape.tasks ||
                                shape.groups * shared_bytes(kernel) > machine.shared_bytes))
      shape.groups /= 2;
  }
  if (shape.groups * shared_bytes(kernel) > machine.shared_bytes)
    return unsupported(kernel, fmt::format("its scratch memory is {} bytes, expected at most {}",
                                           shared_bytes(kernel), machine.shared_bytes));
  if (hi && shape.blocks() > machine.most_blocks)
    return unsupported(kernel, fmt::format("it has {} blocks, expected at most {}", shape.blocks(),
                                           machine.most_blocks));
  return shape;
}

Result<std::string> emit_kernel(const loop::Kernel& kernel, const std::string& symbol,
                                const Target& target, const EmitOptions& options) {
  LATHE_TRY(LaunchShape shape, launch_shape(kernel, target));
  if (options.has_small_sizes && has_large_sizes(kernel))
    return KernelEmitter(with_small_dims(kernel), shape, options).run(symbol);
  return KernelEmitter(kernel, shape, options).run(symbol);
}

bool has_large_sizes(const loop::Kernel& kernel) {
  const std::vector<loop::Var> dims = loop::dims(kernel);
  return std::any_of(dims.begin(), dims.end(), [&](loop::Var dim) {
    const loop::VarInfo& info = kernel.vars[dim.id];
    return info.min < -kMostSmallSize || info.max > kMostSmallSize;
  });
}

KernelEmitter::KernelEmitter(const loop::Kernel& kernel, const LaunchShape& shape,
                             const EmitOptions& options)
    : kernel_(kernel),
      shape_(shape),
      options_(options),
      ranges_(kernel_),
      vars_(kernel.vars.size()),
      regs_(kernel.regs.size()),
      var_alignment_(kernel.vars.size(), 1),
      is_read_(kernel.buffers.size()),
      makes_halves_(makes_only_halves(kernel)) {}

Result<std::string> KernelEmitter::run(const std::string& symbol) {
  for (const loop::Buffer& buffer : kernel_.buffers) buffers_.push_back(names_.make(buffer.name));
  for (loop::Var dim : loop::dims(kernel_)) {
    vars_[dim.id] = names_.make(kernel_.vars[dim.id].name);
    var_alignment_[dim.id] = kernel_.vars[dim.id].multiple;
  }
  narrow(std::get<loop::For>(kernel_.body.front().kind));
  var_alignment_[std::get<loop::For>(kernel_.body.front().kind).var.id] =
      shape_.step & -shape_.step;
  scan(std::get<loop::For>(kernel_.body.front().kind).body);
  name_first_lane();
  pack_rows();
  // Where every access has an index for each lane, neighbouring threads take neighbouring lanes:
  // short runs in memory are then read together.
  is_blocked_ = is_blocked_ && has_contiguous_;
  const auto& loop = std::get<loop::For>(kernel_.body.front().kind);
  out_ = signature(symbol);
  depth_ = 1;
  emit_shared();
  vars_[loop.var.id] = names_.make(kernel_.vars[loop.var.id].name);
  std::string task = shape_.groups > 1 ? fmt::format("blockIdx.x * {} + threadIdx.y", shape_.groups)
                                       : "blockIdx.x";
  const int64_t most = kernel_.vars[loop.var.id].max;
  bool is_long = shape_.hi_dim < 0 ? shape_.lo + shape_.tasks * shape_.step > INT32_MAX
                                   : most >= kMostSmallSize;
  const char* type = is_long ? "i64" : "int";
  if (is_long) task = fmt::format("i64(blockIdx.x){}", task.substr(10));
  if (shape_.step != 1) task = fmt::format("({}) * {}", task, shape_.step);
  if (shape_.lo != 0) task = fmt::format("{} + {}", shape_.lo, task);
  line(fmt::format("const {} {} = {};", type, vars_[loop.var.id], task));
  if (shape_.hi_dim >= 0)
    line(fmt::format("if ({} >= {}) return;", vars_[loop.var.id], code(loop.hi)));
  else if (shape_.groups > 1 && shape_.tasks % shape_.groups != 0)
    line(fmt::format("if ({} >= {}) return;", vars_[loop.var.id],
                     shape_.lo + shape_.tasks * shape_.step));
  if (shape_.threads > 1) {
    line("const int thread = threadIdx.x;");
    bool is_wide = is_blocked_ && shape_.lanes_a_thread > 1;
    line(is_wide ? fmt::format("const int first = thread * {};", shape_.lanes_a_thread)
                 : "const int first = thread;");
  }
  emit_block(loop.body);
  out_ += "}\n";
  if (error_) return *std::move(error_);
  return std::move(out_);
}

std::string KernelEmitter::signature(const std::string& symbol) {
  std::string params;
  for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
    const loop::Buffer& buffer = kernel_.buffers[i];
    if (buffer.space != loop::Space::global) continue;
    params += fmt::format("{}\n    {}{}*{} {}", params.empty() ? "" : ",",
                          buffer.is_written ? "" : "const ", type_name(buffer.dtype),
                          options_.is_noalias ? " __restrict__" : "", buffers_[i]);
  }
  for (loop::Var dim : loop::dims(kernel_)) {
    const loop::VarInfo& info = kernel_.vars[dim.id];
    const bool is_wide = info.min < INT32_MIN || info.max > INT32_MAX;
    params += fmt::format("{}\n    {} {}", params.empty() ? "" : ",",
                          variable_type(DType::i64, is_wide), vars_[dim.id]);
  }
  return fmt::format("extern \"C\" __global__ void __launch_bounds__({})\n{}({}) {{\n",
                     shape_.threads * shape_.rows(), symbol, params);
}

void KernelEmitter::emit_shared() {
  for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
    const loop::Buffer& buffer = kernel_.buffers[i];
    if (buffer.space == loop::Space::global) continue;
    int64_t size = std::max<int64_t>(buffer.size.value(), 1);
    if (shape_.groups == 1) {
      line(fmt::format("__shared__ alignas(16) {} {}[{}];", type_name(buffer.dtype), buffers_[i],
                       size));
      continue;
    }
    int64_t per_16 = 16 / dtype_bytes(buffer.dtype);
    size = (size + per_16 - 1) / per_16 * per_16;
    line(
        fmt::format("__shared__ alignas(16) {0} {1}_of_group[{2}][{3}];\n  {0}* {1} = "
                    "{1}_of_group[threadIdx.y];",
                    type_name(buffer.dtype), buffers_[i], shape_.groups, size));
  }
}

// ---- what is known before the first line --------------------------------------------------------

void KernelEmitter::scan(const loop::Block& block) {
  for (const loop::Stmt& stmt : block) {
    if (auto* loop = std::get_if<loop::For>(&stmt.kind)) {
      narrow(*loop);
      int64_t start = alignment(loop->lo);
      var_alignment_[loop->var.id] = std::min(start, loop->step & -loop->step);
      scan_accesses(loop->lo);
      scan_accesses(loop->hi);
      scan(loop->body);
    } else if (auto* branch = std::get_if<loop::If>(&stmt.kind)) {
      scan_accesses(branch->condition);
      scan(branch->then_body);
      scan(branch->else_body);
    } else if (auto* let = std::get_if<loop::Let>(&stmt.kind)) {
      scan_accesses(let->value);
      if (let->value->dtype != DType::i64) continue;
      loop::VarInfo& info = kernel_.vars[let->var.id];
      const loop::Interval range = ranges_.of(let->value);
      info.min = range.min;
      info.max = range.max;
      info.kind = loop::VarKind::loop;  // its range may be relied upon
      if (let->value->lanes == 1) var_alignment_[let->var.id] = alignment(let->value);
    } else if (auto* set = std::get_if<loop::SetReg>(&stmt.kind)) {
      scan_accesses(set->value);
    } else if (auto* store = std::get_if<loop::Store>(&stmt.kind)) {
      scan_accesses(store->index);
      scan_accesses(store->value);
      if (store->mask) scan_accesses(store->mask);
      int lanes = std::max(store->value->lanes, store->mask ? store->mask->lanes : 1);
      note_access(store->index, lanes);
    } else if (auto* load = std::get_if<loop::LoadTile>(&stmt.kind)) {
      scan_accesses(load->index);
      is_read_[load->buffer.id] = true;
    } else if (auto* tile = std::get_if<loop::StoreTile>(&stmt.kind)) {
      scan_accesses(tile->index);
    }
  }
}

// A loop that ends at a size goes no further, whatever the ranges of symbols said.
void KernelEmitter::narrow(const loop::For& loop) {
  if (loop::dims(kernel_).empty()) return;
  loop::VarInfo& info = kernel_.vars[loop.var.id];
  info.max = std::min(info.max, std::max(info.min, ranges_.of(loop.hi).max - 1));
}

void KernelEmitter::scan_accesses(Expr root) {
  loop::for_each(root, [&](Expr e) {
    auto* load = std::get_if<loop::Load>(&e->kind);
    if (!load) return;
    is_read_[load->buffer.id] = true;
    note_access(load->index, e->lanes);
  });
}

void KernelEmitter::note_access(Expr index, int lanes) {
  if (lanes == 1 || index->lanes > 1) return;
  has_contiguous_ = true;
  if (alignment(index) < shape_.lanes_a_thread) is_blocked_ = false;
}

void KernelEmitter::fail(const std::string& message) {
  if (!error_) error_ = unsupported(kernel_, message);
}

}  // namespace lathe::cuda
