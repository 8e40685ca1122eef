/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "io-test.h"
#include "io/gtorch-arrow-private.h"

/* A producer of our own: releases are counted, and memory is checked by the sanitizer. */
static gint n_released;

static void
release_array (GTorchArrowArray *array)
{
  n_released++;
  array->release = NULL;
}

static void
release_schema (GTorchArrowSchema *schema)
{
  schema->release = NULL;
}

typedef struct
{
  GTorchArrowSchema schema;
  GTorchArrowArray array;
  const void *buffers[2];
} Column;

static void
column_init (Column *column, const gchar *format, const gchar *name, gint64 length, gint64 offset,
             const void *data)
{
  *column = (Column){
    .schema = { .format = format, .name = name, .release = release_schema },
    .array = { .length = length, .offset = offset, .n_buffers = 2, .release = release_array },
    .buffers = { NULL, data },
  };
  column->array.buffers = column->buffers;
}

static void
test_arrow_columns_share_memory (void)
{
  static gint32 whole[] = { 1, 2, 3, 4, 5 };
  static guint8 bits[] = { 0xb6, 0x01 }; /* 0 1 1 0 1 1 0 1  1 */
  g_autoptr (GError) error = NULL;
  Column number, flag, table;
  GTorchArrowSchema *schemas[] = { &number.schema, &flag.schema };
  GTorchArrowArray *arrays[] = { &number.array, &flag.array };
  const void *none[] = { NULL };
  GTorchTable *columns;
  GTorchTensor *tensor;

  column_init (&number, "i", "number", 5, 0, whole);
  column_init (&flag, "b", "flag", 5, 4, bits);
  column_init (&table, "+s", "", 3, 1, NULL);
  number.array.release = flag.array.release = NULL; /* of the parent */
  table.schema.n_children = table.array.n_children = 2;
  table.schema.children = schemas;
  table.array.children = arrays;
  table.array.n_buffers = 1;
  table.array.buffers = none;
  n_released = 0;
  columns = gtorch_arrow_import_table ((gsize) &table.schema, (gsize) &table.array, &error);
  g_assert_no_error (error);
  g_assert_null (table.array.release); /* moved away */
  g_assert_nonnull (table.schema.release);
  tensor = g_object_ref (gtorch_table_lookup (columns, "number", &error));
  g_assert_cmpuint (gtorch_tensor_get_data_ptr (tensor), ==, (gsize) &whole[1]);
  g_assert_true (gtorch_tensor_is_read_only (tensor));
  assert_values (tensor, VALUES (2, 3, 4));
  assert_values (gtorch_table_lookup (columns, "flag", &error), VALUES (1, 0, 1));
  g_object_unref (columns);
  g_assert_cmpint (n_released, ==, 0); /* the tensor has it */
  g_object_unref (tensor);
  g_assert_cmpint (n_released, ==, 1);
}

static void
test_arrow_lists_are_dimensions (void)
{
  static gfloat numbers[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) tensor = NULL;
  Column list, item;
  GTorchArrowSchema *schema = &item.schema;
  GTorchArrowArray *array = &item.array;

  column_init (&item, "f", "item", 8, 0, numbers);
  column_init (&list, "+w:2", "pairs", 3, 1, NULL);
  list.schema.n_children = list.array.n_children = list.array.n_buffers = 1;
  list.schema.children = &schema;
  list.array.children = &array;
  item.array.release = NULL;
  tensor = gtorch_arrow_import_tensor ((gsize) &list.schema, (gsize) &list.array, &error);
  g_assert_no_error (error);
  assert_shape (tensor, "3,2");
  assert_values (tensor, VALUES (2, 3, 4, 5, 6, 7));
  g_clear_object (&tensor);
  /* a child that is too short */
  column_init (&item, "f", "item", 7, 0, numbers);
  list.array.release = release_array;
  item.array.release = NULL;
  g_assert_null (gtorch_arrow_import_tensor ((gsize) &list.schema, (gsize) &list.array, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
  g_assert_nonnull (list.array.release); /* still the caller's */
}

static void
test_arrow_refuses_by_name (void)
{
  static gint64 data[4];
  static guint8 bits[] = { 0x05 };
  static const struct
  {
    const gchar *format, *text;
    gint64 length, offset, nulls;
    gint code;
  } cases[] = {
    { "u", "the type “u” of Arrow", 1, 0, 0, GTORCH_ERROR_NOT_SUPPORTED },
    { "L", "the type “L” of Arrow", 1, 0, 0, GTORCH_ERROR_NOT_SUPPORTED },
    { "tsn:", "the type “tsn:” of Arrow", 1, 0, 0, GTORCH_ERROR_NOT_SUPPORTED },
    { "l",
      "from_arrow: column “x” has 1 nulls among 3 elements, and tensors have none: fill them first",
      3, 0, -1, GTORCH_ERROR_INVALID },
    { "l", "of length -1 at 0", -1, 0, 0, GTORCH_ERROR_FORMAT },
    { "l", "of length 1 at -1", 1, -1, 0, GTORCH_ERROR_FORMAT },
    { "l", "of length 1 at 9223372036854775807", 1, G_MAXINT64, 0, GTORCH_ERROR_FORMAT },
    { "+w:x", "has 2 buffers", 1, 0, 0, GTORCH_ERROR_FORMAT },
    { "+s", "the type “+s”", 1, 0, 0, GTORCH_ERROR_NOT_SUPPORTED },
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_autoptr (GError) error = NULL;
      Column column;

      column_init (&column, cases[i].format, "x", cases[i].length, cases[i].offset, data);
      column.array.null_count = cases[i].nulls;
      column.buffers[0] = bits;
      g_assert_null (
          gtorch_arrow_import_tensor ((gsize) &column.schema, (gsize) &column.array, &error));
      g_test_message ("%s", error->message);
      g_assert_error (error, GTORCH_ERROR, cases[i].code);
      g_assert_nonnull (strstr (error->message, cases[i].text));
      g_assert_nonnull (column.array.release);
    }
}

static void
test_arrow_exports_what_it_imports (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTable) table = gtorch_table_new ();
  g_autoptr (GTorchTensor) range = gtorch_arange (0, 12, 1, GTORCH_DTYPE_INT32, NULL, &error);
  g_autoptr (GTorchTensor) matrix = gtorch_tensor_reshape (range, GTORCH_SHAPE (3, 4), &error);
  g_autoptr (GTorchTensor) turned = gtorch_tensor_t (matrix, &error);
  g_autoptr (GTorchTensor) flags = gtorch_tensor_gt_scalar (matrix, 5, &error);
  g_autoptr (GTorchTable) again = NULL;
  g_autoptr (GTorchArrowReader) reader = NULL;
  g_autoptr (GTorchTable) batch = NULL;
  GTorchArrowSchema schema = { NULL };
  GTorchArrowArray array = { 0 };
  GTorchArrowStream stream = { NULL };

  g_assert_true (gtorch_table_add (table, "matrix", matrix, &error));
  g_assert_true (gtorch_table_add (table, "flags", flags, &error));
  g_assert_true (gtorch_arrow_export_table (table, (gsize) &schema, (gsize) &array, &error));
  g_assert_no_error (error);
  g_assert_cmpstr (schema.children[0]->format, ==, "+w:4");
  g_assert_cmpstr (schema.children[0]->name, ==, "matrix");
  again = gtorch_arrow_import_table ((gsize) &schema, (gsize) &array, &error);
  g_assert_no_error (error);
  gtorch_arrow_release ((gsize) &schema, (gsize) &array, 0);
  g_assert_null (schema.release);
  g_assert_cmpuint (gtorch_tensor_get_data_ptr (gtorch_table_get_tensor (again, 0)), ==,
                    gtorch_tensor_get_data_ptr (matrix));
  assert_values (gtorch_table_get_tensor (again, 1), VALUES (0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1));

  g_assert_true (gtorch_arrow_export_stream (table, (gsize) &stream, &error));
  reader = gtorch_arrow_reader_new ((gsize) &stream, &error);
  g_assert_null (stream.release);
  batch = gtorch_arrow_reader_read_table (reader, NULL, &error);
  assert_shape (gtorch_table_lookup (batch, "matrix", &error), "3,4");
  g_assert_null (gtorch_arrow_reader_read_table (reader, NULL, &error));
  g_assert_no_error (error);
  g_assert_null (gtorch_arrow_reader_new ((gsize) &stream, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT);
  g_clear_error (&error);

  g_assert_true (gtorch_arrow_export_tensor (turned, (gsize) &schema, (gsize) &array, &error));
  g_assert_cmpint (((const gint32 *) array.children[0]->buffers[1])[1], ==, 4);
  gtorch_arrow_release ((gsize) &schema, (gsize) &array, 0);
  g_assert_null (array.release);
}

static void
test_arrow_refuses_to_export (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTable) table = gtorch_table_new ();
  g_autoptr (GTorchTensor) two = gtorch_ones (GTORCH_SHAPE (2), GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GTorchTensor) three = gtorch_ones (GTORCH_SHAPE (3), GTORCH_DTYPE_NONE, NULL, NULL);
  g_autoptr (GTorchTensor) half = gtorch_ones (GTORCH_SHAPE (2), GTORCH_DTYPE_BFLOAT16, NULL, NULL);
  GTorchArrowSchema schema = { NULL };
  GTorchArrowArray array = { 0 };

  g_assert_false (gtorch_arrow_export_tensor (half, (gsize) &schema, (gsize) &array, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_clear_error (&error);
  g_assert_true (gtorch_table_add (table, "two", two, &error));
  g_assert_true (gtorch_table_add (table, "three", three, &error));
  g_assert_false (gtorch_arrow_export_table (table, (gsize) &schema, (gsize) &array, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_cmpstr (error->message, ==,
                   "to_arrow: column “three” has the shape [3], and the first one 2 rows");
  g_clear_error (&error);
  g_assert_true (gtorch_tensor_set_requires_grad (two, TRUE, &error));
  g_assert_false (gtorch_arrow_export_tensor (two, (gsize) &schema, (gsize) &array, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
  g_assert_null (schema.release);
  g_clear_error (&error);
  g_assert_false (gtorch_arrow_export_stream (table, 0, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/arrow/columns_share_memory", test_arrow_columns_share_memory);
  g_test_add_func ("/GTorch/arrow/lists_are_dimensions", test_arrow_lists_are_dimensions);
  g_test_add_func ("/GTorch/arrow/refuses_by_name", test_arrow_refuses_by_name);
  g_test_add_func ("/GTorch/arrow/exports_what_it_imports", test_arrow_exports_what_it_imports);
  g_test_add_func ("/GTorch/arrow/refuses_to_export", test_arrow_refuses_to_export);
  return g_test_run ();
}
