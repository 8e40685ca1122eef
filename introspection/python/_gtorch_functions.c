/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Methods of tensors as functions of the namespace. GTorch.softmax (x, 1) is Tensor.softmax (x, 1),
 * which is called at once; a function in Python gets calls whose first argument is given by name or is
 * a number. Functions that create tensors do so in C, unless their arguments are unusual. */

#define NO_IMPORT_PYGOBJECT

#include "_gtorch.h"

#include <structmember.h>

typedef struct
{
  PyObject_HEAD vectorcallfunc call;
  PyObject *method;
  PyObject *otherwise;
  GtCreator create; /* or NULL */
} Function;

static PyObject *
function_call (PyObject *object, PyObject *const *args, size_t n_args, PyObject *names)
{
  const Function *self = (const Function *) object;
  PyObject *first = PyVectorcall_NARGS (n_args) > 0 ? args[0] : NULL;
  PyObject *made;

  if (self->create != NULL)
    {
      made = self->create (args, PyVectorcall_NARGS (n_args), names);
      if (made != NULL || PyErr_Occurred ())
        return made;
    }
  return gt_settle (PyObject_Vectorcall (
      first != NULL && gt_is_tensor (first) ? self->method : self->otherwise, args, n_args, names));
}

static PyObject *
function_new (PyTypeObject *type, PyObject *args, PyObject *options)
{
  PyObject *method, *otherwise;
  const char *name = NULL;
  Function *self;

  if (!PyArg_ParseTuple (args, "OO|s", &method, &otherwise, &name))
    return NULL;
  self = PyObject_GC_New (Function, type);
  if (self == NULL)
    return NULL;
  self->call = function_call;
  self->method = Py_NewRef (method);
  self->otherwise = Py_NewRef (otherwise);
  self->create = name != NULL ? gt_creator (name) : NULL;
  PyObject_GC_Track (self);
  return (PyObject *) self;
}

static int
function_traverse (PyObject *object, visitproc visit, void *arg)
{
  const Function *self = (const Function *) object;

  Py_VISIT (self->method);
  Py_VISIT (self->otherwise);
  return 0;
}

static int
function_clear (PyObject *object)
{
  Function *self = (Function *) object;

  Py_CLEAR (self->method);
  Py_CLEAR (self->otherwise);
  return 0;
}

static void
function_free (PyObject *object)
{
  PyObject_GC_UnTrack (object);
  function_clear (object);
  PyObject_GC_Del (object);
}

/* Its name and its documentation are those of the function in Python. */
static PyObject *
function_get (PyObject *object, void *name)
{
  PyObject *found = PyObject_GetAttrString (((Function *) object)->otherwise, name);

  if (found != NULL || strcmp (name, "__qualname__") != 0)
    return found;
  PyErr_Clear (); /* PyGObject's functions have no such name */
  return PyObject_GetAttrString (((Function *) object)->otherwise, "__name__");
}

static PyObject *
function_get_module (PyObject *object, void *data)
{
  return PyUnicode_FromString ("gi.repository.GTorch");
}

/* What inspect asks for: the arguments are known to a module that is imported only then. */
static PyObject *
function_get_signature (PyObject *object, void *form)
{
  const Function *self = (const Function *) object;
  PyObject *module = PyImport_ImportModule ("gi.overrides._gtorch_described");
  PyObject *name, *signature = NULL, *text;

  name = module != NULL ? function_get (object, (void *) "__name__") : NULL;
  if (name != NULL)
    signature =
        PyObject_CallMethod (module, "signature_of", "OOO", name, self->method, self->otherwise);
  Py_XDECREF (name);
  Py_XDECREF (module);
  if (signature == NULL || form == NULL)
    return signature;
  text = PyObject_Str (signature);
  Py_DECREF (signature);
  return text;
}

/* An attribute of a class is as it is: like functions in C, it has no object that it belongs to.
 * Python's help () takes what has this slot for a function. */
static PyObject *
function_bind (PyObject *object, PyObject *owner, PyObject *type)
{
  return Py_NewRef (object);
}

static PyObject *
function_show (PyObject *object)
{
  PyObject *name = function_get (object, (void *) "__name__");
  PyObject *text = name != NULL ? PyUnicode_FromFormat ("<function GTorch.%U>", name) : NULL;

  Py_XDECREF (name);
  return text;
}

/* Pickles it as the name in its module. */
static PyObject *
function_reduce (PyObject *object, PyObject *args)
{
  return function_get (object, (void *) "__name__");
}

static PyGetSetDef function_properties[] = {
  { "__name__", function_get, NULL, NULL, (void *) "__name__" },
  { "__qualname__", function_get, NULL, NULL, (void *) "__qualname__" },
  { "__doc__", function_get, NULL, NULL, (void *) "__doc__" },
  { "__module__", function_get_module, NULL, NULL, NULL },
  { "__signature__", function_get_signature, NULL, NULL, NULL },
  { "__text_signature__", function_get_signature, NULL, NULL, (void *) "text" },
  { NULL, NULL, NULL, NULL, NULL },
};

static PyMethodDef function_methods[] = {
  { "__reduce__", function_reduce, METH_NOARGS, NULL },
  { NULL, NULL, 0, NULL },
};

static PyTypeObject function_type = {
  PyVarObject_HEAD_INIT (NULL, 0).tp_name = "gi.overrides._gtorch.Function",
  .tp_basicsize = sizeof (Function),
  .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
  .tp_vectorcall_offset = offsetof (Function, call),
  .tp_call = PyVectorcall_Call,
  .tp_new = function_new,
  .tp_dealloc = function_free,
  .tp_traverse = function_traverse,
  .tp_clear = function_clear,
  .tp_repr = function_show,
  .tp_descr_get = function_bind,
  .tp_getset = function_properties,
  .tp_methods = function_methods,
};

/* forward(module, input): what a module computes of a tensor. Hooks and modules in Python are called by C. */
static PyObject *
forward (PyObject *module, PyObject *const *args, Py_ssize_t n)
{
  GTorchTensor *output;
  GError *error = NULL;
  GObject *self;

  if (n != 2 || !PyObject_TypeCheck (args[0], &PyGObject_Type) || !gt_is_tensor (args[1])
      || pygobject_get (args[1]) == NULL)
    return PyErr_Format (PyExc_TypeError, "forward() takes a module and a tensor");
  self = pygobject_get (args[0]);
  if (self == NULL || !GTORCH_IS_MODULE (self))
    return PyErr_Format (PyExc_RuntimeError, "object at %p of type %s is not initialized", args[0],
                         Py_TYPE (args[0])->tp_name);
  Py_BEGIN_ALLOW_THREADS output =
      gtorch_module_forward (GTORCH_MODULE (self), GTORCH_TENSOR (pygobject_get (args[1])), &error);
  Py_END_ALLOW_THREADS return gt_result (output, &error);
}

static PyMethodDef functions[] = {
  { "forward", (PyCFunction) (void (*) (void)) forward, METH_FASTCALL,
    "forward(module, input): the output of a module." },
  { NULL, NULL, 0, NULL },
};

gboolean
gt_functions_init (PyObject *module)
{
  return PyModule_AddType (module, &function_type) >= 0
         && PyModule_AddFunctions (module, functions) >= 0;
}
