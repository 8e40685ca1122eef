/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <Python.h>

#include <pygobject.h>

#include <gtorch/gtorch.h>

/* Under which PyGObject keeps the wrapper of an object; 0: not as it was expected. */
extern GQuark gt_wrapper_quark;

/* Adds what is in _gtorch_collect.c to the module. */
gboolean gt_collect_init (PyObject *module);
