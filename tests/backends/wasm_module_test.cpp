// The module around kernels: encoding, sharing of locals, memory layout, the Node process.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdio>
#include <set>

#include "backends/wasm/emit_program.h"
#include "backends/wasm/function_builder.h"
#include "backends/wasm/node/shared_process.h"
#include "ir/loop/pool.h"

namespace lathe::wasm {
namespace {

std::string hex(const std::string& bytes) {
  std::string text;
  for (unsigned char c : bytes) {
    char digits[4];
    std::snprintf(digits, sizeof digits, "%02x ", c);
    text += digits;
  }
  return text;
}

// A function of one instruction whose bytes are to be found in the module.
std::string encoded(Instr instr) {
  Module module;
  module.functions.push_back({.name = "f", .body = {instr}});
  return hex(encode(module));
}

void expect_bytes(Instr instr, const std::string& bytes) {
  std::string all = encoded(instr);
  EXPECT_NE(all.find(bytes + "0b "), std::string::npos) << bytes << "in " << all;
}

Instr i32_const(int32_t value) {
  return {.op = Op::i32_const, .low = static_cast<uint64_t>(static_cast<int64_t>(value))};
}

TEST(Encoder, WritesSignedNumbersInLeb128) {
  expect_bytes(i32_const(0), "41 00 ");
  expect_bytes(i32_const(63), "41 3f ");
  expect_bytes(i32_const(64), "41 c0 00 ");
  expect_bytes(i32_const(-1), "41 7f ");
  expect_bytes(i32_const(-65), "41 bf 7f ");
  expect_bytes(i32_const(INT32_MIN), "41 80 80 80 80 78 ");
  expect_bytes({.op = Op::i64_const, .low = static_cast<uint64_t>(INT64_MIN)},
               "42 80 80 80 80 80 80 80 80 80 7f ");
}

TEST(Encoder, WritesOffsetsLanesAndPrefixes) {
  expect_bytes({Op::v128_load, 300}, "fd 00 04 ac 02 ");
  expect_bytes({Op::v128_store16_lane, 1, 7}, "fd 59 01 01 07 ");
  expect_bytes({Op::f32x4_relaxed_madd}, "fd 85 02 ");
  expect_bytes({Op::memory_copy}, "fc 0a 00 00 ");
  expect_bytes({.op = Op::f32_const, .low = 0x3f800000}, "43 00 00 80 3f ");
}

TEST(Encoder, StartsAsTheFormatDoes) {
  EXPECT_EQ(encoded({Op::end}).substr(0, 24), "00 61 73 6d 01 00 00 00 ");
}

TEST(Opcodes, HaveOneNameAndOneCodeEach) {
  std::set<std::string_view> names;
  std::set<std::pair<int, int>> codes;
  for (int i = 0; i < kNumOps; ++i) {
    const OpInfo& op = info(static_cast<Op>(i));
    EXPECT_TRUE(names.insert(op.name).second) << op.name;
    EXPECT_TRUE(codes.insert({op.prefix, op.code}).second) << op.name;
  }
}

// ---- stack code ---------------------------------------------------------------------------------

Function finished(FunctionBuilder& builder) {
  Function function{.name = "f"};
  builder.finish(function);
  for (size_t i = 0; i < function.params.size(); ++i)
    function.param_names.push_back("p" + std::to_string(i));
  return function;
}

int num_of(const Function& function, Op op) {
  int count = 0;
  for (const Instr& instr : function.body) count += instr.op == op ? 1 : 0;
  return count;
}

TEST(Stackify, ValuesUsedOnceStayOnTheStack) {
  FunctionBuilder b({Type::i32, Type::i32});
  Ref sum = b.op(Op::i32_add, {b.param(0), b.param(1)});
  b.effect(Op::i32_store, {b.param(0), b.op(Op::i32_mul, {sum, b.i32(3)})});
  Function f = finished(b);
  EXPECT_TRUE(f.locals.empty());
  EXPECT_EQ(f.body.size(), 7u);
}

TEST(Stackify, LoadsDoNotPassStores) {
  FunctionBuilder b({Type::i32});
  Ref before = b.op(Op::i32_load, {b.param(0)});
  b.effect(Op::i32_store, {b.param(0), b.i32(1)});
  b.effect(Op::i32_store, {b.param(0), before}, {Op::i32_store, 4});
  Function f = finished(b);
  EXPECT_EQ(f.locals.size(), 1u);
  EXPECT_EQ(f.body[1].op, Op::i32_load);
}

TEST(Stackify, ReadingsDoNotPassChanges) {
  FunctionBuilder b({Type::i32});
  Local x = b.local(Type::i32);
  b.set(x, b.i32(1));
  Ref old = b.get(x);
  b.set(x, b.i32(2));
  b.effect(Op::i32_store, {b.param(0), b.op(Op::i32_add, {old, b.get(x)})});
  EXPECT_EQ(finished(b).locals.size(), 2u);
}

TEST(Stackify, UnusedValuesAreDropped) {
  FunctionBuilder b({Type::i32});
  b.op(Op::i32_load, {b.op(Op::i32_add, {b.param(0), b.i32(1)})});
  EXPECT_TRUE(finished(b).body.empty());
}

TEST(Stackify, ValuesThatLoopsReadKeepTheirLocal) {
  FunctionBuilder b({Type::i32});
  Ref outer = b.op(Op::i32_load, {b.param(0)});
  b.open_scope();
  Ref inner = b.op(Op::i32_load, {b.param(0)}, {Op::i32_load, 4});
  b.effect(Op::i32_store, {b.param(0), b.op(Op::i32_add, {inner, outer})});
  b.effect(Op::i32_store, {b.param(0), inner}, {Op::i32_store, 4});
  Ref again = b.op(Op::i32_lt_s, {inner, b.i32(5)});
  b.loop(b.close_scope(), again, "i");
  Function f = finished(b);
  EXPECT_EQ(f.locals.size(), 2u);  // one would be overwritten in the second round
  EXPECT_EQ(num_of(f, Op::loop), 1);
}

TEST(Stackify, DeadLocalsAreUsedAgain) {
  FunctionBuilder b({Type::i32});
  for (int i = 0; i < 10; ++i) {
    Ref x = b.op(Op::i32_load, {b.param(0)});
    b.effect(Op::i32_store, {b.param(0), b.op(Op::i32_mul, {x, x})});
  }
  EXPECT_EQ(finished(b).locals.size(), 1u);
}

// ---- layout -------------------------------------------------------------------------------------

// init: packed = f(w, v); steps: out = f(packed, x).
Program make_program(int64_t num_bytes) {
  Program program;
  program.name = "test";
  auto add = [&](const char* name, BufferKind kind) {
    program.buffers.push_back({.name = name, .num_bytes = num_bytes, .kind = kind, .weight = name});
    return static_cast<BufferId>(program.buffers.size()) - 1;
  };
  BufferId w = add("w", BufferKind::weight), v = add("v", BufferKind::weight);
  BufferId packed = add("packed", BufferKind::persistent), x = add("x", BufferKind::input);
  BufferId out = add("out", BufferKind::output), kept = add("kept", BufferKind::weight);
  program.inputs = {x};
  program.outputs = {out};
  program.init = {{CopyLaunch{w, packed}, "first"}, {CopyLaunch{v, packed}, "second"}};
  program.steps = {{CopyLaunch{kept, out}, "third"}};
  return program;
}

TEST(Layout, StagesWeightsInTheRoomOfCalls) {
  auto layout = plan_layout(make_program(1000), 100);
  ASSERT_TRUE(layout.ok()) << layout.error().message;
  ASSERT_EQ(layout->staged.size(), 2u);
  ASSERT_EQ(layout->staged[0].size(), 1u);
  EXPECT_EQ(layout->staged[0][0].buffer, 0);
  EXPECT_EQ(layout->staged[1][0].buffer, 1);
  EXPECT_EQ(layout->staged[0][0].address, layout->staged[1][0].address);
  EXPECT_LT(layout->address[3], layout->staged[0][0].address + 1000);  // an input is there later
  ASSERT_EQ(layout->weights.size(), 1u);
  EXPECT_EQ(layout->weights[0].buffer, 5);
  for (BufferId kept : {2, 5}) {
    int64_t end = layout->address[static_cast<size_t>(kept)] + 1000;
    EXPECT_LE(end, layout->staged[0][0].address);
  }
  EXPECT_EQ(layout->num_bytes % kPageBytes, 0);
}

TEST(Layout, MoreThanFourGigabytesAreAnError) {
  EXPECT_TRUE(plan_layout(make_program(int64_t{1} << 29), 0).ok());
  auto layout = plan_layout(make_program(int64_t{1} << 30), 0);
  ASSERT_FALSE(layout.ok());
  EXPECT_EQ(layout.error().code, "too-large");
  EXPECT_EQ(layout.error().message,
            "program 'test' needs 4097 MiB of memory, and WebAssembly has 4096: weights 1024, "
            "packed weights and constants 1024, inputs and outputs 2048, arena and scratch 1");
  Program packing = make_program(int64_t{1} << 29);
  packing.buffers[0].num_bytes = packing.buffers[2].num_bytes = int64_t{1800} << 20;
  layout = plan_layout(packing, 0);
  ASSERT_FALSE(layout.ok());
  EXPECT_EQ(layout.error().message,
            "program 'test' needs 4113 MiB of memory, and WebAssembly has 4096: weights 512, "
            "packed weights and constants 1800, packing 1801 (later, in its place: inputs and "
            "outputs 1024, arena and scratch 1)");
}

TEST(Layout, TheHostReadsItAsJson) {
  Program program = make_program(64);
  auto compiled = emit_program(program, Isa::simd128);
  ASSERT_TRUE(compiled.ok()) << compiled.error().message;
  auto json = layout_json(program, *compiled, {});
  ASSERT_TRUE(json.ok()) << json.error().message;
  EXPECT_NE(json->find(R"("function": "init1", "label": "second", "weights": [{"name": "v")"),
            std::string::npos)
      << *json;
  EXPECT_EQ(json->find("table"), std::string::npos);
}

// ---- Node ---------------------------------------------------------------------------------------

class Node : public testing::Test {
 protected:
  void SetUp() override {
    auto info = node_info();
    if (!info.ok()) GTEST_SKIP() << info.error().message;
    auto started = NodeProcess::start(info->options);
    ASSERT_TRUE(started.ok()) << started.error().message;
    process_ = *std::move(started);
  }
  std::unique_ptr<NodeProcess> process_;
};

TEST_F(Node, RunsInitOneLaunchAtATimeAndThenCalls) {
  Program program = make_program(8);
  auto compiled = emit_program(program, Isa::simd128);
  ASSERT_TRUE(compiled.ok());
  ASSERT_TRUE(process_->load(encode(compiled->module), compiled->module.num_pages).ok());
  auto put = [&](int64_t address, char c) {
    std::string text(8, c);
    return process_->write(static_cast<uint32_t>(address), std::as_bytes(std::span(text)));
  };
  auto get = [&](int64_t address) {
    std::string text(8, ' ');
    auto bytes = std::as_writable_bytes(std::span(text));
    EXPECT_TRUE(process_->read(static_cast<uint32_t>(address), bytes).ok());
    return text;
  };
  const Layout& layout = compiled->layout;
  ASSERT_TRUE(put(layout.weights[0].address, 'k').ok());
  ASSERT_TRUE(put(layout.staged[0][0].address, 'w').ok());
  ASSERT_TRUE(process_->call("init0").ok());
  EXPECT_EQ(get(layout.address[2]), "wwwwwwww");
  ASSERT_TRUE(put(layout.staged[1][0].address, 'v').ok());
  ASSERT_TRUE(process_->call("init1").ok());
  EXPECT_EQ(get(layout.address[2]), "vvvvvvvv");
  ASSERT_TRUE(process_->call("run").ok());
  EXPECT_EQ(get(layout.address[4]), "kkkkkkkk");
  auto times = process_->steps(1);
  ASSERT_TRUE(times.ok());
  EXPECT_EQ(times->size(), 1u);
}

TEST_F(Node, TrapsAndBrokenModulesAreErrorsAndNotTheEnd) {
  EXPECT_FALSE(process_->load("no module", 1).ok());
  Module module;
  module.num_pages = 1;
  FunctionBuilder b({});
  b.effect(Op::i32_store, {b.i32(-1), b.i32(0)});
  module.functions.push_back(finished(b));
  ASSERT_TRUE(process_->load(encode(module), 1).ok());
  auto trapped = process_->call("f");
  ASSERT_FALSE(trapped.ok());
  EXPECT_NE(trapped.error().message.find("out of bounds"), std::string::npos)
      << trapped.error().message;
  EXPECT_FALSE(process_->call("missing").ok());
  std::string text = "x";
  EXPECT_FALSE(process_->write(1 << 20, std::as_bytes(std::span(text))).ok());
  EXPECT_TRUE(process_->write(100, std::as_bytes(std::span(text))).ok());
}

// (module (func (export "f") body))
std::string module_of(std::vector<Instr> body) {
  Module module;
  module.num_pages = 1;
  module.functions.push_back({.name = "f", .body = std::move(body)});
  return encode(module);
}

TEST_F(Node, WhatNeverEndsIsEnded) {
  // (loop (br_if 0 (i32.const 1)))
  std::string endless =
      module_of({{.op = Op::loop}, i32_const(1), {.op = Op::br_if}, {.op = Op::end}});
  ASSERT_TRUE(process_->load(endless, 1).ok());
  ASSERT_TRUE(process_->set_limit(std::chrono::milliseconds(200)).ok());
  auto called = process_->call("f");
  ASSERT_FALSE(called.ok());
  EXPECT_EQ(called.error().message, "node gave no answer within 0.2 s");
  EXPECT_FALSE(process_->is_sound());
  EXPECT_FALSE(process_->call("f").ok());
}

BorrowedProcess borrow() {
  auto process = borrow_process(*node_info());
  EXPECT_TRUE(process.ok()) << process.error().message;
  return process.ok() ? *std::move(process) : nullptr;
}

TEST_F(Node, AProcessServesOneProgramAfterTheOther) {
  BorrowedProcess one = borrow(), two = borrow();
  const int first = one->pid();
  EXPECT_NE(two->pid(), first);  // both are in use
  std::string text = "left behind";
  ASSERT_TRUE(one->load(module_of({}), 1).ok());
  ASSERT_TRUE(one->write(0, std::as_bytes(std::span(text))).ok());
  one.reset();
  two.reset();  // one is kept already
  one = borrow();
  EXPECT_EQ(one->pid(), first);
  ASSERT_TRUE(one->load(module_of({}), 1).ok());
  ASSERT_TRUE(one->read(0, std::as_writable_bytes(std::span(text))).ok());
  EXPECT_EQ(text, std::string(text.size(), '\0'));
}

TEST_F(Node, AProcessThatFailedOrHasMuchMemoryIsNotUsedAgain) {
  for (bool has_failed : {false, true}) {
    BorrowedProcess process = borrow();
    const int used = process->pid();
    EXPECT_EQ(process->load(has_failed ? "no module" : module_of({}), 4096).ok(), !has_failed);
    process.reset();
    EXPECT_NE(borrow()->pid(), used);
  }
}

TEST_F(Node, OptionsThatItRefusesAreQuoted) {
  auto refused = NodeProcess::start({"--no-such-option"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, "unavailable");
  EXPECT_NE(refused.error().message.find("--no-such-option"), std::string::npos)
      << refused.error().message;
}

TEST(NodeMissing, SaysWhatIsExpected) {
  std::string path = getenv("PATH") ? getenv("PATH") : "";
  setenv("PATH", "/nowhere", 1);
  auto missing = NodeProcess::start({});
  setenv("PATH", path.c_str(), 1);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().message,
            "no 'node' on PATH, expected Node 18 or newer, which runs the wasm target");
}

}  // namespace
}  // namespace lathe::wasm
