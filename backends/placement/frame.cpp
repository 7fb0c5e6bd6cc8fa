// Frames: see frame.h.
#include "backends/placement/frame.h"

#include <fmt/format.h>

#include "ir/loop/pool.h"
#include "ir/loop/threads.h"
#include "ir/support/diag_codes.h"

namespace lathe::placement {
namespace {

constexpr int64_t kAlign = 64;

Result<int64_t> scratch_bytes(const loop::Kernel& kernel, std::string_view target) {
  int64_t total = 0;
  for (const loop::Buffer& buffer : kernel.buffers) {
    if (buffer.space == loop::Space::global) continue;
    if (!buffer.size.is_const())
      return unsupported(kernel, target, fmt::format("the size of '{}' is symbolic", buffer.name));
    if (buffer.size.value() < 0 || buffer.size.value() > kMaxScratchBytes ||
        (total += padded_bytes(buffer)) > kMaxScratchBytes)
      return unsupported(kernel, target,
                         fmt::format("its scratch buffers exceed {} bytes at '{}'",
                                     kMaxScratchBytes, buffer.name));
  }
  return total;
}

}  // namespace

Diag unsupported(const loop::Kernel& kernel, std::string_view target, std::string_view message) {
  return Diag{.code = code::kUnsupported,
              .loc = kernel.origins.empty() ? Loc::unknown() : kernel.origins.front(),
              .message = fmt::format("the {} target cannot compile kernel '{}': {}", target,
                                     kernel.name, message)};
}

int64_t padded_bytes(const loop::Buffer& buffer) {
  return (buffer.size.value() * dtype_bytes(buffer.dtype) + kAlign - 1) / kAlign * kAlign;
}

Result<KernelFrame> kernel_frame(const loop::Kernel& kernel, std::string_view target) {
  const loop::For* loop =
      kernel.body.size() == 1 ? std::get_if<loop::For>(&kernel.body.front().kind) : nullptr;
  if (!loop || loop->kind != loop::LoopKind::parallel)
    return unsupported(kernel, target, "its body is not one parallel loop");
  const loop::IntConst* lo = loop::as_int(loop->lo);
  const loop::IntConst* hi = loop::as_int(loop->hi);
  if (!lo || !hi)
    return unsupported(kernel, target, "the bounds of its parallel loop are not constant");
  if (loop->step < 1)
    return unsupported(kernel, target, "the step of its parallel loop is not positive");
  if (loop::thread_loop(*loop)) return unsupported(kernel, target, "it has threads of a group");
  if (loop::has_tiles(kernel)) return unsupported(kernel, target, "it has matrix tiles");
  KernelFrame frame{lo->value, hi->value, loop->step, 0};
  LATHE_TRY(frame.scratch_bytes, scratch_bytes(kernel, target));
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
