/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "base/gtorch-error-private.h"

#include <string.h>

/**
 * gtorch_error_quark:
 *
 * Gets the domain of all errors of the library.
 *
 * Returns: the quark
 *
 * Since: 0.1
 */
GQuark
gtorch_error_quark (void)
{
  static gsize quark; /* threads may ask at once, which G_DEFINE_QUARK does not order */

  if (g_once_init_enter (&quark))
    g_once_init_leave (&quark, g_quark_from_static_string ("gtorch-error-quark"));
  return (GQuark) quark;
}

#define VALUE(name, nick)                            \
  {                                                  \
    GTORCH_ERROR_##name, "GTORCH_ERROR_" #name, nick \
  }

GType
gtorch_error_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
    VALUE (FAILED, "failed"),
    VALUE (SHAPE, "shape"),
    VALUE (DTYPE, "dtype"),
    VALUE (DEVICE, "device"),
    VALUE (DEVICE_MISMATCH, "device-mismatch"),
    VALUE (INDEX, "index"),
    VALUE (INVALID, "invalid"),
    VALUE (OUT_OF_MEMORY, "out-of-memory"),
    VALUE (RELEASED, "released"),
    VALUE (AUTOGRAD, "autograd"),
    VALUE (CAPTURE, "capture"),
    VALUE (NOT_SUPPORTED, "not-supported"),
    VALUE (NOT_FOUND, "not-found"),
    VALUE (FORMAT, "format"),
    VALUE (CUDA, "cuda"),
    VALUE (FORKED, "forked"),
    VALUE (DEVICE_LOST, "device-lost"),
    { 0, NULL, NULL },
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type, g_enum_register_static ("GTorchError", values));
  return type;
}

/* --- messages that begin with the name of an operation --- */

void
gtorch_error_set_op (GError **error, const gchar *op)
{
  const gchar *message, *rest;
  gchar *renamed;
  gsize length;

  if (error == NULL || *error == NULL || (*error)->domain != GTORCH_ERROR)
    return;
  message = (*error)->message;
  length = strspn (message, "abcdefghijklmnopqrstuvwxyz0123456789_");
  rest = g_str_has_prefix (message + length, ": ") ? message + length + 2 : message;
  renamed = g_strdup_printf ("%s: %s", op, rest);
  g_free ((*error)->message);
  (*error)->message = renamed;
}

void
gtorch_error_name_op (GError **error, const gchar *op)
{
  const gchar *message;

  if (error == NULL || *error == NULL || (*error)->domain != GTORCH_ERROR)
    return;
  message = (*error)->message;
  if ((*error)->code == GTORCH_ERROR_OUT_OF_MEMORY
      || ((*error)->code == GTORCH_ERROR_SHAPE
          && !g_str_has_prefix (message + strspn (message, "abcdefghijklmnopqrstuvwxyz0123456789_"),
                                ": ")))
    gtorch_error_set_op (error, op);
}
