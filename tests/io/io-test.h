/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What the tests of readers share. */

#pragma once

#include <gtorch/gtorch.h>
#include <string.h>

static inline GFile *
data_file (const gchar *name)
{
  g_autofree gchar *path = g_test_build_filename (G_TEST_DIST, "io", "data", name, NULL);

  return g_file_new_for_path (path);
}

static inline GBytes *
data_bytes (const gchar *name)
{
  g_autoptr (GFile) file = data_file (name);
  g_autoptr (GError) error = NULL;
  GBytes *bytes = g_file_load_bytes (file, NULL, NULL, &error);

  g_assert_no_error (error);
  return bytes;
}

/* Compares all elements, in C order; of complex numbers real and imaginary parts. */
static inline void
assert_values (GTorchTensor *tensor, const gdouble *values, gsize n)
{
  g_autoptr (GError) error = NULL;
  g_autofree gdouble *got = NULL;
  gsize n_got = 0;

  g_assert_nonnull (tensor);
  got = gtorch_tensor_to_doubles (tensor, &n_got, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (n_got, ==, n);
  for (gsize i = 0; i < n; i++)
    g_assert_true (got[i] == values[i] || (got[i] != got[i] && values[i] != values[i]));
}

#define VALUES(...) \
  (const gdouble[]){ __VA_ARGS__ }, sizeof ((const gdouble[]){ __VA_ARGS__ }) / sizeof (gdouble)

static inline void
assert_shape (GTorchTensor *tensor, const gchar *shape)
{
  gsize n_dims;
  const gint64 *sizes = gtorch_tensor_get_shape (tensor, &n_dims);
  g_autoptr (GString) text = g_string_new (NULL);

  for (gsize i = 0; i < n_dims; i++)
    g_string_append_printf (text, i > 0 ? ",%d" : "%d", (gint) sizes[i]);
  g_assert_cmpstr (text->str, ==, shape);
}

/* A stream that cannot seek. */
static inline GInputStream *
pipe_of (GBytes *bytes)
{
  g_autoptr (GInputStream) stream = g_memory_input_stream_new_from_bytes (bytes);
  g_autoptr (GConverter) same =
      G_CONVERTER (g_charset_converter_new ("ISO-8859-1", "ISO-8859-1", NULL));

  return g_converter_input_stream_new (stream, same);
}

typedef struct
{
  GMainLoop *loop;
  GAsyncResult *result;
} Waiting;

static inline void
on_done (GObject *source, GAsyncResult *result, gpointer data)
{
  Waiting *waiting = data;

  waiting->result = g_object_ref (result);
  if (waiting->loop != NULL)
    g_main_loop_quit (waiting->loop);
}

static inline GAsyncResult *
wait_for (Waiting *waiting)
{
  while (waiting->result == NULL)
    g_main_context_iteration (NULL, TRUE);
  return waiting->result;
}
