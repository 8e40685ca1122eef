/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The texts of tensors, compared with PyTorch's (data/print.txt, by print-reference.py). */

#include "config.h"

#include <string.h>

#include "test-device.h"

static GTorchTensor *
parse_tensor (const gchar *line)
{
  g_auto (GStrv) words = g_strsplit (line, " ", 3);
  GTorchDType dtype = gtorch_dtype_from_name (words[0], NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) tensor = NULL;
  g_autofree gint64 *ints = NULL;
  g_autofree gdouble *doubles = NULL;
  g_auto (GStrv) numbers = NULL;
  gint64 shape[8];
  gsize n_dims = 0, count = 1, i;

  if (strcmp (words[1], "-") != 0)
    {
      g_auto (GStrv) sizes = g_strsplit (words[1], "x", -1);

      for (; sizes[n_dims] != NULL; n_dims++)
        {
          shape[n_dims] = g_ascii_strtoll (sizes[n_dims], NULL, 10);
          count *= shape[n_dims];
        }
    }
  count *= gtorch_dtype_is_complex (dtype) ? 2 : 1;
  ints = g_new0 (gint64, MAX (count, 1));
  doubles = g_new0 (gdouble, MAX (count, 1));
  if (strchr (words[2], '+') != NULL && strchr (words[2], ',') == NULL
      && strstr (words[2], "e+") == NULL)
    {
      gdouble start = g_ascii_strtod (words[2], NULL);
      gdouble step = g_ascii_strtod (strchr (words[2], '+') + 1, NULL);

      for (i = 0; i < count; i++)
        {
          doubles[i] = start + i * step;
          ints[i] = (gint64) (start + i * step);
        }
    }
  else if (strcmp (words[2], "-") != 0)
    {
      numbers = g_strsplit (words[2], ",", -1);
      g_assert_cmpuint (g_strv_length (numbers), ==, count);
      for (i = 0; i < count; i++)
        {
          doubles[i] = g_ascii_strtod (numbers[i], NULL);
          ints[i] = g_ascii_strtoll (numbers[i], NULL, 10);
        }
    }
  if (gtorch_dtype_is_floating_point (dtype) || gtorch_dtype_is_complex (dtype))
    tensor = gtorch_tensor_new_from_doubles (doubles, count, shape, n_dims, dtype, NULL, &error);
  else
    tensor = gtorch_tensor_new_from_ints (ints, count, shape, n_dims, dtype, NULL, &error);
  g_assert_no_error (error);
  return g_steal_pointer (&tensor);
}

static void
set_options (const gchar *line)
{
  g_auto (GStrv) words = g_strsplit (line, " ", -1);
  g_autoptr (GEnumClass) modes = g_type_class_ref (GTORCH_TYPE_SCI_MODE);
  g_autoptr (GError) error = NULL;

  gtorch_set_print_options (atoi (words[1]), atoi (words[2]), atoi (words[3]), atoi (words[4]),
                            g_enum_get_value_by_nick (modes, words[5])->value, &error);
  g_assert_no_error (error);
}

/* The text names a device other than the CPU, which may change the line breaks. */
static gboolean
is_text (const gchar *text, const gchar *expected)
{
  g_autoptr (GRegex) place = g_regex_new (",\\s+device='[^']*'", 0, 0, NULL);
  g_autoptr (GRegex) blanks = g_regex_new ("\\s+", 0, 0, NULL);
  g_autofree gchar *name = NULL;
  g_autofree gchar *without = NULL;
  g_autofree gchar *words = NULL;
  g_autofree gchar *expected_words = NULL;

  if (test_device () == gtorch_device_cpu ())
    return strcmp (text, expected) == 0;
  without = g_regex_replace_literal (place, text, -1, 0, "", 0, NULL);
  words = g_regex_replace_literal (blanks, without, -1, 0, " ", 0, NULL);
  expected_words = g_regex_replace_literal (blanks, expected, -1, 0, " ", 0, NULL);
  name = g_strdup_printf ("device='%s'", gtorch_device_name (test_device ()));
  return strstr (text, name) != NULL && strcmp (words, expected_words) == 0;
}

static void
text_is_pytorchs (void)
{
  g_autofree gchar *path = g_test_build_filename (G_TEST_DIST, "core", "data", "print.txt", NULL);
  g_autofree gchar *content = NULL;
  g_autoptr (GError) error = NULL;
  g_auto (GStrv) lines = NULL;
  guint i = 0, n_cases = 0;

  g_file_get_contents (path, &content, NULL, &error);
  g_assert_no_error (error);
  lines = g_strsplit (content, "\n", -1);
  while (lines[i] != NULL && lines[i][0] != '\0')
    {
      const gchar *title = lines[i];
      g_autoptr (GTorchTensor) tensor = parse_tensor (lines[i++]);
      g_autoptr (GString) expected = g_string_new (NULL);
      g_autofree gchar *text = NULL;

      if (g_str_has_prefix (lines[i], "options "))
        set_options (lines[i++]);
      for (; strcmp (lines[i], ".") != 0; i++)
        g_string_append_printf (expected, "%s%s", expected->len > 0 ? "\n" : "", lines[i]);
      /* an empty line counts as a line: the first one is never empty */
      i++;
      text = gtorch_tensor_to_string (tensor);
      if (!is_text (text, expected->str))
        {
          g_test_message ("%s\n%s\ninstead of\n%s", title, text, expected->str);
          g_test_fail ();
        }
      set_options ("options 4 1000 3 80 auto");
      n_cases++;
    }
  g_assert_cmpuint (n_cases, >, 250);
}

static void
strides_do_not_show (void)
{
  g_autoptr (GTorchTensor) range = gtorch_arange (0, 2500, 1, GTORCH_DTYPE_INT64, NULL, NULL);
  g_autoptr (GTorchTensor) matrix = gtorch_tensor_reshape (range, GTORCH_SHAPE (50, 50), NULL);
  g_autoptr (GTorchTensor) transposed = gtorch_tensor_t (matrix, NULL);
  g_autoptr (GTorchTensor) copy = gtorch_tensor_clone (transposed, NULL);
  g_autofree gchar *text = test_to_string (transposed);
  g_autofree gchar *expected = test_to_string (copy);

  g_assert_false (gtorch_tensor_is_contiguous (transposed));
  g_assert_cmpstr (text, ==, expected);
}

static void
expanded_tensors_of_any_size_print (void)
{
  g_autoptr (GTorchTensor) one = gtorch_ones (NULL, 0, GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchTensor) huge =
      gtorch_tensor_expand (one, GTORCH_SHAPE (G_GINT64_CONSTANT (1) << 40), NULL);
  g_autofree gchar *text = test_to_string (huge);

  g_assert_cmpstr (text, ==, "tensor([1., 1., 1.,  ..., 1., 1., 1.])");
}

static void
gradients_are_named (void)
{
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (2), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchTensor) y = NULL;
  g_autofree gchar *leaf = NULL;
  g_autofree gchar *result = NULL;

  gtorch_tensor_set_requires_grad (x, TRUE, NULL);
  leaf = test_to_string (x);
  g_assert_cmpstr (leaf, ==, "tensor([1., 1.], requires_grad=True)");
  y = gtorch_tensor_mul (x, x, NULL);
  result = test_to_string (y);
  g_assert_true (g_str_has_prefix (result, "tensor([1., 1.], grad_fn=<"));
  g_assert_nonnull (strstr (result, gtorch_tensor_get_grad_fn_name (y)));
}

static void
released_tensors_show_their_shape (void)
{
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (2, 3), GTORCH_DTYPE_INT32, NULL, NULL);
  g_autofree gchar *text = NULL;

  gtorch_tensor_release (x);
  text = test_to_string (x);
  g_assert_cmpstr (text, ==, "tensor(<released>, size=(2, 3), dtype=int32)");
}

static void
captured_tensors_show_their_shape (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchStream) stream = gtorch_stream_new (NULL, 0, &error);
  g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
  g_autoptr (GTorchTensor) x = gtorch_ones (GTORCH_SHAPE (2, 3), GTORCH_DTYPE_FLOAT32, NULL, NULL);
  g_autoptr (GTorchStreamGuard) guard = gtorch_stream_guard_new (stream);
  g_autoptr (GTorchTensor) y = NULL;
  g_autofree gchar *text = NULL;

  g_assert_no_error (error);
  if (!test_can_capture ())
    return;
  gtorch_cuda_graph_capture_begin (graph, NULL, GTORCH_CAPTURE_MODE_GLOBAL, &error);
  g_assert_no_error (error);
  y = gtorch_tensor_mul (x, x, &error);
  g_assert_no_error (error);
  text = test_to_string (y);
  g_assert_cmpstr (text, ==, "tensor(..., size=(2, 3))");
  gtorch_cuda_graph_capture_end (graph, &error);
  g_assert_no_error (error);
}

static void
bad_options_are_errors (void)
{
  g_autoptr (GError) error = NULL;
  gint precision, edge_items, line_width;
  gint64 threshold;
  GTorchSciMode mode;

  g_assert_false (gtorch_set_print_options (-1, 1000, 3, 80, GTORCH_SCI_MODE_AUTO, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "set_print_options: precision is -1, it must be from 0 to 60");
  g_clear_error (&error);
  g_assert_false (gtorch_set_print_options (4, 1000, 3, 80, 9, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  gtorch_get_print_options (&precision, &threshold, &edge_items, &line_width, &mode);
  g_assert_cmpint (precision, ==, 4);
  g_assert_cmpint (threshold, ==, 1000);
  g_assert_cmpint (edge_items, ==, 3);
  g_assert_cmpint (line_width, ==, 80);
  g_assert_cmpint (mode, ==, GTORCH_SCI_MODE_AUTO);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/tensor-print/text_is_pytorchs", text_is_pytorchs);
  g_test_add_func ("/GTorch/tensor-print/strides_do_not_show", strides_do_not_show);
  g_test_add_func ("/GTorch/tensor-print/expanded_tensors_of_any_size_print",
                   expanded_tensors_of_any_size_print);
  g_test_add_func ("/GTorch/tensor-print/gradients_are_named", gradients_are_named);
  g_test_add_func ("/GTorch/tensor-print/released_tensors_show_their_shape",
                   released_tensors_show_their_shape);
  g_test_add_func ("/GTorch/tensor-print/captured_tensors_show_their_shape",
                   captured_tensors_show_their_shape);
  g_test_add_func ("/GTorch/tensor-print/bad_options_are_errors", bad_options_are_errors);
  return g_test_run ();
}
