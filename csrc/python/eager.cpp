// torch_reduce._eager: calls of the operators with sum's signature from Python, without the dispatcher's boxed arguments.
//
// The packet torch.ops.gpureduce.sum, for one, calls torch's own binding, which finds the overload and converts every argument and
// default by the schema, about as much work as all the rest of a small sum. Here a plain call, of a plain tensor with
// plain arguments and nothing that watches or traces, goes to the dispatcher as it is. Every other call, wrong ones
// included, goes to torch's binding, which does what it always does.
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "../torch/operators.h"

namespace gpureduce::python {
namespace {

// --- arguments ------------------------------------------------------------------------------------------------------

constexpr const char* kNames[] = {"self", "dim", "keepdim", "dtype", "accumulate"};
constexpr int kPositional = 3;  // the others are by keyword only
constexpr int kArguments = int(std::size(kNames));
PyObject* names[kArguments];  // interned
PyObject* name_of_op;

// The objects of a call by name; null where it has none. False if it has one too many.
bool assign(PyObject* args, PyObject* kwargs, PyObject* (&given)[kArguments]) {
    Py_ssize_t const positional = PyTuple_GET_SIZE(args);
    if (positional > kPositional) return false;
    for (Py_ssize_t i = 0; i < positional; ++i) given[i] = PyTuple_GET_ITEM(args, i);
    if (kwargs == nullptr) return true;
    Py_ssize_t place = 0;
    PyObject *key, *value;
    while (PyDict_Next(kwargs, &place, &key, &value)) {
        auto const* const found = std::find(names, names + kArguments, key);  // names in source code are interned, too
        if (found == names + kArguments || given[found - names] != nullptr) return false;
        given[found - names] = value;
    }
    return true;
}

bool is_given(PyObject* object) { return object != nullptr && object != Py_None; }

// Each parse_ function takes an object of the one type that is plain, and returns false for all others.

bool parse_size(PyObject* object, int64_t& value) {
    if (!PyLong_CheckExact(object)) return false;
    int overflow = 0;
    value = PyLong_AsLongLongAndOverflow(object, &overflow);
    return overflow == 0;
}

struct Dims {
    std::array<int64_t, 64> value;
    size_t count = 0;
    bool given = false;

    at::OptionalIntArrayRef get() const {
        return given ? at::OptionalIntArrayRef(at::IntArrayRef(value.data(), count)) : std::nullopt;
    }
};

bool parse_dims(PyObject* object, Dims& dims) {
    if (!is_given(object)) return true;
    dims.given = true;
    dims.count = 1;
    if (parse_size(object, dims.value[0])) return true;
    if (!PyList_CheckExact(object) && !PyTuple_CheckExact(object)) return false;
    dims.count = size_t(PySequence_Fast_GET_SIZE(object));
    if (dims.count > dims.value.size()) return false;
    PyObject** const items = PySequence_Fast_ITEMS(object);
    for (size_t i = 0; i < dims.count; ++i)
        if (!parse_size(items[i], dims.value[i])) return false;
    return true;
}

bool parse_bool(PyObject* object, bool& value) {
    value = object == Py_True;
    return object == nullptr || object == Py_True || object == Py_False;
}

bool parse_dtype(PyObject* object, std::optional<at::ScalarType>& value) {
    if (!is_given(object)) return true;
    if (!THPDtype_Check(object)) return false;
    value = reinterpret_cast<THPDtype*>(object)->scalar_type;
    return true;
}

bool parse_string(PyObject* object, std::optional<std::string_view>& value) {
    if (!is_given(object)) return true;
    if (!PyUnicode_CheckExact(object)) return false;
    Py_ssize_t length = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(object, &length);
    if (text == nullptr)
        PyErr_Clear();
    else
        value.emplace(text, size_t(length));
    return text != nullptr;
}

// --- the call -------------------------------------------------------------------------------------------------------

// Whether a mode of torch function, torch dispatch, functorch, functionalization or tracing looks at calls of this
// thread. All but the first put keys of theirs into the thread's set.
bool is_watched() {
    auto const included = c10::impl::tls_local_dispatch_key_set().included_;
    return !(included - c10::default_included_set).empty() || at::impl::torch_function_mode_enabled();
}

struct WithoutGil {
    PyThreadState* state = PyEval_SaveThread();
    ~WithoutGil() { PyEval_RestoreThread(state); }
};

// Calls torch's binding, which the packet may have exchanged meanwhile.
PyObject* call_torch(PyObject* packet, PyObject* args, PyObject* kwargs) {
    PyObject* const op = PyObject_GetAttr(packet, name_of_op);
    if (op == nullptr) return nullptr;
    PyObject* const result = PyObject_Call(op, args, kwargs);
    Py_DECREF(op);
    return result;
}

template <size_t Row>
PyObject* call(PyObject* packet, PyObject* args, PyObject* kwargs) {
    PyObject* given[kArguments] = {};
    Dims dims;
    bool keepdim = false;
    std::optional<at::ScalarType> dtype;
    std::optional<std::string_view> accumulate;
    bool const plain = assign(args, kwargs, given) && given[0] != nullptr && THPVariable_CheckExact(given[0]) &&
                       parse_dims(given[1], dims) && parse_bool(given[2], keepdim) && parse_dtype(given[3], dtype) &&
                       parse_string(given[4], accumulate) && !is_watched();
    if (!plain) return call_torch(packet, args, kwargs);
    try {
        at::Tensor const self = THPVariable_Unpack(given[0]);  // its own reference, for other threads run meanwhile
        at::Tensor result = [&] {
            WithoutGil const guard;
            return binding::handle<Row>().call(self, dims.get(), keepdim, dtype, accumulate);
        }();
        return THPVariable_Wrap(std::move(result));
    } catch (...) {
        torch::translate_exception_to_python(std::current_exception());
        return nullptr;
    }
}

// --- the module -----------------------------------------------------------------------------------------------------

// A subclass of the packets' class whose calls are calls of the operator of that name; None if there is none with sum's
// signature. The call is a slot of the type, not an attribute that Python would look up each time.
PyObject* direct_class(PyObject*, PyObject* args) {
    PyObject* base;
    const char* wanted;
    if (!PyArg_ParseTuple(args, "Os", &base, &wanted)) return nullptr;
    void* slot = nullptr;
    binding::for_every_row([&](auto row) {
        if constexpr (binding::kOperators[row].signature == binding::Signature::additive)
            if (binding::kOperators[row].name == std::string_view(wanted)) slot = reinterpret_cast<void*>(call<row>);
    });
    if (slot == nullptr) Py_RETURN_NONE;
    PyType_Slot slots[] = {{Py_tp_call, slot}, {0, nullptr}};
    PyType_Spec spec = {"torch._ops.OpOverloadPacket", 0, 0, Py_TPFLAGS_DEFAULT, slots};
    PyObject* const bases = PyTuple_Pack(1, base);
    if (bases == nullptr) return nullptr;
    PyObject* const type = PyType_FromSpecWithBases(&spec, bases);
    Py_DECREF(bases);
    return type;
}

PyMethodDef methods[] = {{"direct_class", direct_class, METH_VARARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_eager", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

bool intern_names() {
    for (int i = 0; i < kArguments; ++i)
        if ((names[i] = PyUnicode_InternFromString(kNames[i])) == nullptr) return false;
    name_of_op = PyUnicode_InternFromString("_op");
    return name_of_op != nullptr;
}

}  // namespace
}  // namespace gpureduce::python

PyMODINIT_FUNC PyInit__eager() {
    using namespace gpureduce::python;
    return intern_names() ? PyModule_Create(&definition) : nullptr;
}
