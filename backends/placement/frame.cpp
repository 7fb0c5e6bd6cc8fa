// Frames: see frame.h.
#include "backends/placement/frame.h"

#include <fmt/format.h>

#include "ir/loop/lift_sizes.h"
#include "ir/loop/pool.h"
#include "ir/loop/threads.h"
#include "ir/support/diag_codes.h"

namespace lathe::placement {
namespace {

int64_t padded(int64_t bytes) {
  return (bytes + kScratchAlign - 1) / kScratchAlign * kScratchAlign;
}

std::optional<FrameSize> frame_size(const loop::Kernel& kernel, std::string_view name) {
  const std::vector<loop::Var> dims = loop::dims(kernel);
  for (size_t i = 0; i < dims.size(); ++i)
    if (kernel.vars[dims[i].id].name == name) return FrameSize{0, static_cast<int>(i)};
  return std::nullopt;
}

std::optional<FrameSize> frame_size(const loop::Kernel& kernel, loop::Expr bound) {
  if (const loop::IntConst* number = loop::as_int(bound)) return FrameSize{number->value};
  const auto* read = std::get_if<loop::VarRead>(&bound->kind);
  if (!read || kernel.vars[read->var.id].kind != loop::VarKind::dim) return std::nullopt;
  return frame_size(kernel, kernel.vars[read->var.id].name);
}

Status add_scratch(const loop::Kernel& kernel, std::string_view target, KernelFrame& frame) {
  for (const loop::Buffer& buffer : kernel.buffers) {
    if (buffer.space == loop::Space::global) continue;
    if (!buffer.size.is_const()) {
      const std::optional<FrameSize> elements = frame_size(kernel, buffer.size.symbol_name());
      if (!elements)
        return unsupported(kernel, target,
                           fmt::format("the size of '{}' is none of its dims", buffer.name));
      frame.sized_scratch.push_back({*elements, dtype_bytes(buffer.dtype)});
      continue;
    }
    if (buffer.size.value() < 0 || buffer.size.value() > kMaxScratchBytes ||
        (frame.scratch_bytes += padded_bytes(buffer)) > kMaxScratchBytes)
      return unsupported(kernel, target,
                         fmt::format("its scratch buffers exceed {} bytes at '{}'",
                                     kMaxScratchBytes, buffer.name));
  }
  return Ok{};
}

}  // namespace

int64_t KernelFrame::scratch_bytes_at(std::span<const int64_t> sizes) const {
  int64_t total = scratch_bytes;
  for (const auto& [elements, bytes_each] : sized_scratch) {
    if (elements.at(sizes) > kMaxScratchBytes || total > kMaxScratchBytes)
      return kMaxScratchBytes + 1;
    total += padded(elements.at(sizes) * bytes_each);
  }
  return total;
}

Diag unsupported(const loop::Kernel& kernel, std::string_view target, std::string_view message) {
  return Diag{.code = code::kUnsupported,
              .loc = kernel.origins.empty() ? Loc::unknown() : kernel.origins.front(),
              .message = fmt::format("the {} target cannot compile kernel '{}': {}", target,
                                     kernel.name, message)};
}

int64_t padded_bytes(const loop::Buffer& buffer) {
  return padded(buffer.size.value() * dtype_bytes(buffer.dtype));
}

Result<KernelFrame> kernel_frame(const loop::Kernel& kernel, std::string_view target) {
  const loop::For* loop =
      kernel.body.size() == 1 ? std::get_if<loop::For>(&kernel.body.front().kind) : nullptr;
  if (!loop || loop->kind != loop::LoopKind::parallel)
    return unsupported(kernel, target, "its body is not one parallel loop");
  const std::optional<FrameSize> lo = frame_size(kernel, loop->lo);
  const std::optional<FrameSize> hi = frame_size(kernel, loop->hi);
  if (!lo || !hi)
    return unsupported(kernel, target,
                       "the bounds of its parallel loop are neither numbers nor sizes");
  if (loop->step < 1)
    return unsupported(kernel, target, "the step of its parallel loop is not positive");
  if (loop::thread_loop(*loop)) return unsupported(kernel, target, "it has threads of a group");
  if (loop::has_tiles(kernel)) return unsupported(kernel, target, "it has matrix tiles");
  if (loop::has_atomic(kernel.body)) return unsupported(kernel, target, "it has atomic stores");
  KernelFrame frame{*lo, *hi, loop->step};
  LATHE_DO(add_scratch(kernel, target, frame));
  return frame;
}

std::optional<size_t> register_position(const loop::RegInfo& info,
                                        std::span<const std::optional<int64_t>> indices,
                                        size_t size, std::string& message) {
  int64_t flat = 0;
  for (size_t i = 0; i < indices.size(); ++i) {
    const std::optional<int64_t> index = indices[i];
    if (!index || *index < 0 || *index >= info.shape[i]) {
      message = fmt::format("an index of register array '{}' is {}", info.name,
                            index ? "out of range" : "not constant after unrolling");
      return std::nullopt;
    }
    flat = flat * info.shape[i] + *index;
  }
  if (static_cast<size_t>(flat) >= size) {
    message = fmt::format("register array '{}' is used outside of its block", info.name);
    return std::nullopt;
  }
  return static_cast<size_t>(flat);
}

bool is_number(loop::Expr e) {
  if (auto* splat = std::get_if<loop::Splat>(&e->kind)) return is_number(splat->x);
  const loop::FloatConst* constant = loop::as_float(e);
  return constant && constant->value == constant->value;
}

}  // namespace lathe::placement
