/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Functions of Python's that C calls, through PyGObject or by itself.
 *
 * These report each exception as an error of GLib's, see passing () in _gtorch_errors.py. What Python raises
 * before the first line of a function, as KeyboardInterrupt for a signal that has come while C computed, no
 * `try` in that function sees, and PyGObject would print it. A guard does: it gives such an exception to a
 * second function, which raises the error. */

#define NO_IMPORT_PYGOBJECT

#include "_gtorch.h"

#define TRIES 4 /* further signals may come while the second function is called */

typedef struct
{
  PyObject_HEAD;
  PyObject *function, *rescue, *failure; /* the failure is the class of the errors of GLib's */
  PyObject *dict;
} Guard;

static int
guard_traverse (PyObject *object, visitproc visit, void *arg)
{
  Guard *self = (Guard *) object;

  Py_VISIT (self->function);
  Py_VISIT (self->rescue);
  Py_VISIT (self->failure);
  Py_VISIT (self->dict);
  return 0;
}

static int
guard_clear (PyObject *object)
{
  Guard *self = (Guard *) object;

  Py_CLEAR (self->function);
  Py_CLEAR (self->rescue);
  Py_CLEAR (self->failure);
  Py_CLEAR (self->dict);
  return 0;
}

static void
guard_dealloc (PyObject *object)
{
  PyObject_GC_UnTrack (object);
  guard_clear (object);
  Py_TYPE (object)->tp_free (object);
}

static PyObject *
guard_new (PyTypeObject *type, PyObject *arguments, PyObject *names)
{
  PyObject *function, *rescue, *failure;
  Guard *self;

  if (names != NULL && PyDict_GET_SIZE (names) > 0)
    {
      PyErr_SetString (PyExc_TypeError, "Guard() takes no arguments by name");
      return NULL;
    }
  if (!PyArg_ParseTuple (arguments, "OOO:Guard", &function, &rescue, &failure))
    return NULL;
  self = (Guard *) type->tp_alloc (type, 0);
  if (self == NULL)
    return NULL;
  self->function = Py_NewRef (function);
  self->rescue = Py_NewRef (rescue);
  self->failure = Py_NewRef (failure);
  return (PyObject *) self;
}

static PyObject *
guard_call (PyObject *object, PyObject *arguments, PyObject *names)
{
  Guard *self = (Guard *) object;
  PyObject *result, *type, *error, *traceback;
  gint i;

  if (self->function == NULL) /* the collector has cleared it */
    Py_RETURN_NONE;
  result = PyObject_Call (self->function, arguments, names);
  for (i = 0; result == NULL && i < TRIES && !PyErr_ExceptionMatches (self->failure); i++)
    {
      PyErr_Fetch (&type, &error, &traceback);
      PyErr_NormalizeException (&type, &error, &traceback);
      if (traceback != NULL)
        PyException_SetTraceback (error, traceback);
      result = PyObject_CallOneArg (self->rescue, error);
      Py_XDECREF (type);
      Py_XDECREF (error);
      Py_XDECREF (traceback);
    }
  return result;
}

/* As a function in a class, it is a method. */
static PyObject *
guard_get (PyObject *self, PyObject *owner, PyObject *type)
{
  return owner == NULL || owner == Py_None ? Py_NewRef (self) : PyMethod_New (self, owner);
}

static PyGetSetDef guard_attributes[] = {
  { "__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL },
  { NULL },
};

static PyTypeObject guard_type = {
  PyVarObject_HEAD_INIT (NULL, 0).tp_name = "gi.overrides._gtorch.Guard",
  .tp_doc = "Guard(function, rescue, failure): calls the function, and rescue(exception) for what "
            "it raises "
            "that is no failure.",
  .tp_basicsize = sizeof (Guard),
  .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
  .tp_dictoffset = offsetof (Guard, dict),
  .tp_new = guard_new,
  .tp_call = guard_call,
  .tp_descr_get = guard_get,
  .tp_getset = guard_attributes,
  .tp_traverse = guard_traverse,
  .tp_clear = guard_clear,
  .tp_dealloc = guard_dealloc,
};

gboolean
gt_guard_init (PyObject *module)
{
  return PyType_Ready (&guard_type) == 0
         && PyModule_AddObjectRef (module, "Guard", (PyObject *) &guard_type) == 0;
}
