/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The shape of a tensor: a tuple whose parts and sums are shapes, too, and that counts the elements. The
 * class in Python of the same name says the same; this one makes reading a shape as fast as a tuple. */

#define NO_IMPORT_PYGOBJECT

#include "_gtorch.h"

static PyTypeObject size_type;

gboolean
gt_is_size (PyObject *object)
{
  return Py_TYPE (object) == &size_type;
}

PyObject *
gt_size_new (const gint64 *sizes, gsize n)
{
  PyObject *self = size_type.tp_alloc (&size_type, n);
  gsize i;

  for (i = 0; self != NULL && i < n; i++)
    {
      PyObject *size = PyLong_FromLongLong (sizes[i]);

      if (size == NULL)
        Py_CLEAR (self);
      else
        PyTuple_SET_ITEM (self, i, size);
    }
  return self;
}

/* Makes a shape of a tuple, which is taken. */
static PyObject *
as_size (PyObject *tuple)
{
  PyObject *self;
  Py_ssize_t i, n;

  if (tuple == NULL || !PyTuple_Check (tuple))
    return tuple;
  n = PyTuple_GET_SIZE (tuple);
  self = size_type.tp_alloc (&size_type, n);
  for (i = 0; self != NULL && i < n; i++)
    PyTuple_SET_ITEM (self, i, Py_NewRef (PyTuple_GET_ITEM (tuple, i)));
  Py_DECREF (tuple);
  return self;
}

static PyObject *
size_create (PyTypeObject *type, PyObject *args, PyObject *options)
{
  PyObject *tuple = PyTuple_Type.tp_new (&PyTuple_Type, args, options);
  PyObject *whole;
  Py_ssize_t i;

  if (tuple == NULL)
    return NULL;
  whole = PyTuple_New (PyTuple_GET_SIZE (tuple));
  for (i = 0; whole != NULL && i < PyTuple_GET_SIZE (tuple); i++)
    {
      PyObject *size = PyNumber_Index (PyTuple_GET_ITEM (tuple, i));

      if (size == NULL)
        Py_CLEAR (whole);
      else
        PyTuple_SET_ITEM (whole, i, size);
    }
  Py_DECREF (tuple);
  return as_size (whole);
}

static PyObject *
size_numel (PyObject *self, PyObject *args)
{
  PyObject *product = PyLong_FromLong (1);
  Py_ssize_t i;

  for (i = 0; product != NULL && i < PyTuple_GET_SIZE (self); i++)
    {
      PyObject *next = PyNumber_Multiply (product, PyTuple_GET_ITEM (self, i));

      Py_DECREF (product);
      product = next;
    }
  return product;
}

static PyObject *
size_show (PyObject *self)
{
  PyObject *list = PySequence_List (self);
  PyObject *text = list != NULL ? PyUnicode_FromFormat ("torch.Size(%R)", list) : NULL;

  Py_XDECREF (list);
  return text;
}

static PyObject *
size_reduce (PyObject *self, PyObject *args)
{
  PyObject *module = PyImport_ImportModule ("gi.overrides._gtorch_unpickle");
  PyObject *make = module != NULL ? PyObject_GetAttrString (module, "size") : NULL;

  Py_XDECREF (module);
  return make != NULL ? Py_BuildValue ("N(N)", make, PySequence_Tuple (self)) : NULL;
}

static PyObject *
size_concatenate (PyObject *self, PyObject *other)
{
  if (!PyTuple_Check (self) || !PyTuple_Check (other))
    return PyErr_Format (PyExc_TypeError, "a shape is joined to a tuple, not to %s",
                         Py_TYPE (PyTuple_Check (self) ? other : self)->tp_name);
  return as_size (PyTuple_Type.tp_as_sequence->sq_concat (self, other));
}

/* For the shape on the right of a tuple. */
static PyObject *
size_add (PyObject *self, PyObject *other)
{
  if (!PyTuple_Check (self) || !PyTuple_Check (other))
    Py_RETURN_NOTIMPLEMENTED;
  return size_concatenate (self, other);
}

static PyObject *
size_repeat (PyObject *self, Py_ssize_t n)
{
  return as_size (PyTuple_Type.tp_as_sequence->sq_repeat (self, n));
}

static PyObject *
size_subscript (PyObject *self, PyObject *key)
{
  PyObject *found = PyTuple_Type.tp_as_mapping->mp_subscript (self, key);

  return PySlice_Check (key) ? as_size (found) : found;
}

static PyNumberMethods size_number = {
  .nb_add = size_add,
};

static PySequenceMethods size_sequence = {
  .sq_concat = size_concatenate,
  .sq_repeat = size_repeat,
};

static PyMappingMethods size_mapping = {
  .mp_subscript = size_subscript,
};

static PyMethodDef size_methods[] = {
  { "numel", size_numel, METH_NOARGS,
    "numel(): the number of elements of a tensor of this shape." },
  { "__reduce__", size_reduce, METH_NOARGS, NULL },
  { NULL, NULL, 0, NULL },
};

static PyTypeObject size_type = {
  PyVarObject_HEAD_INIT (NULL, 0).tp_name = "torch.Size",
  .tp_doc = "The shape of a tensor.",
  .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
  .tp_base = &PyTuple_Type,
  .tp_new = size_create,
  .tp_repr = size_show,
  .tp_as_number = &size_number,
  .tp_as_sequence = &size_sequence,
  .tp_as_mapping = &size_mapping,
  .tp_methods = size_methods,
};

gboolean
gt_size_init (PyObject *module)
{
  return PyModule_AddType (module, &size_type) >= 0;
}
