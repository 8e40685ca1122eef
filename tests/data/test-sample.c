/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "data-test.h"

static GTorchSample *
tensor_of (gdouble value, gsize n, GTorchDType dtype)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) tensor =
      gtorch_full ((gint64[]){ n }, 1, value, dtype, gtorch_device_cpu (), &error);

  g_assert_no_error (error);
  return gtorch_sample_new_tensor (tensor);
}

/* Takes the parts. */
static GTorchSample *
tuple_of (GTorchSample *a, GTorchSample *b)
{
  g_autoptr (GError) error = NULL;
  GTorchSample *sample = gtorch_sample_new_tuple ((GTorchSample *[]){ a, b }, 2, &error);

  g_assert_no_error (error);
  gtorch_sample_unref (a);
  gtorch_sample_unref (b);
  return sample;
}

static GTorchSample *
dict_of (const gchar *first, GTorchSample *a, const gchar *second, GTorchSample *b)
{
  const gchar *keys[] = { first, second, NULL };
  g_autoptr (GError) error = NULL;
  GTorchSample *sample = gtorch_sample_new_dict (keys, (GTorchSample *[]){ a, b }, 2, &error);

  g_assert_no_error (error);
  gtorch_sample_unref (a);
  gtorch_sample_unref (b);
  return sample;
}

static void
test_parts_are_what_was_given (void)
{
  g_autoptr (GBytes) bytes = g_bytes_new ("abc", 3);
  g_auto (GValue) value = G_VALUE_INIT;
  g_autoptr (GTorchSample) pair =
      tuple_of (gtorch_sample_new_int (-7), gtorch_sample_new_double (2.5));
  g_autoptr (GTorchSample) dict =
      dict_of ("a", gtorch_sample_new_string ("text"), "b", gtorch_sample_new_bytes (bytes));
  g_autoptr (GTorchSample) truth = gtorch_sample_new_bool (TRUE);
  g_autoptr (GTorchSample) boxed = NULL;
  g_auto (GStrv) keys = gtorch_sample_get_keys (dict);
  g_autoptr (GError) error = NULL;

  g_value_init (&value, G_TYPE_UINT);
  g_value_set_uint (&value, 9);
  boxed = gtorch_sample_new_value (&value);
  g_assert_cmpuint (g_value_get_uint (gtorch_sample_get_value (boxed)), ==, 9);
  g_assert_cmpint (gtorch_sample_get_n_children (pair), ==, 2);
  g_assert_cmpint (gtorch_sample_get_int (gtorch_sample_get_child (pair, 0, NULL)), ==, -7);
  g_assert_cmpfloat (gtorch_sample_get_double (gtorch_sample_get_child (pair, -1, NULL)), ==, 2.5);
  g_assert_cmpstr (gtorch_sample_get_string (gtorch_sample_lookup (dict, "a")), ==, "text");
  g_assert_true (gtorch_sample_get_bytes (gtorch_sample_lookup (dict, "b")) == bytes);
  g_assert_null (gtorch_sample_lookup (dict, "c"));
  g_assert_null (gtorch_sample_lookup (pair, "a"));
  g_assert_cmpint (g_strv_length (keys), ==, 2);
  g_assert_cmpstr (keys[1], ==, "b");
  g_assert_true (gtorch_sample_get_bool (truth));
  assert_text (gtorch_sample_to_string (pair), "(-7, 2.5)");
  assert_text (gtorch_sample_to_string (dict), "{a: \"text\", b: 3 bytes}");
  g_assert_null (gtorch_sample_get_child (pair, 2, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX);
  g_assert_cmpstr (error->message, ==, "sample: index 2 is out of range for a tuple of 2");
}

static void
test_wrong_samples_are_refused (void)
{
  g_autoptr (GTorchSample) one = gtorch_sample_new_int (1);
  const gchar *twice[] = { "a", "a", NULL };
  const gchar *few[] = { "a", NULL };
  GTorchSample *children[] = { one, one };
  GTorchSample *hole[] = { one, NULL };
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchSample) deep = gtorch_sample_ref (one);
  guint depth;

  g_assert_null (gtorch_sample_new_dict (twice, children, 2, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "sample_new_dict: the key \"a\" is there twice");
  g_clear_error (&error);
  g_assert_null (gtorch_sample_new_dict (few, children, 2, &error));
  g_assert_cmpstr (error->message, ==, "sample_new_dict: 1 keys for 2 samples");
  g_clear_error (&error);
  g_assert_null (gtorch_sample_new_tuple (hole, 2, &error));
  g_assert_cmpstr (error->message, ==, "sample_new_tuple: sample 1 of 2 is missing");
  g_clear_error (&error);
  for (depth = 1; depth < 64; depth++)
    {
      GTorchSample *deeper = gtorch_sample_new_tuple (&deep, 1, &error);

      g_assert_no_error (error);
      gtorch_sample_unref (deep);
      deep = deeper;
    }
  g_assert_null (gtorch_sample_new_tuple (&deep, 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "sample_new_tuple: samples are nested more than 64 deep");
}

/* Takes the samples. */
static GTorchSample *
collate (GTorchSample *a, GTorchSample *b, GError **error)
{
  GTorchSample *batch = gtorch_sample_collate ((GTorchSample *[]){ a, b }, 2, error);

  gtorch_sample_unref (a);
  gtorch_sample_unref (b);
  return batch;
}

static void
test_collate_makes_one_tensor_of_each_part (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchSample) tensors = collate (tensor_of (1, 2, GTORCH_DTYPE_FLOAT32),
                                              tensor_of (2, 2, GTORCH_DTYPE_FLOAT32), &error);
  g_autoptr (GTorchSample) ints =
      collate (gtorch_sample_new_int (3), gtorch_sample_new_int (4), &error);
  g_autoptr (GTorchSample) doubles =
      collate (gtorch_sample_new_int (3), gtorch_sample_new_double (4.5), &error);
  g_autoptr (GTorchSample) bools =
      collate (gtorch_sample_new_bool (TRUE), gtorch_sample_new_bool (FALSE), &error);
  g_autoptr (GTorchSample) strings =
      collate (gtorch_sample_new_string ("x"), gtorch_sample_new_string ("y"), &error);
  g_autoptr (GTorchSample) nested =
      collate (dict_of ("a", gtorch_sample_new_int (1), "b",
                        tuple_of (gtorch_sample_new_int (2), tensor_of (3, 1, GTORCH_DTYPE_INT64))),
               dict_of ("b",
                        tuple_of (gtorch_sample_new_int (5), tensor_of (6, 1, GTORCH_DTYPE_INT64)),
                        "a", gtorch_sample_new_int (4)),
               &error);

  g_assert_no_error (error);
  assert_text (gtorch_sample_to_string (tensors), "tensor float32 [2, 2]");
  assert_text (ints_of (gtorch_sample_get_tensor (tensors)), "1 1 2 2");
  assert_text (gtorch_sample_to_string (ints), "tensor int64 [2]");
  assert_text (ints_of (gtorch_sample_get_tensor (ints)), "3 4");
  assert_text (gtorch_sample_to_string (doubles), "tensor float64 [2]");
  assert_text (gtorch_sample_to_string (bools), "tensor bool [2]");
  assert_text (ints_of (gtorch_sample_get_tensor (bools)), "1 0");
  assert_text (gtorch_sample_to_string (strings), "(\"x\", \"y\")");
  assert_text (gtorch_sample_to_string (nested),
               "{a: tensor int64 [2], b: (tensor int64 [2], tensor int64 [2, 1])}");
  assert_text (text_of (gtorch_sample_lookup (nested, "b")), "3 6");
  g_assert_cmpint (gtorch_sample_get_n_bytes (nested), ==, 48);
}

static void
test_collate_copies_strided_rows (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x =
      gtorch_arange_int (0, 6, 1, GTORCH_DTYPE_INT64, gtorch_device_cpu (), &error);
  g_autoptr (GTorchTensor) rows = gtorch_tensor_reshape (x, (gint64[]){ 2, 3 }, 2, &error);
  g_autoptr (GTorchTensor) turned = gtorch_tensor_transpose (rows, 0, 1, &error);
  g_autoptr (GTorchSample) batch =
      collate (gtorch_sample_new_tensor (turned), gtorch_sample_new_tensor (turned), &error);

  g_assert_no_error (error);
  assert_text (ints_of (gtorch_sample_get_tensor (batch)), "0 3 1 4 2 5 0 3 1 4 2 5");
}

static void
test_collate_keeps_gradients (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchSample) a = tensor_of (1, 2, GTORCH_DTYPE_FLOAT32);
  g_autoptr (GTorchSample) batch = NULL;

  gtorch_tensor_set_requires_grad (gtorch_sample_get_tensor (a), TRUE, &error);
  batch = collate (gtorch_sample_ref (a), gtorch_sample_ref (a), &error);
  g_assert_no_error (error);
  g_assert_true (gtorch_tensor_get_requires_grad (gtorch_sample_get_tensor (batch)));
}

static void
refused (GTorchSample *a, GTorchSample *b, gint code, const gchar *message)
{
  g_autoptr (GError) error = NULL;

  g_assert_null (collate (a, b, &error));
  g_assert_error (error, GTORCH_ERROR, code);
  g_assert_cmpstr (error->message, ==, message);
}

static void
test_collate_names_what_differs (void)
{
  g_autoptr (GError) error = NULL;

  refused (tensor_of (1, 2, GTORCH_DTYPE_FLOAT32), tensor_of (1, 3, GTORCH_DTYPE_FLOAT32),
           GTORCH_ERROR_SHAPE,
           "collate: sample 0 is a tensor of float32 [2], and sample 1 a tensor of float32 [3]: "
           "the shapes must be equal");
  refused (tensor_of (1, 2, GTORCH_DTYPE_FLOAT32), tensor_of (1, 2, GTORCH_DTYPE_INT64),
           GTORCH_ERROR_DTYPE,
           "collate: sample 0 is a tensor of float32 [2], and sample 1 a tensor of int64 [2]: the "
           "dtypes must be equal");
  refused (tuple_of (gtorch_sample_new_int (1), gtorch_sample_new_int (1)),
           gtorch_sample_new_string ("x"), GTORCH_ERROR_INVALID,
           "collate: sample 0 is a tuple of 2, and sample 1 a text: the kinds must be equal");
  refused (tuple_of (gtorch_sample_new_int (1),
                     dict_of ("a", gtorch_sample_new_int (1), "b", gtorch_sample_new_int (1))),
           tuple_of (gtorch_sample_new_int (1),
                     dict_of ("a", gtorch_sample_new_int (1), "c", gtorch_sample_new_int (1))),
           GTORCH_ERROR_INVALID,
           "collate: sample 0 is a dictionary of {a, b}, and sample 1 a dictionary of {a, c} at "
           "[1]: the keys must be equal");
  refused (dict_of ("x", gtorch_sample_new_none (), "y", gtorch_sample_new_int (1)),
           dict_of ("x", gtorch_sample_new_none (), "y", gtorch_sample_new_int (1)),
           GTORCH_ERROR_INVALID,
           "collate: sample 0 is nothing at [\"x\"]: batches have tensors, numbers, texts, bytes, "
           "tuples and dictionaries; others need a collate function");
  g_assert_null (gtorch_sample_collate (NULL, 0, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "collate: a batch has at least one sample");
}

static GTorchTensor *
alloc (GTorchDType dtype, const gint64 *shape, gsize n_dims, gpointer data, GError **error)
{
  GTorchTensor **given = data;

  g_clear_object (given);
  *given = gtorch_zeros (shape, n_dims, n_dims == 1 ? GTORCH_DTYPE_FLOAT64 : dtype,
                         gtorch_device_cpu (), error);
  return g_object_ref (*given);
}

static void
test_collate_writes_to_given_memory (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) given = NULL;
  g_autoptr (GTorchSample) a = tensor_of (1, 2, GTORCH_DTYPE_FLOAT32);
  g_autoptr (GTorchSample) one = gtorch_sample_new_int (1);
  g_autoptr (GTorchSample) batch =
      gtorch_sample_collate_with ((GTorchSample *[]){ a, a }, 2, alloc, &given, &error);

  g_assert_no_error (error);
  g_assert_true (gtorch_sample_get_tensor (batch) == given);
  assert_text (ints_of (given), "1 1 1 1");
  g_assert_null (
      gtorch_sample_collate_with ((GTorchSample *[]){ one, one }, 2, alloc, &given, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "collate: the alloc function gave a tensor of float64 [2] on cpu, where a "
                   "contiguous one of int64 [2] on cpu is wanted");
}

static GTorchTensor *
double_it (GTorchTensor *tensor, gpointer data, GError **error)
{
  if (data != NULL && gtorch_tensor_get_numel (tensor) == 1)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, "too small");
      return NULL;
    }
  return data != NULL ? gtorch_tensor_mul_scalar (tensor, 2, error) : g_object_ref (tensor);
}

static void
test_map_changes_tensors_alone (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchSample) sample = tuple_of (tensor_of (3, 2, GTORCH_DTYPE_INT64),
                                              dict_of ("n", gtorch_sample_new_int (5), "t",
                                                       tensor_of (4, 2, GTORCH_DTYPE_INT64)));
  g_autoptr (GTorchSample) bad =
      tuple_of (tensor_of (3, 2, GTORCH_DTYPE_INT64), tensor_of (3, 1, GTORCH_DTYPE_INT64));
  g_autoptr (GTorchSample) mapped =
      gtorch_sample_map_tensors (sample, double_it, (gpointer) "", &error);
  g_autoptr (GTorchSample) same = gtorch_sample_map_tensors (sample, double_it, NULL, &error);
  g_autoptr (GPtrArray) tensors = gtorch_sample_get_tensors (mapped);
  g_autoptr (GTorchSample) here =
      gtorch_sample_to_device (sample, gtorch_device_cpu (), FALSE, &error);

  g_assert_no_error (error);
  g_assert_true (same == sample && here == sample);
  assert_text (gtorch_sample_to_string (mapped),
               "(tensor float32 [2], {n: 5, t: tensor float32 [2]})");
  g_assert_cmpint (tensors->len, ==, 2);
  assert_text (ints_of (tensors->pdata[0]), "6 6");
  assert_text (ints_of (tensors->pdata[1]), "8 8");
  g_assert_null (gtorch_sample_map_tensors (bad, double_it, (gpointer) "", &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED);
  g_assert_cmpstr (error->message, ==, "too small");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name) g_test_add_func ("/GTorch/Sample/" #name, test_##name)
  ADD (parts_are_what_was_given);
  ADD (wrong_samples_are_refused);
  ADD (collate_makes_one_tensor_of_each_part);
  ADD (collate_copies_strided_rows);
  ADD (collate_keeps_gradients);
  ADD (collate_names_what_differs);
  ADD (collate_writes_to_given_memory);
  ADD (map_changes_tensors_alone);
  return g_test_run ();
}
