// The function around a kernel: signature, attributes, buffers, and what callers must know.
#include <fmt/format.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include "backends/cpu/kernel_emitter.h"
#include "ir/loop/lift_sizes.h"

namespace lathe::cpu {

Status emit_kernel(llvm::Module& module, const loop::Kernel& kernel, const std::string& symbol,
                   const EmitOptions& options) {
  LATHE_TRY(KernelFrame frame, placement::kernel_frame(kernel, "cpu"));
  (void)frame;
  return KernelEmitter(module, kernel, options).run(symbol);
}

KernelEmitter::KernelEmitter(llvm::Module& module, const loop::Kernel& kernel,
                             const EmitOptions& options)
    : Statements(kernel, "cpu"),
      module_(module),
      ranges_(kernel),
      options_(options),
      builder_(module.getContext()),
      vars_(kernel.vars.size()),
      regs_(kernel.regs.size()),
      values_(kernel, options.is_noalias) {}

Status KernelEmitter::run(const std::string& symbol) {
  llvm::Function* body = make_body(symbol);
  make_entry(symbol, body);
  builder_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "entry", body));
  set_dims(body);
  place_buffers(body);
  emit_block(kernel_.body);
  // Non-temporal stores are not ordered by the pool's synchronisation alone.
  if (has_nontemporal_) builder_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
  builder_.CreateRetVoid();
  if (error_) return *std::move(error_);
  std::string message;
  llvm::raw_string_ostream stream(message);
  LATHE_CHECK(!llvm::verifyFunction(*body, &stream),
              fmt::format("emitting kernel '{}' gave invalid LLVM IR: {}", kernel_.name, message));
  return Ok{};
}

llvm::Function* KernelEmitter::make_body(const std::string& symbol) {
  std::vector<llvm::Type*> params;
  for (const loop::Buffer& buffer : kernel_.buffers)
    if (buffer.space == loop::Space::global) params.push_back(builder_.getPtrTy());
  const std::vector<loop::Var> dims = loop::dims(kernel_);
  params.insert(params.end(), dims.size(), builder_.getInt64Ty());
  params.insert(params.end(), {builder_.getInt64Ty(), builder_.getInt64Ty(), builder_.getPtrTy()});
  auto* type = llvm::FunctionType::get(builder_.getVoidTy(), params, false);
  auto* body =
      llvm::Function::Create(type, llvm::Function::InternalLinkage, symbol + ".body", module_);
  set_attributes(body);
  unsigned arg = 0;
  for (const loop::Buffer& buffer : kernel_.buffers) {
    if (buffer.space != loop::Space::global) continue;
    body->getArg(arg)->setName(buffer.name);
    if (options_.is_noalias) body->addParamAttr(arg, llvm::Attribute::NoAlias);
    if (!buffer.is_written) body->addParamAttr(arg, llvm::Attribute::ReadOnly);
    ++arg;
  }
  body->addParamAttr(static_cast<unsigned>(params.size()) - 1, llvm::Attribute::NoAlias);
  for (loop::Var dim : dims) body->getArg(arg++)->setName(kernel_.vars[dim.id].name);
  parallel_lo_ = body->getArg(arg);
  parallel_hi_ = body->getArg(arg + 1);
  parallel_lo_->setName("lo");
  parallel_hi_->setName("hi");
  body->getArg(arg + 2)->setName("scratch");
  return body;
}

// The exported function: unpacks the pointers, so that the body has parameters that can be noalias,
// and the sizes behind them.
void KernelEmitter::make_entry(const std::string& symbol, llvm::Function* body) {
  llvm::Type* ptr = builder_.getPtrTy();
  llvm::Type* i64 = builder_.getInt64Ty();
  auto* type = llvm::FunctionType::get(builder_.getVoidTy(), {ptr, i64, i64, ptr}, false);
  auto* entry = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, module_);
  set_attributes(entry);
  builder_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "entry", entry));
  std::vector<llvm::Value*> args;
  const size_t num_dims = loop::dims(kernel_).size();
  const size_t num_globals = body->arg_size() - num_dims - 3;
  const auto load = [&](llvm::Type* loaded, llvm::Value* array, size_t i) {
    return builder_.CreateLoad(loaded, builder_.CreateConstGEP1_64(loaded, array, i));
  };
  for (size_t i = 0; i < num_globals; ++i) args.push_back(load(ptr, entry->getArg(0), i));
  llvm::Value* sizes = num_dims > 0 ? load(ptr, entry->getArg(0), num_globals) : nullptr;
  for (size_t i = 0; i < num_dims; ++i) args.push_back(load(i64, sizes, i));
  args.insert(args.end(), {entry->getArg(1), entry->getArg(2), entry->getArg(3)});
  builder_.CreateCall(body, args)->setTailCall();
  builder_.CreateRetVoid();
}

void KernelEmitter::set_attributes(llvm::Function* function) const {
  bool wide = options_.isa >= Isa::avx512;
  function->addFnAttr(llvm::Attribute::NoUnwind);
  function->addFnAttr("target-cpu", wide ? "x86-64-v4" : "x86-64-v3");
  function->addFnAttr("tune-cpu", wide ? "skylake-avx512" : "haswell");
  function->addFnAttr("prefer-vector-width", wide ? "512" : "256");
  function->addFnAttr("min-legal-vector-width", wide ? "512" : "256");
}

void KernelEmitter::place_buffers(llvm::Function* body) {
  llvm::Value* scratch = body->getArg(static_cast<unsigned>(body->arg_size()) - 1);
  int64_t offset = 0;
  unsigned arg = 0;
  for (const loop::Buffer& buffer : kernel_.buffers) {
    buffers_.push_back(buffer.space == loop::Space::global ? body->getArg(arg++) : nullptr);
    if (buffer.space == loop::Space::global || !buffer.size.is_const()) continue;
    buffers_.back() =
        builder_.CreateConstGEP1_64(builder_.getInt8Ty(), scratch, offset, buffer.name);
    offset += placement::padded_bytes(buffer);
  }
  llvm::Value* next = builder_.getInt64(offset);
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const loop::Buffer& buffer = kernel_.buffers[i];
    if (buffers_[i] != nullptr) continue;
    buffers_[i] = builder_.CreateGEP(builder_.getInt8Ty(), scratch, next, buffer.name);
    // As placement::padded_bytes.
    llvm::Value* bytes =
        builder_.CreateMul(num_elements(buffer), builder_.getInt64(dtype_bytes(buffer.dtype)));
    bytes = builder_.CreateAdd(bytes, builder_.getInt64(placement::kScratchAlign - 1));
    next = builder_.CreateAdd(
        next, builder_.CreateAnd(bytes, builder_.getInt64(-placement::kScratchAlign)));
  }
}

void KernelEmitter::set_dims(llvm::Function* body) {
  const std::vector<loop::Var> dims = loop::dims(kernel_);
  unsigned arg = static_cast<unsigned>(body->arg_size() - dims.size()) - 3;
  for (loop::Var dim : dims)
    vars_[dim.id] = {.value = body->getArg(arg++), .divisor = kernel_.vars[dim.id].multiple};
}

// Of a buffer whose size is a dim.
llvm::Value* KernelEmitter::num_elements(const loop::Buffer& buffer) {
  for (loop::Var dim : loop::dims(kernel_))
    if (kernel_.vars[dim.id].name == buffer.size.symbol_name()) return vars_[dim.id].value;
  return fail(fmt::format("the size of '{}' is none of its dims", buffer.name));
}

llvm::Value* KernelEmitter::fail(std::string_view message) {
  set_error(message);
  return llvm::PoisonValue::get(builder_.getInt64Ty());
}

}  // namespace lathe::cpu
