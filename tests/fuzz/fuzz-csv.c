/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The first byte is the settings; the rest is read at once, and row by row. */

#include "config.h"

#include <gtorch/gtorch.h>

#include "fuzz.h"

const gchar fuzz_name[] = "csv";
const guint fuzz_weight = 20;
const FuzzSeed fuzz_seeds[] = {
  FUZZ_SEED ("\1a,b\n1,2\n3.5,-4e5\n"),
  FUZZ_SEED ("\2\"1\";2\r\n\"3\" ;4\r\n"),
  FUZZ_SEED ("\5x,\"y\nz\"\"\"\n,NA\n1,nan\n"),
  FUZZ_SEED ("\0221;0\n0;1\n\n 1 ; TRUE \n"),
  FUZZ_SEED ("\0109223372036854775807,-1\n1,2\n"),
  { NULL, 0 },
};

static GTorchCSVReader *
make (const guint8 *data, gsize size)
{
  static const GTorchDType dtypes[] = { GTORCH_DTYPE_FLOAT64, GTORCH_DTYPE_INT64, GTORCH_DTYPE_BOOL,
                                        GTORCH_DTYPE_INT8 };
  g_autoptr (GInputStream) stream = g_memory_input_stream_new_from_data (data + 1, size - 1, NULL);
  GTorchCSVReader *reader = gtorch_csv_reader_new (stream);

  gtorch_csv_reader_set_has_header (reader, data[0] & 1, NULL);
  gtorch_csv_reader_set_delimiter (reader, (data[0] & 2) != 0 ? ";" : ",", NULL);
  if ((data[0] & 4) != 0)
    gtorch_csv_reader_set_missing (reader, -7, NULL);
  gtorch_csv_reader_set_dtype (reader, dtypes[data[0] >> 3 & 3], NULL);
  gtorch_csv_reader_set_skip_rows (reader, data[0] >> 7, NULL);
  gtorch_csv_reader_set_max_bytes (reader, 1 << 20, NULL);
  return reader;
}

int
LLVMFuzzerTestOneInput (const guint8 *data, gsize size)
{
  g_autoptr (GTorchCSVReader) whole = NULL;
  g_autoptr (GTorchCSVReader) rows = NULL;
  g_autoptr (GTorchCSVReader) columns = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (GError) row_error = NULL;
  g_autoptr (GTorchTensor) tensor = NULL;
  g_autoptr (GTorchTable) table = NULL;
  gint64 n = 0;

  if (size == 0)
    return 0;
  whole = make (data, size);
  rows = make (data, size);
  columns = make (data, size);
  tensor = gtorch_csv_reader_read_tensor (whole, 0, NULL, &error);
  g_assert_true ((tensor == NULL) == (error != NULL));
  if (error != NULL)
    {
      g_assert_true (error->domain == GTORCH_ERROR);
      g_assert_true (g_utf8_validate (error->message, -1, NULL));
    }
  while (TRUE)
    {
      g_autoptr (GTorchTensor) row = gtorch_csv_reader_read_tensor (rows, 1, NULL, &row_error);

      if (row == NULL)
        break;
      n += gtorch_tensor_get_size (row, 0, NULL);
    }
  g_assert_true ((error == NULL) == (row_error == NULL));
  if (error == NULL)
    g_assert_cmpint (n, ==, gtorch_tensor_get_size (tensor, 0, NULL));
  else
    g_assert_cmpstr (error->message, ==, row_error->message);
  table = gtorch_csv_reader_read_table (columns, 0, NULL, NULL);
  g_assert_true ((table == NULL) == (tensor == NULL));
  return 0;
}
