/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Methods of tensors as functions of the namespace. GTorch.softmax (x, 1) is Tensor.softmax (x, 1), which
 * is called at once; a function in Python gets calls whose first argument is given by name or is a number. */

#define NO_IMPORT_PYGOBJECT

#include "_gtorch.h"

#include <structmember.h>

typedef struct
{
  PyObject_HEAD vectorcallfunc call;
  PyObject *method;
  PyObject *otherwise;
} Function;

static PyObject *
function_call (PyObject *object, PyObject *const *args, size_t n_args, PyObject *names)
{
  const Function *self = (const Function *) object;
  PyObject *first = PyVectorcall_NARGS (n_args) > 0 ? args[0] : NULL;

  return PyObject_Vectorcall (first != NULL && gt_is_tensor (first) ? self->method
                                                                    : self->otherwise,
                              args, n_args, names);
}

static PyObject *
function_new (PyTypeObject *type, PyObject *args, PyObject *options)
{
  PyObject *method, *otherwise;
  Function *self;

  if (!PyArg_ParseTuple (args, "OO", &method, &otherwise))
    return NULL;
  self = PyObject_GC_New (Function, type);
  if (self == NULL)
    return NULL;
  self->call = function_call;
  self->method = Py_NewRef (method);
  self->otherwise = Py_NewRef (otherwise);
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
  return PyObject_GetAttrString (((Function *) object)->otherwise, name);
}

static PyObject *
function_get_module (PyObject *object, void *data)
{
  return PyUnicode_FromString ("gi.repository.GTorch");
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
  .tp_getset = function_properties,
  .tp_methods = function_methods,
};

gboolean
gt_functions_init (PyObject *module)
{
  return PyModule_AddType (module, &function_type) >= 0;
}
