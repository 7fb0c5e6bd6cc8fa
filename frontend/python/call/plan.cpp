#include "frontend/python/call/plan.h"

#include <cstdlib>
#include <cstring>

namespace lathe::python {

namespace {

// Equal and of one type: Python's way takes others for equal too.
bool is_constant(PyObject* object, PyObject* constant) {
  if (object == constant) return true;
  if (Py_TYPE(object) != Py_TYPE(constant)) return false;
  const int same = PyObject_RichCompareBool(object, constant, Py_EQ);
  if (same < 0) PyErr_Clear();
  return same == 1;
}

// Row-major and contiguous memory of this shape.
bool is_laid_out(const Argument& given, const Items<int64_t>& shape) {
  int64_t stride = given.stride_unit;
  bool is_contiguous = true;
  for (Py_ssize_t i = shape.size() - 1; i >= 0; --i) {
    if (given.shape[i] != shape[i]) return false;
    if (shape[i] != 1 && given.strides[i] != stride) is_contiguous = false;
    stride *= shape[i];
  }
  const bool is_empty = stride == 0;
  return is_empty || (is_contiguous && given.data != nullptr);
}

// The result, nested as the model was exported.
Ref nest(const Plan& plan, Scratch<Ref>& outputs) {
  const auto value_of = [&](const Result& result) {
    return Ref::to(result.output < 0 ? result.constant.get() : outputs[result.output].get());
  };
  if (plan.build.get() == Py_None) return value_of(plan.results[0]);
  Ref values(PyTuple_New(plan.results.size()));
  if (!values) return values;
  Py_ssize_t i = 0;
  for (const Result& result : plan.results)
    PyTuple_SetItem(values.get(), i++, value_of(result).release());
  if (plan.build.get() == reinterpret_cast<PyObject*>(&PyTuple_Type)) return values;
  return Ref(PyObject_CallFunctionObjArgs(plan.build.get(), values.get(), nullptr));
}

}  // namespace

bool Leaf::fits(const Argument& given) const {
  if (input < 0) return is_constant(given.object, constant.get());
  return given.kind != Argument::Kind::other && given.dtype == dtype &&
         given.rank == shape.size() && is_laid_out(given, shape) &&
         (given.is_writable || !is_mutated);
}

Handle::~Handle() {
  if (model != nullptr) library.free(model);
}

bool Handle::run(const int64_t* sizes, int32_t count, const void* const* inputs,
                 void* const* outputs, void* stream) {
  char* text = nullptr;
  int status = 0;
  Py_BEGIN_ALLOW_THREADS;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (has_streams) library.set_stream(model, stream);
    status = count == 0 || library.run_shaped == nullptr
                 ? library.run(model, inputs, outputs)
                 : library.run_shaped(model, sizes, count, inputs, outputs);
    // The next run, of another thread, takes the text away.
    const char* error = status == 0 ? nullptr : library.error(model);
    if (error != nullptr) text = strdup(error);
  }
  Py_END_ALLOW_THREADS;
  if (status == 0) return true;
  const Ref none(
      PyObject_CallFunction(raise_failure.get(), "iy", status, text == nullptr ? "" : text));
  std::free(text);
  return false;
}

bool Plan::fits(Scratch<Argument>& given, bool has_streams, const Argument*& like) const {
  if (leaves.size() != given.size()) return false;
  like = nullptr;
  for (Py_ssize_t i = 0; i < given.size(); ++i) {
    if (!leaves[i].fits(given[i])) return false;
    if (like == nullptr && given[i].kind == Argument::Kind::tensor) like = &given[i];
  }
  // Nothing says whose the outputs shall be: NumPy's, which Python may not have told of yet.
  if (like == nullptr) return frameworks.new_array != nullptr;
  const DlDevice device = like->device;
  if (device.type != kDlCpu && !(device.type == kDlCuda && has_streams)) return false;
  for (const Argument& argument : given)
    if (argument.kind != Argument::Kind::other && argument.device != device) return false;
  return true;
}

Ref Handle::call(const Plan& plan, Scratch<Argument>& given, const Argument* like) {
  Scratch<const void*> inputs(plan.num_inputs);
  Scratch<void*> addresses(plan.outputs.size());
  Scratch<Ref> outputs(plan.outputs.size());
  if (!inputs.ok() || !addresses.ok() || !outputs.ok()) return Ref(PyErr_NoMemory());
  for (Py_ssize_t i = 0; i < given.size(); ++i)
    if (plan.leaves[i].input >= 0) inputs[plan.leaves[i].input] = given[i].data;
  for (Py_ssize_t i = 0; i < outputs.size(); ++i) {
    outputs[i] = make(plan.outputs[i], like, addresses[i]);
    if (!outputs[i]) return Ref();
  }
  void* stream = nullptr;
  if (!find_stream(like, stream)) return Ref();
  if (!run(plan.sizes.begin(), static_cast<int32_t>(plan.sizes.size()), inputs.begin(),
           addresses.begin(), stream))
    return Ref();
  return nest(plan, outputs);
}

}  // namespace lathe::python
