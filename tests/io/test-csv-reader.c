/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <locale.h>
#include <math.h>

#include "io-test.h"

static GTorchCSVReader *
reader_of (const gchar *text)
{
  g_autoptr (GInputStream) stream = g_memory_input_stream_new_from_data (text, -1, NULL);

  return gtorch_csv_reader_new (stream);
}

static void
test_csv_reader_reads_columns (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchCSVReader) reader =
      reader_of ("\xef\xbb\xbf"
                 "a,\"b, \"\"B\"\"\",c\r\n1,2.5,true\r\n\r\n -3 , \"1e2\" ,0\r\n4,inf,TRUE");
  g_autoptr (GTorchTable) table = NULL;

  g_assert_true (gtorch_csv_reader_set_column_dtype (reader, "a", GTORCH_DTYPE_INT64, &error));
  g_assert_true (gtorch_csv_reader_set_column_dtype (reader, "c", GTORCH_DTYPE_BOOL, &error));
  g_assert_true (gtorch_csv_reader_set_dtype (reader, GTORCH_DTYPE_FLOAT32, &error));
  table = gtorch_csv_reader_read_table (reader, 0, NULL, &error);
  g_assert_no_error (error);
  assert_values (gtorch_table_lookup (table, "a", &error), VALUES (1, -3, 4));
  assert_values (gtorch_table_lookup (table, "b, \"B\"", &error), VALUES (2.5, 100, INFINITY));
  assert_values (gtorch_table_lookup (table, "c", &error), VALUES (1, 0, 1));
  g_assert_cmpint (gtorch_tensor_get_dtype (gtorch_table_get_tensor (table, 1)), ==,
                   GTORCH_DTYPE_FLOAT32);
  g_assert_null (gtorch_csv_reader_read_table (reader, 0, NULL, &error));
  g_assert_no_error (error);
}

static void
test_csv_reader_reads_matrices_in_blocks (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchCSVReader) reader = reader_of ("skip this\nand; this\n1;2\n3;4\n5;6\n");
  g_autoptr (GTorchTensor) one = NULL;
  g_autoptr (GTorchTensor) two = NULL;

  g_object_set (reader, "delimiter", ";", "has-header", FALSE, "skip-rows", 2, NULL);
  one = gtorch_csv_reader_read_tensor (reader, 2, NULL, &error);
  two = gtorch_csv_reader_read_tensor (reader, 2, NULL, &error);
  g_assert_no_error (error);
  assert_shape (one, "2,2");
  assert_values (one, VALUES (1, 2, 3, 4));
  assert_shape (two, "1,2");
  g_assert_null (gtorch_csv_reader_read_tensor (reader, 2, NULL, &error));
  g_assert_no_error (error);
}

static void
test_csv_reader_chooses_columns (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchCSVReader) reader = reader_of ("name,x,y\n\"Li,\nn\",1,2\nB,3,4\n");
  const gchar *names[] = { "y", "x", NULL };
  g_autoptr (GTorchTensor) numbers = NULL;

  g_assert_true (gtorch_csv_reader_set_columns (reader, names, &error));
  numbers = gtorch_csv_reader_read_tensor (reader, 0, NULL, &error);
  g_assert_no_error (error);
  assert_values (numbers, VALUES (2, 1, 4, 3));
}

static void
test_csv_reader_fills_what_is_missing (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchCSVReader) reader = reader_of ("a,b\n,1\nNA,\n");
  g_autoptr (GTorchTable) table = NULL;

  g_object_set (reader, "missing", -1.0, NULL);
  g_assert_true (gtorch_csv_reader_set_column_dtype (reader, "b", GTORCH_DTYPE_INT16, &error));
  table = gtorch_csv_reader_read_table (reader, 0, NULL, &error);
  g_assert_no_error (error);
  assert_values (gtorch_table_get_tensor (table, 0), VALUES (-1, -1));
  assert_values (gtorch_table_get_tensor (table, 1), VALUES (1, -1));
}

static void
test_csv_reader_names_line_and_column (void)
{
  static const struct
  {
    const gchar *text, *message;
    GTorchDType dtype;
    gboolean allows;
  } cases[] = {
    { "a,b\n1,2\n3,x\n", "csv_read: line 3, column 2 (“b”): “x” is no float64",
      GTORCH_DTYPE_FLOAT64 },
    { "a,b\n1,2\n\"3\n\",x\n", "csv_read: line 3, column 1 (“a”): “3\n” is no float64",
      GTORCH_DTYPE_FLOAT64 },
    { "a,b\n1,\n",
      "csv_read: line 2, column 2 (“b”): the number is missing; “missing” may name one",
      GTORCH_DTYPE_FLOAT64 },
    { "a\n300\n", "csv_read: line 2, column 1 (“a”): “300” is no uint8", GTORCH_DTYPE_UINT8 },
    { "a\n1.5\n", "csv_read: line 2, column 1 (“a”): “1.5” is no int64", GTORCH_DTYPE_INT64 },
    { "a\n9223372036854775808\n",
      "csv_read: line 2, column 1 (“a”): “9223372036854775808” is no int64", GTORCH_DTYPE_INT64 },
    { "a\n2\n", "csv_read: line 2, column 1 (“a”): “2” is no bool", GTORCH_DTYPE_BOOL },
    { "a\n0x10\n", "csv_read: line 2, column 1 (“a”): “0x10” is no float64", GTORCH_DTYPE_FLOAT64 },
    { "a\nNA\n",
      "csv_read: line 2, column 1 (“a”): nan, which stands for what is missing, is no int8",
      GTORCH_DTYPE_INT8, TRUE },
    { "a,b\n1,2\n3\n", "csv_read: line 3 has 1 fields, and others 2", GTORCH_DTYPE_FLOAT64 },
    { "a,b\n1,2,3\n", "csv_read: line 2 has more than 2 fields, as others have",
      GTORCH_DTYPE_FLOAT64 },
    { "a,a\n1,2\n", "csv_read: two columns are called “a”", GTORCH_DTYPE_FLOAT64 },
    { "a\n\"1\n", "csv_read: line 3: a quote is not closed", GTORCH_DTYPE_FLOAT64 },
    { "a\n\"1\"2\n", "csv_read: line 2: “2” follows a closing quote", GTORCH_DTYPE_FLOAT64 },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchCSVReader) reader = reader_of (cases[i].text);

      g_assert_true (gtorch_csv_reader_set_dtype (reader, cases[i].dtype, &error));
      if (cases[i].allows)
        g_assert_true (gtorch_csv_reader_set_missing (reader, NAN, &error));
      g_assert_null (gtorch_csv_reader_read_table (reader, 0, NULL, &error));
      g_assert_nonnull (error);
      g_assert_true (error->domain == GTORCH_ERROR);
      g_assert_cmpstr (error->message, ==, cases[i].message);
    }
}

/* Bad rows of all kinds, with a good one behind each. */
static void
test_csv_reader_goes_on_behind_a_bad_row (void)
{
  g_autoptr (GTorchCSVReader) reader = reader_of (
      "a,b\n1,2\n3,x\n4,5\n6\n7,8\n9,10,11\n12,13\n\"1\n\",x\n14,15\n\"1\"2,3\n16,17\n1,y");
  gdouble sum = 0;
  guint n_bad = 0;

  for (guint i = 0; i < 20; i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchTensor) row = gtorch_csv_reader_read_tensor (reader, 1, NULL, &error);

      if (row == NULL && error == NULL)
        break;
      if (error != NULL)
        {
          g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
          n_bad++;
          continue;
        }
      assert_shape (row, "1,2");
      for (guint k = 0; k < 2; k++)
        {
          g_autoptr (GTorchTensor) one = gtorch_tensor_select (row, 1, k, NULL);

          sum += gtorch_tensor_item_double (one, NULL);
        }
    }
  g_assert_cmpuint (n_bad, ==, 6);
  g_assert_cmpfloat (sum, ==, 1 + 2 + 4 + 5 + 7 + 8 + 12 + 13 + 14 + 15 + 16 + 17);
}

static void
test_csv_reader_refuses_what_is_too_large (void)
{
  static const struct
  {
    GTorchDType dtype;
    const gchar *fits, *fails;
  } cases[] = {
    { GTORCH_DTYPE_FLOAT16, "65504,65519.9,-65504,inf,nan", "65520" },
    { GTORCH_DTYPE_FLOAT16, "1e-9,Infinity,-INF,0,1", "-1e6" },
    { GTORCH_DTYPE_BFLOAT16, "3.38e38,-inf,0,1,2", "3.4e38" },
    { GTORCH_DTYPE_FLOAT32, "3.4028234663852886e38,0,1,2,3", "3.5e38" },
    { GTORCH_DTYPE_FLOAT64, "1.7e308,-1.7e308,inf,1e-400,0", "1e309" },
    { GTORCH_DTYPE_FLOAT64, "1.,.5,+1,-1E+2,nan", "1_000" },
    { GTORCH_DTYPE_FLOAT64, "1,2,3,4,5", "0x10" },
    { GTORCH_DTYPE_INT8, "127,-128,0,1,2", "300" },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autofree gchar *good = g_strdup_printf ("a,b,c,d,e\n%s\n", cases[i].fits);
      g_autofree gchar *bad = g_strdup_printf ("a\n%s\n", cases[i].fails);
      g_autofree gchar *message =
          g_strdup_printf ("csv_read: line 2, column 1 (“a”): “%s” is no %s", cases[i].fails,
                           gtorch_dtype_get_name (cases[i].dtype));
      g_autoptr (GTorchCSVReader) first = reader_of (good), second = reader_of (bad);
      g_autoptr (GTorchTensor) numbers = NULL;
      g_autoptr (GError) error = NULL;

      g_object_set (first, "dtype", cases[i].dtype, NULL);
      g_object_set (second, "dtype", cases[i].dtype, NULL);
      numbers = gtorch_csv_reader_read_tensor (first, 0, NULL, &error);
      g_assert_no_error (error);
      assert_shape (numbers, "1,5");
      g_assert_null (gtorch_csv_reader_read_tensor (second, 0, NULL, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
      g_assert_cmpstr (error->message, ==, message);
    }
}

static void
test_csv_reader_refuses_nuls (void)
{
  static const gchar header[] = "a,b\0c\n1,2\n", number[] = "a,b\n1,2\0003\n";
  static const struct
  {
    const gchar *text;
    gsize n;
    const gchar *message;
  } cases[] = {
    { header, sizeof header - 1, "csv_read: line 1, column 2: a text has a NUL" },
    { number, sizeof number - 1, NULL },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GInputStream) stream =
          g_memory_input_stream_new_from_data (cases[i].text, cases[i].n, NULL);
      g_autoptr (GTorchCSVReader) reader = gtorch_csv_reader_new (stream);

      g_assert_null (gtorch_csv_reader_read_table (reader, 0, NULL, &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
      if (cases[i].message != NULL)
        g_assert_cmpstr (error->message, ==, cases[i].message);
    }
}

static void
test_csv_reader_rounds_correctly (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (7);
  g_autoptr (GString) text = g_string_new ("x\n");
  g_autoptr (GArray) wanted = g_array_new (FALSE, FALSE, sizeof (gdouble));
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchCSVReader) reader = NULL;
  g_autoptr (GTorchTensor) tensor = NULL;
  static const gchar *const forms[] = { "%.17g", "%.18e", "%.3f", "%.7g", "%.15g" };
  gchar number[64];

  setlocale (LC_ALL, "de_DE.UTF-8"); /* if it is there, it has a comma */
  for (guint i = 0; i < 100000; i++)
    {
      guint64 bits = (guint64) g_rand_int (rand) << 32 | g_rand_int (rand);
      gdouble value = g_rand_double (rand) * pow (10, g_rand_int_range (rand, -9, 9)), exact;

      if (i % 7 == 0)
        memcpy (&value, &bits, 8);
      if (!isfinite (value) || fabs (value) > 1e300)
        value = 0.1;
      g_ascii_formatd (number, sizeof number, forms[i % G_N_ELEMENTS (forms)], value);
      exact = g_ascii_strtod (number, NULL);
      g_array_append_val (wanted, exact);
      g_string_append (text, number);
      g_string_append_c (text, '\n');
    }
  reader = reader_of (text->str);
  tensor = gtorch_csv_reader_read_tensor (reader, 0, NULL, &error);
  setlocale (LC_ALL, "C");
  g_assert_no_error (error);
  assert_shape (tensor, "100000,1");
  assert_values (tensor, (const gdouble *) (gpointer) wanted->data, wanted->len);
}

static void
test_csv_reader_refuses_settings (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchCSVReader) reader = reader_of ("a\n1\n");
  g_autoptr (GTorchTable) table = NULL;
  const gchar *twice[] = { "a", "a", NULL }, *missing[] = { "b", NULL };
  static const gchar *const wrong[] = { "", ",,", "\n", "1", ".", "\"", "ä" };

  for (guint i = 0; i < G_N_ELEMENTS (wrong); i++)
    {
      g_assert_false (gtorch_csv_reader_set_delimiter (reader, wrong[i], &error));
      g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
      g_clear_error (&error);
    }
  g_assert_false (gtorch_csv_reader_set_dtype (reader, GTORCH_DTYPE_COMPLEX64, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE);
  g_clear_error (&error);
  g_assert_false (gtorch_csv_reader_set_columns (reader, twice, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_true (gtorch_csv_reader_set_columns (reader, missing, &error));
  g_assert_null (gtorch_csv_reader_read_table (reader, 0, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND);
  g_clear_error (&error);
  g_clear_object (&reader);
  reader = reader_of ("a\n1\n2\n");
  g_object_set (reader, "max-bytes", (guint64) 8, NULL);
  g_assert_null (gtorch_csv_reader_read_table (reader, 0, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_OUT_OF_MEMORY);
  g_clear_error (&error);
  g_assert_false (gtorch_csv_reader_set_quote (reader, "'", &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "csv_read: quote cannot be changed any more: reading has begun");
}

static void
test_csv_reader_reads_over_blocks (void)
{
  g_autoptr (GString) text = g_string_new ("number,square\n");
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchCSVReader) reader = NULL;
  g_autoptr (GTorchTable) table = NULL;
  const gint n = 200000; /* some blocks of bytes and many of rows */
  g_autofree gint64 *values = NULL;
  gsize n_values;

  for (gint i = 0; i < n; i++)
    g_string_append_printf (text, "\"%d\",%lld\r\n", i, (long long) i * i);
  reader = reader_of (text->str);
  g_assert_true (gtorch_csv_reader_set_dtype (reader, GTORCH_DTYPE_INT64, &error));
  table = gtorch_csv_reader_read_table (reader, 0, NULL, &error);
  g_assert_no_error (error);
  values = gtorch_tensor_to_ints (gtorch_table_lookup (table, "square", &error), &n_values, &error);
  g_assert_cmpuint (n_values, ==, n);
  for (gint64 i = 0; i < n; i++)
    g_assert_cmpint (values[i], ==, i * i);
}

static void
test_csv_reader_empty_files_have_no_rows (void)
{
  static const gchar *const texts[] = { "", "\n\n", "a,b", "a,b\n" };

  for (guint i = 0; i < G_N_ELEMENTS (texts); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchCSVReader) reader = reader_of (texts[i]);
      g_autoptr (GTorchTable) table = gtorch_csv_reader_read_table (reader, 0, NULL, &error);

      g_assert_no_error (error);
      g_assert_cmpuint (gtorch_table_get_length (table), ==, i < 2 ? 0 : 2);
      if (i >= 2)
        assert_shape (gtorch_table_get_tensor (table, 1), "0");
    }
}

static void
test_csv_reader_reads_in_threads (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchCSVReader) reader = reader_of ("a\n1\n2\n");
  g_autoptr (GTorchTable) table = NULL;
  g_autoptr (GCancellable) cancelled = g_cancellable_new ();
  Waiting first = { NULL }, second = { NULL };

  gtorch_csv_reader_read_table_async (reader, 1, 0, NULL, on_done, &first);
  table = gtorch_csv_reader_read_table_finish (reader, wait_for (&first), &error);
  g_assert_no_error (error);
  assert_values (gtorch_table_get_tensor (table, 0), VALUES (1));
  g_cancellable_cancel (cancelled);
  gtorch_csv_reader_read_tensor_async (reader, 0, 0, cancelled, on_done, &second);
  g_assert_null (gtorch_csv_reader_read_tensor_finish (reader, wait_for (&second), &error));
  g_assert_error (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_object_unref (first.result);
  g_object_unref (second.result);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/CSVReader/reads_columns", test_csv_reader_reads_columns);
  g_test_add_func ("/GTorch/CSVReader/reads_matrices_in_blocks",
                   test_csv_reader_reads_matrices_in_blocks);
  g_test_add_func ("/GTorch/CSVReader/chooses_columns", test_csv_reader_chooses_columns);
  g_test_add_func ("/GTorch/CSVReader/fills_what_is_missing",
                   test_csv_reader_fills_what_is_missing);
  g_test_add_func ("/GTorch/CSVReader/names_line_and_column",
                   test_csv_reader_names_line_and_column);
  g_test_add_func ("/GTorch/CSVReader/goes_on_behind_a_bad_row",
                   test_csv_reader_goes_on_behind_a_bad_row);
  g_test_add_func ("/GTorch/CSVReader/refuses_what_is_too_large",
                   test_csv_reader_refuses_what_is_too_large);
  g_test_add_func ("/GTorch/CSVReader/refuses_nuls", test_csv_reader_refuses_nuls);
  g_test_add_func ("/GTorch/CSVReader/rounds_correctly", test_csv_reader_rounds_correctly);
  g_test_add_func ("/GTorch/CSVReader/refuses_settings", test_csv_reader_refuses_settings);
  g_test_add_func ("/GTorch/CSVReader/reads_over_blocks", test_csv_reader_reads_over_blocks);
  g_test_add_func ("/GTorch/CSVReader/empty_files_have_no_rows",
                   test_csv_reader_empty_files_have_no_rows);
  g_test_add_func ("/GTorch/CSVReader/reads_in_threads", test_csv_reader_reads_in_threads);
  return g_test_run ();
}
