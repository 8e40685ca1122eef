/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* with stream: … A block that began in one thread may end in another, as the steps of a generator may
 * run in several; it is the last one of the thread that ends, or else the last of the stream. The list
 * is read and written with the GIL held. */

#define NO_IMPORT_PYGOBJECT

#include "_gtorch.h"

typedef struct
{
  GTorchStream *stream; /* not owned: the guard keeps it */
  GTorchStreamGuard *guard;
  GThread *thread;
} Block;

static GArray *blocks;

static PyObject *
stream_enter (PyObject *self, PyObject *unused)
{
  GTorchStream *stream = (GTorchStream *) pygobject_get (self);
  Block block;

  if (stream == NULL)
    return PyErr_Format (PyExc_RuntimeError, "the stream is not initialized");
  block.stream = stream;
  block.guard = gtorch_stream_guard_new (stream);
  block.thread = g_thread_self ();
  g_array_append_val (blocks, block);
  return Py_NewRef (self);
}

static PyObject *
stream_exit (PyObject *self, PyObject *args)
{
  GTorchStream *stream = (GTorchStream *) pygobject_get (self);
  const GThread *thread = g_thread_self ();
  GTorchStreamGuard *guard;
  gint found = -1;

  for (gint i = (gint) blocks->len - 1; i >= 0; i--)
    {
      const Block *block = &g_array_index (blocks, Block, i);

      if (block->stream != stream)
        continue;
      if (found < 0 || block->thread == thread)
        found = i;
      if (block->thread == thread)
        break;
    }
  if (found < 0)
    return PyErr_Format (PyExc_RuntimeError, "%s: the block has ended, or was never begun",
                         Py_TYPE (self)->tp_name);
  guard = g_array_index (blocks, Block, found).guard;
  g_array_remove_index (blocks, found);
  gtorch_stream_guard_end (guard);
  gtorch_stream_guard_unref (guard);
  Py_RETURN_FALSE;
}

static PyMethodDef methods[] = {
  { "__enter__", stream_enter, METH_NOARGS,
    "__enter__($self, /)\n--\n\nSends the work of this thread to the stream." },
  { "__exit__", stream_exit, METH_VARARGS,
    "__exit__($self, /, *exception)\n--\n\nSends it to where it went before." },
};

/* Gives a class of streams its methods for blocks. */
static PyObject *
add_blocks (PyObject *module, PyObject *type)
{
  if (!PyType_Check (type))
    return PyErr_Format (PyExc_TypeError, "a class was expected");
  for (gsize i = 0; i < G_N_ELEMENTS (methods); i++)
    {
      PyObject *method = PyDescr_NewMethod ((PyTypeObject *) type, &methods[i]);
      int status = method != NULL ? PyObject_SetAttrString (type, methods[i].ml_name, method) : -1;

      Py_XDECREF (method);
      if (status < 0)
        return NULL;
    }
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
  { "add_blocks", add_blocks, METH_O, "add_blocks(type): lets `with stream` be done in C." },
  { NULL, NULL, 0, NULL },
};

gboolean
gt_blocks_init (PyObject *module)
{
  blocks = g_array_new (FALSE, FALSE, sizeof (Block));
  return PyModule_AddFunctions (module, functions) >= 0;
}
