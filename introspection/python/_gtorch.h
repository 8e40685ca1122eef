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
