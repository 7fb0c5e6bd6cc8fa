// Code generation by LLVM's X86 target and linking by ORC. Each kernel is one module and one
// object: small register allocations, and objects that can be kept.
//
// Generation runs LLVM's code generation passes only. Optimisation passes over the IR cost more
// time than generation itself and gain nothing on what the emitter writes.
#include "backends/cpu/codegen.h"

#include <fmt/format.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <mutex>
#include <new>
#include <set>
#include <system_error>

#include "ir/support/diag_codes.h"

namespace lathe::cpu {
namespace {

constexpr char kTriple[] = "x86_64-unknown-linux-gnu";

// What a session reported: errors of its own first, then that a function is missing for them.
struct JitErrors {
  bool is_out_of_memory = false;
  std::string text;

  void add(llvm::Error error) {
    llvm::handleAllErrors(std::move(error), [&](const llvm::ErrorInfoBase& info) {
      is_out_of_memory |= info.convertToErrorCode() == std::errc::not_enough_memory;
      text += ": " + info.message();
    });
  }
  Diag diag(std::string_view what) const {
    std::string message = std::string(what) + text;
    if (is_out_of_memory) return {code::kTooLarge, Loc::unknown(), std::move(message)};
    return internal_error(message, __FILE__, __LINE__);
  }
};

// LLVM would end the process where malloc fails. Where new fails it throws through LLVM already.
void fail_to_allocate(void*, const char*, bool) { std::__throw_bad_alloc(); }

Result<std::unique_ptr<llvm::TargetMachine>> make_target_machine() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::install_bad_alloc_error_handler(fail_to_allocate);
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

Result<std::string> generate_package(const PackageCode& code) {
  LATHE_TRY(std::unique_ptr<llvm::TargetMachine> machine, make_target_machine());
  LLVMInitializeX86AsmParser();  // for the functions, which are assembly
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module = make_module(context, *machine);
  std::vector<llvm::Constant*> kernels;
  for (const KernelSource& source : code.kernels) {
    const std::string symbol = fmt::format("lathe_kernel_{}", kernels.size());
    LATHE_DO(emit_kernel(*module, *source.kernel, symbol, source.options));
    kernels.push_back(module->getFunction(symbol));
  }
  const auto global = [&](llvm::Constant* value) -> llvm::Constant* {
    return new llvm::GlobalVariable(*module, value->getType(), true,
                                    llvm::GlobalValue::PrivateLinkage, value);
  };
  const auto text = [&](const std::string& bytes) {
    return global(llvm::ConstantDataArray::getString(context, bytes));  // with a zero behind it
  };
  const auto number = [&](uint64_t value) -> llvm::Constant* {
    return llvm::ConstantInt::get(llvm::Type::getInt64Ty(context), value);
  };
  llvm::Type* const pointer = llvm::PointerType::get(context, 0);
  llvm::Constant* const table =
      global(llvm::ConstantArray::get(llvm::ArrayType::get(pointer, kernels.size()), kernels));
  llvm::Constant* const data = llvm::ConstantStruct::getAnon(
      {text(code.program), number(code.program.size()), table, number(kernels.size()),
       text(code.isa), number(code.num_inputs), number(code.num_outputs), number(code.weights_id)});
  new llvm::GlobalVariable(*module, data->getType(), true, llvm::GlobalValue::ExternalLinkage, data,
                           "lathe_package_data");
  for (const auto& [name, target] : code.functions)
    module->appendModuleInlineAsm(fmt::format(
        ".text\n.globl {0}\n.type {0},@function\n{0}:\n  jmp {1}@PLT\n.size {0}, .-{0}\n", name,
        target));
  return write_code(*module, *machine, llvm::CodeGenFileType::ObjectFile);
}

struct ObjectMaker::State {
  std::unique_ptr<llvm::TargetMachine> machine;
};

ObjectMaker::ObjectMaker(std::unique_ptr<State> state) : state_(std::move(state)) {}
ObjectMaker::~ObjectMaker() = default;

Result<std::unique_ptr<ObjectMaker>> ObjectMaker::create() {
  LATHE_TRY(std::unique_ptr<llvm::TargetMachine> machine, make_target_machine());
  auto state = std::make_unique<State>(State{std::move(machine)});
  return std::unique_ptr<ObjectMaker>(new ObjectMaker(std::move(state)));
}

Result<std::string> ObjectMaker::make(const KernelSource& source, const std::string& symbol) {
  return compile_object(source, symbol, *state_->machine);
}

struct LinkedCode::State {
  JitErrors errors;  // outlives the session that reports them
  std::unique_ptr<llvm::orc::LLJIT> jit;

  Diag fail(llvm::Error error) {
    errors.add(std::move(error));
    return errors.diag("cannot link kernels");
  }
};

LinkedCode::LinkedCode(std::unique_ptr<State> state) : state_(std::move(state)) {}
LinkedCode::~LinkedCode() = default;

Result<std::unique_ptr<LinkedCode>> LinkedCode::link(const std::vector<Object>& objects) {
  LATHE_TRY(std::unique_ptr<llvm::TargetMachine> machine, make_target_machine());
  std::unique_ptr<LinkedCode> code(new LinkedCode(std::make_unique<State>()));
  State& state = *code->state_;
  auto jit = llvm::orc::LLJITBuilder()
                 .setJITTargetMachineBuilder(
                     llvm::orc::JITTargetMachineBuilder(machine->getTargetTriple()))
                 .create();
  if (!jit) return state.fail(jit.takeError());
  state.jit = std::move(*jit);
  state.jit->getExecutionSession().setErrorReporter(  // which prints otherwise
      [&state](llvm::Error error) { state.errors.add(std::move(error)); });
  for (const Object& object : objects)
    if (llvm::Error error = state.jit->addObjectFile(
            llvm::MemoryBuffer::getMemBufferCopy(*object.bytes, object.symbol)))
      return state.fail(std::move(error));
  for (const Object& object : objects) {
    auto address = state.jit->lookup(object.symbol);
    if (!address) return state.fail(address.takeError());
    code->functions_.push_back(address->toPtr<KernelFunction>());
  }
  return code;
}

}  // namespace lathe::cpu
