// lathe._call: a call of a loaded model from Python for less than what one of PyTorch's ops costs.
//
// It is a short way beside the one in Python (lathe/_load.py, _compiled.py): positional arguments
// whose tensors fit as they are. Whatever else comes (keywords, nesting, strides, other sizes,
// wrong types) goes to Python, which copies, compiles or says what is wrong; so no message stands
// here. What is asked of CPython is in its stable ABI since 3.11: one file serves all later ones.
#include <Python.h>
#include <structmember.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "frontend/python/call/memory.h"
#include "frontend/python/call/plan.h"
#include "frontend/python/call/tensors.h"

namespace lathe::python {
namespace {

// Of what lathe/_extension.py and this file say to each other.
constexpr long kVersion = 3;

// ---- Handle: a handle of the library ------------------------------------------------------------

struct HandleObject {
  PyObject_HEAD;
  Handle* handle;
};

PyTypeObject* handle_type = nullptr;

Handle& handle_of(PyObject* self) { return *reinterpret_cast<HandleObject*>(self)->handle; }

template <class T>
T address(unsigned long long number) {
  return reinterpret_cast<T>(static_cast<uintptr_t>(number));
}

// Handle(addresses of the library's functions, model, has_streams, raise_failure). Owns the model.
PyObject* handle_new(PyTypeObject* type, PyObject* arguments, PyObject* /*keywords*/) {
  unsigned long long run, run_shaped, set_stream, error, last_run_ms, free, model;
  int has_streams = 0;
  PyObject* raise_failure = nullptr;
  if (!PyArg_ParseTuple(arguments, "(KKKKKK)KpO", &run, &run_shaped, &set_stream, &error,
                        &last_run_ms, &free, &model, &has_streams, &raise_failure))
    return nullptr;
  auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  Ref self(allocate(type, 0));
  if (!self) return nullptr;
  Handle* handle = new (std::nothrow) Handle;
  if (handle == nullptr) return PyErr_NoMemory();
  reinterpret_cast<HandleObject*>(self.get())->handle = handle;
  handle->library = {address<decltype(Library::run)>(run),
                     address<decltype(Library::run_shaped)>(run_shaped),
                     address<decltype(Library::set_stream)>(set_stream),
                     address<decltype(Library::error)>(error),
                     address<decltype(Library::last_run_ms)>(last_run_ms),
                     address<decltype(Library::free)>(free)};
  handle->model = address<void*>(model);
  handle->has_streams = has_streams != 0;
  handle->raise_failure = Ref::to(raise_failure);
  return self.release();
}

void handle_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete reinterpret_cast<HandleObject*>(self)->handle;
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

// run(address of sizes, their number, addresses of inputs, of outputs, stream): of arrays that the
// caller keeps.
PyObject* handle_run(PyObject* self, PyObject* arguments) {
  unsigned long long sizes, inputs, outputs, stream;
  int count;
  if (!PyArg_ParseTuple(arguments, "KiKKK", &sizes, &count, &inputs, &outputs, &stream))
    return nullptr;
  if (!handle_of(self).run(address<const int64_t*>(sizes), count,
                           address<const void* const*>(inputs), address<void* const*>(outputs),
                           address<void*>(stream)))
    return nullptr;
  Py_RETURN_NONE;
}

// alone(function): what it returns, called while no other thread uses the model. Python's lock is
// not held while this waits: whoever has the model may want it.
PyObject* handle_alone(PyObject* self, PyObject* function) {
  std::unique_lock<std::mutex> lock(handle_of(self).mutex, std::defer_lock);
  Py_BEGIN_ALLOW_THREADS;
  lock.lock();
  Py_END_ALLOW_THREADS;
  return PyObject_CallNoArgs(function);
}

PyObject* handle_last_run_ms(PyObject* self, void* /*closure*/) {
  const Handle& handle = handle_of(self);
  return PyFloat_FromDouble(handle.library.last_run_ms(handle.model));
}

bool read_shape(PyObject* sizes, Items<int64_t>& shape) {
  shape = Items<int64_t>(PyTuple_Size(sizes));
  if (!shape.ok()) return PyErr_NoMemory() != nullptr;
  for (Py_ssize_t i = 0; i < shape.size(); ++i)
    shape[i] = PyLong_AsLongLong(PyTuple_GetItem(sizes, i));
  return !PyErr_Occurred();
}

// (number of the input, or -1; dtype and shape of it, whether it is changed; the constant)
bool read_leaf(PyObject* from, Leaf& leaf) {
  PyObject *shape, *constant;
  int is_mutated;
  if (!PyArg_ParseTuple(from, "iiO!pO", &leaf.input, &leaf.dtype, &PyTuple_Type, &shape,
                        &is_mutated, &constant))
    return false;
  leaf.constant = Ref::to(constant);
  leaf.is_mutated = is_mutated != 0;
  return read_shape(shape, leaf.shape);
}

// (dtype, shape, strides, arguments of what makes an array)
bool read_output(PyObject* from, Output& output) {
  PyObject *shape, *strides, *array;
  if (!PyArg_ParseTuple(from, "iO!O!O!", &output.dtype, &PyTuple_Type, &shape, &PyTuple_Type,
                        &strides, &PyTuple_Type, &array))
    return false;
  output.array_arguments = Ref::to(array);
  return read_shape(shape, output.shape) && read_shape(strides, output.strides);
}

// (number of the output, or -1; the constant)
bool read_result(PyObject* from, Result& result) {
  PyObject* constant;
  if (!PyArg_ParseTuple(from, "iO", &result.output, &constant)) return false;
  result.constant = Ref::to(constant);
  return true;
}

template <class T>
bool read_all(PyObject* from, Items<T>& items, bool (*read)(PyObject*, T&)) {
  items = Items<T>(PyTuple_Size(from));
  if (!items.ok()) return PyErr_NoMemory() != nullptr;
  for (Py_ssize_t i = 0; i < items.size(); ++i)
    if (!read(PyTuple_GetItem(from, i), items[i])) return false;
  return true;
}

// plan(sizes, leaves, outputs, results, build): what calls of positional arguments do.
PyObject* handle_plan(PyObject* self, PyObject* arguments) {
  PyObject *sizes, *leaves, *outputs, *results, *build;
  if (!PyArg_ParseTuple(arguments, "O!O!O!O!O", &PyTuple_Type, &sizes, &PyTuple_Type, &leaves,
                        &PyTuple_Type, &outputs, &PyTuple_Type, &results, &build))
    return nullptr;
  std::unique_ptr<Plan> plan(new (std::nothrow) Plan);
  if (plan == nullptr) return PyErr_NoMemory();
  if (!read_shape(sizes, plan->sizes) || !read_all(leaves, plan->leaves, read_leaf) ||
      !read_all(outputs, plan->outputs, read_output) ||
      !read_all(results, plan->results, read_result))
    return nullptr;
  for (const Leaf& leaf : plan->leaves)
    if (leaf.input >= plan->num_inputs) plan->num_inputs = leaf.input + 1;
  plan->build = Ref::to(build);
  auto& plans = handle_of(self).plans;
  plans.push_front(std::move(plan));
  if (plans.size() > Handle::kMaxPlans) plans.pop_back();
  Py_RETURN_NONE;
}

PyMethodDef handle_methods[] = {{"run", handle_run, METH_VARARGS, nullptr},
                                {"plan", handle_plan, METH_VARARGS, nullptr},
                                {"alone", handle_alone, METH_O, nullptr},
                                {}};
PyGetSetDef handle_attributes[] = {{"last_run_ms", handle_last_run_ms, nullptr, nullptr, nullptr},
                                   {}};
PyType_Slot handle_slots[] = {{Py_tp_new, reinterpret_cast<void*>(handle_new)},
                              {Py_tp_dealloc, reinterpret_cast<void*>(handle_dealloc)},
                              {Py_tp_methods, handle_methods},
                              {Py_tp_getset, handle_attributes},
                              {}};
PyType_Spec handle_spec = {"lathe._call.Handle", sizeof(HandleObject), 0, Py_TPFLAGS_DEFAULT,
                           handle_slots};

// ---- Caller: what Model is made of --------------------------------------------------------------

struct Caller {
  PyObject_HEAD;
  PyObject* planned;  // the handle whose plans a call may fit
};

// The result of the first plan that the arguments fit; null without an error when there is none.
Ref call_planned(Caller* self, PyObject* arguments) {
  if (self->planned == nullptr || Py_TYPE(self->planned) != handle_type) return Ref();
  const Ref owner = Ref::to(self->planned);  // while Python runs, another may take its place
  Handle& handle = handle_of(owner.get());
  const Py_ssize_t count = PyTuple_Size(arguments);
  Scratch<Argument> given(count);
  if (!given.ok()) return Ref(PyErr_NoMemory());
  for (Py_ssize_t i = 0; i < count; ++i) given[i].read(PyTuple_GetItem(arguments, i));
  for (size_t i = 0; i < handle.plans.size(); ++i) {
    const std::shared_ptr<Plan> plan = handle.plans[i];
    const Argument* like = nullptr;
    if (plan->fits(given, handle.has_streams, like)) return handle.call(*plan, given, like);
  }
  return Ref();
}

PyObject* caller_call(PyObject* self, PyObject* arguments, PyObject* keywords) {
  if (keywords == nullptr || PyDict_Size(keywords) == 0) {
    Ref result = call_planned(reinterpret_cast<Caller*>(self), arguments);
    if (result || PyErr_Occurred()) return result.release();
  }
  Ref call(PyObject_GetAttrString(self, "call"));
  return call ? PyObject_Call(call.get(), arguments, keywords) : nullptr;
}

void caller_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_XDECREF(reinterpret_cast<Caller*>(self)->planned);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

PyMemberDef caller_members[] = {{"planned", T_OBJECT, offsetof(Caller, planned), 0, nullptr}, {}};

PyType_Slot caller_slots[] = {{Py_tp_new, reinterpret_cast<void*>(PyType_GenericNew)},
                              {Py_tp_call, reinterpret_cast<void*>(caller_call)},
                              {Py_tp_dealloc, reinterpret_cast<void*>(caller_dealloc)},
                              {Py_tp_members, caller_members},
                              {}};
// Neither it nor a handle is in a circle of references: what they hold knows no model.
PyType_Spec caller_spec = {"lathe._call.Caller", sizeof(Caller), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, caller_slots};

// ---- the module ---------------------------------------------------------------------------------

void keep(PyObject*& place, PyObject* object) {
  Ref before(std::exchange(place, Ref::to(object).release()));
}

// use_arrays(numpy.ndarray, numpy.empty)
PyObject* use_arrays(PyObject* /*module*/, PyObject* arguments) {
  PyObject *type, *make;
  if (!PyArg_ParseTuple(arguments, "OO", &type, &make)) return nullptr;
  keep(frameworks.array_type, type);
  keep(frameworks.new_array, make);
  Py_RETURN_NONE;
}

// use_tensors(Tensor, Parameter, Tensor.is_neg, Tensor.__dlpack_c_exchange_api__). The last may be
// of a DLPack that is not known here: then calls with tensors go through Python.
PyObject* use_tensors(PyObject* /*module*/, PyObject* arguments) {
  PyObject *type, *parameter, *is_negated, *capsule;
  if (!PyArg_ParseTuple(arguments, "OOOO", &type, &parameter, &is_negated, &capsule))
    return nullptr;
  auto* exchange =
      static_cast<const DlExchange*>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
  if (exchange == nullptr) return nullptr;
  if (exchange->major != 1 || exchange->read == nullptr) Py_RETURN_NONE;
  keep(frameworks.tensor_type, type);
  keep(frameworks.parameter_type, parameter);
  keep(frameworks.is_negated, is_negated);
  frameworks.exchange = exchange;
  Py_RETURN_NONE;
}

// digest(array of pairs: an address, and how many bytes there, at most 8): a number that tells
// whether any of them has changed. The caller keeps the memory.
PyObject* digest(PyObject* /*module*/, PyObject* words) {
  Py_buffer buffer = {};
  if (PyObject_GetBuffer(words, &buffer, PyBUF_SIMPLE) != 0) return nullptr;
  const auto* pairs = static_cast<const uint64_t*>(buffer.buf);
  const Py_ssize_t count = buffer.len / Py_ssize_t(2 * sizeof(uint64_t));
  uint64_t mixed = 0xcbf29ce484222325;  // FNV-1a over words instead of bytes
  for (Py_ssize_t i = 0; i < count; ++i) {
    uint64_t word = 0;
    const size_t width = size_t(pairs[2 * i + 1]);
    std::memcpy(&word, address<const void*>(pairs[2 * i]), width < 8 ? width : 8);
    mixed = (mixed ^ word) * 0x100000001b3;
    mixed ^= mixed >> 29;  // a product alone never brings high bits down
  }
  PyBuffer_Release(&buffer);
  return PyLong_FromUnsignedLongLong(mixed);
}

PyMethodDef functions[] = {{"digest", digest, METH_O, nullptr},
                           {"use_arrays", use_arrays, METH_VARARGS, nullptr},
                           {"use_tensors", use_tensors, METH_VARARGS, nullptr},
                           {}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "lathe._call", nullptr, -1, functions};

}  // namespace
}  // namespace lathe::python

PyMODINIT_FUNC PyInit__call() {
  using namespace lathe::python;  // a function of C stands outside
  Ref module(PyModule_Create(&definition));
  Ref handle(PyType_FromSpec(&handle_spec)), caller(PyType_FromSpec(&caller_spec));
  if (!module || !handle || !caller ||
      PyModule_AddIntConstant(module.get(), "VERSION", kVersion) != 0 ||
      PyModule_AddObjectRef(module.get(), "Handle", handle.get()) != 0 ||
      PyModule_AddObjectRef(module.get(), "Caller", caller.get()) != 0)
    return nullptr;
  handle_type = reinterpret_cast<PyTypeObject*>(handle.release());
  return module.release();
}
