// Code generation by LLVM's X86 target and linking by ORC. Each kernel is one module and one
// object: small register allocations, and objects that can be kept.
//
// Generation runs LLVM's code generation passes only. Optimisation passes over the IR cost more
// time than generation itself and gain nothing on what the emitter writes.
#include "backends/cpu/jit.h"

#include <fmt/format.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <malloc.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>

#include "ir/loop/text.h"
#include "ir/support/diag_codes.h"
#include "ir/support/hash.h"

namespace lathe::cpu {
namespace {

constexpr char kTriple[] = "x86_64-unknown-linux-gnu";
constexpr size_t kMaxCachedBytes = 64 << 20;

Diag jit_error(std::string_view what, llvm::Error error) {
  return internal_error(fmt::format("{}: {}", what, llvm::toString(std::move(error))), __FILE__,
                        __LINE__);
}

Result<std::unique_ptr<llvm::TargetMachine>> make_target_machine() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    // Loop strength reduction takes a third of the time, and has nothing to do: the emitter shares
    // pointers and leaves constants to displacements. Only a command line option turns it off.
    auto& options = llvm::cl::getRegisteredOptions();
    if (auto found = options.find("disable-lsr"); found != options.end())
      found->second->addOccurrence(0, "disable-lsr", "true");
  });
  std::string message;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(kTriple, message);
  if (!target) return internal_error(message, __FILE__, __LINE__);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // separate mul and add stay separate
  // The CPU is an attribute of each function.
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(kTriple, "x86-64", "", options, llvm::Reloc::PIC_,
                                  llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default, true));
}

std::unique_ptr<llvm::Module> make_module(llvm::LLVMContext& context,
                                          const llvm::TargetMachine& machine) {
  auto module = std::make_unique<llvm::Module>("lathe", context);
  module->setTargetTriple(kTriple);
  module->setDataLayout(machine.createDataLayout());
  return module;
}

Result<std::string> write_code(llvm::Module& module, llvm::TargetMachine& machine,
                               llvm::CodeGenFileType form) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  LATHE_CHECK(!machine.addPassesToEmitFile(passes, stream, nullptr, form, true),
              "LLVM's X86 target cannot write this kind of file");
  passes.run(module);
  return std::string(bytes.begin(), bytes.end());
}

Result<std::string> compile_object(const KernelSource& source, const std::string& symbol,
                                   llvm::TargetMachine& machine) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module = make_module(context, machine);
  LATHE_DO(emit_kernel(*module, *source.kernel, symbol, source.options));
  return write_code(*module, machine, llvm::CodeGenFileType::ObjectFile);
}

std::string symbol_of(const KernelSource& source) {
  Hasher hash;
  hash.add(loop::structural_hash(*source.kernel));
  hash.add(static_cast<uint64_t>(source.options.isa));
  hash.add(static_cast<uint64_t>(source.options.is_noalias));
  return fmt::format("lathe_{:016x}", hash.value());
}

struct Job {
  std::string symbol;
  KernelSource source;
  Result<std::string> object = std::string();
};

// Compiles the jobs on up to `threads` threads, this one among them. Each has a target machine,
// whose set-up costs as much as a small kernel.
void compile_objects(std::vector<Job>& jobs, int threads) {
  std::atomic<size_t> next{0};
  auto drain = [&] {
    auto machine = make_target_machine();
    for (size_t i; (i = next.fetch_add(1)) < jobs.size();) {
      Job& job = jobs[i];
      job.object = machine.ok() ? compile_object(job.source, job.symbol, **machine)
                                : Result<std::string>(machine.error());
    }
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads && static_cast<size_t>(t) < jobs.size(); ++t)
    others.emplace_back(drain);
  if (!jobs.empty()) drain();
  for (std::thread& other : others) other.join();
}

}  // namespace

Result<std::string> generate_code(const std::vector<KernelSource>& sources, CodeForm form) {
  LATHE_TRY(std::unique_ptr<llvm::TargetMachine> machine, make_target_machine());
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module = make_module(context, *machine);
  std::set<std::string> used;
  for (const KernelSource& source : sources) {
    std::string symbol = source.kernel->name;
    for (int n = 2; !used.insert(symbol).second; ++n)
      symbol = fmt::format("{}_{}", source.kernel->name, n);
    LATHE_DO(emit_kernel(*module, *source.kernel, symbol, source.options));
  }
  if (form == CodeForm::llvm_ir) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module->print(stream, nullptr);
    return text;
  }
  return write_code(*module, *machine,
                    form == CodeForm::object ? llvm::CodeGenFileType::ObjectFile
                                             : llvm::CodeGenFileType::AssemblyFile);
}

struct ObjectCache::State {
  std::mutex mutex;
  std::unordered_map<std::string, std::shared_ptr<const std::string>> objects;  // by symbol
  size_t bytes = 0;

  std::shared_ptr<const std::string> find(const std::string& symbol) {
    std::lock_guard lock(mutex);
    auto found = objects.find(symbol);
    return found == objects.end() ? nullptr : found->second;
  }
  void add(const std::string& symbol, std::shared_ptr<const std::string> object) {
    std::lock_guard lock(mutex);
    if (bytes + object->size() > kMaxCachedBytes) {
      objects.clear();
      bytes = 0;
    }
    bytes += object->size();
    objects[symbol] = std::move(object);
  }
};

ObjectCache::ObjectCache() : state_(std::make_unique<State>()) {}
ObjectCache::~ObjectCache() = default;

struct Jit::State {
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

Jit::Jit() : state_(std::make_unique<State>()) {}
Jit::~Jit() = default;

Result<std::unique_ptr<Jit>> Jit::compile(const std::vector<KernelSource>& sources, int threads,
                                          ObjectCache& cache) {
  std::vector<std::string> symbols;
  std::unordered_map<std::string, std::shared_ptr<const std::string>> objects;
  std::vector<Job> jobs;
  for (const KernelSource& source : sources) {
    symbols.push_back(symbol_of(source));
    auto [entry, is_new] = objects.try_emplace(symbols.back(), cache.state_->find(symbols.back()));
    if (is_new && !entry->second)
      jobs.push_back({symbols.back(), source});
  }
  compile_objects(jobs, threads);
  for (Job& job : jobs) {
    if (!job.object.ok()) return std::move(job.object).error();
    auto object = std::make_shared<const std::string>(*std::move(job.object));
    objects[job.symbol] = object;
    cache.state_->add(job.symbol, object);
  }
  // What code generation freed goes back to the system before weights are packed beside it.
  if (!jobs.empty()) malloc_trim(0);

  LATHE_TRY(std::unique_ptr<llvm::TargetMachine> machine, make_target_machine());
  std::unique_ptr<Jit> result(new Jit());
  auto jit = llvm::orc::LLJITBuilder()
                 .setJITTargetMachineBuilder(
                     llvm::orc::JITTargetMachineBuilder(machine->getTargetTriple()))
                 .create();
  if (!jit) return jit_error("cannot create a JIT", jit.takeError());
  result->state_->jit = std::move(*jit);
  llvm::orc::LLJIT& linker = *result->state_->jit;
  for (const auto& [symbol, object] : objects)
    if (llvm::Error error =
            linker.addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(*object, symbol)))
      return jit_error("cannot link kernels", std::move(error));
  for (const std::string& symbol : symbols) {
    auto address = linker.lookup(symbol);
    if (!address) return jit_error("cannot link kernels", address.takeError());
    result->functions_.push_back(address->toPtr<KernelFunction>());
  }
  return result;
}

}  // namespace lathe::cpu
