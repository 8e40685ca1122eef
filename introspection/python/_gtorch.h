/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <Python.h>

#include <pygobject.h>

#include <gtorch/gtorch.h>

#define MAX_INTS 32

/* Operations on at least so many elements take long enough to let other threads run. */
#define LARGE (1 << 16)

/* Whole numbers that Python has given. */
typedef struct
{
  gsize n;
  gint64 data[MAX_INTS];
} Ints;

/* Makes a tensor of the usual arguments; for others, NULL without an exception. */
typedef PyObject *(*GtCreator) (PyObject *const *args, Py_ssize_t n_args, PyObject *names);

/* The name under which PyGObject stores the wrapper of an object; 0 if it differs from the expected one. */
extern GQuark gt_wrapper_quark;

/* Adds the functions of _gtorch_collect.c to the module. */
gboolean gt_collect_init (PyObject *module);

/* Adds the functions of _gtorch_calls.c to the module. */
gboolean gt_calls_init (PyObject *module);

/* Adds the class of _gtorch_functions.c to the module. */
gboolean gt_functions_init (PyObject *module);

/* Adds the class of _gtorch_guard.c to the module. */
gboolean gt_guard_init (PyObject *module);

/* Adds the class of _gtorch_size.c to the module. */
gboolean gt_size_init (PyObject *module);

/* Makes a shape. */
PyObject *gt_size_new (const gint64 *sizes, gsize n);

/* Tells whether it is a shape. */
gboolean gt_is_size (PyObject *object);

/* Adds the functions of _gtorch_blocks.c to the module. */
gboolean gt_blocks_init (PyObject *module);

/* Returns the function of the name in _gtorch_create.c, or NULL. */
GtCreator gt_creator (const char *name);

/* Each of these reads a value of Python's, or returns FALSE for what is left to the function in Python. */
gboolean gt_int (PyObject *object, gint64 *value);
gboolean gt_ints (PyObject *object, Ints *ints);
gboolean gt_dtype (PyObject *object, gint *value);

/* Lets the exception that is set, if one is, be found by its own class. PyGObject says GLib.Error of all, and
 * up to Python 3.11 what asks in C, as loops over __getitem__() do, sees nothing else. Returns @result. */
PyObject *gt_settle (PyObject *result);

/* Raises the error, which is taken, if there is one; tells whether there was. */
gboolean gt_raise (GError **error);

/* Returns the object of a new tensor, or NULL with the exception. */
PyObject *gt_result (GTorchTensor *tensor, GError **error);

/* Tells whether it is an object of the class Tensor. */
gboolean gt_is_tensor (PyObject *object);

/* Calls it with arguments, which are taken; NULL with the error. With NULL for the arguments it reports the
 * exception that is set. */
PyObject *gt_call (PyObject *function, PyObject *arguments, GError **error);

/* Returns a new reference, or NULL if the value is no tensor. */
GTorchTensor *gt_dup_tensor (PyObject *value);

/* Releases a value of Python's, from any thread. */
void gt_unref (gpointer data);

/* Whether a call for a device lets other threads of Python's run, if there are some. A launch on a GPU waits
 * where the queue is full and where a kernel is loaded, maybe for what another thread is about to launch. */
static inline gboolean
gt_lets_run (GTorchDevice *device)
{
  return device != gtorch_device_cpu ()
         && PyThreadState_Next (PyInterpreterState_ThreadHead (PyInterpreterState_Get ())) != NULL;
}

static inline gboolean
gt_takes_long (GTorchTensor *tensor)
{
  return gtorch_tensor_get_numel (tensor) >= LARGE
         || gt_lets_run (gtorch_tensor_get_device (tensor));
}
