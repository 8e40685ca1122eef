/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The members of a module, borrowed: for tests in which nobody replaces them. */

#pragma once

#include <gtorch/gtorch.h>

static inline GTorchTensor *
test_parameter (gpointer module, const gchar *path)
{
  g_autoptr (GTorchParameter) parameter = gtorch_module_get_parameter (module, path, NULL);

  return GTORCH_TENSOR (parameter);
}

static inline GTorchTensor *
test_buffer (gpointer module, const gchar *path)
{
  g_autoptr (GTorchTensor) buffer = gtorch_module_get_buffer (module, path, NULL);

  return buffer;
}

static inline GTorchModule *
test_module (gpointer module, const gchar *path)
{
  g_autoptr (GTorchModule) child = gtorch_module_get_module (module, path, NULL);

  return child;
}
