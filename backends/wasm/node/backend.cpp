// Program in, executable out.
#include "backends/wasm/node/backend.h"

#include <fmt/format.h>

#include "backends/wasm/node/executable.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

constexpr char kRelaxed[] = "relaxed";
constexpr char kSimd128[] = "simd128";

Status check_node(wasm::Isa isa, const wasm::NodeInfo& node) {
  if (isa == wasm::Isa::simd128 || node.has_relaxed_simd) return Ok{};
  return Diag{.code = code::kUnavailable,
              .loc = Loc::unknown(),
              .message = fmt::format("node {} has no relaxed SIMD, expected one that has, or "
                                     "instruction set 'simd128'",
                                     node.version)};
}

class WasmBackend final : public Backend {
 public:
  WasmBackend(wasm::Isa isa, const Target& target) : isa_(isa), target_(target) {}

  const Target& target() const override { return target_; }

  Result<std::unique_ptr<Executable>> compile(const Program& program,
                                              const CompileOptions& options) override {
    LATHE_TRY(wasm::NodeInfo node, wasm::node_info());
    LATHE_DO(check_node(isa_, node));
    return wasm::NodeExecutable::create(program, options, isa_, node);
  }

  std::vector<std::string> emits() const override { return {"wasm", "wat", "layout"}; }

  Result<std::string> emit(const Program& program, const std::string& what) override {
    LATHE_TRY(wasm::CompiledProgram compiled, wasm::emit_program(program, isa_));
    if (what == "wasm") return encode(compiled.module);
    if (what == "wat") return to_wat(compiled.module);
    if (what == "layout") return layout_json(program, compiled, program.hints);
    std::string hint = nearest(what, emits());
    return Diag{
        .code = code::kBadValue,
        .loc = Loc::unknown(),
        .message = fmt::format("the wasm target cannot emit '{}', expected one of {}{}", what,
                               fmt::join(emits(), ", "),
                               hint.empty() ? "" : fmt::format("; did you mean '{}'?", hint))};
  }

 private:
  wasm::Isa isa_;
  const Target& target_;
};

Result<wasm::Isa> select_isa(std::string_view name) {
  if (name == kRelaxed) return wasm::Isa::relaxed;
  if (name == kSimd128) return wasm::Isa::simd128;
  if (name.empty()) {
    Result<wasm::NodeInfo> node = wasm::node_info();
    return !node.ok() || node->has_relaxed_simd ? wasm::Isa::relaxed : wasm::Isa::simd128;
  }
  std::string hint = nearest(std::string(name), {kRelaxed, kSimd128});
  return Diag{.code = code::kBadValue,
              .loc = Loc::unknown(),
              .message = fmt::format(
                  "the wasm target has the instruction sets {} and {}, got '{}'{}", kRelaxed,
                  kSimd128, name, hint.empty() ? "" : fmt::format("; did you mean '{}'?", hint))};
}

}  // namespace

Result<std::unique_ptr<Backend>> make_wasm_backend(std::string_view isa) {
  LATHE_TRY(wasm::Isa chosen, select_isa(isa));
  const Target* target = find_target(chosen == wasm::Isa::relaxed ? kRelaxed : kSimd128);
  LATHE_CHECK(target != nullptr, "an instruction set without target data");
  return std::unique_ptr<Backend>(std::make_unique<WasmBackend>(chosen, *target));
}

Status check_wasm(std::string_view isa) {
  LATHE_TRY(wasm::Isa chosen, select_isa(isa));
  LATHE_TRY(wasm::NodeInfo node, wasm::node_info());
  return check_node(chosen, node);
}

}  // namespace lathe
