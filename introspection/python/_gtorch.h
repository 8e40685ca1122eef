/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <Python.h>

#include <pygobject.h>

#include <gtorch/gtorch.h>

/* The name under which PyGObject stores the wrapper of an object; 0 if it differs from the expected one. */
extern GQuark gt_wrapper_quark;

/* Adds the functions of _gtorch_collect.c to the module. */
gboolean gt_collect_init (PyObject *module);

/* Adds the functions of _gtorch_calls.c to the module. */
gboolean gt_calls_init (PyObject *module);

/* Adds the class of _gtorch_functions.c to the module. */
gboolean gt_functions_init (PyObject *module);

/* Tells whether it is an object of the class Tensor. */
gboolean gt_is_tensor (PyObject *object);

/* Calls it with arguments, which are taken; NULL with the error. With NULL for the arguments it reports the
 * exception that is set. */
PyObject *gt_call (PyObject *function, PyObject *arguments, GError **error);

/* Returns a new reference, or NULL if the value is no tensor. */
GTorchTensor *gt_dup_tensor (PyObject *value);

/* Releases a value of Python's, from any thread. */
void gt_unref (gpointer data);
