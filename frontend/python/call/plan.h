// A handle of the library, and what calls of flat arguments do with it.
#pragma once

#include <Python.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "frontend/python/call/memory.h"
#include "frontend/python/call/tensors.h"

namespace lathe::python {

// A positional argument: a tensor, or a constant that the model was compiled with.
struct Leaf {
  int input = -1;  // -1: a constant
  int dtype = 0;
  Items<int64_t> shape;
  bool is_mutated = false;
  Ref constant;

  bool fits(const Argument& given) const;
};

struct Result {
  int output = -1;  // -1: a constant
  Ref constant;
};

// Of a call at some sizes.
struct Plan {
  Items<int64_t> sizes;  // of the model's dims
  Items<Leaf> leaves;
  Items<Output> outputs;
  Items<Result> results;
  int num_inputs = 0;
  Ref build;  // makes the result of a tuple of its leaves; None: the only one is the result

  // Whether it is for these arguments, and the first of PyTorch's tensors among them.
  bool fits(Scratch<Argument>& given, bool has_streams, const Argument*& like) const;
};

// Functions of lathe.h.
struct Library {
  int (*run)(void* model, const void* const* inputs, void* const* outputs);
  int (*run_shaped)(void* model, const int64_t* sizes, int32_t count, const void* const* inputs,
                    void* const* outputs);
  void (*set_stream)(void* model, void* stream);
  const char* (*error)(const void* model);
  double (*last_run_ms)(const void* model);
  void (*free)(void* model);
};

struct Handle {
  std::mutex mutex;  // the library wants a handle used by one thread at a time
  Library library = {};
  void* model = nullptr;
  bool has_streams = false;
  Ref raise_failure;  // of a status and a text
  // The latest first. Read and changed with Python's lock held; a call keeps the one that it uses.
  static constexpr size_t kMaxPlans = 16;  // MAX_OFFERED of _load.py
  std::deque<std::shared_ptr<Plan>> plans;

  ~Handle();
  // False with Python's error when it fails. Lets other threads of Python run meanwhile.
  bool run(const int64_t* sizes, int32_t count, const void* const* inputs, void* const* outputs,
           void* stream);
  // Calls with arguments that fit the plan; null with Python's error when that fails.
  Ref call(const Plan& plan, Scratch<Argument>& given, const Argument* like);
};

}  // namespace lathe::python
